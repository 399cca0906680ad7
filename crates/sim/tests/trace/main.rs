//! Traces of simulations: the recorder and the qlog, against the counters of links and endpoints.

mod qlog;
mod recorder;
