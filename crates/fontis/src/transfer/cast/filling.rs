use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::invitation::Invitation;
use super::listener::Listener;
use super::shelf::Shelf;
use crate::transfer::TransferError;
use crate::udp::GroupInterface;

/// The interval at which it is looked whether more is wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Fills `shelf` with what `remote` casts, until it is closed. Of blocks that were sent while this
/// side did not listen nothing is asked of the group.
///
/// # Errors
/// If the group cannot be listened to, or a block cannot be stored.
pub(in crate::transfer) async fn fill(
    invitation: &Invitation,
    remote: SocketAddr,
    shelf: Arc<dyn Shelf>,
) -> Result<(), TransferError> {
    let failed = |source| TransferError::Group { group: invitation.group, source };
    let interface = GroupInterface::towards(remote).map_err(failed)?;
    // The shelf is told at once of what others are told by messages.
    let (tell, _) = mpsc::unbounded_channel();
    let (listener, stopper) =
        Listener::shelving(invitation, remote, interface, shelf.clone(), tell)?;
    let mut running = pin!(tokio::task::spawn_blocking(move || listener.run()));
    while !shelf.is_closed() {
        tokio::select! {
            biased;
            outcome = &mut running => {
                return outcome.map_err(|_| TransferError::Worker)?.map(drop);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    drop(stopper);
    running.await.map_err(|_| TransferError::Worker)?.map(drop)
}
