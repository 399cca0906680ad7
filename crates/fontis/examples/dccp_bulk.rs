//! Packets of DCCP from one end to another over loopback, both on one processor.
//!
//! `dccp_bulk CCID SECONDS`: CCID 2, 3 or 4, packets of 1400 bytes for so long. Prints what
//! arrived.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis::dccp::DccpEndpoint;
use fontis_proto::dccp::{Ccid, DccpConfig};

const PACKET: usize = 1400;
/// Packets that wait in the sender's queue at most.
const QUEUE: usize = 256;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ccid, seconds] = &arguments[..] else {
        return Err("usage: dccp_bulk CCID SECONDS".into());
    };
    let ccid = match ccid.as_str() {
        "2" => Ccid::Two,
        "3" => Ccid::Three,
        "4" => Ccid::Four,
        _ => return Err("the CCID is 2, 3 or 4".into()),
    };
    let span = Duration::from_secs_f64(seconds.parse()?);
    let config = |port, peer_port| DccpConfig {
        ccid,
        port,
        peer_port,
        queue: QUEUE,
        ..DccpConfig::default()
    };
    let any = "127.0.0.1:0".parse()?;
    let server = DccpEndpoint::bind(any)?;
    let mut listener = server.listen(config(5001, 0))?;
    let receiving = tokio::spawn(async move {
        let Some(stream) = listener.accept().await else { return 0 };
        let mut bytes = 0;
        while let Some(datagram) = stream.recv().await {
            bytes += datagram.len();
        }
        bytes
    });
    let client = DccpEndpoint::bind(any)?;
    let stream = client.connect(server.local_addr()?, config(5002, 5001)).await?;
    let packet = Bytes::from(vec![7; PACKET]);
    let begin = Instant::now();
    while begin.elapsed() < span {
        for _ in 0..stream.room() {
            stream.send(packet.clone())?;
        }
        tokio::task::yield_now().await;
    }
    let stats = stream.stats();
    stream.close().await?;
    let took = begin.elapsed();
    let bytes = receiving.await?;
    let mbps = bytes as f64 * 8e-6 / took.as_secs_f64();
    println!("{mbps:.0} Mbit/s, {bytes} bytes, {stats:?}");
    Ok(())
}
