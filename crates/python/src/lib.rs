//! The part of the Python package `lockstead` that is not Python: locks in segments, for the
//! classes of `lockstead.shared`; with the feature `cluster`, the mutex over etcd of `lockstead.cluster`.
//!
//! # Role
//! Each class here is one lock at one place of a segment, with the interpreter's rules around it: a
//! wait lets other threads run, ends when a signal's handler raises, and gives up when its time is
//! over. What is only Python (names, pickling, what an object says of itself) is in
//! `python/lockstead/shared`.
//!
//! # Protocol
//! Nothing here calls Python while it has a lock of its own, such as the registry's. Waits are made
//! without the interpreter's lock; what needs none (a lock that is free, a release) keeps it, since giving
//! it back and taking it costs more than the lock.
//!
//! # Invariants
//! - **PLACE-LOCK** A [`place::Place`] is aligned and large enough for the lock that it was made for,
//!   all who use it use it as that lock, and its segment stays mapped while it lives.

mod arena;
mod barrier;
#[cfg(feature = "cluster")]
mod cluster;
mod condition;
mod death;
mod error;
mod event;
mod fast;
mod guarded;
mod here;
mod map;
mod mutex;
mod place;
mod queue;
mod ring;
mod rwlock;
mod segment;
mod semaphore;
mod wait;

use pyo3::prelude::*;

/// Fills the extension module `lockstead._lockstead`.
///
/// It needs no lock of the interpreter's: the classes are frozen, and all that changes in their objects is
/// atomic, or lies under a lock of its own, or under the lock of the segment that is the object's.
#[pymodule(gil_used = false)]
fn _lockstead(module: &Bound<'_, PyModule>) -> PyResult<()> {
    here::begin();
    error::add(module)?;
    module.add_class::<segment::Segment>()?;
    module.add_class::<mutex::Mutex>()?;
    fast::add::<mutex::Mutex>(module.py())?;
    module.add_class::<rwlock::RwLock>()?;
    module.add_class::<semaphore::Semaphore>()?;
    fast::add::<semaphore::Semaphore>(module.py())?;
    module.add_class::<condition::Condition>()?;
    module.add_class::<event::Event>()?;
    module.add_class::<barrier::Barrier>()?;
    module.add_class::<queue::Ring>()?;
    #[cfg(feature = "cluster")]
    cluster::add(module)?;
    module.add_function(wrap_pyfunction!(arena::allocate, module)?)?;
    module.add_function(wrap_pyfunction!(arena::configure, module)?)?;
    module.add_function(wrap_pyfunction!(here::allow_tracer, module)?)
}
