//! Dropping a reference count to zero under a lock.

use crate::{Hooks, Mutex, MutexGuard};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A counter for [`dec_and_lock`]: `AtomicU32`, `AtomicU64` or `AtomicUsize`.
pub trait Counter: sealed::Decrement {}

mod sealed {
    pub trait Decrement {
        /// Subtracts one from a value above `floor`. Returns the value before,
        /// as an error if it was left alone.
        fn decrement_above(&self, floor: u64) -> Result<u64, u64>;
    }
}

macro_rules! counter {
    ($($atomic:ty),*) => {$(
        impl Counter for $atomic {}

        impl sealed::Decrement for $atomic {
            fn decrement_above(&self, floor: u64) -> Result<u64, u64> {
                // ord: DEC-1 acq_rel, pairs with itself: what each thread did
                // with the counted object before it dropped its reference
                // comes before what the one that sees zero does to it.
                self.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |value| {
                    (value as u64 > floor).then(|| value - 1)
                })
                .map(|value| value as u64)
                .map_err(|value| value as u64)
            }
        }
    )*};
}

counter!(AtomicU32, AtomicU64, AtomicUsize);

/// Drops one reference, and locks `mutex` if that was the last: the kernel's
/// `atomic_dec_and_mutex_lock`.
///
/// Returns the guard exactly if the counter has become zero, under the lock.
/// Otherwise the counter is decremented and the mutex is not held; it is taken
/// for a moment when the counter looked like 1, and not touched above that.
///
/// The use: objects found through a table that the mutex guards. Whoever looks
/// one up increments its counter under the mutex, so a counter cannot leave
/// zero, and the thread that gets the guard may unlink and free the object.
///
/// # Panics
/// If the counter is zero already: a reference was dropped twice. The counter
/// stays zero and the mutex is not held. And as [`Mutex::lock`].
///
/// # Example
/// ```
/// use lockstead::{Mutex, dec_and_lock};
/// use std::{collections::HashMap, sync::atomic::AtomicU32};
///
/// let table = Mutex::new(HashMap::from([("inode 7", "contents")]));
/// let references = AtomicU32::new(2);
/// assert!(dec_and_lock(&references, &table).is_none()); // 2 -> 1
/// let mut last = dec_and_lock(&references, &table).expect("1 -> 0");
/// last.remove("inode 7");
/// ```
#[track_caller]
pub fn dec_and_lock<'a, T: ?Sized, H: Hooks>(
    counter: &impl Counter,
    mutex: &'a Mutex<T, H>,
) -> Option<MutexGuard<'a, T, H>> {
    match counter.decrement_above(1) {
        Ok(_) => return None,
        Err(0) => underflow(),
        Err(_) => {}
    }
    let guard = mutex.lock();
    match counter.decrement_above(0) {
        Ok(1) => Some(guard),
        Ok(_) => None,
        Err(_) => {
            drop(guard);
            underflow()
        }
    }
}

#[cold]
#[track_caller]
fn underflow() -> ! {
    panic!("dec_and_lock: the counter is zero already: a reference was dropped more than once")
}
