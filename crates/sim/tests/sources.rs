//! One object from several sources, behind random links.
//!
//! `FONTIS_RUNS` sets how many cases (6 by default), `FONTIS_SEED` the first seed. A failure names
//! the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main sources -- --nocapture`.

use std::fmt::Write as _;

use fontis_base::Stream;
use fontis_sim::scenario::Scenario;

use crate::support::number::number;

/// The time in which sources brought an object, in units of that which their links need for it.
fn fetch(seed: u64) -> f64 {
    let mut s = Stream::new(seed, "sources");
    let links: Vec<(f64, f64)> = (0..2 + s.below(4))
        .map(|_| (5.0 * 10f64.powf(s.unit()), if s.unit() < 0.5 { 0.0 } else { 0.02 }))
        .collect();
    let useful = |(rate, loss): &(f64, f64)| rate * 1e6 * (1.0 - loss) * 1472.0 / 1500.0;
    let sum: f64 = links.iter().map(useful).sum();
    // It takes ten to twenty seconds.
    let bytes = (sum / 8.0 * (10.0 + 10.0 * s.unit())) as u64;
    let mut text = String::new();
    for (number, (rate, loss)) in links.iter().enumerate() {
        let _ = write!(
            text,
            "[[flow]]\nname = \"source{number}\"\nprotocol = \"dfcp\"\napp = \"object\"\n\
             size = \"{bytes} B\"\naccess = \"{rate:.3} Mbit/s\"\nloss = \"{}%\"\n\
             rtt = \"{} ms\"\n",
            loss * 100.0,
            20 + s.below(100),
        );
    }
    println!("seed {seed}: {bytes} bytes\n{text}");
    let text = format!(
        "[scenario]\nseed = {seed}\nduration = \"600 s\"\n[topology]\nrate = \"1 Gbit/s\"\n\
         buffer = \"1 BDP\"\n[dfcp]\nblock = \"1 MiB\"\ncommon = \"file\"\n{text}"
    );
    let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
    let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
    let metric = |name: &str, of: &str| {
        let value = recording.metric(name, of);
        value.unwrap_or_else(|| panic!("seed {seed}: there is no {name}"))
    };
    assert!(metric("completed", "all") >= 1.0, "seed {seed}");
    metric("fct", "source0") / (bytes as f64 * 8.0 / sum)
}

#[test]
fn sources_add_up() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    let mut sum = 0.0;
    for seed in first..first + runs {
        let time = fetch(seed);
        println!("seed {seed}: {time:.3} of the least time");
        assert!(time <= 1.25, "seed {seed}: {time:.3}");
        sum += time;
    }
    let mean = sum / runs as f64;
    println!("{mean:.3} of the least time in the mean");
    assert!(mean <= 1.12 || runs < 6, "{mean:.3}");
}
