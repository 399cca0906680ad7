use std::io::{self, Read, Write};
use std::net::IpAddr;

use socket2::{Domain, Socket, Type};

/// Asks the kernel for changes of interfaces, addresses and routes (rtnetlink(7)).
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// A route to a single address.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRoute {
    pub(super) to: IpAddr,
    /// The initial window of TCP connections to it in segments, if it is not the kernel's own.
    pub(super) window: Option<u32>,
    /// Of several routes the kernel takes the one with the lowest; sockets that are bound to an
    /// interface take that interface's.
    pub(super) metric: u32,
}

/// Sizes of `struct nlmsghdr` and of the attribute's header `struct rtattr`.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;

/// The metric `RTAX_INITCWND` of a route.
const INITIAL_WINDOW: u16 = 11;

impl Netlink {
    /// A channel to the present network namespace.
    pub(super) fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW), None)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sets an interface up, with this MTU if one is given and a queue that is long enough for
    /// bursts.
    pub(super) fn set_up(&mut self, name: &str, mtu: Option<u32>) -> io::Result<()> {
        // What a TUN interface holds until it is read: packets beyond it are lost without being
        // counted anywhere.
        const QUEUE: u32 = 20_000;
        let up = libc::IFF_UP as u32;
        let link = [&[0; 4][..], &index(name)?.to_ne_bytes(), &up.to_ne_bytes(), &up.to_ne_bytes()];
        let mut body = link.concat();
        if let Some(mtu) = mtu {
            attribute(&mut body, libc::IFLA_MTU, &mtu.to_ne_bytes());
            attribute(&mut body, libc::IFLA_TXQLEN, &QUEUE.to_ne_bytes());
        }
        self.request(libc::RTM_NEWLINK, 0, &body)
    }

    /// Gives an interface an address, and the way to its neighbours in a network of this prefix
    /// length.
    pub(super) fn add_address(
        &mut self,
        name: &str,
        address: IpAddr,
        prefix: u8,
    ) -> io::Result<()> {
        let (family, bytes) = parts(address);
        // An IPv6 address is to be usable at once: nobody else can have it.
        let mut body = vec![family, prefix, libc::IFA_F_NODAD as u8, 0];
        body.extend(index(name)?.to_ne_bytes());
        attribute(&mut body, libc::IFA_LOCAL, &bytes);
        attribute(&mut body, libc::IFA_ADDRESS, &bytes);
        self.request(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
    }

    /// Sends all that has no better way by this interface.
    pub(super) fn add_default_route(&mut self, name: &str, ipv6: bool) -> io::Result<()> {
        let family = if ipv6 { libc::AF_INET6 } else { libc::AF_INET } as u8;
        let scope = if ipv6 { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let mut body = vec![family, 0, 0, 0, table, protocol, scope, libc::RTN_UNICAST, 0, 0, 0, 0];
        attribute(&mut body, libc::RTA_OIF, &index(name)?.to_ne_bytes());
        self.request(libc::RTM_NEWROUTE, libc::NLM_F_CREATE, &body)
    }

    /// Sends packets to one address by this interface.
    pub(super) fn add_host_route(&mut self, name: &str, route: HostRoute) -> io::Result<()> {
        let HostRoute { to, window, metric } = route;
        let (family, bytes) = parts(to);
        let prefix = (8 * bytes.len()) as u8;
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let scope = libc::RT_SCOPE_LINK;
        let mut body =
            vec![family, prefix, 0, 0, table, protocol, scope, libc::RTN_UNICAST, 0, 0, 0, 0];
        attribute(&mut body, libc::RTA_DST, &bytes);
        attribute(&mut body, libc::RTA_OIF, &index(name)?.to_ne_bytes());
        attribute(&mut body, libc::RTA_PRIORITY, &metric.to_ne_bytes());
        if let Some(window) = window {
            let mut metrics = Vec::new();
            attribute(&mut metrics, INITIAL_WINDOW, &window.to_ne_bytes());
            attribute(&mut body, libc::RTA_METRICS, &metrics);
        }
        self.request(libc::RTM_NEWROUTE, libc::NLM_F_CREATE, &body)
    }

    fn request(&mut self, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let length = (HEADER + body.len()) as u32;
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        (&self.socket).write_all(&message)?;
        let mut answer = [0; 4096];
        let length = (&self.socket).read(&mut answer)?;
        // The answer is an error number, negated; zero is consent.
        let code = answer.get(HEADER..HEADER + 4).filter(|_| length >= HEADER + 4);
        let code = code
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(libc::EPROTO, |bytes| -i32::from_ne_bytes(bytes));
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }
}

fn parts(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The number of an interface in the present namespace.
fn index(name: &str) -> io::Result<u32> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}
