//! A network on this machine, between network namespaces, for any program that speaks IP.
//!
//! Start here: a [`Namespace`] is a machine of its own as far as networks go. A [`Shell`] is one
//! behind a bad link, for a command; [`run`] runs an experiment with real kernels and sockets and
//! records it as the simulator does; a [`race::Race`] sends a file by several transports.
//!
//! ```text
//! programs ─ kernel ─ TUN ─► way: link ─ link ─► TUN ─ kernel ─ programs
//!                     TUN ◄─ link ─ link :way ◄─ TUN
//! ```
//!
//! What a kernel sends comes out of a TUN interface. A thread for each direction takes it through
//! the links of [`fontis_net`], the same that the simulator has, and gives it to the other kernel
//! when it is due. With super-packets the kernel hands over up to 64 KB at once; they are cut into
//! the packets that they stand for before the first link and joined again as far as they are due
//! together, or, where nothing happens to single packets, cross as they are and are charged as what
//! they stand for.
//!
//! Namespaces, interfaces and links have no names and no files: they live in this process and its
//! children, and go with them, whatever ends them.

mod checksum;
mod command;
mod emulator;
mod environment;
mod error;
mod flow;
mod frame;
mod multipath;
mod namespace;
mod netlink;
mod network;
pub mod race;
mod run;
mod shell;
mod system;
mod tun;
mod way;

pub use command::{Job, JobHandle};
pub use environment::Environment;
pub use error::TestbedError;
pub use namespace::{Namespace, gain_privilege};
pub use run::run;
pub use shell::{Shell, ShellConfig, ShellStats, SuperPackets};
