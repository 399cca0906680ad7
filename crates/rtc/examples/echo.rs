//! Gives back what comes on data channels, or compares what comes back on its own.
//!
//! `echo` reads an offer, a JSON string in a line of standard input, prints its answer so, and
//! echoes until the peer closes. `echo --offer MESSAGES LARGEST SEED` prints an offer, reads the
//! answer, and sends so many messages of log-uniform lengths to a peer that echoes.
//! `--address IP:PORT` binds that address; `--public IP:PORT` tells the peer another one, which
//! leads to it.

use std::error::Error;
use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::time::Instant;

use fontis_base::Stream;
use fontis_proto::data_channel::{ChannelContent, DataChannelOptions};
use fontis_rtc::{RtcConfig, RtcError, RtcPeer};

type Outcome = Result<(), Box<dyn Error>>;

/// Reads a JSON string.
fn read() -> Result<String, Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Prints a description, with one candidate in place of all if `public` names it.
fn print(description: &str, public: Option<SocketAddr>) -> Outcome {
    let mut told = String::new();
    for line in description.split_inclusive("\r\n") {
        if !line.starts_with("a=candidate:") {
            told.push_str(line);
        }
        if line.starts_with("a=setup:")
            && let Some(address) = public
        {
            let (ip, port) = (address.ip(), address.port());
            told.push_str(&format!("a=candidate:1 1 udp 2113937151 {ip} {port} typ host\r\n"));
        }
    }
    let text = if public.is_some() { &told } else { description };
    println!("{}", serde_json::to_string(text)?);
    Ok(())
}

async fn compare(peer: &RtcPeer, count: u32, largest: f64, seed: u64) -> Outcome {
    let label = "compared".into();
    let channel = peer.open(DataChannelOptions { label, ..DataChannelOptions::default() }).await?;
    let content = |number: u32| {
        let mut random = Stream::new(seed, &format!("message {number}"));
        let mut bytes = vec![0; (largest.powf(random.unit()) as usize).max(1)];
        random.fill(&mut bytes);
        ChannelContent::Binary(bytes.into())
    };
    let begin = Instant::now();
    let send = async {
        for number in 0..count {
            channel.send(content(number)).await?;
        }
        Ok::<_, RtcError>(())
    };
    let receive = async {
        let mut total = 0;
        for number in 0..count {
            let sent = content(number);
            total += sent.len();
            if channel.recv().await? != Some(sent) {
                return Err(format!("seed {seed}: message {number} came back changed").into());
            }
        }
        Ok::<usize, Box<dyn Error>>(total)
    };
    let (sent, total) = tokio::join!(send, receive);
    let total = total?;
    sent?;
    eprintln!("{count} messages, {total} bytes there and back in {:?}", begin.elapsed());
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1).peekable();
    let (mut config, mut public, mut offer) = (RtcConfig::default(), None, None);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match &*name {
            "--address" => config.addresses.push(value()?.parse()?),
            "--public" => public = Some(value()?.parse()?),
            "--offer" => offer = Some((value()?.parse()?, value()?.parse()?, value()?.parse()?)),
            _ => return Err(format!("{name}: --offer, --address or --public?").into()),
        }
    }
    let peer = RtcPeer::bind(config).await?;
    if let Some((count, largest, seed)) = offer {
        print(&peer.offer()?, public)?;
        peer.accept(&read()?)?;
        return compare(&peer, count, largest, seed).await;
    }
    print(&peer.answer(&read()?)?, public)?;
    while let Some(channel) = peer.incoming().await? {
        tokio::spawn(async move {
            while let Ok(Some(content)) = channel.recv().await {
                if channel.send(content).await.is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}
