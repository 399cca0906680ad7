use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::encoding_plan::EncodingPlan;
use super::parameters::{Family, Parameters};
use super::template::Template;

/// Encoding plans by K', the least recently used ones dropped when they take more memory than
/// allowed.
pub struct PlanCache(Cache<EncodingPlan>);

impl PlanCache {
    /// An empty cache of at most `limit` bytes. A plan takes about 125 bytes a symbol.
    pub const fn new(limit: usize) -> Self {
        Self(Cache::new(limit))
    }

    /// Bytes that the plans take.
    pub const fn memory(&self) -> usize {
        self.0.memory
    }

    /// The RaptorQ plan for blocks of `k` source symbols, if it is there.
    pub fn get(&mut self, k: u32) -> Option<Arc<EncodingPlan>> {
        self.0.find(&Parameters::for_source_symbols(k)?)
    }

    /// Keeps a plan. One that is larger than the whole cache may be is not kept.
    pub fn insert(&mut self, plan: Arc<EncodingPlan>) {
        self.0.insert(plan);
    }
}

/// What is a function of K' alone, and worth keeping.
trait Kept {
    fn parameters(&self) -> &Parameters;
    fn memory(&self) -> usize;
}

impl Kept for EncodingPlan {
    fn parameters(&self) -> &Parameters {
        &self.plan.parameters
    }

    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Kept for Template {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn memory(&self) -> usize {
        self.memory()
    }
}

struct Cache<T> {
    /// With the use that was the last.
    values: BTreeMap<(Family, usize), (Arc<T>, u64)>,
    memory: usize,
    limit: usize,
    uses: u64,
}

impl<T: Kept> Cache<T> {
    const fn new(limit: usize) -> Self {
        Self { values: BTreeMap::new(), memory: 0, limit, uses: 0 }
    }

    fn find(&mut self, p: &Parameters) -> Option<Arc<T>> {
        self.uses += 1;
        let (value, used) = self.values.get_mut(&(p.family, p.extended))?;
        *used = self.uses;
        Some(Arc::clone(value))
    }

    fn insert(&mut self, value: Arc<T>) {
        let size = value.memory();
        if size > self.limit {
            return;
        }
        self.uses += 1;
        let key = (value.parameters().family, value.parameters().extended);
        self.memory += size;
        if let Some((old, _)) = self.values.insert(key, (value, self.uses)) {
            self.memory -= old.memory();
        }
        while self.memory > self.limit {
            let oldest = self.values.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = *oldest.expect("what takes memory is there").0;
            let (old, _) = self.values.remove(&oldest).expect("it was just found");
            self.memory -= old.memory();
        }
    }
}

/// A value is a function of K' alone, so remembering it changes no result: one cache serves all
/// threads of a process.
#[cfg(feature = "std")]
struct Shared<T>(std::sync::Mutex<Cache<T>>);

#[cfg(feature = "std")]
impl<T: Kept> Shared<T> {
    /// A cache of at most `limit` bytes.
    const fn new(limit: usize) -> Self {
        Self(std::sync::Mutex::new(Cache::new(limit)))
    }

    /// The value for these parameters, made at most once while it stays in the cache.
    fn get(&self, p: &Parameters, make: impl FnOnce(Parameters) -> T) -> Arc<T> {
        use std::sync::PoisonError;

        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = lock().find(p) {
            return value;
        }
        // Made without the lock: two threads may do the same work once, but none waits.
        let value = Arc::new(make(*p));
        lock().insert(Arc::clone(&value));
        value
    }
}

/// Without threads' locks there is nothing to share.
#[cfg(not(feature = "std"))]
struct Shared<T>(core::marker::PhantomData<T>);

#[cfg(not(feature = "std"))]
impl<T: Kept> Shared<T> {
    const fn new(_limit: usize) -> Self {
        Self(core::marker::PhantomData)
    }

    fn get(&self, p: &Parameters, make: impl FnOnce(Parameters) -> T) -> Arc<T> {
        Arc::new(make(*p))
    }
}

/// The encoding plan for these parameters.
pub(crate) fn plan(p: &Parameters) -> Arc<EncodingPlan> {
    static PLANS: Shared<EncodingPlan> = Shared::new(32 << 20);
    PLANS.get(p, EncodingPlan::solve)
}

/// The template for these parameters.
pub(crate) fn template(p: &Parameters) -> Arc<Template> {
    static TEMPLATES: Shared<Template> = Shared::new(16 << 20);
    TEMPLATES.get(p, Template::new)
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
        assert!(cache.memory() <= cache.0.limit);
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
            let threads = [0; 4].map(|_| scope.spawn(|| plan(&p)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(plans.iter().all(|plan| plan == &plans[0]));
    }
}
