//! Many associations of SCTP over UDP, each with some bytes there and back that are compared.
//!
//! `sctp_many client LOCAL PEER PORT COUNT AT_ONCE SEED`: an address of UDP, the echo server's, its
//! port of SCTP, how many associations, how many of them at once, and the seed of their bytes: 1 to
//! 1,000,000, log-uniform. `sctp_many server LOCAL PORT` is such a server, without end.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis::sctp::{SctpEndpoint, SctpStream, random_secret};
use fontis_base::Stream;
use fontis_proto::sctp::{SctpConfig, SctpData, SctpSend};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of a message at most: usrsctp's sockets give longer ones in parts.
const MESSAGE: usize = 8000;
/// An association that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);
/// The first of the client's ports.
const FIRST_PORT: u64 = 1024;

async fn echo(stream: SctpStream) -> Outcome<()> {
    while let Some(message) = stream.recv().await? {
        let SctpData::Bytes(bytes) = message.data else { return Err("no bytes".into()) };
        stream.send(SctpSend::default(), bytes).await?;
    }
    Ok(())
}

async fn serve(local: SocketAddr, port: u16) -> Outcome<()> {
    let config = SctpConfig { ports: [port, 0], ..SctpConfig::new(random_secret()?) };
    let mut listener = SctpEndpoint::bind(&[local])?.listen(config);
    println!("ready");
    while let Some(stream) = listener.accept().await {
        tokio::spawn(async move {
            if let Err(error) = echo(stream).await {
                eprintln!("an association ended: {error}");
            }
        });
    }
    Ok(())
}

/// Sends all bytes, and takes as many back, which must be the same.
async fn exchange(stream: &SctpStream, bytes: &Bytes) -> Outcome<()> {
    let there = async {
        for at in (0..bytes.len()).step_by(MESSAGE) {
            let message = bytes.slice(at..bytes.len().min(at + MESSAGE));
            stream.send(SctpSend::default(), message).await?;
        }
        Ok(())
    };
    let back = async {
        let mut came = 0;
        while came < bytes.len() {
            let message = stream.recv().await?.ok_or("the association is over")?;
            let SctpData::Bytes(part) = message.data else { return Err("no bytes".into()) };
            if bytes.get(came..came + part.len()) != Some(&part[..]) {
                return Err(format!("other bytes came back at {came}").into());
            }
            came += part.len();
        }
        Ok(())
    };
    let (there, back): (Outcome<()>, Outcome<()>) = tokio::join!(there, back);
    there.and(back)
}

async fn one(
    endpoint: &SctpEndpoint,
    peer: SocketAddr,
    ports: [u16; 2],
    s: &mut Stream,
) -> Outcome<u64> {
    let mut bytes = vec![0; 1e6_f64.powf(s.unit()) as usize];
    s.fill(&mut bytes);
    let bytes = Bytes::from(bytes);
    let config = SctpConfig { ports, ..SctpConfig::new(random_secret()?) };
    let all = async {
        let stream = endpoint.connect(peer, config).await?;
        exchange(&stream, &bytes).await?;
        stream.close().await?;
        Ok(bytes.len() as u64)
    };
    tokio::time::timeout(PATIENCE, all).await.map_err(|_| "it hangs")?
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [local, peer, port, count, at_once, seed] = match &words[..] {
        ["server", local, port] => return serve(local.parse()?, port.parse()?).await,
        ["client", rest @ ..] => <[&str; 6]>::try_from(rest)?,
        _ => return Err("usage: sctp_many client|server ...".into()),
    };
    let (peer, port): (SocketAddr, u16) = (peer.parse()?, port.parse()?);
    let (count, seed): (u64, u64) = (count.parse()?, seed.parse()?);
    let endpoint = Arc::new(SctpEndpoint::bind(&[local.parse()?])?);
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..at_once.parse::<u64>()? {
        let (endpoint, next) = (endpoint.clone(), next.clone());
        workers.spawn(async move {
            let (mut bytes, mut failures) = (0, 0);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return (bytes, failures);
                }
                let own = u16::try_from(FIRST_PORT + number % 60_000).unwrap_or(u16::MAX);
                let s = &mut Stream::new(seed + number, "many");
                match one(&endpoint, peer, [own, port], s).await {
                    Ok(more) => bytes += more,
                    Err(error) => {
                        failures += 1;
                        println!("association {number}: {error}");
                    }
                }
            }
        });
    }
    let (mut bytes, mut failures) = (0, 0);
    while let Some(worker) = workers.join_next().await {
        let (more, failed): (u64, u64) = worker?;
        (bytes, failures) = (bytes + more, failures + failed);
    }
    let passed = begin.elapsed().as_secs_f64();
    println!(
        "{count} associations, {failures} failed, {bytes} bytes there and back in {passed:.1} s"
    );
    if failures > 0 { Err("some failed".into()) } else { Ok(()) }
}
