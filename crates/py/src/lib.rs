//! The extension module `fontis._native`: a thin binding, no logic. What users see is
//! `python/fontis`.
//!
//! Start here: a `Scenario` stands for runs, a `Run` gives a `Recording`, whose tables go out as
//! Arrow streams without a copy. `transfer` moves files, `codes` makes symbols, `congestion` lets a
//! class in Python govern a flow, `fairness` shares capacity, `claims` judges papers, `command` is
//! the `fontis` command. Long calls release the interpreter and ask it every now and then whether
//! the user wants them to end (`interrupt`); errors become exceptions with the same words
//! (`error`).

mod claims;
mod codes;
mod command;
mod congestion;
mod error;
mod fairness;
mod interrupt;
mod metrics;
mod quality;
mod recording;
mod run;
mod scenario;
mod transfer;

/// The extension module.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;
    use pyo3::types::PyModule;

    #[pymodule_export]
    use crate::claims::{Book, Checked, Judged, Section, document, run_scenario};
    #[pymodule_export]
    use crate::codes::{Decoder, Encoder, codes, failure_probability};
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::congestion::Ack;
    #[pymodule_export]
    use crate::fairness::{
        allocate, allocate_cell, cascade, equal_shares, greatest_ratio, indifferent,
        is_kaldor_hicks_better, is_pareto_better, is_pareto_optimal, jain_of_classes, least_jain,
        network, weight,
    };
    #[pymodule_export]
    use crate::interrupt::Stop;
    #[pymodule_export]
    use crate::metrics::{
        delta_fair_convergence, equivalent_redundancy, goodput, jain, max_min_shares, quantile,
        radio_energy,
    };
    #[pymodule_export]
    use crate::quality::{delay_impairment, loss_impairment, mos, rating, rating_simple, video};
    #[pymodule_export]
    use crate::recording::{Recording, Table};
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::scenario::{Scenario, scenarios};
    #[pymodule_export]
    use crate::transfer::{Server, get, send};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::error::add(module)
    }
}
