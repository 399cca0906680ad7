//! Streams and messages between two real endpoints on loopback.

use std::net::UdpSocket;

use fontis::{Accept, Connection, Endpoint, EndpointConfig, Identity};
use fontis_proto::dfcp::SendOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

async fn pair() -> (Connection, Connection) {
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    let client = endpoint(&Identity::generate(), Accept::None);
    let (near, far) = tokio::join!(
        client.connect(server.local_addr(), *identity.public().as_bytes(), None),
        server.accept()
    );
    (near.unwrap(), far.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_carries_bytes_in_order_and_ends_where_it_was_ended() {
    let (near, far) = pair().await;
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i / 5) as u8).collect();
    let expected = data.clone();
    let writing = tokio::spawn(async move {
        let mut stream = near.open_stream(SendOptions::default()).await.unwrap();
        stream.write_all(&data).await.unwrap();
        stream.shutdown().await.unwrap();
        near
    });
    let mut stream = far.accept_stream().await.unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(read == expected);
    drop(writing.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_both_ways_and_a_close_is_told() {
    let (near, far) = pair().await;
    near.send_message("question", SendOptions::default());
    assert_eq!(far.recv_message().await.unwrap().data, "question");
    far.send_message(vec![7; 400_000], SendOptions::default());
    assert_eq!(near.recv_message().await.unwrap().data.len(), 400_000);
    near.close(9, "done");
    let reason = far.closed().await;
    assert_eq!(reason.to_string(), "closed by the peer (code 9: done)");
    assert!(far.recv_message().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_farewell_ends_when_the_peers_know() {
    let identity = Identity::generate();
    let key = *identity.public().as_bytes();
    let server = endpoint(&identity, Accept::Anyone);
    let client = endpoint(&Identity::generate(), Accept::None);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (near, far) = tokio::join!(client.connect(server.local_addr(), key, None), server.accept());
    let (near, far) = (near.unwrap(), far.unwrap());
    let unanswered = tokio::spawn({
        let client = client.clone();
        async move { client.connect(nobody, key, None).await }
    });
    let farewell = client.farewell();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert!(
        near.close_reason().is_none() && !unanswered.is_finished(),
        "only said, not waited for"
    );
    farewell.await;
    assert_eq!(far.close_reason().unwrap().to_string(), "closed by the peer (code 0)");
    assert!(near.close_reason().is_some());
    assert!(unanswered.await.unwrap().is_err());
    client.farewell().await;
}

#[tokio::test]
async fn a_qlog_tells_of_every_packet() {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    let config = EndpointConfig {
        qlog: Some(folder.path().to_owned()),
        ..EndpointConfig::new(*Identity::generate().secret())
    };
    let client = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let connection =
        client.connect(server.local_addr(), *identity.public().as_bytes(), None).await.unwrap();
    let stats = connection.stats().await.unwrap();
    connection.close(0, "");
    connection.closed().await;
    drop((connection, client));
    // The file is complete when the driver has let the connection go.
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut sent = 0;
    for _ in 0..100 {
        let text = std::fs::read_to_string(&file).unwrap();
        let records: Vec<serde_json::Value> =
            text.split('\x1e').filter_map(|record| serde_json::from_str(record).ok()).collect();
        sent = records.iter().filter(|record| record["name"] == "transport:packet_sent").count()
            as u64;
        if sent > stats.packets_sent {
            assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{sent} packets in the qlog, {} counted before the close", stats.packets_sent);
}

/// What measures the path follows the SYNACK (type 0x02); when that is lost, it waits for the next
/// one instead of being lost too.
#[tokio::test]
async fn what_comes_before_the_synack_is_not_lost() {
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    let between = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (near_side, far_side) = (between.local_addr().unwrap(), server.local_addr());
    // It ends with the process.
    std::thread::spawn(move || {
        let (mut buffer, mut client, mut synacks) = (vec![0; 1 << 16], None, 0);
        loop {
            let (length, from) = between.recv_from(&mut buffer).unwrap();
            if from != far_side {
                client = Some(from);
                between.send_to(&buffer[..length], far_side).unwrap();
                continue;
            }
            let is_synack = buffer[0] == 0x02;
            synacks += u32::from(is_synack);
            // The first is lost, and nothing comes after the second.
            if matches!((synacks, is_synack), (1, false) | (2, true)) {
                between.send_to(&buffer[..length], client.unwrap()).unwrap();
            }
        }
    });
    let client = endpoint(&Identity::generate(), Accept::None);
    let connection = client.connect(near_side, *identity.public().as_bytes(), None).await.unwrap();
    let stats = connection.stats().await.unwrap();
    assert_eq!(stats.packets_received, 4, "{stats:?}");
}
