use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use super::args::{Args, PROBE};
use crate::failure::Failure;
use crate::json::say;
use crate::listen::status;
use crate::runtime::Deadline;

/// Sends probes at equal distances.
pub(super) fn send(args: &Args, to: SocketAddr) -> Result<(), Failure> {
    let fail = |error| Failure::Failed(format!("cannot send to {to}: {error}"));
    let (any, headers) = match to {
        SocketAddr::V4(_) => (IpAddr::from(Ipv4Addr::UNSPECIFIED), 20 + 8),
        SocketAddr::V6(_) => (IpAddr::from(Ipv6Addr::UNSPECIFIED), 40 + 8),
    };
    let socket = UdpSocket::bind((any, 0)).map_err(fail)?;
    socket.connect(to).map_err(fail)?;
    let probe = vec![0; PROBE as usize - headers];
    let distance = Duration::from_secs_f64(args.distance * 1e-3);
    let deadline = Deadline::new(args.time)?;
    if !args.json {
        status(&format_args!("probing {to}; Ctrl-C ends it"));
    }
    let (mut sent, mut due) = (0u64, Instant::now());
    while !deadline.is_over() {
        let mut outcome = socket.send(&probe);
        // Nobody listens at the port: who watches need not. That the last probe found nobody is
        // told in place of sending.
        if outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            outcome = socket.send(&probe);
        }
        match outcome {
            Ok(_) => sent += 1,
            Err(error) if sent == 0 => return Err(fail(error)),
            // Queues that are full, and routes, come and go.
            Err(_) => {}
        }
        due += distance;
        // In pieces, so that Ctrl-C is heard.
        while !deadline.is_over() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(left.min(Duration::from_millis(100)));
        }
    }
    if args.json {
        say(&json!({"event": "probed", "probes": sent}));
    } else {
        say(&format!("{sent} probes sent"));
    }
    Ok(())
}
