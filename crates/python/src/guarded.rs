//! State in a segment under a mutex of its own, for what is more than one lock: events, barriers,
//! queues.
//!
//! # Invariants
//! - **GUARDED-REPAIR** The state is in order whenever its mutex is free and consistent. Whoever is
//!   told of an owner's death puts it in order before it does anything else.

use crate::error::{not_recoverable, refused};
use crate::place::Place;
use crate::wait::{self, Limit, Slices};
use lockstead::shared::raw::{RawCondvar, RawMutex, RawOutcome};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// What puts the state in order that a dead owner left.
pub(crate) type Repair<'a> = &'a dyn Fn();

/// The mutex of some state.
pub(crate) struct Guarded {
    place: Place,
}

impl Guarded {
    /// Builds it of the place of a mutex.
    pub(crate) fn new(place: Place) -> Guarded {
        Guarded { place }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    fn raw(&self) -> &RawMutex {
        // SAFETY: PLACE-LOCK: `new` was given the place of a mutex.
        unsafe { self.place.at() }
    }

    /// Takes the mutex. Returns false if the time was over.
    ///
    /// # Errors
    /// What a handler of a signal raised; `DeadlockError` in a handler that interrupted an operation on
    /// the same object.
    pub(crate) fn enter(&self, py: Python<'_>, limit: Limit, repair: Repair<'_>) -> PyResult<bool> {
        let raw = self.raw();
        if raw.take() {
            return Ok(true);
        }
        match wait::until(py, limit, |how| raw.lock(how))? {
            None => Ok(false),
            Some(outcome) => self.entered(outcome, repair).map(|()| true),
        }
    }

    fn entered(&self, outcome: RawOutcome, repair: Repair<'_>) -> PyResult<()> {
        match outcome {
            RawOutcome::Acquired => {}
            RawOutcome::OwnerDied => {
                repair();
                self.raw().mark_consistent();
            }
            RawOutcome::NotRecoverable => return Err(not_recoverable()),
        }
        Ok(())
    }

    /// Gives the mutex back.
    pub(crate) fn leave(&self) {
        self.raw().unlock();
    }

    /// Gives the mutex up until the condition is notified, or a slice of the time is over, and takes it
    /// back. The handlers of signals run meanwhile, without it.
    ///
    /// # Errors
    /// As [`enter`](Self::enter); the caller does not have the mutex then.
    pub(crate) fn sleep(
        &self,
        py: Python<'_>,
        changed: &RawCondvar,
        slices: &mut Slices,
        repair: Repair<'_>,
    ) -> PyResult<()> {
        let raw = self.raw();
        let how = slices.next();
        let waited = py.detach(move || changed.wait(raw, &how)).map_err(refused)?;
        self.entered(waited.mutex, repair)?;
        if waited.ended.is_some() {
            self.leave();
            py.check_signals()?;
            if !self.enter(py, None, repair)? {
                return Err(PyRuntimeError::new_err("a wait without a limit has ended"));
            }
        }
        Ok(())
    }
}
