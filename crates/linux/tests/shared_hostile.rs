//! A peer writes anything over the slots of a segment, links of robust lists included,
//! while threads come, lock, leave and end there: nobody crashes, nobody hangs.

mod common;
mod segment;

use common::{Watchdog, in_threads};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_core::robust::{Life, RobustMachine};
use lockstead_linux::Linux;
use lockstead_linux::shared::{self, Busy, JoinError};
use segment::{Child, SLOTS, Segment};
use std::time::{Duration, Instant};

/// A number that looks random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Returns the words of all slots.
fn words(segment: &Segment) -> &'static [AtomicU64] {
    let first = core::ptr::from_ref(segment.record(0)).cast::<AtomicU64>();
    // SAFETY: the segment's slots, of 128 bytes each, made of atomics; never unmapped.
    unsafe { core::slice::from_raw_parts(first, SLOTS * 16) }
}

fn scribble(segment: &Segment, end: Instant, seed: u64) {
    let (words, mut random) = (words(segment), Random(seed));
    while Instant::now() < end {
        for _ in 0..8 {
            let at = random.below(words.len() as u64) as usize;
            let value = match random.below(6) {
                0 => 0,
                1 => random.next(),
                2 => random.next() & 0xffff,
                // What looks like a life, like an address, like what stands elsewhere.
                3 => random.below(4) << 32 | 1 << 31 | random.below(70_000),
                4 => core::ptr::from_ref(words).addr() as u64 + random.below(1 << 20),
                _ => words[random.below(words.len() as u64) as usize].load(Relaxed),
            };
            words[at].store(value, Relaxed);
        }
        std::thread::sleep(Duration::from_micros(20));
    }
}

fn take_part(segment: &Segment, end: Instant, seed: u64) {
    let mut random = Random(seed);
    while Instant::now() < end {
        match shared::join(segment.address()) {
            Ok(member) => {
                assert!(member.identity().is_some());
                segment.word(0).fetch_add(1, Relaxed);
            }
            // The slots look taken, or worn out.
            Err(error) => {
                assert!(matches!(error, JoinError::Full | JoinError::WornOut), "{error}");
                words(segment)[16 * random.below(SLOTS as u64) as usize].store(0, Relaxed);
                continue;
            }
        }
        let lock = random.below(4) as usize;
        if segment.lock_within(lock, Duration::from_micros(random.below(300))).is_ok()
            && random.below(64) != 0
        {
            segment.unlock(lock);
        }
        if random.below(4) == 0 {
            let left = shared::leave(segment.handle());
            assert!(matches!(left, Ok(()) | Err(Busy::Holds)), "{left:?}");
        }
        if random.below(8) == 0 {
            let slot = random.below(SLOTS as u64 + 5) as u32;
            // One that is told may be out of date, or nonsense.
            let life = match random.below(2) {
                0 if slot < SLOTS as u32 => segment.record(slot).current(),
                _ => Life(random.below(u64::MAX)),
            };
            let _ = Linux::has_ended(segment.handle().attached(), slot, life);
        }
        // Locks that are not recoverable any more would end the test early.
        if random.below(16) == 0 {
            let first = core::ptr::from_ref(segment.lock(lock)).cast::<AtomicU64>();
            // SAFETY: the lock begins with eight bytes of atomics, and the segment lives.
            unsafe { &*first }.store(0, Relaxed);
        }
    }
}

#[test]
fn nothing_written_over_the_slots_crashes_or_stops_anybody() {
    let _watchdog = Watchdog::new(60);
    for exclusive in [false, true] {
        let segment = Segment::with(exclusive);
        let end = Instant::now() + Duration::from_secs(2);
        let scribblers = [3, 5].map(|seed| Child::new(|| scribble(&segment, end, seed)));
        let mut seed = 7;
        while Instant::now() < end {
            let soon = Instant::now() + Duration::from_millis(40);
            let later = soon + Duration::from_millis(40);
            let children: Vec<_> = (0..3)
                .map(|_| {
                    seed += 2;
                    Child::new(|| {
                        take_part(&segment, soon, seed);
                        // Threads that end, with locks and without.
                        in_threads(2, &|| take_part(&segment, later, seed + 100));
                    })
                })
                .collect();
            for child in children {
                assert_eq!(child.wait(), 0, "exclusive: {exclusive}");
            }
        }
        for scribbler in scribblers {
            assert_eq!(scribbler.wait(), 0);
        }
        assert!(segment.word(0).load(Relaxed) > 1000, "hardly anybody got in");
    }
}
