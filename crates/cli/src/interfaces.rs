//! The addresses under which others reach this machine.

use std::net::{IpAddr, SocketAddr};

use fontis::udp::GroupInterface;

use crate::failure::Failure;

/// The addresses of a listener, the likeliest first. A wildcard stands for those of all interfaces;
/// loopback is among them only if there is nothing else.
pub(crate) fn reachable(listener: SocketAddr) -> Vec<SocketAddr> {
    if !listener.ip().is_unspecified() {
        return vec![listener];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let found = interfaces.iter().map(if_addrs::Interface::ip);
    let mut addresses = choose(found.collect(), listener.is_ipv6());
    if addresses.is_empty() {
        addresses.push(match listener {
            SocketAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
            SocketAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        });
    }
    addresses.into_iter().map(|ip| SocketAddr::new(ip, listener.port())).collect()
}

/// The interface of this name or with this address, with an address of the family.
pub(crate) fn group_interface(name: &str, ipv6: bool) -> Result<GroupInterface, Failure> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let ip: Option<IpAddr> = name.parse().ok();
    let is_meant = |one: &if_addrs::Interface| one.name == name || Some(one.ip()) == ip;
    let mut own: Vec<_> = all.into_iter().filter(is_meant).collect();
    if own.is_empty() {
        let text = format!("there is no interface {name}: `ip link` lists those that are");
        return Err(Failure::Failed(text));
    }
    own.retain(|one| one.ip().is_ipv6() == ipv6);
    match own.first() {
        Some(found) => Ok(GroupInterface { index: found.index.unwrap_or(0), address: found.ip() }),
        None => Err(Failure::Failed(format!(
            "the interface {name} has no IPv{} address: give it one, or name another",
            if ipv6 { 6 } else { 4 }
        ))),
    }
}

/// The interface towards the group, as the system prefers it; else the one that others reach this
/// machine by.
pub(crate) fn group_interface_for(group: SocketAddr) -> Result<GroupInterface, Failure> {
    if let Ok(interface) = GroupInterface::towards(group) {
        return Ok(interface);
    }
    let any = SocketAddr::from(([0; 8], group.port()));
    let any = if group.is_ipv6() { any } else { SocketAddr::from(([0; 4], group.port())) };
    match reachable(any).first() {
        Some(found) => Ok(GroupInterface { index: 0, address: found.ip() }),
        None => Err(Failure::Failed("no interface leads to the group: name one".to_owned())),
    }
}

fn choose(mut found: Vec<IpAddr>, ipv6: bool) -> Vec<IpAddr> {
    // A link-local IPv6 address means nothing without a zone, whose name is another one on each
    // machine.
    let others = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_unspecified(),
        IpAddr::V6(ip) => ipv6 && !ip.is_unicast_link_local() && !ip.is_unspecified(),
    };
    found.retain(others);
    found.sort_by_key(|ip| (rank(ip), *ip));
    found.dedup();
    if found.iter().any(|ip| !ip.is_loopback()) {
        found.retain(|ip| !ip.is_loopback());
    }
    found
}

/// The order of addresses: public ones, then private ones, then link-local ones.
fn rank(ip: &IpAddr) -> u8 {
    match ip {
        _ if ip.is_loopback() => 3,
        IpAddr::V4(ip) if ip.is_link_local() => 2,
        _ if is_private(*ip) => 1,
        _ => 0,
    }
}

/// Returns true for an address of this machine or of a private network: loopback, RFC 1918, RFC
/// 4193, or link-local.
pub(crate) fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_others_reach_comes_first_and_loopback_only_alone() {
        let found = ips(&["127.0.0.1", "::1", "169.254.3.3", "10.0.0.1", "fe80::1", "2001:db8::1"]);
        let all = ips(&["2001:db8::1", "10.0.0.1", "169.254.3.3"]);
        assert_eq!(choose(found.clone(), true), all);
        assert_eq!(choose(found, false), ips(&["10.0.0.1", "169.254.3.3"]));
        assert_eq!(choose(ips(&["::1", "127.0.0.1"]), true), ips(&["127.0.0.1", "::1"]));
    }

    #[test]
    fn a_listener_on_one_address_is_reached_there() {
        let one = "192.0.2.1:9".parse().unwrap();
        assert_eq!(reachable(one), [one]);
        let all = reachable("0.0.0.0:9".parse().unwrap());
        assert!(!all.is_empty() && all.iter().all(|to| to.port() == 9 && to.is_ipv4()));
    }

    #[test]
    fn networks_of_ones_own_are_known() {
        let own = ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.0.1", "::1"];
        for ip in ips(&own).into_iter().chain(ips(&["fd00::1", "fe80::1", "::ffff:10.0.0.1"])) {
            assert!(is_private(ip), "{ip}");
        }
        for ip in ips(&["8.8.8.8", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8"]) {
            assert!(!is_private(ip), "{ip}");
        }
    }
}
