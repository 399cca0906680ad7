use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use fontis::udp::Clock;
use fontis_net::{LinkConfig, LinkStats};

use super::command::CommandJob;
use super::emulator::Emulator;
use super::error::TestbedError;
use super::namespace::Namespace;
use super::tun::{Interface, Tun};
use super::way::{Flows, Route, Way};
use crate::lateness::Lateness;

/// The treatment of super-packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuperPackets {
    /// Whole if the link only delays: no rate, loss or other fault.
    #[default]
    Auto,
    /// Always: each is charged as the packets that it stands for and meets one fate.
    Whole,
    /// Never: they are cut before the first link.
    Cut,
    /// The kernel gives none.
    None,
}

impl SuperPackets {
    /// Returns true if super-packets stay whole on such a link.
    pub(super) fn whole(self, links: &[&LinkConfig]) -> bool {
        match self {
            Self::Whole => true,
            Self::Cut | Self::None => false,
            Self::Auto => links.iter().all(|link| {
                let plain = LinkConfig { delay: link.delay, ..LinkConfig::default() };
                **link == LinkConfig { buffer: link.buffer, ..plain }
            }),
        }
    }
}

/// The configuration of the link between a shell and the rest of the machine.
#[derive(Clone, Debug)]
pub struct ShellConfig {
    /// The path from the shell to the outside. Times in it count from the start.
    pub up: LinkConfig,
    /// The path to the shell.
    pub down: LinkConfig,
    /// The largest packet.
    pub mtu: u32,
    /// The seed of all random processes.
    pub seed: u64,
    /// The treatment of super-packets.
    pub super_packets: SuperPackets,
}

/// Least, first and largest buffer of a TCP socket: a link may have a large bandwidth-delay
/// product.
const WINDOW: &str = "4096 131072 67108864";

/// A namespace behind a bad link.
#[derive(Debug)]
pub struct Shell {
    inner: Namespace,
    gateway: [IpAddr; 2],
    emulator: Emulator,
}

/// The counters of a shell's links.
#[derive(Clone, Copy, Debug)]
pub struct ShellStats {
    /// The path from the shell.
    pub up: LinkStats,
    /// The path to the shell.
    pub down: LinkStats,
    /// The lateness of packets, on either path.
    pub lateness: [Lateness; 2],
    /// Packets that the system did not take.
    pub unsent: u64,
}

impl Shell {
    /// Makes a namespace and the links between it and `outside`, which gets an interface and an
    /// address for it.
    pub fn new(outside: &Namespace, config: &ShellConfig) -> Result<Self, TestbedError> {
        let inner = Namespace::new()?;
        // What is not there, or not to be set here, stays as it is.
        inner.set_parameters(&[
            ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("net/ipv4/tcp_wmem", WINDOW.to_owned()),
            ("net/ipv4/tcp_rmem", WINDOW.to_owned()),
        ])?;
        let [near, far] = outside.run(free_network)?;
        let offload = config.super_packets != SuperPackets::None;
        let interface = |name, addresses, default_route| Interface {
            name,
            addresses,
            mtu: config.mtu,
            default_route,
            host_routes: &[],
            offload,
        };
        let outer = Tun::open(outside, &interface("fontis%d", &near, false))?;
        let tun = Tun::open(&inner, &interface("fontis0", &far, true))?;
        let way = |name: &str, link: &LinkConfig, port| {
            let links = vec![(name.to_owned(), link.clone())];
            let routes = vec![Route::row(&[0], port, 0)];
            let whole = config.super_packets.whole(&[link]);
            Way::new(config.seed, links, routes, Flows::Transport, whole)
        };
        let ways =
            vec![(way("up", &config.up, 1), vec![0]), (way("down", &config.down, 0), vec![1])];
        let emulator = Emulator::start(Clock::start(), vec![tun, outer], ways)?;
        Ok(Self { inner, gateway: near.map(|(address, _)| address), emulator })
    }

    /// The addresses of the outside in the shell, IPv4 and IPv6.
    pub const fn gateway(&self) -> [IpAddr; 2] {
        self.gateway
    }

    /// The namespace of the shell.
    pub const fn namespace(&self) -> &Namespace {
        &self.inner
    }

    /// Starts a command in the shell, which finds the outside's addresses in `FONTIS_GATEWAY` and
    /// `FONTIS_GATEWAY6`.
    pub fn start(&self, mut command: Command) -> Result<CommandJob, TestbedError> {
        command.env("FONTIS_GATEWAY", self.gateway[0].to_string());
        command.env("FONTIS_GATEWAY6", self.gateway[1].to_string());
        CommandJob::start(&self.inner, command)
    }

    /// The present counters.
    pub fn stats(&self) -> ShellStats {
        let now = self.emulator.now();
        let (mut up, mut down) = (self.emulator.lane(0), self.emulator.lane(1));
        ShellStats {
            up: up.way.link(0).observe(now),
            down: down.way.link(0).observe(now),
            lateness: [up.lateness(), down.lateness()],
            unsent: up.unsent() + down.unsent(),
        }
    }

    /// Removes the links, and returns their counters.
    pub fn close(self) -> Result<ShellStats, TestbedError> {
        let stats = self.stats();
        self.emulator.stop()?;
        Ok(stats)
    }
}

/// IPv4 and IPv6 addresses with their prefix lengths.
type Addresses = [(IpAddr, u8); 2];

/// Addresses for both ends of a link, in networks that the present namespace has no address in.
fn free_network() -> Result<[Addresses; 2], TestbedError> {
    // 100.64.0.0/10 is for carriers' own networks (RFC 6598), fd00::/8 for anybody's (RFC 4193).
    for number in 0..=u16::MAX >> 2 {
        let [high, low] = (number << 2).to_be_bytes();
        let address = |host: u8| {
            let ipv4 = Ipv4Addr::new(100, 101, high, low + host);
            let group = u16::from_be_bytes([high, low]);
            let ipv6 = Ipv6Addr::new(0xfd66, 0x6f6e, 0x7469, group, 0, 0, 0, host.into());
            [(ipv4.into(), 30), (ipv6.into(), 64)]
        };
        let [near, far] = [address(1), address(2)];
        let is_free = |ip: IpAddr| {
            let bound = std::net::UdpSocket::bind((ip, 0));
            bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrNotAvailable)
        };
        if is_free(near[0].0) && is_free(far[0].0) {
            return Ok([near, far]);
        }
    }
    Err(TestbedError::Unsupported("every network of 100.101.0.0/16 is in use here".to_owned()))
}
