//! What a lock does when its last holder has died.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The way in which the next holder is told.
pub(crate) enum OnDeath {
    /// The exception `OwnerDied` tells it; it does not get the lock.
    Raise,
    /// The attribute `owner_died` tells it.
    Flag,
    /// Nothing tells it: what the lock protects is taken as it is.
    Ignore,
    /// A call tells it, with the lock held: what that protects is in order when the call returns.
    Call(Py<PyAny>),
}

impl OnDeath {
    /// Reads the argument `on_owner_death`.
    ///
    /// # Errors
    /// `ValueError` and `TypeError`, which say what it may be.
    pub(crate) fn of(value: Option<&Bound<'_, PyAny>>) -> PyResult<OnDeath> {
        let what =
            "on_owner_death: \"raise\", \"flag\", \"ignore\", or something to call with the lock";
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(OnDeath::Raise);
        };
        if value.is_callable() {
            return Ok(OnDeath::Call(value.clone().unbind()));
        }
        let Ok(name) = value.extract::<String>() else { return Err(PyTypeError::new_err(what)) };
        match name.as_str() {
            "raise" => Ok(OnDeath::Raise),
            "flag" => Ok(OnDeath::Flag),
            "ignore" => Ok(OnDeath::Ignore),
            _ => Err(PyValueError::new_err(what)),
        }
    }

    /// Returns it as the argument was, to be pickled.
    pub(crate) fn value(&self, py: Python<'_>) -> Py<PyAny> {
        let name = match self {
            OnDeath::Raise => "raise",
            OnDeath::Flag => "flag",
            OnDeath::Ignore => "ignore",
            OnDeath::Call(callable) => return callable.clone_ref(py),
        };
        pyo3::types::PyString::new(py, name).into_any().unbind()
    }
}
