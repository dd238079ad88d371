//! Off means free: the mutex's pair in instructions, counted.

use core::panic::Location;
use lockstead_core::{Atomic64, Halves, Hooks, MAX_SLOTS, Ordering, Platform, RawMutex};
use lockstead_instructions::{NotCounted, count_instructions};
use lockstead_linux::{Linux, U64};

/// Counts the instructions of `f`. Returns `None`, with a message, where tracing is forbidden.
fn count(what: &str, f: impl Fn()) -> Option<f64> {
    match count_instructions(f) {
        Ok(count) => {
            println!("{what}: {count} instructions");
            Some(count)
        }
        Err(why @ NotCounted::Refused) => {
            println!("{what}: skipped: {why}");
            None
        }
        Err(why) => panic!("{what}: {why}"),
    }
}

#[inline(always)]
fn pair<H: Hooks>(lock: &RawMutex<Linux, H>) {
    lock.lock(Location::caller()).expect("not held by this thread");
    // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
    unsafe { lock.unlock() };
}

/// What the mutex's fast paths would be if hooks had never been thought of.
struct Hookless(U64);

impl Hookless {
    #[inline(always)]
    fn pair(&self) {
        let me = Linux::me_or_zero();
        if me == 0 || !self.0.compare_exchange_low(0, me, Ordering::Acquire) {
            self.slow();
        }
        if !self.0.erase_low(MAX_SLOTS, Ordering::Release) {
            self.slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn slow(&self) {
        unreachable!("nobody else takes it, and the thread has joined: {:?}", self.0)
    }
}

#[test]
fn a_pair_takes_at_most_eighteen_instructions() {
    let lock = RawMutex::<Linux>::new();
    assert!(count("lock + unlock", || pair(&lock)).is_none_or(|count| count <= 18.0));
    assert!(!lock.is_locked());
}

#[test]
fn hooks_that_are_off_add_no_instruction() {
    // The thread joins with its first lock, not in the counted code.
    Linux::me();
    let (lock, bare) = (RawMutex::<Linux>::new(), Hookless(U64::ZERO));
    let with = count("with hooks off", || pair(&lock));
    let without = count("without hooks", || bare.pair());
    if let (Some(with), Some(without)) = (with, without) {
        assert!(with <= without, "{with} instructions with hooks off, {without} without hooks");
    }
}

/// Counts as people use it: the checks that a feature can bring are not there.
#[test]
fn a_mutex_that_nobody_checks_adds_no_instruction() {
    Linux::me();
    let (mutex, bare) = (lockstead::Mutex::new(()), Hookless(U64::ZERO));
    let with = count("the crate's mutex", || drop(mutex.lock()));
    let without = count("without hooks", || bare.pair());
    if let (Some(with), Some(without)) = (with, without) {
        assert!(with <= without, "{with} instructions in the crate, {without} without hooks");
    }
}

/// The counter sees hooks: a watcher that does something costs something.
#[test]
fn hooks_that_are_on_are_counted() {
    struct Watcher;
    impl Hooks for Watcher {
        type Waits = lockstead_core::Standard;
        type State = core::sync::atomic::AtomicU32;
        #[allow(
            clippy::declare_interior_mutable_const,
            reason = "a value to begin with, not a place"
        )]
        const NEW: Self::State = core::sync::atomic::AtomicU32::new(0);
        fn releasing(state: &Self::State, _lock: lockstead_core::LockId) {
            state.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (off, on) = (RawMutex::<Linux>::new(), RawMutex::<Linux, Watcher>::new());
    let off = count("with hooks off", || pair(&off));
    let on = count("with hooks on", || pair(&on));
    if let (Some(off), Some(on)) = (off, on) {
        assert!(on > off, "{on} instructions with a watcher, {off} without");
    }
}
