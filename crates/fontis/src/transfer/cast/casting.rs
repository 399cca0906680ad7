use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use fontis_proto::dfcp::DfcpStats;

use super::caster::Caster;
use super::group::CastStatus;
use super::invitation::Invitation;
use super::live_caster::LiveCaster;
use crate::hash_tree::HashTree;
use crate::left_out::LeftOut;
use crate::moment;
use crate::source::Source;
use crate::transfer::Report;

/// What is cast to a group: an object, or a stream.
pub enum Casting {
    /// An object.
    Object(Box<Caster>),
    /// A stream.
    Stream(Box<LiveCaster>),
}

impl From<Caster> for Casting {
    fn from(caster: Caster) -> Self {
        Self::Object(Box::new(caster))
    }
}

impl From<LiveCaster> for Casting {
    fn from(caster: LiveCaster) -> Self {
        Self::Stream(Box::new(caster))
    }
}

impl Casting {
    /// The name of what is cast.
    pub fn name(&self) -> &str {
        match self {
            Self::Object(caster) => caster.source().manifest().name(),
            Self::Stream(_) => LiveCaster::NAME,
        }
    }

    /// How it goes.
    pub fn status(&self) -> CastStatus {
        match self {
            Self::Object(caster) => caster.status(),
            Self::Stream(caster) => caster.status(),
        }
    }

    /// The object and its hash tree; none of a stream.
    pub(in crate::transfer) fn object(&self) -> Option<(Arc<Source>, Arc<HashTree>)> {
        match self {
            Self::Object(caster) => Some((caster.source().clone(), caster.tree().clone())),
            Self::Stream(_) => None,
        }
    }

    /// Its bytes; 0 for a stream.
    pub(in crate::transfer) fn bytes(&self) -> u64 {
        self.object().map_or(0, |(source, _)| source.size())
    }

    /// Takes a receiver in.
    pub(in crate::transfer) fn join(&self) -> Invitation {
        match self {
            Self::Object(caster) => caster.join(),
            Self::Stream(caster) => caster.join(),
        }
    }

    /// A receiver is gone, done or not.
    pub(in crate::transfer) fn leave(&self, member: u32) {
        match self {
            Self::Object(caster) => caster.leave(member),
            Self::Stream(caster) => caster.leave(member),
        }
    }

    /// What is told of a receiver that has everything, and has been there since `begin`.
    pub(in crate::transfer) fn report(&self, begin: Instant) -> Report {
        let object = self.object();
        let hash = object.as_ref().map(|(_, tree)| tree.root().to_hex().to_string());
        Report {
            name: self.name().to_owned(),
            path: None::<PathBuf>,
            bytes: self.bytes(),
            resumed: 0,
            hash: hash.unwrap_or_default(),
            duration: moment::now() - begin,
            stats: DfcpStats::default(),
            sctp: None,
            left_out: object.map_or_else(LeftOut::default, |(source, _)| source.left_out().clone()),
        }
    }
}
