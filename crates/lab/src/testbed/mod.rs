//! A network on this machine, between network namespaces, for any program that speaks IP.
//!
//! Start here: a [`Namespace`] is a separate machine in the network. A [`Shell`] is one behind a
//! bad link, for a command; [`run`] runs an experiment with real kernels and sockets and records it
//! as the simulator does; a [`race::Race`] sends a file by several transports.
//!
//! ```text
//! programs ─ kernel ─ TUN ─► way: link ─ link ─► TUN ─ kernel ─ programs
//!                     TUN ◄─ link ─ link :way ◄─ TUN
//! ```
//!
//! Packets of a kernel come out of a TUN interface. A thread for each direction moves them over
//! links of [`fontis_net`], the same as in the simulator, and gives them to the other kernel when
//! they are due. The kernel may hand over super-packets of up to 64 KB. They are cut into their
//! packets before the first link, and packets that are due together are joined again. Links that
//! only delay carry super-packets whole and charge them as their packets.
//!
//! Namespaces, interfaces and links have no names and no files: they live in this process and its
//! children, and end with them.

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
mod plan;
pub mod race;
mod run;
mod shell;
mod swarm;
mod system;
mod tun;
mod way;

pub use command::{CommandJob, JobHandle};
pub use environment::Environment;
pub use error::TestbedError;
pub use namespace::{Namespace, gain_privilege};
pub use run::run;
pub use shell::{Shell, ShellConfig, ShellStats, SuperPackets};
