use smallvec::SmallVec;

use super::chunk::InitChunk;
use super::config::{DynamicAddresses, SctpConfig};
use super::offer::AuthOffer;
use super::wire::kind;

/// What both ends of an association speak beyond RFC 9260.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) interleaving: bool,
    pub(super) partial: bool,
    pub(super) ecn: bool,
    pub(super) nr_sack: bool,
    pub(super) stamps: bool,
    pub(super) repairs: bool,
    pub(super) resets: bool,
    pub(super) auth: bool,
    pub(super) dynamic: bool,
    /// Whether addresses change without authentication, too.
    pub(super) open: bool,
}

impl Features {
    /// What an end would speak.
    pub(super) fn of_config(config: &SctpConfig) -> Self {
        Self {
            interleaving: config.interleaving,
            partial: config.partial,
            ecn: config.ecn,
            nr_sack: config.nr_sack,
            stamps: config.stamps,
            repairs: config.coding.is_some() || config.decodes,
            resets: config.resets,
            auth: config.authentication().is_some(),
            dynamic: config.dynamic != DynamicAddresses::No,
            open: config.dynamic == DynamicAddresses::Open,
        }
    }

    /// What a peer would speak.
    pub(super) fn of_init(init: &InitChunk) -> Self {
        let has = |kind| init.extensions.contains(&kind);
        Self {
            interleaving: has(kind::I_DATA),
            partial: init.forwards,
            ecn: init.ecn,
            nr_sack: has(kind::NR_SACK),
            stamps: has(kind::STAMP),
            repairs: has(kind::REPAIR),
            resets: has(kind::RECONFIG),
            auth: matches!(init.auth, AuthOffer::Given(_)),
            dynamic: has(kind::ASCONF) && has(kind::ASCONF_ACK),
            open: true,
        }
    }

    /// What both speak.
    pub(super) const fn and(self, other: Self) -> Self {
        let auth = self.auth && other.auth;
        let open = self.open && other.open;
        Self {
            interleaving: self.interleaving && other.interleaving,
            partial: self.partial && other.partial,
            ecn: self.ecn && other.ecn,
            nr_sack: self.nr_sack && other.nr_sack,
            stamps: self.stamps && other.stamps,
            repairs: self.repairs && other.repairs,
            resets: self.resets && other.resets,
            auth,
            dynamic: self.dynamic && other.dynamic && (auth || open),
            open,
        }
    }

    /// The chunk types by which an INIT announces them.
    pub(super) fn extensions(self) -> SmallVec<[u8; 8]> {
        let Self { interleaving, partial, nr_sack, stamps, repairs, resets, .. } = self;
        let Self { auth, dynamic, .. } = self;
        let kinds = [
            (kind::I_DATA, interleaving),
            (kind::RECONFIG, resets),
            (kind::FORWARD, partial),
            (kind::I_FORWARD, partial && interleaving),
            (kind::NR_SACK, nr_sack),
            (kind::STAMP, stamps),
            (kind::ECHO, stamps),
            (kind::REPAIR, repairs),
            (kind::AUTH, auth),
            (kind::ASCONF, dynamic),
            (kind::ASCONF_ACK, dynamic),
        ];
        kinds.into_iter().filter(|(_, speaks)| *speaks).map(|(kind, _)| kind).collect()
    }

    pub(super) const fn bits(self) -> u16 {
        self.interleaving as u16
            | (self.partial as u16) << 1
            | (self.ecn as u16) << 2
            | (self.nr_sack as u16) << 3
            | (self.stamps as u16) << 4
            | (self.repairs as u16) << 5
            | (self.resets as u16) << 6
            | (self.auth as u16) << 8
            | (self.dynamic as u16) << 9
            | (self.open as u16) << 10
    }

    pub(super) const fn of_bits(bits: u16) -> Self {
        Self {
            interleaving: bits & 1 != 0,
            partial: bits & 2 != 0,
            ecn: bits & 4 != 0,
            nr_sack: bits & 8 != 0,
            stamps: bits & 16 != 0,
            repairs: bits & 32 != 0,
            resets: bits & 64 != 0,
            auth: bits & 0x100 != 0,
            dynamic: bits & 0x200 != 0,
            open: bits & 0x400 != 0,
        }
    }
}
