//! `Lock` and `RLock`.

use crate::death::OnDeath;
use crate::error::{OwnerDied, not_recoverable, refused};
use crate::fast::Fast;
use crate::place::Place;
use crate::segment::Segment;
use crate::{here, wait};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use lockstead::shared::SharedError;
use lockstead::shared::raw::{RawMutex, RawOutcome};
use lockstead_core::robust::Identity;
use pyo3::exceptions::{PyAssertionError, PyValueError};
use pyo3::prelude::*;

/// The text of an `OwnerDied`.
const DIED: &str = "the last holder died while it had the lock: look at what the lock protects \
                    inside `with lock.recover():`";

/// A mutex of a segment. Its owner is a thread.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Mutex {
    place: Place,
    recursive: bool,
    on_death: OnDeath,
    /// How often the owner has it, if the owner acquired it by this object. Of an owner only.
    depth: AtomicU32,
    /// The thread that acquired it last by this object, by its name in the segment, and its process, as
    /// [`here::generation`]. Who has the lock now the lock's word says. A thread that has ended may have
    /// left its name to one of another process; nothing but `repr` depends on it.
    holder: AtomicU64,
}

impl Mutex {
    #[inline(always)]
    pub(crate) fn raw(&self) -> &RawMutex {
        // SAFETY: PLACE-LOCK: `new` has asked for room for a mutex, and Python's part passes the place
        // of one.
        unsafe { self.place.at() }
    }

    #[inline(always)]
    fn got(&self, depth: u32) {
        self.depth.store(depth, Ordering::Relaxed);
        self.holder.store(self.who_has_it(), Ordering::Relaxed);
    }

    /// Returns who has it, if that is a thread of this process, as `holder` says it.
    #[inline(always)]
    fn who_has_it(&self) -> u64 {
        let name = self.raw().holder().map_or(0, Identity::bits);
        u64::from(here::generation()) << 32 | u64::from(name)
    }

    /// Gives the mutex up for the time of a wait for a condition. Returns what
    /// [`has_again`](Self::has_again) wants to know.
    pub(crate) fn lets_go(&self) -> u32 {
        self.depth.swap(0, Ordering::Relaxed)
    }

    /// Has the mutex again as it was before [`lets_go`](Self::lets_go).
    pub(crate) fn has_again(&self, depth: u32) {
        self.got(depth);
    }

    /// Tells the caller, which has the mutex, of its last owner's death, as it wishes. With an error the
    /// caller has the mutex still, and it is inconsistent.
    pub(crate) fn tell(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        match &this.on_death {
            OnDeath::Raise => Err(OwnerDied::new_err(DIED)),
            OnDeath::Flag => Ok(()),
            OnDeath::Ignore => {
                this.raw().mark_consistent();
                Ok(())
            }
            OnDeath::Call(callable) => {
                callable.bind(slf.py()).call1((slf,))?;
                this.raw().mark_consistent();
                Ok(())
            }
        }
    }

    /// Acquires the lock and returns whether the last owner died; `None`: it was not to be had in time.
    fn get(&self, py: Python<'_>, block: bool, timeout: Option<f64>) -> PyResult<Option<bool>> {
        if self.take_now() {
            return Ok(Some(false));
        }
        if self.recursive && self.raw().is_mine() {
            self.depth.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(false));
        }
        self.get_slow(py, block, timeout)
    }

    #[cold]
    fn get_slow(
        &self,
        py: Python<'_>,
        block: bool,
        timeout: Option<f64>,
    ) -> PyResult<Option<bool>> {
        let raw = self.raw();
        let outcome = match raw.try_lock() {
            Ok(outcome) => Some(outcome),
            Err(SharedError::Held | SharedError::Recursive) if !block => None,
            Err(SharedError::Recursive) => return self.would_wait_for_itself(py, timeout),
            Err(SharedError::Held) => {
                let limit = wait::limit(timeout);
                if timeout.is_some_and(|seconds| seconds <= 0.0) {
                    None
                } else {
                    wait::until(py, limit, |how| raw.lock(how))?
                }
            }
            Err(error) => return Err(refused(error)),
        };
        match outcome {
            None => Ok(None),
            Some(RawOutcome::NotRecoverable) => Err(not_recoverable()),
            Some(outcome) => {
                self.got(1);
                Ok(Some(outcome == RawOutcome::OwnerDied))
            }
        }
    }

    /// Waits as long as the caller said for a lock that only the caller could release.
    fn would_wait_for_itself(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
    ) -> PyResult<Option<bool>> {
        match wait::limit(timeout) {
            None => Err(refused(SharedError::Recursive)),
            Some(limit) => wait::doze(py, limit).map(|()| None),
        }
    }

    /// Releases what the calling thread has. A death of which it was told, and after which nobody has
    /// declared things consistent, is told to the next owner.
    fn give(&self) -> PyResult<()> {
        let raw = self.raw();
        if self.recursive && self.depth.load(Ordering::Relaxed) > 1 && raw.is_mine() {
            self.depth.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        if !raw.is_mine() {
            return Err(self.not_held());
        }
        let released = if raw.is_inconsistent() { raw.unlock_untouched() } else { raw.unlock() };
        if released {
            return Ok(());
        }
        Err(self.not_held())
    }

    #[cold]
    fn not_held(&self) -> PyErr {
        if self.recursive {
            PyAssertionError::new_err("attempt to release recursive lock not owned by thread")
        } else {
            PyValueError::new_err(
                "lock released too many times, or by another thread than the one that has it",
            )
        }
    }

    fn acquire_by(slf: &Bound<'_, Self>, block: bool, timeout: Option<f64>) -> PyResult<bool> {
        match slf.get().get(slf.py(), block, timeout)? {
            None => Ok(false),
            Some(false) => Ok(true),
            Some(true) => Self::tell(slf).map(|()| true).inspect_err(|_| {
                slf.get().raw().unlock_untouched();
            }),
        }
    }
}

impl Fast for Mutex {
    const RELEASES_MANY: bool = false;

    #[inline(always)]
    fn take_now(&self) -> bool {
        let taken = self.raw().take();
        if taken {
            self.got(1);
        }
        taken
    }

    /// Gives the mutex back if that takes one step: not a recursive one that the thread has more than
    /// once, nor where somebody waits or died. Returns whether it did.
    #[inline(always)]
    fn give_now(&self) -> bool {
        // Another thread than the owner may find 1 here, and then does not have the mutex to give.
        self.depth.load(Ordering::Relaxed) == 1 && self.raw().give()
    }
}

#[pymethods]
impl Mutex {
    #[new]
    #[pyo3(signature = (segment, offset, recursive, on_owner_death = None))]
    fn new(
        segment: &Segment,
        offset: u64,
        recursive: bool,
        on_owner_death: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Mutex> {
        let place = Place::new(&segment.attached, offset, 8)
            .ok_or_else(|| PyValueError::new_err("offset: that of a mutex in the segment"))?;
        Ok(Mutex {
            place,
            recursive,
            on_death: OnDeath::of(on_owner_death)?,
            depth: AtomicU32::new(0),
            holder: AtomicU64::new(0),
        })
    }

    /// Does what `acquire` does, which is in `fast`, where there is more to do than one step.
    #[pyo3(signature = (block = None, timeout = None))]
    fn _acquire(
        slf: &Bound<'_, Self>,
        block: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let block = block.map_or(Ok(true), |block| block.is_truthy())?;
        Self::acquire_by(slf, block, wait::seconds(timeout)?)
    }

    /// Does what `release` does, likewise.
    fn _release(&self) -> PyResult<()> {
        self.give()
    }

    /// Acquires the lock whatever its last holder left, without being told. Returns `None` if the time
    /// was over, else whether what it protects is to be looked at.
    #[pyo3(signature = (block = true, timeout = None))]
    fn _acquire_any(
        &self,
        py: Python<'_>,
        block: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<bool>> {
        let got = self.get(py, block, wait::seconds(timeout)?)?;
        Ok(got.map(|_| self.raw().is_inconsistent()))
    }

    /// Declares that what the lock protects is in order, after a holder's death. The calling thread has
    /// the lock, or `ValueError` is raised.
    fn mark_consistent(&self) -> PyResult<()> {
        if self.raw().mark_consistent() {
            return Ok(());
        }
        Err(PyValueError::new_err("the calling thread does not have the lock"))
    }

    /// Tells whether a holder has died since what the lock protects was last declared consistent.
    #[getter]
    fn owner_died(&self) -> bool {
        self.raw().is_inconsistent()
    }

    /// Tells whether anybody has the lock, dead or alive.
    fn locked(&self) -> bool {
        self.raw().is_locked()
    }

    fn _is_mine(&self) -> bool {
        self.raw().is_mine()
    }

    /// Returns how often this process has the lock by this object.
    fn _count(&self) -> u32 {
        let ours = self.raw().holder().is_some()
            && self.holder.load(Ordering::Relaxed) == self.who_has_it();
        if ours { self.depth.load(Ordering::Relaxed) } else { 0 }
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
