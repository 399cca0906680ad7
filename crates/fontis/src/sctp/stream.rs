use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use fontis_proto::sctp::{AddressChange, SctpData, SctpMessage, SctpPath, SctpSend, SctpStats};

use super::SctpError;
use super::core::{Core, Phase};
use super::socket::{Readers, Sockets};

/// An association of SCTP. It is closed when it is dropped, and what comes after that is lost.
pub struct SctpStream {
    core: Arc<Core>,
    sockets: Arc<Sockets>,
}

impl SctpStream {
    /// The stream of an association whose driver runs.
    pub(super) fn new(core: Arc<Core>, sockets: Arc<Sockets>, readers: Arc<Readers>) -> Self {
        core.inner().readers = Some(readers);
        Self { core, sockets }
    }

    /// Waits for the end of the handshake.
    pub(super) async fn connected(&self) -> Result<(), SctpError> {
        self.core
            .until(|inner| match inner.phase {
                Phase::Connecting => None,
                _ => Some(inner.check()),
            })
            .await
    }

    /// Sends a message. Waits until the buffer has room for it.
    ///
    /// # Errors
    /// If it cannot be sent, or the association is over.
    pub async fn send(&self, send: SctpSend, data: Bytes) -> Result<(), SctpError> {
        let len = data.len() as u64;
        let mut data = Some(data);
        let sent = self.core.until(|inner| {
            if let Err(error) = inner.check() {
                return Some(Err(error));
            }
            let association = &mut inner.association;
            if association.room() < len && association.buffered() > 0 {
                return None;
            }
            let data = SctpData::Bytes(data.take()?);
            Some(association.send(self.sockets.now(), send, data).map_err(SctpError::Send))
        });
        sent.await?;
        self.core.work.notify_one();
        Ok(())
    }

    /// Sends a message if the buffer has room for it, without waiting.
    ///
    /// # Errors
    /// If it has none, or the message cannot be sent.
    pub fn try_send(&self, send: SctpSend, data: Bytes) -> Result<(), SctpError> {
        let mut inner = self.core.inner();
        inner.check()?;
        inner.association.send(self.sockets.now(), send, SctpData::Bytes(data))?;
        drop(inner);
        self.core.work.notify_one();
        Ok(())
    }

    /// The next message; `None` when the association was closed.
    ///
    /// # Errors
    /// If the association was broken off. What came before that is given first.
    pub async fn recv(&self) -> Result<Option<SctpMessage>, SctpError> {
        let next = self.core.until(|inner| {
            if let Some(message) = inner.association.receive(self.sockets.now()) {
                return Some(Ok(Some(message)));
            }
            match inner.check() {
                Ok(()) => None,
                Err(SctpError::Closed) => Some(Ok(None)),
                Err(error) => Some(Err(error)),
            }
        });
        let message = next.await?;
        // The peer may have waited for room.
        if message.is_some() {
            self.core.work.notify_one();
        }
        Ok(message)
    }

    /// Bytes of messages that the peer has not acknowledged.
    pub fn buffered(&self) -> u64 {
        self.core.inner().association.buffered()
    }

    /// Waits until the peer has acknowledged all messages.
    ///
    /// # Errors
    /// If the association is over before.
    pub async fn flushed(&self) -> Result<(), SctpError> {
        self.core
            .until(|inner| match inner.association.buffered() {
                0 => Some(Ok(())),
                _ => inner.check().err().map(Err),
            })
            .await
    }

    /// Tells the peer of a change of this end's addresses, and waits for its answer (RFC 5061).
    /// Both ends must be configured for it ([`SctpConfig::dynamic`](
    /// fontis_proto::sctp::SctpConfig::dynamic)). A new address is one of the endpoint's sockets:
    /// [`SctpEndpoint::add_address`](super::SctpEndpoint::add_address) makes one.
    ///
    /// # Errors
    /// If no socket has the address, the change is not possible or the peer refuses it.
    pub async fn change_address(&self, change: AddressChange) -> Result<(), SctpError> {
        if let AddressChange::Add(address) = change
            && !self.sockets.has(address)
        {
            return Err(SctpError::NoSuchSocket { address });
        }
        self.ask(change)?;
        self.core.work.notify_one();
        let outcome = self.core.until(|inner| match inner.outcome(change) {
            Some(None) => Some(Ok(())),
            Some(Some(cause)) => Some(Err(SctpError::Refused { cause })),
            None => inner.check().err().map(Err),
        });
        outcome.await
    }

    fn ask(&self, change: AddressChange) -> Result<(), SctpError> {
        let mut inner = self.core.inner();
        inner.check()?;
        Ok(inner.association.change_address(change)?)
    }

    /// The addresses of this end that the peer knows, and those of the peer.
    pub fn addresses(&self) -> [Vec<IpAddr>; 2] {
        let inner = self.core.inner();
        let association = &inner.association;
        [association.own_addresses(), association.peer_addresses()].map(<[IpAddr]>::to_vec)
    }

    /// Its paths.
    pub fn paths(&self) -> Vec<SctpPath> {
        self.core.inner().association.paths().collect()
    }

    /// Its counters.
    pub fn stats(&self) -> SctpStats {
        self.core.inner().association.stats()
    }

    /// Closes the association when the peer has all messages, and waits for its agreement.
    ///
    /// # Errors
    /// If it was broken off.
    pub async fn close(self) -> Result<SctpStats, SctpError> {
        self.core.inner().association.close(self.sockets.now());
        self.core.work.notify_one();
        let closed = self.core.until(|inner| match inner.check() {
            Ok(()) => None,
            Err(SctpError::Closed) => Some(Ok(inner.association.stats())),
            Err(error) => Some(Err(error)),
        });
        closed.await
    }

    /// Breaks the association off: what was not acknowledged is lost.
    pub fn abort(self) {
        self.core.inner().association.abort();
    }
}

impl Drop for SctpStream {
    fn drop(&mut self) {
        let mut inner = self.core.inner();
        match inner.phase {
            // Nobody waits for the peer's answer any more.
            Phase::Connecting => inner.association.abort(),
            _ => inner.association.close(self.sockets.now()),
        }
        inner.is_abandoned = true;
        drop(inner);
        self.core.work.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration as Wait;

    use fontis_base::Duration;
    use fontis_proto::sctp::{
        AbortReason, CmtConfig, DynamicAddresses, Multipath, SctpConfig, SctpPathState, SctpTimers,
    };

    use super::super::endpoint::SctpEndpoint;
    use super::super::random_secret;
    use super::*;

    const PATIENCE: Wait = Wait::from_secs(20);

    fn config(ports: [u16; 2]) -> SctpConfig {
        SctpConfig { ports, ..SctpConfig::new(random_secret().expect("randomness")) }
    }

    fn content(number: u32) -> Bytes {
        let len = 1 + (number as usize * 7919) % 60_000;
        (0..len).map(|at| (at as u32 ^ number) as u8).collect::<Vec<u8>>().into()
    }

    fn bind(addresses: &[&str]) -> SctpEndpoint {
        let addresses: Vec<SocketAddr> =
            addresses.iter().map(|address| address.parse().expect("an address")).collect();
        SctpEndpoint::bind(&addresses).expect("sockets")
    }

    /// Serves echoes at port 7, and gives the endpoint's first address.
    fn echo(endpoint: &SctpEndpoint, config: SctpConfig) -> SocketAddr {
        let mut listener = endpoint.listen(config);
        tokio::spawn(async move {
            while let Some(stream) = listener.accept().await {
                tokio::spawn(async move {
                    while let Ok(Some(message)) = stream.recv().await {
                        let SctpData::Bytes(bytes) = message.data else { panic!("bytes came") };
                        let send = SctpSend { stream: message.stream, ..SctpSend::default() };
                        stream.send(send, bytes).await.expect("it is sent back");
                    }
                });
            }
        });
        endpoint.local_addrs().expect("addresses")[0]
    }

    async fn exchange(stream: &SctpStream, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            let send = SctpSend { stream: (number % 4) as u16, ..SctpSend::default() };
            stream.send(send, content(number)).await.expect("it is sent");
            let back = stream.recv().await.expect("an answer").expect("not the end");
            assert_eq!(back.data, SctpData::Bytes(content(number)), "message {number}");
        }
    }

    #[tokio::test]
    async fn messages_of_several_associations_come_back_over_one_socket() {
        let server = bind(&["127.0.0.1:0"]);
        let address = echo(&server, config([7, 0]));
        let client = bind(&["127.0.0.1:0"]);
        let talk = async {
            let mut streams = Vec::new();
            for _ in 0..3 {
                streams.push(client.connect(address, config([0, 7])).await.expect("a server"));
            }
            for round in 0..20 {
                for (at, stream) in (0_u32..).zip(&streams) {
                    exchange(stream, std::iter::once(round * 3 + at)).await;
                }
            }
            for stream in streams {
                assert_eq!(stream.close().await.expect("a close").messages_received, 20);
            }
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }

    #[tokio::test]
    async fn loopback_is_found_to_carry_jumbo_frames() {
        let config = |ports| SctpConfig { mtu: 1280, most_mtu: 9000, ..config(ports) };
        let server = bind(&["127.0.0.1:0"]);
        let address = echo(&server, config([7, 0]));
        let talk = async {
            let client = bind(&["127.0.0.1:0"]);
            let stream = client.connect(address, config([0, 7])).await.expect("a server");
            let mut number = 0;
            while stream.paths()[0].mtu < 9000 {
                exchange(&stream, number..number + 10).await;
                number += 10;
            }
            exchange(&stream, number..number + 10).await;
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }

    #[tokio::test]
    async fn clients_behind_one_address_may_have_the_same_ports() {
        let server = bind(&["127.0.0.1:0"]);
        let address = echo(&server, config([7, 0]));
        let talk = async {
            let clients = [bind(&["127.0.0.1:0"]), bind(&["127.0.0.1:0"])];
            let mut streams = Vec::new();
            for client in &clients {
                let stream = client.connect(address, config([5000, 7])).await.expect("a server");
                exchange(&stream, 0..3).await;
                streams.push(stream);
            }
            for stream in streams {
                exchange(&stream, 3..6).await;
                assert_eq!(stream.close().await.expect("a close").messages_received, 6);
            }
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }

    #[tokio::test]
    async fn what_was_sent_before_everything_was_dropped_arrives() {
        let server = bind(&["127.0.0.1:0"]);
        let mut listener = server.listen(config([7, 0]));
        let address = server.local_addrs().expect("addresses")[0];
        let talk = async {
            let client = bind(&["127.0.0.1:0"]);
            let stream = client.connect(address, config([0, 7])).await.expect("a server");
            for number in 0..20 {
                stream.send(SctpSend::default(), content(number)).await.expect("it is sent");
            }
            drop(stream);
            drop(client);
            let stream = listener.accept().await.expect("a client");
            for number in 0..20 {
                let message = stream.recv().await.expect("no failure").expect("not the end");
                assert_eq!(message.data, SctpData::Bytes(content(number)));
            }
            assert_eq!(stream.recv().await.expect("a close"), None);
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }

    #[tokio::test]
    async fn two_addresses_are_two_paths_that_carry_data_at_once() {
        let concurrent = |ports| SctpConfig {
            multipath: Multipath::Concurrent(CmtConfig::default()),
            ..config(ports)
        };
        let server = bind(&["127.0.0.1:0", "127.0.0.2:0"]);
        let address = echo(&server, concurrent([7, 0]));
        let client = bind(&["127.0.0.3:0", "127.0.0.4:0"]);
        let talk = async {
            let stream = client.connect(address, concurrent([0, 7])).await.expect("a server");
            exchange(&stream, 0..50).await;
            let paths = stream.paths();
            let ends: Vec<String> =
                paths.iter().map(|path| path.ends.map(|end| end.to_string()).join(" ")).collect();
            assert_eq!(ends, ["127.0.0.3 127.0.0.1", "127.0.0.4 127.0.0.2"]);
            for path in &paths {
                assert_eq!(path.state, SctpPathState::Active);
                assert!(path.sent > 100_000, "both carry: {paths:?}");
            }
            stream.close().await.expect("a close");
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }

    #[tokio::test]
    async fn a_client_moves_from_one_address_to_another() {
        let dynamic = |ports| SctpConfig {
            dynamic: DynamicAddresses::Authenticated,
            timers: SctpTimers { least: Duration::from_millis(50), ..SctpTimers::default() },
            ..config(ports)
        };
        let server = bind(&["127.0.0.1:0"]);
        let address = echo(&server, dynamic([7, 0]));
        let client = bind(&["127.0.0.2:0"]);
        let [old, new] = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().expect("an address"));
        let talk = async {
            let stream = client.connect(address, dynamic([0, 7])).await.expect("a server");
            exchange(&stream, 0..20).await;
            let absent = stream.change_address(AddressChange::Add(new)).await;
            assert!(matches!(absent, Err(SctpError::NoSuchSocket { .. })), "{absent:?}");
            client.add_address((new, 0).into(), None).expect("a socket");
            stream.change_address(AddressChange::Add(new)).await.expect("it is added");
            exchange(&stream, 20..40).await;
            stream.change_address(AddressChange::Remove(old)).await.expect("it is removed");
            exchange(&stream, 40..60).await;
            assert_eq!(stream.addresses(), [vec![new], vec![address.ip()]]);
            let last = stream.change_address(AddressChange::Remove(new)).await;
            assert!(matches!(last, Err(SctpError::Address(_))), "{last:?}");
            let carried: Vec<u64> = stream.paths().iter().map(|path| path.sent).collect();
            assert!(carried[1] > 100_000, "{carried:?}");
            stream.close().await.expect("a close");
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }

    #[tokio::test]
    async fn what_nobody_accepts_is_refused_and_ports_are_taken_once() {
        let server = bind(&["127.0.0.1:0"]);
        let address = echo(&server, config([7, 0]));
        let client = bind(&["127.0.0.1:0"]);
        let talk = async {
            let refused = client.connect(address, config([5000, 8])).await.err();
            let is_refused = matches!(refused, Some(SctpError::Aborted(AbortReason::Peer(_))));
            assert!(is_refused, "{refused:?}");
            let stream = client.connect(address, config([5000, 7])).await.expect("a server");
            let again = client.connect(address, config([5000, 7])).await.err();
            assert!(matches!(again, Some(SctpError::Taken { .. })), "{again:?}");
            drop(stream);
            // A dropped association is closed, and its ports are free again.
            while client.connect(address, config([5000, 7])).await.is_err() {
                tokio::time::sleep(Wait::from_millis(5)).await;
            }
            let absent = "[::1]:9".parse().expect("an address");
            let absent = client.connect(absent, config([0, 7])).await.err();
            assert!(matches!(absent, Some(SctpError::NoSocket { .. })), "{absent:?}");
        };
        tokio::time::timeout(PATIENCE, talk).await.expect("in time");
    }
}
