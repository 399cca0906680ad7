//! Congestion control algorithms: one governs each sender, whatever its transport.
//!
//! Start here: a transport starts the algorithm of a [`CongestionKind`] and tells it of
//! acknowledgements ([`Acknowledgement`]), marks, losses and timeouts; the algorithm answers a
//! window and, if it has one, a pacing rate ([`CongestionControl`]). The transport decides when a
//! packet is lost and what is sent again. A new algorithm is a file here and a row in `table.rs`;
//! one from outside is made by a [`CongestionMaker`].
//!
//! No algorithm depends on a transport.

mod bbr;
mod compound;
pub(crate) mod control;
pub(crate) mod coupling;
mod cubic;
mod dctcp;
mod fld;
mod guard;
mod halfback;
mod hybla;
mod hystart;
mod jumpstart;
pub(crate) mod maker;
mod newreno;
mod round;
pub(crate) mod sample;
pub(crate) mod table;
#[cfg(test)]
mod testing;
mod vegas;

pub use control::CongestionControl;
pub use coupling::{Coupling, UnknownCoupling};
pub use fld::{Boost, Counting, Exit, Fld, FldOptions, Length, LengthOf, Repair};
pub use guard::SlowStartGuard;
pub use maker::CongestionMaker;
pub use sample::{Acknowledgement, DeliverySample, Phase};
pub use table::{CongestionKind, Setup, UnknownCongestionKind};
