//! `Semaphore` and `BoundedSemaphore`.
//!
//! A thread has units, and gives them back when it dies, or uses them up when it takes them: as the
//! semaphores of POSIX, which any thread may release, and which lose what a killed holder had.

use crate::error::refused;
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
        let (all, _) = raw.units();
        let too_many = self.bound.is_some_and(|bound| all.saturating_add(units) > bound);
        if too_many || units > i32::MAX as u32 - all.min(i32::MAX as u32) {
            return Err(PyValueError::new_err("semaphore or lock released too many times"));
        }
        if raw.add(units).map_err(refused)? {
            return Ok(());
        }
        Err(PyOverflowError::new_err("a semaphore has at most 4294967295 units"))
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

    /// Takes a unit, waiting for one if `block`, at most `timeout` seconds. Returns whether the caller
    /// has it.
    #[pyo3(signature = (block = None, timeout = None))]
    fn acquire(
        &self,
        py: Python<'_>,
        block: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let block = block.map_or(Ok(true), |block| block.is_truthy())?;
        self.get(py, block, wait::seconds(timeout)?)
    }

    /// Gives units back: those that the calling thread has, or new ones if it has none.
    #[pyo3(signature = (n = 1))]
    fn release(&self, n: u32) -> PyResult<()> {
        if n == 0 {
            return Err(PyValueError::new_err("n must be one or more"));
        }
        self.give(n)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<bool> {
        self.get(py, true, None)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.give(1)
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
