//! Tests of endpoints from outside. Tests that count what the process does have processes of their
//! own: `early`, `flood` and `many`.

mod corpus;
mod hostile;
mod limits;
mod paths;
mod sources;
mod streams;
mod swarm;
mod transfer;
