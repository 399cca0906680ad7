//! An object that its receivers send on to each other.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fontis::transfer::{self, FileServer, Report, Sharing, TransferError};
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
use fontis_base::Rate;

/// The time without anybody.
const PATIENCE: Duration = Duration::from_secs(2);

fn endpoint(identity: &Identity, mbps: u64) -> Endpoint {
    let config =
        EndpointConfig { accept: Accept::Anyone, ..EndpointConfig::new(*identity.secret()) };
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    endpoint.limit(Some(Rate::from_mbps(mbps)));
    endpoint
}

fn content(blocks: usize) -> Vec<u8> {
    (0..blocks << 20).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// The first node: a server of a folder with a file of so many bytes, at a rate.
struct Origin {
    _folder: tempfile::TempDir,
    endpoint: Endpoint,
    url: Url,
}

impl Origin {
    fn new(content: &[u8], mbps: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), content).unwrap();
        let identity = Identity::generate();
        let endpoint = endpoint(&identity, mbps);
        let server = FileServer::new(endpoint.clone(), folder.path(), None).unwrap();
        tokio::spawn(server.run(|_| {}));
        let address = endpoint.local_addr();
        let url = format!("fontis://{address}/file?key={}", identity.public()).parse().unwrap();
        Self { _folder: folder, endpoint, url }
    }

    async fn sent(&self) -> u64 {
        let status = self.endpoint.status().await.unwrap();
        status.connections.iter().map(|one| one.stats.bytes_sent).sum()
    }
}

/// Fetches what `url` names at a rate.
async fn share(url: &Url, dest: &Path, mbps: u64) -> Result<(Report, Sharing), TransferError> {
    let endpoint = endpoint(&Identity::generate(), mbps);
    let remote = transfer::resolve(url).await.unwrap()[0];
    let (dest, options) = (Dest::new(dest), SinkOptions::default());
    transfer::share(&endpoint, remote, url, &dest, options, PATIENCE, |_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_send_on_what_they_have() {
    let (blocks, mbps, peers) = (10, 40, 6);
    let content = content(blocks);
    let origin = Arc::new(Origin::new(&content, mbps));
    let to = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let fetched = (0..peers).map(|number| {
        let (origin, dest) = (origin.clone(), to.path().join(number.to_string()));
        tokio::spawn(async move { share(&origin.url, &dest, mbps).await })
    });
    let mut shared = Vec::new();
    for peer in fetched.collect::<Vec<_>>() {
        let (report, sharing) = peer.await.unwrap().unwrap();
        assert_eq!(report.hash, blake3::hash(&content).to_hex().to_string());
        shared.push(sharing);
    }
    let last = begin.elapsed().as_secs_f64();
    for number in 0..peers {
        assert!(std::fs::read(to.path().join(number.to_string())).unwrap() == content);
    }
    let bound = content.len() as f64 * 8.0 / (mbps as f64 * 1e6);
    let sent = origin.sent().await as f64 / content.len() as f64;
    println!("{:.2} of the bound, the origin sent {sent:.2} of the file", last / bound);
    // The server alone would send six times as much; limits are divided among connections, so that
    // what one does not use is lost.
    assert!(last < 4.0 * bound && sent < 3.0, "{last} s, {sent}");
    let onward: u64 = shared.iter().map(Sharing::sent).sum();
    assert!(onward > 3 * content.len() as u64, "{onward} bytes were sent on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_may_leave_and_newcomers_come_to_those_who_stay() {
    let content = content(6);
    let origin = Origin::new(&content, 60);
    let to = tempfile::tempdir().unwrap();
    let (_, sharing) = share(&origin.url, &to.path().join("first"), 60).await.unwrap();
    origin.endpoint.farewell().await;
    // Its URL is the server's, at another address and with another key.
    let node = sharing.endpoint();
    let key = fontis::PublicKey::new(node.public_key()).unwrap();
    let address = node.local_addr();
    let (host, port) = (address.ip().to_string(), address.port());
    let url = Url { host, port, key, ..origin.url.clone() };
    let (report, _) = share(&url, &to.path().join("second"), 60).await.unwrap();
    assert_eq!(report.hash, blake3::hash(&content).to_hex().to_string());
    assert!(std::fs::read(to.path().join("second")).unwrap() == content);
    let third = to.path().join("third");
    let other = Url { path: Some("other".to_owned()), ..url.clone() };
    let error = share(&other, &third, 60).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("no such file"), "{error}");
    let gone = share(&origin.url, &third, 60);
    assert!(tokio::time::timeout(Duration::from_secs(1), gone).await.is_err(), "it has left");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_share_left_is_not_fetched_again() {
    let content = content(10);
    let origin = Origin::new(&content, 40);
    let to = tempfile::tempdir().unwrap();
    let dest = to.path().join("got");
    let first =
        tokio::time::timeout(Duration::from_millis(1500), share(&origin.url, &dest, 40)).await;
    assert!(first.is_err(), "it was too fast");
    // What it had begun to store may still be under way.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (report, _) = share(&origin.url, &dest, 40).await.unwrap();
    assert!(report.resumed >= 2 << 20, "{} are there", report.resumed);
    assert!(std::fs::read(dest).unwrap() == content);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_shared_too_and_who_is_left_alone_is_told() {
    let origin = Origin::new(&content(3), 60);
    let to = tempfile::tempdir().unwrap();
    let all = Url { path: None, ..origin.url.clone() };
    let (_, sharing) = share(&all, &to.path().join("all"), 60).await.unwrap();
    assert!(std::fs::read(to.path().join("all/file")).unwrap() == content(3));
    drop(sharing);
    let slow = Origin::new(&content(20), 4);
    let leaves = async {
        // Something has come when there is a partial file.
        while std::fs::read_dir(to.path()).unwrap().count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        slow.endpoint.farewell().await;
    };
    let dest = to.path().join("slow");
    let (fetched, ()) = tokio::join!(share(&slow.url, &dest, 60), leaves);
    let error = fetched.map(drop).unwrap_err().to_string();
    assert!(error.contains("nobody is left"), "{error}");
    let missing = Url { path: Some("missing".to_owned()), ..origin.url.clone() };
    let error = share(&missing, &dest, 60).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("no such file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_receivers_do_not_take_all_of_the_server() {
    let content = content(6);
    let origin = Arc::new(Origin::new(&content, 60));
    let to = tempfile::tempdir().unwrap();
    // All that the server sends at once goes to this one, which takes most of a minute for it.
    let (slow, dest) = (origin.clone(), to.path().join("slow"));
    let slow = tokio::spawn(async move { share(&slow.url, &dest, 1).await.map(drop) });
    while std::fs::read_dir(to.path()).unwrap().count() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begin = Instant::now();
    share(&origin.url, &to.path().join("fast"), 60).await.unwrap();
    println!("{:?} beside a slow one", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    slow.abort();
}
