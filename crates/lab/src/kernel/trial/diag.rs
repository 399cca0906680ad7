//! What the kernel tells of TCP connections (`sock_diag(7)`): all that there are, and each that
//! ends.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType};

use super::super::error::{KernelError, system};

/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_ERROR` and `NLMSG_DONE`.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// The groups `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`, as bits.
const ENDS: u32 = 1 << 0 | 1 << 2;
/// `INET_DIAG_INFO` and `INET_DIAG_CONG`.
const INFO: u16 = 2;
const CONG: u16 = 4;
/// Lengths of `struct nlmsghdr` and `struct inet_diag_msg`, and the place of the cookie there.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
const COOKIE: usize = 44;
/// States but those of listeners and of what only waits (`TCP_LISTEN`, `TCP_TIME_WAIT`).
const STATES: u32 = 0xfff & !(1 << 10) & !(1 << 6);

/// What the kernel counted of a connection by its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    pub(super) cookie: u64,
    /// Bytes that the peer acknowledged.
    pub acked: u64,
    /// Bytes sent, and of these again.
    pub sent: u64,
    /// Of the bytes sent, those sent again.
    pub again: u64,
    /// Seconds in which there were data that were not acknowledged.
    pub busy: f64,
}

fn open(groups: u32) -> io::Result<OwnedFd> {
    let kind = SocketType::RAW;
    let socket = rustix::net::socket(AddressFamily::NETLINK, kind, Some(netlink::SOCK_DIAG))?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

/// The connections that end.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    lost: u64,
}

impl Listener {
    pub(super) fn open() -> Result<Self, KernelError> {
        let socket = open(ENDS).map_err(system("watch connections end (CONFIG_INET_DIAG)"))?;
        // As much as the system allows; what does not fit is counted.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 8 << 20);
        Ok(Self { socket, lost: 0 })
    }

    /// The connections that have ended since.
    pub(super) fn ended(&mut self) -> Result<Vec<Ended>, KernelError> {
        let mut ended = Vec::new();
        let mut buffer = [0u8; 8192];
        loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    let all = messages(&buffer[..length.min(buffer.len())]);
                    ended.extend(all.filter_map(|(kind, body)| match kind {
                        BY_FAMILY => end(body),
                        _ => None,
                    }));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(ended),
                Err(rustix::io::Errno::INTR) => {}
                // More than the buffer holds came at once.
                Err(rustix::io::Errno::NOBUFS) => self.lost += 1,
                Err(error) => return Err(system("watch connections end")(error.into())),
            }
        }
    }

    /// How often the kernel told more than could be held.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}

/// The connections that there are.
#[derive(Debug)]
pub(super) struct Lister {
    socket: OwnedFd,
}

impl Lister {
    pub(super) fn open() -> Result<Self, KernelError> {
        let socket = open(0).map_err(system("list connections (CONFIG_INET_DIAG)"))?;
        Ok(Self { socket })
    }

    /// Cookies and algorithms of the connections in this network namespace.
    pub(super) fn list(&mut self) -> Result<Vec<(u64, String)>, KernelError> {
        let failed = system("list connections");
        let listed = [AddressFamily::INET, AddressFamily::INET6].into_iter().try_fold(
            Vec::new(),
            |mut listed, family| match self.list_family(family) {
                Ok(more) => {
                    listed.extend(more);
                    Ok(listed)
                }
                // A kernel without IPv6 has none of it.
                Err(error) if family == AddressFamily::INET6 && is_absent(&error) => Ok(listed),
                Err(error) => Err(error),
            },
        );
        listed.map_err(failed)
    }

    fn list_family(&mut self, family: AddressFamily) -> io::Result<Vec<(u64, String)>> {
        const REQUEST: usize = 56;
        let mut message = Vec::with_capacity(HEADER + REQUEST);
        message.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend(DUMP.to_ne_bytes());
        message.extend([0; 8]);
        message.extend([family.as_raw() as u8, libc::IPPROTO_TCP as u8, 1 << (CONG - 1), 0]);
        message.extend(STATES.to_ne_bytes());
        message.resize(HEADER + REQUEST, 0);
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        let mut listed = Vec::new();
        let mut buffer = vec![0u8; 64 << 10];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for (kind, body) in messages(&buffer[..length.min(buffer.len())]) {
                match kind {
                    DONE => return Ok(listed),
                    ERROR => {
                        let code = number::<4>(body, 0).map_or(0, i32::from_ne_bytes);
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                    BY_FAMILY => {
                        let cookie = number::<8>(body, COOKIE).map(u64::from_ne_bytes);
                        let name = attribute(body, CONG).map(text);
                        listed.extend(cookie.zip(name));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EAFNOSUPPORT))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// The messages of a datagram: kinds and bodies.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(number(rest, 0)?) as usize;
        let kind = u16::from_ne_bytes(number(rest, 4)?);
        let body = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, body))
    })
}

/// An attribute of a message about a socket.
fn attribute(body: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = body.get(MESSAGE..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(number(rest, 0)?));
        let kind = u16::from_ne_bytes(number(rest, 2)?);
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// What the kernel tells of a connection's end, by the places in `struct tcp_info`.
fn end(body: &[u8]) -> Option<Ended> {
    let info = attribute(body, INFO)?;
    let long = |at: usize| number::<8>(info, at).map(u64::from_ne_bytes);
    Some(Ended {
        cookie: u64::from_ne_bytes(number(body, COOKIE)?),
        acked: long(120)?,
        busy: long(168)? as f64 * 1e-6,
        sent: long(200)?,
        again: long(208)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cookie: u64, info: &[u8]) -> Vec<u8> {
        let mut body = vec![0; MESSAGE];
        body[COOKIE..COOKIE + 8].copy_from_slice(&cookie.to_ne_bytes());
        for (kind, value) in [(CONG, &b"reno\0"[..]), (INFO, info)] {
            body.extend(((4 + value.len()) as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(body);
        message
    }

    #[test]
    fn messages_are_read_and_what_is_cut_off_is_left() {
        let mut info = vec![0; 248];
        for (at, value) in [(120, 5000u64), (168, 1_500_000), (200, 6000), (208, 1000)] {
            info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let two = [told(7, &info), told(8, &info)].concat();
        let read: Vec<Ended> = messages(&two).filter_map(|(_, body)| end(body)).collect();
        let want = Ended { cookie: 7, acked: 5000, sent: 6000, again: 1000, busy: 1.5 };
        assert_eq!(read, [want, Ended { cookie: 8, ..want }]);
        let name = messages(&two).next().and_then(|(_, body)| attribute(body, CONG).map(text));
        assert_eq!(name.as_deref(), Some("reno"));
        // Whatever is cut off, nothing panics.
        for length in 0..two.len() {
            let read = messages(&two[..length]).filter_map(|(_, body)| end(body)).count();
            assert_eq!(read, usize::from(length >= two.len() / 2));
        }
        // A kernel that counts less tells nothing.
        assert_eq!(messages(&told(9, &info[..200])).find_map(|(_, body)| end(body)), None);
    }
}
