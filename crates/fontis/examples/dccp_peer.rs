//! One end of a connection of DCCP with another stack, which sends and checks numbered packets.
//!
//! `dccp_peer KEY=VALUE...`: `role` (server or client), `over` (udp, or plain for DCCP over IP),
//! `local` and `peer` (addresses; with ports over UDP), `port` and `peer_port` of DCCP, `ccid`,
//! `service`, `count` of packets to send, `size` of the largest, `closes` (yes if this end closes
//! when nothing has come for three seconds). Prints a line when it listens, and at the end a line
//! of JSON. `scripts/dccp_kernel.py` runs it against Linux, whose end is `scripts/dccp_kernel.c`.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis::dccp::{DccpEndpoint, DccpStream};
use fontis_proto::dccp::{Ccid, DccpConfig, ResetCode};
use serde_json::json;
use tokio::time::timeout;

type Failure = Box<dyn Error>;

/// Until a connection counts as finished.
const QUIET: Duration = Duration::from_secs(3);
/// The same while much is missing: timeouts that follow each other are long, too.
const TIMEOUTS: Duration = Duration::from_secs(15);
/// Until a connection counts as one that hangs.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at the queue.
const LOOK: Duration = Duration::from_millis(1);

/// The packet with this number: its length and its content follow from it.
fn packet(number: u32, size: u32) -> Bytes {
    let draw = number.wrapping_mul(2_654_435_761) >> 16;
    let length = 4 + draw % (size - 3);
    let content = (4..length).map(|place| (number + 7 * place) as u8);
    number.to_be_bytes().into_iter().chain(content).collect()
}

/// What has come.
#[derive(Default)]
struct Heard {
    packets: u32,
    bytes: usize,
    wrong: u32,
    again: u32,
    late: u32,
    newest: Option<u32>,
    seen: Vec<bool>,
}

impl Heard {
    fn take(&mut self, datagram: &Bytes, size: u32) {
        self.packets += 1;
        self.bytes += datagram.len();
        let number = datagram.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let number = number.filter(|number| packet(*number, size) == datagram);
        let Some(number) = number.filter(|number| *number < 1 << 24) else {
            self.wrong += 1;
            return;
        };
        let place = number as usize;
        self.seen.resize(self.seen.len().max(place + 1), false);
        self.again += u32::from(self.seen[place]);
        self.seen[place] = true;
        self.late += u32::from(self.newest.is_some_and(|newest| number < newest));
        self.newest = self.newest.max(Some(number));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let pairs = arguments.iter().filter_map(|argument| argument.split_once('='));
    let keys: HashMap<&str, &str> = pairs.collect();
    let key = |name: &str| keys.get(name).copied().ok_or_else(|| format!("{name}= is missing"));
    let count: u32 = key("count")?.parse()?;
    let size: u32 = key("size")?.parse()?;
    let config = DccpConfig {
        ccid: Ccid::of(key("ccid")?.parse()?).ok_or("there is no such CCID")?,
        port: key("port")?.parse()?,
        peer_port: keys.get("peer_port").map_or(Ok(0), |port| port.parse())?,
        service: key("service")?.parse()?,
        queue: 64,
        packet_size: size,
        sequence_window: 1000,
        ..DccpConfig::default()
    };
    let local = key("local")?;
    let endpoint = match key("over")? {
        "udp" => DccpEndpoint::bind(local.parse()?)?,
        #[cfg(target_os = "linux")]
        "plain" => DccpEndpoint::bind_plain(local.parse()?)?,
        other => return Err(format!("{other} is no carrier here: write udp or plain").into()),
    };
    let stream = if key("role")? == "server" {
        let mut listener = endpoint.listen(config)?;
        println!("listening");
        let stream = timeout(PATIENCE, listener.accept()).await?.ok_or("the socket failed")?;
        // Those who come later are strangers, who are refused.
        drop(listener);
        stream
    } else {
        let peer = key("peer")?;
        let peer = peer.parse().or_else(|_| peer.parse().map(|ip| SocketAddr::new(ip, 0)))?;
        match endpoint.connect(peer, config).await {
            Ok(stream) => stream,
            Err(error) => {
                println!("{}", json!({ "end": error.to_string() }));
                return Ok(());
            }
        }
    };
    let line = talk(stream, count, size, key("closes")? == "yes").await?;
    println!("{line}");
    Ok(())
}

/// Sends and checks until one of the two ends closes.
async fn talk(
    stream: DccpStream,
    count: u32,
    size: u32,
    closes: bool,
) -> Result<serde_json::Value, Failure> {
    let begin = Instant::now();
    let (mut sent, mut heard, mut last) = (0, Heard::default(), Instant::now());
    while begin.elapsed() < PATIENCE {
        while sent < count && stream.room() > 0 && stream.send(packet(sent, size)).unwrap_or(false)
        {
            sent += 1;
            last = Instant::now();
        }
        match timeout(LOOK, stream.recv()).await {
            Ok(Some(datagram)) => {
                heard.take(&datagram, size);
                last = Instant::now();
            }
            Ok(None) => break,
            Err(_) => {
                let quiet = if 10 * heard.packets < 9 * count { TIMEOUTS } else { QUIET };
                if closes && sent == count && last.elapsed() > quiet {
                    break;
                }
            }
        }
    }
    let (path, stats) = (stream.path(), stream.stats());
    let end = match timeout(PATIENCE, stream.close()).await? {
        Ok(_) => format!("{:?}", ResetCode::Closed),
        Err(error) => error.to_string(),
    };
    Ok(json!({
        "sent": sent, "packets": heard.packets, "bytes": heard.bytes, "wrong": heard.wrong,
        "again": heard.again, "late": heard.late, "end": end,
        "seconds": begin.elapsed().as_secs_f64(), "rtt_ms": path.rtt.map(|rtt| rtt.as_micros() as f64 / 1e3),
        "lost": path.lost, "timeouts": path.timeouts, "invalid": stats.invalid, "syncs": stats.syncs,
    }))
}
