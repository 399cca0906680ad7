//! The `fontis` command.
fn main() {}
