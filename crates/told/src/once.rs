//! How what is initialised once tells of it.
//!
//! # What is told
//! The thread that initialises holds the once meanwhile: others wait for it. So what it locks comes
//! after the once, and the once after what it holds already. A thread that finds the once done waits
//! for nobody, but would have done so if it had come earlier: its use is told too, where orders are
//! looked at, as an acquisition that is over at once.

use super::home::Home;
use super::{Listener, ToldLock, ending, flag, kind, listener, way};
use core::cell::Cell;

/// Describes the once at this address.
fn told(address: usize) -> ToldLock {
    ToldLock::new(address, kind::ONCE, flag::FOLLOWED)
}

/// A thread's use of a once, from before it looks whether it is done until it is.
#[derive(Debug)]
pub struct Turn {
    listener: Option<&'static Listener>,
    address: usize,
    /// What the thread is in.
    state: Cell<TurnState>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TurnState {
    /// The once is not known not to be done.
    Uses,
    /// A wait was noted.
    Waits,
    /// There is nothing more to tell.
    Over,
}

impl Turn {
    /// Returns the use of the once that begins here.
    #[inline]
    #[must_use]
    pub fn of(home: &Home) -> Turn {
        let listener = listener();
        let address = listener.map_or(0, |listener| home.settle(listener, None));
        Turn { listener, address, state: Cell::new(TurnState::Uses) }
    }

    /// Tells of the wait that may follow, unless the once is done already. To be called where the turn
    /// lies until it is dropped.
    #[inline]
    pub fn begins(&self, is_done: bool) {
        if let Some(listener) = self.listener.filter(|_| !is_done) {
            self.waits(listener);
        }
    }

    #[cold]
    #[inline(never)]
    fn waits(&self, listener: &Listener) {
        let frame = core::ptr::from_ref(self).addr();
        if listener.wait_begins(&told(self.address), way::ALONE, (0, 0), frame) {
            self.state.set(TurnState::Waits);
        }
    }

    /// Initialises by `step`, by the thread whose turn it is, and tells of it.
    pub fn initialises<R>(&self, step: impl FnOnce() -> R) -> R {
        let Some(listener) = self.listener else { return step() };
        let once = told(self.address);
        if self.state.replace(TurnState::Over) == TurnState::Waits {
            // There was nobody to wait for.
            listener.wait_ends(&once, way::ALONE, ending::REFUSED);
        }
        listener.acquired(&once, way::ALONE);
        let _held = HeldOnce(listener, once);
        step()
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        if let Some(listener) = self.listener
            && self.state.get() != TurnState::Over
        {
            self.ends(listener);
        }
    }
}

impl Turn {
    #[cold]
    #[inline(never)]
    fn ends(&self, listener: &Listener) {
        let once = told(self.address);
        if self.state.get() == TurnState::Waits {
            listener.wait_ends(&once, way::ALONE, ending::GRANTED);
        } else if listener.checks() {
            listener.acquired(&once, way::ALONE);
            listener.releases(&once);
        }
    }
}

/// Tells that a once is released when it is dropped.
struct HeldOnce<'a>(&'a Listener, ToldLock);

impl Drop for HeldOnce<'_> {
    fn drop(&mut self) {
        self.0.releases(&self.1);
    }
}
