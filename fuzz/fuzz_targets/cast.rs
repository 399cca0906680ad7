#![no_main]

#[path = "../inputs/cast.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
