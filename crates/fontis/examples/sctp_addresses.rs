//! Authenticated messages to an echo server of SCTP over UDP and back, each compared, while the
//! client's addresses change.
//!
//! `sctp_addresses LOCAL OTHER PEER PORT MESSAGES KINDS [KEY]`: addresses of UDP with commas, one
//! that is added, asked for as the primary one and then left with alone, the server's, and its port
//! of SCTP; KINDS are types of chunks that the server must authenticate, with commas, and KEY is a
//! shared key of number 7. `-` as OTHER changes nothing. `sctp_addresses LOCAL serve PORT KINDS
//! [KEY]` is such a server for one client. Both show their paths at the end.

use std::error::Error;
use std::net::SocketAddr;

use bytes::Bytes;
use fontis::sctp::{SctpEndpoint, SctpStream, random_secret};
use fontis_proto::sctp::{
    AddressChange, DynamicAddresses, SctpAuth, SctpConfig, SctpData, SctpSend, SharedKey,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn config(ports: [u16; 2], kinds: &str, key: Option<&String>) -> Outcome<SctpConfig> {
    let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(str::parse);
    let keys: Vec<SharedKey> =
        key.map(|key| SharedKey { id: 7, bytes: key.clone().into_bytes() }).into_iter().collect();
    let active = keys.first().map_or(0, |key| key.id);
    let auth =
        SctpAuth { kinds: kinds.collect::<Result<_, _>>()?, keys, active, ..SctpAuth::default() };
    let dynamic = DynamicAddresses::Authenticated;
    let plain = SctpConfig::new(random_secret()?);
    Ok(SctpConfig { ports, auth: Some(auth), dynamic, ..plain })
}

async fn serve(locals: &[SocketAddr], config: SctpConfig) -> Outcome<()> {
    let mut listener = SctpEndpoint::bind(locals)?.listen(config);
    println!("ready");
    let stream = listener.accept().await.ok_or("no client")?;
    while let Some(message) = stream.recv().await? {
        let SctpData::Bytes(bytes) = message.data else { return Err("no bytes".into()) };
        let send = SctpSend { stream: message.stream, ..SctpSend::default() };
        stream.send(send, bytes).await?;
    }
    println!("{:?}", stream.stats());
    show_paths(&stream);
    Ok(())
}

fn addresses(text: &str) -> Outcome<Vec<SocketAddr>> {
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn show_paths(stream: &SctpStream) {
    for path in stream.paths() {
        println!("{:?} {:?} {} bytes", path.ends, path.state, path.sent);
    }
}

async fn exchange(stream: &SctpStream, numbers: std::ops::Range<u32>) -> Outcome<()> {
    for number in numbers {
        let len = 1 + number * 7919 % 9000;
        let bytes: Bytes = (0..len).map(|at| (at ^ number) as u8).collect::<Vec<u8>>().into();
        stream.send(SctpSend::default(), bytes.clone()).await?;
        let mut back = Vec::new();
        // A server may give a message back in parts.
        while back.len() < bytes.len() {
            let message = stream.recv().await?.ok_or("the association is over")?;
            let SctpData::Bytes(part) = message.data else { return Err("no bytes".into()) };
            back.extend_from_slice(&part);
        }
        if back != bytes {
            return Err(format!("message {number} of {len} bytes came back changed").into());
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (local, other, peer, port, count, kinds, key) = match &arguments[..] {
        [local, word, port, kinds, key @ ..] if word == "serve" => {
            let config = config([port.parse()?, 0], kinds, key.first())?;
            return serve(&addresses(local)?, config).await;
        }
        [local, other, peer, port, count, kinds, key @ ..] => {
            (local, other, peer, port, count, kinds, key.first())
        }
        _ => return Err("usage: sctp_addresses LOCAL OTHER PEER PORT MESSAGES KINDS [KEY]".into()),
    };
    let (locals, peer): (_, SocketAddr) = (addresses(local)?, peer.parse()?);
    let local = *locals.first().ok_or("no address")?;
    let count: u32 = count.parse()?;
    let config = config([5000, port.parse()?], kinds, key)?;
    let endpoint = SctpEndpoint::bind(&locals)?;
    let stream = endpoint.connect(peer, config).await?;
    exchange(&stream, 0..count).await?;
    if other != "-" {
        let other: SocketAddr = other.parse()?;
        endpoint.add_address(other, None)?;
        for (turn, change) in (1..).zip([
            AddressChange::Add(other.ip()),
            AddressChange::Primary(other.ip()),
            AddressChange::Remove(local.ip()),
        ]) {
            stream.change_address(change).await?;
            println!("done: {change:?}");
            exchange(&stream, turn * count..(turn + 1) * count).await?;
        }
    }
    show_paths(&stream);
    stream.close().await?;
    Ok(())
}
