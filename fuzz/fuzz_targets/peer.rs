#![no_main]

#[path = "../inputs/peer.rs"]
mod input;
#[path = "../inputs/side.rs"]
mod side;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::run(data));
