//! Claims of papers, each bound to what can be computed or simulated of it.
//!
//! Start here: a [`Book`] holds a paper's claims (`claims/NAME.jsonl`) and their bindings
//! (`claims/NAME.toml`); [`Results`] runs the scenarios that bindings ask for and keeps their
//! summaries; [`Book::check`] gives a [`Verdict`] for each claim. [`report`](fn@report) writes all
//! of it as a page, in Markdown or as [`html`].

mod binding;
mod book;
mod expression;
mod functions;
mod multipath;
mod probes;
mod report;
mod results;
mod tfrc;
mod value;

pub use binding::Evidence;
pub use book::{Book, Checked, Claim, Verdict};
pub use report::{Section, document, html, report, sections};
pub use results::{Budget, Repeat, Results};
