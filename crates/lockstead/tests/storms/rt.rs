//! The real-time mutex: two of them, one inside the other, so that priorities go along a chain.

use crate::frame::{Scene, Worker, storms};
use crate::kinds::pi_error;
use lockstead_core::{LockError, Plain, WaitBounds};
use lockstead_linux::pi::PiWord;
use lockstead_linux::{Cell, Linux};

struct Rt {
    outer: PiWord,
    inner: PiWord,
    /// Guarded by the inner one.
    count: Cell<u64>,
}

impl Rt {
    fn new() -> Self {
        Rt { outer: PiWord::new(), inner: PiWord::new(), count: Cell::new(0) }
    }
}

fn lock(word: &PiWord, how: &WaitBounds<'_, Linux>) -> Result<(), LockError> {
    if word.lock_fast() {
        return Ok(());
    }
    word.lock_slow(how).map_err(pi_error)
}

impl Scene for Rt {
    fn turn(&self, worker: &mut Worker<'_>) {
        let outside = worker.dice.one_in(2);
        if outside {
            worker.insist(|how| lock(&self.outer, how));
        }
        let tries = worker.dice.one_in(16);
        if !(tries && (self.inner.lock_fast() || self.inner.try_lock_slow())) {
            worker.insist(|how| lock(&self.inner, how));
        }
        // SAFETY: this thread holds the inner lock, which keeps all others out.
        self.count.with_mut(|count| unsafe { count.write_volatile(count.read_volatile() + 1) });
        worker.linger();
        // SAFETY: this thread holds the lock, and releases it once.
        unsafe { self.inner.unlock() };
        if outside {
            // SAFETY: this thread holds the lock, and releases it once.
            unsafe { self.outer.unlock() };
        }
    }

    fn still(&self, turns: u64) {
        // SAFETY: nobody makes a turn, so that nobody writes the count.
        assert_eq!(self.count.with(|count| unsafe { count.read() }), turns);
        assert!([&self.outer, &self.inner].iter().all(|word| !word.is_locked() && !word.is_lost()));
    }

    fn describe(&self) -> String {
        format!("outer {:#x}, inner {:#x}", self.outer.peek(), self.inner.peek())
    }
}

storms!("real-time mutex", Rt::new(), 30_000, 20_000_000);
