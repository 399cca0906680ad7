//! Hash trees of files that have not changed since they were hashed.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

use blake3::Hash;
use lru::LruCache;

use crate::hash_tree::HashTree;
use crate::source::{Source, SourceError};

type Slot = Arc<Mutex<Option<Arc<HashTree>>>>;

/// Remembers the hash trees of the sources asked for last, so that a server hashes an object once,
/// however many ask for it at the same time. Lives in memory; may be used from several threads at
/// once.
#[derive(Debug)]
pub struct HashCache {
    slots: Mutex<LruCache<Hash, Slot>>,
}

impl HashCache {
    /// Remembers up to `capacity` trees, each 32 bytes a MiB of its object.
    pub fn new(capacity: NonZero<usize>) -> Self {
        Self { slots: Mutex::new(LruCache::new(capacity)) }
    }

    /// The hash tree of `source`: remembered, or hashed now, with `progress` told the bytes so far.
    ///
    /// Inode, size and the times of modification and of any change (if the system has it, since it
    /// cannot be set) distinguish states of a file. A file that changed in the last two seconds is
    /// hashed anew each time, because it may change again within one tick of that clock.
    ///
    /// # Errors
    /// Those of [`Source::hash_tree`].
    pub fn hash_tree(
        &self,
        source: &Source,
        progress: impl FnMut(u64),
    ) -> Result<Arc<HashTree>, SourceError> {
        let Some(slot) = self.slot(source) else {
            return source.hash_tree(progress).map(Arc::new);
        };
        // Held while hashing: whoever asks for the same object meanwhile waits for this tree.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = &*slot {
            return Ok(tree.clone());
        }
        let tree = Arc::new(source.hash_tree(progress)?);
        *slot = Some(tree.clone());
        Ok(tree)
    }

    /// The hash tree of `source` if it is remembered; never waits for one that is being made.
    pub fn get(&self, source: &Source) -> Option<Arc<HashTree>> {
        self.slot(source)?.try_lock().ok()?.clone()
    }

    /// Remembers the hash tree of `source`, unless the source may still change unseen or its tree
    /// is being made.
    pub fn put(&self, source: &Source, tree: Arc<HashTree>) {
        if let Some(slot) = self.slot(source)
            && let Ok(mut slot) = slot.try_lock()
        {
            *slot = Some(tree);
        }
    }

    /// The cache file of the tree of `source`; `None` if the source may change undetected.
    fn slot(&self, source: &Source) -> Option<Slot> {
        let key = source.state()?;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Some(slots.get_or_insert(key, Slot::default).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs::{File, FileTimes};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    /// All states of the file have the same size and the same time of modification.
    fn write(path: &Path, bytes: &[u8]) {
        std::fs::write(path, bytes).unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(then)).unwrap();
    }

    fn rest() {
        std::thread::sleep(Duration::from_millis(3500));
    }

    #[test]
    fn an_unchanged_object_is_hashed_once_and_a_changed_one_again() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x");
        let cache = HashCache::new(NonZero::new(4).unwrap());
        let hashed = Cell::new(0);
        let root = || {
            let source = Source::open(&path).unwrap();
            cache.hash_tree(&source, |_| hashed.set(hashed.get() + 1)).unwrap().root()
        };
        write(&path, b"one");
        rest();
        assert_eq!((root(), root()), (blake3::hash(b"one"), blake3::hash(b"one")));
        assert_eq!(hashed.get(), 1);
        write(&path, b"now");
        assert_eq!((root(), root()), (blake3::hash(b"now"), blake3::hash(b"now")));
        assert_eq!(hashed.get(), 3, "a file that may still change is not remembered");
        rest();
        assert_eq!((root(), root()), (blake3::hash(b"now"), blake3::hash(b"now")));
        assert_eq!(hashed.get(), 4, "what it was before is not what it is");
    }
}
