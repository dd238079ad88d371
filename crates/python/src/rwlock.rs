//! `RWLock`.

use crate::death::OnDeath;
use crate::error::{OwnerDied, not_recoverable, refused};
use crate::place::Place;
use crate::segment::Segment;
use crate::wait;
use lockstead::shared::SharedError;
use lockstead::shared::raw::{RawOutcome, RawRwLock};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A reader-writer lock of a segment.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct RwLock {
    place: Place,
    on_death: OnDeath,
}

impl RwLock {
    fn raw(&self) -> &RawRwLock {
        // SAFETY: PLACE-LOCK: `new` has asked for room for one, and Python's part passes its place.
        unsafe { self.place.at() }
    }

    /// Acquires the lock and returns whether a writer died; `None`: it was not to be had in time.
    fn get(
        &self,
        py: Python<'_>,
        writes: bool,
        block: bool,
        timeout: Option<f64>,
    ) -> PyResult<Option<bool>> {
        let raw = self.raw();
        let tried = if writes { raw.try_write() } else { raw.try_read() };
        let outcome = match tried {
            Ok(outcome) => Some(outcome),
            Err(SharedError::Held | SharedError::Recursive) if !block => None,
            Err(SharedError::Recursive) => match wait::limit(timeout) {
                None => return Err(refused(SharedError::Recursive)),
                Some(limit) => return wait::doze(py, limit).map(|()| None),
            },
            Err(SharedError::Held) if timeout.is_some_and(|seconds| seconds <= 0.0) => None,
            Err(SharedError::Held) => {
                let limit = wait::limit(timeout);
                wait::until(py, limit, |how| if writes { raw.write(how) } else { raw.read(how) })?
            }
            Err(error) => return Err(refused(error)),
        };
        match outcome {
            None => Ok(None),
            Some(RawOutcome::NotRecoverable) => Err(not_recoverable()),
            Some(outcome) => Ok(Some(outcome == RawOutcome::OwnerDied)),
        }
    }

    fn acquire_by(
        slf: &Bound<'_, Self>,
        writes: bool,
        block: bool,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let this = slf.get();
        match this.get(slf.py(), writes, block, timeout)? {
            None => Ok(false),
            Some(false) => Ok(true),
            Some(true) => Self::tell(slf).map(|()| true).inspect_err(|_| {
                this.raw().unlock_untouched();
            }),
        }
    }

    /// Tells the caller, which has the lock alone, of a writer's death.
    fn tell(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        match &this.on_death {
            OnDeath::Raise => {
                return Err(OwnerDied::new_err(
                    "the last writer died while it had the lock: look at what the lock protects \
                     inside `with lock.recover():`",
                ));
            }
            OnDeath::Flag => return Ok(()),
            OnDeath::Ignore => {}
            OnDeath::Call(callable) => {
                callable.bind(slf.py()).call1((slf,))?;
            }
        }
        this.raw().mark_consistent();
        Ok(())
    }
}

#[pymethods]
impl RwLock {
    #[new]
    #[pyo3(signature = (segment, offset, on_owner_death = None))]
    fn new(
        segment: &Segment,
        offset: u64,
        on_owner_death: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<RwLock> {
        let place = Place::new(&segment.attached, offset, 8)
            .ok_or_else(|| PyValueError::new_err("offset: that of a lock in the segment"))?;
        Ok(RwLock { place, on_death: OnDeath::of(on_owner_death)? })
    }

    /// Acquires the lock for reading, waiting for it if `block`, at most `timeout` seconds. Returns
    /// whether the caller has it.
    #[pyo3(signature = (block = true, timeout = None))]
    fn acquire_read(
        slf: &Bound<'_, Self>,
        block: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        Self::acquire_by(slf, false, block, wait::seconds(timeout)?)
    }

    /// Acquires the lock for writing, as `acquire_read`.
    #[pyo3(signature = (block = true, timeout = None))]
    fn acquire_write(
        slf: &Bound<'_, Self>,
        block: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        Self::acquire_by(slf, true, block, wait::seconds(timeout)?)
    }

    /// Acquires the lock for writing whatever a writer left, without being told. Returns `None` if the
    /// time was over, else whether what it protects is to be looked at.
    #[pyo3(signature = (block = true, timeout = None))]
    fn _acquire_any(
        &self,
        py: Python<'_>,
        block: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<bool>> {
        let got = self.get(py, true, block, wait::seconds(timeout)?)?;
        Ok(got.map(|_| self.raw().is_inconsistent()))
    }

    /// Releases what the calling thread has of the lock, for reading or for writing.
    fn release(&self) -> PyResult<()> {
        let raw = self.raw();
        // Readers are not let in where it is inconsistent: who has it then has it alone.
        let released = (raw.is_inconsistent() && raw.unlock_untouched()) || raw.unlock();
        if released {
            return Ok(());
        }
        Err(PyValueError::new_err("the calling thread neither reads nor writes under the lock"))
    }

    /// Declares that what the lock protects is in order, after a writer's death. The calling thread has
    /// the lock alone, or `ValueError` is raised.
    fn mark_consistent(&self) -> PyResult<()> {
        if self.raw().mark_consistent() {
            return Ok(());
        }
        Err(PyValueError::new_err("the calling thread does not have the lock alone"))
    }

    /// Tells whether a writer has died since what the lock protects was last declared consistent.
    #[getter]
    fn owner_died(&self) -> bool {
        self.raw().is_inconsistent()
    }

    #[getter]
    fn _segment(&self) -> Segment {
        Segment { attached: self.place.segment.clone() }
    }

    #[getter]
    fn _offset(&self) -> u64 {
        self.place.offset
    }

    #[getter]
    fn _on_owner_death(&self, py: Python<'_>) -> Py<PyAny> {
        self.on_death.value(py)
    }
}
