//! What many idle connections cost an endpoint whose socket is busy. Alone in its process: it reads
//! the processor time of a thread.

#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fontis::{Accept, Connection, Endpoint, EndpointConfig, Identity};

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config =
        EndpointConfig { accept, connections: 1 << 14, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// The threads that move packets, in the order in which they began.
fn threads() -> Vec<PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let mut tasks: Vec<_> = tasks
        .filter(|task| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "fontis-udp\n")
        })
        .collect();
    tasks.sort_by_key(|task| task.file_name().unwrap().to_str().unwrap().parse::<u32>().unwrap());
    tasks
}

/// The processor time of a thread so far.
fn time(thread: &std::path::Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// The processor time that the server's thread takes for a second of forged resets, a few thousand
/// one after another.
fn busy(server: &Endpoint, thread: &std::path::Path) -> Duration {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = time(thread);
    let begin = Instant::now();
    for number in 0..4000_u64 {
        let mut reset = [4; 25];
        reset[9..17].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&reset, server.local_addr()).unwrap();
        let due = begin + Duration::from_micros(250 * (number + 1));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    time(thread) - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_resets_cost_the_same_with_many_connections() {
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    // A thread names itself when it has begun.
    while threads().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let thread = threads().remove(0);
    let client = endpoint(&Identity::generate(), Accept::None);
    let quiet = busy(&server, &thread);
    let mut connections: Vec<Connection> = Vec::new();
    for _ in 0..1500 {
        let connected =
            client.connect(server.local_addr(), *identity.public().as_bytes(), None).await;
        connections.push(connected.unwrap());
    }
    // What is left of the handshakes passes.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let crowded = busy(&server, &thread);
    println!("{quiet:?} without connections, {crowded:?} with {}", connections.len());
    assert!(crowded < 3 * quiet + Duration::from_millis(50), "{crowded:?} instead of {quiet:?}");
}
