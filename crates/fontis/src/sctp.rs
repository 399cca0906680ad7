//! SCTP over UDP (RFC 6951), for programs that speak to peers of others.
//!
//! Start here: [`SctpStream::connect`] and [`SctpListener::accept`] give an association over a UDP
//! socket of its own; its messages are sent and received in the calling thread, which blocks.
//! Nothing here is encrypted, and nothing proves who the peer is: for that, use the connections of
//! this crate.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration as Wait, Instant};

use bytes::Bytes;
use fontis_base::Time;
use fontis_proto::sctp::{
    AbortReason, SECRET_CODE, SctpAssociation, SctpConfig, SctpData, SctpEvent, SctpMessage,
    SctpPacket, SctpSecret, SctpSend, SctpSendError, SctpStats, respond_without_state,
};
use thiserror::Error;

/// Bytes of the headers of IPv4 and UDP.
const OVERHEAD: u32 = 28;
/// The longest that a call waits before it looks at its timers.
const LONGEST_WAIT: Wait = Wait::from_millis(100);
/// Packets that are read before others are sent.
const BATCH: usize = 64;

/// The reason why a call failed.
#[derive(Debug, Error)]
pub enum SctpError {
    /// The socket failed.
    #[error("the UDP socket of SCTP failed: {0}")]
    Io(#[from] io::Error),
    /// The association was broken off.
    #[error("the association was broken off: {0:?}")]
    Aborted(AbortReason),
    /// The message cannot be sent.
    #[error("{0}")]
    Send(#[from] SctpSendError),
    /// It took too long.
    #[error("there was no answer within {0:?}")]
    TimedOut(Wait),
}

/// A secret of this process.
///
/// # Errors
/// If the machine has no randomness.
pub fn random_secret() -> io::Result<SctpSecret> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(SctpSecret::new(move |content| {
        let mut code = [0; SECRET_CODE];
        code.copy_from_slice(&blake3::keyed_hash(&key, content).as_bytes()[..SECRET_CODE]);
        code
    }))
}

/// An association over a UDP socket of its own.
#[derive(Debug)]
pub struct SctpStream {
    wire: Wire,
    association: SctpAssociation,
    is_closed: bool,
}

/// A UDP socket, and the clock of what goes over it.
#[derive(Debug)]
struct Wire {
    socket: UdpSocket,
    begin: Instant,
    /// The peer's address in UDP, which is that of its last valid packet (RFC 6951 section 5.4).
    peer: SocketAddr,
    local: IpAddr,
    buffer: Vec<u8>,
}

impl Wire {
    fn now(&self) -> Time {
        // Never zero, so that what is due at zero is due.
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64 + 1)
    }

    /// The next packet, which may take so long.
    fn receive(&mut self, wait: Wait) -> io::Result<Option<(SocketAddr, SctpPacket)>> {
        // A timeout lasts a tick of the kernel's clock at least: what may not wait has none.
        self.socket.set_nonblocking(wait.is_zero())?;
        if !wait.is_zero() {
            self.socket.set_read_timeout(Some(wait))?;
        }
        match self.socket.recv_from(&mut self.buffer) {
            Ok((len, from)) => {
                // What is no packet is dropped.
                let packet = SctpPacket::decode(&Bytes::copy_from_slice(&self.buffer[..len]));
                Ok(packet.ok().map(|packet| (from, packet)))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn send(&self, packet: &SctpPacket) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(packet.size());
        packet.encode(&mut bytes);
        match self.socket.send_to(&bytes, self.peer) {
            // What the socket cannot take is lost, as anywhere on the way.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn of(socket: UdpSocket, peer: SocketAddr) -> io::Result<Self> {
        let local = socket.local_addr()?.ip();
        Ok(Self { socket, begin: Instant::now(), peer, local, buffer: vec![0; 1 << 16] })
    }
}

/// The configuration over UDP of one address.
fn over_udp(config: SctpConfig, local: IpAddr) -> SctpConfig {
    let addresses = core::iter::once(local).collect();
    let overhead = if local.is_ipv4() { OVERHEAD } else { OVERHEAD + 20 };
    SctpConfig { addresses, overhead, ..config }
}

impl SctpStream {
    /// Connects from a socket to a peer, within `patience`. `config` has the ports of SCTP.
    ///
    /// # Errors
    /// If the socket fails, or the peer does not answer or refuses.
    pub fn connect(
        socket: UdpSocket,
        peer: SocketAddr,
        config: SctpConfig,
        patience: Wait,
    ) -> Result<Self, SctpError> {
        let wire = Wire::of(socket, peer)?;
        let config = over_udp(config, wire.local);
        let ends = [wire.local, peer.ip()];
        let association = SctpAssociation::connect(wire.now(), config, ends);
        let mut stream = Self { wire, association, is_closed: false };
        let is_up = |stream: &Self| stream.association.is_connected();
        stream.run_until(patience, is_up)?;
        Ok(stream)
    }

    /// Sends a message. Waits, `patience` at most, until the buffer has room.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn send(&mut self, send: SctpSend, data: Bytes, patience: Wait) -> Result<(), SctpError> {
        let len = data.len() as u64;
        self.run_until(patience, |stream| {
            stream.association.room() >= len || stream.association.buffered() == 0
        })?;
        let now = self.wire.now();
        self.association.send(now, send, SctpData::Bytes(data))?;
        self.turn(Wait::ZERO)
    }

    /// The next message; `None` at the end of the association.
    ///
    /// # Errors
    /// If there is none within `patience`, or the association breaks.
    pub fn receive(&mut self, patience: Wait) -> Result<Option<SctpMessage>, SctpError> {
        let begin = Instant::now();
        loop {
            let now = self.wire.now();
            if let Some(message) = self.association.receive(now) {
                return Ok(Some(message));
            }
            if self.is_closed {
                return Ok(None);
            }
            if begin.elapsed() >= patience {
                return Err(SctpError::TimedOut(patience));
            }
            self.turn(LONGEST_WAIT.min(patience))?;
        }
    }

    /// Closes the association, and waits until the peer has all messages.
    ///
    /// # Errors
    /// If that takes longer than `patience`.
    pub fn close(mut self, patience: Wait) -> Result<SctpStats, SctpError> {
        let now = self.wire.now();
        self.association.close(now);
        self.run_until(patience, |stream| stream.is_closed)?;
        Ok(self.association.stats())
    }

    /// Its counters.
    pub fn stats(&self) -> SctpStats {
        self.association.stats()
    }

    fn run_until(
        &mut self,
        patience: Wait,
        until: impl Fn(&Self) -> bool,
    ) -> Result<(), SctpError> {
        let begin = Instant::now();
        loop {
            self.turn(Wait::ZERO)?;
            if until(self) {
                return Ok(());
            }
            if begin.elapsed() >= patience {
                return Err(SctpError::TimedOut(patience));
            }
            self.turn(LONGEST_WAIT.min(patience))?;
        }
    }

    /// Sends what is due, and takes what comes within `wait`.
    fn turn(&mut self, wait: Wait) -> Result<(), SctpError> {
        self.flush()?;
        let now = self.wire.now();
        let due = self
            .association
            .timeout()
            .map_or(wait, |(at, _)| wait.min(Wait::from_nanos(at.since(now).as_nanos())));
        let mut wait = due;
        for _ in 0..BATCH {
            let Some((from, packet)) = self.wire.receive(wait)? else { break };
            wait = Wait::ZERO;
            let is_own = packet.tag == self.association.tag();
            if is_own {
                self.wire.peer = from;
            }
            let ends = [self.wire.local, from.ip()];
            self.association.handle(self.wire.now(), ends, &packet, false);
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), SctpError> {
        let now = self.wire.now();
        while let Some(transmit) = self.association.poll(now) {
            self.wire.send(&transmit.packet)?;
        }
        while let Some(event) = self.association.event() {
            match event {
                SctpEvent::Closed => self.is_closed = true,
                SctpEvent::Aborted(reason) => {
                    self.is_closed = true;
                    return Err(SctpError::Aborted(reason));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A socket that waits for one association. Nothing is kept of a peer before it has echoed a
/// cookie.
#[derive(Debug)]
pub struct SctpListener {
    wire: Wire,
    config: SctpConfig,
}

impl SctpListener {
    /// Listens on a socket.
    ///
    /// # Errors
    /// If the socket has no address.
    pub fn new(socket: UdpSocket, config: SctpConfig) -> io::Result<Self> {
        let peer = socket.local_addr()?;
        let wire = Wire::of(socket, peer)?;
        let config = over_udp(config, wire.local);
        Ok(Self { wire, config })
    }

    /// The address in UDP.
    ///
    /// # Errors
    /// If the socket has none.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.wire.socket.local_addr()
    }

    /// Waits for the association, and gives it the socket.
    ///
    /// # Errors
    /// If none comes within `patience`.
    pub fn accept(mut self, patience: Wait) -> Result<SctpStream, SctpError> {
        let begin = Instant::now();
        while begin.elapsed() < patience {
            let Some((from, packet)) = self.wire.receive(LONGEST_WAIT)? else { continue };
            let (now, ends) = (self.wire.now(), [self.wire.local, from.ip()]);
            self.wire.peer = from;
            match SctpAssociation::accept(now, self.config.clone(), ends, &packet) {
                Ok(association) => {
                    let mut stream = SctpStream { wire: self.wire, association, is_closed: false };
                    stream.turn(Wait::ZERO)?;
                    return Ok(stream);
                }
                Err(answer) => {
                    let respond = || respond_without_state(now, &self.config, ends, &packet);
                    if let Some(answer) = answer.or_else(respond) {
                        self.wire.send(&answer)?;
                    }
                }
            }
        }
        Err(SctpError::TimedOut(patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Wait = Wait::from_secs(20);

    fn config() -> SctpConfig {
        SctpConfig::new(random_secret().expect("randomness"))
    }

    fn content(number: u32) -> Bytes {
        let len = 1 + (number as usize * 7919) % 60_000;
        (0..len).map(|at| (at as u32 ^ number) as u8).collect::<Vec<u8>>().into()
    }

    #[test]
    fn messages_cross_real_sockets_and_come_back() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let listener = SctpListener::new(socket, config()).expect("a listener");
        let peer = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept(PATIENCE).expect("an association");
            while let Some(message) = stream.receive(PATIENCE).expect("messages") {
                let SctpData::Bytes(bytes) = message.data else { panic!("bytes were sent") };
                let send = SctpSend { stream: message.stream, ..SctpSend::default() };
                stream.send(send, bytes, PATIENCE).expect("it is sent back");
            }
            stream.stats().messages_received
        });
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut client =
            SctpStream::connect(socket, peer, config(), PATIENCE).expect("a connection");
        for number in 0..200 {
            let send = SctpSend { stream: (number % 4) as u16, ..SctpSend::default() };
            client.send(send, content(number), PATIENCE).expect("it is sent");
            let back = client.receive(PATIENCE).expect("an answer").expect("not the end");
            assert_eq!(back.data, SctpData::Bytes(content(number)), "message {number}");
        }
        let stats = client.close(PATIENCE).expect("a close");
        assert_eq!(stats.messages_received, 200);
        assert_eq!(server.join().expect("the server ends well"), 200);
    }
}
