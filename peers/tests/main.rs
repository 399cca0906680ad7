//! The codes and FLUTE of Fontis against other implementations: the same bytes on the wire, in both
//! directions.
//!
//! `FONTIS_RUNS` sets the number of random cases; a failure prints the seed that repeats it.

mod failure_rate;
mod flute;
mod raptor10_block;
mod raptorq_block;
mod raptorq_object;

/// The number of random cases.
fn runs(default: u64) -> u64 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default)
}
