use fontis_cli::failure::Failure;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(
    _native,
    FontisError,
    PyException,
    "It did not work; the message says why, and what to do, in the words of the command."
);
create_exception!(
    _native,
    UsageError,
    PyValueError,
    "It can never work as it was written; the message says what would be right."
);
create_exception!(
    _native,
    Unreachable,
    FontisError,
    "The peer cannot be reached, perhaps only for a while."
);

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FontisError", py.get_type::<FontisError>())?;
    module.add("UsageError", py.get_type::<UsageError>())?;
    module.add("Unreachable", py.get_type::<Unreachable>())
}

/// What was asked makes no sense.
pub(crate) fn usage(error: impl ToString) -> PyErr {
    UsageError::new_err(error.to_string())
}

/// It did not work.
pub(crate) fn failed(error: impl ToString) -> PyErr {
    FontisError::new_err(error.to_string())
}

/// How the command would have failed.
pub(crate) fn failure(failure: Failure) -> PyErr {
    match failure {
        Failure::Usage(text) => UsageError::new_err(text),
        Failure::Failed(text) => FontisError::new_err(text),
        Failure::Away(text) => Unreachable::new_err(text),
    }
}
