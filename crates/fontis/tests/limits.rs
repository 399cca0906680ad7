//! What an endpoint takes of its peers, over real sockets.

use std::time::Duration;

use bytes::Bytes;
use fontis::transfer::FileServer;
use fontis::{Accept, CODE_TOO_MANY, Connection, Endpoint, EndpointConfig, Identity, SendProgress};
use fontis_codes::Code;
use fontis_proto::dfcp::{CloseReason, Held, NO_ROOM, NOT_ASKED_FOR, ObjectShape, SendOptions};

fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// A server that serves an empty folder, and a client's connection to it.
async fn served(memory: u64) -> (Connection, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::generate();
    let server = endpoint(EndpointConfig {
        accept: Accept::Anyone,
        memory,
        ..EndpointConfig::new(*identity.secret())
    });
    let address = server.local_addr();
    tokio::spawn(FileServer::new(server, folder.path(), None).unwrap().run(|_| {}));
    let client = endpoint(EndpointConfig::new(*Identity::generate().secret()));
    let connection = client.connect(address, *identity.public().as_bytes(), None).await.unwrap();
    (connection, folder)
}

async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), work).await.expect("in time")
}

#[tokio::test]
async fn a_client_beyond_the_number_of_connections_is_told_so() {
    let identity = Identity::generate();
    let server = endpoint(EndpointConfig {
        accept: Accept::Anyone,
        connections: 8,
        ..EndpointConfig::new(*identity.secret())
    });
    let (address, key) = (server.local_addr(), *identity.public().as_bytes());
    let client = endpoint(EndpointConfig::new(*Identity::generate().secret()));
    let connect = || async { client.connect(address, key, None).await.unwrap() };
    // All come from one network, which may have a quarter.
    let kept = [connect().await, connect().await];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = connect().await;
    let reason = within(5, refused.closed()).await;
    assert!(matches!(reason, CloseReason::Peer { code: CODE_TOO_MANY, .. }), "{reason}");
    assert!(reason.to_string().contains("try again later"), "{reason}");
    assert!(kept.iter().all(|connection| connection.close_reason().is_none()));
    drop(kept);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let again = connect().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(again.close_reason(), None);
}

#[tokio::test]
async fn a_file_server_refuses_an_object_that_it_did_not_ask_for() {
    let (connection, _folder) = served(1 << 30).await;
    let shape = ObjectShape::partition(1 << 20, 1192, Code::RaptorQ);
    let (label, options) = (Bytes::from_static(b"mine"), SendOptions::default());
    let mut object = connection.send_object(shape, label, options, Held::default()).await.unwrap();
    let end = within(5, async {
        loop {
            match object.next().await {
                Some(SendProgress::Wanted(block)) => {
                    object.supply(block, vec![7; shape.block_len(block) as usize].into());
                }
                other => return other,
            }
        }
    });
    assert_eq!(end.await, Some(SendProgress::Abandoned(NOT_ASKED_FOR)));
}

#[tokio::test]
async fn objects_that_an_application_does_not_accept_do_not_pile_up() {
    let identity = Identity::generate();
    let server = endpoint(EndpointConfig {
        accept: Accept::Anyone,
        ..EndpointConfig::new(*identity.secret())
    });
    let client = endpoint(EndpointConfig::new(*Identity::generate().secret()));
    let key = *identity.public().as_bytes();
    let (connected, accepted) =
        tokio::join!(client.connect(server.local_addr(), key, None), server.accept(),);
    let (connection, _accepted) = (connected.unwrap(), accepted.unwrap());
    let shape = ObjectShape::partition(1 << 20, 1192, Code::RaptorQ);
    let open = || async {
        let (label, options) = (Bytes::from(vec![1; 1000]), SendOptions::default());
        connection.send_object(shape, label, options, Held::default()).await.unwrap()
    };
    // Each is there until it is given up, but the application does not accept it.
    for _ in 0..15 {
        let mut objects = Vec::new();
        for _ in 0..100 {
            objects.push(open().await);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        objects.into_iter().for_each(|object| object.abandon(1));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut last = open().await;
    let end = within(5, async {
        loop {
            match last.next().await {
                Some(SendProgress::Wanted(_)) => {}
                other => return other,
            }
        }
    });
    assert_eq!(end.await, Some(SendProgress::Abandoned(NO_ROOM)));
}
