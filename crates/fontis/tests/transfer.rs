//! Files and folders between two real endpoints on loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fontis::transfer::{self, FileServer, Receiver, ServerEvent, TransferError};
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, Secret, SinkOptions, Url};

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
        let files = FileServer::new(server.clone(), from.path()).unwrap();
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
    tokio::spawn(FileServer::new(server.clone(), from.path()).unwrap().run(|_| {}));
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

/// A served file whose content somebody changes while it is fetched, and sets its time back: what comes of fetching it after
/// `before` fetches of the file as it was.
async fn tampered(before: usize) -> (TransferError, SocketAddr, Identity) {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let identity = Identity::generate();
    let server = endpoint("127.0.0.1:0", &identity, Accept::Anyone);
    tokio::spawn(FileServer::new(server.clone(), from.path()).unwrap().run(|_| {}));
    let path = from.path().join("x.bin");
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    let write = |content: Vec<u8>| {
        std::fs::write(&path, content).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    };
    write(pattern(8_000_000));
    // Until then the server hashes again what it reads.
    tokio::time::sleep(std::time::Duration::from_millis(3500)).await;
    for i in 0..before {
        let to = to.path().join(format!("before {i}"));
        let report = get(&server, &identity, "x.bin", &to).await.unwrap();
        assert_eq!(report.hash, blake3::hash(&pattern(8_000_000)).to_hex().to_string());
        assert_eq!(std::fs::read(to).unwrap(), pattern(8_000_000));
    }
    server.limit(Some(fontis_base::Rate::from_mbps(32)));
    let tamper = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        // A byte of the last block, with the size and the time that it had: reading it, the server does not see it.
        let mut content = pattern(8_000_000);
        content[7_500_000] ^= 1;
        write(content);
    };
    let (error, ()) = tokio::join!(get(&server, &identity, "x.bin", to.path()), tamper);
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
    let error = client.connect(address, other, None).await.err().unwrap();
    assert_eq!(error, fontis::ConnectError::WrongKey(address));
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
    let identity = Identity::generate();
    let server = endpoint("127.0.0.1:0", &identity, Accept::Anyone);
    let secret = Secret::generate();
    let receiver = Receiver::new(server.clone(), to.path(), secret.clone(), false).unwrap();
    tokio::spawn(receiver.run(|_| {}));
    let client = endpoint("127.0.0.1:0", &Identity::generate(), Accept::None);
    let mut url = url(server.local_addr(), "", &identity);
    url.secret = Some(Secret::generate());
    let paths = [folder.clone()];
    let error =
        transfer::send(&client, server.local_addr(), &url, &paths, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("secret"), "{error}");
    url.secret = Some(secret);
    transfer::send(&client, server.local_addr(), &url, &paths, |_| {}).await.unwrap();
    assert_eq!(std::fs::read_to_string(to.path().join("folder/a.txt")).unwrap(), "hello");
    assert_eq!(std::fs::read(to.path().join("folder/sub/b.bin")).unwrap(), pattern(3_000_000));
    let error =
        transfer::send(&client, server.local_addr(), &url, &paths, |_| {}).await.unwrap_err();
    assert!(matches!(error, TransferError::Refused { .. }), "what exists is not replaced: {error}");
}
