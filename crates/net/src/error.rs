use fontis_base::NotationError;
use thiserror::Error;

/// A text that does not describe the network element that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A quantity in it cannot be read.
    #[error(transparent)]
    Quantity(#[from] NotationError),
    /// It does not have the form that this element is written in.
    #[error("{text:?} is not {kind}: write {form}, as in {example:?}")]
    Form {
        /// What was read.
        text: String,
        /// The kind of element, with its article.
        kind: &'static str,
        /// How it is written.
        form: &'static str,
        /// A text that would have been right.
        example: &'static str,
    },
    /// It can be read, but makes no sense.
    #[error("{text:?} is not {kind}: {reason}")]
    Senseless {
        /// What was read.
        text: String,
        /// The kind of element, with its article.
        kind: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A line of a file is wrong.
    #[error("line {line}: {text:?} of {kind} {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
        /// The kind of file, with its article.
        kind: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No element of this kind has this name.
    #[error("there is no {kind} called {text:?}; there are {names}")]
    UnknownName {
        /// What was read.
        text: String,
        /// The kind of element.
        kind: &'static str,
        /// The names that there are.
        names: String,
    },
}
