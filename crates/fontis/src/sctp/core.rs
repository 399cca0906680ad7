use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Wait;

use fontis_base::Ecn;
use fontis_proto::sctp::{
    AbortReason, AddressChange, SctpAssociation, SctpEvent, SctpPacket, SctpPathState,
};
use tokio::sync::Notify;

use super::SctpError;
use super::socket::{Departures, Readers, Sockets};
use super::table::{Ends, Table};
use crate::udp::Leaves;

/// The longest that a driver sleeps without a timer.
const LONGEST: Wait = Wait::from_secs(3600);

/// Outcomes of changes of addresses that wait for the application at most.
const MOST_CHANGES: usize = 64;

/// What the application, the readers and the driver of an association share.
pub(super) struct Core {
    inner: Mutex<Inner>,
    /// The driver has something to do.
    pub(super) work: Notify,
    /// The application may have something to do.
    changed: Notify,
}

pub(super) struct Inner {
    pub(super) association: SctpAssociation,
    pub(super) phase: Phase,
    /// The application is gone: what comes is dropped.
    pub(super) is_abandoned: bool,
    /// The tag and the ends under which it stands in the table.
    entered: (u32, Vec<Ends>),
    /// Read the sockets until the association is over.
    pub(super) readers: Option<Arc<Readers>>,
    /// Its own port, and that of the peer.
    ports: [u16; 2],
    /// The port in UDP of the peer's addresses: that of the last valid packet from there (RFC 6951
    /// section 5.4), and of the first one from anywhere.
    udp_port: u16,
    udp_ports: HashMap<IpAddr, u16>,
    /// What became of changes of addresses that the application has asked for.
    changes: VecDeque<(AddressChange, Option<u16>)>,
}

/// How far an association has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Connected,
    Closed,
    Aborted(AbortReason),
}

impl Core {
    pub(super) fn new(association: SctpAssociation, ports: [u16; 2], udp_port: u16) -> Arc<Self> {
        let entered = (association.tag(), Vec::new());
        let is_connected = association.is_connected();
        let phase = if is_connected { Phase::Connected } else { Phase::Connecting };
        Arc::new(Self {
            inner: Mutex::new(Inner {
                association,
                phase,
                is_abandoned: false,
                entered,
                readers: None,
                ports,
                udp_port,
                udp_ports: HashMap::new(),
                changes: VecDeque::new(),
            }),
            work: Notify::new(),
            changed: Notify::new(),
        })
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` gives something.
    pub(super) async fn until<T>(&self, mut ready: impl FnMut(&mut Inner) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // What changes from here on wakes this task.
            changed.as_mut().enable();
            if let Some(done) = ready(&mut self.inner()) {
                return done;
            }
            changed.await;
        }
    }

    /// Takes a packet, which came to `local`.
    pub(super) fn take(
        &self,
        sockets: &Sockets,
        local: IpAddr,
        from: SocketAddr,
        packet: &SctpPacket,
        ecn: Ecn,
    ) {
        let mut inner = self.inner();
        let is_own = packet.tag == inner.association.tag();
        let now = sockets.now();
        inner.association.handle(now, [local, from.ip()], packet, ecn == Ecn::Ce);
        // The packet may be what made the address the peer's.
        if is_own && inner.association.peer_addresses().contains(&from.ip()) {
            inner.udp_ports.insert(from.ip(), from.port());
        }
    }

    /// Starts the driver.
    pub(super) fn start(self: Arc<Self>, sockets: Arc<Sockets>, table: Arc<Table<Self>>) {
        tokio::spawn(self.drive(sockets, table));
    }

    /// Runs the association until nothing is left to do.
    async fn drive(self: Arc<Self>, sockets: Arc<Sockets>, table: Arc<Table<Self>>) {
        let mut departures = sockets.departures();
        loop {
            let (due, is_over) = self.turn(&sockets, &table, &mut departures);
            self.changed.notify_waiters();
            sockets.send(&mut departures).await;
            if is_over {
                break;
            }
            tokio::select! {
                () = self.work.notified() => {}
                () = tokio::time::sleep(due) => {}
            }
        }
        let mut inner = self.inner();
        table.remove(inner.entered.0);
        inner.readers = None;
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Collects what is to be sent; returns how long the next turn may wait, and whether all is
    /// over.
    fn turn(
        self: &Arc<Self>,
        sockets: &Sockets,
        table: &Table<Self>,
        departures: &mut Departures,
    ) -> (Wait, bool) {
        let mut inner = self.inner();
        let now = sockets.now();
        if inner.is_abandoned {
            while inner.association.receive(now).is_some() {}
        }
        while let Some(transmit) = inner.association.poll(now) {
            let to = inner.in_udp(transmit.peer);
            let ecn = if transmit.ecn { Ecn::Ect0 } else { Ecn::NotEct };
            let leaves = match (transmit.is_probe, transmit.may_fragment) {
                (true, _) => Leaves::Alone,
                (false, true) => Leaves::InPieces,
                (false, false) => Leaves::Together,
            };
            sockets.depart(departures, transmit.local, to, &transmit.packet, (ecn, leaves));
        }
        while let Some(event) = inner.association.event() {
            inner.phase = match event {
                SctpEvent::Connected => Phase::Connected,
                SctpEvent::Closed => Phase::Closed,
                SctpEvent::Aborted(reason) => Phase::Aborted(reason),
                SctpEvent::AddressChanged(change) => {
                    inner.note(change, None);
                    continue;
                }
                SctpEvent::AddressRefused(change, cause) => {
                    inner.note(change, Some(cause));
                    continue;
                }
                SctpEvent::PeerAddress(AddressChange::Remove(address)) => {
                    inner.udp_ports.remove(&address);
                    continue;
                }
                SctpEvent::Restarted
                | SctpEvent::PeerFinished
                | SctpEvent::PeerReset(_)
                | SctpEvent::Reset(_)
                | SctpEvent::ResetRefused(_)
                | SctpEvent::PeerAddress(_)
                | SctpEvent::PathUp(_)
                | SctpEvent::PathDown(_) => continue,
            };
        }
        let is_over = inner.association.is_closed();
        // A restart changes the tag, and the peer's other addresses answer.
        let place = (inner.association.tag(), inner.ends());
        if !is_over && inner.entered != place {
            table.replace(self, inner.entered.0, place.0, &place.1);
            inner.entered = place;
        }
        let due = inner.association.timeout().map(|(at, _)| at.since(now).into());
        (due.unwrap_or(LONGEST).min(LONGEST), is_over)
    }
}

impl Inner {
    /// The ends of the paths on which the peer has answered: an address that it only names may be
    /// another's.
    fn ends(&self) -> Vec<Ends> {
        let [own, peer] = self.ports;
        let is_open = |state| !matches!(state, SctpPathState::Unconfirmed | SctpPathState::Removed);
        let answered = self.association.paths().filter(|path| is_open(path.state));
        answered.map(|path| (self.in_udp(path.ends[1]), peer, own)).collect()
    }

    /// What became of a change of addresses: nothing, or the code of the cause.
    fn note(&mut self, change: AddressChange, cause: Option<u16>) {
        if self.changes.len() == MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((change, cause));
    }

    /// Takes what became of a change.
    pub(super) fn outcome(&mut self, change: AddressChange) -> Option<Option<u16>> {
        let at = self.changes.iter().position(|(of, _)| *of == change)?;
        self.changes.remove(at).map(|(_, cause)| cause)
    }

    /// An address of the peer in UDP.
    fn in_udp(&self, peer: IpAddr) -> SocketAddr {
        SocketAddr::new(peer, self.udp_ports.get(&peer).copied().unwrap_or(self.udp_port))
    }

    /// The reason why nothing can be sent any more, if nothing can.
    pub(super) fn check(&self) -> Result<(), SctpError> {
        match &self.phase {
            Phase::Connecting | Phase::Connected => Ok(()),
            Phase::Closed => Err(SctpError::Closed),
            Phase::Aborted(reason) => Err(SctpError::Aborted(reason.clone())),
        }
    }
}
