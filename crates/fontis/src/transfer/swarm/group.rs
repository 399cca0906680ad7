use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::swarm::{Swarm, SwarmEvent, send};
use super::wire::SwarmWire;
use crate::connection::Connection;
use crate::moment;
use crate::sink::SinkError;
use crate::transfer::TransferError;
use crate::transfer::cast::{Caster, Invitation, Shelf, fill};
use crate::transfer::outgoing::key_text;

/// The time for the group to be heard at all: a sender speaks at least twice a second.
pub(super) const FIRST_SOUND: Duration = Duration::from_millis(1500);
/// The time in which a group that is heard has to bring something. Then neighbours send the rest.
const FRUITLESS: Duration = Duration::from_secs(2);

/// A neighbour that listens to the group of this origin, until this is dropped.
pub(super) struct Listening {
    caster: Arc<Caster>,
    member: u32,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.caster.leave(self.member);
    }
}

impl Swarm {
    /// Invites a neighbour to the group, unless everything has been sent to it once: who comes then
    /// gets everything from neighbours.
    pub(super) fn invite(&self, connection: &Connection) -> Option<Listening> {
        let caster = self.caster.clone()?;
        let status = caster.status();
        if status.failure.is_some() || status.needed > 0 && status.symbols >= status.needed {
            return None;
        }
        let invitation = caster.join();
        let member = invitation.member();
        send(vec![(connection.clone(), SwarmWire::Invite(Box::new(invitation)))]);
        Some(Listening { caster, member })
    }

    /// Listens to a group, and takes nothing from neighbours as long as that brings something.
    pub(super) async fn listen_in(
        self: Arc<Self>,
        connection: Connection,
        invitation: Box<Invitation>,
    ) {
        let shelf = GroupShelf {
            swarm: self.clone(),
            group: invitation.group(),
            key: key_text(&connection),
            since: Mutex::new(moment::now()),
        };
        // A group that cannot be heard is none: neighbours have everything.
        let filled = fill(&invitation, connection.remote_addr(), Arc::new(shelf)).await;
        if let Err(TransferError::Sink(error)) = filled {
            self.state().failure.get_or_insert(error);
        }
        self.state().listen(Duration::ZERO);
        send(vec![(connection, SwarmWire::Unheard)]);
        self.wake();
    }
}

/// The blocks of a node that listens to a group.
struct GroupShelf {
    swarm: Arc<Swarm>,
    group: SocketAddr,
    /// The sender's key.
    key: String,
    /// When the last block came, or this began.
    since: Mutex<Instant>,
}

impl Shelf for GroupShelf {
    fn blocks(&self) -> Vec<u32> {
        self.swarm.state().policy.blocks().collect()
    }

    fn put(&self, block: u32, bytes: &[u8]) -> Result<bool, SinkError> {
        if !self.swarm.tree.verify_block(u64::from(block), bytes) {
            return Ok(false);
        }
        self.swarm.content.write(block, bytes)?;
        let now = moment::now();
        let since = {
            let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *since, now)
        };
        // Who sees that all is there has been told of this block.
        let mut state = self.swarm.state();
        if state.came_from_group(block) {
            let (remote, key) = (self.group, self.key.clone());
            let (bytes, took) = (bytes.len() as u64, now - since);
            self.swarm.tell(SwarmEvent::Fed { remote, key, block, bytes, took });
        }
        drop(state);
        self.swarm.wake();
        Ok(true)
    }

    fn filling(&self) {
        self.swarm.state().listen(FRUITLESS);
    }

    fn forged(&self, from: IpAddr, packets: u64) {
        self.swarm.tell(SwarmEvent::Forged { from, packets });
    }

    fn is_closed(&self) -> bool {
        let state = self.swarm.state();
        state.is_over || state.policy.is_complete() || !state.listens()
    }
}
