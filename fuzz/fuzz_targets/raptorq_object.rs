#![no_main]

#[path = "../inputs/raptorq_object.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
