//! Connections over several addresses of this machine, each a path of its own.

use std::net::SocketAddr;
use std::time::Duration;

use fontis::transfer::{self, FileServer};
use fontis::{
    Accept, Dest, Endpoint, EndpointConfig, Identity, LocalInterface, PathStatus, SinkOptions, Url,
};

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

fn url(address: SocketAddr, path: &str, identity: &Identity) -> Url {
    format!("fontis://{address}/{path}?key={}", identity.public()).parse().unwrap()
}

/// Addresses of the loopback interface, which all reach each other.
fn interfaces(last: impl IntoIterator<Item = u8>) -> Vec<LocalInterface> {
    let on = |last| LocalInterface {
        name: "lo".to_owned(),
        address: [127, 0, 0, last].into(),
        spare: false,
    };
    last.into_iter().map(on).collect()
}

async fn paths(endpoint: &Endpoint) -> Vec<PathStatus> {
    let status = endpoint.status().await.unwrap();
    status.connections.first().map(|connection| connection.paths.clone()).unwrap_or_default()
}

/// Fetches a file of so many bytes at a tenth of a gigabit per second; `during` runs beside it.
async fn fetch<T>(bytes: usize, during: impl AsyncFnOnce(&Endpoint, &Endpoint) -> T) -> T {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let content: Vec<u8> = (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect();
    std::fs::write(from.path().join("file"), &content).unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    server.limit(Some(fontis_base::Rate::from_mbps(100)));
    let running =
        tokio::spawn(FileServer::new(server.clone(), from.path(), None).unwrap().run(|_| {}));
    let client = endpoint(&Identity::generate(), Accept::None);
    let (address, dest) = (server.local_addr(), Dest::new(to.path()));
    let url = url(address, "file", &identity);
    let get = transfer::get(&client, address, &url, &dest, SinkOptions::default(), |_| {});
    let (report, seen) = tokio::join!(get, during(&client, &server));
    report.unwrap();
    assert!(std::fs::read(to.path().join("file")).unwrap() == content);
    running.abort();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_over_all_paths_and_each_side_tells_them() {
    let (ours, theirs) = fetch(20_000_000, async |client, server| {
        client.use_interfaces(interfaces([2, 3]));
        tokio::time::sleep(Duration::from_millis(1000)).await;
        (paths(client).await, paths(server).await)
    })
    .await;
    let mut names: Vec<_> = ours.iter().map(|path| path.interface.clone()).collect();
    names.sort();
    let mut expected = vec![None];
    expected.extend(interfaces([2, 3]).into_iter().map(Some));
    assert_eq!(names, expected);
    assert_eq!(theirs.len(), 3, "{theirs:?}");
    for path in &theirs {
        assert!(path.stats.bytes_sent > 500_000, "{theirs:#?}");
    }
    let mut from: Vec<_> = theirs.iter().map(|path| path.remote.ip().to_string()).collect();
    from.sort();
    assert_eq!(from, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn interfaces_come_and_go_while_a_file_is_fetched() {
    let seen = fetch(20_000_000, async |client, server| {
        let mut seen = Vec::new();
        for list in [&[2][..], &[], &[2, 3], &[4]] {
            client.use_interfaces(interfaces(list.iter().copied()));
            tokio::time::sleep(Duration::from_millis(250)).await;
            seen.push((paths(client).await.len(), paths(server).await.len()));
        }
        seen
    })
    .await;
    assert_eq!(seen, [(2, 2), (1, 1), (3, 3), (2, 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_does_not_exist_is_left_out() {
    let seen = fetch(2_000_000, async |client, _| {
        let absent = LocalInterface {
            name: "none0".to_owned(),
            address: [127, 0, 0, 9].into(),
            spare: false,
        };
        client.use_interfaces([absent].into_iter().chain(interfaces([2])).collect());
        tokio::time::sleep(Duration::from_millis(100)).await;
        paths(client).await.len()
    })
    .await;
    assert_eq!(seen, 2);
}
