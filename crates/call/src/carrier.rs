use std::fmt;
use std::str::FromStr;

/// The protocol that carries the voice of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VoiceCarrier {
    /// Messages of the connection itself. Written `dfcp`.
    #[default]
    Dfcp,
    /// DCCP over UDP with CCID 4, the congestion control for voice (RFC 5622). Written `dccp`.
    Dccp,
    /// UDP without congestion control. Written `udp`.
    Udp,
}

impl VoiceCarrier {
    pub(crate) const fn to_wire(self) -> u8 {
        match self {
            Self::Dfcp => 0,
            Self::Dccp => 1,
            Self::Udp => 2,
        }
    }

    pub(crate) const fn of_wire(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Dfcp),
            1 => Some(Self::Dccp),
            2 => Some(Self::Udp),
            _ => None,
        }
    }
}

impl fmt::Display for VoiceCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dfcp => "dfcp",
            Self::Dccp => "dccp",
            Self::Udp => "udp",
        })
    }
}

impl FromStr for VoiceCarrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "dfcp" => Ok(Self::Dfcp),
            "dccp" => Ok(Self::Dccp),
            "udp" => Ok(Self::Udp),
            _ => Err(format!("{text:?} is no carrier of calls: write dfcp, dccp or udp")),
        }
    }
}
