//! The simulated instruction path against the native one: the same locks take the same
//! number of atomic steps in both worlds.

use lockstead_sim::{
    Machine, RunSettings, SimLockName, StepKind, TraceStep, UseKind, WorkUse, Workload, run_traced,
};

/// Loads, stores and exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Steps {
    loads: u64,
    stores: u64,
    exchanges: u64,
}

/// Returns one lock, with sections of so many microseconds and so much computing between.
fn workload(section: f64, compute: f64) -> Workload {
    Workload {
        name: "counted".into(),
        about: String::new(),
        tasks: 1,
        kernel: false,
        compute,
        away: 0.0,
        rounds: 1,
        variation: 0.0,
        warm_up: 0.0,
        length: 8.0,
        locks: vec![WorkUse {
            name: "lock".into(),
            kind: UseKind::Mutex,
            many: 1,
            burst: 1.0,
            section,
            gap: 0.0,
            lines: 0,
            writes: 0.0,
            write_section: None,
        }],
        tokens: Vec::new(),
        classes: Vec::new(),
    }
}

/// Returns the steps of a simulation on a machine with or without restartable releases.
fn simulated(
    lock: SimLockName,
    tasks: usize,
    workload: &Workload,
    restart: bool,
) -> Vec<TraceStep> {
    let mut machine = Machine::bundled("vm-2").expect("built in");
    assert!(machine.change("restart", |_| if restart { 5_000.0 } else { 0.0 }));
    run_traced(
        &machine,
        lock,
        workload,
        tasks,
        RunSettings { seed: 1, trace: true, ..RunSettings::default() },
    )
    .1
}

/// Returns the atomic steps of one task in each stretch from a step of one kind to the next of
/// another.
fn stretches(steps: &[TraceStep], task: u32, from: StepKind, to: StepKind) -> Vec<Steps> {
    let mut found = Vec::new();
    let mut open = None;
    for step in steps.iter().filter(|step| step.task == task) {
        if step.kind == to {
            found.extend(open.take());
        }
        if step.kind == from {
            open = Some(Steps::default());
        }
        let Some(sum) = &mut open else { continue };
        match step.kind {
            StepKind::Load => sum.loads += 1,
            StepKind::Store => sum.stores += 1,
            StepKind::Update => sum.exchanges += 1,
            _ => {}
        }
    }
    found
}

/// Returns what each of many undisputed pairs takes in the simulator: all the same.
fn simulated_pair(lock: SimLockName, restart: bool) -> Steps {
    let steps = simulated(lock, 1, &workload(1.0, 1.0), restart);
    let (mut takes, mut gives) = (
        stretches(&steps, 0, StepKind::Ask, StepKind::Take),
        stretches(&steps, 0, StepKind::Release, StepKind::Ask),
    );
    takes.dedup();
    gives.dedup();
    assert_eq!((takes.len(), gives.len()), (1, 1), "{takes:?} {gives:?}");
    Steps {
        loads: takes[0].loads + gives[0].loads,
        stores: takes[0].stores + gives[0].stores,
        exchanges: takes[0].exchanges + gives[0].exchanges,
    }
}

/// The real platform, counted instruction by instruction.
#[cfg(target_arch = "x86_64")]
mod stepped {
    use super::{SimLockName, simulated_pair};
    use core::panic::Location;
    use lockstead_core::{ClassicSemaphore, Platform, RawMutex, TunedSemaphore};
    use lockstead_instructions::{NotCounted, count_locked};
    use lockstead_linux::Linux;

    /// Counts the steps of `f`. Returns `None`, with a message, where tracing is forbidden.
    fn count(what: &str, f: impl Fn()) -> Option<u64> {
        // From here on the C library knows of a second thread, and exchanges lock.
        std::thread::spawn(|| ()).join().expect("it does nothing");
        Linux::me();
        match count_locked(f) {
            Ok(count) => Some(count as u64),
            Err(why @ NotCounted::Refused) => {
                println!("{what}: skipped: {why}");
                None
            }
            Err(why) => panic!("{what}: {why}"),
        }
    }

    /// Tells whether releases can be restarted here.
    fn restart() -> bool {
        Linux::me();
        !lockstead_linux::sections().is_null()
    }

    #[test]
    fn a_pair_of_the_mutex_locks_as_often_as_simulated() {
        let lock = RawMutex::<Linux>::new();
        let pair = || {
            lock.lock(Location::caller()).expect("not held by this thread");
            // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
            unsafe { lock.unlock() };
        };
        let simulated = simulated_pair(SimLockName::Lockstead, restart()).exchanges;
        if let Some(native) = count("mutex", pair) {
            assert_eq!(native, simulated);
        }
        let tried = || {
            assert!(lock.try_lock(Location::caller()));
            // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
            unsafe { lock.unlock() };
        };
        if let Some(native) = count("try_lock", tried) {
            assert_eq!(native, simulated, "a try that succeeds is the same path");
        }
    }

    #[test]
    fn a_pair_of_each_semaphore_locks_as_often_as_simulated() {
        let classic = ClassicSemaphore::<Linux>::new(1).expect("one permit");
        let tuned = TunedSemaphore::<Linux>::new(1).expect("one permit");
        let of_classic = || {
            classic.down(Location::caller());
            classic.up().expect("the permit taken above");
        };
        let of_tuned = || {
            tuned.down(Location::caller());
            tuned.up().expect("the permit taken above");
        };
        if let Some(native) = count("semaphore-classic", of_classic) {
            assert_eq!(native, simulated_pair(SimLockName::SemaphoreClassic, restart()).exchanges);
        }
        if let Some(native) = count("semaphore-tuned", of_tuned) {
            assert_eq!(native, simulated_pair(SimLockName::SemaphoreTuned, restart()).exchanges);
        }
    }
}

/// The real platform behind atomics that count: for what two threads do.
mod counted {
    use super::Steps;
    use core::cell::Cell as Own;
    use core::sync::atomic::AtomicU32;
    use lockstead_core::{
        Address, Atomic32, Atomic64, Halves, Nanos, OnCpu, Ordering, Platform, Slot, TableEntry,
        WaitBounds, WaitOutcome,
    };
    use lockstead_linux::Linux;

    thread_local! {
        static STEPS: Own<Steps> = const {
            Own::new(Steps { loads: 0, stores: 0, exchanges: 0 })
        };
        static ME: Own<u32> = const { Own::new(0) };
        /// How the latest sleep ended, and how many there were.
        static SLEPT: Own<(u32, Option<WaitOutcome>)> = const { Own::new((0, None)) };
    }

    /// Sleeps that have begun.
    pub(super) static ASLEEP: AtomicU32 = AtomicU32::new(0);

    static SLOTS: [TableEntry<Counted>; 3] = [const { TableEntry::<Counted>::VACANT }; 3];

    /// Makes the calling thread number `me` from here on.
    pub(super) fn sit(me: u32) {
        ME.set(me);
        SLEPT.set((0, None));
    }

    /// Returns the calling thread's steps during `f`.
    pub(super) fn during(f: impl FnOnce()) -> Steps {
        STEPS.set(Steps::default());
        f();
        STEPS.get()
    }

    /// Tells whether the calling thread slept once, until it was woken.
    pub(super) fn slept_once() -> bool {
        SLEPT.get() == (1, Some(WaitOutcome::Woken))
    }

    fn add(what: fn(&mut Steps) -> &mut u64) {
        let mut steps = STEPS.get();
        *what(&mut steps) += 1;
        STEPS.set(steps);
    }
    fn load() {
        add(|steps| &mut steps.loads);
    }
    fn store() {
        add(|steps| &mut steps.stores);
    }
    fn exchange() {
        add(|steps| &mut steps.exchanges);
    }

    pub(super) struct Counted;
    pub(super) struct W32(lockstead_linux::U32);
    pub(super) struct W64(lockstead_linux::U64);

    impl Atomic32 for W32 {
        const ZERO: Self = W32(lockstead_linux::U32::new(0));
        fn load(&self, order: Ordering) -> u32 {
            load();
            self.0.load(order)
        }
        fn store(&self, value: u32, order: Ordering) {
            store();
            self.0.store(value, order);
        }
        fn swap(&self, value: u32, order: Ordering) -> u32 {
            exchange();
            self.0.swap(value, order)
        }
        fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            exchange();
            self.0.fetch_add(value, order)
        }
        fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
            exchange();
            self.0.fetch_sub(value, order)
        }
        fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
            exchange();
            self.0.fetch_or(value, order)
        }
        fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
            exchange();
            self.0.fetch_and(value, order)
        }
        fn compare_exchange(
            &self,
            current: u32,
            new: u32,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u32, u32> {
            exchange();
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    impl Atomic64 for W64 {
        const ZERO: Self = W64(lockstead_linux::U64::new(0));
        fn load(&self, order: Ordering) -> u64 {
            load();
            self.0.load(order)
        }
        fn store(&self, value: u64, order: Ordering) {
            store();
            self.0.store(value, order);
        }
        fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            exchange();
            self.0.fetch_add(value, order)
        }
        fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
            exchange();
            self.0.fetch_sub(value, order)
        }
        fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            exchange();
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    /// A release here is a look and an exchange: as simulated without restartable ones.
    impl Halves for W64 {
        fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
            exchange();
            self.0.compare_exchange_low(current, new, order)
        }
        fn fetch_and_low(&self, mask: u32, order: Ordering) -> u32 {
            exchange();
            self.0.fetch_and_low(mask, order)
        }
    }

    fn how<'a>(how: &WaitBounds<'_, Counted>) -> WaitBounds<'a, Linux> {
        assert!(how.cancel.is_none() && !how.interruptible);
        WaitBounds { deadline: how.deadline, cancel: None, interruptible: false }
    }

    fn slept(outcome: WaitOutcome) -> WaitOutcome {
        SLEPT.set((SLEPT.get().0 + 1, Some(outcome)));
        outcome
    }

    impl Platform for Counted {
        type U32 = W32;
        type U64 = W64;
        type Cell<T> = lockstead_linux::Cell<T>;

        fn me_or_zero() -> u32 {
            ME.get()
        }
        fn me() -> Slot {
            Slot::new(ME.get()).expect("a slot")
        }
        fn participant(slot: Slot) -> &'static TableEntry<Self> {
            &SLOTS[slot.get() as usize]
        }
        fn relax() {
            Linux::relax();
        }
        fn now() -> Nanos {
            Linux::now()
        }
        fn processors() -> u32 {
            2
        }
        fn on_cpu(_: Slot) -> OnCpu {
            OnCpu::Unknown
        }
        fn wait32(word: &W32, expected: u32, wait: &WaitBounds<'_, Self>) -> WaitOutcome {
            ASLEEP.fetch_add(1, Ordering::SeqCst);
            slept(Linux::wait32(&word.0, expected, &how(wait)))
        }
        fn wait_low(word: &W64, expected: u32, wait: &WaitBounds<'_, Self>) -> WaitOutcome {
            ASLEEP.fetch_add(1, Ordering::SeqCst);
            slept(Linux::wait_low(&word.0, expected, &how(wait)))
        }
        fn wait_handoff(word: &W64, expected: u32, wait: &WaitBounds<'_, Self>) -> WaitOutcome {
            slept(Linux::wait_handoff(&word.0, expected, &how(wait)))
        }
        fn address32(word: &W32) -> Address {
            Linux::address32(&word.0)
        }
        fn address_low(word: &W64) -> Address {
            Linux::address_low(&word.0)
        }
        fn wake(address: Address, count: u32) -> u32 {
            Linux::wake(address, count)
        }
        fn wake_handoff(address: Address) {
            Linux::wake_handoff(address);
        }
    }
}

mod handed_over {
    use super::counted::{self, Counted};
    use super::{SimLockName, Steps, simulated, stretches, workload};
    use core::panic::Location;
    use core::sync::atomic::Ordering::SeqCst;
    use lockstead_core::policy::{Spinning, Without};
    use lockstead_core::{ClassicSemaphore, Off, RawMutex};
    use lockstead_sim::StepKind;
    use std::time::{Duration, Instant};

    /// The lock is held so long; less than the bound on waiting.
    const HELD: Duration = Duration::from_millis(1);
    /// A hand-over that took longer was disturbed.
    const MOST: Duration = Duration::from_millis(2);

    /// Counts the steps of a release and of the acquisition by a thread that slept for it,
    /// natively. Each attempt has a lock of its own, for one that was fought over before takes
    /// other steps.
    fn native<L: Sync>(
        new: impl Fn() -> L,
        lock: impl Fn(&L) + Sync,
        unlock: impl Fn(&L) + Sync,
    ) -> (Steps, Steps) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let fresh = new();
            counted::ASLEEP.store(0, SeqCst);
            counted::sit(1);
            lock(&fresh);
            let (release, (acquisition, undisturbed)) = std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    counted::sit(2);
                    let began = Instant::now();
                    let steps = counted::during(|| lock(&fresh));
                    let fine = counted::slept_once() && began.elapsed() < MOST;
                    unlock(&fresh);
                    (steps, fine)
                });
                while counted::ASLEEP.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
                std::thread::sleep(HELD);
                (counted::during(|| unlock(&fresh)), other.join().expect("it gets the lock"))
            });
            if undisturbed {
                return (release, acquisition);
            }
        }
        panic!("no hand-over in a minute was undisturbed");
    }

    /// Counts the same in the simulator.
    fn simulated_handover(lock: SimLockName) -> (Steps, Steps) {
        // The two ask at about the same time; the second one sleeps.
        let steps = simulated(lock, 2, &workload(1_000.0, 1_000.0), false);
        let sleeper = steps.iter().find(|step| step.kind == StepKind::Sleep).expect("one sleeps");
        let (sleeper, holder) = (sleeper.task, 1 - sleeper.task);
        let before = steps.iter().position(|step| step.kind == StepKind::Sleep).expect("above");
        let taken = stretches(&steps, sleeper, StepKind::Ask, StepKind::Take);
        let after: Vec<_> = steps[before..].to_vec();
        let given = stretches(&after, holder, StepKind::Release, StepKind::Ask);
        (given[0], taken[0])
    }

    /// The two tests share the slots and the counter of sleeps.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn a_mutex_that_is_handed_to_a_sleeper_takes_the_steps_that_are_simulated() {
        let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        type Mutex = RawMutex<Counted, Off, Without<Spinning>>;
        let lock = |mutex: &Mutex| mutex.lock(Location::caller()).expect("held by the other one");
        // SAFETY: by PEER-HELD the test calls this on the thread that holds the lock.
        let unlock = |mutex: &Mutex| unsafe { mutex.unlock() };
        assert_eq!(
            native(Mutex::new, lock, unlock),
            simulated_handover(SimLockName::LocksteadSleeping)
        );
    }

    #[test]
    fn a_semaphore_that_is_handed_to_a_sleeper_takes_the_steps_that_are_simulated() {
        let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        type Semaphore = ClassicSemaphore<Counted>;
        let new = || Semaphore::new(1).expect("one permit");
        let down = |semaphore: &Semaphore| semaphore.down(Location::caller());
        let up = |semaphore: &Semaphore| semaphore.up().expect("a permit that was taken");
        assert_eq!(native(new, down, up), simulated_handover(SimLockName::SemaphoreClassic));
    }
}
