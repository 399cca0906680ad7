use std::sync::Arc;
use std::time::Duration;

use fontis_proto::dfcp::{Held, SendOptions};
use tokio::sync::oneshot;

use super::swarm::{Swarm, send};
use super::wire::SwarmWire;
use crate::connection::{Connection, SendProgress};
use crate::task;
use crate::transfer::message::label;
use crate::transfer::outgoing::{CODE_STALLED, CODE_UNREADABLE, shape};

/// The least that is left of an upload when the next is offered, in bytes.
const LEAST_LEAD: u64 = 32 << 10;

/// Sends a block as the upload `upload` to the neighbour `edge`; gives its
/// bytes if it was delivered.
pub(super) async fn run(
    swarm: &Arc<Swarm>,
    connection: &Connection,
    (edge, upload): (u32, u32),
    block: u32,
    patience: Duration,
) -> Option<u64> {
    let len = swarm.tree.block_len(u64::from(block));
    let shape = shape(len as u64, swarm.tree.block_size());
    let object =
        connection.send_object(shape, label(upload), SendOptions::default(), Held::default());
    let mut object = object.await?;
    let late = task::sleep(patience);
    let mut late = std::pin::pin!(late);
    let mut nearly: Option<oneshot::Receiver<u64>> = None;
    loop {
        let ending = async {
            match &mut nearly {
                Some(nearly) => _ = nearly.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut late => {
                object.abandon(CODE_STALLED);
                return None;
            }
            () = ending => {
                nearly = None;
                swarm.state().ending(edge, upload);
                send(vec![(connection.clone(), SwarmWire::Ending { upload })]);
                swarm.wake();
            }
            progress = object.next() => match progress {
                None | Some(SendProgress::Abandoned(_)) => return None,
                Some(SendProgress::Delivered) => return Some(len as u64),
                Some(SendProgress::Wanted(_)) => {
                    let reading = swarm.clone();
                    let read = task::blocking(move || reading.content.read(block)).await;
                    let Ok(Some(data)) = read else {
                        object.abandon(CODE_UNREADABLE);
                        swarm.state().forget(block);
                        return None;
                    };
                    object.supply(0, data);
                    nearly = Some(object.nearly_sent(lead(connection).await));
                }
            },
        }
    }
}

/// What leaves while an offer is answered.
async fn lead(connection: &Connection) -> u64 {
    let stats = connection.stats().await.unwrap_or_default();
    let bytes = stats.rate.as_bps() as f64 / 8.0 * stats.srtt.as_secs_f64();
    (bytes as u64).max(LEAST_LEAD)
}
