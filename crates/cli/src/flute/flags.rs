//! Flags of both ends.

use std::net::{IpAddr, SocketAddr};

use clap::ValueEnum;
use fontis::udp::GroupInterface;
use fontis_codes::ReedSolomonPoints;

use crate::failure::Failure;
use crate::interfaces::{group_interface, group_interface_for};

/// The matrix of Reed-Solomon, as flags name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Matrix {
    /// That of zfec and the crate flute
    #[default]
    Reference,
    /// That of RFC 5510, section 8.2.1, to the letter
    Formula,
}

impl Matrix {
    /// The points of the matrix.
    pub(super) const fn points(self) -> ReedSolomonPoints {
        match self {
            Self::Reference => ReedSolomonPoints::Reference,
            Self::Formula => ReedSolomonPoints::Formula,
        }
    }
}

/// Reads a session's number.
pub(super) fn session(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(tsi) if tsi < 1 << 48 => Ok(tsi),
        _ => Err("write a number below 281474976710656".to_owned()),
    }
}

/// The interface towards an address; of no meaning if that is no group.
pub(super) fn interface_towards(
    to: SocketAddr,
    interface: Option<&str>,
) -> Result<GroupInterface, Failure> {
    match (to.ip().is_multicast(), interface) {
        (true, Some(name)) => group_interface(name, to.is_ipv6()),
        (true, None) => group_interface_for(to),
        (false, None) => {
            let address: IpAddr = if to.is_ipv6() { [0; 16].into() } else { [0; 4].into() };
            Ok(GroupInterface { index: 0, address })
        }
        (false, Some(_)) => Err(Failure::Usage(format!(
            "--interface is for multicast groups, and {to} is none: leave it out"
        ))),
    }
}
