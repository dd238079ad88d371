//! The wait/wound mutex under many threads that take random subsets of the locks in
//! random order.

use crate::watchdog::Watchdog;
use lockstead::ww::{Class, Context, Error, WwGuard, WwMutex, lock_all};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LOCKS: usize = 7;
const THREADS: usize = 8;
const TIME: Duration = Duration::from_millis(1500);
const EACH: i64 = 1000;

/// Xorshift: reproducible, and no dependency.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }

    /// Returns some of the locks, at least two, in any order.
    fn subset<'a>(&mut self, locks: &'a [WwMutex<i64>]) -> Vec<&'a WwMutex<i64>> {
        let mut all: Vec<_> = locks.iter().collect();
        for last in (1..all.len()).rev() {
            let other = self.below(last + 1);
            all.swap(last, other);
        }
        let count = 2 + self.below(locks.len() - 1);
        all.truncate(count);
        all
    }
}

/// Moves money around between accounts that are all held.
fn work(guards: &mut [WwGuard<'_, i64>], dice: &mut Dice) {
    let count = guards.len();
    let from = dice.below(count);
    let to = (from + 1 + dice.below(count - 1)) % count;
    let amount = dice.below(50) as i64;
    *guards[from] -= amount;
    if dice.below(64) == 0 {
        thread::yield_now();
    }
    *guards[to] += amount;
}

/// Backs off by hand: takes the locks in the order of the list, again and again, the one that it
/// was refused first. With `tries` it also tries before it waits.
fn by_hand<'a>(
    context: &'a Context,
    locks: &[&'a WwMutex<i64>],
    tries: bool,
    refusals: &AtomicU64,
) -> Vec<WwGuard<'a, i64>> {
    let mut refused: Option<usize> = None;
    'again: loop {
        let mut guards = Vec::new();
        if let Some(index) = refused {
            guards.push(locks[index].lock_slow(context));
        }
        for (index, lock) in locks.iter().enumerate() {
            if Some(index) == refused {
                assert_eq!(lock.lock(context).map(drop), Err(Error::Already));
                continue;
            }
            if tries && let Some(guard) = lock.try_lock(context) {
                guards.push(guard);
                continue;
            }
            match lock.lock(context) {
                Ok(guard) => guards.push(guard),
                Err(Error::Deadlock) => {
                    refusals.fetch_add(1, Ordering::Relaxed);
                    refused = Some(index);
                    continue 'again;
                }
                Err(other) => panic!("{other}"),
            }
        }
        return guards;
    }
}

/// Has all threads take subsets for a while; each must have got its locks many times, and no money
/// is lost. Returns how often a context was refused.
fn storm(class: &'static Class, name: &'static str, alone: bool) -> u64 {
    let _watchdog = Watchdog::new(name);
    let locks: Vec<_> = (0..LOCKS).map(|_| WwMutex::new(class, EACH)).collect();
    let over = AtomicBool::new(false);
    let refusals = AtomicU64::new(0);
    let done: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (locks, over, refusals) = (&locks, &over, &refusals);
                scope.spawn(move || {
                    let mut dice = Dice(0x9e37_79b9 * (number as u64 + 1));
                    let mut rounds = 0;
                    while !over.load(Ordering::Relaxed) {
                        if alone && number == 0 {
                            // Without a context, one lock at a time.
                            let lock = &locks[dice.below(LOCKS)];
                            *lock.lock_alone() += 0;
                            rounds += 1;
                            continue;
                        }
                        let wanted = dice.subset(locks);
                        let context = class.begin();
                        let mut guards = if number % 2 == 0 {
                            lock_all(&context, &wanted).expect("no lock occurs twice")
                        } else {
                            by_hand(&context, &wanted, number % 4 == 1, refusals)
                        };
                        context.done();
                        assert_eq!(context.acquired() as usize, guards.len());
                        work(&mut guards, &mut dice);
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        let began = Instant::now();
        while began.elapsed() < TIME {
            thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
    });
    println!("{name}: rounds {done:?}, {} refusals by hand", refusals.load(Ordering::Relaxed));
    assert!(done.iter().all(|&rounds| rounds > 0), "a thread got nowhere: {done:?}");
    assert!(locks.iter().all(|lock| !lock.is_locked()));
    let total: i64 = locks.into_iter().map(WwMutex::into_inner).sum();
    assert_eq!(total, EACH * LOCKS as i64, "money was lost");
    refusals.into_inner()
}

#[test]
fn random_subsets_wait_die() {
    static CLASS: Class = Class::wait_die("storm");
    let refusals = storm(&CLASS, "random_subsets_wait_die", false);
    assert!(refusals > 0, "no context had to back off: the test shows nothing");
}

#[test]
fn random_subsets_wound_wait() {
    static CLASS: Class = Class::wound_wait("storm");
    let refusals = storm(&CLASS, "random_subsets_wound_wait", false);
    assert!(refusals > 0, "no context had to back off: the test shows nothing");
}

#[test]
fn random_subsets_beside_threads_without_contexts() {
    static DIE: Class = Class::wait_die("storm");
    static WOUND: Class = Class::wound_wait("storm");
    storm(&DIE, "random_subsets_beside_threads_without_contexts, wait-die", true);
    storm(&WOUND, "random_subsets_beside_threads_without_contexts, wound-wait", true);
}
