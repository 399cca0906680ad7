//! The functions of [`Parameters`] that RFC 6330 and RFC 5053 define differently.

use super::parameters::{Family, Parameters};
use super::raptor10;
use super::tuple::{Neighbours, Tuple};

impl Parameters {
    /// The parameters of a block of `k` source symbols in either code.
    pub(crate) fn of(family: Family, k: u32) -> Option<Self> {
        match family {
            Family::RaptorQ => Self::for_source_symbols(k),
            Family::Raptor10 => raptor10::parameters(k),
        }
    }

    /// The intermediate symbols that are added up for the symbol with this internal identifier
    /// (ISI).
    pub(crate) fn neighbours(&self, isi: u32) -> Neighbours {
        match self.family {
            Family::RaptorQ => Tuple::new(self, isi).neighbours(self),
            Family::Raptor10 => raptor10::neighbours(self, isi),
        }
    }
}
