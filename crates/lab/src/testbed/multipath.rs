//! Multipath TCP (RFC 8684): its kernel's path manager, which the command `ip` of iproute2 sets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use socket2::{Domain, Protocol, Socket, Type};

use super::error::{TestbedError, system};
use super::namespace::Namespace;

/// The protocol's number for sockets (linux/in.h).
const PROTOCOL: i32 = 262;

/// Opens a stream socket of TCP, or of Multipath TCP, for addresses like this.
pub(super) fn open(address: SocketAddr, is_multipath: bool) -> Result<Socket, TestbedError> {
    let protocol = if is_multipath { Protocol::from(PROTOCOL) } else { Protocol::TCP };
    let opened = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol));
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT) if is_multipath => {
            TestbedError::Unsupported(
                "this kernel has no Multipath TCP, or net.mptcp.enabled is 0".to_owned(),
            )
        }
        _ => system("open a socket")(error),
    })
}

/// Permits this number of subflows in a namespace beside a connection's first, one from each of
/// these addresses.
pub(super) fn manage(
    namespace: &Namespace,
    beside: usize,
    from: &[IpAddr],
) -> Result<(), TestbedError> {
    namespace.run(|| {
        ip(&["limits", "set", "subflows", &beside.to_string()])?;
        from.iter().try_for_each(|address| {
            let address = address.to_string();
            ip(&["endpoint", "add", &address, "dev", super::plan::INTERFACE, "subflow"])
        })
    })
}

/// Runs `ip mptcp` in this thread's namespace.
fn ip(arguments: &[&str]) -> Result<(), TestbedError> {
    let output = Command::new("ip").arg("mptcp").args(arguments).output();
    let output = output.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => TestbedError::Unsupported(
            "Multipath TCP takes the command ip, which is not installed (Debian: iproute2)".into(),
        ),
        _ => system("run ip")(source),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TestbedError::Unsupported(format!("ip mptcp {}: {said}", arguments.join(" "))))
}
