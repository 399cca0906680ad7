//! Traces: findings in traces that were built to contain one fault, files, clocks, and the corpus
//! of the fuzz target.

mod clocks;
mod corpus;
mod files;
mod findings;
