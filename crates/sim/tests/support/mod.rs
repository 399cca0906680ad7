//! Experiments that several tests and the examples share: one transfer, several flows over one
//! bottleneck, watched runs, and the figures that the rate controller is judged by.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]

pub mod dumbbell;
pub mod figure;
pub mod hosts;
pub mod number;
pub mod scenarios;
pub mod timeline;
pub mod transfer;
pub mod watched;
