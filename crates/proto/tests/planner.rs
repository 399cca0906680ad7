//! The plan of delay-aware scheduling over any paths, in a model without loss or queues (Sarwar
//! 2014, chapter 7). Its tables and the errors of a delay are tests of `fontis_sim::analysis`.

use fontis_base::Stream;
use fontis_proto::scheduler::plan::{PlanBlock, PlanPath, period, plan};

#[test]
fn with_exact_delays_everything_arrives_in_order_over_any_paths() {
    for seed in 0..300 {
        let mut stream = Stream::new(seed, "planner");
        let path = |stream: &mut Stream| PlanPath {
            delay: 1 + stream.below(60),
            units: stream.below(8) as f64 + if stream.below(2) == 0 { stream.unit() } else { 0.0 },
        };
        let paths: Vec<PlanPath> = (0..1 + stream.below(4)).map(|_| path(&mut stream)).collect();
        let horizon = period(&paths, 5000);
        let first = 1 + stream.below(100);
        let blocks = plan(&paths, first, horizon);
        let mut next = first;
        let (mut last, mut units) = (0, vec![0.0; paths.len()]);
        for PlanBlock { path, sent, units: block } in blocks {
            let arrival = sent + paths[path].delay;
            assert!(arrival >= last && arrival <= horizon, "seed {seed}: {paths:?}");
            assert_eq!(sent % paths[path].delay, 0, "seed {seed}");
            assert_eq!(block.start, next, "seed {seed}: a unit is planned once");
            units[path] += (block.end - block.start) as f64;
            (next, last) = (block.end, arrival);
        }
        // N is the sum of T · C / D, up to what is carried.
        for (path, units) in paths.iter().zip(units) {
            let wanted = path.units * (horizon / path.delay) as f64;
            assert!((units - wanted).abs() < 1.0 + 1e-6, "seed {seed}: {units} and {wanted}");
        }
    }
}
