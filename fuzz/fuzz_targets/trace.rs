#![no_main]

#[path = "../inputs/trace.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
