use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use fontis_base::{Duration, Time};
use fontis_sim::app::Application;
use fontis_sim::app::message::{MessageLog, MessageSource};
use fontis_sim::app::source::PieceSource;
use fontis_sim::experiment::spec::{Destination, End};
use fontis_sim::host::{Counters, Milestones};
use socket2::{Domain, Socket, Type};

use crate::testbed::error::{TestbedError, system};
use crate::testbed::flow::stage::{Flow, LOOK, Meter, PORT, Place, Stage, join, only_waited};
use crate::testbed::network::EndSite;
use crate::testbed::plan::group_address;
use crate::testbed::system as sys;

/// Datagrams that a source gives, sent without any control; to a group they are sent once.
struct Datagrams {
    sender: Arc<Meter>,
    receivers: Vec<Arc<Meter>>,
    threads: Vec<JoinHandle<()>>,
}

/// The largest that IPv4 has room for.
const LARGEST: usize = 65_507;
/// Bytes of a fragment of a message, its header included.
const FRAGMENT: usize = 1472;
/// Bytes of the header: the message's number, the fragment's, and how many there are.
const HEADER: usize = 12;
/// The most messages whose fragments are waited for at a time.
const MOST_PARTIAL: usize = 1024;

/// The times at which a member belongs to its group.
type Stays = Vec<(Time, Option<Time>)>;

/// Lets the receivers count, and the sender send from its start on.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let is_group = matches!(place.spec.to, Destination::Group(_));
    let group = is_group.then(|| group_address(place.number));
    let mut flow = Datagrams { sender: Arc::default(), receivers: Vec::new(), threads: Vec::new() };
    let spawn = |body: Box<dyn FnOnce() + Send>| {
        let name = place.spec.name.clone();
        thread::Builder::new().name(name).spawn(body).map_err(system("start a thread"))
    };
    for (number, site) in place.receivers.iter().enumerate() {
        let socket = receiving_socket(site, group)?;
        let meter = Arc::new(Meter::default());
        flow.receivers.push(Arc::clone(&meter));
        let mut receiver = Receiver {
            stage: stage.clone(),
            meter,
            socket,
            log: place.log.clone(),
            number,
            partial: BTreeMap::new(),
        };
        let stays = stays(place, number);
        let own = site.address;
        let name = place.spec.name.clone();
        flow.threads.push(spawn(Box::new(move || match (group, own) {
            (Some(group), IpAddr::V4(own)) => receiver.stay(&name, group, own, stays),
            _ => receiver.receive_until(None),
        }))?);
    }
    let to = group.map_or(place.receiver().address, IpAddr::V4);
    let socket = sending_socket(&place.sender, SocketAddr::new(to, PORT))?;
    let sender = Sender { stage: stage.clone(), meter: Arc::clone(&flow.sender), socket };
    let (start, stream) = (place.spec.start, place.stream());
    let log = place.log.clone();
    let application = place.spec.application;
    flow.threads.push(spawn(Box::new(move || match (application, log) {
        (Application::Source(pattern), _) => {
            sender.pieces(PieceSource::new(pattern, start, stream));
        }
        (Application::Messages(messages), Some(log)) => {
            sender.messages(MessageSource::new(messages, start, stream, log));
        }
        // The scenario has refused them.
        _ => {}
    }))?);
    Ok(Box::new(flow))
}

fn receiving_socket(
    site: &EndSite<'_>,
    group: Option<Ipv4Addr>,
) -> Result<UdpSocket, TestbedError> {
    let address = SocketAddr::new(group.map_or(site.address, IpAddr::V4), PORT);
    let bound = site.namespace.run(|| {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None);
        let socket = socket.map_err(system("open a socket"))?;
        socket.set_reuse_address(true).map_err(system("set up a socket"))?;
        socket.bind(&address.into()).map_err(system("bind a socket"))?;
        Ok(UdpSocket::from(socket))
    })?;
    bound.set_read_timeout(Some(LOOK)).map_err(system("set a socket's time-out"))?;
    // Some 30 ms of 1 Gbit/s; as root beyond the system's limit.
    let room = rustix::net::sockopt::set_socket_recv_buffer_size_force(&bound, 4 << 20);
    if room.is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&bound, 4 << 20);
    }
    Ok(bound)
}

fn sending_socket(site: &EndSite<'_>, to: SocketAddr) -> Result<UdpSocket, TestbedError> {
    site.namespace.run(|| {
        let from = SocketAddr::new(site.address, 0);
        let socket = Socket::new(Domain::for_address(from), Type::DGRAM, None);
        let socket = socket.map_err(system("open a socket"))?;
        socket.bind(&from.into()).map_err(system("bind a socket"))?;
        if let (true, IpAddr::V4(own)) = (to.ip().is_multicast(), site.address) {
            socket.set_multicast_if_v4(&own).map_err(system("choose an interface"))?;
            socket.set_multicast_ttl_v4(32).map_err(system("set up a socket"))?;
            socket.set_multicast_loop_v4(false).map_err(system("set up a socket"))?;
        }
        socket.connect(&to.into()).map_err(system("connect a socket"))?;
        Ok(UdpSocket::from(socket))
    })
}

/// When a receiver belongs to the flow's group, in order.
fn stays(place: &Place<'_>, receiver: usize) -> Stays {
    let Destination::Group(group) = place.spec.to else { return Vec::new() };
    let ends = place.experiment.receivers(place.spec);
    let members = place.experiment.groups[group].members.iter();
    let own = members.filter(|member| End::Shared(member.at) == ends[receiver]);
    let mut stays: Stays = own.map(|member| (member.join, member.leave)).collect();
    stays.sort();
    stays
}

struct Sender {
    stage: Stage,
    meter: Arc<Meter>,
    socket: UdpSocket,
}

impl Sender {
    /// Sends a datagram for each piece of a source.
    fn pieces(&self, mut source: PieceSource) {
        static ZEROS: [u8; LARGEST] = [0; LARGEST];
        sys::sleep_exactly();
        while let Some(due) = source.due() {
            if !self.stage.wait_until(due) {
                return;
            }
            while let Some(piece) = source.next(self.stage.clock.now()) {
                let bytes = piece.bytes.min(LARGEST as u64) as usize;
                self.send(&ZEROS[..bytes]);
                if self.stage.is_over() {
                    return;
                }
            }
        }
    }

    /// Sends messages, each in as many datagrams as it takes.
    fn messages(&self, mut source: MessageSource) {
        sys::sleep_exactly();
        let mut datagram = [0; FRAGMENT];
        while let Some(due) = source.due() {
            if !self.stage.wait_until(due) {
                return;
            }
            let Some(message) = source.next(self.stage.clock.now(), None) else { continue };
            let bytes = usize::try_from(message.bytes).unwrap_or(usize::MAX);
            let fragments = bytes.div_ceil(FRAGMENT).clamp(1, usize::from(u16::MAX));
            for fragment in 0..fragments {
                let length = (bytes - fragment * FRAGMENT).clamp(HEADER, FRAGMENT);
                datagram[..8].copy_from_slice(&message.number.unwrap_or(u64::MAX).to_be_bytes());
                datagram[8..10].copy_from_slice(&(fragment as u16).to_be_bytes());
                datagram[10..12].copy_from_slice(&(fragments as u16).to_be_bytes());
                self.send(&datagram[..length]);
            }
        }
    }

    fn send(&self, bytes: &[u8]) {
        // A full queue of the system loses datagrams as any other does.
        let _ = self.socket.send(bytes);
        self.meter.sent.fetch_add(1, Ordering::Relaxed);
    }
}

struct Receiver {
    stage: Stage,
    meter: Arc<Meter>,
    socket: UdpSocket,
    log: Option<MessageLog>,
    /// Its place among the flow's receivers.
    number: usize,
    /// Of messages in several datagrams, the fragments that have arrived.
    partial: BTreeMap<u64, Vec<bool>>,
}

impl Receiver {
    /// Receives while it belongs to a group.
    fn stay(&mut self, name: &str, group: Ipv4Addr, own: Ipv4Addr, stays: Stays) {
        for (join, leave) in stays {
            if !self.stage.wait_until(join) {
                return;
            }
            if let Err(error) = self.socket.join_multicast_v4(&group, &own) {
                return self.stage.fail(name, format!("cannot join a group: {error}"));
            }
            self.receive_until(leave);
            let _ = self.socket.leave_multicast_v4(&group, &own);
        }
    }

    fn receive_until(&mut self, end: Option<Time>) {
        let mut buffer = vec![0; LARGEST];
        while !self.stage.is_over() {
            let left = end.map(|end| end.since(self.stage.clock.now()));
            if left == Some(Duration::ZERO) {
                return;
            }
            let wait = left.map_or(LOOK, |left| LOOK.min(left.into()));
            let wait = wait.max(std::time::Duration::from_micros(100));
            let _ = self.socket.set_read_timeout(Some(wait));
            match self.socket.recv(&mut buffer) {
                Ok(bytes) => self.take(&buffer[..bytes]),
                Err(error) if only_waited(&error) => {}
                // Errors of a socket that only receives are told once and pass.
                Err(_) => thread::sleep(LOOK),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let now = self.stage.clock.now();
        self.meter.arrived(now, bytes.len() as u64);
        let Some(log) = &self.log else { return };
        let Ok((number, fragment, fragments)) = header(bytes) else { return };
        let complete = fragments <= 1 || {
            let seen = self.partial.entry(number).or_insert_with(|| vec![false; fragments]);
            if let Some(seen) = seen.get_mut(fragment) {
                *seen = true;
            }
            seen.iter().all(|seen| *seen)
        };
        if complete {
            self.partial.remove(&number);
            log.arrived(self.number, number, now);
        } else if self.partial.len() > MOST_PARTIAL {
            self.partial.pop_first();
        }
    }
}

/// The header of a fragment: its message, its place in it, and the message's fragments.
fn header(bytes: &[u8]) -> io::Result<(u64, usize, usize)> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    let (fragment, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let fragments = rest.first_chunk::<2>().ok_or_else(short)?;
    let [fragment, fragments] = [fragment, fragments].map(|two| u16::from_be_bytes(*two).into());
    Ok((u64::from_be_bytes(*number), fragment, fragments))
}

impl Flow for Datagrams {
    fn counters(&self, receiver: usize) -> Counters {
        let received = self.receivers.get(receiver);
        Counters {
            received: received.map_or(0, |meter| meter.received.load(Ordering::Relaxed)),
            sent: self.sender.sent.load(Ordering::Relaxed),
            ..Counters::default()
        }
    }

    fn milestones(&self, receiver: usize) -> Milestones {
        // Of datagrams the recording knows only arrivals.
        let milestones = self.receivers.get(receiver).map(|meter| meter.milestones());
        let Milestones { first_data, last_data, .. } = milestones.unwrap_or_default();
        Milestones { first_data, last_data, ..Milestones::default() }
    }

    fn join(self: Box<Self>) {
        join(self.threads);
    }
}
