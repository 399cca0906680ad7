use std::sync::Arc;
use std::time::Duration;

use super::state::Expected;
use super::swarm::{Swarm, SwarmEvent};
use crate::connection::{Connection, Received, RecvObject};
use crate::moment;
use crate::task;
use crate::transfer::TransferError;
use crate::transfer::outgoing::{CODE_UNWANTED, key_text, lost};

/// The time for the first of a block to come.
const TO_OPEN: Duration = Duration::from_secs(30);

/// Waits for a block, checks it and stores it. Who sends what is wrong is parted from.
pub(super) async fn run(swarm: Arc<Swarm>, connection: Connection, expected: Expected) {
    let Expected { edge, upload, block, opened, patience } = expected;
    let began = moment::now();
    let remote = connection.remote_addr();
    let fetched = match task::timeout(patience.min(TO_OPEN), opened).await {
        Ok(Ok(mut object)) => {
            let fetched = fetch(&swarm, &connection, &mut object, block);
            let fetched = task::timeout(patience, fetched).await;
            let fetched = fetched.unwrap_or(Err(TransferError::Stalled { remote }));
            if fetched.is_err() {
                object.abandon(CODE_UNWANTED);
            }
            fetched
        }
        Ok(Err(_)) => Err(lost(&connection)),
        Err(_) => Err(TransferError::Stalled { remote }),
    };
    match fetched {
        Ok(bytes) => {
            let took = moment::now() - began;
            // Who sees that all is there has been told of this block.
            let mut state = swarm.state();
            if state.came(edge, upload, block, took) {
                let key = key_text(&connection);
                swarm.tell(SwarmEvent::Fed { remote, key, block, bytes, took });
            }
        }
        Err(error) => {
            let mut state = swarm.state();
            state.missed(edge, upload, matches!(error, TransferError::Stalled { .. }));
            match error {
                TransferError::Sink(error) => _ = state.failure.get_or_insert(error),
                error @ (TransferError::Poisoned { .. } | TransferError::Protocol { .. }) => {
                    state.ban(edge);
                    drop(state);
                    swarm.tell(SwarmEvent::Parted(remote, error));
                    connection.close(0, "what it sent is wrong");
                }
                // The block comes from another, or again.
                _ => {}
            }
        }
    }
    swarm.wake();
}

async fn fetch(
    swarm: &Arc<Swarm>,
    connection: &Connection,
    object: &mut RecvObject,
    block: u32,
) -> Result<u64, TransferError> {
    let remote = connection.remote_addr();
    let wrong = |what| TransferError::Protocol { remote, what };
    let check = swarm.tree.check(u64::from(block)).ok_or(TransferError::Worker)?;
    if object.shape().size != swarm.tree.block_len(u64::from(block)) as u64 {
        return Err(wrong("a block of another size"));
    }
    let mut rejected = false;
    let mut changes = swarm.changes();
    loop {
        let received = tokio::select! {
            biased;
            received = object.next() => received,
            _ = changes.changed() => match swarm.state().policy.has(block) {
                // Another was sooner.
                true => return Err(TransferError::Abandoned { remote }),
                false => continue,
            },
        };
        let data = match received.ok_or_else(|| lost(connection))? {
            Received::Block(0, data) => data,
            Received::Block(..) => return Err(wrong("more blocks than one")),
            Received::Checkpoint(_) => continue,
            Received::Abandoned(_) => return Err(TransferError::Abandoned { remote }),
        };
        let (storing, bytes) = (swarm.clone(), data.len() as u64);
        let stored = task::blocking(move || {
            check.holds(&data).then(|| storing.content.write(block, &data)).transpose()
        });
        if stored.await.map_err(|_| TransferError::Worker)??.is_some() {
            object.release(0);
            return Ok(bytes);
        }
        // Damage on the way is forgiven once.
        if std::mem::replace(&mut rejected, true) {
            let key = key_text(connection);
            return Err(TransferError::Poisoned { remote, key, block });
        }
        object.reject(0);
    }
}
