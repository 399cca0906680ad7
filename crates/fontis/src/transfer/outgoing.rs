use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fontis_codes::Code;
use fontis_proto::dfcp::{CloseReason, Held, ObjectShape, SYMBOL_SIZE, SendOptions, Stats};

use super::message::{Offer, label};
use super::{PROGRESS_EVERY, TransferError};
use crate::{CODE_REFUSED_KEY, ConnectError, Connection, HashTree, SendProgress, Source};

/// The code of an object whose source changed or could not be read.
pub(super) const CODE_UNREADABLE: u32 = 1;
/// The code of an object that the receiving side does not want or cannot store.
pub(super) const CODE_UNWANTED: u32 = 2;
/// The code of a connection that a client closes because it has verified and stored what it asked for. The last
/// acknowledgement may be lost; a close is repeated until it is answered.
pub(super) const CODE_COMPLETE: u32 = 3;

/// An object to be sent: its source and its hash tree.
pub(super) struct Outgoing {
    pub(super) source: Arc<Source>,
    pub(super) tree: Arc<HashTree>,
}

impl Outgoing {
    pub(super) fn offer(&self) -> Result<Offer, TransferError> {
        Ok(Offer {
            root: *self.tree.root().as_bytes(),
            size: self.tree.size(),
            block_size: self.tree.block_size(),
            manifest: self.source.manifest().encode()?,
            tree: self.tree.to_bytes(),
        })
    }

    /// Bytes of the blocks that the peer holds.
    pub(super) fn held_bytes(&self, held: &Held) -> u64 {
        let (size, block) = (self.tree.size(), u64::from(self.tree.block_size()));
        let offset = |index: u32| (u64::from(index) * block).min(size);
        held.done().iter().map(|run| offset(run.end) - offset(run.start)).sum()
    }

    /// Sends the content and returns when the peer has verified all of it; `moved` is told now and then of what has been
    /// read, and of the last block.
    pub(super) async fn send(
        &self,
        connection: &Connection,
        id: u32,
        held: Held,
        mut moved: impl FnMut(u64, Stats),
    ) -> Result<(), TransferError> {
        let remote = connection.remote_addr();
        let mut done = self.held_bytes(&held);
        let mut told: Option<Instant> = None;
        let shape = shape(&self.tree);
        let lost = || lost(connection);
        let Some(mut object) =
            connection.send_object(shape, label(id), SendOptions::default(), held).await
        else {
            return Err(lost());
        };
        loop {
            let Some(progress) = object.next().await else {
                let complete = CloseReason::Peer { code: CODE_COMPLETE, reason: String::new() };
                return if connection.closed().await == complete { Ok(()) } else { Err(lost()) };
            };
            match progress {
                SendProgress::Delivered => return Ok(()),
                SendProgress::Abandoned(_) => return Err(TransferError::Abandoned { remote }),
                SendProgress::Wanted(block) => match self.read(shape, block).await {
                    Ok(data) => {
                        done += data.len() as u64;
                        object.supply(block, data);
                        // Asking takes the connection's thread from its packets.
                        if (done == shape.size
                            || told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY))
                            && let Some(stats) = connection.stats().await
                        {
                            told = Some(Instant::now());
                            moved(done, stats);
                        }
                    }
                    Err(error) => {
                        object.abandon(CODE_UNREADABLE);
                        return Err(error);
                    }
                },
            }
        }
    }

    async fn read(&self, shape: ObjectShape, block: u32) -> Result<Bytes, TransferError> {
        let source = self.source.clone();
        let tree = self.tree.clone();
        tokio::task::spawn_blocking(move || {
            let (offset, mut buffer) = (u64::from(block) * u64::from(shape.block_size), Vec::new());
            source.read_block(offset, shape.block_len(block) as usize, &mut buffer)?;
            if !source.is_at_rest() && !tree.verify_block(u64::from(block), &buffer) {
                return Err(
                    crate::SourceError::Changed { path: source.manifest().name().into() }.into()
                );
            }
            Ok(buffer.into())
        })
        .await
        .map_err(|_| TransferError::Worker)?
    }
}

/// The partition of an object with this tree.
pub(super) fn shape(tree: &HashTree) -> ObjectShape {
    ObjectShape {
        size: tree.size(),
        block_size: tree.block_size(),
        symbol_size: SYMBOL_SIZE,
        code: Code::RaptorQ.id(),
    }
}

/// Closes a connection, and waits until the peer knows or has had time to.
pub(super) async fn close(connection: &Connection, code: u32) {
    connection.close(code, "");
    connection.closed().await;
}

/// The error of a connection that is over.
pub(super) fn lost(connection: &Connection) -> TransferError {
    let remote = connection.remote_addr();
    match connection.close_reason().unwrap_or(CloseReason::Local) {
        CloseReason::Peer { code: CODE_REFUSED_KEY, .. } => ConnectError::RefusedKey(remote).into(),
        reason => TransferError::Lost { remote, reason },
    }
}
