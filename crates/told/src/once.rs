//! How what is initialised once tells of it.
//!
//! # What is told
//! The thread that initialises holds the once meanwhile: others wait for it. So what it locks comes
//! after the once, and the once after what it holds already. A thread that finds the once done waits
//! for nobody, but would have done so if it had come earlier: its use is told too, where orders are
//! looked at, as an acquisition that is over at once. A wait is not told; its thread sleeps on a word
//! that `lockstead run` knows.

use super::{Listener, ToldLock, flag, kind, listener, way};

/// Describes the once at this address.
fn told(address: usize) -> ToldLock {
    ToldLock::new(address, kind::ONCE, flag::FOLLOWED)
}

/// Tells that the once at this address is held, until it is dropped.
struct Initialising(Option<(&'static Listener, usize)>);

impl Drop for Initialising {
    fn drop(&mut self) {
        if let Some((listener, address)) = self.0 {
            listener.releases(&told(address));
        }
    }
}

/// Initialises by `step` what belongs to the once at this address, and tells of it.
pub fn initialises<R>(address: usize, step: impl FnOnce() -> R) -> R {
    let held = listener().map(|listener| {
        listener.acquired(&told(address), way::ALONE);
        (listener, address)
    });
    let _held = Initialising(held);
    step()
}

/// Tells that the caller has used what it would have initialised or waited for.
#[inline]
pub fn uses(address: usize) {
    if let Some(listener) = listener() {
        used(listener, address);
    }
}

#[cold]
#[inline(never)]
fn used(listener: &Listener, address: usize) {
    if listener.checks() {
        let once = told(address);
        listener.acquired(&once, way::ALONE);
        listener.releases(&once);
    }
}
