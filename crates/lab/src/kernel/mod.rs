//! Congestion controls of our own in the running kernel, by BPF.
//!
//! Start here: [`load`] makes an algorithm one of the kernel's until [`unload`] or a reboot;
//! [`Loaded`] is one for as long as a value lives, under a name of its own; [`KernelTrial`]
//! compares one with what the machine has, on the machine's own connections. An object file
//! (`object`) holds a program for each hook of `struct tcp_congestion_ops`; `struct_ops` gives them
//! to the kernel, which adapts them to its own types (`.BTF.ext`) and verifies them.
//!
//! The sources are in `contrib/bpf`.

mod error;
mod object;
mod struct_ops;
mod system;
mod trial;
mod types;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use error::KernelError;
use fontis_proto::congestion::CongestionKind;
use object::Object;
use struct_ops::Life;
pub use trial::{Class, Comparison, Ended, KernelTrial, TrialOutcome};

/// The algorithms that can be loaded, by name, with their object files.
const ALGORITHMS: [(&str, &[u8]); 1] =
    [("fld", include_bytes!("../../../../contrib/bpf/fld.bpf.o"))];

/// The names of the algorithms that can be loaded.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|(name, _)| *name)
}

fn object(name: &str) -> Result<Object<'static>, KernelError> {
    let known = ALGORITHMS.iter().find(|(known, _)| *known == name);
    let (_, bytes) = known.ok_or_else(|| KernelError::Unknown(name.to_owned()))?;
    Object::read(bytes)
}

/// What an algorithm does to a shared queue beyond what CUBIC does: the rows of docs/safety.md in
/// which it drops more than a fiftieth of the packets, and more than CUBIC.
pub fn warning(name: &str) -> Option<&'static str> {
    let known = ALGORITHMS.iter().find(|(known, _)| *known == name)?;
    known.0.parse::<CongestionKind>().ok()?.warning()
}

/// Makes an algorithm one of the kernel's, in all its network namespaces, until [`unload`] or a
/// reboot.
pub fn load(name: &str) -> Result<(), KernelError> {
    let object = object(name)?;
    if is_loaded(name)? {
        return Err(KernelError::Loaded(name.to_owned()));
    }
    struct_ops::register(&object, name, Life::UntilRemoved).map(drop)
}

/// Removes an algorithm that [`load`] brought. Connections that have it keep it until they end.
pub fn unload(name: &str) -> Result<(), KernelError> {
    object(name)?;
    match struct_ops::find(name)? {
        Some(map) => struct_ops::remove(&map),
        None => Err(KernelError::NotLoaded(name.to_owned())),
    }
}

/// Whether an algorithm is loaded.
pub fn is_loaded(name: &str) -> Result<bool, KernelError> {
    object(name)?;
    struct_ops::find(name).map(|map| map.is_some())
}

/// The hash (SHA-256, in hexadecimal digits) of the source that an algorithm's object was made of.
pub fn source_hash(name: &str) -> Result<String, KernelError> {
    Ok(object(name)?.source.to_owned())
}

/// An algorithm in the kernel for as long as this value lives. It goes with the process, however
/// that ends.
#[derive(Debug)]
pub struct Loaded {
    /// The name by which sockets choose it.
    name: String,
    _link: Option<OwnedFd>,
}

/// The algorithms that this process has loaded for itself.
static SHARED: Mutex<Vec<(String, Weak<Loaded>)>> = Mutex::new(Vec::new());

impl Loaded {
    /// An algorithm under a name that no other process has. It is loaded once for all that have it.
    pub fn shared(algorithm: &str) -> Result<Arc<Self>, KernelError> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|(_, loaded)| loaded.strong_count() > 0);
        let known = shared.iter().find(|(name, _)| name == algorithm);
        if let Some(loaded) = known.and_then(|(_, loaded)| loaded.upgrade()) {
            return Ok(loaded);
        }
        let loaded = Arc::new(Self::new(algorithm)?);
        shared.push((algorithm.to_owned(), Arc::downgrade(&loaded)));
        Ok(loaded)
    }

    fn new(algorithm: &str) -> Result<Self, KernelError> {
        // An algorithm that nobody has any more may not have gone yet.
        static LOADS: AtomicU32 = AtomicU32::new(0);
        let number = LOADS.fetch_add(1, Ordering::Relaxed) % 1000;
        let name = format!("{algorithm}_{}_{number}", std::process::id());
        let link =
            struct_ops::register(&object(algorithm)?, &name, Life::OfDescriptor { open: false })?;
        Ok(Self { name, _link: link })
    }

    /// The name by which sockets choose it (`TCP_CONGESTION`).
    pub fn name(&self) -> &str {
        &self.name
    }
}
