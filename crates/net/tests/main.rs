//! Tests of links from outside.

mod closed_form;
mod conservation;
mod fairness;
mod notation;
