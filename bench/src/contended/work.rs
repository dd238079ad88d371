//! What threads do inside and outside of the lock.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the lock protects: a line that every section reads and writes, as real
/// sections do, so that each change of owner moves it between processors. The
/// counter also shows whether the lock excludes.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Shared {
    sections: AtomicU64,
    trace: AtomicU64,
}

impl Shared {
    /// A section of `steps` steps. A load and a store and not an atomic
    /// addition: two sections at once lose a count.
    #[inline(always)]
    pub(crate) fn section(&self, steps: u64) {
        let count = self.sections.load(Ordering::Relaxed) + 1;
        self.sections.store(count, Ordering::Relaxed);
        if steps > 0 {
            self.trace.store(busy(steps, count), Ordering::Relaxed);
        }
    }

    /// Sections that the counter has seen.
    pub(crate) fn sections(&self) -> u64 {
        self.sections.load(Ordering::Relaxed)
    }
}

/// A chain of dependent multiplications that no compiler can shorten and that
/// touches no memory.
#[inline(always)]
pub(crate) fn busy(steps: u64, seed: u64) -> u64 {
    let mut value = seed;
    for _ in 0..steps {
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    }
    value
}

/// How fast this machine does the steps of [`busy`].
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    steps_per_ns: f64,
}

impl Pace {
    /// Measures for some 20 ms. The fastest of several tries counts: the
    /// others were disturbed.
    pub(crate) fn calibrated() -> Self {
        const STEPS: u64 = 1_000_000;
        let fastest = (0..20)
            .map(|seed| {
                let start = Instant::now();
                black_box(busy(black_box(STEPS), black_box(seed)));
                start.elapsed()
            })
            .min()
            .expect("twenty tries");
        Self { steps_per_ns: STEPS as f64 / fastest.as_nanos() as f64 }
    }

    /// Steps that take `length`: none for none, else at least one.
    pub(crate) fn steps(self, length: Duration) -> u64 {
        if length.is_zero() {
            return 0;
        }
        ((length.as_nanos() as f64 * self.steps_per_ns).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibrated_section_takes_at_least_its_time() {
        let pace = Pace::calibrated();
        let length = Duration::from_micros(500);
        let steps = pace.steps(length);
        let fastest = (0..20)
            .map(|seed| {
                let start = Instant::now();
                black_box(busy(black_box(steps), seed));
                start.elapsed()
            })
            .min()
            .expect("twenty tries");
        assert!(fastest > length * 7 / 10, "{fastest:?} for {length:?}");
    }

    #[test]
    fn only_nothing_takes_no_step() {
        let pace = Pace { steps_per_ns: 0.25 };
        assert_eq!(pace.steps(Duration::ZERO), 0);
        assert_eq!(pace.steps(Duration::from_nanos(1)), 1);
        assert_eq!(pace.steps(Duration::from_nanos(400)), 100);
    }

    #[test]
    fn sections_are_counted() {
        let shared = Shared::default();
        for steps in [0, 1, 5] {
            shared.section(steps);
        }
        assert_eq!(shared.sections(), 3);
    }
}
