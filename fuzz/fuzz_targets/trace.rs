#![no_main]

#[path = "../inputs/trace.rs"]
mod input;

// Replayed, an input is for all of them.
libfuzzer_sys::fuzz_target!(|data: &[u8]| match std::env::var_os("FONTIS_REPLAY") {
    Some(_) => input::run(data),
    None => input::run_part(data),
});
