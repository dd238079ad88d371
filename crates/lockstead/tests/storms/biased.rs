//! The biased mutex: each belongs to whoever comes first, and is taken from that one soon after.

use crate::frame::{Hasty, Scene, TURNS, Worker, storms};
use lockstead_core::{Off, Plain, RawBiased};
use lockstead_linux::{Cell, Linux};
use std::cell::UnsafeCell;
use std::panic::Location;

/// Turns that a worker makes with one lock, before it goes on to the next one.
const EACH: usize = 4;

struct Own {
    lock: RawBiased<Linux, Off, Hasty>,
    count: Cell<u64>,
}

struct Biased(Vec<UnsafeCell<Own>>);

// SAFETY: `still` alone has the locks to itself, while nobody makes a turn.
unsafe impl Sync for Biased {}

impl Biased {
    fn new() -> Self {
        let own = || Own { lock: RawBiased::new(), count: Cell::new(0) };
        Biased((0..TURNS.div_ceil(EACH)).map(|_| own().into()).collect())
    }
}

impl Scene for Biased {
    fn turn(&self, worker: &mut Worker<'_>) {
        let here = Location::caller();
        // SAFETY: nobody has the locks to itself while turns are made.
        let Own { lock, count } = unsafe { &*self.0[worker.turn / EACH].get() };
        // So that the owner is somewhere else on its way each time.
        (0..worker.dice.below(200)).for_each(|_| std::hint::spin_loop());
        let tried = worker.dice.one_in(16).then(|| lock.try_lock(here)).flatten();
        let hold = match tried {
            Some(hold) => hold,
            None => worker.insist(|how| lock.lock_lazily(|| *how, 0, here)),
        };
        // SAFETY: this thread holds the lock, which keeps all others out.
        count.with_mut(|count| unsafe { count.write_volatile(count.read_volatile() + 1) });
        worker.linger();
        // SAFETY: this thread has taken the lock above by `hold`, and only the holder releases it.
        unsafe { lock.unlock(hold) };
    }

    fn still(&self, turns: u64) {
        let mut sum = 0;
        for own in &self.0 {
            // SAFETY: nobody makes a turn, so that this thread has the lock to itself.
            let own = unsafe { &mut *own.get() };
            assert!(!own.lock.is_locked());
            own.lock.rebias();
            // SAFETY: nobody makes a turn, so that nobody writes the count.
            sum += own.count.with(|count| unsafe { count.read() });
        }
        assert_eq!(sum, turns);
    }

    fn describe(&self) -> String {
        // SAFETY: nobody has the locks to itself while turns are made, and nothing moves.
        let held = self.0.iter().map(|own| unsafe { &(*own.get()).lock }).find(|it| it.is_locked());
        format!("{:?}", held.map(|lock| (lock.belongs_to(), lock.holder())))
    }
}

storms!("biased mutex", Biased::new(), 40_000, 30_000_000);
