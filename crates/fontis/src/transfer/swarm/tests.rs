use std::sync::{Arc, Mutex};
use std::time::Duration;

use fontis_proto::dfcp::CloseReason;

use super::liar::{self, Liar, say};
use super::share;
use super::wire::{News, SwarmWire, bits};
use crate::connection::Connection;
use crate::dest::Dest;
use crate::endpoint::{Accept, Endpoint, EndpointConfig};
use crate::hash_tree::HashTree;
use crate::identity::Identity;
use crate::sink::SinkOptions;
use crate::transfer::message::decode;
use crate::transfer::{FileServer, Progress};
use crate::url::Url;

const PATIENCE: Duration = Duration::from_secs(5);
const BLOCK: usize = 1 << 20;

fn endpoint(identity: &Identity) -> Endpoint {
    let config =
        EndpointConfig { accept: Accept::Anyone, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// A file of so many blocks and its server, at a rate.
fn origin(blocks: usize, mbps: u64) -> (Vec<u8>, Endpoint, Url, tempfile::TempDir) {
    let content: Vec<u8> = (0..blocks * BLOCK).map(|i| (i * 31 + i / 251) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), &content).unwrap();
    let identity = Identity::generate();
    let endpoint = endpoint(&identity);
    endpoint.limit(Some(fontis_base::Rate::from_mbps(mbps)));
    let server = FileServer::new(endpoint.clone(), folder.path(), None).unwrap();
    tokio::spawn(server.run(|_| {}));
    let url = format!("fontis://{}/file?key={}", endpoint.local_addr(), identity.public());
    (content, endpoint, url.parse().unwrap(), folder)
}

/// A node of another make: it connects to a node of the swarm of `root`.
async fn intrude(node: &Endpoint, root: [u8; 32]) -> (Endpoint, Connection) {
    let own = endpoint(&Identity::generate());
    let connection = liar::intrude(&own, (node.local_addr(), node.public_key()), root).await;
    (own, connection.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_what_is_wrong_is_named_and_parted_from() {
    let (content, server, url, _folder) = origin(8, 40);
    let to = tempfile::tempdir().unwrap();
    let peer = endpoint(&Identity::generate());
    let root = *blake3::hash(&content).as_bytes();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (begun, dropped) = (Mutex::new(Some(begun)), Mutex::new(Vec::new()));
    let see = |progress| match progress {
        Progress::Started { .. } => {
            let _ = begun.lock().unwrap().take().map(|begun| begun.send(()));
        }
        Progress::Dropped { remote, error } => dropped.lock().unwrap().push((remote, error)),
        _ => {}
    };
    let (dest, options) = (Dest::new(to.path().join("got")), SinkOptions::default());
    let fetch = share(&peer, server.local_addr(), &url, &dest, options, PATIENCE, see);
    let liar = async {
        begins.await.unwrap();
        let (own, connection) = intrude(&peer, root).await;
        let tree = HashTree::of_reader(&content[..], BLOCK as u32, |_| ()).unwrap();
        let content = Arc::new(content.clone());
        let liar = Liar { endpoint: own.clone(), tree: Arc::new(tree), content, offers: true };
        liar.lie(&connection, || true, &Arc::default()).await;
        assert!(connection.close_reason().is_some(), "nobody keeps a liar");
        own.local_addr()
    };
    let (fetched, liar) = tokio::join!(fetch, liar);
    let (report, _sharing) = fetched.unwrap();
    assert_eq!(report.hash, blake3::hash(&content).to_hex().to_string());
    assert!(std::fs::read(to.path().join("got")).unwrap() == content);
    let dropped = dropped.into_inner().unwrap();
    let named: Vec<_> = dropped.iter().filter(|(remote, _)| *remote == liar).collect();
    assert!(!named.is_empty() && named.iter().any(|(_, why)| why.contains("its hash twice")));
    assert!(dropped.iter().all(|(remote, _)| *remote == liar), "{dropped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_offers_and_sends_nothing_holds_nobody_up() {
    let (content, server, url, _folder) = origin(8, 40);
    let to = tempfile::tempdir().unwrap();
    let root = *blake3::hash(&content).as_bytes();
    let peer = endpoint(&Identity::generate());
    let (begun, begins) = tokio::sync::oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let see = |progress| {
        if matches!(progress, Progress::Started { .. }) {
            // The first offers are the other's.
            server.limit(Some(fontis_base::Rate::ZERO));
            let _ = begun.lock().unwrap().take().map(|begun| begun.send(()));
        }
    };
    let (dest, options) = (Dest::new(to.path().join("got")), SinkOptions::default());
    let fetch = share(&peer, server.local_addr(), &url, &dest, options, PATIENCE, see);
    let (node, first) = (peer.clone(), server.clone());
    let idler = async move {
        begins.await.unwrap();
        let mut takes = 0;
        let (_own, connection) = intrude(&node, root).await;
        say(&connection, &SwarmWire::Has(bits(0..8, 8)));
        for block in 0..8 {
            say(&connection, &SwarmWire::Offer { upload: block, block });
        }
        let answers = async {
            while let Some(message) = connection.recv_message().await {
                takes += u32::from(matches!(decode(&message.data), Some(SwarmWire::Take { .. })));
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(500), answers).await;
        first.limit(Some(fontis_base::Rate::from_mbps(40)));
        while connection.recv_message().await.is_some() {}
        takes
    };
    let begin = std::time::Instant::now();
    let idler = tokio::spawn(idler);
    let (report, sharing) = fetch.await.unwrap();
    let took = begin.elapsed();
    drop(sharing);
    let takes = idler.await.unwrap();
    println!("{took:?}, {takes} blocks were expected of it");
    assert_eq!(report.hash, blake3::hash(&content).to_hex().to_string());
    assert!(takes == 3 && took < Duration::from_secs(20), "{takes}, {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_ends_a_connection_and_nothing_else() {
    let (content, server, url, _folder) = origin(4, 40);
    let to = tempfile::tempdir().unwrap();
    let root = *blake3::hash(&content).as_bytes();
    let peer = endpoint(&Identity::generate());
    let (dest, options) = (Dest::new(to.path().join("got")), SinkOptions::default());
    let fetch = share(&peer, server.local_addr(), &url, &dest, options, PATIENCE, |_| {});
    // To a group of 239.255.1.2 with a stream, from a node that this one did not ask.
    let invitation = [&[8, 0, 0, 239, 255, 1, 2, 9][..], &[0; 8 + 3 * 32], &[9, 1, 100]].concat();
    let invitation: SwarmWire = decode(&invitation).unwrap();
    assert!(matches!(invitation, SwarmWire::Invite(_)));
    let fools = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut ended = Vec::new();
        for wrong in [
            SwarmWire::Has(vec![0; 7]),
            SwarmWire::News(vec![News::Room(true); 40_000]),
            SwarmWire::Offer { upload: 0, block: 4 },
            SwarmWire::Offer { upload: 0, block: u32::MAX },
            invitation,
        ] {
            let (_own, connection) = intrude(&peer, root).await;
            say(&connection, &wrong);
            let to_end = async { while connection.recv_message().await.is_some() {} };
            let _ = tokio::time::timeout(PATIENCE, to_end).await;
            ended.push(connection.close_reason());
        }
        // What is of no block, or of nothing that was begun, changes nothing.
        let (_own, connection) = intrude(&peer, root).await;
        say(&connection, &SwarmWire::Has(vec![0]));
        let news = [News::Has(9), News::Lost(u32::MAX), News::Gone(1), News::Coming(4)];
        say(&connection, &SwarmWire::News(news.to_vec()));
        say(&connection, &SwarmWire::Take { upload: 99 });
        say(&connection, &SwarmWire::Ending { upload: 99 });
        say(&connection, &SwarmWire::Unheard);
        say(&connection, &SwarmWire::Lonely);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(connection.close_reason(), None);
        ended
    };
    let (fetched, ended) = tokio::join!(fetch, fools);
    // Who has everything and leaves ends with another code.
    let parted = |end: &Option<CloseReason>| matches!(end, Some(CloseReason::Peer { code: 0, .. }));
    assert!(ended.iter().all(parted), "{ended:?}");
    assert_eq!(fetched.unwrap().0.hash, blake3::hash(&content).to_hex().to_string());
}
