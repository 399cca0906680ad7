use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::hash_tree::HashTree;
use crate::left_out::LeftOut;
use crate::sink::{Sink, SinkError};
use crate::source::Source;

/// The blocks of an object on this side's disk.
pub(super) struct Content {
    tree: Arc<HashTree>,
    place: RwLock<Place>,
}

enum Place {
    /// Everything, as it was offered.
    Whole(Arc<Source>),
    /// What has come.
    Partial(Box<Sink>),
    /// Between the two, or for good if what was stored cannot be read.
    Nowhere,
}

impl Content {
    pub(super) fn whole(tree: Arc<HashTree>, source: Arc<Source>) -> Self {
        Self { tree, place: RwLock::new(Place::Whole(source)) }
    }

    pub(super) fn partial(tree: Arc<HashTree>, sink: Sink) -> Self {
        Self { tree, place: RwLock::new(Place::Partial(Box::new(sink))) }
    }

    fn offset(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.tree.block_size())
    }

    /// A block, checked: what has been changed since it was stored is nobody's. For
    /// threads that may block, as all of these.
    pub(super) fn read(&self, block: u32) -> Option<Bytes> {
        let (offset, len) = (self.offset(block), self.tree.block_len(u64::from(block)));
        let bytes = match &*self.place.read().unwrap_or_else(PoisonError::into_inner) {
            Place::Whole(source) => {
                let mut bytes = Vec::new();
                source.read_block(offset, len, &mut bytes).ok()?;
                bytes
            }
            Place::Partial(sink) => sink.read(offset, len)?,
            Place::Nowhere => return None,
        };
        self.tree.verify_block(u64::from(block), &bytes).then(|| bytes.into())
    }

    /// The entries that an origin leaves out.
    pub(super) fn left_out(&self) -> LeftOut {
        match &*self.place.read().unwrap_or_else(PoisonError::into_inner) {
            Place::Whole(source) => source.left_out().clone(),
            Place::Partial(_) | Place::Nowhere => LeftOut::default(),
        }
    }

    /// Stores a block.
    pub(super) fn write(&self, block: u32, bytes: &[u8]) -> Result<(), SinkError> {
        match &*self.place.read().unwrap_or_else(PoisonError::into_inner) {
            Place::Partial(sink) => sink.write_block(self.offset(block), bytes),
            Place::Whole(_) | Place::Nowhere => Ok(()),
        }
    }

    /// Gives what is complete its name; from then on it is read from there.
    pub(super) fn finish(&self) -> Option<Result<(PathBuf, LeftOut), SinkError>> {
        let mut place = self.place.write().unwrap_or_else(PoisonError::into_inner);
        let Place::Partial(sink) = std::mem::replace(&mut *place, Place::Nowhere) else {
            return None;
        };
        let finished = sink.finish();
        if let Ok((path, _)) = &finished
            && let Ok(source) = Source::open(path)
            && source.size() == self.tree.size()
        {
            // Entries that could not be here shift the others: no block of them passes its check.
            *place = Place::Whole(Arc::new(source));
        }
        Some(finished)
    }
}
