use core::fmt;
use std::sync::Arc;

use super::control::CongestionControl;

type Make = dyn Fn(u64, u64) -> Box<dyn CongestionControl> + Send + Sync;

/// The constructor of an algorithm from outside: makes one for each sender, from its segment size
/// and its initial window in bytes.
#[derive(Clone)]
pub struct CongestionMaker(Arc<Make>);

impl CongestionMaker {
    /// A constructor that calls this function.
    pub fn new(
        make: impl Fn(u64, u64) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn make(&self, mss: u64, initial_window: u64) -> Box<dyn CongestionControl> {
        (self.0)(mss, initial_window)
    }
}

impl fmt::Debug for CongestionMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CongestionMaker")
    }
}

impl PartialEq for CongestionMaker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
