use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use super::contract::Scheduler;
use super::daps::Daps;
use super::ecf::{Blest, Ecf};
use super::simple::{LowestDelay, Redundant, RoundRobin};

/// The table of schedulers. A row is a variant, its name, a line of help, and its constructor.
macro_rules! table {
    ($($(#[$attribute:meta])* $variant:ident, $name:literal, $help:literal, $make:expr;)*) => {
        /// A scheduler, by the name that people write.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum SchedulerKind {
            $(#[doc = concat!("`", $name, "`: ", $help, ".")] $(#[$attribute])* $variant,)*
        }

        impl SchedulerKind {
            /// Every scheduler there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// Their names.
            pub const NAMES: &[&'static str] = &[$($name,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A line of help, without a full stop.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }

            /// The scheduler at its beginning.
            pub fn start(self) -> Box<dyn Scheduler> {
                match self { $(Self::$variant => Box::new($make),)* }
            }
        }
    };
}

table! {
    #[default]
    RoundRobin, "round-robin",
        "each path in turn fills its window",
        RoundRobin::default();
    LowestDelay, "lowest-delay",
        "the path with the least round-trip time of those with room",
        LowestDelay;
    Ecf, "ecf",
        "earliest completion first: waits for a fast path where that ends sooner (Lim et al. 2017)",
        Ecf::default();
    Blest, "blest",
        "a slow path only if it does not block the receiver's window (Ferlin et al. 2016)",
        Blest::default();
    Daps, "daps",
        "delay-aware: sends out of order so that data arrive in order (Sarwar et al. 2013)",
        Daps::default();
    Redundant, "redundant",
        "everything on every path",
        Redundant::default();
}

/// A name that no scheduler has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no scheduler called {text:?}; there are {}", SchedulerKind::NAMES.join(", "))]
pub struct UnknownSchedulerKind {
    text: String,
}

impl FromStr for SchedulerKind {
    type Err = UnknownSchedulerKind;

    fn from_str(text: &str) -> Result<Self, UnknownSchedulerKind> {
        let known = Self::ALL.iter().copied().find(|kind| kind.name() == text);
        known.ok_or_else(|| UnknownSchedulerKind { text: text.to_owned() })
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
