//! The protected way to the peer: ICE finds it, DTLS protects it. It owns no socket.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Config, Dtls, DtlsCertificate, Output};
use is::stun::{StunMessage, StunPacket};
use is::{Candidate, IceAgent, IceAgentEvent, IceCreds, Protocol};

use crate::description::{Description, Setup};
use crate::{RtcError, certificate};

/// The most addresses of the peer from which DTLS is taken.
const MOST_SOURCES: usize = 64;
/// Bytes of the longest record that is sent.
const RECORD: usize = 2048;

/// A datagram that leaves.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

/// What comes out of the link.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// The peer has proved who it is: data can be sent.
    Ready,
    Data(Bytes),
    /// The peer has closed.
    Closed,
}

pub(crate) struct Link {
    ice: IceAgent,
    dtls: Dtls,
    /// What the peer has said of itself.
    peer: Option<Description>,
    /// Whether this end is the client of DTLS, once that is settled.
    is_client: Option<bool>,
    /// Whether the peer's certificate is the right one.
    is_proved: bool,
    /// The own address and the peer's that packets use.
    route: Option<[SocketAddr; 2]>,
    /// Addresses from which the peer has shown that it knows the password.
    sources: BTreeSet<SocketAddr>,
    /// Since when no way carries.
    lost_at: Option<Instant>,
    due: Option<Instant>,
    pub(crate) datagrams: Vec<Datagram>,
    pub(crate) events: VecDeque<LinkEvent>,
    buffer: Vec<u8>,
}

fn failed(error: &dimpl::Error) -> RtcError {
    RtcError::Dtls(error.to_string())
}

impl Link {
    pub(crate) fn new(
        now: Instant,
        credentials: IceCreds,
        certificate: DtlsCertificate,
        locals: &[SocketAddr],
    ) -> Self {
        let mut ice = IceAgent::new(credentials);
        for local in locals {
            if let Ok(candidate) = Candidate::host(*local, "udp") {
                ice.add_local_candidate(candidate);
            }
        }
        let dtls = Dtls::new_auto(Arc::new(Config::default()), certificate, now);
        Self {
            ice,
            dtls,
            peer: None,
            is_client: None,
            is_proved: false,
            route: None,
            sources: BTreeSet::new(),
            lost_at: None,
            due: None,
            datagrams: Vec::new(),
            events: VecDeque::new(),
            buffer: vec![0; RECORD],
        }
    }

    /// The candidates of this end.
    pub(crate) fn candidates(&self) -> Vec<String> {
        self.ice.local_candidates().map(|candidate| candidate.to_sdp_string()).collect()
    }

    /// What the peer has said of itself.
    pub(crate) const fn peer(&self) -> Option<&Description> {
        self.peer.as_ref()
    }

    /// Whether this end is the client of DTLS.
    pub(crate) fn is_client(&self) -> bool {
        self.is_client == Some(true)
    }

    /// Since when no way carries, if none does.
    pub(crate) const fn lost_at(&self) -> Option<Instant> {
        self.lost_at
    }

    /// Begins with what the peer says of itself. The end that made the offer controls ICE.
    pub(crate) fn begin(&mut self, peer: Description, offers: bool) {
        self.ice.set_controlling(offers);
        self.ice.set_remote_credentials(peer.credentials.clone());
        peer.usable().for_each(|candidate| self.ice.add_remote_candidate(candidate));
        // An answer to "either" begins, so that the offer's end has nothing to wait for.
        self.is_client = Some(peer.setup != Setup::Active);
        self.peer = Some(peer);
    }

    /// Another candidate of the peer.
    pub(crate) fn add_candidate(&mut self, candidate: Candidate) {
        self.ice.add_remote_candidate(candidate);
    }

    /// Takes a datagram that came to `local`.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        local: SocketAddr,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Result<(), RtcError> {
        // What it is the first byte tells (RFC 7983).
        match bytes.first() {
            Some(0..=3) => {
                let Ok(message) = StunMessage::parse(bytes) else { return Ok(()) };
                if self.peer.is_some() && self.ice.accepts_message(&message) {
                    let (source, destination) = (from, local);
                    let proto = Protocol::Udp;
                    let packet = StunPacket { proto, source, destination, message };
                    self.ice.handle_packet(now, packet);
                }
                self.after_ice();
                Ok(())
            }
            Some(20..=63) if self.sources.contains(&from) && self.is_client.is_some() => {
                self.route.get_or_insert([local, from]);
                self.dtls.handle_timeout(now).map_err(|error| failed(&error))?;
                self.dtls.handle_packet(bytes).map_err(|error| failed(&error))?;
                self.drain()
            }
            _ => Ok(()),
        }
    }

    /// Does what is due.
    pub(crate) fn turn(&mut self, now: Instant) -> Result<(), RtcError> {
        if self.peer.is_none() {
            return Ok(());
        }
        self.ice.handle_timeout(now);
        self.after_ice();
        let is_down = self.ice.state().is_disconnected();
        self.lost_at = if is_down { self.lost_at.or(Some(now)) } else { None };
        if self.is_client() && self.route.is_some() && !self.dtls.is_active() {
            self.dtls.set_active(true);
        }
        // A client waits until it has a way.
        if self.route.is_some() {
            self.dtls.handle_timeout(now).map_err(|error| failed(&error))?;
            self.drain()?;
        }
        Ok(())
    }

    /// When [`Link::turn`] is due.
    pub(crate) fn timeout(&mut self) -> Option<Instant> {
        self.peer.as_ref()?;
        [self.ice.poll_timeout(), self.due].into_iter().flatten().min()
    }

    /// Sends data to a peer that has proved who it is.
    pub(crate) fn send(&mut self, data: &[u8]) -> Result<(), RtcError> {
        self.dtls.send_application_data(data).map_err(|error| failed(&error))?;
        self.drain()
    }

    /// Tells the peer that nothing comes any more.
    pub(crate) fn close(&mut self) -> Result<(), RtcError> {
        self.dtls.close().map_err(|error| failed(&error))?;
        self.drain()
    }

    fn after_ice(&mut self) {
        while let Some(transmit) = self.ice.poll_transmit() {
            self.datagrams.push(Datagram {
                local: transmit.source,
                peer: transmit.destination,
                bytes: transmit.contents.into(),
            });
        }
        while let Some(event) = self.ice.poll_event() {
            match event {
                IceAgentEvent::DiscoveredRecv { source, .. } => {
                    if self.sources.len() < MOST_SOURCES {
                        self.sources.insert(source);
                    }
                }
                IceAgentEvent::NominatedSend { source, destination, .. } => {
                    self.route = Some([source, destination]);
                }
                IceAgentEvent::IceRestart(_) | IceAgentEvent::IceConnectionStateChange(_) => {}
            }
        }
    }

    /// Takes what DTLS gives.
    fn drain(&mut self) -> Result<(), RtcError> {
        loop {
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(bytes) => {
                    if let Some([local, peer]) = self.route {
                        self.datagrams.push(Datagram { local, peer, bytes: bytes.to_vec() });
                    }
                }
                Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                Output::Timeout(at) => {
                    self.due = Some(at);
                    return Ok(());
                }
                Output::PeerCert(der) => {
                    let named = self.peer.as_ref().map(|peer| &peer.fingerprint);
                    if named != Some(&certificate::fingerprint(der)) {
                        return Err(RtcError::Stranger);
                    }
                    self.is_proved = true;
                }
                Output::Connected => {
                    if !self.is_proved {
                        return Err(RtcError::Stranger);
                    }
                    self.events.push_back(LinkEvent::Ready);
                }
                Output::ApplicationData(data) if self.is_proved => {
                    self.events.push_back(LinkEvent::Data(Bytes::copy_from_slice(data)));
                }
                Output::CloseNotify => self.events.push_back(LinkEvent::Closed),
                _ => {}
            }
        }
    }
}

/// How long a driver sleeps at most, without a timer.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);
