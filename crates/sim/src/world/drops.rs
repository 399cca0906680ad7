//! Links that report their drops.

use fontis_base::{Observer, Packet, Time, prefetch};
use fontis_net::{Link, LinkConfig};

use crate::host::payload::Payload;

/// A link of the simulator: it can tell what it drops.
pub type SimLink = Link<Payload, Drops>;

/// What a link has dropped since it was last asked; nothing is kept unless somebody watches.
#[derive(Clone, Debug, Default)]
pub struct Drops {
    #[expect(clippy::box_collection, reason = "most have none, and need no room for it")]
    watched: Option<Box<Vec<(Time, u64)>>>,
}

impl Drops {
    /// Keeps from now on what is dropped.
    pub(crate) fn watch(&mut self) {
        self.watched.get_or_insert_default();
    }

    /// What was dropped: when, and the packet's number.
    pub(crate) fn take(&mut self) -> Vec<(Time, u64)> {
        self.watched.as_deref_mut().map(core::mem::take).unwrap_or_default()
    }
}

impl Observer<Payload> for Drops {
    fn dropped(&mut self, now: Time, _: &str, packet: &Packet<Payload>, _: &'static str) {
        if let Some(all) = &mut self.watched {
            all.push((now, packet.id.0));
        }
    }

    fn nears(&mut self, packet: &Packet<Payload>) {
        if let Payload::Dfcp(inner) = &packet.payload {
            prefetch(&**inner);
        }
    }
}

/// A link at rest.
pub fn link(name: &str, seed: u64, config: LinkConfig) -> SimLink {
    Link::with_observer(name, seed, config, Drops::default())
}
