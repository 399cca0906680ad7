use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use super::bbr::Bbr;
use super::compound::Compound;
use super::control::CongestionControl;
use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::fld::{Fld, FldOptions};
use super::halfback::Halfback;
use super::hybla::Hybla;
use super::jumpstart::Jumpstart;
use super::newreno::NewReno;
use super::vegas::Vegas;

/// The surroundings in which an algorithm begins.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Bytes of payload in a full packet.
    pub mss: u64,
    /// The initial window in bytes.
    pub initial_window: u64,
    /// A number that tells apart flows that would otherwise act in step.
    pub salt: u64,
}

/// The table of algorithms. A row is a variant, its name, a line of help, and its constructor.
macro_rules! table {
    ($($(#[$attribute:meta])* $variant:ident, $name:literal, $help:literal, $make:expr;)*) => {
        /// A congestion control algorithm, by the name that people write.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum CongestionKind {
            $(#[doc = concat!("`", $name, "`: ", $help, ".")] $(#[$attribute])* $variant,)*
        }

        impl CongestionKind {
            /// Every algorithm there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A line of help, without a full stop.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }

            /// The algorithm at its beginning.
            pub fn start(self, setup: Setup) -> Box<dyn CongestionControl> {
                fn made<C: CongestionControl + 'static>(
                    setup: Setup,
                    make: impl FnOnce(Setup) -> C,
                ) -> Box<dyn CongestionControl> {
                    Box::new(make(setup))
                }
                match self { $(Self::$variant => made(setup, $make),)* }
            }
        }
    };
}

table! {
    NewReno, "newreno",
        "RFC 5681 with the window of RFC 6582, counting bytes (RFC 3465)",
        |setup| NewReno::new(setup.mss, setup.initial_window);
    #[default]
    Cubic, "cubic",
        "RFC 9438 with the constants of Linux",
        |setup| Cubic::new(setup.mss, setup.initial_window, false);
    CubicHyStart, "cubic-hystart",
        "CUBIC as in Linux: HyStart ends slow start, and Reno's window grows as in RFC 8312",
        |setup| Cubic::new(setup.mss, setup.initial_window, true);
    Compound, "compound",
        "Compound TCP",
        |setup| Compound::new(setup.mss, setup.initial_window, true);
    CompoundLossOnly, "compound-loss-only",
        "Compound TCP without the window that follows delay, for comparison",
        |setup| Compound::new(setup.mss, setup.initial_window, false);
    Vegas, "vegas",
        "follows delay",
        |setup| Vegas::new(setup.mss, setup.initial_window);
    Bbr, "bbr",
        "version 1: follows the rate of delivery; always paced",
        |setup| Bbr::new(setup.mss, setup.initial_window, setup.salt);
    Dctcp, "dctcp",
        "Data Center TCP (RFC 8257): follows the share of marks; both ends need it, and ECN",
        |setup| Dctcp::new(setup.mss, setup.initial_window);
    Hybla, "hybla",
        "TCP Hybla: its rate grows as Reno's over 25 ms, whatever the round trip; always paced",
        |setup| Hybla::new(setup.mss, setup.initial_window);
    Jumpstart, "jumpstart",
        "Jump Start: all that is permitted in the first round trip, then Reno; TCP only",
        |setup| Jumpstart::new(setup.mss, setup.initial_window);
    Halfback, "halfback",
        "Halfback: Jump Start of 141 KB at most, and copies of its later half; TCP only",
        |setup| Halfback::new(setup.mss, setup.initial_window);
    NewRenoLimited, "newreno-limited",
        "newreno with limited slow start (RFC 3742): above 100 segments 50 more a round trip",
        |setup| Fld::new(setup.mss, setup.initial_window, FldOptions::LIMITED);
    Fld, "fld",
        "FLD_TCP: bold while a flow is short, Reno when it is long; as `contrib/bpf` has it",
        |setup| Fld::new(setup.mss, setup.initial_window, FldOptions::MODERN);
    FldLinux, "fld-linux",
        "FLD_TCP as the kernel patch that its author published",
        |setup| Fld::new(setup.mss, setup.initial_window, FldOptions::LINUX);
    FldThesis, "fld-thesis",
        "FLD_TCP as the text of the thesis has it",
        |setup| Fld::new(setup.mss, setup.initial_window, FldOptions::THESIS);
    FldNs2, "fld-ns2",
        "FLD_TCP as in the thesis's simulations: a long flow keeps a third of its window",
        |setup| Fld::new(setup.mss, setup.initial_window, FldOptions::NS2);
}

impl CongestionKind {
    /// What it does to a shared queue beyond what CUBIC does, without a full stop: where it drops
    /// more than a fiftieth of the packets and more than CUBIC. `docs/safety.md` has the drops of
    /// many long flows, `docs/fld.md` those of short ones without a startup phase.
    pub const fn warning(self) -> Option<&'static str> {
        match self {
            Self::Fld => Some(
                "50 long flows of fld over a buffer of 0.25 BDP drop 0.022 of their packets, of \
                 CUBIC 0.020 (docs/safety.md)",
            ),
            Self::Jumpstart => Some(
                "50 long flows of it over a buffer of 0.25 BDP drop 0.021 of their packets, of \
                 CUBIC 0.020, and ten transfers of 1 MB that begin at once 0.39, of newreno 0.06 \
                 (docs/fld.md)",
            ),
            Self::Halfback => Some(
                "50 long flows of it over a buffer of 0.25 BDP drop 0.021 of their packets, of \
                 CUBIC 0.020, and transfers of 100 kB send half of their packets twice \
                 (docs/fld.md)",
            ),
            Self::Hybla => Some(
                "20 flows of it over 40 Mbit/s and 400 ms with a buffer of 0.5 BDP drop 0.228 of \
                 their packets, of CUBIC 0.006, and beside two CUBIC flows one takes 1.87 of an \
                 equal part (docs/safety.md)",
            ),
            _ => None,
        }
    }

    /// Whether the receiver must echo each mark (RFC 8257 section 3.2) instead of repeating an echo
    /// until the sender has answered it.
    pub const fn wants_every_mark(self) -> bool {
        matches!(self, Self::Dctcp)
    }

    /// The rules of a variant of FLD_TCP; `None` for all others.
    pub const fn fld(self) -> Option<FldOptions> {
        match self {
            Self::Fld => Some(FldOptions::MODERN),
            Self::FldLinux => Some(FldOptions::LINUX),
            Self::FldThesis => Some(FldOptions::THESIS),
            Self::FldNs2 => Some(FldOptions::NS2),
            _ => None,
        }
    }
}

/// A name that no algorithm has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no congestion control called {text:?}; there are {names}")]
pub struct UnknownCongestionKind {
    text: String,
    names: String,
}

impl FromStr for CongestionKind {
    type Err = UnknownCongestionKind;

    fn from_str(text: &str) -> Result<Self, UnknownCongestionKind> {
        let known = Self::ALL.iter().copied().find(|kind| kind.name() == text);
        known.ok_or_else(|| UnknownCongestionKind {
            text: text.to_owned(),
            names: Self::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Display for CongestionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Time;

    use super::super::sample::Acknowledgement;
    use super::super::testing::*;
    use super::*;

    fn start(kind: CongestionKind) -> Box<dyn CongestionControl> {
        kind.start(Setup { mss: MSS, initial_window: 10 * MSS, salt: 0 })
    }

    #[test]
    fn every_kind_is_known_by_the_name_it_prints() {
        for kind in CongestionKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
            assert!(!kind.help().is_empty() && !kind.help().ends_with('.'), "{kind}");
        }
        let error = "tahoe".parse::<CongestionKind>().unwrap_err().to_string();
        assert!(error.contains("newreno, cubic"), "{error}");
    }

    #[test]
    fn every_algorithm_that_follows_losses_doubles_in_slow_start_and_starts_again_after_a_timeout()
    {
        use CongestionKind::{Compound, Cubic, Dctcp, NewReno, Vegas};
        for kind in [NewReno, Cubic, Compound, Vegas, Dctcp] {
            let mut congestion = start(kind);
            let mut millis = 0;
            round(&mut *congestion, &mut millis, 100);
            assert_eq!(congestion.cwnd(), 20 * MSS, "{kind}");
            congestion.on_timeout(Time::ZERO + ms(millis), 20 * MSS);
            assert_eq!(congestion.cwnd(), MSS, "{kind}");
            assert!(congestion.ssthresh() >= 10 * MSS, "{kind}");
        }
    }

    #[test]
    fn a_sender_that_does_not_use_its_window_does_not_get_a_larger_one() {
        use CongestionKind::{Bbr, FldLinux, FldNs2, FldThesis};
        // The first versions of FLD_TCP grow all the same.
        let grows = [Bbr, FldLinux, FldThesis, FldNs2];
        for kind in CongestionKind::ALL.iter().filter(|kind| !grows.contains(kind)) {
            let mut congestion = start(*kind);
            for n in 0..100 {
                congestion.on_ack(&Acknowledgement { cwnd_limited: false, ..ack(n, 1, 50) });
            }
            assert_eq!(congestion.cwnd(), 10 * MSS, "{kind}");
        }
    }
}
