use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Namespace;
use super::error::{TestbedError, system};
use super::netlink::{HostRoute, Netlink};
use super::system as sys;

/// An interface through which the packets of a network namespace come to us. It vanishes with this
/// value.
#[derive(Debug)]
pub(super) struct Tun {
    descriptor: OwnedFd,
}

/// The settings of an interface.
#[derive(Clone, Debug)]
pub(super) struct Interface<'a> {
    /// Its name; the kernel replaces `%d` by a number.
    pub(super) name: &'a str,
    /// Its addresses and their prefix lengths.
    pub(super) addresses: &'a [(IpAddr, u8)],
    /// The largest packet.
    pub(super) mtu: u32,
    /// True if it is the default route.
    pub(super) default_route: bool,
    /// Single addresses that are reached there.
    pub(super) host_routes: &'a [HostRoute],
    /// Whether it gives super-packets.
    pub(super) offload: bool,
}

/// The largest read: an IP packet and the interface's header.
pub(super) const MAX_READ: usize = sys::VNET_LEN + 65_536 + 256;

impl Tun {
    /// A new interface in a namespace.
    pub(super) fn open(
        namespace: &Namespace,
        interface: &Interface<'_>,
    ) -> Result<Self, TestbedError> {
        let Interface { name, addresses, mtu, default_route, host_routes, offload } = *interface;
        namespace.run(move || {
            let (descriptor, name) = sys::open_tun(name, offload).map_err(|source| {
                let (what, advice) = (
                    "no TUN interface can be made",
                    "load the module tun and let this user read and write /dev/net/tun",
                );
                TestbedError::Forbidden { what, source, advice }
            })?;
            let mut netlink = Netlink::open().map_err(system("configure interfaces"))?;
            for (address, prefix) in addresses {
                let added = netlink.add_address(&name, *address, *prefix);
                // IPv6 may be switched off.
                if let Err(error) = added
                    && address.is_ipv4()
                {
                    return Err(system("give an interface its address")(error));
                }
            }
            netlink.set_up(&name, Some(mtu)).map_err(system("set an interface up"))?;
            if default_route {
                netlink.add_default_route(&name, false).map_err(system("add a route"))?;
                // As above.
                let _ = netlink.add_default_route(&name, true);
            }
            for route in host_routes {
                netlink.add_host_route(&name, *route).map_err(system("add a route"))?;
            }
            Ok(Self { descriptor })
        })
    }

    /// Reads a packet with its header; `None` if there is none.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.descriptor, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a packet with its header to the namespace; says whether it was taken.
    pub(super) fn write(&self, header: &[u8], payload: &[u8]) -> bool {
        let parts = [IoSlice::new(header), IoSlice::new(payload)];
        rustix::io::writev(&self.descriptor, &parts).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
