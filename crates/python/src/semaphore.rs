//! `Semaphore` and `BoundedSemaphore`.
//!
//! A thread has units, and gives them back when it dies, or uses them up when it takes them: as the
//! semaphores of POSIX, which any thread may release, and which lose what a killed holder had.

use crate::error::refused;
use crate::fast::Fast;
use crate::place::Place;
use crate::segment::Segment;
use crate::wait;
use lockstead::shared::raw::RawSemaphore;
use lockstead::shared::{OnDeath, SharedError};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

/// A semaphore of a segment.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Semaphore {
    place: Place,
    /// The most units that there may be; `None`: any number.
    bound: Option<u32>,
    /// Whether threads have units, which their death gives back.
    held: bool,
}

impl Semaphore {
    fn raw(&self) -> &RawSemaphore {
        // SAFETY: PLACE-LOCK: `new` has asked for room for one, and Python's part passes its place.
        unsafe { self.place.at() }
    }

    fn get(&self, py: Python<'_>, block: bool, timeout: Option<f64>) -> PyResult<bool> {
        let raw = self.raw();
        let got = match raw.try_acquire(1) {
            Ok(_) => true,
            Err(SharedError::Held) if !block => false,
            Err(SharedError::Held) if timeout.is_some_and(|seconds| seconds <= 0.0) => false,
            Err(SharedError::Held) => {
                let limit = wait::limit(timeout);
                wait::until(py, limit, |how| raw.acquire(1, how))?.is_some()
            }
            Err(error) => return Err(refused(error)),
        };
        if got && !self.held {
            raw.consume(1).map_err(refused)?;
        }
        Ok(got)
    }

    /// Tells whether there may be so many units more.
    fn has_room_for(&self, units: u32) -> bool {
        let most = self.bound.unwrap_or(i32::MAX as u32).min(i32::MAX as u32);
        self.raw().units().0.saturating_add(units) <= most
    }

    fn give(&self, units: u32) -> PyResult<()> {
        let raw = self.raw();
        let mut units = units;
        // Those that the thread has, as many as it has.
        while self.held && units != 0 && raw.release(1).map_err(refused)? {
            units -= 1;
        }
        if units == 0 {
            return Ok(());
        }
        if !self.has_room_for(units) {
            return Err(PyValueError::new_err("semaphore or lock released too many times"));
        }
        if raw.add(units).map_err(refused)? {
            return Ok(());
        }
        Err(PyOverflowError::new_err("a semaphore has at most 4294967295 units"))
    }
}

impl Fast for Semaphore {
    const RELEASES_MANY: bool = true;

    fn take_now(&self) -> bool {
        if self.held { self.raw().try_acquire(1).is_ok() } else { self.raw().try_use_up(1) }
    }

    fn give_now(&self) -> bool {
        if self.held {
            // Whether a unit that the thread does not have may be added is for `_release` to say.
            matches!(self.raw().release(1), Ok(true))
        } else {
            self.has_room_for(1) && matches!(self.raw().add(1), Ok(true))
        }
    }
}

#[pymethods]
impl Semaphore {
    /// Builds the semaphore. `units` are those of a new one, which nobody else knows of yet.
    #[new]
    #[pyo3(signature = (segment, offset, *, held, bound = None, units = None))]
    fn new(
        segment: &Segment,
        offset: u64,
        held: bool,
        bound: Option<u32>,
        units: Option<u32>,
    ) -> PyResult<Semaphore> {
        let size = size_of::<RawSemaphore>() as u64;
        let place = Place::new(&segment.attached, offset, size)
            .ok_or_else(|| PyValueError::new_err("offset: that of a semaphore in the segment"))?;
        if let Some(units) = units {
            // SAFETY: PLACE-LOCK: nobody else knows of the place yet.
            unsafe { place.address().cast().write(RawSemaphore::new(units, OnDeath::Return)) };
        }
        Ok(Semaphore { place, bound, held })
    }

    /// Does what `acquire` does, which is in `fast`, where there is more to do than one step.
    #[pyo3(signature = (block = None, timeout = None))]
    fn _acquire(
        &self,
        py: Python<'_>,
        block: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let block = block.map_or(Ok(true), |block| block.is_truthy())?;
        self.get(py, block, wait::seconds(timeout)?)
    }

    /// Does what `release` does, likewise.
    #[pyo3(signature = (n = 1))]
    fn _release(&self, n: u32) -> PyResult<()> {
        if n == 0 {
            return Err(PyValueError::new_err("n must be one or more"));
        }
        self.give(n)
    }

    /// Returns how many units are free.
    fn _get_value(&self) -> u32 {
        self.raw().units().1
    }

    /// Tells whether no unit is free.
    fn locked(&self) -> bool {
        self.raw().units().1 == 0
    }

    #[getter]
    fn _bound(&self) -> Option<u32> {
        self.bound
    }

    #[getter]
    fn _held(&self) -> bool {
        self.held
    }

    #[getter]
    fn _segment(&self) -> Segment {
        Segment { attached: self.place.segment.clone() }
    }

    #[getter]
    fn _offset(&self) -> u64 {
        self.place.offset
    }
}
