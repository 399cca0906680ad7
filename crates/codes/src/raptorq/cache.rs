use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::encoding_plan::EncodingPlan;
use super::parameters::{Family, Parameters};

/// Encoding plans by K', the least recently used ones dropped when they take more memory than allowed.
pub struct PlanCache {
    plans: BTreeMap<(Family, usize), (Arc<EncodingPlan>, u64)>,
    memory: usize,
    limit: usize,
    uses: u64,
}

impl PlanCache {
    /// An empty cache of at most `limit` bytes. A plan takes about 60 bytes a symbol.
    pub const fn new(limit: usize) -> Self {
        Self { plans: BTreeMap::new(), memory: 0, limit, uses: 0 }
    }

    /// Bytes that the plans take.
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// The RaptorQ plan for blocks of `k` source symbols, if it is there.
    pub fn get(&mut self, k: u32) -> Option<Arc<EncodingPlan>> {
        self.find(&Parameters::for_source_symbols(k)?)
    }

    pub(crate) fn find(&mut self, p: &Parameters) -> Option<Arc<EncodingPlan>> {
        self.uses += 1;
        let (plan, used) = self.plans.get_mut(&(p.family, p.extended))?;
        *used = self.uses;
        Some(Arc::clone(plan))
    }

    /// Keeps a plan. One that is larger than the whole cache may be is not kept.
    pub fn insert(&mut self, plan: Arc<EncodingPlan>) {
        let size = plan.memory();
        if size > self.limit {
            return;
        }
        self.uses += 1;
        let key = (plan.0.parameters.family, plan.extended_symbols());
        self.memory += size;
        if let Some((old, _)) = self.plans.insert(key, (plan, self.uses)) {
            self.memory -= old.memory();
        }
        while self.memory > self.limit {
            let oldest = self.plans.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = *oldest.expect("what takes memory is there").0;
            let (old, _) = self.plans.remove(&oldest).expect("it was just found");
            self.memory -= old.memory();
        }
    }
}

/// Bytes that the plans of a process may take together.
#[cfg(feature = "std")]
const SHARED_LIMIT: usize = 32 << 20;

/// A plan is a function of K' alone, so remembering it changes no result: one cache serves all threads.
#[cfg(feature = "std")]
static SHARED: std::sync::Mutex<PlanCache> = std::sync::Mutex::new(PlanCache::new(SHARED_LIMIT));

/// The encoding plan for these parameters, solved at most once while it stays in the process's cache.
#[cfg(feature = "std")]
pub(crate) fn shared(p: &Parameters) -> Arc<EncodingPlan> {
    use std::sync::PoisonError;

    let lock = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = lock().find(p) {
        return plan;
    }
    // Solved without the lock: two threads may do the same work once, but none waits.
    let plan = Arc::new(EncodingPlan::solve(*p));
    lock().insert(Arc::clone(&plan));
    plan
}

/// Without threads' locks there is nothing to share.
#[cfg(not(feature = "std"))]
pub(crate) fn shared(p: &Parameters) -> Arc<EncodingPlan> {
    Arc::new(EncodingPlan::solve(*p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_plan_goes_when_memory_is_short() {
        let plan = |k| Arc::new(EncodingPlan::new(k).unwrap());
        let (a, b, c) = (plan(10), plan(101), plan(200));
        let mut cache = PlanCache::new(a.memory() + b.memory() + c.memory() - 1);
        cache.insert(Arc::clone(&a));
        cache.insert(Arc::clone(&b));
        assert!(cache.get(10).is_some());
        cache.insert(Arc::clone(&b));
        assert_eq!(cache.memory(), a.memory() + b.memory(), "the same plan counts once");
        assert!(cache.get(10).is_some());
        cache.insert(c);
        assert!(cache.get(10).is_some() && cache.get(101).is_none() && cache.get(200).is_some());
        assert!(cache.memory() <= cache.limit);
    }

    #[test]
    fn a_plan_larger_than_the_cache_is_not_kept() {
        let mut cache = PlanCache::new(100);
        cache.insert(Arc::new(EncodingPlan::new(10).unwrap()));
        assert_eq!((cache.memory(), cache.get(10).is_none()), (0, true));
    }

    #[test]
    fn plans_are_shared_between_threads() {
        let p = Parameters::for_source_symbols(64).unwrap();
        let plans = std::thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(|| shared(&p)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(plans.iter().all(|plan| plan == &plans[0]));
    }
}
