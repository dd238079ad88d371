//! What all storms share: workers with dice, one that disturbs them, and a watchdog.
//!
//! Workers go in bursts and meet after each. A wake-up that is lost in the middle of a storm is
//! soon made up for by the next thread that comes; at the end of a burst nobody comes any more.

use lockstead_core::{Atomic32, LockError, Ordering, Platform, Policy, Standard, WaitBounds};
use lockstead_linux::Linux;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The shipped policy with a bound of 10 µs, however many wait: hand-off waiters come and go at
/// nearly every release.
pub(crate) struct Hasty;

impl Policy for Hasty {
    type Base = Standard;
    const BOUND: u64 = 10_000;
    const SHARE: u64 = 0;
}

/// The shipped policy without a bound and without sleeps by a timer: nothing makes up for a wake-up
/// that is lost.
pub(crate) struct Patient;

impl Policy for Patient {
    type Base = Standard;
    const BOUND: u64 = 1 << 60;
    const BACKOFF_AFTER: u32 = 0;

    fn backs_off_refused(_processors: u32) -> bool {
        false
    }
}

/// The turns that a worker makes in a burst.
pub(crate) const TURNS: usize = 100;
/// The time without any progress after which the storm has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// A section that is longer than the bound.
const LONG: u64 = 12_000;

/// A lock of some kind, with what it guards.
pub(crate) trait Scene: Sync {
    /// Takes and releases, as the worker's dice say.
    fn turn(&self, worker: &mut Worker<'_>);

    /// Checks what must hold when `turns` have been made and nobody makes one. The caller is alone.
    fn still(&self, turns: u64);

    /// Describes the locks, for the message of a storm that does not move.
    fn describe(&self) -> String;
}

/// Xorshift: reproducible, and no dependency.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % end
    }

    pub(crate) fn one_in(&mut self, end: u64) -> bool {
        self.below(end) == 0
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// What others do with a worker.
#[repr(align(128))]
struct Seat {
    thread: AtomicI32,
    /// The number of turns that it has made.
    turns: AtomicU64,
    cancel: <Linux as Platform>::U32,
}

#[derive(Default)]
struct Tally {
    timed_out: AtomicU64,
    interrupted: AtomicU64,
    cancelled: AtomicU64,
    longest: AtomicU64,
}

/// A thread of a storm.
pub(crate) struct Worker<'a> {
    /// Which turn of the burst this is.
    pub(crate) turn: usize,
    pub(crate) dice: Dice,
    seat: &'a Seat,
    tally: &'a Tally,
}

impl<'a> Worker<'a> {
    /// Chooses what may end the next wait: usually nothing.
    pub(crate) fn bounds(&mut self) -> WaitBounds<'a, Linux> {
        let mut bounds = WaitBounds::FOREVER;
        let choice = self.dice.below(32);
        if matches!(choice, 0..4) {
            let times = [0, 3_000, 15_000, 400_000];
            let time = times[self.dice.below(times.len() as u64) as usize];
            bounds.deadline = Some(Linux::now().after(time));
        }
        if matches!(choice, 3..7) {
            self.seat.cancel.store(0, Ordering::Relaxed);
            bounds.cancel = Some(&self.seat.cancel);
        }
        bounds.interruptible = matches!(choice, 6..10);
        bounds
    }

    /// Counts a wait that something ended but the lock.
    pub(crate) fn gave_up(&self, error: LockError) {
        let count = match error {
            LockError::TimedOut => &self.tally.timed_out,
            LockError::Interrupted => &self.tally.interrupted,
            LockError::Cancelled => &self.tally.cancelled,
            LockError::Recursive | LockError::OwnerLost | LockError::TooManyReaders => {
                panic!("nobody did that: {error:?}")
            }
        };
        count.fetch_add(1, Relaxed);
    }

    /// Asks by `lock` until the lock is acquired.
    pub(crate) fn insist<R>(
        &mut self,
        mut lock: impl FnMut(&WaitBounds<'a, Linux>) -> Result<R, LockError>,
    ) -> R {
        let began = Linux::now();
        loop {
            match lock(&self.bounds()) {
                Ok(acquired) => {
                    let waited = Linux::now().since(began);
                    if waited > self.tally.longest.load(Relaxed) {
                        self.tally.longest.fetch_max(waited, Relaxed);
                    }
                    return acquired;
                }
                Err(error) => self.gave_up(error),
            }
        }
    }

    /// Makes some sections longer than the bound, and lets the others run in some.
    pub(crate) fn linger(&mut self) {
        match self.dice.below(512) {
            0..8 => {
                let began = Linux::now();
                while Linux::now().since(began) < LONG {}
            }
            8..16 => std::thread::yield_now(),
            16 => std::thread::sleep(Duration::from_micros(20)),
            _ => {}
        }
    }
}

extern "C" fn nothing(_number: libc::c_int) {}

/// Installs a handler that does nothing. Waits that signals may end end by it.
fn hear(number: libc::c_int, flags: libc::c_int) {
    // SAFETY: a zeroed action is valid, and the handler touches nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(number, &raw const action, null_mut()), 0);
    }
}

/// Ends the program with a message, past the test harness, which would keep it.
pub(crate) fn give_up(message: &str) -> ! {
    // SAFETY: the kernel reads a buffer that lives as long as the call.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
    std::process::abort();
}

/// Interrupts and cancels waits at random, until `over`, and watches that something moves.
fn disturb(seats: &[Seat], mut dice: Dice, over: &AtomicBool, about: &dyn Fn() -> String) {
    let mut last = (0, Instant::now());
    while !over.load(Relaxed) {
        std::thread::sleep(Duration::from_micros(100));
        let done = seats.iter().map(|seat| seat.turns.load(Relaxed)).sum();
        for seat in seats {
            // A signal would help a thread along that nobody has woken: every other burst is calm,
            // and so is everything when nothing moves.
            let calm = seat.turns.load(Relaxed) / TURNS as u64 % 2 == 1 || done == last.0;
            match (dice.below(4), seat.thread.load(Relaxed)) {
                (1, _) | (_, 0) => {}
                _ if calm => {}
                (0, _) => {
                    seat.cancel.store(1, Ordering::Relaxed);
                    Linux::wake(Linux::address32(&seat.cancel), u32::MAX);
                }
                (choice, thread) => {
                    let signal = if choice == 2 { libc::SIGUSR1 } else { libc::SIGUSR2 };
                    // SAFETY: the call takes numbers; a thread that has ended is an error.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
                }
            }
        }
        if done != last.0 {
            last = (done, Instant::now());
        } else if last.1.elapsed() > PATIENCE {
            give_up(&format!("nothing moves after {done} turns: {}\n", about()));
        }
    }
}

/// Returns the seed of this run: that of the environment, or the usual one.
fn seed() -> u64 {
    std::env::var("LOCKSTEAD_STRESS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(2026)
}

/// Has so many threads make `total` turns, in bursts, while another thread interrupts them.
fn storm(name: &str, scene: &dyn Scene, threads: usize, total: u64) {
    hear(libc::SIGUSR1, 0);
    hear(libc::SIGUSR2, libc::SA_RESTART);
    let seed = seed();
    let bursts = total.div_ceil((threads * TURNS) as u64);
    let seat =
        || Seat { thread: AtomicI32::new(0), turns: AtomicU64::new(0), cancel: Atomic32::ZERO };
    let seats: Vec<Seat> = (0..threads).map(|_| seat()).collect();
    let (tally, over, began) = (Tally::default(), AtomicBool::new(false), Instant::now());
    let meeting = Barrier::new(threads);
    let work = |number: usize| {
        // SAFETY: `gettid` takes no argument and touches no memory.
        seats[number].thread.store(unsafe { libc::gettid() }, Relaxed);
        let dice = Dice::new(seed + 1 + number as u64);
        let (seat, tally) = (&seats[number], &tally);
        let mut worker = Worker { turn: 0, dice, seat, tally };
        for burst in 1..=bursts {
            for turn in 0..TURNS {
                worker.turn = turn;
                scene.turn(&mut worker);
                seat.turns.fetch_add(1, Relaxed);
            }
            if meeting.wait().is_leader() {
                scene.still(burst * (threads * TURNS) as u64);
            }
            meeting.wait();
        }
        seats[number].thread.store(0, Relaxed);
    };
    let about = || format!("{name}, {threads} threads, seed {seed}: {}", scene.describe());
    std::thread::scope(|scope| {
        let dice = Dice::new(seed);
        scope.spawn(|| disturb(&seats, dice, &over, &about));
        std::thread::scope(|workers| {
            for number in 0..threads {
                let (work, about) = (&work, &about);
                workers.spawn(move || {
                    // The others would wait for this one.
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(number))) {
                        let text = panic.downcast_ref::<String>().map(String::as_str);
                        let text = text.or(panic.downcast_ref::<&str>().copied());
                        give_up(&format!("{}; {}\n", text.unwrap_or("a panic"), about()));
                    }
                });
            }
        });
        over.store(true, Relaxed);
    });
    println!(
        "{name}: seed {seed}, {threads} threads, {} turns in {:.1} s; {} timed out, {} interrupted, \
         {} cancelled; longest wait {:.1} ms",
        bursts * (threads * TURNS) as u64,
        began.elapsed().as_secs_f64(),
        tally.timed_out.load(Relaxed),
        tally.interrupted.load(Relaxed),
        tally.cancelled.load(Relaxed),
        tally.longest.load(Relaxed) as f64 / 1e6,
    );
}

/// Makes the short storms: few threads, as many as processors of a small machine, and more.
pub(crate) fn short<S: Scene>(name: &str, scene: impl Fn() -> S, total: u64) {
    for threads in [2, 4, 16] {
        storm(name, &scene(), threads, total);
    }
}

/// Makes the long storm.
pub(crate) fn long<S: Scene>(name: &str, scene: impl Fn() -> S, total: u64) {
    let asked = std::env::var("LOCKSTEAD_STRESS_OPS").ok().and_then(|text| text.parse().ok());
    storm(name, &scene(), 8, asked.unwrap_or(total));
}

/// Makes the two tests of a scene: `name, scene, turns of the short one, turns of the long one`.
macro_rules! storms {
    ($name:literal, $scene:expr, $short:literal, $long:literal) => {
        #[test]
        fn a_short_storm() {
            crate::frame::short($name, || $scene, $short);
        }

        #[test]
        #[ignore = "takes minutes"]
        fn a_long_storm() {
            crate::frame::long($name, || $scene, $long);
        }
    };
}

pub(crate) use storms;
