//! The cases with the locks of the crate parking_lot.

#[path = "cases.rs"]
mod cases;
#[path = "mapped.rs"]
mod mapped;
#[path = "more.rs"]
mod more;
#[path = "once.rs"]
mod once;
#[path = "truth.rs"]
mod truth;
#[path = "upgradable.rs"]
mod upgradable;

/// The locks, in the words of the cases.
mod family {
    pub(crate) use parking_lot::{Condvar, MappedMutexGuard, Mutex, MutexGuard, Once, RwLock};

    macro_rules! lock {
        ($mutex:expr) => {
            $mutex.lock()
        };
    }
    macro_rules! read {
        ($lock:expr) => {
            $lock.read()
        };
    }
    macro_rules! write {
        ($lock:expr) => {
            $lock.write()
        };
    }
    pub(crate) use {lock, read, write};

    /// Waits for the condition, without the lock meanwhile.
    pub(crate) fn wait<'a, T>(
        condition: &Condvar,
        mut guard: MutexGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        condition.wait(&mut guard);
        guard
    }

    /// Takes and gives back a lock through whose guard a panic passed.
    #[cfg(panic = "unwind")]
    pub(crate) fn recover<T>(mutex: &Mutex<T>) {
        drop(mutex.lock());
    }
}

fn main() {
    cases::main(&[cases::CASES, more::CASES, mapped::CASES, once::CASES, upgradable::CASES]);
}
