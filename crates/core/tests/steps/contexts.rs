//! What contexts of a wait/wound mutex say of themselves and do to each other, step by step, on a
//! machine with one thread: who backs off, who is wounded, and when a wound heals.

use crate::common::contexts::*;
use crate::common::mutexes::{bits::*, slot};
use crate::common::{
    as_participant, give_script, here, machine, pass, script, script_exchange, script_exchanged,
    script_pause, set, sleeps, take_script, time, unplayed, wakes,
};
use lockstead_core::word::Word;
use lockstead_core::ww::{CONTEXTS_PER_THREAD, Class, Context, ContextPatience, Scheme, WwError};
use lockstead_core::{LockError, Nanos, RawWwMutex, WaitBounds, WaitOutcome};

const ENDLESS: ContextPatience = ContextPatience::ENDLESS;
const INTERRUPTED: Result<(), WwError> = Err(WwError::Lock(LockError::Interrupted));
const DEADLOCK: Result<(), WwError> = Err(WwError::Deadlock);

/// Has the context take a free lock of its own, so that it holds something.
fn burden(context: Begun, number: u32) -> Lock {
    let own = lock();
    as_participant(number, || assert_eq!(own.lock(context, here()), Ok(())));
    own
}

/// Tells whether the context, which holds something, backs off rather than wait for a lock without
/// contexts: it is wounded then.
fn is_wounded(context: Begun, number: u32) -> bool {
    let other = lock();
    force(other, 7);
    set_holder(other, MORTAL);
    let later = take_script();
    script(|| WaitOutcome::Interrupted);
    let ended = as_participant(number, || other.lock_how(context, &IMPATIENT, here()));
    // Who backs off has not slept.
    assert_eq!(take_script().len(), usize::from(ended == DEADLOCK));
    give_script(later);
    assert_eq!(first(other), 0);
    wakes();
    sleeps();
    assert!(ended == DEADLOCK || ended == INTERRUPTED);
    ended == DEADLOCK
}

#[test]
fn contexts_count_up_and_have_a_place_each_until_they_end() {
    let [one, two] = SCHEMES.map(class);
    assert_eq!((one.scheme(), two.scheme()), (Scheme::WaitDie, Scheme::WoundWait));
    let begun: Vec<_> = (0..CONTEXTS_PER_THREAD).map(|_| context(two, 3)).collect();
    for (number, context) in (0..).zip(&begun) {
        assert_eq!(ticket(context), 3 << 44 | number << 42 | number << 2);
        assert_eq!((context.stamp(), context.acquired()), (number, 0));
        assert_eq!(context.scheme(), Scheme::WoundWait);
    }
    as_participant(3, || assert!(Context::begin(one).is_none(), "whatever the class"));
    assert_eq!(ticket(context(one, 2)), 2 << 44);
    begun[2].finish();
    let next = context(two, 3);
    assert_eq!((ticket(next), next.stamp()), (3 << 44 | 2 << 42 | 4 << 2, 4));
    as_participant(3, || assert!(Context::begin(one).is_none()));
    let text = "Context { stamp: 4, acquired: 0, scheme: WoundWait }";
    assert_eq!(format!("{next:?}"), text);
}

#[test]
fn a_lock_names_its_holder_and_a_context_counts_its_locks() {
    type Take = fn(Lock, Begun) -> bool;
    type TakeAlone = fn(Lock) -> bool;
    let [context] = contexts(Scheme::WoundWait, [1]);
    let [a, b] = [lock(), lock()];
    let says = |lock: Lock| {
        assert_eq!(lock.is_locked(), lock.owner().is_some());
        (lock.owner(), lock.is_mine(), lock.is_held_in(context), holder(lock))
    };
    assert_eq!(says(a), (None, false, false, 0));
    // By the fast path, by the warm one, by a try of both kinds, past contexts, and slowly.
    let ways: [(u64, u32, Take); 7] = [
        (0, 1, |lock, context| lock.lock(context, here()).is_ok()),
        (ONE_SLOW, 1, |lock, context| lock.lock(context, here()).is_ok()),
        (ONE_SLOW, 1, |lock, context| lock.lock_slow(context, &ENDLESS, here()).is_ok()),
        (0, 1, |lock, context| lock.try_lock(Some(context), here())),
        (ONE_SLOW, 1, |lock, context| lock.try_lock(Some(context), here())),
        (CONTEXTS | RESERVED, 2, |lock, context| lock.try_lock(Some(context), here())),
        // It becomes the first, admits, takes, leaves, and dismisses.
        (CONTEXTS | RESERVED, 5, |lock, context| lock.lock(context, here()).is_ok()),
    ];
    for (before, exchanges, take) in ways {
        force(a, before);
        set(|machine| machine.exchanges = 0);
        assert!(take(a, context));
        assert_eq!(machine().exchanges, exchanges, "{before:x}");
        assert_eq!(says(a), (Some(slot(1)), true, true, ticket(context)));
        assert_eq!((context.acquired(), first(a)), (1, 0));
        assert_eq!(b.lock(context, here()), Ok(()));
        assert_eq!(context.acquired(), 2);
        assert_eq!(a.lock(context, here()), Err(WwError::Already));
        assert!(!a.try_lock(Some(context), here()));
        assert_eq!(context.acquired(), 2);
        // SAFETY: this participant has taken both in the context.
        unsafe {
            b.unlock(Some(context));
            assert_eq!((says(b), context.acquired()), ((None, false, false, 0), 1));
            a.unlock(Some(context));
        }
        assert_eq!((says(a), context.acquired()), ((None, false, false, 0), 0));
        assert!(!peek(a).contexts());
    }
    // Without a context.
    let ways: [(u64, u32, TakeAlone); 6] = [
        (0, 1, |lock| lock.lock_alone(&WaitBounds::FOREVER, here()).is_ok()),
        (ONE_SLOW, 1, |lock| lock.lock_alone(&WaitBounds::FOREVER, here()).is_ok()),
        (CONTEXTS | RESERVED, 2, |lock| lock.lock_alone(&WaitBounds::FOREVER, here()).is_ok()),
        (0, 1, |lock| lock.try_lock(None, here())),
        (ONE_SLOW, 1, |lock| lock.try_lock(None, here())),
        (CONTEXTS | RESERVED, 2, |lock| lock.try_lock(None, here())),
    ];
    for (before, exchanges, take) in ways {
        force(a, before);
        set(|machine| machine.exchanges = 0);
        assert!(take(a));
        assert_eq!(machine().exchanges, exchanges, "{before:x}");
        assert_eq!(says(a), (Some(slot(1)), true, false, MORTAL));
        let recursive = LockError::Recursive;
        assert_eq!(a.lock(context, here()), Err(WwError::Lock(recursive)));
        assert_eq!(a.lock_alone(&WaitBounds::FOREVER, here()), Err(recursive));
        assert_eq!((holder(a), first(a)), (MORTAL, 0));
        as_participant(2, || assert!(!a.is_mine() && !a.try_lock(None, here())));
        // SAFETY: this participant has just taken it.
        unsafe { a.unlock(None) };
        assert_eq!((says(a), context.acquired()), ((None, false, false, 0), 0));
    }
    assert_eq!((sleeps(), wakes()), (vec![], vec![]));
}

#[test]
fn a_release_erases_the_holder_before_and_wakes_whom_it_must() {
    let lock = lock();
    force(lock, 1 | WAITERS | SLOW);
    set_holder(lock, MORTAL);
    script_exchange(move || assert_eq!(holder(lock), 0));
    // SAFETY: the word says that this participant holds it.
    unsafe { lock.unlock(None) };
    assert_eq!((peek(lock), woken(lock)), (Word(SLOW), vec![("base", 1)]));
    force(lock, 1 | WAITERS | SLOW);
    // SAFETY: as above, and the holder is erased.
    unsafe { lock.unlock_slow() };
    assert_eq!((peek(lock), woken(lock), unplayed()), (Word(SLOW), vec![("base", 1)], 0));
    let fresh = RawWwMutex::<crate::common::Alone>::default();
    assert_eq!(format!("{fresh:?}"), "RawWwMutex{0}");
}

#[test]
fn one_without_a_context_that_gives_up_has_taken_nothing() {
    let lock = lock();
    force(lock, 2);
    script(|| WaitOutcome::TimedOut);
    let how = WaitBounds { deadline: Some(time().after(5)), ..WaitBounds::FOREVER };
    assert_eq!(lock.lock_alone(&how, here()), Err(LockError::TimedOut));
    assert_eq!((lock.owner(), holder(lock)), (Some(slot(2)), 0));
}

/// Goes through who waits for whom: the scheme, which is older, and whether the one that waits
/// holds something.
#[test]
fn a_context_that_waits_judges_the_holder() {
    for scheme in SCHEMES {
        for (older, burdened) in [(true, true), (true, false), (false, true), (false, false)] {
            let class = class(scheme);
            let (me, other) = match older {
                true => (context(class, 1), context(class, 2)),
                false => {
                    let other = context(class, 2);
                    (context(class, 1), other)
                }
            };
            let own = burdened.then(|| burden(me, 1));
            let lock = burden(other, 2);
            let dies = scheme == Scheme::WaitDie && burdened && !older;
            let wounds = scheme == Scheme::WoundWait && older;
            set(|machine| machine.pauses = 0);
            if !dies {
                script(move || {
                    assert_eq!(first(lock), ticket(me) | if burdened { MORTAL } else { 0 });
                    assert!(peek(lock).contexts() && peek(lock).reserved());
                    WaitOutcome::Interrupted
                });
            }
            set(|machine| machine.exchanges = 0);
            let ended = lock.lock_how(me, &IMPATIENT, here());
            assert_eq!(ended, if dies { DEADLOCK } else { INTERRUPTED }, "{scheme:?}");
            // It becomes the first, admits contexts, wounds, announces that it sleeps, and leaves.
            let steps = 3 + u32::from(wounds) + u32::from(!dies);
            assert_eq!((machine().exchanges, machine().pauses), (steps, 0));
            assert_eq!((first(lock), me.acquired()), (0, u32::from(burdened)));
            assert_eq!(woken(lock), if wounds { vec![("context", 1)] } else { vec![] });
            assert_eq!(sleeps().len(), usize::from(!dies));
            assert_eq!(is_wounded(other, 2), wounds, "{scheme:?} {older} {burdened}");
            assert!(own.is_none_or(|_| !is_wounded(me, 1)));
            [me, other].iter().for_each(|it| it.finish());
        }
    }
}

#[test]
fn a_holder_that_is_wounded_or_alone_or_gone_is_judged_without_a_pause() {
    let [me, oldest, other] = contexts(Scheme::WoundWait, [3, 1, 2]);
    let waits = |lock: Lock| {
        set(|machine| machine.pauses = 0);
        script(|| WaitOutcome::Interrupted);
        let ended = as_participant(3, || lock.lock_how(me, &IMPATIENT, here()));
        assert_eq!((ended, machine().pauses, unplayed()), (INTERRUPTED, 0, 0));
        assert_eq!(sleeps().len(), 1);
        woken(lock)
    };
    // By another one already, which has told it.
    let held = burden(other, 2);
    script(|| WaitOutcome::Interrupted);
    assert_eq!(held.lock_how(oldest, &IMPATIENT, here()), INTERRUPTED);
    assert_eq!((woken(held), sleeps().len()), (vec![("context", 1)], 1));
    assert_eq!(waits(held), []);
    assert!(is_wounded(other, 2));
    let alone = lock();
    force(alone, 5);
    set_holder(alone, MORTAL);
    assert_eq!(waits(alone), []);
    // It has released the lock before the one that waits has looked.
    let free = lock();
    force(free, 5);
    script_exchange(|| {});
    script_exchange(move || force(free, 0));
    assert_eq!(as_participant(3, || free.lock_how(me, &ENDLESS, here())), Ok(()));
    assert_eq!((machine().pauses, holder(free), sleeps()), (0, ticket(me), vec![]));
}

#[test]
fn a_holder_that_has_not_said_who_it_is_is_looked_at_again() {
    for scheme in SCHEMES {
        let [older, me] = contexts(scheme, [2, 1]);
        let own = burden(me, 1);
        let lock = lock();
        force(lock, 2);
        set(|machine| machine.pauses = 0);
        (0..63).for_each(|_| script_pause(|| {}));
        script_pause(|| assert_eq!(machine().pauses, 64));
        let began = time();
        for _ in 0..7 {
            script(|| WaitOutcome::TimedOut);
        }
        script(move || {
            // It says so while the other one looks.
            script_pause(|| {});
            script_pause(move || set_holder(lock, ticket(older)));
            set(|machine| machine.pauses = 0);
            WaitOutcome::TimedOut
        });
        let waits = scheme == Scheme::WoundWait;
        if waits {
            script(|| WaitOutcome::Interrupted);
        }
        let ended = lock.lock_how(me, &IMPATIENT, here());
        assert_eq!(ended, if waits { INTERRUPTED } else { DEADLOCK });
        assert_eq!((machine().pauses, unplayed()), (2, 0));
        let mut at = began;
        let looks = [20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 1_000_000, 1_000_000];
        let expected = looks.map(|wait| {
            at = at.after(wait);
            Some(at)
        });
        let until: Vec<_> = sleeps().into_iter().map(|it| it.until).collect();
        assert_eq!(until[..8], expected);
        assert_eq!((wakes(), own.is_mine()), (vec![], true));
        // The lock comes free: no more looks are needed.
        force(lock, 2);
        set_holder(lock, 0);
        script(move || {
            force(lock, peek(lock).0 & !0xf_ffff);
            WaitOutcome::Interrupted
        });
        assert_eq!(lock.lock(me, here()), Ok(()));
        assert_eq!((me.acquired(), unplayed()), (2, 0));
        sleeps();
    }
}

/// The next look comes no later than the deadline, and only the deadline ends the wait.
#[test]
fn a_context_gives_up_at_its_deadline() {
    for (deadline, looks) in [(10_000, vec![10_000]), (30_000, vec![20_000, 30_000])] {
        for late in [0, 1] {
            let [me] = contexts(Scheme::WaitDie, [1]);
            let lock = lock();
            force(lock, 2);
            let began = time();
            for look in &looks {
                let at = began.after(*look + late);
                script(move || {
                    pass(at.since(time()));
                    WaitOutcome::Interrupted
                });
            }
            let deadline = Some(began.after(deadline));
            let patience = ContextPatience { deadline, interruptible: false };
            let ended = lock.lock_how(me, &patience, here());
            assert_eq!(ended, Err(WwError::Lock(LockError::TimedOut)));
            let until: Vec<_> = sleeps().into_iter().map(|it| it.until.expect("one")).collect();
            let at = |look: u64, index: u64| began.after(look + if index > 0 { late } else { 0 });
            assert_eq!(until[0], at(looks[0], 0));
            assert_eq!(until.last().copied(), deadline.map(|deadline: Nanos| deadline));
            assert_eq!((unplayed(), first(lock)), (0, 0));
            me.finish();
        }
    }
}

/// A wound is meant for one context: of its thread, its place and its stamp.
#[test]
fn a_wound_reaches_no_other_context() {
    // The same stamp in another class, at another place.
    let [wounding, other] = [class(Scheme::WoundWait), class(Scheme::WoundWait)];
    let me = context(wounding, 1);
    let unused = context(other, 2);
    let its = context(other, 2);
    let meant = context(wounding, 2);
    assert_eq!(its.stamp(), meant.stamp());
    burden(unused, 2);
    burden(its, 2);
    let lock = burden(meant, 2);
    script(|| WaitOutcome::Interrupted);
    assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
    assert_eq!(woken(lock), [("context", 1)]);
    assert!(!is_wounded(unused, 2) && !is_wounded(its, 2) && is_wounded(meant, 2));
    // One that has ended, whose place another one has by now: the holder may be another soon.
    meant.finish();
    let next = context(wounding, 2);
    burden(next, 2);
    set_holder(lock, ticket(meant));
    let began = time();
    set(|machine| machine.pauses = 0);
    sleeps();
    script(|| WaitOutcome::Interrupted);
    assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
    assert_eq!((machine().pauses, sleeps()[0].until), (64, Some(began.after(20_000))));
    assert_eq!(woken(lock), []);
    assert!(!is_wounded(next, 2));
}

/// Has `older` want what `younger` holds, which is wounded by that.
fn wound(older: (Begun, u32), held: Lock) {
    let later = take_script();
    sleeps();
    script(|| WaitOutcome::Interrupted);
    let ended = as_participant(older.1, || held.lock_how(older.0, &IMPATIENT, here()));
    give_script(later);
    assert_eq!((ended, woken(held), sleeps().len()), (INTERRUPTED, vec![("context", 1)], 1));
}

#[test]
fn a_context_that_is_wounded_while_it_waits_is_woken_and_backs_off() {
    let [older, me] = contexts(Scheme::WoundWait, [2, 1]);
    let own = burden(me, 1);
    let other = lock();
    force(other, 3);
    set_holder(other, MORTAL);
    script(move || {
        wound((older, 2), own);
        WaitOutcome::Interrupted
    });
    assert_eq!(other.lock(me, here()), DEADLOCK);
    assert_eq!((first(other), me.acquired(), unplayed()), (0, 1, 0));
    // It has to give up all, whatever it calls.
    assert_eq!(other.lock_slow(me, &ENDLESS, here()), DEADLOCK);
}

#[test]
fn a_wound_heals_when_a_context_that_holds_nothing_takes_or_waits() {
    for (free, slowly, heals) in
        [(true, true, true), (true, false, false), (false, true, true), (false, false, true)]
    {
        let [older, me] = contexts(Scheme::WoundWait, [2, 1]);
        let own = burden(me, 1);
        wound((older, 2), own);
        assert!(is_wounded(me, 1));
        // SAFETY: this participant holds it in this context.
        unsafe { own.unlock(Some(me)) };
        let wanted = lock();
        if !free {
            force(wanted, 3);
            set_holder(wanted, MORTAL);
            script(move || {
                force(wanted, 0);
                WaitOutcome::Interrupted
            });
        }
        let taken = match slowly {
            true => wanted.lock_slow(me, &ENDLESS, here()),
            false => wanted.lock(me, here()),
        };
        assert_eq!((taken, me.acquired(), unplayed()), (Ok(()), 1, 0));
        assert_eq!(is_wounded(me, 1), !heals, "{free} {slowly}");
        [older, me].iter().for_each(|it| it.finish());
    }
}

/// A wound may come late, when the context has released what was wanted and waits for something
/// else: one that holds nothing goes on waiting (WW-BARE).
#[test]
fn a_context_that_holds_nothing_never_backs_off() {
    let [older, me] = contexts(Scheme::WoundWait, [2, 1]);
    let [wanted, released] = [lock(), lock()];
    force(wanted, 3);
    set_holder(wanted, MORTAL);
    force(released, 1);
    set_holder(released, ticket(me));
    script(move || {
        wound((older, 2), released);
        WaitOutcome::Interrupted
    });
    script(move || {
        force(wanted, 0);
        WaitOutcome::Interrupted
    });
    assert_eq!(wanted.lock(me, here()), Ok(()));
    // The alarm was heard once: it slept again.
    assert_eq!((me.acquired(), unplayed()), (1, 0));
}

/// A context judges itself by a first that waits, and the first is told of it in wait-die.
#[test]
fn whoever_takes_a_lock_for_which_another_context_waits_judges_itself() {
    for scheme in SCHEMES {
        for (older, mortal) in [(true, true), (true, false), (false, true), (false, false)] {
            let class = class(scheme);
            let elder = context(class, 2);
            let me = context(class, 1);
            let younger = context(class, 2);
            let waiting = if older { elder } else { younger };
            let flags = if mortal { MORTAL } else { 0 };
            for alone in [false, true] {
                let lock = lock();
                force(lock, CONTEXTS | RESERVED);
                set_first(lock, ticket(waiting) | flags);
                set(|machine| machine.exchanges = 0);
                assert!(lock.try_lock((!alone).then_some(me), here()));
                assert_eq!(machine().exchanges, 1);
                assert_eq!(holder(lock), if alone { MORTAL } else { ticket(me) });
                assert_eq!(first(lock), ticket(waiting) | flags);
                assert!(peek(lock).contexts());
                let tells = scheme == Scheme::WaitDie && mortal && !older && !alone;
                assert_eq!(woken(lock), if tells { vec![("context", 1)] } else { vec![] });
                if !alone {
                    let wounds = scheme == Scheme::WoundWait && older;
                    assert_eq!(is_wounded(me, 1), wounds, "{scheme:?} {older} {mortal}");
                    // SAFETY: this participant has taken it in this context.
                    unsafe { lock.unlock(Some(me)) };
                    assert_eq!(me.acquired(), 0);
                }
            }
            [elder, me, younger].iter().for_each(|it| it.finish());
        }
    }
}

/// A context that has left the first's place judges itself by one that came since.
#[test]
fn a_context_that_takes_the_lock_leaves_the_first_place_and_looks_at_who_came() {
    let [older, me] = contexts(Scheme::WoundWait, [2, 1]);
    let lock = lock();
    force(lock, 3);
    set_holder(lock, MORTAL);
    script(move || {
        force(lock, CONTEXTS | RESERVED);
        // It takes the lock, and leaves the place.
        script_exchanged(|| {});
        script_exchanged(move || {
            assert_eq!((first(lock), holder(lock)), (0, ticket(me)));
            set_first(lock, ticket(older));
        });
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(me, here()), Ok(()));
    assert_eq!((unplayed(), first(lock)), (0, ticket(older)));
    assert!(peek(lock).contexts() && is_wounded(me, 1));
}

#[test]
fn classes_begin_with_their_first_context() {
    for scheme in SCHEMES {
        let class = Class::<crate::common::Alone>::new(scheme);
        assert_eq!(as_participant(4, || Context::begin(&class)).expect("a place").stamp(), 0);
    }
}
