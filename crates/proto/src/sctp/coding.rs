use core::fmt;
use core::str::FromStr;

use fontis_base::Duration;
use thiserror::Error;

/// The most chunks that a repair is the sum of.
pub(super) const MOST_SUMMANDS: u8 = 128;

/// An erasure code over DATA chunks (Sarwar 2014, chapter 8): after some new chunks repairs leave,
/// each the sum of some chunks with factors in GF(2⁸).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpCode {
    /// How many repairs follow how many chunks.
    pub rate: CodeRate,
    /// Which chunks a repair is the sum of.
    pub reach: CodeReach,
}

/// How many repairs follow how many chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRate {
    /// After every `k` new chunks `n − k` repairs, whatever is lost.
    Fixed {
        /// Chunks and repairs of a group.
        n: u8,
        /// Chunks of a group.
        k: u8,
    },
    /// As many as the measured loss asks for: a repair after every chunks that a sum has at most
    /// where nothing is lost, and more the more is; of RaptorQ behind each block, and at least one.
    Adaptive,
}

/// Which chunks a repair is the sum of. Those that the peer has acknowledged are never among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeReach {
    /// A block code: those of its group, at a fixed rate.
    Group,
    /// A convolutional code: so many before it.
    Memory(u8),
    /// A block code with the repair symbols of RaptorQ (RFC 6330): those of its group, which has so
    /// many.
    RaptorQ(u8),
    /// On-the-fly coding (Tetrys): all that the peer has not acknowledged, so many at most.
    Unacknowledged(u8),
}

/// What is no code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no code: write block:n,k, conv:n,k,m, tetrys:n,k,most, raptorq:n,k, \
     tetrys:adaptive,most or raptorq:adaptive,most with 0 < k < n and sums of 1 to \
     {MOST_SUMMANDS} chunks, as in block:10,9, conv:10,9,20, tetrys:10,9,43, raptorq:24,20, \
     tetrys:adaptive,128 or raptorq:adaptive,64"
)]
pub struct UnknownSctpCode(pub String);

impl SctpCode {
    /// A code at a fixed rate.
    pub const fn fixed(n: u8, k: u8, reach: CodeReach) -> Self {
        Self { rate: CodeRate::Fixed { n, k }, reach }
    }

    /// On-the-fly coding over `most` chunks, with as many repairs as the measured loss asks for.
    pub const fn adaptive(most: u8) -> Self {
        Self { rate: CodeRate::Adaptive, reach: CodeReach::Unacknowledged(most) }
    }

    /// Blocks of `most` chunks with as many repair symbols of RaptorQ as the measured loss asks
    /// for.
    pub const fn adaptive_raptorq(most: u8) -> Self {
        Self { rate: CodeRate::Adaptive, reach: CodeReach::RaptorQ(most) }
    }

    /// The most chunks that a repair is the sum of.
    pub const fn most(self) -> u8 {
        match (self.reach, self.rate) {
            (
                CodeReach::Memory(most)
                | CodeReach::Unacknowledged(most)
                | CodeReach::RaptorQ(most),
                _,
            ) => most,
            (CodeReach::Group, CodeRate::Fixed { k, .. }) => k,
            (CodeReach::Group, CodeRate::Adaptive) => MOST_SUMMANDS,
        }
    }

    /// How long after its departure a missing chunk is sent again at the earliest, as published
    /// (Sarwar 2014, Equations 8.1 and 8.2): of block codes the time of the packets `behind` it, up
    /// to the last repair of its group, and one and a half round trips `rtt`; of others two round
    /// trips of the longest path.
    pub fn published_wait(
        self,
        behind: u64,
        packet: Duration,
        rtt: Duration,
        longest: Duration,
    ) -> Duration {
        match self.reach {
            CodeReach::Group | CodeReach::RaptorQ(_) => packet * behind + rtt * 3 / 2,
            CodeReach::Memory(_) | CodeReach::Unacknowledged(_) => longest * 2,
        }
    }

    const fn is_valid(self) -> bool {
        let has_rate = match self.rate {
            CodeRate::Fixed { n, k } => {
                // A block of RaptorQ is a group.
                let is_block = !matches!(self.reach, CodeReach::RaptorQ(most) if most != k);
                k > 0 && n > k && is_block
            }
            CodeRate::Adaptive => true,
        };
        has_rate && self.most() > 0 && self.most() <= MOST_SUMMANDS
    }
}

impl FromStr for SctpCode {
    type Err = UnknownSctpCode;

    fn from_str(text: &str) -> Result<Self, UnknownSctpCode> {
        let parsed = text.split_once(':').and_then(|(name, numbers)| {
            let numbers: Vec<&str> = numbers.split(',').map(str::trim).collect();
            if let ["adaptive", most] = numbers.as_slice() {
                let most = most.parse().ok()?;
                return match name {
                    "tetrys" => Some(Self::adaptive(most)),
                    "raptorq" => Some(Self::adaptive_raptorq(most)),
                    _ => None,
                };
            }
            let numbers: Option<Vec<u8>> =
                numbers.iter().map(|number| number.parse().ok()).collect();
            match (name, numbers?.as_slice()) {
                ("block", [n, k]) => Some(Self::fixed(*n, *k, CodeReach::Group)),
                ("raptorq", [n, k]) => Some(Self::fixed(*n, *k, CodeReach::RaptorQ(*k))),
                ("conv", [n, k, m]) => Some(Self::fixed(*n, *k, CodeReach::Memory(*m))),
                ("tetrys", [n, k, most]) => {
                    Some(Self::fixed(*n, *k, CodeReach::Unacknowledged(*most)))
                }
                _ => None,
            }
        });
        parsed.filter(|code| code.is_valid()).ok_or_else(|| UnknownSctpCode(text.to_owned()))
    }
}

impl fmt::Display for SctpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.reach {
            CodeReach::Group => "block",
            CodeReach::Memory(_) => "conv",
            CodeReach::Unacknowledged(_) => "tetrys",
            CodeReach::RaptorQ(_) => "raptorq",
        };
        match self.rate {
            CodeRate::Fixed { n, k } => write!(f, "{name}:{n},{k}")?,
            CodeRate::Adaptive => write!(f, "{name}:adaptive")?,
        }
        match (self.reach, self.rate) {
            (CodeReach::Group, _) | (CodeReach::RaptorQ(_), CodeRate::Fixed { .. }) => Ok(()),
            (
                CodeReach::Memory(most)
                | CodeReach::Unacknowledged(most)
                | CodeReach::RaptorQ(most),
                _,
            ) => write!(f, ",{most}"),
        }
    }
}

/// How long a chunk that reports say is missing waits for its repair before it is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairWait {
    /// Not at all: what the peer restores meanwhile comes twice.
    None,
    /// As published: from its departure on, for the packets up to the last repair of its group and
    /// one and a half round trips (block codes), or for two round trips of the longest path
    /// (Equations 8.1 and 8.2). A round trip is the least that was seen.
    Published,
    /// Until something has been acknowledged that left after the last repair of its group: by then
    /// the peer has used that repair, or never will; one and a half round trips where nothing
    /// follows. Where no repair has left, only what would be given up instead of being sent again
    /// waits for it.
    #[default]
    Outcome,
}

/// What losses tell that the peer has repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairedLoss {
    /// Nothing, as published: nobody tells them from what has arrived. An association takes far
    /// more than its share where queues overflow.
    Hidden,
    /// The peer tells them, and what goes beyond the loss that is proved to be chance is
    /// congestion.
    #[default]
    Beyond,
}

/// Erasure coding inside an association (eCMT-SCTP).
///
/// It weakens congestion control: what repairs restore passes for chance where no queue shows. It
/// is never a default (docs/safety.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingConfig {
    /// The code of what this end sends.
    pub code: SctpCode,
    /// How long a chunk that reports say is missing waits for its repair before it is sent again
    /// (aRTX; Sarwar 2014, Algorithm 5).
    pub wait: RepairWait,
    /// Whether repairs take their part of the congestion window. The thesis sends them beside it,
    /// at the cost of others on the same path.
    pub is_inside: bool,
    /// What repaired losses tell.
    pub loss: RepairedLoss,
    /// Whether the last chunks have their repairs at once when nothing follows them. A message
    /// then needs no timeout for its tail, and each one that ends alone costs as many repairs as a
    /// whole group.
    pub covers_tail: bool,
}

impl CodingConfig {
    /// A code with the settings that protect others most: repairs inside congestion control, and
    /// repaired losses that count beyond chance.
    pub fn of(code: SctpCode) -> Self {
        let (wait, loss) = (RepairWait::default(), RepairedLoss::default());
        Self { code, wait, is_inside: true, loss, covers_tail: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_what_they_write() {
        for text in [
            "block:10,9",
            "conv:10,9,20",
            "tetrys:10,9,43",
            "block:3,1",
            "tetrys:adaptive,128",
            "raptorq:24,20",
            "raptorq:adaptive,64",
        ] {
            assert_eq!(text.parse::<SctpCode>().unwrap().to_string(), text);
        }
        for text in [
            "block:9,9",
            "block:10,0",
            "block:10",
            "conv:10,9",
            "conv:10,9,0",
            "conv:10,9,129",
            "tetrys:10,9,256",
            "tetrys:adaptive,0",
            "tetrys:adaptive,129",
            "tetrys:adaptive",
            "block:adaptive",
            "raptorq",
            "raptorq:20,20",
            "raptorq:200,129",
            "raptorq:adaptive,129",
            "block:255,200",
            "",
        ] {
            let error = text.parse::<SctpCode>().unwrap_err();
            assert!(error.to_string().contains("is no code: write block:n,k"), "{error}");
        }
    }
}
