//! The mutex of parking_lot: a byte, and a queue in a table of the process.
//!
//! # Role
//! Two bits: held, and somebody is parked. A waiter spins some turns, longer each time, and gives way
//! some times; then it parks in a bucket of a table, which has a lock of its own, and sleeps on a word of
//! its own. The releaser takes the first out of the bucket and wakes it. Newcomers may be
//! ahead, but every half a millisecond on average the mutex is handed to whoever is woken.
//!
//! # Source
//! parking_lot 0.12's documentation (eventual fairness, adaptive spinning), after WebKit's locks. Numbers:
//! its ten turns, three of which spin, and its millisecond.
//!
//! # Not modelled
//! The bucket's lock spins here for as long as it takes; the real one sleeps after some turns. Each
//! mutex has a bucket to itself.

use super::list::ListLock;
use super::plain::PlainLock;
use crate::engine::calls::{at, chance, give_way, me};
use crate::engine::task::Activity;
use crate::engine::words::{Sim, U32, U64};
use crate::engine::world::{SimWorld, with};
use lockstead_core::{Platform, WaitBounds};

const HELD: u32 = 1;
const PARKED: u32 = 2;

/// The turns of a spinner, the first of which spin and the others give way.
const TURNS: (u32, u32) = (3, 10);

/// The most nanoseconds between two hand-overs that nobody can come before.
const FAIR: f64 = 1e6;

/// What a parked task is told: nothing yet, to try, that it has the mutex.
const ASLEEP: u32 = 0;
const TRY: u32 = 1;
const YOURS: u32 = 2;

/// The mutex, and on a line of its own its bucket.
pub(super) struct LotMutex {
    word: U32,
    bucket: &'static Bucket,
}

/// A bucket of the table.
#[repr(C)]
struct Bucket {
    lock: ListLock,
    /// The head of the queue.
    head: U64,
    /// The time in nanoseconds from which on the next hand-over is a fair one.
    fair_at: U64,
    /// The number of the queue itself.
    queue: usize,
}

fn parker(task: usize) -> &'static U32 {
    with(|w| &w.nodes[task].locked)
}

impl LotMutex {
    pub(super) fn place(w: &mut SimWorld) -> &'static Self {
        w.lists.push(std::collections::VecDeque::new());
        let bucket = w.arena.place(Bucket {
            lock: ListLock::byte(),
            head: U64::ZERO,
            fair_at: U64::ZERO,
            queue: w.lists.len() - 1,
        });
        w.arena.place(LotMutex { word: U32::ZERO, bucket })
    }

    /// Parks, unless the mutex has changed. Returns true if it was handed over.
    fn park(&self) -> bool {
        let (bucket, me) = (self.bucket, me());
        parker(me).write(ASLEEP);
        bucket.lock.lock();
        if self.word.read() != HELD | PARKED {
            bucket.lock.unlock();
            return false;
        }
        bucket.head.write(me as u64);
        with(|w| w.lists[bucket.queue].push_back(me as u32));
        bucket.lock.unlock();
        while parker(me).read() == ASLEEP {
            Sim::wait32(parker(me), ASLEEP, &WaitBounds::FOREVER);
        }
        parker(me).read() == YOURS
    }

    fn wait(&self) {
        let mut turns = 0;
        loop {
            let seen = self.word.read();
            if seen & HELD == 0 {
                if self.word.replace(seen, seen | HELD).is_ok() {
                    return;
                }
            } else if seen & PARKED == 0 && turns < TURNS.1 {
                turns += 1;
                if turns <= TURNS.0 {
                    Sim::relax_for(1 << turns);
                } else {
                    give_way();
                }
            } else if seen & PARKED != 0 || self.word.replace(seen, seen | PARKED).is_ok() {
                if self.park() {
                    return;
                }
                turns = 0;
            }
        }
    }

    fn wake(&self) {
        let bucket = self.bucket;
        bucket.lock.lock();
        bucket.head.read();
        let (first, more) = with(|w| {
            let queue = &mut w.lists[bucket.queue];
            (queue.pop_front(), !queue.is_empty())
        });
        let left = if more { PARKED } else { 0 };
        let Some(first) = first else {
            self.word.write(left);
            bucket.lock.unlock();
            return;
        };
        let now = Sim::now().0;
        let fair = now > bucket.fair_at.read();
        if fair {
            bucket.fair_at.write(now + (chance() * FAIR) as u64);
        }
        self.word.write(if fair { HELD | left } else { left });
        let word = parker(first as usize);
        word.write(if fair { YOURS } else { TRY });
        bucket.lock.unlock();
        Sim::wake(Sim::address32(word), 1);
    }
}

impl PlainLock for LotMutex {
    fn lock(&self) {
        if self.word.replace(0, HELD).is_err() {
            at(Activity::SlowPath, || self.wait());
        }
    }

    fn unlock(&self) {
        if self.word.replace(HELD, 0).is_err() {
            at(Activity::SlowPath, || self.wake());
        }
    }
}
