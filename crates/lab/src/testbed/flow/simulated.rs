//! Hosts of the simulator at real sockets: the same state machine, with the system's clock and UDP.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use fontis_base::{Address, Ecn, FlowId, Packet, PacketId, Time};
use fontis_sim::app::message::MessageLog;
use fontis_sim::host::identity::EndpointIdentity;
use fontis_sim::host::payload::Payload;
use fontis_sim::host::table::{FlowContext, Hosts, SharedConfigs};
use fontis_sim::host::{Counters, Host, Milestones};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::testbed::error::{TestbedError, system};
use crate::testbed::flow::stage::{Flow, LOOK, PORT, Place, Stage, join};
use crate::testbed::network::EndSite;
use crate::testbed::system as sys;

/// How a transport's packets stand in datagrams.
pub(super) trait Codec: Copy + Send + 'static {
    /// Writes a packet behind what is there.
    fn encode(self, payload: &Payload, out: &mut Vec<u8>);

    /// Reads a packet; `None` if the bytes are none.
    fn decode(self, bytes: &[u8]) -> Option<Payload>;

    /// What is wrong with what a host has received, if anything is.
    fn fault(self, _host: &dyn Host) -> Option<&'static str> {
        None
    }
}

/// A flow whose ends are hosts of the simulator.
struct Simulated {
    sender: SharedHost,
    receiver: SharedHost,
    log: Option<MessageLog>,
    threads: Vec<JoinHandle<()>>,
}

type SharedHost = Arc<Mutex<Box<dyn Host>>>;

/// Starts both ends, each on a thread and a socket of its own.
pub(super) fn start(
    stage: &Stage,
    place: &Place<'_>,
    codec: impl Codec,
) -> Result<Box<dyn Flow>, TestbedError> {
    let Hosts { sender, receivers, log } = hosts(place);
    let Some(receiver) = receivers.into_iter().next() else {
        let problem = format!("{}: it has no receiver", place.spec.name);
        return Err(TestbedError::Unsupported(problem));
    };
    let (sites, number) = ([place.sender, place.receiver()], place.number);
    let mut threads = Vec::new();
    let mut shared = Vec::new();
    let hosts = [sender.into_boxed(), receiver.into_boxed()];
    for (side, host) in hosts.into_iter().enumerate() {
        let host: SharedHost = Arc::new(Mutex::new(host));
        shared.push(Arc::clone(&host));
        let end = End {
            stage: stage.clone(),
            host,
            socket: socket(&sites[side], sites[1 - side].address, number)?,
            codec,
            name: place.spec.name.clone(),
            flow: FlowId(number as u32),
            last: Time::ZERO,
            datagram: Vec::new(),
        };
        let name = place.spec.name.clone();
        let spawned = thread::Builder::new().name(name).spawn(move || end.run());
        threads.push(spawned.map_err(system("start a thread"))?);
    }
    let [sender, receiver] = [0, 1].map(|side: usize| Arc::clone(&shared[side]));
    Ok(Box::new(Simulated { sender, receiver, log, threads }))
}

/// The hosts, as the simulator makes them for a run of the same seed.
fn hosts(place: &Place<'_>) -> Hosts {
    let spec = place.spec;
    let flow = FlowId(place.number as u32);
    let [local, peer] = [1, 2].map(Address);
    let identity = |number, local, peer| EndpointIdentity { number, local, peer, flow, class: 0 };
    let context = FlowContext {
        seed: place.experiment.seed,
        name: &spec.name,
        number: place.number as u32,
        start: spec.start,
        application: &spec.application,
        sender: identity(1, local, peer),
        receivers: &[identity(2, peer, local)],
        stays: &[],
        paths: &[],
        more_than_fits: place.experiment.more_than_fits(spec),
        wire: false,
        controller: Address(0),
    };
    spec.transport.hosts(&context, &mut SharedConfigs::default())
}

/// A socket of an end, which hears its peer alone.
fn socket(site: &EndSite<'_>, peer: IpAddr, number: usize) -> Result<UdpSocket, TestbedError> {
    // Flows of one host have one address.
    let port = PORT + number as u16;
    let socket = site.namespace.run(|| {
        let socket = UdpSocket::bind(SocketAddr::new(site.address, port));
        socket.map_err(system("open a socket"))
    })?;
    socket.connect(SocketAddr::new(peer, port)).map_err(system("connect a socket"))?;
    socket.set_nonblocking(true).map_err(system("set up a socket"))?;
    // Some 30 ms of 1 Gbit/s; as root beyond the system's limit.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, ROOM).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, ROOM);
    }
    Ok(socket)
}

const ROOM: usize = 4 << 20;

/// One end at work.
struct End<C> {
    stage: Stage,
    host: SharedHost,
    socket: UdpSocket,
    codec: C,
    name: String,
    flow: FlowId,
    /// The host's present: it has seen nothing later.
    last: Time,
    /// The packet that is being sent.
    datagram: Vec<u8>,
}

/// The most packets that an end sends before it looks at what has come, and takes before it sends.
const TURN: usize = 64;
/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u32 = 28;

impl<C: Codec> End<C> {
    fn run(mut self) {
        sys::sleep_exactly();
        let mut bytes = vec![0; 1 << 16];
        while !self.stage.is_over() {
            let now = self.stage.clock.now();
            let sent = self.send_due(now);
            let taken = self.take(&mut bytes);
            if !sent && !taken {
                self.wait();
            }
        }
    }

    /// Lets the host act at each time that it asked for, up to `now`. A thread that wakes late
    /// therefore costs a paced sender no rate. Returns true if there is more to do.
    fn send_due(&mut self, now: Time) -> bool {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TURN {
            let Some((at, _)) = host.timeout().filter(|(at, _)| *at <= now) else { return false };
            self.last = self.last.max(at);
            let Some((_, packet)) = host.poll(self.last) else {
                // It did something that takes no packet, or asks again at once.
                if host.timeout().is_some_and(|(next, _)| next <= at) {
                    self.last = self.last.max(now);
                    return false;
                }
                continue;
            };
            self.datagram.clear();
            self.codec.encode(&packet.payload, &mut self.datagram);
            // A full queue of the system loses datagrams as any other does.
            let _ = self.socket.send(&self.datagram);
        }
        true
    }

    /// Gives the host what has come. Returns true if there may be more.
    fn take(&mut self, bytes: &mut [u8]) -> bool {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TURN {
            let Ok(length) = self.socket.recv(bytes) else { return false };
            let Some(payload) = self.codec.decode(&bytes[..length]) else { continue };
            self.last = self.last.max(self.stage.clock.now());
            let packet = Packet {
                id: PacketId(0),
                src: Address(0),
                dst: Address(0),
                flow: self.flow,
                size: length as u32 + HEADERS,
                segments: 1,
                ecn: Ecn::NotEct,
                corrupt: false,
                class: 0,
                payload,
            };
            host.handle(self.last, 0, packet);
            if let Some(fault) = self.codec.fault(host.as_ref()) {
                self.stage.fail(&self.name, fault);
            }
        }
        true
    }

    /// Waits for a packet, or for the host's next time.
    fn wait(&self) {
        let next = {
            let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
            host.timeout().map(|(at, _)| at.since(self.stage.clock.now()))
        };
        let wait = next.map_or(LOOK, |next| LOOK.min(next.into()));
        let wait =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut sources = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        // Interrupted, it looks again.
        let _ = poll(&mut sources, Some(&wait));
    }
}

impl Simulated {
    fn of<T>(&self, read: impl Fn(&dyn Host) -> T) -> [T; 2] {
        [&self.sender, &self.receiver].map(|host| {
            let host = host.lock().unwrap_or_else(PoisonError::into_inner);
            read(host.as_ref())
        })
    }
}

impl Flow for Simulated {
    fn counters(&self, _receiver: usize) -> Counters {
        let [sender, receiver] = self.of(|host| host.counters());
        Counters::of_flow(sender, receiver)
    }

    fn milestones(&self, _receiver: usize) -> Milestones {
        let [sender, receiver] = self.of(|host| host.milestones());
        Milestones::of_flow(sender, receiver)
    }

    fn log(&self) -> Option<MessageLog> {
        self.log.clone()
    }

    fn join(self: Box<Self>) {
        join(self.threads);
    }
}
