//! What the reader-writer lock does to its word, step by step, on a machine with one thread: over
//! many words, whom a release tells, how long a waiter sleeps, and what hooks and observers hear.

use crate::common::{
    Alone, Channel, U64, as_participant, here, lose, machine, pass, script, script_exchange,
    script_exchanged, set, sleeps, time, unplayed, wakes,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::{
    Atomic64, AwaitedUse, Hooks, LockError, MAX_SLOTS, Nanos, Off, Ordering, Policy, RawRwLock,
    ShownSleep, Standard, WaitBounds, WaitOutcome,
};

const READ: u64 = 1 << 20;
const ASLEEP: u64 = 1 << 21;
const PROMISED: u64 = 1 << 22;
const NEXT_READS: u64 = 1 << 23;
const MOST: u64 = MAX_SLOTS as u64;

/// Returns the bits that name participant `number` as *next*.
const fn next(number: u64) -> u64 {
    number << 32
}

type Lock<H = Off, Y = NoSpin> = &'static RawRwLock<Alone, H, Y>;

/// Makes a lock with this word, on a machine on which no time passes but where a test says so.
fn lock_with<H: Hooks, Y: Policy>(value: u64) -> Lock<H, Y> {
    set(|machine| machine.tick = 0);
    let lock = Box::leak(Box::new(RawRwLock::new()));
    force(lock, value);
    lock
}

fn word<H: Hooks, Y: Policy>(lock: Lock<H, Y>) -> &'static U64 {
    // SAFETY: the lock begins with its word (`repr(C)`), an atomic, and lives for ever.
    unsafe { &*std::ptr::from_ref(lock).cast() }
}

fn force<H: Hooks, Y: Policy>(lock: Lock<H, Y>, value: u64) {
    word(lock).store(value, Ordering::Relaxed);
}

fn peek<H: Hooks, Y: Policy>(lock: Lock<H, Y>) -> u64 {
    word(lock).load(Ordering::Relaxed)
}

/// Returns what stands in a word beside the holder, each beside each, with participant 3 as *next*.
fn near() -> Vec<u64> {
    let waiting = [0, next(3), next(3) | NEXT_READS];
    let promised = waiting.into_iter().filter(|it| *it != 0).map(|it| it | PROMISED);
    let all: Vec<u64> = waiting.into_iter().chain(promised).collect();
    all.iter().flat_map(|it| [*it, *it | ASLEEP]).collect()
}

fn holders() -> [u64; 6] {
    [0, 1, 2, READ | 1, READ | 2, READ | MOST]
}

/// Returns whether the holder of this word leaves room for a reader, or for a writer.
fn allows(word: u64, reads: bool) -> bool {
    let holder = word & (READ | MOST);
    holder == 0 || reads && holder & READ != 0 && holder != READ | MOST
}

/// Returns the word and the wake-ups after a change of the holder that may have made room: whether
/// *next* is called, and whether the readers are woken.
fn settled(word: u64) -> (u64, bool, bool) {
    let mut after = word;
    let reads = word & NEXT_READS != 0;
    let calls = word >> 32 != 0 && allows(word, reads);
    if calls {
        after &= !(MOST << 32 | NEXT_READS | PROMISED);
        if word & PROMISED != 0 {
            after = if reads { (after | READ) + 1 } else { after | word >> 32 };
        }
    }
    let wakes = after & ASLEEP != 0 && after & PROMISED == 0 && allows(after, true);
    (if wakes { after & !ASLEEP } else { after }, calls, wakes)
}

/// Returns whom the lock has woken since the last time, in order: *next*, which is participant 3, or
/// all readers.
fn woken<H: Hooks, Y: Policy>(lock: Lock<H, Y>) -> Vec<&'static str> {
    let name = |(at, count): (lockstead_core::Address, u32)| match count {
        1 => "next",
        u32::MAX => {
            assert_eq!(at.0, lock.id().0);
            "readers"
        }
        _ => panic!("{count}"),
    };
    wakes().into_iter().map(name).collect()
}

#[test]
fn a_lock_is_taken_from_every_word_that_admits_one_and_from_no_other() {
    let lock = lock_with::<Off, NoSpin>(0);
    for holder in holders() {
        for near in near() {
            let before = holder | near;
            for reads in [true, false] {
                force(lock, before);
                let taken = if reads { lock.try_read(here()) } else { lock.try_write(here()) };
                let admits = before & PROMISED == 0 && allows(before, reads);
                assert_eq!(taken, admits, "{before:x} {reads}");
                let after = if reads { (before | READ) + 1 } else { before | 1 };
                assert_eq!(peek(lock), if admits { after } else { before }, "{before:x}");
            }
            force(lock, before);
            let readers = if holder & READ == 0 { 0 } else { holder & MOST };
            assert_eq!(u64::from(lock.readers()), readers);
            let writer = if holder & READ == 0 { holder } else { 0 };
            assert_eq!(lock.writer().map_or(0, |it| u64::from(it.get())), writer);
            assert_eq!((lock.is_mine(), lock.is_locked()), (writer == 1, holder != 0));
        }
    }
    assert_eq!((wakes(), sleeps()), (vec![], vec![]));
}

#[test]
fn a_release_tells_those_that_can_take_the_lock_now() {
    let lock = lock_with::<Off, NoSpin>(0);
    for near in near() {
        for holder in [1, READ | 1, READ | 2, READ | 3, READ | MOST] {
            for downgrades in [false, true] {
                let before = holder | near;
                let writes = holder & READ == 0;
                if downgrades && !writes {
                    continue;
                }
                force(lock, before);
                let left = match holder {
                    1 if downgrades => near | READ | 1,
                    1 => near,
                    _ if holder == READ | 1 => near,
                    _ => before - 1,
                };
                // Of several readers one goes without a word.
                let several = !writes && holder != READ | 1;
                let (after, calls, readers) =
                    if several { (left, false, false) } else { settled(left) };
                // SAFETY: the word says so of this participant, which stands for each reader.
                unsafe {
                    match (writes, downgrades) {
                        (true, true) => lock.downgrade(),
                        (true, false) => lock.unlock_write(),
                        (false, _) => lock.unlock_read(),
                    }
                }
                assert_eq!(peek(lock), after, "{before:x} {downgrades}");
                let mut expected = vec![];
                expected.extend(calls.then_some("next"));
                expected.extend(readers.then_some("readers"));
                assert_eq!(woken(lock), expected, "{before:x} {downgrades}");
            }
        }
    }
}

/// A *next* that `fork` left behind is neither called nor handed the lock.
#[test]
fn a_next_left_behind_by_fork_is_forgotten() {
    lose(3);
    let lock = lock_with::<Off, NoSpin>(READ | 1 | next(3) | PROMISED | ASLEEP);
    // SAFETY: the word says that somebody reads, for whom this participant stands.
    unsafe { lock.unlock_read() };
    assert_eq!((peek(lock), woken(lock)), (0, vec!["readers"]));
    // Nor does it hold off a reader that waits, or the next one in the waiting room.
    for reads in [true, false] {
        force(lock, next(3) | PROMISED);
        let taken = if reads { lock.read(here()) } else { lock.write(here()) };
        assert_eq!((taken, peek(lock)), (Ok(()), if reads { READ | 1 } else { 1 }));
    }
    assert_eq!(sleeps(), []);
}

#[test]
fn steps_that_others_come_before_are_made_again() {
    let lock = lock_with::<Off, NoSpin>(READ | 1);
    script_exchange(move || force(lock, READ | 2));
    assert!(lock.try_read(here()));
    assert_eq!(peek(lock), READ | 3);
    script_exchange(move || force(lock, 2));
    assert!(!lock.try_read(here()));
    // The first attempt is for a lock with nobody near.
    force(lock, ASLEEP);
    script_exchange(|| {});
    script_exchange(move || force(lock, next(3)));
    assert!(lock.try_write(here()));
    assert_eq!(peek(lock), next(3) | 1);
    force(lock, ASLEEP);
    script_exchange(|| {});
    script_exchange(move || force(lock, 2));
    assert!(!lock.try_write(here()));
    // A reader that leaves, quietly and not.
    force(lock, READ | 3);
    script_exchange(move || force(lock, READ | 2));
    script_exchange(move || force(lock, READ | 1 | ASLEEP));
    script_exchange(move || force(lock, READ | 1 | next(3)));
    // SAFETY: the word says that somebody reads, for whom this participant stands.
    unsafe { lock.unlock_read() };
    assert_eq!((peek(lock), woken(lock)), (0, vec!["next"]));
    // One of several goes without a word whatever came before.
    force(lock, READ | 4);
    script_exchange(move || force(lock, READ | 3 | next(3) | NEXT_READS));
    // SAFETY: the word says that somebody reads, for whom this participant stands.
    unsafe { lock.unlock_read() };
    assert_eq!((peek(lock), woken(lock)), (READ | 2 | next(3) | NEXT_READS, vec![]));
    // A writer that has left touches nothing any more.
    force(lock, 1);
    script_exchanged(move || force(lock, 2));
    // SAFETY: the word says that this participant writes.
    unsafe { lock.unlock_write() };
    assert_eq!(peek(lock), 2);
    // A reader that is about to sleep, and a next that withdraws, for neither of which there is a
    // sleep to come.
    force(lock, 2);
    script_exchange(move || force(lock, 0));
    assert_eq!(lock.read(here()), Ok(()));
    assert_eq!((peek(lock), sleeps()), (READ | 1, vec![]));
    force(lock, 2);
    script(move || {
        script_exchange(move || force(lock, 2 | ASLEEP | next(1)));
        WaitOutcome::Interrupted
    });
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    assert_eq!(lock.write_lazily(|| how, 0, here()), Err(LockError::Interrupted));
    assert_eq!((peek(lock), sleeps().len(), unplayed()), (2 | ASLEEP, 1, 0));
    // A next that is about to say so.
    force(lock, 2);
    (0..2).for_each(|_| script_exchange(|| {}));
    script_exchange(move || force(lock, 0));
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!((peek(lock), sleeps(), unplayed()), (1, vec![], 0));
    // A waiting reader and a waiting writer.
    lose(5);
    for reads in [true, false] {
        force(lock, PROMISED | next(5));
        script_exchange(move || force(lock, ASLEEP));
        if !reads {
            script_exchange(|| {});
        }
        let taken = if reads { lock.read(here()) } else { lock.write(here()) };
        assert_eq!(taken, Ok(()));
        force(lock, 0);
        wakes();
    }
}

/// A thread that has not joined the table has no slot to write with, and gets one.
#[test]
fn a_thread_that_has_not_joined_writes_nothing_before() {
    let lock = lock_with::<Off, NoSpin>(0);
    set(|machine| machine.stranger = true);
    assert!(!lock.is_mine());
    assert!(lock.try_write(here()));
    assert_eq!(peek(lock), 1);
    force(lock, 0);
    set(|machine| machine.stranger = true);
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!(peek(lock), 1);
}

fn bound(sleepers: u64) -> u64 {
    Standard::BOUND + sleepers * Standard::SHARE
}

fn slept() -> Vec<(Channel, Option<Nanos>)> {
    sleeps().into_iter().map(|it| (it.channel, it.until)).collect()
}

#[test]
fn a_reader_sleeps_on_the_word_until_it_insists_and_then_as_the_next() {
    let lock = lock_with::<Off, NoSpin>(2);
    set(|machine| machine.sleepers = 3);
    let began = time();
    script(move || {
        assert_eq!((peek(lock), machine().asleep), (2 | ASLEEP, 1));
        set(|machine| machine.exchanges = 1);
        WaitOutcome::Interrupted
    });
    script(|| {
        assert_eq!(machine().exchanges, 1, "it has said so before");
        WaitOutcome::TimedOut
    });
    script(move || {
        // In the waiting room, past the bound: the lock is promised to it.
        assert_eq!(peek(lock), 2 | ASLEEP | next(1) | NEXT_READS | PROMISED);
        // SAFETY: the word says that participant 2 writes.
        as_participant(2, || unsafe { lock.unlock_write() });
        assert_eq!(peek(lock), READ | 1);
        assert_eq!(woken(lock), ["next", "readers"]);
        WaitOutcome::Woken
    });
    assert_eq!(lock.read(here()), Ok(()));
    assert_eq!((peek(lock), unplayed(), machine().asleep), (READ | 1, 0, 0));
    let at = |nanoseconds| Some(began.after(nanoseconds));
    let expected =
        [(Channel::Low, at(bound(1))), (Channel::Low, at(bound(3))), (Channel::Sequence, None)];
    assert_eq!(slept(), expected);
}

#[test]
fn a_writer_is_the_next_and_is_promised_the_lock_past_the_bound() {
    let lock = lock_with::<Off, NoSpin>(READ | 2);
    set(|machine| machine.sleepers = 2);
    let began = time();
    script(move || {
        assert_eq!((peek(lock), machine().asleep), (READ | 2 | next(1), 1));
        WaitOutcome::Interrupted
    });
    script(move || {
        assert_eq!(peek(lock), READ | 2 | next(1));
        // The promise fails at first.
        script_exchange(move || force(lock, READ | 1 | next(1) | ASLEEP));
        WaitOutcome::TimedOut
    });
    script(move || {
        assert_eq!(peek(lock), READ | 1 | next(1) | PROMISED | ASLEEP);
        WaitOutcome::Interrupted
    });
    script(move || {
        // SAFETY: the word says that somebody reads, for whom this participant stands.
        unsafe { lock.unlock_read() };
        assert_eq!((peek(lock), woken(lock)), (1 | ASLEEP, vec!["next"]));
        WaitOutcome::Woken
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!((peek(lock), unplayed(), machine().asleep), (1 | ASLEEP, 0, 0));
    let at = |nanoseconds| Some(began.after(nanoseconds));
    let expected = [
        (Channel::Sequence, at(bound(1))),
        (Channel::Sequence, at(bound(2))),
        (Channel::Sequence, None),
        (Channel::Sequence, None),
    ];
    assert_eq!(slept(), expected);
}

#[test]
fn a_sleep_ends_at_the_deadline_if_that_is_earlier() {
    for reads in [true, false] {
        for (after, until) in [(10, 10), (bound(1) + 10, bound(1))] {
            let lock = lock_with::<Off, NoSpin>(2);
            let began = time();
            let deadline = Some(began.after(after));
            let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
            script(move || {
                pass(after);
                WaitOutcome::Interrupted
            });
            let ended = match reads {
                true => lock.read_lazily(|| how, 0, here()),
                false => lock.write_lazily(|| how, 0, here()),
            };
            assert_eq!(ended, Err(LockError::TimedOut));
            let channel = if reads { Channel::Low } else { Channel::Sequence };
            assert_eq!(slept(), [(channel, Some(began.after(until)))]);
            assert_eq!(peek(lock), if reads { 2 | ASLEEP } else { 2 });
        }
    }
}

/// A next that gives up takes its promise back, and tells those that it held off.
#[test]
fn a_next_that_gives_up_lets_those_in_that_it_held_off() {
    let lock = lock_with::<Off, NoSpin>(READ | 1);
    script(|| WaitOutcome::TimedOut);
    script(move || {
        force(lock, READ | 1 | ASLEEP | next(1) | PROMISED);
        script_exchange(move || force(lock, READ | 2 | ASLEEP | next(1) | PROMISED));
        WaitOutcome::TimedOut
    });
    let deadline = Some(time().after(2 * bound(1)));
    let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
    assert_eq!(lock.write_lazily(|| how, 0, here()), Err(LockError::TimedOut));
    assert_eq!((peek(lock), woken(lock), unplayed()), (READ | 2, vec!["readers"], 0));
    // It is handed the lock as it gives up.
    force(lock, READ | 1);
    script(|| WaitOutcome::TimedOut);
    script(move || {
        script_exchange(move || force(lock, 1));
        WaitOutcome::TimedOut
    });
    let deadline = Some(time().after(2 * bound(1)));
    let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
    assert_eq!(lock.write_lazily(|| how, 0, here()), Ok(()));
    assert_eq!((peek(lock), unplayed()), (1, 0));
}

/// Others that want to write wait in the room, on a word of its own.
#[test]
fn one_at_a_time_waits_as_the_next() {
    let lock = lock_with::<Off, NoSpin>(2);
    script(move || {
        script(move || {
            assert_eq!(peek(lock), 2 | next(1));
            WaitOutcome::Interrupted
        });
        let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
        as_participant(3, || {
            let ended = lock.write_lazily(|| how, 0, here());
            assert_eq!(ended, Err(LockError::Interrupted));
        });
        let [_, second] = sleeps()[..] else { panic!() };
        assert_eq!(second.channel, Channel::Low);
        let address = lock.id().0;
        let shown = ShownSleep { lock: address, wants: AwaitedUse::Write, is_endless: false };
        assert_eq!(second.shown, Some(shown), "it sleeps for the lock");
        force(lock, 0);
        WaitOutcome::Woken
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!((peek(lock), unplayed()), (1, 0));
    // The room is left.
    force(lock, 0);
    as_participant(3, || assert_eq!(lock.write(here()), Ok(())));
}

/// A call after a next has looked at the word changes the number that it expects: it does not sleep.
#[test]
fn a_call_before_the_sleep_is_not_lost() {
    let lock = lock_with::<Off, NoSpin>(2);
    // The fast path, and the waiting room.
    (0..2).for_each(|_| script_exchanged(|| {}));
    script_exchanged(move || {
        assert_eq!(peek(lock), 2 | next(1));
        // SAFETY: the word says that participant 2 writes.
        as_participant(2, || unsafe { lock.unlock_write() });
    });
    // There is no action: to sleep would fail the test.
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!((peek(lock), woken(lock), unplayed()), (1, vec!["next"], 0));
}

/// A signal handler that interrupted its own thread in the waiting room finds no way through it,
/// however long it waits.
#[test]
fn a_handler_of_a_next_waits_on_the_word() {
    let lock = lock_with::<Off, NoSpin>(2);
    script(move || {
        sleeps();
        script(|| {
            pass(2 * bound(1));
            WaitOutcome::Interrupted
        });
        script(move || {
            force(lock, next(1));
            WaitOutcome::Woken
        });
        assert_eq!(lock.read(here()), Ok(()));
        assert_eq!(slept(), [(Channel::Low, None); 2]);
        assert_eq!(peek(lock), READ | 1 | next(1));
        // SAFETY: this participant reads since the line above.
        unsafe { lock.unlock_read() };
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!((peek(lock), unplayed()), (1, 0));
}

/// A lock that is full of readers is one more that a writer waits for.
#[test]
fn a_writer_waits_for_a_lock_that_is_full_of_readers() {
    let lock = lock_with::<Off, NoSpin>(READ | MOST);
    script(move || {
        force(lock, 0);
        WaitOutcome::Woken
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!((peek(lock), unplayed()), (1, 0));
}
