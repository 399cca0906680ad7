//! What requests cost that nobody has confirmed, and those that do not go on. Alone in its process:
//! it counts the process's descriptors and the bytes that it reads.

#![cfg(target_os = "linux")]

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use fontis::transfer::{self, FileServer, ServerEvent};
use fontis::{Accept, Connection, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
use fontis_proto::dfcp::SendOptions;
use support::recorded;
use tokio::sync::{Mutex, mpsc};

mod support;

/// Tests run one after another: each counts for the process.
static ALONE: Mutex<()> = Mutex::const_new(());

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// The request for `path`, as postcard encodes it.
fn get(id: u8, path: &str, resume: bool) -> Vec<u8> {
    // No secret.
    [&[0, id, 0, path.len() as u8], path.as_bytes(), &[u8::from(resume)]].concat()
}

/// Open descriptors of this process, and the bytes that it has read.
fn cost() -> (usize, u64) {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    (std::fs::read_dir("/proc/self/fd").unwrap().count(), read.parse().unwrap())
}

/// A server of `folder`, and the failures that it reports.
fn serve(identity: &Identity, folder: &Path) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let server = endpoint(identity, Accept::Anyone);
    let address = server.local_addr();
    let (say, failures) = mpsc::unbounded_channel();
    let files =
        FileServer::new(server, folder, None).unwrap().with_patience(Duration::from_secs(1));
    let say = StdMutex::new(say);
    tokio::spawn(files.run(move |event| {
        if let ServerEvent::Failed { error, .. } = event {
            let _ = say.lock().unwrap().send(error);
        }
    }));
    (address, failures)
}

async fn connect(server: SocketAddr, identity: &Identity) -> (Connection, Endpoint) {
    let client = endpoint(&Identity::generate(), Accept::None);
    (client.connect(server, *identity.public().as_bytes(), None).await.unwrap(), client)
}

const SIZE: usize = 32 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_nobody_confirms_read_nothing_and_hold_no_descriptors() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![7; SIZE]).unwrap();
    let identity = Identity::generate();
    let (address, _failures) = serve(&identity, folder.path());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = cost();
    // Each is a stranger's, or was recorded and is sent again.
    for number in 0..60_u64 {
        let request = get(0, "file", number % 2 == 0);
        let syn = recorded(&identity, number.to_be_bytes(), Some(&request));
        socket.send_to(&syn, address).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = cost();
    let (held, read) = (after.0.saturating_sub(before.0), after.1 - before.1);
    println!("60 early requests: {held} descriptors, {read} bytes read");
    assert!(held < 5, "{held} descriptors");
    assert!(read < 1 << 20, "{read} bytes read");

    // Whoever confirms is served.
    let url: Url = format!("fontis://{address}/file?key={}", identity.public()).parse().unwrap();
    let client = endpoint(&Identity::generate(), Accept::None);
    let dest = Dest::new(folder.path().join("copy"));
    let options = SinkOptions::default();
    let fetched = transfer::get(&client, address, &url, &dest, options, |_| {}).await.unwrap();
    assert_eq!(fetched.bytes, SIZE as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_go_on_is_given_up() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![7; 100_000]).unwrap();
    let identity = Identity::generate();
    let (address, mut failures) = serve(&identity, folder.path());
    let (connection, _client) = connect(address, &identity).await;
    let before = cost().0;
    for id in 0..20 {
        connection.send_message(get(id, "file", true), SendOptions::default());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = cost().0.saturating_sub(before);
    assert!(held >= 10, "{held} descriptors: the requests are waiting");
    for _ in 0..20 {
        let failure = tokio::time::timeout(Duration::from_secs(5), failures.recv()).await;
        let failure = failure.expect("the server has patience without end").unwrap();
        assert!(failure.contains("took nothing for too long"), "{failure}");
    }
    assert!(cost().0.saturating_sub(before) < 5, "descriptors are closed");
    assert_eq!(connection.close_reason(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_so_many_requests_at_once_and_is_told_so() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![7; 100_000]).unwrap();
    let identity = Identity::generate();
    let (address, _failures) = serve(&identity, folder.path());
    let (connection, _client) = connect(address, &identity).await;
    let requests = 100;
    for id in 0..requests {
        connection.send_message(get(id, "file", true), SendOptions::default());
    }
    let (mut offered, mut refused) = (0, 0);
    while offered + refused < u32::from(requests) {
        let answer = tokio::time::timeout(Duration::from_secs(5), connection.recv_message()).await;
        match answer.expect("an answer to each").unwrap().data[..] {
            [0, ..] => offered += 1,
            [6, ..] => refused += 1,
            ref other => panic!("{other:?}"),
        }
    }
    println!("{offered} offered, {refused} refused");
    // Those that are given up meanwhile make room.
    assert!((64..80).contains(&offered), "{offered} offered");
}
