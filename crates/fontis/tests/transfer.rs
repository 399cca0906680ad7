//! Files and folders between two real endpoints on loopback.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fontis::transfer::{
    self, ENTRY_COST, FileServer, InboxOptions, Progress, Receiver, ServerEvent, TransferError,
};
use fontis::{
    Accept, Dest, Endpoint, EndpointConfig, Identity, Secret, SinkOptions, SourceError,
    SourceOptions, Url,
};

fn endpoint(address: &str, identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind(address.parse().unwrap(), config).unwrap()
}

fn url(address: SocketAddr, path: &str, identity: &Identity) -> Url {
    format!("fontis://{address}/{path}?key={}", identity.public()).parse().unwrap()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

async fn get(
    server: &Endpoint,
    identity: &Identity,
    path: &str,
    dest: &Path,
) -> Result<transfer::Report, TransferError> {
    let address = server.local_addr();
    let any = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let client = endpoint(any, &Identity::generate(), Accept::None);
    let url = url(address, path, identity);
    transfer::get(&client, address, &url, &Dest::new(dest), SinkOptions::default(), |_| {}).await
}

#[tokio::test]
async fn files_of_every_size_arrive_as_they_were() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let from = tempfile::tempdir().unwrap();
        let to = tempfile::tempdir().unwrap();
        let identity = Identity::generate();
        let server = endpoint(address, &identity, Accept::Anyone);
        let files = FileServer::new(server.clone(), from.path(), None).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = events.clone();
        let running = tokio::spawn(files.run(move |event| seen.lock().unwrap().push(event)));
        for len in [0, 1, 1191, 1192, 1193, 100_000, 1 << 20, (1 << 20) + 1, 5_000_000] {
            let name = format!("file {len}.bin");
            std::fs::write(from.path().join(&name), pattern(len)).unwrap();
            let report =
                get(&server, &identity, &name.replace(' ', "%20"), to.path()).await.unwrap();
            assert_eq!(report.hash, blake3::hash(&pattern(len)).to_hex().to_string());
            assert_eq!(std::fs::read(to.path().join(&name)).unwrap(), pattern(len));
        }
        running.abort();
        let events = events.lock().unwrap();
        let finished =
            events.iter().filter(|event| matches!(event, ServerEvent::Finished { .. })).count();
        assert!(finished >= 8, "the server learns of success: {events:?}");
    }
}

#[tokio::test]
async fn what_is_not_served_is_refused_with_the_servers_words() {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let identity = Identity::generate();
    let server = endpoint("127.0.0.1:0", &identity, Accept::Anyone);
    tokio::spawn(FileServer::new(server.clone(), from.path(), None).unwrap().run(|_| {}));
    for path in ["missing.bin", "../etc/passwd", "%2e%2e/etc/passwd"] {
        let parsed: Result<Url, _> =
            format!("fontis://{}/{path}?key={}", server.local_addr(), identity.public()).parse();
        if parsed.is_err() {
            continue;
        }
        let error = get(&server, &identity, path, to.path()).await.unwrap_err();
        assert!(matches!(error, TransferError::Refused { .. }), "{path}: {error}");
    }
    assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
}

fn write_in_the_past(path: &Path, content: &[u8]) {
    let past = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::write(path, content).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
}

/// A file of 8 MB in the folder `from` that has been at rest for some time: until then it may
/// change without a trace, is hashed before it is sent, and what is read of it is hashed again.
async fn at_rest(from: &Path) -> PathBuf {
    let path = from.join("x.bin");
    write_in_the_past(&path, &pattern(8_000_000));
    tokio::time::sleep(Duration::from_millis(3500)).await;
    path
}

/// Changes a byte of the last block of a file of 8 MB soon, and leaves its size and time of
/// modification: who reads it does not see it.
async fn tamper(path: &Path) {
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut content = pattern(8_000_000);
    content[7_500_000] ^= 1;
    write_in_the_past(path, &content);
}

/// A served file whose content somebody changes while it is fetched, and sets its time back: what
/// comes of fetching it after `before` fetches of the file as it was.
async fn tampered(before: usize) -> (TransferError, SocketAddr, Identity) {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let identity = Identity::generate();
    let server = endpoint("127.0.0.1:0", &identity, Accept::Anyone);
    tokio::spawn(FileServer::new(server.clone(), from.path(), None).unwrap().run(|_| {}));
    let path = at_rest(from.path()).await;
    for i in 0..before {
        let to = to.path().join(format!("before {i}"));
        let report = get(&server, &identity, "x.bin", &to).await.unwrap();
        assert_eq!(report.hash, blake3::hash(&pattern(8_000_000)).to_hex().to_string());
        assert_eq!(std::fs::read(to).unwrap(), pattern(8_000_000));
    }
    server.limit(Some(fontis_base::Rate::from_mbps(32)));
    let (error, ()) = tokio::join!(get(&server, &identity, "x.bin", to.path()), tamper(&path));
    assert!(!to.path().join("x.bin").exists());
    (error.unwrap_err(), server.local_addr(), identity)
}

#[tokio::test]
async fn who_sends_other_content_than_it_promised_is_named() {
    // The server hashed the file when it sent it for the first time, and promises that.
    let (error, address, identity) = tampered(1).await;
    let TransferError::Poisoned { remote, key, block } = &error else { panic!("{error}") };
    assert_eq!((*remote, *block), (address, 7));
    assert_eq!(*key, identity.public().to_string());
}

#[tokio::test]
async fn what_changes_while_it_is_hashed_and_sent_is_given_up_not_mixed() {
    let (error, address, _) = tampered(0).await;
    let TransferError::Abandoned { remote } = &error else { panic!("{error}") };
    assert_eq!(*remote, address);
}

#[tokio::test]
async fn a_wrong_key_and_a_refused_key_say_so() {
    let identity = Identity::generate();
    let friend = Identity::generate();
    let server =
        endpoint("127.0.0.1:0", &identity, Accept::Keys(vec![*friend.public().as_bytes()]));
    let client = endpoint("127.0.0.1:0", &Identity::generate(), Accept::None);
    let address = server.local_addr();
    let other = *Identity::generate().public().as_bytes();
    let (doubts, doubted) = tokio::sync::oneshot::channel();
    tokio::select! {
        connected = client.connect_doubting(address, other, None, doubts) => {
            panic!("{:?}", connected.err());
        }
        told = doubted => told.unwrap(),
    }
    let error = client.connect(address, *identity.public().as_bytes(), None).await.err();
    // A refusal follows the handshake: it shows as the end of the connection or of the attempt.
    if let Some(error) = error {
        assert_eq!(error, fontis::ConnectError::RefusedKey(address));
    }
    let friendly = endpoint("127.0.0.1:0", &friend, Accept::None);
    friendly.connect(address, *identity.public().as_bytes(), None).await.unwrap();
}

#[tokio::test]
async fn what_is_sent_with_the_secret_is_stored_and_without_it_is_not() {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let folder = from.path().join("folder");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(folder.join("a.txt"), "hello").unwrap();
    std::fs::write(folder.join("sub/b.bin"), pattern(3_000_000)).unwrap();
    let (server, mut url) = receiver(to.path());
    let client = endpoint("127.0.0.1:0", &Identity::generate(), Accept::None);
    let secret = url.secret.replace(Secret::generate());
    let paths = [folder.clone()];
    let error = transfer::send(
        &client,
        server.local_addr(),
        &url,
        &paths,
        &SourceOptions::default(),
        |_| {},
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("secret"), "{error}");
    url.secret = secret;
    transfer::send(&client, server.local_addr(), &url, &paths, &SourceOptions::default(), |_| {})
        .await
        .unwrap();
    assert_eq!(std::fs::read_to_string(to.path().join("folder/a.txt")).unwrap(), "hello");
    assert_eq!(std::fs::read(to.path().join("folder/sub/b.bin")).unwrap(), pattern(3_000_000));
    let error = transfer::send(
        &client,
        server.local_addr(),
        &url,
        &paths,
        &SourceOptions::default(),
        |_| {},
    )
    .await
    .unwrap_err();
    assert!(matches!(error, TransferError::Refused { .. }), "what exists is not replaced: {error}");
}

#[tokio::test]
async fn an_inbox_refuses_hidden_names_and_more_than_its_limit_unless_told_otherwise() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| from.path().join(name);
    for (name, len) in [(".profile", 10), ("one", 6_000), ("two", 5_000)] {
        std::fs::write(path(name), pattern(len)).unwrap();
    }
    std::fs::create_dir_all(path("folder/.git")).unwrap();
    let client = endpoint("127.0.0.1:0", &Identity::generate(), Accept::None);
    let limit = |max_size| InboxOptions { max_size: Some(max_size), ..InboxOptions::default() };
    let send = async |options: InboxOptions, names: &[&str]| {
        let (server, url) = receiver_with(to.path(), options);
        let paths: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
        transfer::send(
            &client,
            server.local_addr(),
            &url,
            &paths,
            &SourceOptions::default(),
            |_| {},
        )
        .await
    };
    let said = send(InboxOptions::default(), &[".profile"]).await.unwrap_err().to_string();
    assert!(said.contains("hidden name") && !to.path().join(".profile").exists(), "{said}");
    // Only the first component could be a program's configuration.
    send(InboxOptions::default(), &["folder"]).await.unwrap();
    let hidden = InboxOptions { hidden: true, ..InboxOptions::default() };
    send(hidden, &[".profile"]).await.unwrap();
    let said = send(limit(5_999 + ENTRY_COST), &["one"]).await.unwrap_err().to_string();
    assert!(said.contains("--max-size") && !to.path().join("one").exists(), "{said}");
    // The limit is for all objects together.
    send(limit(10_999 + 2 * ENTRY_COST), &["one", "two"]).await.unwrap_err();
    assert!(to.path().join("one").exists() && !to.path().join("two").exists());
    send(limit(5_000 + ENTRY_COST), &["two"]).await.unwrap();
}

/// A receiver into `to`: its endpoint, and the URL that it would print.
fn receiver(to: &Path) -> (Endpoint, Url) {
    receiver_with(to, InboxOptions::default())
}

fn receiver_with(to: &Path, options: InboxOptions) -> (Endpoint, Url) {
    let (identity, secret) = (Identity::generate(), Secret::generate());
    let server = endpoint("127.0.0.1:0", &identity, Accept::Anyone);
    let receiver = Receiver::new(server.clone(), to, secret.clone(), options).unwrap();
    tokio::spawn(receiver.run(|_| {}));
    let mut url = url(server.local_addr(), "", &identity);
    url.secret = Some(secret);
    (server, url)
}

#[tokio::test]
async fn what_changes_while_it_is_hashed_and_sent_to_a_receiver_is_given_up_too() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = at_rest(from.path()).await;
    let (server, url) = receiver(to.path());
    let client = endpoint("127.0.0.1:0", &Identity::generate(), Accept::None);
    client.limit(Some(fontis_base::Rate::from_mbps(32)));
    let paths = [path.clone()];
    let (address, all) = (server.local_addr(), SourceOptions::default());
    let sending = transfer::send(&client, address, &url, &paths, &all, |_| {});
    // Hashed before, all of it but the last block would be what was promised, and the receiver
    // would name the sender.
    let (sent, ()) = tokio::join!(sending, tamper(&path));
    let error = sent.unwrap_err();
    assert!(matches!(error, TransferError::Source(SourceError::Changed { .. })), "{error}");
    assert!(!to.path().join("x.bin").exists());
}

#[tokio::test]
async fn what_was_sent_before_it_was_hashed_goes_on_where_it_stopped() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = at_rest(from.path()).await;
    let (server, url) = receiver(to.path());
    let (address, identity, paths) = (server.local_addr(), Identity::generate(), [path]);
    let stored = || {
        let entries = std::fs::read_dir(to.path()).unwrap().flatten();
        entries.map(|entry| entry.metadata().map_or(0, |found| found.blocks() * 512)).sum::<u64>()
    };
    let some_is_stored = async {
        while stored() < 3_000_000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let client = endpoint("127.0.0.1:0", &identity, Accept::None);
    client.limit(Some(fontis_base::Rate::from_mbps(32)));
    let all = SourceOptions::default();
    tokio::select! {
        sent = transfer::send(&client, address, &url, &paths, &all, |_| {}) => panic!("{sent:?}"),
        () = some_is_stored => {}
    }
    drop(client);
    let client = endpoint("127.0.0.1:0", &identity, Accept::None);
    let reports = Mutex::new(Vec::new());
    let progress = |event| {
        if let Progress::Stored(report) = event {
            reports.lock().unwrap().push(report);
        }
    };
    transfer::send(&client, address, &url, &paths, &all, progress).await.unwrap();
    let reports = reports.into_inner().unwrap();
    assert!(reports[0].resumed >= 1 << 20, "{} bytes", reports[0].resumed);
    assert_eq!(reports[0].hash, blake3::hash(&pattern(8_000_000)).to_hex().to_string());
    assert_eq!(std::fs::read(to.path().join("x.bin")).unwrap(), pattern(8_000_000));
}
