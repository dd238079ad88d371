//! `Condition`.
//!
//! # Protocol
//! The condition variable below may wake a waiter that nobody notified; Python's does not. So the
//! condition counts: a waiter draws a ticket, and a notification grants so many returns to those whose
//! tickets were drawn before it. Who is woken and finds no grant sleeps on. All of it is under the mutex.
//!
//! A waiter that dies stays in the number of waiters, and a notification may grant its return. That
//! grant is used by a later waiter, if by any, and so a wait may return without a notification once a
//! waiter was killed. None is lost: the condition variable has all others look when the one dies that
//! it woke. A waiter that learns that an owner of the mutex died grants all waiters their return, since
//! what they wait for may be what that owner was about to tell.

use crate::error::{not_recoverable, refused};
use crate::mutex::Mutex;
use crate::place::Place;
use crate::segment::Segment;
use crate::wait::{self, Slices};
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead::shared::raw::{RawCondvar, RawOutcome};
use pyo3::exceptions::{PyAssertionError, PyValueError};
use pyo3::prelude::*;

/// The state of a condition, which its mutex guards.
#[repr(C)]
struct State {
    /// The next ticket, and the first that the last notification was too early for.
    next: AtomicU32,
    end: AtomicU32,
    /// The returns that were granted and not used yet, and the waiters.
    grants: AtomicU32,
    waiters: AtomicU32,
}

impl State {
    fn get(field: &AtomicU32) -> u32 {
        field.load(Ordering::Relaxed)
    }

    fn add(field: &AtomicU32, by: u32) {
        // The mutex is held: nobody else writes.
        field.store(Self::get(field).wrapping_add(by), Ordering::Relaxed);
    }

    fn subtract(field: &AtomicU32) {
        field.store(Self::get(field).saturating_sub(1), Ordering::Relaxed);
    }

    /// Lets up to so many waiters return. Returns how many.
    fn grant(&self, most: u32) -> u32 {
        let granted = most.min(Self::get(&self.waiters).saturating_sub(Self::get(&self.grants)));
        Self::add(&self.grants, granted);
        self.end.store(Self::get(&self.next), Ordering::Relaxed);
        granted
    }

    /// Uses a grant, if there is one for this ticket.
    fn use_grant(&self, ticket: u32) -> bool {
        let is_early = (ticket.wrapping_sub(Self::get(&self.end)) as i32) < 0;
        let granted = is_early && Self::get(&self.grants) != 0;
        if granted {
            Self::subtract(&self.grants);
        }
        granted
    }
}

/// A condition of a segment, and its lock.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Condition {
    mutex: Py<Mutex>,
    changed: Place,
    state: Place,
}

impl Condition {
    fn changed(&self) -> &RawCondvar {
        // SAFETY: PLACE-LOCK: `new` has asked for room for one, and Python's part passes its place.
        unsafe { self.changed.at() }
    }

    fn state(&self) -> &State {
        // SAFETY: PLACE-LOCK: `new` has asked for room for it, and Python's part passes its place.
        unsafe { self.state.at() }
    }

    fn check(&self, what: &str) -> PyResult<()> {
        if self.mutex.get().raw().is_mine() {
            return Ok(());
        }
        Err(PyAssertionError::new_err(format!("must acquire() condition before using {what}()")))
    }

    /// Waits until this ticket's return is granted or the time is over. Returns which, and whether an owner
    /// has died; and the error of a signal's handler. The caller has the mutex, but for the outer error.
    fn wait_for(
        &self,
        py: Python<'_>,
        ticket: u32,
        slices: &mut Slices,
    ) -> PyResult<(PyResult<bool>, bool)> {
        let (raw, changed, state) = (self.mutex.get().raw(), self.changed(), self.state());
        let mut died = false;
        loop {
            let how = slices.next();
            let waited = py.detach(move || changed.wait(raw, &how)).map_err(refused)?;
            let has_died = match waited.mutex {
                RawOutcome::Acquired => false,
                RawOutcome::OwnerDied => true,
                RawOutcome::NotRecoverable => return Err(not_recoverable()),
            };
            if has_died {
                died = true;
                state.grant(u32::MAX);
                changed.notify_all();
            }
            if state.use_grant(ticket) {
                return Ok((Ok(true), died));
            }
            if slices.is_over() || died {
                // If somebody died, the waiters were more than there are: this one looks.
                return Ok((Ok(died), died));
            }
            if waited.ended.is_none() {
                continue;
            }
            // Handlers run without the mutex, as Python's own waits have it.
            let inconsistent = raw.is_inconsistent();
            let _ = if inconsistent { raw.unlock_untouched() } else { raw.unlock() };
            let handled = py.check_signals();
            match wait::until(py, None, |how| raw.lock(how)) {
                Ok(Some(RawOutcome::Acquired)) => {}
                Ok(Some(RawOutcome::OwnerDied)) => return Ok((handled.map(|()| true), true)),
                Ok(_) => return Err(not_recoverable()),
                Err(error) => return Err(error),
            }
            if let Err(error) = handled {
                return Ok((Err(error), died));
            }
            if state.use_grant(ticket) {
                return Ok((Ok(true), died));
            }
        }
    }
}

#[pymethods]
impl Condition {
    #[new]
    fn new(mutex: Py<Mutex>, segment: &Segment, changed: u64, state: u64) -> PyResult<Condition> {
        let place = |offset, size| {
            Place::new(&segment.attached, offset, size).ok_or_else(|| {
                PyValueError::new_err("offsets: those of a condition in the segment")
            })
        };
        let (changed, state) = (place(changed, 8)?, place(state, size_of::<State>() as u64)?);
        Ok(Condition { mutex, changed, state })
    }

    /// Releases the lock, waits to be notified, at most `timeout` seconds, and acquires the lock again.
    /// Returns whether it was notified.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.check("wait")?;
        let mut slices = Slices::new(wait::limit(wait::seconds(timeout)?));
        let (state, mutex) = (self.state(), self.mutex.get());
        let ticket = State::get(&state.next);
        State::add(&state.next, 1);
        State::add(&state.waiters, 1);
        let depth = mutex.lets_go();
        let (notified, died) = self.wait_for(py, ticket, &mut slices)?;
        mutex.has_again(depth);
        State::subtract(&state.waiters);
        if died {
            Mutex::tell(self.mutex.bind(py))?;
        }
        notified
    }

    /// Lets up to `n` of those return that wait. The caller has the lock.
    #[pyo3(signature = (n = 1))]
    fn notify(&self, n: u32) -> PyResult<()> {
        self.check("notify")?;
        for _ in 0..self.state().grant(n) {
            self.changed().notify_one();
        }
        Ok(())
    }

    /// Lets all return that wait. The caller has the lock.
    fn notify_all(&self) -> PyResult<()> {
        self.check("notify_all")?;
        self.state().grant(u32::MAX);
        self.changed().notify_all();
        Ok(())
    }

    /// Returns how many wait and have not been notified.
    fn _waiting(&self) -> u32 {
        let state = self.state();
        State::get(&state.waiters).saturating_sub(State::get(&state.grants))
    }

    #[getter]
    fn _lock(&self, py: Python<'_>) -> Py<Mutex> {
        self.mutex.clone_ref(py)
    }

    #[getter]
    fn _segment(&self) -> Segment {
        Segment { attached: self.changed.segment.clone() }
    }

    #[getter]
    fn _offsets(&self) -> (u64, u64) {
        (self.changed.offset, self.state.offset)
    }
}
