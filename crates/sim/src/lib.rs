//! The laboratory in virtual time: hosts, applications and networks without I/O.
//!
//! Start here: a [`scenario::Scenario`] becomes one [`Experiment`] for each of its runs. An
//! experiment builds a [`World`], which joins nodes by wires and moves packets between them, each
//! at its time, and fills a [`Recording`].
//!
//! | room | what it holds |
//! |---|---|
//! | [`analysis`] | formulas and models, without a simulation |
//! | [`settings`] | keys, forms of values, typed reading |
//! | [`app`] | sources of traffic |
//! | [`host`] | endpoints: a transport with an application; the table of transports |
//! | [`world`] | nodes, wires, virtual time, observers |
//! | [`swarm`] | nodes that all send on what they have, in transfers of blocks |
//! | [`recording`] | tables and metrics |
//! | [`experiment`] | one run: network, flows, measurement |
//! | [`scenario`] | experiments as people write them |

pub mod analysis;
pub mod app;
pub mod experiment;
pub mod host;
pub mod recording;
pub mod scenario;
pub mod settings;
pub mod swarm;
pub mod world;

pub use experiment::Experiment;
pub use recording::Recording;
pub use world::World;
