use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use super::error::{TestbedError, system};
use super::netlink::Netlink;
use super::system as sys;

/// A network namespace without a name. It lives as long as this value, its open descriptors and its
/// processes.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
}

impl Namespace {
    /// A new namespace, in which nothing but the loopback interface is there, and up.
    pub fn new() -> Result<Self, TestbedError> {
        let made = scoped(|| {
            sys::unshare(libc::CLONE_NEWNET).map_err(|source| TestbedError::Forbidden {
                what: "no network namespace can be made",
                source,
                advice: "let users make user namespaces (user.max_user_namespaces above 0)",
            })?;
            let mut netlink = Netlink::open().map_err(system("configure interfaces"))?;
            netlink.set_up("lo", None).map_err(system("set the loopback interface up"))?;
            // Nobody is to talk but those who are meant to. Without IPv6 nobody does.
            for (name, value) in [("router_solicitations", "0"), ("addr_gen_mode", "1")] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/default/{name}"), value);
            }
            present()
        })?;
        Ok(Self { descriptor: made })
    }

    /// The namespace that this process is in.
    pub fn own() -> Result<Self, TestbedError> {
        Ok(Self { descriptor: present()? })
    }

    /// Runs a function in the namespace, on its own thread: sockets that it opens are there.
    pub fn run<T: Send>(
        &self,
        act: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<T, TestbedError> {
        scoped(|| {
            self.enter()?;
            act()
        })
    }

    /// Moves this thread into the namespace.
    pub(super) fn enter(&self) -> Result<(), TestbedError> {
        sys::enter_network(self.descriptor.as_fd()).map_err(system("enter a network namespace"))
    }

    /// Another handle of the same namespace.
    pub(super) fn share(&self) -> Result<Self, TestbedError> {
        let copy = self.descriptor.try_clone().map_err(system("copy a descriptor"))?;
        Ok(Self { descriptor: copy })
    }

    /// Sets kernel parameters of the namespace, as `net/ipv4/tcp_sack`; gives those that this
    /// kernel does not have or does not let be set there.
    pub(super) fn set_parameters(
        &self,
        parameters: &[(&'static str, String)],
    ) -> Result<Vec<&'static str>, TestbedError> {
        self.run(|| {
            let failed = parameters.iter().filter(|(name, value)| {
                fs::write(format!("/proc/sys/{name}"), format!("{value}\n")).is_err()
            });
            Ok(failed.map(|(name, _)| *name).collect())
        })
    }
}

/// The network namespace of this thread.
fn present() -> Result<OwnedFd, TestbedError> {
    let file = fs::File::open("/proc/thread-self/ns/net");
    Ok(file.map_err(system("open the network namespace"))?.into())
}

fn scoped<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let result = thread::scope(|scope| scope.spawn(act).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns true if this process may make namespaces and configure interfaces: CAP_NET_ADMIN and
/// CAP_SYS_ADMIN.
fn is_capable() -> bool {
    const NEEDED: u64 = 1 << 12 | 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    effective.is_some_and(|mask| mask & NEEDED == NEEDED)
}

/// Gives this process the capabilities to make networks, in a user namespace if it lacks them.
///
/// Call it before the process has a second thread. Says whether networks of the machine itself can
/// be changed, which is so without a user namespace only.
pub fn gain_privilege() -> Result<bool, TestbedError> {
    let tun = || fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let forbidden = |what, advice| move |source| TestbedError::Forbidden { what, source, advice };
    tun().map_err(forbidden(
        "/dev/net/tun cannot be opened",
        "load the module tun and let this user read and write /dev/net/tun",
    ))?;
    if is_capable() {
        return Ok(true);
    }
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    sys::unshare(libc::CLONE_NEWUSER).map_err(forbidden(
        "no user namespace can be made",
        "let users make them (user.max_user_namespaces, kernel.unprivileged_userns_clone, \
         kernel.apparmor_restrict_unprivileged_userns)",
    ))?;
    // A group may be mapped only by those who can no longer drop theirs.
    let map = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    let mapped: io::Result<()> = (|| {
        map("setgroups", "deny".to_owned())?;
        map("uid_map", format!("{0} {0} 1", user.as_raw()))?;
        map("gid_map", format!("{0} {0} 1", group.as_raw()))
    })();
    mapped.map_err(system("map the user into a user namespace"))?;
    scoped(|| sys::unshare(libc::CLONE_NEWNET)).map_err(forbidden(
        "no network namespace can be made in a user namespace",
        "let users make user namespaces with privileges (kernel.apparmor_restrict_unprivileged_userns = 0)",
    ))?;
    Ok(false)
}
