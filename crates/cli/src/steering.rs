//! The inputs that change a running command: its keyboard and its socket.

use crate::control::Control;

/// Accepts changes from keys and other processes while the returned value exists.
#[cfg(unix)]
pub(crate) fn open(
    control: &Control,
) -> (Option<crate::socket::Socket>, Option<crate::keyboard::Keyboard>) {
    (crate::socket::listen(control), crate::keyboard::Keyboard::listen(control))
}

/// On systems without the terminals and sockets of Unix, only flags set the limit.
#[cfg(not(unix))]
pub(crate) fn open(_: &Control) {}
