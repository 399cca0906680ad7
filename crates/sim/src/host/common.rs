//! Objects that several sources send to one receiver, each its part.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fontis_base::Time;
use fontis_proto::dfcp::ObjectShape;
use fontis_proto::sources::SourcePlan;

/// An object that several sources have, and who sends which blocks of it, by the plan of `fontis
/// get` with several URLs. Both ends of all connections see the plan: what the receiver would ask a
/// source for takes no round trip.
#[derive(Clone, Debug)]
pub struct CommonObject(Arc<Mutex<Common>>);

#[derive(Debug)]
struct Common {
    shape: ObjectShape,
    plan: SourcePlan,
    /// What each source sends now.
    parts: BTreeMap<u32, Vec<u32>>,
    completed_at: Option<Time>,
}

impl CommonObject {
    /// One of which nothing has been sent.
    pub fn new(shape: ObjectShape) -> Self {
        let plan = SourcePlan::new(0..shape.blocks().unwrap_or(0));
        let (parts, completed_at) = (BTreeMap::new(), None);
        Self(Arc::new(Mutex::new(Common { shape, plan, parts, completed_at })))
    }

    fn common(&self) -> MutexGuard<'_, Common> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is one more source. Who is there decides how large the parts are.
    pub fn join(&self, source: u32) {
        self.common().parts.insert(source, Vec::new());
    }

    /// The blocks that a source sends next, and their shape as an object of its own.
    pub fn take(&self, source: u32) -> Option<(Vec<u32>, ObjectShape)> {
        let common = &mut *self.common();
        let blocks = common.plan.take(source as usize, common.parts.len(), false)?;
        let blocks: Vec<u32> = blocks.into_iter().collect();
        common.parts.insert(source, blocks.clone());
        let size = blocks.iter().map(|block| u64::from(common.shape.block_len(*block))).sum();
        Some((blocks, ObjectShape { size, ..common.shape }))
    }

    /// What a source sends now.
    pub fn part(&self, source: u32) -> Vec<u32> {
        self.common().parts.get(&source).cloned().unwrap_or_default()
    }

    /// Whether a source has still to send something that is not there.
    pub fn is_asked(&self, source: u32) -> bool {
        self.common().plan.is_asked(source as usize)
    }

    /// A block has come: its bytes, unless it was there.
    pub fn came(&self, block: u32, now: Time) -> Option<u32> {
        let common = &mut *self.common();
        let is_new = common.plan.complete(block);
        if common.plan.is_complete() {
            common.completed_at.get_or_insert(now);
        }
        is_new.then(|| common.shape.block_len(block))
    }

    /// A source is gone: others have to send what it has not.
    pub fn leave(&self, source: u32) {
        let common = &mut *self.common();
        common.parts.remove(&source);
        common.plan.give_back(source as usize);
    }

    /// When everything was there.
    pub fn completed_at(&self) -> Option<Time> {
        self.common().completed_at
    }
}

/// The common objects of a run, by their names and sizes.
#[derive(Clone, Debug, Default)]
pub struct CommonObjects(BTreeMap<(String, u64), CommonObject>);

impl CommonObjects {
    /// The object of a name; the first to ask decides its blocks.
    pub fn of(&mut self, name: &str, shape: ObjectShape) -> CommonObject {
        let object = self.0.entry((name.to_owned(), shape.size));
        object.or_insert_with(|| CommonObject::new(shape)).clone()
    }
}

#[cfg(test)]
mod tests {
    use fontis_codes::Code;

    use super::*;

    #[test]
    fn parts_are_objects_of_their_own_and_make_the_whole() {
        let mut shape = ObjectShape::partition(3500, 1000, Code::Counting);
        shape.block_size = 1000;
        let mut objects = CommonObjects::default();
        let object = objects.of("file", shape);
        object.join(1);
        objects.of("file", shape).join(2);
        let (first, now) = (object.take(1).expect("a part"), Time::ZERO);
        assert_eq!((first.0, first.1.size), (vec![0], 1000));
        object.leave(1);
        let mut sizes = 0;
        while let Some((blocks, part)) = object.take(2) {
            assert_eq!(object.part(2), blocks);
            sizes += part.size;
            for block in blocks {
                assert_eq!(object.came(block, now), Some(if block == 3 { 500 } else { 1000 }));
                assert_eq!(object.came(block, now), None, "twice");
            }
            assert!(!object.is_asked(2));
        }
        assert_eq!((sizes, object.completed_at()), (3500, Some(now)));
    }
}
