//! The runtime that transfers run on, and how a user ends them.

use std::future::Future;

use crate::failure::Failure;

/// Runs a command's future on a runtime with as many threads as the machine has cores.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
    runtime.block_on(future)
}

/// Ends when the user asks for it: Ctrl-C, or `kill`.
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

/// Runs a transfer to its end or the user's, which fails with the text `interruption`.
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
