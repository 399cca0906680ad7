#![no_main]

#[path = "../inputs/large_decoder.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
