use std::collections::BTreeMap;
use std::net::SocketAddr;

use fontis_base::Rate;
use fontis_proto::cast::CastMember;

use crate::udp::GroupInterface;

/// The way to a group.
#[derive(Clone, Copy, Debug)]
pub struct CastGroup {
    /// The group, and the port.
    pub address: SocketAddr,
    /// The interface towards it.
    pub interface: GroupInterface,
    /// Routers that packets may pass.
    pub hops: u32,
}

/// The state of a cast.
#[derive(Clone, Debug, Default)]
pub struct CastStatus {
    /// Symbols that have left.
    pub symbols: u64,
    /// Source symbols of head and body.
    pub needed: u64,
    /// Bytes of content that leave in a second at present, as a rate.
    pub rate: Rate,
    /// The receiver that bounds the rate, if one does.
    pub limiting: Option<u32>,
    /// Whether nothing is to be sent at present.
    pub is_idle: bool,
    /// Whether a stream has ended, and nobody waits for anything of it.
    pub is_over: bool,
    /// The receivers, by their numbers.
    pub members: BTreeMap<u32, CastMember>,
    /// Why it has ended, if it has.
    pub failure: Option<String>,
}
