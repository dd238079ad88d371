//! `Barrier`.
//!
//! # Protocol
//! The generation and the number of those that have arrived are one word, which one store changes. The
//! last one of a generation makes the action, with the others asleep, and begins the next generation.
//! One that dies there leaves a barrier at which all have arrived and none has gone on: it is broken. One
//! that dies while it waits has arrived, and is not missed.

use crate::guarded::Guarded;
use crate::place::Place;
use crate::segment::Segment;
use crate::wait::{self, Slices};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstead::shared::raw::RawCondvar;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The state of a barrier, which its mutex guards.
#[repr(C)]
struct State {
    /// The generation in the upper half, those that have arrived in the lower one.
    word: AtomicU64,
    /// Whether it is broken.
    broken: AtomicU64,
    /// The last generation that a reset has ended, plus one.
    reset: AtomicU64,
}

/// A barrier of a segment.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Barrier {
    guarded: Guarded,
    changed: Place,
    state: Place,
    parties: u32,
}

/// The end of a wait at a barrier.
enum Passed {
    /// The caller has passed with the others, as the one of this number.
    As(u32),
    /// The barrier is broken.
    Broken,
}

impl Barrier {
    fn changed(&self) -> &RawCondvar {
        // SAFETY: PLACE-LOCK: `new` has asked for room for one, and Python's part passes its place.
        unsafe { self.changed.at() }
    }

    fn state(&self) -> &State {
        // SAFETY: PLACE-LOCK: `new` has asked for room for it, and Python's part passes its place.
        unsafe { self.state.at() }
    }

    /// Returns the generation and the number of those that have arrived.
    fn seen(&self) -> (u32, u32) {
        let word = self.state().word.load(Ordering::Relaxed);
        ((word >> 32) as u32, word as u32)
    }

    fn set(&self, generation: u32, arrived: u32) {
        let word = u64::from(generation) << 32 | u64::from(arrived);
        self.state().word.store(word, Ordering::Relaxed);
    }

    fn is_broken(&self) -> bool {
        self.state().broken.load(Ordering::Relaxed) != 0
    }

    fn break_it(&self) {
        self.set(self.seen().0, 0);
        self.state().broken.store(1, Ordering::Relaxed);
        self.changed().notify_all();
    }

    fn repair(&self) {
        if self.seen().1 >= self.parties {
            self.break_it();
        }
    }

    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        self.guarded.enter(py, None, &|| self.repair()).map(|_| ())
    }

    /// Waits for the others, in a barrier that has been entered, and leaves it.
    fn pass(
        &self,
        py: Python<'_>,
        limit: wait::Limit,
        action: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Passed> {
        let (generation, index) = self.seen();
        if self.is_broken() {
            self.guarded.leave();
            return Ok(Passed::Broken);
        }
        self.set(generation, index + 1);
        if index + 1 >= self.parties {
            // The others wait until it is done, so it is done with the barrier's own mutex held.
            let done = action.map_or(Ok(()), |action| action.call0().map(drop));
            match done {
                Ok(()) => {
                    self.set(generation.wrapping_add(1), 0);
                    self.changed().notify_all();
                }
                Err(_) => self.break_it(),
            }
            self.guarded.leave();
            return done.map(|()| Passed::As(index));
        }
        let mut slices = Slices::new(limit);
        loop {
            if let Err(error) =
                self.guarded.sleep(py, self.changed(), &mut slices, &|| self.repair())
            {
                // A handler raised: the others wait for one that does not come.
                self.enter(py)?;
                if self.seen().0 == generation {
                    self.break_it();
                }
                self.guarded.leave();
                return Err(error);
            }
            let reset = self.state().reset.load(Ordering::Relaxed);
            let passed = match self.seen().0 != generation {
                true if reset == u64::from(generation) + 1 => Some(Passed::Broken),
                true => Some(Passed::As(index)),
                false if self.is_broken() => Some(Passed::Broken),
                false if slices.is_over() => {
                    self.break_it();
                    Some(Passed::Broken)
                }
                false => None,
            };
            if let Some(passed) = passed {
                self.guarded.leave();
                return Ok(passed);
            }
        }
    }
}

#[pymethods]
impl Barrier {
    #[new]
    fn new(
        segment: &Segment,
        mutex: u64,
        changed: u64,
        state: u64,
        parties: u32,
    ) -> PyResult<Barrier> {
        let place = |offset, size| {
            Place::new(&segment.attached, offset, size)
                .ok_or_else(|| PyValueError::new_err("offsets: those of a barrier in the segment"))
        };
        let guarded = Guarded::new(place(mutex, 8)?);
        let (changed, state) = (place(changed, 8)?, place(state, size_of::<State>() as u64)?);
        Ok(Barrier { guarded, changed, state, parties })
    }

    /// Waits for the others. Returns the caller's number among them; `None` if the barrier is broken.
    #[pyo3(signature = (timeout, action))]
    fn _pass(
        &self,
        py: Python<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
        action: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<u32>> {
        let limit = wait::limit(wait::seconds(timeout)?);
        self.enter(py)?;
        Ok(match self.pass(py, limit, action)? {
            Passed::As(index) => Some(index),
            Passed::Broken => None,
        })
    }

    /// Makes the barrier as new. Those that wait find it broken.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.enter(py)?;
        let (generation, _) = self.seen();
        self.state().reset.store(u64::from(generation) + 1, Ordering::Relaxed);
        self.state().broken.store(0, Ordering::Relaxed);
        self.set(generation.wrapping_add(1), 0);
        self.changed().notify_all();
        self.guarded.leave();
        Ok(())
    }

    /// Breaks the barrier: all that wait, or come, are told so.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.enter(py)?;
        self.break_it();
        self.guarded.leave();
        Ok(())
    }

    /// Returns how many threads have to come.
    #[getter]
    fn parties(&self) -> u32 {
        self.parties
    }

    /// Returns how many wait now.
    #[getter]
    fn n_waiting(&self) -> u32 {
        self.seen().1
    }

    /// Tells whether the barrier is broken.
    #[getter]
    fn broken(&self) -> bool {
        self.is_broken()
    }

    #[getter]
    fn _segment(&self) -> Segment {
        Segment { attached: self.changed.segment.clone() }
    }

    #[getter]
    fn _offsets(&self) -> (u64, u64, u64) {
        (self.guarded.place().offset, self.changed.offset, self.state.offset)
    }
}
