//! The codes of Fontis beside other implementations of them.
//!
//! Start here: `tests` feed the same symbols to both (`make soak`); `benches/raptorq.rs` measures
//! both in one process (`make bench`). Nothing depends on this package.
