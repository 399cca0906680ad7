//! A page's way to the simulator and to the readers of traces: bytes in, bytes out.
//!
//! Start here: a page asks [`fontis_reserve`] for room, writes its input there, calls
//! [`fontis_simulate`] or [`fontis_read`], and reads the output at [`fontis_output`],
//! [`fontis_output_len`] bytes long: a trace as [`fontis_trace::stream`] has it, or what was
//! wrong, as text.

// That a function keeps its name is what the compiler calls unsafe here; nothing else is.
#![allow(unsafe_code)]

use std::cell::RefCell;

use fontis_sim::experiment::run::Watch;
use fontis_sim::scenario::Scenario;
use fontis_trace::{Detail, read, stream};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for `len` bytes of input; gives where.
#[unsafe(no_mangle)]
pub extern "C" fn fontis_reserve(len: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(len, 0);
        input.as_mut_ptr()
    })
}

/// Runs the first run of the scenario that the input is, packet by packet. 1 if all went well.
#[unsafe(no_mangle)]
pub extern "C" fn fontis_simulate() -> u32 {
    give(INPUT.with_borrow(|input| simulate(input)))
}

/// Reads the file that the input is, of whatever kind. 1 if all went well.
#[unsafe(no_mangle)]
pub extern "C" fn fontis_read() -> u32 {
    let input = INPUT.take();
    let detail = Detail { most: 1_000_000, ..Detail::default() };
    let trace = read::read(std::io::Cursor::new(input), "dropped file", detail);
    give(trace.map(|trace| stream::encode(&trace)).map_err(|error| error.to_string()))
}

/// Where the output is.
#[unsafe(no_mangle)]
pub extern "C" fn fontis_output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// How long it is.
#[unsafe(no_mangle)]
pub extern "C" fn fontis_output_len() -> usize {
    OUTPUT.with_borrow(Vec::len)
}

fn give(result: Result<Vec<u8>, String>) -> u32 {
    let is_done = result.is_ok();
    OUTPUT.set(result.unwrap_or_else(String::into_bytes));
    u32::from(is_done)
}

fn simulate(input: &[u8]) -> Result<Vec<u8>, String> {
    let text = core::str::from_utf8(input).map_err(|_| "the scenario is no text".to_owned())?;
    let scenario = Scenario::parse(text).map_err(|error| error.to_string())?;
    let runs = scenario.runs().map_err(|error| error.to_string())?;
    let run = runs.first().ok_or("the scenario has no run")?;
    if let Some((flow, what)) = run.experiment.testbed_only() {
        return Err(format!("{}: {what} on the testbed only", flow.name));
    }
    let detail = Detail { most: 400_000, ..Detail::default() };
    let watch = Watch { packets: Some(detail), ..Watch::default() };
    let watched = run.experiment.run_watched(watch, |_| false);
    let trace = watched.and_then(|watched| watched.trace).ok_or("nothing was recorded")?;
    Ok(stream::encode(&trace))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "[scenario]\nid = \"P\"\nduration = \"2 s\"\n[topology]\nrate = \"10 Mbit/s\"\n\
                            rtt = \"40 ms\"\n[[flow]]\nprotocol = \"cubic\"\n";

    #[test]
    fn a_page_runs_a_scenario_and_reads_the_trace_again() {
        let bytes = simulate(SCENARIO.as_bytes()).expect("it runs");
        let trace = stream::decode(&bytes).expect("it is a trace");
        assert!(trace.packets.len() > 500, "{}", trace.packets.len());
        assert_eq!(trace.flows[0].protocol, "TCP");
        // What is written is what was read.
        assert_eq!(stream::encode(&trace), bytes);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = simulate(b"[topology]\nrate = \"fast\"\n").expect_err("no rate");
        assert!(error.contains("rate"), "{error}");
        assert!(simulate(&[0xff]).is_err());
    }
}
