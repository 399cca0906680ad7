//! The interfaces of this machine that a transfer uses.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fontis::udp::source_towards;
use fontis::{Endpoint, LocalInterface};
use netdev::Interface;
use netdev::interface::types::InterfaceType;
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// How often the interfaces are looked at: those that come are used, and those that go are left.
const EVERY: Duration = Duration::from_secs(1);

/// Options of commands that use several paths.
#[derive(Clone, Debug, clap::Args)]
pub struct PathArgs {
    /// The network interfaces to use: auto takes all that are up and have an address and a default
    /// route of their own, except tunnels and bridges, and follows those that come and go; one
    /// leaves the choice to the system; names, as in eth0,wwan0, take these and no other
    #[arg(
        id = "interfaces",
        long = "paths",
        value_name = "auto|one|IFACE,...",
        default_value = "auto",
        value_parser = choice
    )]
    choice: Choice,
    /// Network interfaces that carry data only while no other answers, as a telephone whose bytes
    /// cost money: names, as in wwan0
    #[arg(long, value_name = "IFACE,...", value_delimiter = ',')]
    spare: Vec<String>,
}

/// Which interfaces to use.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Auto,
    One,
    Only(Vec<String>),
}

fn choice(text: &str) -> Result<Choice, String> {
    match text {
        "auto" => Ok(Choice::Auto),
        "one" => Ok(Choice::One),
        names => {
            let names: Vec<_> = names.split(',').map(str::trim).map(str::to_owned).collect();
            if names.iter().any(String::is_empty) {
                return Err("a name is empty: give names as in eth0,wwan0".to_owned());
            }
            Ok(Choice::Only(names))
        }
    }
}

impl PathArgs {
    /// What `--paths` and `--spare` say.
    pub fn new(paths: &str, spare: Vec<String>) -> Result<Self, String> {
        choice(paths).map(|choice| Self { choice, spare })
    }

    /// The interface that the first packet towards `remote` leaves by; none if the system chooses.
    pub fn first(&self, remote: SocketAddr) -> Result<Option<LocalInterface>, Failure> {
        let interfaces = interfaces();
        let kind = if is_ipv4(remote) { "IPv4" } else { "IPv6" };
        for name in &self.spare {
            find_up(&interfaces, name, "--spare")?;
            if named(&interfaces, std::slice::from_ref(name), remote).is_empty() {
                return Err(Failure::Failed(format!("--spare: {name} has no {kind} address")));
            }
        }
        let Choice::Only(names) = &self.choice else {
            return Ok(self.instead_of_spare(&interfaces, remote));
        };
        for name in names {
            find_up(&interfaces, name, "--paths")?;
            if self.spare.contains(name) {
                let text = format!("{name} is in --paths and in --spare: leave it out of one");
                return Err(Failure::Usage(text));
            }
        }
        let first = named(&interfaces, names, remote).into_iter().next();
        first.map(Some).ok_or_else(|| {
            let names = names.join(", ");
            Failure::Failed(format!(
                "--paths: {names} has no {kind} address, and the server's address {remote} is one"
            ))
        })
    }

    /// The interface for the first packet where the system would take a spare one.
    fn instead_of_spare(
        &self,
        interfaces: &[Interface],
        remote: SocketAddr,
    ) -> Option<LocalInterface> {
        let source = source_towards(remote).ok()?;
        let spares = named(interfaces, &self.spare, remote);
        if !spares.iter().any(|spare| spare.address == source) {
            return None;
        }
        usable(interfaces, remote).into_iter().find(|other| !self.spare.contains(&other.name))
    }

    /// The interfaces to use towards `remote`.
    fn wanted(&self, interfaces: &[Interface], remote: SocketAddr) -> Vec<LocalInterface> {
        let mut wanted = match &self.choice {
            Choice::Only(names) => named(interfaces, names, remote),
            Choice::Auto => usable(interfaces, remote),
            Choice::One => Vec::new(),
        };
        wanted.retain(|interface| !self.spare.contains(&interface.name));
        let spares = named(interfaces, &self.spare, remote).into_iter();
        wanted.extend(spares.map(|interface| LocalInterface { spare: true, ..interface }));
        wanted
    }

    /// The names of the interfaces that lead to `remote`, spare ones too.
    pub(crate) fn names(&self, remote: SocketAddr) -> Result<Vec<String>, Failure> {
        self.first(remote)?;
        let wanted = self.wanted(&interfaces(), remote);
        Ok(wanted.into_iter().map(|interface| interface.name).collect())
    }

    /// The interfaces that SCTP has a path from to `remote`; none if the system chooses the only
    /// one.
    pub(crate) fn of_sctp(&self, remote: SocketAddr) -> Result<Vec<LocalInterface>, Failure> {
        if let Some(spare) = self.spare.first() {
            let text = format!("SCTP has no spare paths: leave out --spare {spare}");
            return Err(Failure::Usage(text));
        }
        self.first(remote)?;
        Ok(self.wanted(&interfaces(), remote))
    }

    /// Has connections of `endpoint` to `remote` use the interfaces, as long as the result lives.
    pub fn follow(&self, endpoint: &Endpoint, remote: SocketAddr) -> Follower {
        if self.choice == Choice::One && self.spare.is_empty() {
            return Follower(None);
        }
        let (paths, endpoint) = (self.clone(), endpoint.clone());
        Follower(Some(tokio::spawn(async move {
            let mut before = Vec::new();
            loop {
                let paths = paths.clone();
                let look = tokio::task::spawn_blocking(move || paths.wanted(&interfaces(), remote));
                let Ok(found) = look.await else { return };
                if found != before {
                    endpoint.use_interfaces(found.clone());
                    before = found;
                }
                tokio::time::sleep(EVERY).await;
            }
        })))
    }
}

/// An interface of this name that is up, or an error of the option that names it.
fn find_up(interfaces: &[Interface], name: &str, option: &str) -> Result<(), Failure> {
    let up = || interfaces.iter().filter(|interface| interface.is_up());
    if up().any(|interface| interface.name == name) {
        return Ok(());
    }
    let there: Vec<_> = up().map(|interface| interface.name.as_str()).collect();
    let there = there.join(", ");
    Err(Failure::Failed(format!("{option}: no interface {name} is up; there are {there}")))
}

/// Watches the interfaces until it is dropped.
pub struct Follower(Option<JoinHandle<()>>);

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn is_ipv4(remote: SocketAddr) -> bool {
    remote.ip().to_canonical().is_ipv4()
}

/// The interfaces of this machine, in the order of their names.
fn interfaces() -> Vec<Interface> {
    let mut interfaces = netdev::get_interfaces();
    interfaces.sort_by(|one, other| one.name.cmp(&other.name));
    interfaces
}

/// The address of an interface for packets to `remote`.
fn address(interface: &Interface, remote: SocketAddr) -> Option<IpAddr> {
    if is_ipv4(remote) {
        let address = |net: &netdev::ipnet::Ipv4Net| net.addr();
        let mut all = interface.ipv4.iter().map(address);
        return all.find(|ip| !ip.is_link_local() && !ip.is_unspecified()).map(IpAddr::V4);
    }
    let address = |net: &netdev::ipnet::Ipv6Net| net.addr();
    let mut all = interface.ipv6.iter().map(address);
    all.find(|ip| !ip.is_unicast_link_local() && !ip.is_unspecified()).map(IpAddr::V6)
}

fn local(interface: &Interface, remote: SocketAddr) -> Option<LocalInterface> {
    let address = address(interface, remote)?;
    Some(LocalInterface { name: interface.name.clone(), address, spare: false })
}

/// The interfaces with these names, in their order.
fn named(interfaces: &[Interface], names: &[String], remote: SocketAddr) -> Vec<LocalInterface> {
    let find = |name: &String| interfaces.iter().find(|interface| interface.name == *name);
    names.iter().filter_map(find).filter_map(|interface| local(interface, remote)).collect()
}

/// The interfaces that reach `remote` each by a route of its own.
fn usable(interfaces: &[Interface], remote: SocketAddr) -> Vec<LocalInterface> {
    let ip = remote.ip().to_canonical();
    // A neighbour is reached over the network that it is on, and by no other way.
    let is_near = |interface: &Interface| {
        interface.ipv4.iter().any(|net| IpAddr::V4(net.addr()) == ip || near(*net, ip))
            || interface.ipv6.iter().any(|net| near(*net, ip))
    };
    // Who sends through a tunnel does not want to be seen elsewhere.
    let source = source_towards(remote).ok();
    let is_tunnelled = interfaces
        .iter()
        .any(|interface| is_tunnel(interface) && address(interface, remote) == source);
    if ip.is_loopback() || is_tunnelled || interfaces.iter().any(is_near) {
        return Vec::new();
    }
    let usable = interfaces.iter().filter(|interface| {
        interface.is_up()
            && interface.is_running()
            && !interface.is_loopback()
            && !is_tunnel(interface)
            && interface.if_type != InterfaceType::Bridge
            && has_route(interface, remote)
    });
    usable.filter_map(|interface| local(interface, remote)).collect()
}

fn near(net: impl Into<netdev::ipnet::IpNet>, ip: IpAddr) -> bool {
    net.into().contains(&ip)
}

fn is_tunnel(interface: &Interface) -> bool {
    interface.is_tun() || interface.if_type == InterfaceType::Tunnel
}

/// Whether an interface has a default route of its own.
fn has_route(interface: &Interface, remote: SocketAddr) -> bool {
    let gateway = interface.gateway.as_ref();
    gateway.is_some_and(|gateway| {
        if is_ipv4(remote) { !gateway.ipv4.is_empty() } else { !gateway.ipv6.is_empty() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_a_word_or_names() {
        assert_eq!(choice("auto"), Ok(Choice::Auto));
        assert_eq!(choice("one"), Ok(Choice::One));
        let names = ["eth0", "wwan0"].map(str::to_owned).to_vec();
        assert_eq!(choice("eth0, wwan0"), Ok(Choice::Only(names)));
        assert!(choice("eth0,,wwan0").is_err());
    }

    fn interface(name: &str, net: &str, gateway: Option<&str>) -> Interface {
        let mut interface = Interface::dummy();
        interface.name = name.to_owned();
        interface.ipv4 = vec![net.parse().unwrap()];
        interface.ipv6 = Vec::new();
        // Up and running, as Linux has it.
        interface.flags = 0x1 | 0x40;
        interface.oper_state = netdev::interface::state::OperState::Up;
        interface.gateway = gateway.map(|ip| {
            let mut device = netdev::NetworkDevice::new();
            device.ipv4 = vec![ip.parse().unwrap()];
            device
        });
        interface
    }

    #[test]
    fn only_interfaces_with_a_route_of_their_own_are_used() {
        let all = [
            interface("wlan0", "192.168.1.5/24", Some("192.168.1.1")),
            interface("wwan0", "10.64.3.2/30", Some("10.64.3.1")),
            interface("docker0", "172.17.0.1/16", None),
            interface("eth1", "169.254.3.4/16", Some("169.254.0.1")),
        ];
        let names = |remote: &str| {
            let found = usable(&all, remote.parse().unwrap());
            found.into_iter().map(|interface| interface.name).collect::<Vec<_>>()
        };
        assert_eq!(names("203.0.113.7:4433"), ["wlan0", "wwan0"]);
        assert_eq!(names("192.168.1.9:4433"), [""; 0], "a neighbour");
        assert_eq!(names("127.0.0.1:4433"), [""; 0]);
        assert_eq!(names("[2001:db8::1]:4433"), [""; 0], "none has such an address");
    }
}
