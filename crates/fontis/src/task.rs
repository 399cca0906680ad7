//! Work beside other work: the edge between the library, the runtime and its threads.
//!
//! The functions are the runtime's own, or calls of them that the compiler puts in their place. In
//! the crate's unit tests they ask first whether a simulated machine runs.

#[cfg(test)]
pub(crate) use crate::whole::task::{Tasks, blocking, compute, sleep, spawn, thread, timeout};
#[cfg(not(test))]
pub(crate) use system::{Tasks, blocking, compute, sleep, spawn, thread, timeout};

/// The runtime's and the system's.
pub(crate) mod system {
    use std::io;

    use tokio::runtime::Handle;
    pub(crate) use tokio::task::JoinSet as Tasks;
    use tokio::task::{JoinHandle, spawn_blocking};
    pub(crate) use tokio::time::{sleep, timeout};

    /// The end of work on a thread for work that blocks.
    pub(crate) type Blocking<T> = JoinHandle<T>;

    /// Runs a task beside this one.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(task));
    }

    /// Runs work that may block.
    pub(crate) fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Blocking<T> {
        spawn_blocking(work)
    }

    /// Runs work that takes the processor.
    pub(crate) fn compute(work: impl FnOnce() + Send + 'static) {
        rayon::spawn(work);
    }

    /// Runs a task, which may block, on a thread of its own.
    pub(crate) fn thread(
        name: &str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let runtime = Handle::current();
        let run = move || runtime.block_on(task);
        std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
    }
}
