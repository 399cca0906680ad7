use std::io;

use thiserror::Error;

/// The reason why an algorithm cannot be loaded into the kernel or removed from it.
#[derive(Debug, Error)]
pub enum KernelError {
    /// There is no such algorithm.
    #[error("there is no algorithm called {0:?} to load; there is fld")]
    Unknown(String),
    /// It is loaded already.
    #[error("{0} is loaded already; `fontis kernel unload {0}` removes it")]
    Loaded(String),
    /// It is not loaded.
    #[error("{0} is not loaded; `fontis kernel load {0}` loads it")]
    NotLoaded(String),
    /// It is what all connections have.
    #[error(
        "{0} is the default already (net.ipv4.tcp_congestion_control): there is nothing to compare"
    )]
    Default(String),
    /// The kernel lacks something.
    #[error(
        "this kernel cannot take a congestion control by BPF: {0}; it needs Linux 5.17 or newer \
         with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF"
    )]
    Unsupported(String),
    /// This user may not.
    #[error("cannot {action}: permission denied; run it as root (CAP_BPF and CAP_NET_ADMIN)")]
    Forbidden {
        /// The attempted action.
        action: &'static str,
    },
    /// The verifier refused a program.
    #[error("the kernel refuses {program}: {source}; its last words are {log:?}")]
    Refused {
        /// The hook.
        program: String,
        /// The error of the system.
        source: io::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// The object file is not one of ours.
    #[error("the object file is broken: {0}")]
    Object(&'static str),
    /// The system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

/// Makes an error of the system one of loading.
pub(super) fn system(action: &'static str) -> impl FnOnce(io::Error) -> KernelError {
    move |source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => KernelError::Forbidden { action },
        Some(libc::ENOSYS) => KernelError::Unsupported("it has no system call bpf".to_owned()),
        _ => KernelError::System { action, source },
    }
}
