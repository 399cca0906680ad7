use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration as Wait;

use bytes::Bytes;
use fontis_base::Ecn;
use fontis_proto::dccp::{DccpConnection, DccpData, DccpEvent, DccpPath, DccpStats, ResetCode};
use tokio::sync::{Mutex, Notify, mpsc, watch};

use super::DccpError;
use super::socket::{DccpSocket, Ends, Held, Incoming, Reader};
use crate::udp::Trains;

/// Datagrams that wait for the application; what comes beyond that is lost, as in any queue.
const MOST_UNREAD: usize = 1024;
/// Packets that are read before others are sent.
const BATCH: usize = 64;
/// The longest that a driver sleeps without a timer.
const LONGEST: Wait = Wait::from_secs(3600);

/// A connection of DCCP. It is closed when it is dropped.
pub struct DccpStream {
    core: Arc<Core>,
    unread: Mutex<mpsc::Receiver<Held<Bytes>>>,
    state: watch::Receiver<Phase>,
    reader: StdMutex<Option<Arc<Reader>>>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Connected,
    Closed,
    Aborted(ResetCode),
}

/// The way of a connection's packets.
pub(super) struct Wire {
    pub(super) socket: Arc<DccpSocket>,
    pub(super) ends: Ends,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.socket.connections().remove(&self.ends);
    }
}

/// What the application and the driver of a connection share.
struct Core {
    connection: StdMutex<DccpConnection>,
    /// The driver has something to do.
    changed: Notify,
}

impl Core {
    fn connection(&self) -> MutexGuard<'_, DccpConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DccpStream {
    /// Starts a connection's driver. `reader` reads the socket while the connection lives.
    pub(super) fn start(
        connection: DccpConnection,
        wire: Wire,
        packets: mpsc::Receiver<Held<Incoming>>,
        reader: Option<Arc<Reader>>,
    ) -> Self {
        let connection = StdMutex::new(connection);
        let core = Arc::new(Core { connection, changed: Notify::new() });
        let (inbox, unread) = mpsc::channel(MOST_UNREAD);
        let (tell, state) = watch::channel(Phase::Connecting);
        tokio::spawn(drive(Arc::clone(&core), wire, packets, inbox, tell));
        Self { core, unread: Mutex::new(unread), state, reader: StdMutex::new(reader) }
    }

    /// Reads the socket while the connection lives.
    pub(super) fn keep(&self, reader: Arc<Reader>) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// Waits until the handshake is done.
    pub(super) async fn connected(&self) -> Result<(), DccpError> {
        let mut state = self.state.clone();
        let phase = state.wait_for(|phase| *phase != Phase::Connecting).await;
        match phase.map(|phase| *phase) {
            Ok(Phase::Connected | Phase::Connecting) => Ok(()),
            Ok(Phase::Aborted(code)) => Err(DccpError::Aborted(code)),
            Ok(Phase::Closed) | Err(_) => Err(DccpError::Closed),
        }
    }

    /// Hands over a datagram. False if the queue had no room: it dropped this one or the oldest, as
    /// the configuration says.
    ///
    /// # Errors
    /// If the connection is over, or the datagram is longer than [`DccpStream::most_data`].
    pub fn send(&self, datagram: Bytes) -> Result<bool, DccpError> {
        match *self.state.borrow() {
            Phase::Connecting | Phase::Connected => {}
            Phase::Closed => return Err(DccpError::Closed),
            Phase::Aborted(code) => return Err(DccpError::Aborted(code)),
        }
        let had_room = self.core.connection().send(DccpData::Bytes(datagram))?;
        self.core.changed.notify_one();
        Ok(had_room)
    }

    /// The next datagram; `None` when the connection is over.
    pub async fn recv(&self) -> Option<Bytes> {
        Some(self.unread.lock().await.recv().await?.content)
    }

    /// Datagrams that the queue of this end has room for.
    pub fn room(&self) -> usize {
        self.core.connection().room()
    }

    /// The maximum packet size: bytes of the longest datagram that the path carries, as far as it
    /// is known. It grows and falls while the connection lives; no packet is cut on its way.
    pub fn most_data(&self) -> u32 {
        self.core.connection().most_data().unwrap_or(u32::MAX)
    }

    /// The state of the path that this end sends over: the rate that it may use, and the loss event
    /// rate, from which an application can choose its own rate or refuse a call.
    pub fn path(&self) -> DccpPath {
        self.core.connection().path()
    }

    /// Its counters.
    pub fn stats(&self) -> DccpStats {
        self.core.connection().stats()
    }

    /// Closes the connection when what waits has been sent, and waits for the peer's agreement.
    ///
    /// # Errors
    /// If the peer broke it off or does not answer.
    pub async fn close(self) -> Result<DccpStats, DccpError> {
        self.core.connection().close();
        self.core.changed.notify_one();
        let mut state = self.state.clone();
        let is_over = |phase: &Phase| matches!(phase, Phase::Closed | Phase::Aborted(_));
        let phase = state.wait_for(is_over).await.map(|phase| *phase);
        match phase {
            Ok(Phase::Aborted(code)) => Err(DccpError::Aborted(code)),
            _ => Ok(self.stats()),
        }
    }
}

impl Drop for DccpStream {
    fn drop(&mut self) {
        self.core.connection().close();
        self.core.changed.notify_one();
    }
}

/// Runs a connection until nothing is left to do.
async fn drive(
    core: Arc<Core>,
    wire: Wire,
    mut packets: mpsc::Receiver<Held<Incoming>>,
    inbox: mpsc::Sender<Held<Bytes>>,
    tell: watch::Sender<Phase>,
) {
    let socket = &wire.socket;
    // The application's end of the datagrams is dropped with the connection, so that it sees the
    // end, while the connection itself is remembered for a while.
    let mut inbox = Some(inbox);
    let mut out = Trains::default();
    loop {
        let now = socket.now();
        let (due, is_over) = {
            let mut connection = core.connection();
            while let Some(packet) = connection.poll(now) {
                let is_data = packet.body.carries_data() && connection.may_be_marked();
                let ecn = if is_data { Ecn::Ect0 } else { Ecn::NotEct };
                socket.add(&mut out, wire.ends.peer, &packet, ecn);
            }
            while let Some(data) = connection.receive() {
                let (DccpData::Bytes(bytes), Some(inbox)) = (data, &inbox) else { continue };
                let len = bytes.len();
                let held = socket.hold(bytes, len);
                if held.is_none_or(|held| inbox.try_send(held).is_err()) {
                    connection.on_slow();
                }
            }
            while let Some(event) = connection.event() {
                let phase = match event {
                    DccpEvent::Connected => Phase::Connected,
                    DccpEvent::Closed => Phase::Closed,
                    DccpEvent::Aborted(code) => Phase::Aborted(code),
                };
                if phase != Phase::Connected {
                    inbox = None;
                }
                tell.send_replace(phase);
            }
            (connection.timeout(), connection.is_closed())
        };
        socket.io.send(&mut out).await;
        if is_over {
            return;
        }
        let wait = due.map_or(LONGEST, |(at, _)| at.since(socket.now()).into());
        tokio::select! {
            packet = packets.recv() => {
                let Some(packet) = packet else { return };
                let now = socket.now();
                let mut connection = core.connection();
                let (packet, is_marked) = &packet.content;
                connection.handle(now, packet, *is_marked);
                for _ in 0..BATCH {
                    let Ok(packet) = packets.try_recv() else { break };
                    let (packet, is_marked) = &packet.content;
                    connection.handle(now, packet, *is_marked);
                }
            }
            () = core.changed.notified() => {}
            () = tokio::time::sleep(wait.min(LONGEST)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fontis_proto::dccp::{Ccid, DccpConfig};

    use super::super::endpoint::DccpEndpoint;
    use super::*;

    const PATIENCE: Wait = Wait::from_secs(20);

    fn config(ccid: Ccid, port: u16, peer_port: u16) -> DccpConfig {
        DccpConfig {
            ccid,
            port,
            peer_port,
            service: 0x5650_4354,
            queue: 64,
            ..DccpConfig::default()
        }
    }

    /// An echo server, and an endpoint to reach it from.
    async fn echo(ccid: Ccid) -> (DccpEndpoint, std::net::SocketAddr) {
        let any = "127.0.0.1:0".parse().expect("an address");
        let server = DccpEndpoint::bind(any).expect("a socket");
        let address = server.local_addr().expect("an address");
        let mut listener = server.listen(config(ccid, 5004, 0)).expect("randomness");
        tokio::spawn(async move {
            while let Some(stream) = listener.accept().await {
                tokio::spawn(async move {
                    while let Some(datagram) = stream.recv().await {
                        let _ = stream.send(datagram);
                    }
                });
            }
        });
        (DccpEndpoint::bind(any).expect("a socket"), address)
    }

    #[tokio::test]
    async fn datagrams_of_several_connections_come_back_over_real_sockets() {
        for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
            let (client, server) = echo(ccid).await;
            for port in [6000, 6001] {
                let config = config(ccid, port, 5004);
                let stream = tokio::time::timeout(PATIENCE, client.connect(server, config)).await;
                let stream = stream.expect("in time").expect("it is accepted");
                for number in 0..40_u8 {
                    let sent = Bytes::from(vec![number ^ port as u8; 100 + usize::from(number)]);
                    assert!(stream.send(sent.clone()).expect("it is open"), "{ccid:?}");
                    let back = tokio::time::timeout(PATIENCE, stream.recv()).await;
                    assert_eq!(back.expect("in time"), Some(sent), "{ccid:?} {number}");
                }
                assert!(stream.path().rtt.is_some());
                let stats = tokio::time::timeout(PATIENCE, stream.close()).await;
                assert_eq!(stats.expect("in time").expect("a close").data_received, 40);
            }
        }
    }

    #[tokio::test]
    async fn packets_longer_than_the_path_carries_are_refused_over_real_sockets() {
        let (client, server) = echo(Ccid::Two).await;
        for (most_packet, least, most) in [(0, 1400, 1440), (9000, 8900, 8940)] {
            let config = DccpConfig { most_packet, ..config(Ccid::Two, 6000 + least, 5004) };
            let stream = client.connect(server, config).await.expect("it is accepted");
            let found = async {
                while stream.most_data() < u32::from(least) {
                    tokio::time::sleep(Wait::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, found).await.expect("loopback carries all");
            let longest = stream.most_data();
            assert!(longest <= most, "{longest}");
            let sent = Bytes::from(vec![7; longest as usize]);
            // What comes back must pass, too, which the server finds for itself.
            if most_packet == 0 {
                assert!(stream.send(sent.clone()).expect("it fits"));
                let back = tokio::time::timeout(PATIENCE, stream.recv()).await;
                assert_eq!(back.expect("in time"), Some(sent));
            }
            let error = stream.send(Bytes::from(vec![7; longest as usize + 1])).err();
            assert!(matches!(error, Some(DccpError::TooLarge(_))), "{error:?}");
        }
    }

    #[tokio::test]
    async fn the_wrong_service_is_refused_and_ports_are_taken_once() {
        let (client, server) = echo(Ccid::Two).await;
        let wrong = DccpConfig { service: 7, ..config(Ccid::Two, 6000, 5004) };
        let refused = tokio::time::timeout(PATIENCE, client.connect(server, wrong)).await;
        let refused = refused.expect("in time").err();
        assert!(
            matches!(refused, Some(DccpError::Aborted(ResetCode::BadServiceCode))),
            "{refused:?}"
        );
        let config = config(Ccid::Two, 6001, 5004);
        let _stream = client.connect(server, config.clone()).await.expect("it is accepted");
        let again = client.connect(server, config).await.err();
        assert!(matches!(again, Some(DccpError::Taken { port: 6001, .. })), "{again:?}");
    }
}
