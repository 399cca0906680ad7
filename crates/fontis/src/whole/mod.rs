//! The whole library in one thread, on simulated disks and networks, from one seed.
//!
//! Start here: [`disk`] is a disk that crashes, fills, fails and loses power; [`storing`] puts the
//! code that stores an incoming object on it; [`transfers`] has servers, receivers and their peers;
//! [`sources`] has one client of several servers; [`swarms`] has peers that share an object.

pub(crate) mod disk;
pub(crate) mod keys;
pub(crate) mod net;
mod node;
mod site;
mod sources;
mod storing;
mod swarms;
pub(crate) mod task;
mod telling;
mod transfers;
pub(crate) mod world;

/// The seed of a test's first run; `FONTIS_SEED` repeats one, with `FONTIS_RUNS` of 1.
pub(crate) fn first_seed(of: u64) -> u64 {
    read("FONTIS_SEED").unwrap_or(of)
}

/// The number of runs: `FONTIS_RUNS`, or a few.
pub(crate) fn runs(few: u64) -> u64 {
    read("FONTIS_RUNS").unwrap_or(few)
}

fn read(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number, as in {name}=7")))
}

/// Tells what happens in a run if `FONTIS_TRACE` is set.
pub(crate) fn note(what: impl FnOnce() -> String) {
    if std::env::var_os("FONTIS_TRACE").is_some() {
        println!("{:?}: {}", world::now(), what());
    }
}
