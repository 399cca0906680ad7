//! Swarms in virtual time. A block is 1 MiB, and 50 Mbit/s are six blocks a second.

mod times;
mod world;
