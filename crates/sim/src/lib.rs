//! The laboratory in virtual time: hosts, applications and networks without I/O.
//!
//! Start here: a [`World`] joins nodes by wires and moves packets between them, each at its time; a
//! [`Network`] builds one of routers, links and hosts. A [`Transfer`] is the simplest experiment:
//! two hosts, a link each way, and an object fetched by DFCP; it says what came of it. In a
//! [`Dumbbell`] several share one bottleneck; its [`Timeline`] says who got how much of it, and
//! when.

mod agenda;
pub mod analysis;
mod capture;
pub mod cellular;
mod clear;
mod controller;
mod datagram_host;
mod drops;
mod dumbbell;
mod experiment;
mod figure;
mod host;
mod lookahead;
pub mod metrics;
mod network;
mod object;
mod observation;
mod payload;
mod published_host;
mod qlog;
mod recording;
pub mod scenario;
pub mod scenarios;
mod series;
mod source;
mod switch;
mod table;
mod tcp_host;
mod timeline;
pub mod trace;
mod transfer;
mod watchers;
mod world;

pub use capture::Capture;
pub use clear::Clear;
pub use controller::{Controlled, Controller, ControllerConfig, ErrorModel};
pub use datagram_host::DatagramHost;
pub use drops::{Drops, SimLink};
pub use dumbbell::{Dumbbell, Flow, Shared};
pub use experiment::{
    Application, Control, Experiment, FlowSpec, LinkSpec, Seen, Subflow, Transport, Watch, Watched,
};
pub use figure::{Figure, Target};
pub use host::{Fetch, Host, Role, Serve};
pub use network::{Network, RouterIndex};
pub use object::PatternObject;
pub use observation::{FlowCounters, Observation, Observed, Stations};
pub use payload::Payload;
pub use published_host::PublishedHost;
pub use qlog::Qlog;
pub use recording::Recording;
pub use source::{Pattern, Piece, Source};
pub use switch::Switch;
pub use table::{Cell, Column, ColumnKind, ColumnSchema, Table, Texts};
pub use tcp_host::{Moments, Requests, TcpHost};
pub use timeline::{Moment, Timeline};
pub use transfer::{Outcome, Transfer};
pub use world::{Element, NodeIndex, World};
