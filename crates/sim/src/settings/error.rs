//! Errors of scenarios.

use thiserror::Error;

/// A scenario that cannot be read or makes no sense: where, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// It is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A key or a table has a name that none has.
    #[error("{place}there is no key {key:?}{hint}")]
    UnknownKey {
        /// The line, or nothing if it comes from elsewhere.
        place: String,
        /// The name.
        key: String,
        /// What may have been meant.
        hint: String,
    },
    /// A value is not what its key needs.
    #[error("{place}{key}: {message}")]
    BadValue {
        /// The line, or nothing if it comes from elsewhere.
        place: String,
        /// The key.
        key: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// Settings that are right alone contradict each other.
    #[error("{run}{message}")]
    Contradiction {
        /// The run, if there is more than one.
        run: String,
        /// What is wrong.
        message: String,
    },
}

/// Settings that contradict each other.
pub(crate) fn invalid<T>(message: String) -> Result<T, ScenarioError> {
    Err(ScenarioError::Contradiction { run: String::new(), message })
}

/// A value that its key does not take.
pub(crate) fn bad(key: &str, message: String) -> ScenarioError {
    ScenarioError::BadValue { place: String::new(), key: key.to_owned(), message }
}
