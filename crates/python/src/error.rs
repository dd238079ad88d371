//! The errors of the locks as exceptions.

use lockstead::shared::{JoinError, SegmentError, SharedError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    lockstead.shared,
    OwnerDied,
    PyException,
    "The last holder of a lock died while it had it.\n\nThe caller does not have the lock. It is \
     told again, and so is everybody else, until somebody enters `lock.recover()` and leaves it \
     without an exception."
);
create_exception!(
    lockstead.shared,
    NotRecoverable,
    PyException,
    "A holder died, and a program in another language released the lock without saying that what \
     it protects is in order. Nobody gets it any more; `lockstead shm --recover --reset` frees it."
);
create_exception!(
    lockstead.shared,
    DeadlockError,
    PyRuntimeError,
    "The calling thread would wait for itself, for ever."
);
create_exception!(
    lockstead.shared,
    SegmentUnusable,
    PyOSError,
    "A segment cannot be made, opened or taken part in; the text says why and what to do."
);

/// Adds the exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("OwnerDied", py.get_type::<OwnerDied>())?;
    module.add("NotRecoverable", py.get_type::<NotRecoverable>())?;
    module.add("DeadlockError", py.get_type::<DeadlockError>())?;
    module.add("SegmentUnusable", py.get_type::<SegmentUnusable>())
}

/// Returns the exception for a lock that was not acquired.
#[cold]
pub(crate) fn refused(error: SharedError) -> PyErr {
    match error {
        SharedError::Recursive => DeadlockError::new_err(
            "the calling thread has this lock already, and would wait for itself: release it \
             first, or use an RLock",
        ),
        SharedError::TooManyClaims => PyRuntimeError::new_err(
            "the thread reads under, or has units of, more locks of one segment than that was made \
             for: give some back, or call lockstead.shared.configure(claims=...) before the first \
             lock",
        ),
        SharedError::Join(error) => not_joined(error),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// Returns the exception for a thread that cannot take part in a segment.
#[cold]
pub(crate) fn not_joined(error: JoinError) -> PyErr {
    SegmentUnusable::new_err(error.to_string())
}

/// Returns the exception for a segment that cannot be had.
#[cold]
pub(crate) fn unusable(error: SegmentError) -> PyErr {
    match error {
        // With its number, so that Python makes a FileNotFoundError or PermissionError of it.
        SegmentError::Io { doing, error } => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, format!("{doing}: {error}"))),
            None => SegmentUnusable::new_err(format!("{doing}: {error}")),
        },
        SegmentError::Options(what) => PyValueError::new_err(what),
        other => SegmentUnusable::new_err(other.to_string()),
    }
}

/// Returns the exception for a lock that nobody gets any more.
#[cold]
pub(crate) fn not_recoverable() -> PyErr {
    NotRecoverable::new_err(
        "a holder died, and who was told of it released the lock without declaring consistent what \
         it protects; make the segment anew, or free it with `lockstead shm --recover --reset`",
    )
}
