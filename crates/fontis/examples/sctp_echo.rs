//! Messages to an echo server of SCTP over UDP and back, each compared.
//!
//! `sctp_echo LOCAL PEER PORT MESSAGES LARGEST`: two addresses of UDP, the server's port of SCTP,
//! how many messages there are, and the bytes of the largest.
//! `sctp_echo LOCAL PEER PORT bulk MEGABYTES` sends one way.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use fontis::sctp::{SctpEndpoint, random_secret};
use fontis_base::Stream;
use fontis_proto::sctp::{SctpConfig, SctpData, SctpSend};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [local, peer, port, count, size] = &arguments[..] else {
        return Err("usage: sctp_echo LOCAL PEER PORT MESSAGES LARGEST".into());
    };
    let (local, peer): (SocketAddr, SocketAddr) = (local.parse()?, peer.parse()?);
    let config = SctpConfig { ports: [5000, port.parse()?], ..SctpConfig::new(random_secret()?) };
    let stream = SctpEndpoint::bind(&[local])?.connect(peer, config).await?;
    let begin = Instant::now();
    if count == "bulk" {
        let message = Bytes::from(vec![7; 60_000]);
        let messages = size.parse::<u64>()? * 1_000_000 / 60_000;
        for _ in 0..messages {
            stream.send(SctpSend::default(), message.clone()).await?;
        }
        let stats = stream.close().await?;
        let bits = messages as f64 * 60_000.0 * 8e-6;
        println!("{:.1} Mbit/s, {stats:?}", bits / begin.elapsed().as_secs_f64());
        return Ok(());
    }
    let largest: f64 = size.parse()?;
    let (mut random, mut total) = (Stream::new(1, "echo"), 0);
    for number in 0..count.parse::<u32>()? {
        // Log-uniform sizes.
        let len = largest.powf(random.unit()) as usize;
        let mut bytes = vec![0; len.max(1)];
        random.fill(&mut bytes);
        let bytes = Bytes::from(bytes);
        stream.send(SctpSend::default(), bytes.clone()).await?;
        let mut back = Vec::new();
        // A server may give a long message back in parts; usrsctp's gives only the last of them,
        // if the message is longer than its buffer of 10,240 bytes.
        while back.len() < bytes.len() {
            let message = stream.recv().await?.ok_or("the association is over")?;
            let SctpData::Bytes(part) = message.data else { return Err("no bytes".into()) };
            back.extend_from_slice(&part);
        }
        if back != bytes {
            return Err(format!("message {number} of {len} bytes came back changed").into());
        }
        total += bytes.len();
    }
    println!("{total} bytes there and back in {:?}, {:?}", begin.elapsed(), stream.stats());
    stream.close().await?;
    Ok(())
}
