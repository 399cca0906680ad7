//! The runtime of transfers, and their interruption by the user.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::peer::Keys;

/// The longest time that an ending command waits for its peers.
const FAREWELL: Duration = Duration::from_secs(3);

/// Runs a command's future on a runtime with a thread for each core, then closes its connections.
pub(crate) fn block_on<T>(
    keys: &Keys,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(future);
    let farewell = async { tokio::time::timeout(FAREWELL, keys.farewell()).await };
    // Peers that do not answer are none of the result.
    let _ = runtime.block_on(farewell);
    result
}

/// Completes at Ctrl-C or `kill`.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Runs a transfer until it ends or the user interrupts it; then it fails with the text
/// `interruption`.
pub(crate) async fn until_interrupted<T>(
    transfer: impl Future<Output = Result<T, Failure>>,
    interruption: &str,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        result = transfer => result,
        () = interrupted() => {
            Err(Failure::Failed(interruption.to_owned()))
        }
    }
}

/// A flag that the user's interruption sets, for code without a runtime.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Failed(format!("interrupts cannot be handled: {error}")))?;
    Ok(stop)
}

/// The end of a command that runs until a time or an interruption.
#[derive(Debug)]
pub(crate) struct Deadline {
    end: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Deadline {
    /// This time from now.
    pub(crate) fn new(time: Option<fontis_base::Duration>) -> Result<Self, Failure> {
        let end = time.and_then(|time| Instant::now().checked_add(time.into()));
        Ok(Self { end, stop: interruption()? })
    }

    /// Returns true if the time has come.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }
}
