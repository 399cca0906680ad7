#![no_main]

#[path = "../inputs/encoding_plan.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
