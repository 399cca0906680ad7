use fontis_proto::dfcp::ObjectShape;
use fontis_proto::sctp::SctpStats;

use super::TransferError;
use super::outgoing::{CODE_UNWANTED, lost};
use super::over_sctp::CarriedBlocks;
use crate::connection::{Connection, Received, RecvObject};

/// The content of an object on its way to this side.
pub(super) enum Coming {
    /// Over the connection.
    Object(RecvObject),
    /// Over SCTP, beside it.
    Carried(Box<CarriedBlocks>),
}

impl Coming {
    pub(super) fn shape(&self) -> ObjectShape {
        match self {
            Self::Object(object) => object.shape(),
            Self::Carried(blocks) => blocks.shape(),
        }
    }

    /// The next block, or what else is said of the object.
    pub(super) async fn next(
        &mut self,
        connection: &Connection,
    ) -> Result<Received, TransferError> {
        match self {
            Self::Object(object) => object.next().await.ok_or_else(|| lost(connection)),
            Self::Carried(blocks) => blocks.next(connection).await,
        }
    }

    /// A block is stored.
    pub(super) fn release(&mut self, block: u32) {
        match self {
            Self::Object(object) => object.release(block),
            Self::Carried(_) => {}
        }
    }

    /// A block is wrong. Whether it may come again.
    pub(super) fn reject(&mut self, block: u32) -> bool {
        match self {
            Self::Object(object) => {
                object.reject(block);
                true
            }
            // Every record of it bore the sender's code: it is as the sender wanted it.
            Self::Carried(_) => false,
        }
    }

    /// Nothing more is wanted.
    pub(super) fn abandon(self) {
        match self {
            Self::Object(object) => object.abandon(CODE_UNWANTED),
            Self::Carried(blocks) => blocks.abort(),
        }
    }

    /// The counters of SCTP, if it carries the object.
    pub(super) fn sctp(&self) -> Option<SctpStats> {
        match self {
            Self::Object(_) => None,
            Self::Carried(blocks) => Some(blocks.stats()),
        }
    }
}
