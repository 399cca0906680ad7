//! Packets as they arrive at an interface.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fontis_trace::capture::Arrival;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
    recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal};

/// Watches what arrives at an interface, with the times at which the kernel took it.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    index: usize,
    buffer: Vec<u8>,
}

/// The longest wait for the socket.
const WAIT: Duration = Duration::from_millis(100);
/// The captured bytes of a packet: all headers, and more.
const SEEN: usize = 256;
/// For bursts between two looks.
const RECEIVE_BUFFER: usize = 8 << 20;

impl Interface {
    /// Begins to watch. An error names the fault and the requirement.
    pub fn open(name: &str) -> Result<Self, String> {
        let index = if_nametoindex(name).map_err(|_| {
            format!("there is no interface {name:?}: \"ip link\" or /sys/class/net has their names")
        })?;
        let fail = |error: Errno| match error {
            Errno::EPERM | Errno::EACCES => {
                format!("cannot watch {name}: it takes root, or the capability CAP_NET_RAW")
            }
            error => format!("cannot watch {name}: {}", io::Error::from(error)),
        };
        let (flags, all) = (SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll);
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, all).map_err(fail)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(fail)?;
        let wait = TimeVal::new(0, WAIT.as_micros() as _);
        setsockopt(&socket, sockopt::ReceiveTimeout, &wait).map_err(fail)?;
        // Without it bursts may be missed on a busy machine; some systems allow less.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
        Ok(Self { socket, index: index as usize, buffer: vec![0; SEEN] })
    }

    /// The next IP packet that arrives; `None` if none does within a tenth of a second.
    pub fn receive(&mut self) -> io::Result<Option<Arrival>> {
        loop {
            let mut slices = [IoSliceMut::new(&mut self.buffer)];
            let mut control = nix::cmsg_space!(TimeSpec);
            let fd = self.socket.as_raw_fd();
            let got = recvmsg::<LinkAddr>(fd, &mut slices, Some(&mut control), MsgFlags::empty());
            let message = match got {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let here = |from: &LinkAddr| {
                // What this machine sends is seen too.
                from.ifindex() == self.index && from.pkttype() != PACKET_OUTGOING
            };
            if !message.address.as_ref().is_some_and(here) {
                continue;
            }
            let mut stamps = message.cmsgs()?.filter_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
                _ => None,
            });
            let at = stamps.next();
            let at = at.or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).ok());
            let nanos = at.map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
            let length = message.bytes;
            let seen = Arrival::read(nanos, &self.buffer[..length]);
            if seen.is_some() {
                return Ok(seen);
            }
        }
    }
}

/// `PACKET_OUTGOING` of packet(7).
const PACKET_OUTGOING: u8 = 4;
