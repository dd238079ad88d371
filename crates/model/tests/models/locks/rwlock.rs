//! The reader-writer lock: exclusion, readers together, no lost wake-up, the
//! promise past the bound, downgrade, and a release that is the last touch.

use crate::common::{Insists, Leaves, Mixed, Sleeps, Spins, depth};
use lockstead_core::{LockError, Nanos, Off, Platform, Policy, RawRwLock, WaitBounds};
use lockstead_model::{
    Cell, Config, Coverage, ExecutionEvent, FailureKind, Model, ModelStep, Ordering, Scenario, U32,
    freed,
};
use std::cell::Cell as Count;
use std::panic::Location;
use std::rc::Rc;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;
const TIMED: WaitBounds<'static, Model> = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };
const INTERRUPTIBLE: WaitBounds<'static, Model> = WaitBounds { interruptible: true, ..FOREVER };
const FILE: &str = "rwlock/mod.rs";

/// A text that writers write and readers read.
struct Book<Y: Policy> {
    lock: RawRwLock<Model, Off, Y>,
    text: Cell<u32>,
    /// The number of readers now.
    readers: U32,
    cancel: U32,
    /// Threads that have not done with it; changed by holders.
    users: U32,
}

impl<Y: Policy> Book<Y> {
    fn new() -> Self {
        Book {
            lock: RawRwLock::new(),
            text: Cell::new(0),
            readers: U32::ZERO,
            cancel: U32::ZERO,
            users: U32::ZERO,
        }
    }

    fn section_read(&self) {
        self.text.get();
        // SAFETY: every caller holds it for reading.
        unsafe { self.lock.unlock_read() };
    }

    fn section_write(&self) {
        self.text.set(self.text.get() + 1);
        // SAFETY: every caller holds it for writing.
        unsafe { self.lock.unlock_write() };
    }

    fn read(&self) {
        self.lock.read(Location::caller()).expect("not recursive");
        self.section_read();
    }

    fn write(&self) {
        self.lock.write(Location::caller()).expect("not recursive");
        self.section_write();
    }

    /// Reads unless the wait ends first, with this error.
    fn read_or(&self, how: &WaitBounds<'_, Model>, error: LockError) {
        match self.lock.read_lazily(|| *how, 0, Location::caller()) {
            Ok(()) => self.section_read(),
            Err(given) => assert_eq!(given, error),
        }
    }

    /// Writes unless the wait ends first, with this error.
    fn write_or(&self, how: &WaitBounds<'_, Model>, error: LockError) {
        match self.lock.write_lazily(|| *how, 0, Location::caller()) {
            Ok(()) => self.section_write(),
            Err(given) => assert_eq!(given, error),
        }
    }

    /// Counts a user that has done and holds the lock. Tells whether it is the last.
    fn done(&self, users: u32) -> bool {
        self.users.fetch_add(1, Ordering::Relaxed) + 1 == users
    }
}

fn book<Y: Policy>(readers: usize, writers: usize) -> Scenario<Book<Y>> {
    let mut scenario = Scenario::new(Book::new).after(|b: &Book<Y>| {
        assert_eq!(format!("{:?}", b.lock), "RawRwLock{readers=0}");
    });
    if readers > 0 {
        scenario = scenario.threads(readers, Book::read);
    }
    if writers > 0 {
        scenario = scenario.threads(writers, Book::write);
    }
    scenario
}

fn three() -> Config {
    Config::new().processors(4).preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

fn excludes<Y: Policy>(what: &str, two: &Config, three: &Config) {
    for (readers, writers) in [(1, 1), (0, 2)] {
        let name = format!("rwlock, {what}, {readers} readers, {writers} writers");
        let stats = book::<Y>(readers, writers).verify(&name, two);
        assert_eq!(stats.coverage, Coverage::Complete);
    }
    for (readers, writers) in [(2, 1), (1, 2), (0, 3)] {
        let name = format!("rwlock, {what}, {readers} readers, {writers} writers");
        book::<Y>(readers, writers).verify(&name, three);
    }
}

#[test]
fn model_rwlock_excludes_sleeping_3t() {
    let config = three().preemptions(depth(3, 4));
    excludes::<Sleeps>("sleeping", &Config::new().spurious(2), &config);
}

#[test]
fn model_rwlock_excludes_spinning_3t() {
    let jump = |config: Config| config.jumps(1, 1 << 41).spurious(0);
    excludes::<Spins>("spinning", &jump(Config::new()), &jump(three()));
}

#[test]
fn model_rwlock_excludes_leaving_3t() {
    let config = three().preemptions(depth(3, 4)).spurious(0);
    excludes::<Leaves>("leaving", &Config::new(), &config);
}

#[test]
fn model_rwlock_excludes_insisting_3t() {
    let config = three().timeouts(1).spurious(0);
    excludes::<Insists>("insisting", &Config::new().timeouts(1), &config);
}

#[test]
fn model_rwlock_excludes_at_random_5t() {
    let config = Config::new()
        .random(1971, depth(10_000, 500_000))
        .processors(4)
        .jumps(2, 1000)
        .timeouts(2)
        .spurious(2)
        .max_steps(20_000);
    Scenario::new(Book::<Mixed>::new)
        .threads(3, |b| {
            b.read();
            b.read();
        })
        .threads(2, |b| {
            b.write();
            b.write();
        })
        .after(|b| assert_eq!(b.text.get(), 4))
        .verify("rwlock, random, 5 threads", &config);
}

/// Two readers are inside at once, before a writer and after it.
#[test]
fn model_rwlock_readers_are_together_3t() {
    let most = Rc::new(Count::new(0));
    let into = Rc::clone(&most);
    let stats = Scenario::new(Book::<Sleeps>::new)
        .threads(2, move |b| {
            b.lock.read(Location::caller()).expect("not recursive");
            let readers = b.readers.fetch_add(1, Ordering::Relaxed) + 1;
            into.set(into.get().max(10 * b.text.get() + readers));
            b.readers.fetch_sub(1, Ordering::Relaxed);
            b.section_read();
        })
        .thread(|b| {
            b.lock.write(Location::caller()).expect("not recursive");
            assert_eq!(b.readers.load(Ordering::Relaxed), 0);
            b.section_write();
        })
        .verify("rwlock, readers together, 3 threads", &three());
    assert!(stats.executions > 100);
    assert_eq!(most.get(), 12, "two readers, after the writer");
}

/// Who gives up takes nobody's wake-up away, whatever it waited as.
#[test]
fn model_rwlock_gives_up_3t() {
    fn tries<Y: Policy>(what: &str) {
        let say = |who: &str| format!("rwlock, {what}, {who}, 3 threads");
        let timed = three().timeouts(1).spurious(0);
        book::<Y>(1, 1)
            .thread(|b| b.write_or(&TIMED, LockError::TimedOut))
            .verify(&say("a timed writer"), &timed);
        book::<Y>(1, 1)
            .thread(|b| b.read_or(&TIMED, LockError::TimedOut))
            .verify(&say("a timed reader"), &timed);
        let interrupted = three().interrupts(1).spurious(0);
        book::<Y>(1, 1)
            .thread(|b| b.write_or(&INTERRUPTIBLE, LockError::Interrupted))
            .verify(&say("an interrupted writer"), &interrupted);
        book::<Y>(1, 1)
            .thread(|b| b.read_or(&INTERRUPTIBLE, LockError::Interrupted))
            .verify(&say("an interrupted reader"), &interrupted);
        book::<Y>(1, 0)
            .thread(|b| {
                let how = WaitBounds { cancel: Some(&b.cancel), ..FOREVER };
                b.write_or(&how, LockError::Cancelled);
            })
            .thread(|b| {
                b.cancel.store(1, Ordering::Release);
                Model::wake(Model::address32(&b.cancel), u32::MAX);
                b.write();
            })
            .verify(&say("a cancelled writer"), &three().spurious(0));
    }
    tries::<Sleeps>("sleeping");
    tries::<Insists>("insisting");
}

#[test]
fn model_rwlock_tries_3t() {
    book::<Sleeps>(1, 1)
        .thread(|b| {
            if b.lock.try_write(Location::caller()) {
                b.section_write();
            }
            if b.lock.try_read(Location::caller()) {
                b.section_read();
            }
        })
        .verify("rwlock, one that only tries, 3 threads", &three());
}

fn promises(event: &ExecutionEvent) -> bool {
    event.site.file().ends_with(FILE)
        && matches!(event.step, ModelStep::Exchange { from, to } if from & !to & PROMISED == 0
            && to & PROMISED != 0)
}

fn hands_over(event: &ExecutionEvent) -> bool {
    // The releaser takes the promise away and leaves a holder in its place.
    event.site.file().ends_with(FILE)
        && matches!(event.step, ModelStep::Exchange { from, to } if from & PROMISED != 0
            && to & PROMISED == 0 && to & HOLDERS != 0)
}

/// Bits of the state word, as its documentation draws them.
const PROMISED: u64 = 1 << 22;
const HOLDERS: u64 = (1 << 20) - 1;

/// Past the bound the lock is promised, newcomers are held off, and the
/// releaser hands it over.
#[test]
fn model_rwlock_promises_3t() {
    for (readers, writers) in [(2, 1), (1, 2)] {
        let config = three()
            .timeouts(1)
            .jumps(1, 1000)
            .spurious(0)
            .stale_reads(depth(0, 1))
            .watch("promised", promises)
            .watch("handed over", hands_over);
        let stats =
            book::<Insists>(readers, writers).verify("rwlock, promised, 3 threads", &config);
        assert!(stats.seen("promised") > 0);
        assert!(stats.seen("handed over") > 0);
    }
}

/// A promise that is withdrawn lets in who was held off for it: the reader
/// inside waits for one that is not.
#[test]
fn model_rwlock_withdraws_a_promise_3t() {
    let withdraws = |event: &ExecutionEvent| {
        event.site.file().ends_with(FILE)
            && matches!(event.step, ModelStep::Exchange { from, to } if from & PROMISED != 0
                && to & PROMISED == 0 && to & HOLDERS == from & HOLDERS)
    };
    let stats = Scenario::new(Book::<Insists>::new)
        .thread(|b| {
            b.lock.read(Location::caller()).expect("not recursive");
            while b.readers.load(Ordering::Acquire) == 0 {
                Model::wait32(&b.readers, 0, &FOREVER);
            }
            b.section_read();
        })
        .thread(|b| {
            b.lock.read(Location::caller()).expect("not recursive");
            b.readers.store(1, Ordering::Release);
            Model::wake(Model::address32(&b.readers), 1);
            b.section_read();
        })
        .thread(|b| b.write_or(&TIMED, LockError::TimedOut))
        .verify(
            "rwlock, a promise withdrawn, 3 threads",
            &three().timeouts(1).rescue(true).spurious(0).watch("withdrawn", withdraws),
        );
    assert!(stats.seen("withdrawn") > 0);
}

/// Makes the scenario of a reader that reads again, recursively, beside a writer that has the lock
/// promised to itself.
fn reads_again<Y: Policy>() -> Scenario<Book<Y>> {
    Scenario::new(Book::<Y>::new)
        .thread(|b| {
            b.lock.read(Location::caller()).expect("not recursive");
            b.lock.read_recursive_lazily(|| FOREVER, Location::caller()).expect("not recursive");
            let text = b.text.get();
            // SAFETY: this thread has two holds for reading.
            unsafe { b.lock.unlock_read() };
            assert_eq!(b.text.get(), text, "the outer hold");
            b.section_read();
        })
        .thread(Book::write)
}

#[test]
fn model_rwlock_reads_recursively_3t() {
    let config = three().timeouts(1).spurious(0).stale_reads(depth(0, 1));
    let stats = reads_again::<Insists>().verify(
        "rwlock, a recursive reader, 2 threads",
        &config.clone().watch("promised", promises),
    );
    assert!(stats.seen("promised") > 0);
    reads_again::<Sleeps>()
        .thread(|b| {
            if b.lock.try_read_recursive(Location::caller()) {
                b.section_read();
            }
        })
        .verify("rwlock, recursive readers, 3 threads", &config);
}

#[test]
fn model_rwlock_misses_a_recursive_reader_that_waits() {
    let config = three().timeouts(1).spurious(0).stale_reads(0);
    missed!(
        reads_again::<Insists>(),
        rwlock_recursive_reader_waits_for_next,
        FailureKind::Deadlock,
        config
    );
}

#[test]
fn model_rwlock_downgrades_3t() {
    fn downgrades<Y: Policy>(config: &Config) {
        Scenario::new(Book::<Y>::new)
            .thread(|b| {
                b.lock.write(Location::caller()).expect("not recursive");
                let mine = b.text.get() + 1;
                b.text.set(mine);
                // SAFETY: this thread has locked it for writing.
                unsafe { b.lock.downgrade() };
                b.readers.fetch_add(1, Ordering::Relaxed);
                assert_eq!(b.text.get(), mine, "a writer came between");
                b.section_read();
            })
            .thread(Book::read)
            .thread(Book::write)
            .after(|b| assert_eq!(b.text.get(), 2))
            .verify("rwlock, downgraded, 3 threads", config);
    }
    downgrades::<Sleeps>(&three());
    downgrades::<Insists>(&three().timeouts(1).spurious(0).stale_reads(depth(0, 1)));
}

/// Shows that the last user may free it after its own release, be it reader or writer.
fn is_freed<Y: Policy>(config: &Config) {
    let stats = Scenario::new(Book::<Y>::new)
        .thread(|b| {
            b.lock.read(Location::caller()).expect("not recursive");
            let last = b.done(2);
            b.section_read();
            if last {
                freed(&b.lock);
            }
        })
        .thread(|b| {
            b.lock.write(Location::caller()).expect("not recursive");
            let last = b.done(2);
            b.section_write();
            if last {
                freed(&b.lock);
            }
        })
        .verify("rwlock, the last frees, 2 threads", config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_rwlock_is_freed_after_release_2t() {
    is_freed::<Sleeps>(&Config::new());
    is_freed::<Spins>(&Config::new().jumps(1, 1 << 41));
    is_freed::<Leaves>(&Config::new());
    is_freed::<Insists>(&Config::new().timeouts(1));
    is_freed::<Mixed>(&Config::new().timeouts(1).jumps(1, 1000).spurious(0));
}

#[test]
fn model_rwlock_is_freed_after_release_3t() {
    Scenario::new(Book::<Insists>::new)
        .threads(3, |b| {
            b.lock.write(Location::caller()).expect("not recursive");
            let last = b.done(3);
            b.section_write();
            if last {
                freed(&b.lock);
            }
        })
        .verify(
            "rwlock, the last frees, 3 threads",
            &three().timeouts(1).spurious(0).stale_reads(depth(0, 1)),
        );
}
