//! Once: all workers come to the same one at about the same time, and some initialisers fail.

use crate::frame::{Scene, TURNS, Worker, storms};
use lockstead_core::{LockError, OnceError, RawOnce};
use lockstead_linux::Linux;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

struct Done {
    once: RawOnce<Linux>,
    /// Initialisers that ended well. Not ordered by itself: the once must do that.
    ended: AtomicU32,
    running: AtomicU32,
}

struct Once(std::cell::UnsafeCell<Vec<Done>>);

// SAFETY: the list is replaced by `still` alone, while nobody makes a turn.
unsafe impl Sync for Once {}

impl Once {
    fn new() -> Self {
        Once(Self::fresh().into())
    }

    fn fresh() -> Vec<Done> {
        let none = || AtomicU32::new(0);
        let done = || Done { once: RawOnce::new(), ended: none(), running: none() };
        (0..TURNS).map(|_| done()).collect()
    }
}

impl Scene for Once {
    fn turn(&self, worker: &mut Worker<'_>) {
        // SAFETY: the list is not replaced while turns are made.
        let list = unsafe { &*self.0.get() };
        let done = &list[worker.turn];
        loop {
            let force = worker.dice.one_in(2);
            match done.once.begin(force, &worker.bounds()) {
                Ok(None) => break,
                Ok(Some(turn)) => {
                    assert_eq!(done.running.fetch_add(1, Relaxed), 0, "two initialisers");
                    worker.linger();
                    done.running.fetch_sub(1, Relaxed);
                    if worker.dice.one_in(4) {
                        // As a panic does.
                        drop(turn);
                        continue;
                    }
                    done.ended.fetch_add(1, Relaxed);
                    turn.complete();
                    break;
                }
                Err(OnceError::Poisoned) => assert!(!force, "it was asked to run all the same"),
                Err(OnceError::NotAwaited(error)) => {
                    assert_ne!(error, LockError::Recursive);
                    worker.gave_up(error);
                }
            }
        }
        assert!(done.once.is_completed());
        assert_eq!(done.ended.load(Relaxed), 1, "it is done, once");
    }

    fn still(&self, _turns: u64) {
        // SAFETY: nobody makes a turn, so that nobody has a reference into the list.
        let list = unsafe { &mut *self.0.get() };
        assert!(list.iter().all(|done| done.ended.load(Relaxed) == 1));
        *list = Self::fresh();
    }

    fn describe(&self) -> String {
        // SAFETY: the list is not replaced while turns are made, and nothing moves.
        let list = unsafe { &*self.0.get() };
        format!("{:?}", list.iter().find(|done| !done.once.is_completed()).map(|done| &done.once))
    }
}

storms!("once", Once::new(), 100_000, 50_000_000);
