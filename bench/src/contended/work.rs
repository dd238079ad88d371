//! What threads do inside and outside of the lock.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the lock protects: a line that every section reads and writes, as real
/// sections do, so that each change of owner moves it between processors. The
/// counter also shows whether the lock excludes.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct SectionWork {
    sections: AtomicU64,
    trace: AtomicU64,
}

impl SectionWork {
    /// Does a section of `steps` steps, from where the last section and the caller's work
    /// outside of it, which came to `seed`, have ended; returns where it ends itself.
    /// A load and a store and not an atomic addition: two sections at once lose a count.
    #[inline(always)]
    pub(crate) fn section(&self, steps: u64, seed: u64) -> u64 {
        let count = self.sections.load(Ordering::Relaxed) + 1;
        self.sections.store(count, Ordering::Relaxed);
        if steps == 0 {
            return seed;
        }
        let end = busy(steps, self.trace.load(Ordering::Relaxed) ^ seed);
        self.trace.store(end, Ordering::Relaxed);
        end
    }

    /// Returns the number of sections that the counter has seen.
    pub(crate) fn sections(&self) -> u64 {
        self.sections.load(Ordering::Relaxed)
    }
}

/// Does a chain of dependent multiplications that touches no memory. What begins with `seed`
/// cannot begin before `seed` is known: a thread passes what one piece of work comes to on
/// to its next, or its processor would do both at a time, in half of the time.
///
/// The shift keeps a compiler from merging steps: a chain of multiplications and additions
/// alone becomes one of every 64th step. And there is one copy of the code: inlined beside
/// each lock, it came out different beside each.
#[inline(never)]
pub(crate) fn busy(steps: u64, seed: u64) -> u64 {
    let mut value = seed;
    for _ in 0..steps {
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ (value >> 32);
    }
    value
}

/// How fast this machine does the steps of [`busy`].
#[derive(Clone, Copy)]
pub(crate) struct WorkPace {
    steps_per_ns: f64,
}

impl WorkPace {
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

    /// Returns the number of steps that take `length`: none for none, else at least one.
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
        let pace = WorkPace::calibrated();
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

    /// Each step is a multiplication, three cycles at the least; noise makes it only longer.
    #[test]
    fn no_step_is_merged_with_another() {
        let pace = WorkPace::calibrated();
        assert!(pace.steps_per_ns < 2.5, "{} steps in a nanosecond", pace.steps_per_ns);
    }

    #[test]
    fn only_nothing_takes_no_step() {
        let pace = WorkPace { steps_per_ns: 0.25 };
        assert_eq!(pace.steps(Duration::ZERO), 0);
        assert_eq!(pace.steps(Duration::from_nanos(1)), 1);
        assert_eq!(pace.steps(Duration::from_nanos(400)), 100);
    }

    #[test]
    fn a_section_goes_on_where_the_last_ended() {
        let shared = SectionWork::default();
        assert_eq!(shared.section(0, 7), 7, "no step changes nothing");
        let first = shared.section(3, 7);
        assert_eq!(first, busy(3, 7));
        assert_eq!(shared.section(2, 9), busy(2, first ^ 9));
    }

    #[test]
    fn sections_are_counted() {
        let shared = SectionWork::default();
        for steps in [0, 1, 5] {
            shared.section(steps, 7);
        }
        assert_eq!(shared.sections(), 3);
    }
}
