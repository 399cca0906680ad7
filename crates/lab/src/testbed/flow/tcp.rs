use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use fontis_base::{Duration, Rate, Stream};
use fontis_sim::app::Application;
use fontis_sim::app::message::{MessageLog, MessageSource};
use fontis_sim::app::requests::Requests;
use fontis_sim::app::source::PieceSource;
use fontis_sim::host::{Counters, Milestones, rows};
use socket2::Socket;

use super::algorithm::Algorithm;
use super::messages::{Messages, in_stream};
use crate::testbed::error::{TestbedError, system};
use crate::testbed::flow::stage::{Flow, LOOK, Meter, PORT, Place, Stage, join, only_waited};
use crate::testbed::multipath;
use crate::testbed::namespace::Namespace;
use crate::testbed::system as sys;

/// A connection of the kernel's TCP.
struct Tcp {
    meter: Arc<Meter>,
    /// The sender's socket, once it is connected.
    socket: Arc<OnceLock<TcpStream>>,
    is_multipath: bool,
    /// Keeps it in the kernel.
    _algorithm: Algorithm,
    threads: Vec<JoinHandle<()>>,
}

/// The bytes that are written or discarded at a time.
const PIECE: usize = 256 << 10;

/// One end of a connection, as its thread has it.
#[derive(Clone)]
struct End {
    stage: Stage,
    meter: Arc<Meter>,
    socket: Arc<OnceLock<TcpStream>>,
    name: String,
}

/// Lets the receiver listen, and the sender connect when it is time.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let spec = place.spec;
    let transport = spec.transport.as_any().downcast_ref::<rows::tcp::Tcp>();
    let config = &transport.expect("the table says TCP").config;
    let algorithm = Algorithm::of(&spec.name, config)?;
    // The receiver of the data asks for it; the end that acts first connects.
    let asks = matches!(spec.application, Application::Requests(_));
    let ends = [&place.sender, &place.receivers[0]].map(|end| (end.namespace, end.address));
    let [from, to] = if asks { [ends[1], ends[0]] } else { ends };
    let is_multipath = !spec.subflows.is_empty();
    if is_multipath {
        let own = |ends: &[IpAddr; 2]| ends[usize::from(asks)];
        let own: Vec<IpAddr> = place.beside.iter().map(own).collect();
        multipath::manage(from.0, own.len(), &own)?;
        multipath::manage(to.0, own.len(), &[])?;
    }
    let open = |namespace: &Namespace, address| {
        let address = SocketAddr::new(address, 0);
        let opened = namespace.run(|| multipath::open(address, is_multipath))?;
        let name = algorithm.name();
        rustix::net::sockopt::set_tcp_congestion(&opened, name).map_err(|_| {
            TestbedError::Unsupported(format!(
                "{}: this kernel has no congestion control {name}; load the module tcp_{name}, or \
                 choose one of /proc/sys/net/ipv4/tcp_available_congestion_control",
                spec.name
            ))
        })?;
        if let Some(most) = config.max_window {
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            sys::clamp_window(&opened, most).map_err(system("bound a window"))?;
        }
        Ok(opened)
    };
    let (listener, client) = (open(to.0, to.1)?, open(from.0, from.1)?);
    let bound = |socket: &Socket, address, port| {
        let set = socket.set_reuse_address(true);
        set.and_then(|()| socket.set_read_timeout(Some(LOOK)))
            .and_then(|()| socket.set_write_timeout(Some(LOOK)))
            .and_then(|()| socket.bind(&SocketAddr::new(address, port).into()))
            .map_err(system("bind a socket"))
    };
    bound(&listener, to.1, PORT)?;
    bound(&client, from.1, 0)?;
    listener.listen(1).map_err(system("listen"))?;
    let end = End {
        stage: stage.clone(),
        meter: Arc::default(),
        socket: Arc::default(),
        name: spec.name.clone(),
    };
    let (active, passive) = (end.clone(), end.clone());
    let (start, application) = (spec.start, spec.application);
    let (stream, log) = (place.stream(), place.log.clone());
    let taken = log.clone();
    let target = SocketAddr::new(to.1, PORT);
    let connecting = move || {
        if active.stage.wait_until(start)
            && let Some(socket) = active.connect(client, target)
        {
            match application {
                Application::Source(pattern) => {
                    active.send(&socket, PieceSource::new(pattern, start, stream));
                }
                Application::Requests(requests) => active.ask(&socket, requests, stream),
                Application::Messages(messages) => {
                    if let Some(log) = log {
                        let source = MessageSource::new(messages, start, stream, log);
                        active.send_messages(&socket, source);
                    }
                }
            }
        }
    };
    let accepting = move || {
        if let Some(socket) = passive.accept(&listener) {
            match application {
                Application::Source(_) => passive.take(&socket),
                Application::Messages(_) => {
                    taken.into_iter().for_each(|log| passive.take_messages(&socket, &log));
                }
                Application::Requests(requests) => passive.answer(&socket, requests),
            }
        }
    };
    let spawn = |body: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(end.name.clone()).spawn(body).map_err(system("start a thread"))
    };
    let threads = vec![spawn(Box::new(accepting))?, spawn(Box::new(connecting))?];
    let _algorithm = algorithm;
    Ok(Box::new(Tcp { meter: end.meter, socket: end.socket, is_multipath, _algorithm, threads }))
}

impl Flow for Tcp {
    fn counters(&self, _receiver: usize) -> Counters {
        let received = self.meter.received.load(Ordering::Relaxed);
        let infos = self.socket.get().map_or(Vec::new(), |socket| {
            match self.is_multipath {
                // One that has fallen back to TCP has no subflows.
                true => sys::subflow_infos(socket).or_else(|_| Ok(vec![sys::tcp_info(socket)?])),
                false => sys::tcp_info(socket).map(|info| vec![info]),
            }
            .unwrap_or_else(|_: io::Error| Vec::new())
        });
        let mut counters = Counters { received, ..Counters::default() };
        for info in infos {
            let mss = u64::from(info.tcpi_snd_mss);
            let outstanding = info.tcpi_unacked + info.tcpi_retrans;
            let in_flight = outstanding.saturating_sub(info.tcpi_sacked + info.tcpi_lost);
            counters.sent += u64::from(info.tcpi_segs_out);
            counters.retransmitted += u64::from(info.tcpi_total_retrans);
            counters.lost += u64::from(info.tcpi_lost);
            counters.window += u64::from(info.tcpi_snd_cwnd) * mss;
            counters.in_flight += u64::from(in_flight) * mss;
            let srtt = (info.tcpi_rtt > 0).then(|| Duration::from_micros(info.tcpi_rtt.into()));
            // Of several subflows the shortest.
            counters.srtt = counters.srtt.into_iter().chain(srtt).min();
        }
        counters
    }

    fn milestones(&self, _receiver: usize) -> Milestones {
        self.meter.milestones()
    }

    fn join(self: Box<Self>) {
        join(self.threads);
    }
}

impl End {
    fn connect(&self, socket: Socket, to: SocketAddr) -> Option<TcpStream> {
        let now = self.stage.clock.now();
        self.meter.note(|milestones| milestones.first_sent = Some(now));
        loop {
            match socket.connect(&to.into()) {
                Ok(()) => break,
                // On its way: a second call waits on.
                Err(error) if only_waited(&error) || in_progress(&error) => {
                    if self.stage.is_over() {
                        return None;
                    }
                    thread::sleep(LOOK / 100);
                }
                Err(error) if error.raw_os_error() == Some(libc::EISCONN) => break,
                Err(error) => {
                    self.abort(format!("cannot connect to {to}: {error}"));
                    return None;
                }
            }
        }
        let now = self.stage.clock.now();
        self.meter.note(|milestones| milestones.connected = Some(now));
        let socket = TcpStream::from(socket);
        Some(socket)
    }

    /// Makes a socket the one whose state is recorded.
    fn watch(&self, socket: &TcpStream) {
        if let Ok(copy) = socket.try_clone() {
            let _ = self.socket.set(copy);
        }
    }

    fn accept(&self, listener: &Socket) -> Option<TcpStream> {
        while !self.stage.is_over() {
            match listener.accept() {
                Ok((socket, _)) => {
                    // Accepted sockets do not inherit these.
                    let _ = socket.set_read_timeout(Some(LOOK));
                    let _ = socket.set_write_timeout(Some(LOOK));
                    return Some(socket.into());
                }
                Err(error) if only_waited(&error) => {}
                Err(error) => {
                    self.stage.fail(&self.name, format!("cannot accept: {error}"));
                    return None;
                }
            }
        }
        None
    }

    /// Sends the data of a source.
    fn send(&self, socket: &TcpStream, mut source: PieceSource) {
        self.watch(socket);
        let mut left = 0u64;
        let mut ends = false;
        while !self.stage.is_over() {
            let now = self.stage.clock.now();
            while let Some(piece) = source.next(now) {
                left += piece.bytes;
                ends |= piece.last;
            }
            if left > 0 {
                match self.write(socket, left) {
                    Some(written) => left -= written,
                    None => return,
                }
            } else if ends {
                let _ = socket.shutdown(Shutdown::Write);
                return;
            } else if let Some(due) = source.due() {
                self.stage.wait_until(due);
            }
        }
    }

    /// Writes a part of the remaining data; `None` if the connection is gone.
    fn write(&self, mut socket: &TcpStream, left: u64) -> Option<u64> {
        static ZEROS: [u8; PIECE] = [0; PIECE];
        let piece = left.min(PIECE as u64) as usize;
        match socket.write(&ZEROS[..piece]) {
            Ok(written) => Some(written as u64),
            Err(error) if only_waited(&error) => Some(0),
            Err(error) => {
                self.abort(format!("cannot send: {error}"));
                None
            }
        }
    }

    /// Receives until the end.
    fn take(&self, socket: &TcpStream) {
        while !self.stage.is_over() {
            match sys::discard(socket, 1 << 20) {
                Ok(0) => {
                    let now = self.stage.clock.now();
                    self.meter.note(|milestones| milestones.completed = Some(now));
                    return;
                }
                Ok(bytes) => self.meter.arrived(self.stage.clock.now(), bytes as u64),
                Err(error) if only_waited(&error) => {}
                Err(error) => return self.abort(format!("cannot receive: {error}")),
            }
        }
    }

    /// Sends messages, each when it is made.
    fn send_messages(&self, socket: &TcpStream, mut source: MessageSource) {
        self.watch(socket);
        let _ = socket.set_nodelay(true);
        let mut waiting: Vec<u8> = Vec::new();
        while !self.stage.is_over() {
            while let Some(message) = source.next(self.stage.clock.now(), rate(socket)) {
                waiting.extend(in_stream(&message));
            }
            if waiting.is_empty() {
                match source.due() {
                    Some(due) => _ = self.stage.wait_until(due),
                    None => return,
                }
                continue;
            }
            let mut out = socket;
            match out.write(&waiting) {
                Ok(written) => _ = waiting.drain(..written),
                Err(error) if only_waited(&error) => {}
                Err(error) => return self.abort(format!("cannot send: {error}")),
            }
        }
    }

    /// Takes messages, and notes when each has come.
    fn take_messages(&self, mut socket: &TcpStream, log: &MessageLog) {
        let (mut messages, mut buffer) = (Messages::default(), vec![0; PIECE]);
        while !self.stage.is_over() {
            match socket.read(&mut buffer) {
                Ok(0) => return,
                Ok(bytes) => {
                    let now = self.stage.clock.now();
                    self.meter.arrived(now, bytes as u64);
                    for number in messages.take(&buffer[..bytes]) {
                        log.arrived(0, number, now);
                    }
                }
                Err(error) if only_waited(&error) => {}
                Err(error) => return self.abort(format!("cannot receive: {error}")),
            }
        }
    }

    /// Asks again and again.
    fn ask(&self, mut socket: &TcpStream, requests: Requests, mut stream: Stream) {
        let _ = socket.set_nodelay(true);
        let question = vec![0; usize::try_from(requests.request).unwrap_or(usize::MAX).min(PIECE)];
        let mut asked = 0;
        while !self.stage.is_over() && requests.count.is_none_or(|count| asked < count) {
            if asked > 0 {
                let think = -(1.0 - stream.unit()).ln() * requests.think.as_secs_f64();
                let due = self.stage.clock.now() + Duration::from_secs_f64(think);
                if !self.stage.wait_until(due) {
                    return;
                }
            }
            if let Err(error) = socket.write_all(&question) {
                return self.abort(format!("cannot ask: {error}"));
            }
            asked += 1;
            let mut missing = requests.response;
            while missing > 0 && !self.stage.is_over() {
                let most = usize::try_from(missing).unwrap_or(usize::MAX).min(1 << 20);
                match sys::discard(socket, most) {
                    Ok(0) => return self.abort("the answers ended".to_owned()),
                    Ok(bytes) => {
                        missing -= bytes as u64;
                        self.meter.arrived(self.stage.clock.now(), bytes as u64);
                    }
                    Err(error) if only_waited(&error) => {}
                    Err(error) => return self.abort(format!("cannot receive: {error}")),
                }
            }
        }
        let now = self.stage.clock.now();
        if !self.stage.is_over() {
            self.meter.note(|milestones| milestones.completed = Some(now));
        }
        let _ = socket.shutdown(Shutdown::Write);
    }

    /// Answers every request.
    fn answer(&self, mut socket: &TcpStream, requests: Requests) {
        let _ = socket.set_nodelay(true);
        self.watch(socket);
        let (mut got, mut buffer) = (0u64, vec![0; PIECE]);
        while !self.stage.is_over() {
            match socket.read(&mut buffer) {
                Ok(0) => return,
                Ok(bytes) => got += bytes as u64,
                Err(error) if only_waited(&error) => {}
                Err(error) => return self.abort(format!("cannot receive: {error}")),
            }
            while got >= requests.request {
                got -= requests.request;
                let mut left = requests.response;
                while left > 0 && !self.stage.is_over() {
                    match self.write(socket, left) {
                        Some(written) => left -= written,
                        None => return,
                    }
                }
            }
        }
    }

    fn abort(&self, problem: String) {
        self.meter.note(|milestones| milestones.aborted = true);
        self.stage.fail(&self.name, problem);
    }
}

fn in_progress(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY))
}

/// The rate of a connection by its window and round-trip time.
fn rate(socket: &TcpStream) -> Option<Rate> {
    let info = sys::tcp_info(socket).ok().filter(|info| info.tcpi_rtt > 0)?;
    let window = u64::from(info.tcpi_snd_cwnd) * u64::from(info.tcpi_snd_mss);
    Some(Rate::from_bytes_over(window, Duration::from_micros(info.tcpi_rtt.into())))
}
