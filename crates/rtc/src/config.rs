use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fontis_proto::congestion::CongestionKind;

use crate::RtcError;

/// How a peer connects.
#[derive(Clone, Debug)]
pub struct RtcConfig {
    /// The addresses that the other end may reach; port 0 lets the system choose. If there are
    /// none, those of this machine are taken.
    pub addresses: Vec<SocketAddr>,
    /// The longest message that is taken, in bytes.
    pub longest_message: u32,
    /// The control of congestion.
    pub congestion: CongestionKind,
    /// How long a way that carried may carry nothing before the connection is given up.
    pub patience: Duration,
}

impl Default for RtcConfig {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            longest_message: 256 << 10,
            congestion: CongestionKind::Cubic,
            patience: Duration::from_secs(30),
        }
    }
}

impl RtcConfig {
    /// The addresses that are bound.
    pub(crate) fn bound(&self) -> Result<Vec<SocketAddr>, RtcError> {
        if !self.addresses.is_empty() {
            return Ok(self.addresses.clone());
        }
        let all = if_addrs::get_if_addrs()?;
        // What is valid on one link alone needs that link's name, which a candidate cannot tell.
        let is_local = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        let usable: Vec<IpAddr> = all.iter().map(if_addrs::Interface::ip).collect();
        let usable: Vec<IpAddr> = usable.into_iter().filter(|ip| !is_local(ip)).collect();
        // A machine without a network talks to itself.
        let has_network = usable.iter().any(|ip| !ip.is_loopback());
        let kept = usable.into_iter().filter(|ip| !ip.is_loopback() || !has_network);
        let addresses: Vec<SocketAddr> = kept.map(|ip| SocketAddr::new(ip, 0)).collect();
        if addresses.is_empty() { Err(RtcError::NoAddress) } else { Ok(addresses) }
    }
}
