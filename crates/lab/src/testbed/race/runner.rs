//! The transports that race.

use std::fmt;
use std::str::FromStr;

/// A transport that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// Fontis's own over all paths, with its controller `auto`.
    Fontis,
    /// The same over the best path alone.
    FontisOne,
    /// The kernel's TCP with this congestion control, over the best path.
    Tcp(&'static str),
    /// The kernel's Multipath TCP with this congestion control, over all paths.
    Mptcp(&'static str),
    /// QUIC by quinn, with its BBR, over the best path.
    Quic,
    /// QUIC by tquic's own programs, with its BBR, over all paths.
    Tquic,
}

/// The congestion controls of kernels that race.
const TCP: [&str; 4] = ["cubic", "bbr", "reno", "vegas"];
/// Before a congestion control: that of Multipath TCP.
const MULTIPATH: &str = "mptcp-";

impl Runner {
    /// Whether it uses more than one path.
    pub const fn is_multipath(self) -> bool {
        matches!(self, Self::Fontis | Self::Mptcp(_) | Self::Tquic)
    }

    /// Whether it makes sense only where there are several paths.
    pub const fn needs_paths(self) -> bool {
        matches!(self, Self::FontisOne | Self::Mptcp(_))
    }
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fontis => f.pad("fontis"),
            Self::FontisOne => f.pad("fontis-one"),
            Self::Tcp(name) => f.pad(name),
            Self::Mptcp(name) => f.pad(&format!("{MULTIPATH}{name}")),
            Self::Quic => f.pad("quic"),
            Self::Tquic => f.pad("tquic"),
        }
    }
}

impl FromStr for Runner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tcp = |text: &str| TCP.into_iter().find(|name| *name == text);
        let found = match text {
            "fontis" => Some(Self::Fontis),
            "fontis-one" => Some(Self::FontisOne),
            "quic" => Some(Self::Quic),
            "tquic" => Some(Self::Tquic),
            _ => match text.strip_prefix(MULTIPATH) {
                Some(name) => tcp(name).map(Self::Mptcp),
                None => tcp(text).map(Self::Tcp),
            },
        };
        found.ok_or_else(|| {
            let names = TCP.join(", ");
            format!(
                "{text:?} does not race; choose of fontis, quic, {names}, and over several paths \
                 fontis-one, tquic and {MULTIPATH} with one of {names}"
            )
        })
    }
}
