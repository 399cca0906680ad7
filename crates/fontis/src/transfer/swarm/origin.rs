use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::content::Content;
use super::swarm::{Role, Swarm};
use crate::left_out::LeftOut;
use crate::manifest::Manifest;
use crate::transfer::TransferError;
use crate::transfer::cast::{CastStatus, Caster};
use crate::transfer::outgoing::{Outgoing, Tree};

/// The swarms that a server is the first node of: by the hashes of their objects' contents, as long
/// as somebody takes part.
pub(in crate::transfer) struct Swarms {
    own_key: [u8; 32],
    /// What casts the only object to a group.
    caster: Option<Arc<Caster>>,
    swarms: Mutex<HashMap<[u8; 32], Weak<Swarm>>>,
}

impl Swarms {
    pub(in crate::transfer) fn new(own_key: [u8; 32], caster: Option<Arc<Caster>>) -> Self {
        Self { own_key, caster, swarms: Mutex::default() }
    }

    /// How the cast goes, if there is one.
    pub(in crate::transfer) fn cast_status(&self) -> Option<CastStatus> {
        self.caster.as_ref().map(|caster| caster.status())
    }

    /// The swarm of the object with this hash, if there is one.
    pub(in crate::transfer) fn find(&self, root: &[u8; 32]) -> Option<Arc<Swarm>> {
        let swarms = self.swarms.lock().unwrap_or_else(PoisonError::into_inner);
        swarms.get(root)?.upgrade()
    }

    /// Whether anybody needs this server.
    pub(in crate::transfer) fn are_needed(&self) -> bool {
        let swarms = self.swarms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut alive = swarms.values().filter_map(Weak::upgrade);
        alive.any(|swarm| swarm.state().policy.is_needed())
    }

    /// The swarm of an object of known hash.
    pub(in crate::transfer) fn of(&self, outgoing: &Outgoing) -> Result<Arc<Swarm>, TransferError> {
        let Tree::Known(tree) = &outgoing.tree else { return Err(TransferError::Worker) };
        let root = *tree.root().as_bytes();
        let offer = outgoing.offer(tree)?;
        let mut swarms = self.swarms.lock().unwrap_or_else(PoisonError::into_inner);
        // The same content may have another name or other times: it is another object then.
        let known = swarms.get(&root).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.offer == offer) {
            return Ok(known);
        }
        swarms.retain(|_, swarm| swarm.strong_count() > 0);
        let content = Content::whole(tree.clone(), outgoing.source.clone());
        let all = 0..u32::try_from(tree.block_count()).unwrap_or(u32::MAX);
        let role = Role::Origin(self.caster.clone());
        let swarm = Swarm::new((tree.clone(), content, offer), role, all, self.own_key, |_| {});
        swarms.insert(root, Arc::downgrade(&swarm));
        Ok(swarm)
    }
}

impl Swarm {
    /// The object's name.
    pub(in crate::transfer) fn name(&self) -> String {
        let manifest = Manifest::decode(&self.offer.manifest);
        manifest.map_or_else(|_| String::new(), |manifest| manifest.name().to_owned())
    }

    /// Its bytes.
    pub(in crate::transfer) fn size(&self) -> u64 {
        self.tree.size()
    }

    /// The entries that are not in it.
    pub(in crate::transfer) fn left_out(&self) -> LeftOut {
        self.content.left_out()
    }

    /// The BLAKE3 hash of its content, as text.
    pub(in crate::transfer) fn hash(&self) -> String {
        self.tree.root().to_hex().to_string()
    }
}
