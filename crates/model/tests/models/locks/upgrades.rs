//! Upgradable reads, which a mutex beside the reader-writer lock makes: nobody writes between the read
//! and the upgrade, an upgrade that gives up reads on, and the last to let go may free both.
//!
//! The composition ships in `crates/lockstead/src/lock_api/upgradable.rs`, above the platform, where the
//! checker does not come. [`Upgradable`] takes the same steps on the core's locks, so a change there
//! is to be made here.

use crate::common::{Insists, Sleeps, depth};
use lockstead_core::{LockError, Nanos, Off, Policy, RawMutex, RawRwLock, WaitBounds};
use lockstead_model::Model;
use lockstead_model::{Cell, Config, Coverage, FailureKind, Ordering, Scenario, U32, freed};
use std::panic::Location;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;
const TIMED: WaitBounds<'static, Model> = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };

/// The rule of the composition that is broken, if one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Broken {
    Nothing,
    /// An upgrade gives its right up while it waits (UPGRADE-RIGHT).
    UpgradeWithoutTheRight,
    /// A writer does not ask for the right (UPGRADE-RIGHT).
    WriterWithoutTheRight,
    /// The right is given up after the lock (UPGRADE-LAST).
    RightIsGivenUpLast,
}

/// A text, and the lock and the right that guard it.
struct Upgradable<Y: Policy> {
    lock: RawRwLock<Model, Off, Y>,
    right: RawMutex<Model, Off, Y>,
    text: Cell<u32>,
    /// Threads that have done with it; changed by holders.
    users: U32,
    broken: Broken,
}

impl<Y: Policy> Upgradable<Y> {
    fn new(broken: Broken) -> Self {
        Upgradable {
            lock: RawRwLock::new(),
            right: RawMutex::new(),
            text: Cell::new(0),
            users: U32::ZERO,
            broken,
        }
    }

    fn take_right(&self) {
        self.right.lock(Location::caller()).expect("not recursive");
    }

    fn give_right(&self) {
        // SAFETY: every caller has locked the mutex, on this thread.
        unsafe { self.right.unlock() };
    }

    /// Releases the hold, by `release`, and the right, as UPGRADE-LAST demands, and frees both locks if
    /// all others have done.
    fn release(&self, release: impl FnOnce(), users: u32) {
        let last = self.users.fetch_add(1, Ordering::Relaxed) + 1 == users;
        if self.broken == Broken::RightIsGivenUpLast {
            release();
            self.give_right();
        } else {
            self.give_right();
            release();
        }
        if last {
            freed(&self.lock);
            freed(&self.right);
        }
    }

    fn release_write(&self, users: u32) {
        // SAFETY: every caller has it for writing.
        self.release(|| unsafe { self.lock.unlock_write() }, users);
    }

    fn release_read(&self, users: u32) {
        // SAFETY: every caller has it for reading.
        self.release(|| unsafe { self.lock.unlock_read() }, users);
    }

    fn begin_read(&self) {
        self.lock.read(Location::caller()).expect("not recursive");
    }

    fn end_read(&self) {
        // SAFETY: every caller has it for reading.
        unsafe { self.lock.unlock_read() };
    }

    fn add(&self) {
        self.text.set(self.text.get() + 1);
    }

    fn read(&self) {
        self.begin_read();
        self.text.get();
        self.end_read();
    }

    /// Reads as the last one, or not, and frees both locks if it is.
    fn read_and_free(&self, users: u32) {
        self.begin_read();
        let last = self.users.fetch_add(1, Ordering::Relaxed) + 1 == users;
        self.end_read();
        if last {
            freed(&self.lock);
            freed(&self.right);
        }
    }

    fn write(&self, users: u32) {
        let asks = self.broken != Broken::WriterWithoutTheRight;
        if asks {
            self.take_right();
        }
        self.lock.write(Location::caller()).expect("not recursive");
        self.add();
        if asks {
            self.release_write(users);
        } else {
            // SAFETY: written by this thread just now.
            unsafe { self.lock.unlock_write() };
        }
    }

    /// Reads upgradably, and returns what it reads.
    fn begin_upgradable(&self) -> u32 {
        self.take_right();
        self.begin_read();
        self.text.get()
    }

    /// Turns an upgradable hold into one for writing.
    fn turn_exclusive(&self) {
        let gives_up = self.broken == Broken::UpgradeWithoutTheRight;
        if gives_up {
            self.give_right();
        }
        self.end_read();
        self.lock.write(Location::caller()).expect("not recursive");
        if gives_up {
            self.take_right();
        }
    }

    fn upgrade(&self, users: u32) {
        let before = self.begin_upgradable();
        self.turn_exclusive();
        assert_eq!(self.text.get(), before, "somebody wrote before the upgrade");
        self.add();
        self.release_write(users);
    }

    /// Upgrades by `acquire`, which may not get the lock; then it reads on.
    fn upgrade_if(&self, acquire: impl FnOnce() -> bool, users: u32) {
        let before = self.begin_upgradable();
        self.end_read();
        if acquire() {
            assert_eq!(self.text.get(), before, "somebody wrote before the upgrade");
            self.add();
            self.release_write(users);
            return;
        }
        self.begin_read();
        assert_eq!(self.text.get(), before, "somebody wrote though it read on");
        self.release_read(users);
    }

    fn try_upgrade(&self, users: u32) {
        self.upgrade_if(|| self.lock.try_write(Location::caller()), users);
    }

    fn timed_upgrade(&self, users: u32) {
        let timed = || match self.lock.write_lazily(|| TIMED, 0, Location::caller()) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error, LockError::TimedOut);
                false
            }
        };
        self.upgrade_if(timed, users);
    }

    /// Writes, reads upgradably what it has written, and writes again.
    fn write_and_upgrade(&self, users: u32) {
        self.take_right();
        self.lock.write(Location::caller()).expect("not recursive");
        self.add();
        let written = self.text.get();
        // SAFETY: this thread has it for writing.
        unsafe { self.lock.downgrade() };
        assert_eq!(self.text.get(), written);
        self.turn_exclusive();
        assert_eq!(self.text.get(), written, "somebody wrote before the upgrade");
        self.release_write(users);
    }

    /// Reads upgradably, and goes on to read without the right.
    fn give_up_the_right(&self) {
        let before = self.begin_upgradable();
        self.give_right();
        assert_eq!(self.text.get(), before);
        self.end_read();
    }
}

/// So many have the right in turn that none is the last.
const NEVER: u32 = u32::MAX;

fn two() -> Config {
    Config::new().spurious(0).stale_reads(1)
}

fn three() -> Config {
    two().processors(4).preemptions(depth(2, 3)).stale_reads(depth(0, 1))
}

/// Makes the scenario of two that upgrade, of whom the last frees both locks.
fn upgraders<Y: Policy>(broken: Broken) -> Scenario<Upgradable<Y>> {
    Scenario::new(move || Upgradable::<Y>::new(broken)).threads(2, |it| it.upgrade(2))
}

/// Makes the scenario of one that upgrades and one that reads, of whom the last frees both locks.
fn upgrader_and_reader<Y: Policy>(broken: Broken) -> Scenario<Upgradable<Y>> {
    Scenario::new(move || Upgradable::<Y>::new(broken))
        .thread(|it| it.upgrade(2))
        .thread(|it| it.read_and_free(2))
}

/// Makes the scenario of one that upgrades, beside a writer and a reader.
fn beside<Y: Policy>(broken: Broken, upgrades: fn(&Upgradable<Y>, u32)) -> Scenario<Upgradable<Y>> {
    Scenario::new(move || Upgradable::<Y>::new(broken))
        .thread(move |it| upgrades(it, NEVER))
        .thread(|it| it.write(NEVER))
        .thread(Upgradable::read)
        .after(|it: &Upgradable<Y>| assert_eq!(format!("{:?}", it.lock), "RawRwLock{readers=0}"))
}

#[test]
fn model_upgrade_lets_nobody_write_between_3t() {
    let stats = upgraders::<Sleeps>(Broken::Nothing).verify("upgrades, 2 threads", &two());
    assert_eq!(stats.coverage, Coverage::Complete);
    upgrader_and_reader::<Sleeps>(Broken::Nothing).verify("upgrade, the last frees", &two());
    beside::<Sleeps>(Broken::Nothing, Upgradable::upgrade)
        .verify("upgrade, writer, reader", &three());
    let insisting = three().preemptions(1).timeouts(1);
    beside::<Insists>(Broken::Nothing, Upgradable::upgrade)
        .verify("upgrade, insisting", &insisting);
    let both = Upgradable::write_and_upgrade;
    beside::<Sleeps>(Broken::Nothing, both).verify("writes and upgrades", &three());
    beside::<Sleeps>(Broken::Nothing, |it, _| it.give_up_the_right())
        .verify("gives the right up", &three());
}

#[test]
fn model_upgrade_that_gives_up_reads_on_3t() {
    let tries = Upgradable::try_upgrade;
    beside::<Sleeps>(Broken::Nothing, tries).verify("upgrade by trying", &three());
    let timed = three().timeouts(1);
    beside::<Sleeps>(Broken::Nothing, Upgradable::timed_upgrade).verify("timed upgrade", &timed);
}

#[test]
fn model_upgrade_misses_broken_compositions() {
    let panics = |broken, upgrades: fn(&Upgradable<Sleeps>, u32), config: &Config| {
        let failure = beside::<Sleeps>(broken, upgrades).check(config).expect_err("missed");
        let kind = &failure.kind;
        // Who asks for the right again may have been passed by a writer, which it locks out then.
        let expected =
            matches!(kind, FailureKind::Panic(_) | FailureKind::Race | FailureKind::Deadlock);
        assert!(expected, "{broken:?}: {failure}");
    };
    if crate::common::mutated() {
        return;
    }
    panics(Broken::UpgradeWithoutTheRight, Upgradable::upgrade, &three());
    panics(Broken::WriterWithoutTheRight, Upgradable::upgrade, &three());
    let late = upgrader_and_reader::<Sleeps>(Broken::RightIsGivenUpLast);
    let late = late.check(&two()).expect_err("missed");
    assert!(matches!(late.kind, FailureKind::UseAfterFree), "{late}");
}
