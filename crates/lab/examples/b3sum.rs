//! The BLAKE3 hash of a file, as `b3sum --no-names` prints it: what the demo compares Fontis's own
//! hash with.
//!
//! `cargo run --release -p fontis-lab --example b3sum FILE`

use std::fs::File;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: b3sum FILE")?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    println!("{}", hasher.finalize());
    Ok(())
}
