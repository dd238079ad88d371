//! The cases with the locks of Rust's standard library. It needs nothing but the compiler.

#[path = "cases.rs"]
mod cases;
#[path = "more.rs"]
mod more;
#[path = "once.rs"]
mod once;
#[allow(dead_code, reason = "each program has its part of the facts")]
#[path = "truth.rs"]
mod truth;

/// The locks, in the words of the cases.
mod family {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, Once, RwLock};

    macro_rules! lock {
        ($mutex:expr) => {
            $mutex.lock().unwrap()
        };
    }
    macro_rules! read {
        ($lock:expr) => {
            $lock.read().unwrap()
        };
    }
    macro_rules! write {
        ($lock:expr) => {
            $lock.write().unwrap()
        };
    }
    pub(crate) use {lock, read, write};

    /// Waits for the condition, without the lock meanwhile.
    pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap()
    }

    /// Takes and gives back a lock through whose guard a panic passed, and forgets that.
    #[cfg(panic = "unwind")]
    pub(crate) fn recover<T>(mutex: &Mutex<T>) {
        drop(mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        mutex.clear_poison();
    }
}

fn main() {
    cases::main(&[cases::CASES, more::CASES, once::CASES]);
}
