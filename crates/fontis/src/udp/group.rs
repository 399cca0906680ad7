//! Sockets that send to a multicast group, or receive from one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket as RawSocket, Type};

use super::route::source_towards;
use super::socket::{Socket, enlarge_buffers};

/// The interface towards a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupInterface {
    /// Its number; 0 lets the system choose.
    pub index: u32,
    /// An address of it, which IPv4 may name it by.
    pub address: IpAddr,
}

impl GroupInterface {
    /// The interface from which packets to `remote` leave.
    pub fn towards(remote: SocketAddr) -> io::Result<Self> {
        let address = source_towards(remote)?;
        let index = match remote {
            SocketAddr::V6(remote) => remote.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Ok(Self { index, address })
    }

    fn v4(self) -> InterfaceIndexOrAddress {
        match (self.index, self.address) {
            (0, IpAddr::V4(address)) => InterfaceIndexOrAddress::Address(address),
            (index, _) => InterfaceIndexOrAddress::Index(index),
        }
    }
}

/// Whether a group takes packets of one named source only: 232.0.0.0/8 (RFC 4607, section 1) and
/// FF3x::/32.
pub fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => {
            let [first, second, ..] = group.octets();
            first == 0xff && second >> 4 == 3 && group.segments()[1] == 0
        }
    }
}

/// A socket that sends to `group` from an interface, over at most `hops` routers. Receivers report
/// to its port.
pub fn sender(group: SocketAddr, interface: GroupInterface, hops: u32) -> io::Result<Socket> {
    let raw = new(group)?;
    match group {
        SocketAddr::V4(_) => {
            if let IpAddr::V4(address) = interface.address {
                raw.set_multicast_if_v4(&address)?;
            }
            raw.set_multicast_ttl_v4(hops)?;
            raw.set_multicast_loop_v4(true)?;
            raw.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
        }
        SocketAddr::V6(_) => {
            raw.set_multicast_if_v6(interface.index)?;
            raw.set_multicast_hops_v6(hops)?;
            raw.set_multicast_loop_v6(true)?;
            raw.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into())?;
        }
    }
    Socket::of(raw)
}

/// A socket that receives what `source` sends to `group`. Others on this machine may receive the
/// same.
pub fn receiver(
    group: SocketAddr,
    source: IpAddr,
    interface: GroupInterface,
) -> io::Result<Socket> {
    let raw = new(group)?;
    raw.set_reuse_address(true)?;
    // Bound to the group's address it gets no other group's packets, where systems allow that.
    let address = if cfg!(windows) { any(group) } else { group };
    raw.bind(&address.into())?;
    match (group.ip(), source) {
        (IpAddr::V4(group), IpAddr::V4(source)) if is_source_specific(group.into()) => {
            let own = match interface.address {
                IpAddr::V4(own) => own,
                IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
            };
            raw.join_ssm_v4(&source, &group, &own)?;
        }
        (IpAddr::V4(group), _) => raw.join_multicast_v4_n(&group, &interface.v4())?,
        // Sources are told apart by their keys.
        (IpAddr::V6(group), _) => raw.join_multicast_v6(&group, interface.index)?,
    }
    Socket::of(raw)
}

fn new(group: SocketAddr) -> io::Result<RawSocket> {
    let raw = RawSocket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    enlarge_buffers(&raw);
    Ok(raw)
}

const fn any(group: SocketAddr) -> SocketAddr {
    match group {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), group.port()),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), group.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_source_are_told_from_others() {
        for (group, is) in [
            ("232.1.2.3", true),
            ("239.1.2.3", false),
            ("ff3e::1234", true),
            ("ff3e:20:2001:db8::1", false),
            ("ff05::1", false),
        ] {
            assert_eq!(is_source_specific(group.parse().unwrap()), is, "{group}");
        }
    }
}
