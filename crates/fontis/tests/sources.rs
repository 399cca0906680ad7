//! One object from several servers at once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fontis::transfer::{self, FileServer, Progress, Report, SourceServer, TransferError};
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
use fontis_base::Rate;
use tokio::task::JoinHandle;

/// The time for a server to answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// A server of a folder with a file of so many bytes, at a rate.
struct Mirror {
    _folder: tempfile::TempDir,
    endpoint: Endpoint,
    identity: Identity,
    running: JoinHandle<()>,
}

impl Mirror {
    fn new(content: &[u8], mbps: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), content).unwrap();
        let identity = Identity::generate();
        let endpoint = endpoint(&identity, Accept::Anyone);
        endpoint.limit(Some(Rate::from_mbps(mbps)));
        let server = FileServer::new(endpoint.clone(), folder.path(), None).unwrap();
        let running = tokio::spawn(server.run(|_| {}));
        Self { _folder: folder, endpoint, identity, running }
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    fn url(&self, path: &str) -> Url {
        format!("fontis://{}/{path}?key={}", self.address(), self.identity.public())
            .parse()
            .unwrap()
    }

    /// Goes away without a word but the end of its connections.
    async fn stop(&self) {
        self.running.abort();
        self.endpoint.farewell().await;
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Fetches the file from all; also who was dropped and why.
async fn get(
    mirrors: &[&Mirror],
    dest: &Path,
) -> (Result<Report, TransferError>, Vec<(SocketAddr, String)>) {
    let servers = mirrors.iter().map(|mirror| SourceServer {
        endpoint: endpoint(&Identity::generate(), Accept::None),
        remote: mirror.address(),
        url: mirror.url("file"),
    });
    let dropped = Mutex::new(Vec::new());
    let see = |progress| {
        if let Progress::Dropped { remote, error } = progress {
            dropped.lock().unwrap().push((remote, error));
        }
    };
    let options = SinkOptions::default();
    let got = transfer::get_from(servers.collect(), &Dest::new(dest), options, PATIENCE, see).await;
    (got, dropped.into_inner().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_of_servers_add_up_and_hardly_anything_comes_twice() {
    let bytes = 30_000_000;
    let content = content(bytes);
    let mirrors = [(); 4].map(|()| Mirror::new(&content, 20));
    let mut shares = Vec::new();
    // Other tests take a part of the processors: one run in three must show it.
    for _ in 0..3 {
        let to = tempfile::tempdir().unwrap();
        let (report, dropped) = get(&mirrors.each_ref(), to.path()).await;
        let report = report.unwrap();
        assert!(dropped.is_empty(), "{dropped:?}");
        assert!(std::fs::read(to.path().join("file")).unwrap() == content);
        assert_eq!(report.hash, blake3::hash(&content).to_hex().to_string());
        // 80 Mbit/s with headers.
        let share = bytes as f64 * 8.0 / 80e6 * 1500.0 / 1472.0 / report.duration.as_secs_f64();
        let received = report.stats.bytes_received as f64 / bytes as f64;
        println!("{share:.3} of the sum, {received:.3} times the bytes came");
        assert!((1.0..1.2).contains(&received), "{received}");
        shares.push(share);
        if share > 0.5 {
            return;
        }
    }
    panic!("the rates do not add up: {shares:?} of the sum");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_ends_when_the_last_blocks_are_on_the_disk() {
    // The servers are done at nearly the same moment, over and over.
    let content = content(3 * 1_048_576);
    let mirrors = [(); 3].map(|()| Mirror::new(&content, 2000));
    for round in 0..30 {
        let to = tempfile::tempdir().unwrap();
        let (report, _) = get(&mirrors.each_ref(), to.path()).await;
        report.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(std::fs::read(to.path().join("file")).unwrap() == content, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_go_are_made_up_for() {
    let content = content(12_000_000);
    let mirrors = [(); 4].map(|()| Mirror::new(&content, 20));
    let to = tempfile::tempdir().unwrap();
    let stops = async {
        for (mirror, after) in mirrors[1..].iter().zip([400, 200, 300]) {
            tokio::time::sleep(Duration::from_millis(after)).await;
            mirror.stop().await;
        }
    };
    let all = mirrors.each_ref();
    let ((report, dropped), ()) = tokio::join!(get(&all, to.path()), stops);
    report.unwrap();
    assert!(std::fs::read(to.path().join("file")).unwrap() == content);
    let gone: BTreeSet<_> = dropped.iter().map(|(remote, _)| *remote).collect();
    assert_eq!(gone, mirrors[1..].iter().map(Mirror::address).collect(), "{dropped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_other_content_is_named_and_dropped() {
    let content = content(8_000_000);
    let mut other = content.clone();
    other[5_000_000] ^= 1;
    let honest = [(); 2].map(|()| Mirror::new(&content, 50));
    let liar = Mirror::new(&other, 50);
    let to = tempfile::tempdir().unwrap();
    // Who answers first decides which content is meant, and the others are dropped.
    let (report, dropped) = get(&[&honest[0], &honest[1], &liar], to.path()).await;
    match report {
        Ok(report) if report.hash == blake3::hash(&content).to_hex().to_string() => {
            assert_eq!(dropped.len(), 1, "{dropped:?}");
            assert_eq!(dropped[0].0, liar.address());
            assert!(dropped[0].1.contains("another content"), "{dropped:?}");
        }
        Ok(_) => assert_eq!(dropped.len(), 2, "{dropped:?}"),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_wrong_blocks_is_named_and_the_others_send_them() {
    let content = content(9_000_000);
    let honest = Mirror::new(&content, 30);
    let liar = Mirror::new(&content, 30);
    // It has hashed the file, and sends another of the same size and time.
    let first = tempfile::tempdir().unwrap();
    get(&[&liar], first.path()).await.0.unwrap();
    let path = liar._folder.path().join("file");
    let times = std::fs::metadata(&path).unwrap().modified().unwrap();
    let to = tempfile::tempdir().unwrap();
    let mut wrong = content.clone();
    wrong.iter_mut().for_each(|byte| *byte ^= 1);
    let begun = async {
        // Once the transfer has begun the content is another.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &wrong, 0).unwrap();
        file.set_modified(times).unwrap();
    };
    let all = [&honest, &liar];
    let ((report, dropped), ()) = tokio::join!(get(&all, to.path()), begun);
    report.unwrap();
    assert!(std::fs::read(to.path().join("file")).unwrap() == content);
    assert_eq!(dropped.len(), 1, "{dropped:?}");
    assert_eq!(dropped[0].0, liar.address());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_transfer_left_is_not_fetched_again() {
    let content = content(12_000_000);
    let mirrors = [(); 2].map(|()| Mirror::new(&content, 30));
    let to = tempfile::tempdir().unwrap();
    let all = mirrors.each_ref();
    let first = tokio::time::timeout(Duration::from_millis(1000), get(&all, to.path())).await;
    assert!(first.is_err(), "it was too fast");
    let begin = Instant::now();
    let report = get(&all, to.path()).await.0.unwrap();
    assert!(report.resumed > 2_000_000, "{} are there", report.resumed);
    assert!(std::fs::read(to.path().join("file")).unwrap() == content);
    println!("{} were there, the rest took {:?}", report.resumed, begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_comes_from_several_servers_too_and_none_left_is_an_error() {
    let mirrors = [(); 2].map(|()| Mirror::new(&content(3_000_000), 50));
    let to = tempfile::tempdir().unwrap();
    let servers = mirrors.iter().map(|mirror| SourceServer {
        endpoint: endpoint(&Identity::generate(), Accept::None),
        remote: mirror.address(),
        url: mirror.url(""),
    });
    let dest = Dest::new(to.path().join("all"));
    let options = SinkOptions::default();
    transfer::get_from(servers.collect(), &dest, options.clone(), PATIENCE, |_| {}).await.unwrap();
    assert!(std::fs::read(to.path().join("all/file")).unwrap() == content(3_000_000));
    let missing = mirrors.iter().map(|mirror| SourceServer {
        endpoint: endpoint(&Identity::generate(), Accept::None),
        remote: mirror.address(),
        url: mirror.url("missing"),
    });
    let error =
        transfer::get_from(missing.collect(), &dest, options, PATIENCE, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("no such file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_less_than_a_server_that_may_be_back() {
    let mirror = Mirror::new(&content(1000), 50);
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = nobody.local_addr().unwrap();
    let source = |remote, url| SourceServer {
        endpoint: endpoint(&Identity::generate(), Accept::None),
        remote,
        url,
    };
    let servers = || {
        let missing = source(mirror.address(), mirror.url("missing"));
        [missing, source(silent, mirror.url("missing"))]
    };
    let get = async |servers: Vec<SourceServer>| {
        let to = tempfile::tempdir().unwrap();
        let (dest, patience) = (Dest::new(to.path()), Duration::from_secs(1));
        let options = SinkOptions::default();
        transfer::get_from(servers, &dest, options, patience, |_| {}).await.unwrap_err()
    };
    let error = get(servers().into()).await;
    assert!(error.may_pass() && error.to_string().contains("no answer"), "{error}");
    let [missing, _] = servers();
    let error = get(vec![missing]).await;
    assert!(!error.may_pass() && error.to_string().contains("no such file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_side_cannot_store_is_no_servers_fault() {
    let content = content(3_000_000);
    let mirrors = [(); 3].map(|()| Mirror::new(&content, 50));
    let to = tempfile::tempdir().unwrap();
    std::fs::write(to.path().join("file"), "there").unwrap();
    let (report, dropped) = get(&mirrors.each_ref(), to.path()).await;
    let error = report.unwrap_err();
    assert!(matches!(error, TransferError::Sink(_)), "{error}");
    assert!(dropped.is_empty(), "{dropped:?}");
    assert_eq!(std::fs::read(to.path().join("file")).unwrap(), b"there");
}
