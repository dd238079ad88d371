//! What the biased mutex writes and whom it waits for, step by step, on a machine with one thread:
//! its owner's three steps, how the bias is taken away, and what is heard of it.

use crate::common::fences::{fenced, script_fence, set_fences};
use crate::common::heard::{Heard, STATE, heard};
use crate::common::mutexes::slot;
use crate::common::{
    Alone, Channel, U32, U64, as_participant, here, lose, machine, pass, script, script_pause, set,
    sleeps, time, told, unplayed,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::{
    Atomic32, Atomic64, Awaited, AwaitedUse, Hooks, LockError, Nanos, Off, OnCpu, Ordering, Policy,
    RawBiased, WaitBounds, WaitOutcome,
};

type Lock<H = Off, Y = NoSpin> = &'static RawBiased<Alone, H, Y>;

/// The owner does not hold it.
const FREE: u32 = 1 << 31;
/// The owner is asked to leave.
const ASKED: u32 = 1;
/// The inner mutex is the lock.
const PLAIN: u32 = 2;

/// Makes a lock on a machine on which no time passes but where a test says so.
fn lock_with<H: Hooks, Y: Policy>(own: u32, revoked: u32, inner: u64) -> Lock<H, Y> {
    set(|machine| machine.tick = 0);
    let lock = Box::leak(Box::new(RawBiased::new()));
    force(lock, own, revoked, inner);
    lock
}

/// Makes a lock that nothing watches.
fn lock(own: u32, revoked: u32, inner: u64) -> Lock {
    lock_with(own, revoked, inner)
}

/// Returns *own* and *revoked*.
fn halves<H: Hooks, Y: Policy>(lock: Lock<H, Y>) -> &'static [U32; 2] {
    // SAFETY: the lock begins with these two atomics (`repr(C)`), and lives for ever.
    unsafe { &*std::ptr::from_ref(lock).cast() }
}

/// Returns the word of the inner mutex.
fn inner<H: Hooks, Y: Policy>(lock: Lock<H, Y>) -> &'static U64 {
    // SAFETY: behind the two halves the lock has a mutex, which begins with its word (`repr(C)`),
    // an atomic, and it lives for ever.
    unsafe { &*std::ptr::from_ref(lock).cast::<U64>().add(1) }
}

fn force<H: Hooks, Y: Policy>(lock: Lock<H, Y>, own: u32, revoked: u32, word: u64) {
    let [of, away] = halves(lock);
    of.store(own, Ordering::Relaxed);
    away.store(revoked, Ordering::Relaxed);
    inner(lock).store(word, Ordering::Relaxed);
}

/// Returns *own*, *revoked*, and the owner of the inner mutex.
fn words<H: Hooks, Y: Policy>(lock: Lock<H, Y>) -> (u32, u32, u64) {
    let [own, revoked] = halves(lock).each_ref().map(|half| half.load(Ordering::Relaxed));
    (own, revoked, inner(lock).load(Ordering::Relaxed) & 0xf_ffff)
}

/// Takes the lock and returns whether that was by the inner mutex.
fn take<H: Hooks, Y: Policy>(
    lock: Lock<H, Y>,
    how: WaitBounds<'_, Alone>,
) -> Result<bool, LockError> {
    lock.lock_lazily(|| how, 0, here()).map(|hold| format!("{hold:?}") == "BiasedHold(0)")
}

fn until(deadline: Nanos) -> WaitBounds<'static, Alone> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

#[test]
fn the_first_to_come_is_the_owner_and_needs_no_exchange_from_then_on() {
    let lock = lock(0, 0, 0);
    assert_eq!((lock.belongs_to(), lock.holder(), lock.is_locked()), (None, None, false));
    for round in 0..3 {
        let hold = lock.lock(here()).expect("free");
        assert_eq!((format!("{hold:?}"), words(lock)), ("BiasedHold(1)".into(), (1, 0, 0)));
        assert_eq!(inner(lock).load(Ordering::Relaxed), 0);
        assert_eq!((lock.belongs_to(), lock.holder()), (Some(slot(1)), Some(slot(1))));
        assert!(lock.is_locked());
        if round > 0 {
            assert_eq!(machine().exchanges, 0);
        }
        assert_eq!(lock.lock(here()), Err(LockError::Recursive));
        assert_eq!((lock.try_lock(here()), words(lock)), (None, (1, 0, 0)));
        set(|machine| machine.exchanges = 0);
        // SAFETY: this participant has just taken it in this way.
        unsafe { lock.unlock(hold) };
        assert_eq!((words(lock), machine().exchanges), ((1 | FREE, 0, 0), 0));
        assert_eq!((lock.belongs_to(), lock.holder()), (Some(slot(1)), None));
        assert!(!lock.is_locked());
    }
    let hold = lock.try_lock(here()).expect("free");
    assert_eq!((words(lock), machine().exchanges), ((1, 0, 0), 0));
    // SAFETY: this participant has just taken it in this way.
    unsafe { lock.unlock(hold) };
    assert_eq!((fenced(), sleeps()), (vec![], vec![]));
}

#[test]
fn a_lock_is_nobodys_where_fences_are_impossible() {
    set_fences(false);
    for tried in [false, true] {
        let lock = lock(0, 0, 0);
        for _ in 0..2 {
            let hold = if tried { lock.try_lock(here()) } else { lock.lock(here()).ok() };
            assert_eq!(words(lock), (0, PLAIN, 1));
            assert_eq!((lock.belongs_to(), lock.holder()), (None, Some(slot(1))));
            // SAFETY: this participant has just taken it in this way.
            unsafe { lock.unlock(hold.expect("free")) };
            assert_eq!((words(lock), lock.is_locked()), ((0, PLAIN, 0), false));
        }
    }
    assert_eq!(fenced(), []);
}

/// What a lock says of itself, in each of its states.
#[test]
fn each_state_says_whose_it_is() {
    for own in [0, 1, 2, 1 | FREE, 2 | FREE] {
        for revoked in [0, ASKED, PLAIN] {
            for owner in [0, 1, 2] {
                let lock = lock(own, revoked, owner);
                let belongs = (revoked == 0 && own != 0).then(|| slot(own & !FREE));
                let holder = match revoked {
                    PLAIN => (owner != 0).then(|| slot(owner as u32)),
                    _ => (own & FREE == 0 && own != 0).then(|| slot(own)),
                };
                let state = words(lock);
                assert_eq!((lock.belongs_to(), lock.holder()), (belongs, holder), "{state:?}");
                assert_eq!(lock.is_locked(), holder.is_some());
            }
        }
    }
}

/// Tries each state of the lock, where fences are executed and where they are refused.
#[test]
fn a_try_takes_what_is_free_and_asks_whoever_does_not_hold_it() {
    for own in [0, 1, 2, 1 | FREE, 2 | FREE] {
        for revoked in [0, ASKED, PLAIN] {
            for (owner, executed) in [(0, true), (0, false), (2, true)] {
                let lock = lock(own, revoked, owner);
                let its_own = own == 1 | FREE;
                // What it is after the owner has backed out.
                let left = if its_own && revoked != 0 { 0 } else { own };
                let held = revoked != PLAIN && left & FREE == 0 && left != 0;
                let asks = revoked != PLAIN && left == 2 | FREE && owner == 0;
                let expected = if its_own && revoked == 0 {
                    (Some(1), (1, 0, owner))
                } else if held || owner == 2 {
                    (None, (left, revoked, owner))
                } else if left == 0 && revoked == 0 {
                    (Some(1), (1, 0, 0))
                } else if asks && !executed {
                    (None, (left, ASKED, 0))
                } else {
                    (Some(0), (left, PLAIN, 1))
                };
                if asks {
                    script_fence(move || executed);
                }
                let taken = lock
                    .try_lock(here())
                    .map(|hold| u32::from(format!("{hold:?}") != "BiasedHold(0)"));
                assert_eq!((taken, words(lock)), expected, "{own:x} {revoked} {owner}");
                assert_eq!(fenced(), if asks { vec![2] } else { vec![] });
                assert_eq!(sleeps(), []);
            }
        }
    }
}

#[test]
fn another_thread_asks_has_a_fence_executed_and_takes_the_inner_mutex() {
    let lock = lock(2 | FREE, 0, 0);
    script_fence(move || {
        assert_eq!(words(lock), (2 | FREE, ASKED, 1));
        true
    });
    let hold = lock.lock(here()).expect("free");
    assert_eq!((format!("{hold:?}"), words(lock)), ("BiasedHold(0)".into(), (2 | FREE, PLAIN, 1)));
    assert_eq!((fenced(), sleeps(), lock.belongs_to()), (vec![2], vec![], None));
    assert_eq!(lock.lock(here()), Err(LockError::Recursive));
    // SAFETY: this participant has just taken it in this way.
    unsafe { lock.unlock(hold) };
    assert_eq!(words(lock), (2 | FREE, PLAIN, 0));
    // The owner finds that it was asked, and takes the inner mutex from now on.
    as_participant(2, || {
        for _ in 0..2 {
            let hold = lock.lock(here()).expect("free");
            assert_eq!((words(lock), lock.holder()), ((0, PLAIN, 2), Some(slot(2))));
            // SAFETY: this participant has just taken it in this way.
            unsafe { lock.unlock(hold) };
        }
    });
    assert_eq!((words(lock), fenced()), ((0, PLAIN, 0), vec![]));
}

#[test]
fn an_owner_that_was_asked_backs_out_and_ends_the_bias() {
    for asked in [ASKED, PLAIN] {
        let lock = lock(1 | FREE, asked, 0);
        assert_eq!((take(lock, WaitBounds::FOREVER), words(lock)), (Ok(true), (0, PLAIN, 1)));
        // It waits with the others for the inner mutex.
        force(lock, 1 | FREE, asked, 2);
        script(move || {
            assert_eq!(words(lock), (0, asked, 2));
            force(lock, 0, asked, 0);
            WaitOutcome::Interrupted
        });
        assert_eq!((take(lock, WaitBounds::FOREVER), words(lock)), (Ok(true), (0, PLAIN, 1)));
    }
    assert_eq!((fenced(), unplayed()), (vec![], 0));
}

/// The waits for an owner that holds the lock double, up to a millisecond.
#[test]
fn whoever_waits_for_the_owner_looks_again_after_a_while() {
    let lock = lock(2, 0, 0);
    let began = time();
    for _ in 0..7 {
        script(move || {
            assert_eq!((words(lock), machine().pauses), ((2, ASKED, 1), 0));
            WaitOutcome::TimedOut
        });
    }
    script(move || {
        force(lock, 2 | FREE, ASKED, 1);
        WaitOutcome::Interrupted
    });
    assert_eq!((take(lock, WaitBounds::FOREVER), words(lock)), (Ok(true), (2 | FREE, PLAIN, 1)));
    let mut at = began;
    let looks = [50_000, 100_000, 200_000, 400_000, 800_000, 1_000_000, 1_000_000, 1_000_000];
    let ends = looks.map(|wait| {
        at = at.after(wait);
        (Channel::Sequence, Some(at))
    });
    let slept: Vec<_> = sleeps().into_iter().map(|it| (it.channel, it.until)).collect();
    assert_eq!((slept, fenced()), (ends.to_vec(), vec![2]));
}

/// Without a fence nobody believes that the owner does not hold the lock, but from itself.
#[test]
fn a_fence_that_is_refused_is_asked_for_again() {
    // Even where there are processors to spin on: each turn would call the kernel.
    for processors in [1, 2] {
        for left in [2 | FREE, 0] {
            let lock = lock(2 | FREE, 0, 0);
            set(|machine| machine.processors = processors);
            script_fence(|| false);
            script_fence(move || left != 0);
            script(move || {
                assert_eq!(words(lock), (2 | FREE, ASKED, 1));
                force(lock, left, ASKED, 1);
                WaitOutcome::TimedOut
            });
            assert_eq!(
                (take(lock, WaitBounds::FOREVER), words(lock)),
                (Ok(true), (left, PLAIN, 1))
            );
            assert_eq!((fenced(), machine().pauses, unplayed()), (vec![2, 2], 0, 0));
        }
    }
}

#[test]
fn an_owner_left_behind_by_fork_holds_the_lock_for_ever_or_not_at_all() {
    lose(3);
    for (own, executed) in [(3, true), (3, false), (3 | FREE, false), (3 | FREE, true)] {
        let lock = lock(own, 0, 0);
        script_fence(move || executed);
        let free = own & FREE != 0;
        let expected = if free { Ok(true) } else { Err(LockError::OwnerLost) };
        assert_eq!(take(lock, WaitBounds::FOREVER), expected);
        let (revoked, inner) = if free { (PLAIN, 1) } else { (ASKED, 0) };
        assert_eq!((words(lock), fenced()), ((own, revoked, inner), vec![3]));
    }
    assert_eq!(sleeps(), []);
}

#[test]
fn whoever_gives_up_leaves_the_inner_mutex_and_its_question() {
    // The sleep ends at the deadline, if that is earlier.
    for (deadline, slept) in [(49_999, 49_999), (50_001, 50_000)] {
        let lock = lock(2, 0, 0);
        let began = time();
        script(move || {
            pass(deadline);
            WaitOutcome::Interrupted
        });
        let how = until(began.after(deadline));
        assert_eq!((take(lock, how), words(lock)), (Err(LockError::TimedOut), (2, ASKED, 0)));
        assert_eq!(sleeps()[0].until, Some(began.after(slept)));
    }
    let lock = lock(2, 0, 0);
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    script(|| WaitOutcome::Woken);
    script(|| WaitOutcome::Interrupted);
    assert_eq!((take(lock, how), words(lock)), (Err(LockError::Interrupted), (2, ASKED, 0)));
    let cancel: &U32 = Box::leak(Box::new(U32::ZERO));
    let how = WaitBounds { cancel: Some(cancel), ..WaitBounds::FOREVER };
    script(|| {
        cancel.store(1, Ordering::Relaxed);
        WaitOutcome::Interrupted
    });
    assert_eq!((take(lock, how), words(lock)), (Err(LockError::Cancelled), (2, ASKED, 0)));
    // The owner comes and goes; the next one takes it.
    force(lock, 2 | FREE, ASKED, 0);
    assert_eq!((take(lock, WaitBounds::FOREVER), words(lock)), (Ok(true), (2 | FREE, PLAIN, 1)));
    // Who gives up for the inner mutex changes nothing.
    force(lock, 2, ASKED, 3);
    script(|| WaitOutcome::TimedOut);
    let how = until(time().after(5));
    assert_eq!(take(lock, how), Err(LockError::TimedOut));
    assert_eq!((words(lock), unplayed()), ((2, ASKED, 3), 0));
}

/// The question of a try is no wait.
#[test]
fn an_observer_is_told_of_a_wait_for_the_owner_and_how_that_ends() {
    for observed in [false, true] {
        let lock = lock(2, 0, 0);
        set(|machine| machine.observed = observed);
        let address = core::ptr::from_ref(&halves(lock)[0]).addr();
        for deadline in [None, Some(time().after(1_000_000))] {
            let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
            let awaited = Awaited { address, wants: AwaitedUse::BiasedMutex, name: None, deadline };
            let expected = |error| {
                let ends = observed.then_some((awaited, Some(error)));
                [(awaited, None)].into_iter().chain(ends).collect::<Vec<_>>()
            };
            force(lock, 2, 0, 0);
            script(move || {
                force(lock, 2 | FREE, ASKED, 1);
                WaitOutcome::Interrupted
            });
            assert_eq!((take(lock, how), told()), (Ok(true), expected(None)));
            force(lock, 2, 0, 0);
            if deadline.is_some() {
                script(|| {
                    pass(1_000_000);
                    WaitOutcome::Interrupted
                });
                let late = (Err(LockError::TimedOut), expected(Some(LockError::TimedOut)));
                assert_eq!((take(lock, how), told()), late);
            }
            force(lock, 2 | FREE, 0, 0);
            assert!(lock.try_lock(here()).is_some());
            assert_eq!((told(), words(lock)), (vec![], (2 | FREE, PLAIN, 1)));
        }
    }
}

/// Spins shortly: three looks at the clock, each after four turns.
struct Turns;

impl Policy for Turns {
    type Base = NoSpin;
    const HANDOFF_SPIN: u64 = 200;
    const TURNS: u32 = 4;
}

#[test]
fn whoever_waits_for_the_owner_spins_shortly_where_that_may_run() {
    let lock = lock_with::<Off, Turns>(2, 0, 0);
    set(|machine| (machine.processors, machine.on_cpu) = (2, OnCpu::Unknown));
    (0..3).for_each(|_| script_pause(|| {}));
    script_pause(|| pass(199));
    (0..3).for_each(|_| script_pause(|| {}));
    script_pause(|| pass(1));
    script(|| {
        assert_eq!(machine().pauses, 12);
        WaitOutcome::TimedOut
    });
    script(move || {
        assert_eq!(machine().pauses, 12, "it spins once");
        force(lock, 0, ASKED, 1);
        WaitOutcome::TimedOut
    });
    assert_eq!((take(lock, WaitBounds::FOREVER), unplayed()), (Ok(true), 0));
    // It takes what comes free meanwhile.
    let lock = lock_with::<Off, Turns>(2, 0, 0);
    set(|machine| machine.pauses = 0);
    script_pause(move || force(lock, 2 | FREE, ASKED, 1));
    assert_eq!((take(lock, WaitBounds::FOREVER), machine().pauses), (Ok(true), 1));
    assert_eq!(fenced(), [2, 2]);
}

#[test]
fn a_lock_that_nobody_holds_is_made_nobodys_again() {
    for own in [0, 1, 2, 1 | FREE, 2 | FREE] {
        for revoked in [0, ASKED, PLAIN] {
            for owner in [0, 2] {
                let at = Box::into_raw(Box::new(RawBiased::<Alone, Off, NoSpin>::new()));
                // SAFETY: the lock lives for ever, and this reference is not used after `rebias`.
                let lock: Lock = unsafe { &*at };
                force(lock, own, revoked, owner);
                let (before, held) = (words(lock), lock.is_locked());
                // SAFETY: the lock lives for ever, and no other reference to it is used any more.
                unsafe { &mut *at }.rebias();
                // SAFETY: the lock lives for ever, and the one that changed it has done so.
                let after = words(unsafe { &*at });
                assert_eq!(after, if held { before } else { (0, 0, owner) });
            }
        }
    }
}

#[test]
fn a_thread_that_has_not_joined_is_not_taken_for_the_owner() {
    let lock = lock(0, 0, 0);
    set(|machine| machine.stranger = true);
    assert_eq!((take(lock, WaitBounds::FOREVER), words(lock)), (Ok(false), (1, 0, 0)));
}

#[test]
fn a_watcher_hears_of_every_acquisition() {
    let lock = lock_with::<Heard, NoSpin>(0, 0, 0);
    assert_eq!(*lock.state(), STATE);
    assert_eq!(lock.id().0, std::ptr::from_ref(lock).addr());
    let site = here();
    let line = site.line();
    let [fast, slow] = ["Fast", "Slow"].map(|path| format!("acquired Alone {path} {line}"));
    let begins = |subclass: u32| format!("will acquire Alone {subclass} {line}");
    let waits = |endless: bool| format!("will wait {endless}");
    let abandoned = format!("abandoned {line}");
    let hear = |own: u32, revoked: u32, inner: u64, how: WaitBounds<'_, Alone>| {
        force(lock, own, revoked, inner);
        let taken = lock.lock_lazily(|| how, 5, site);
        (taken, heard())
    };
    let leave = |hold| {
        // SAFETY: this participant has just taken it in this way.
        unsafe { lock.unlock(hold) };
        assert_eq!(heard(), ["releasing"]);
    };
    let cases = [
        (0, 0, vec![begins(5), waits(true), slow.clone()]),
        (1 | FREE, 0, vec![begins(5), fast.clone()]),
        (2 | FREE, 0, vec![begins(5), waits(true), slow.clone()]),
        (2 | FREE, PLAIN, vec![begins(5), fast.clone()]),
        (0, ASKED, vec![begins(5), waits(true), slow]),
    ];
    for (own, revoked, expected) in cases {
        let (hold, told) = hear(own, revoked, 0, WaitBounds::FOREVER);
        assert_eq!(told, expected);
        leave(hold.expect("free"));
    }
    let late = until(time());
    for (own, inner, how) in [(1, 0, WaitBounds::FOREVER), (2, 0, late), (0, 2, late)] {
        let (ended, told) = hear(own, 0, inner, how);
        assert_eq!(told, [begins(5), waits(how.is_endless()), abandoned.clone()]);
        assert!(ended.is_err());
    }
    // Whoever does not say how nests in nothing.
    force(lock, 1 | FREE, 0, 0);
    let hold = lock.lock(site).expect("free");
    assert_eq!(heard(), [begins(0), fast.clone()]);
    leave(hold);
    for revoked in [0, PLAIN] {
        force(lock, 1 | FREE, revoked, 0);
        let hold = lock.try_lock(site).expect("free");
        assert_eq!(heard(), std::slice::from_ref(&fast));
        assert_eq!((lock.try_lock(site), heard()), (None, vec![]));
        leave(hold);
    }
}

#[test]
fn a_default_lock_is_free_and_says_what_it_is() {
    let lock = RawBiased::<Alone>::default();
    assert_eq!(format!("{lock:?}"), "RawBiased { own: 0x0, revoked: 0, inner: RawMutex{0} }");
}
