//! Multipath TCP (RFC 8684): its kernel's path manager, which the command `ip` of iproute2 sets.

use std::io;
use std::net::IpAddr;
use std::process::Command;

use super::error::{TestbedError, system};
use super::namespace::Namespace;

/// The protocol's number for sockets (linux/in.h).
pub(super) const PROTOCOL: i32 = 262;

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
            ip(&["endpoint", "add", &address, "dev", super::network::INTERFACE, "subflow"])
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
