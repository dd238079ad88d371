//! `Event`.

use crate::guarded::Guarded;
use crate::place::Place;
use crate::segment::Segment;
use crate::wait::{self, Slices};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstead::shared::raw::RawCondvar;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A flag of a segment for which threads wait.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Event {
    guarded: Guarded,
    changed: Place,
    value: Place,
}

impl Event {
    fn changed(&self) -> &RawCondvar {
        // SAFETY: PLACE-LOCK: `new` has asked for room for one, and Python's part passes its place.
        unsafe { self.changed.at() }
    }

    fn value(&self) -> &AtomicU64 {
        // SAFETY: PLACE-LOCK: `new` has asked for room for it, and Python's part passes its place.
        unsafe { self.value.at() }
    }
}

#[pymethods]
impl Event {
    #[new]
    fn new(segment: &Segment, mutex: u64, changed: u64, value: u64) -> PyResult<Event> {
        let place = |offset| {
            Place::new(&segment.attached, offset, 8)
                .ok_or_else(|| PyValueError::new_err("offsets: those of an event in the segment"))
        };
        let guarded = Guarded::new(place(mutex)?);
        Ok(Event { guarded, changed: place(changed)?, value: place(value)? })
    }

    /// Tells whether the event is set.
    fn is_set(&self) -> bool {
        self.value().load(Ordering::Acquire) != 0
    }

    /// Sets the event and wakes all that wait for it.
    fn set(&self, py: Python<'_>) -> PyResult<()> {
        // A setter that dies in between wakes the waiters by its death, and they look.
        self.guarded.enter(py, None, &|| ())?;
        self.value().store(1, Ordering::Release);
        self.changed().notify_all();
        self.guarded.leave();
        Ok(())
    }

    /// Takes the event back: who waits from now on waits until it is set again.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.guarded.enter(py, None, &|| ())?;
        self.value().store(0, Ordering::Release);
        self.guarded.leave();
        Ok(())
    }

    /// Waits until the event is set, at most `timeout` seconds. Returns whether it is.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let limit = wait::limit(wait::seconds(timeout)?);
        if self.is_set() {
            return Ok(true);
        }
        if !self.guarded.enter(py, limit, &|| ())? {
            return Ok(self.is_set());
        }
        let mut slices = Slices::new(limit);
        loop {
            if self.is_set() || slices.is_over() {
                let is_set = self.is_set();
                self.guarded.leave();
                return Ok(is_set);
            }
            self.guarded.sleep(py, self.changed(), &mut slices, &|| ())?;
        }
    }

    #[getter]
    fn _segment(&self) -> Segment {
        Segment { attached: self.changed.segment.clone() }
    }

    #[getter]
    fn _offsets(&self) -> (u64, u64, u64) {
        (self.guarded.place().offset, self.changed.offset, self.value.offset)
    }
}
