#![no_main]

#[path = "../inputs/sip.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
