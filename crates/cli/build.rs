//! Takes the viewer's pages into the command, if they have been built: `make` builds them first.
//! Without them the command builds all the same, and `fontis view` says what to run.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo says where");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../viewer/dist");
    // A folder that is always there: cargo would run this every time if it were not.
    println!("cargo::rerun-if-changed={}", built.display());
    for name in ["view.html", "playground.html", "fontis.wasm"] {
        let page = fs::read(built.join(name)).unwrap_or_default();
        fs::write(Path::new(&out).join(name), page).expect("cargo's folder can be written");
    }
}
