use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use fontis_base::Stream;
use fontis_sim::app::source::{Pattern, Source};
use fontis_sim::host::{Counters, Milestones};

use super::{LOOK, Meter, PORT, Place, Stage, only_waited};
use crate::testbed::error::{TestbedError, system};
use crate::testbed::namespace::Namespace;
use crate::testbed::system as sys;

/// Datagrams that a source gives, sent without any control.
pub(in crate::testbed) struct Datagrams {
    meter: Arc<Meter>,
    pub(super) threads: Vec<JoinHandle<()>>,
}

/// The largest that IPv4 has room for.
const LARGEST: usize = 65_507;

impl Datagrams {
    /// Lets the receiver count, and the sender send from its start on.
    pub(in crate::testbed) fn start(
        stage: &Stage,
        place: &Place<'_>,
        pattern: Pattern,
        [senders, receivers]: [&Namespace; 2],
        seed: u64,
    ) -> Result<Self, TestbedError> {
        let bind = |namespace: &Namespace, address| {
            namespace.run(|| UdpSocket::bind(address).map_err(system("bind a socket")))
        };
        let to = SocketAddr::new(place.receiver, PORT);
        let receiver = bind(receivers, to)?;
        receiver.set_read_timeout(Some(LOOK)).map_err(system("set a socket's time-out"))?;
        // Some 30 ms of 1 Gbit/s; as root beyond the system's limit.
        let room = rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 4 << 20);
        if room.is_err() {
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&receiver, 4 << 20);
        }
        let sender = bind(senders, SocketAddr::new(place.sender, 0))?;
        sender.connect(to).map_err(system("connect a socket"))?;
        let meter = Arc::new(Meter::default());
        let stream = Stream::new(seed, &format!("{}/application", place.spec.name));
        let source = Source::new(pattern, place.spec.start, stream);
        let name = place.spec.name.clone();
        let [(one, mine), (other, its)] = [0, 1].map(|_| (stage.clone(), meter.clone()));
        let sending = move || send(&one, &mine, &sender, source);
        let receiving = move || receive(&other, &its, &receiver);
        let spawn = |body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.clone()).spawn(body).map_err(system("start a thread"))
        };
        let threads = vec![spawn(Box::new(receiving))?, spawn(Box::new(sending))?];
        Ok(Self { meter, threads })
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            received: self.meter.received.load(Ordering::Relaxed),
            sent: self.meter.sent.load(Ordering::Relaxed),
            ..Counters::default()
        }
    }

    pub(super) fn milestones(&self) -> Milestones {
        // Of datagrams the recording knows only arrivals.
        let Milestones { first_data, last_data, .. } = self.meter.milestones();
        Milestones { first_data, last_data, ..Milestones::default() }
    }
}

fn send(stage: &Stage, meter: &Meter, socket: &UdpSocket, mut source: Source) {
    static ZEROS: [u8; LARGEST] = [0; LARGEST];
    sys::sleep_exactly();
    while let Some(due) = source.due() {
        if !stage.wait_until(due) {
            return;
        }
        while let Some(piece) = source.next(stage.clock.now()) {
            let bytes = piece.bytes.min(LARGEST as u64) as usize;
            // A full queue of the system loses datagrams as any other does.
            let _ = socket.send(&ZEROS[..bytes]);
            meter.sent.fetch_add(1, Ordering::Relaxed);
            if stage.is_over() {
                return;
            }
        }
    }
}

fn receive(stage: &Stage, meter: &Meter, socket: &UdpSocket) {
    let mut buffer = vec![0; LARGEST];
    while !stage.is_over() {
        match socket.recv(&mut buffer) {
            Ok(bytes) => meter.arrived(stage.clock.now(), bytes as u64),
            Err(error) if only_waited(&error) => {}
            // Errors of a socket that only receives are told once and pass.
            Err(_) => thread::sleep(LOOK),
        }
    }
}
