//! Sends numbered datagrams through a UDP path at a steady rate and says what came out of it, and
//! when.
//!
//! ```sh
//! fontis relay --listen 127.0.0.1:4434 --to 127.0.0.1:4433 --rate 1gbit --delay 20ms &
//! cargo run --release -p fontis-lab --example udp_load -- \
//!     127.0.0.1:4434 127.0.0.1:4433 100mbit 10s
//! ```
//!
//! On a virtual machine with two cores, which sender, relay and receiver shared, all packets came
//! through, and the relay sent them this long after they were due (its own summary, 8 s,
//! `--rate 1gbit --delay 20ms`):
//!
//! | load | median | 99 % | CPU of the relay |
//! |---|---|---|---|
//! | 100 Mbit/s | 25 us | 63 us | 20 % of a core |
//! | 500 Mbit/s | 29 us | 60 us | 49 % of a core |
//!
//! The arguments: where to send, where to receive, the rate (of 1250-byte packets, headers
//! included), for how long.

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use fontis_base::Rate;
use hdrhistogram::Histogram;

const PACKET: u64 = 1250;
const HEADERS: u64 = 28;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [to, listen, rate, length] = &arguments[..] else {
        return Err(
            "usage: udp_load TO LISTEN RATE TIME, as in 127.0.0.1:4434 127.0.0.1:4433 100mbit 10s"
                .into(),
        );
    };
    let rate: Rate = rate.parse()?;
    let length: fontis_base::Duration = length.parse()?;
    let packets = rate.bytes_in(length) / PACKET;
    let receiver = UdpSocket::bind(listen.as_str())?;
    socket2::SockRef::from(&receiver).set_recv_buffer_size(8 << 20)?;
    receiver.set_read_timeout(Some(Duration::from_secs(2)))?;
    let sender = UdpSocket::bind("0.0.0.0:0")?;
    sender.connect(to.as_str())?;

    let origin = Instant::now();
    let receiving = std::thread::spawn(move || receive(&receiver, origin));
    let mut datagram = vec![0; (PACKET - HEADERS) as usize];
    let mut late = Histogram::<u64>::new(2)?;
    for i in 0..packets {
        let due = Duration::from(rate.time_for((i + 1) * PACKET));
        // Short sleeps overshoot, and a late packet is followed at once by the next, so the rate
        // holds.
        while let Some(wait) = due.checked_sub(origin.elapsed()).filter(|wait| !wait.is_zero()) {
            std::thread::sleep(wait);
        }
        let now = origin.elapsed();
        late.saturating_record((now - due).as_micros() as u64);
        datagram[..8].copy_from_slice(&(now.as_nanos() as u64).to_le_bytes());
        sender.send(&datagram)?;
    }
    let took = origin.elapsed();
    let delays = receiving.join().map_err(|_| "the receiver failed")??;
    println!(
        "sent {packets} packets in {:.2} s ({}), late: median {} us, p99 {} us",
        took.as_secs_f64(),
        Rate::from_bytes_over(packets * PACKET, took.into()),
        late.value_at_quantile(0.5),
        late.value_at_quantile(0.99),
    );
    println!(
        "received {} ({:.3} % lost); one-way delay: least {} us, median {} us, p99 {} us, most {} us",
        delays.len(),
        100.0 * (1.0 - delays.len() as f64 / packets as f64),
        delays.min(),
        delays.value_at_quantile(0.5),
        delays.value_at_quantile(0.99),
        delays.max(),
    );
    Ok(())
}

/// One-way delays in microseconds, until nothing has come for two seconds.
fn receive(socket: &UdpSocket, origin: Instant) -> std::io::Result<Histogram<u64>> {
    let mut delays = Histogram::new_with_max(60_000_000, 3)
        .expect("three digits up to a minute are within the limits of the histogram");
    let mut datagram = [0; 2048];
    while let Ok(n) = socket.recv(&mut datagram) {
        let now = origin.elapsed().as_nanos() as u64;
        if let Some(sent) = datagram[..n].first_chunk() {
            delays.saturating_record((now - u64::from_le_bytes(*sent)) / 1000);
        }
    }
    Ok(delays)
}
