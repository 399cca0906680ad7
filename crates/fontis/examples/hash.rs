//! Hashes a file or folder as Fontis does before it sends it, and says how fast:
//! `cargo run --release -p fontis --example hash -- PATH`.

use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: hash PATH")?;
    let start = Instant::now();
    let source = fontis::Source::open(Path::new(&path))?;
    let opened = start.elapsed();
    let tree = source.hash_tree(|_| ())?;
    let hashed = start.elapsed() - opened;
    println!(
        "{}  {} bytes in {} entries: opened in {:.3} s, hashed in {:.3} s, {:.2} GB/s",
        tree.root(),
        tree.size(),
        source.manifest().entries().len(),
        opened.as_secs_f64(),
        hashed.as_secs_f64(),
        tree.size() as f64 / hashed.as_secs_f64() / 1e9,
    );
    Ok(())
}
