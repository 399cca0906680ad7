//! The calls of the system that no library wraps safely: all that is `unsafe` here is in this file.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Bytes of the header that a TUN interface puts before each packet (`struct virtio_net_hdr`).
pub(super) const VNET_LEN: usize = 10;

/// A new TUN interface in the present network namespace, which vanishes with its descriptor, and
/// its name. Every packet has a header of [`VNET_LEN`] bytes; with `offload` the kernel gives
/// super-packets and leaves checksums to be done.
pub(super) fn open_tun(name: &str, offload: bool) -> io::Result<(OwnedFd, String)> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    // SAFETY: a request without a name and flags is a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    let fd = file.as_raw_fd();
    // SAFETY: TUNSETIFF reads and writes the request, which lives until the call returns.
    checked(unsafe { libc::ioctl(fd, libc::TUNSETIFF, &raw mut request) })?;
    let length = VNET_LEN as libc::c_int;
    // SAFETY: TUNSETVNETHDRSZ reads an integer, which lives until the call returns.
    checked(unsafe { libc::ioctl(fd, libc::TUNSETVNETHDRSZ, &raw const length) })?;
    if offload {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let with_udp = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
        // Kernels before 6.2 do not know UDP's.
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        checked(unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD, libc::c_ulong::from(with_udp)) })
            .or_else(|_| {
                // SAFETY: as above.
                checked(unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD, libc::c_ulong::from(tcp)) })
            })?;
    }
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char);
    Ok((file.into(), name.collect()))
}

/// Moves this thread into a network namespace.
pub(super) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: it changes where this thread's new sockets are, nothing in memory.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Moves this thread into new namespaces of these kinds.
pub(super) fn unshare(kinds: libc::c_int) -> io::Result<()> {
    // SAFETY: only kinds of namespaces are asked for, which share no memory or descriptors.
    checked(unsafe { libc::unshare(kinds) }).map(drop)
}

/// Lets this thread's sleeps end as exactly as the hardware can, instead of 50 µs later.
pub(super) fn sleep_exactly() {
    const NANOSECOND: libc::c_ulong = 1;
    // SAFETY: it takes numbers and changes a setting of this thread. If it fails, sleeps are less
    // exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, NANOSECOND) };
}

/// Gives this thread precedence over ordinary ones, if that is allowed.
pub(super) fn take_precedence() {
    const NICE: libc::c_int = -10;
    // SAFETY: it takes numbers and changes a setting of this thread. If it fails, the thread is as
    // good as others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// Makes `command` the only child of the first process of a new process namespace. That process
/// ends with the thread that starts the command, and the kernel then ends everything in the
/// namespace, for any end of this process. The thread must have requested the process namespace.
///
/// `alive` is the reading end of a pipe whose writing end, `hold`, is open as long as this process
/// lives.
pub(super) fn confine(command: &mut Command, alive: &OwnedFd, hold: &OwnedFd) {
    let (alive, hold) = (alive.as_raw_fd(), hold.as_raw_fd());
    // SAFETY: between fork and exec only calls that POSIX allows there are made; nothing is
    // allocated or locked.
    unsafe { command.pre_exec(move || become_first(alive, hold)) };
}

/// In the first process of its namespace: returns in a child of it, and stays to bury the dead.
fn become_first(alive: RawFd, hold: RawFd) -> io::Result<()> {
    // SAFETY: every call takes numbers, constants or pointers to what lives until it returns;
    // descriptors are this process's own copies.
    unsafe {
        checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        libc::close(hold);
        let mut end = libc::pollfd { fd: alive, events: libc::POLLIN, revents: 0 };
        // Whoever died before the signal was asked for sends none.
        if libc::poll(&raw mut end, 1, 0) > 0 {
            libc::_exit(1);
        }
        // Processes are to be seen as they are numbered here. Where it is not allowed, the old ones
        // are.
        if libc::unshare(libc::CLONE_NEWNS) == 0 {
            let slave = libc::MS_REC | libc::MS_SLAVE;
            let none = c"none".as_ptr();
            libc::mount(none, c"/".as_ptr(), std::ptr::null(), slave, std::ptr::null());
            let proc = c"proc".as_ptr();
            let safe = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            libc::mount(proc, c"/proc".as_ptr(), proc, safe, std::ptr::null());
        }
        let child = checked(libc::fork())?;
        if child == 0 {
            return Ok(());
        }
        libc::close_range(3, libc::c_uint::MAX, 0);
        loop {
            let mut status = 0;
            let dead = libc::waitpid(-1, &raw mut status, 0);
            if dead == child {
                let by_signal = libc::WIFSIGNALED(status);
                libc::_exit(if by_signal {
                    128 + libc::WTERMSIG(status)
                } else {
                    libc::WEXITSTATUS(status)
                });
            }
            if dead < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
                libc::_exit(1);
            }
        }
    }
}

/// The kernel's state of a TCP connection (`struct tcp_info`).
pub(super) fn tcp_info(socket: &impl AsFd) -> io::Result<libc::tcp_info> {
    // SAFETY: the structure is plain numbers, for which zero is valid.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, which the structure has.
    checked(unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    })?;
    Ok(info)
}

/// The kernel's state of the subflows of a Multipath TCP connection, at most the first nine
/// (`MPTCP_TCPINFO`, linux/mptcp.h). An error for a connection of plain TCP.
pub(super) fn subflow_infos(socket: &impl AsFd) -> io::Result<Vec<libc::tcp_info>> {
    const SOL_MPTCP: libc::c_int = 284;
    const MPTCP_TCPINFO: libc::c_int = 2;
    /// `struct mptcp_subflow_data`, and room for what follows it.
    #[repr(C, align(8))]
    struct Answer {
        header_size: u32,
        subflows: u32,
        kernel_size: u32,
        info_size: u32,
        infos: [libc::tcp_info; 9],
    }
    // SAFETY: the structure is plain numbers, for which zero is valid.
    let mut answer: Answer = unsafe { zeroed() };
    answer.header_size = 16;
    answer.info_size = size_of::<libc::tcp_info>() as u32;
    let mut length = size_of::<Answer>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, which the structure has.
    checked(unsafe {
        let to = (&raw mut answer).cast();
        libc::getsockopt(fd, SOL_MPTCP, MPTCP_TCPINFO, to, &raw mut length)
    })?;
    let count = (answer.subflows as usize).min(answer.infos.len());
    Ok(answer.infos[..count].to_vec())
}

/// Reads and discards at most `most` bytes of a TCP socket, without copying; returns their number.
pub(super) fn discard(socket: &impl AsFd, most: usize) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC TCP writes nothing to the buffer (tcp(7)), so there need be none.
    let got = unsafe { libc::recv(fd, std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Limits the window that a TCP socket, or a socket accepted from a listening one, offers to its
/// peer.
pub(super) fn clamp_window(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let length = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel reads an integer of this length, which lives until the call returns.
    let set = unsafe {
        let value = (&raw const bytes).cast();
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, value, length)
    };
    checked(set).map(drop)
}
