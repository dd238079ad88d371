//! How contexts stand in line for a wait/wound mutex, step by step, on a machine with one thread: who
//! is first, who sleeps behind, and who wakes whom.

use crate::common::contexts::*;
use crate::common::mutexes::bits::*;
use crate::common::{
    Channel, as_participant, give_script, here, lose, machine, pass, script, script_exchange, set,
    sleeps, take_script, time, told, unplayed, wakes,
};
use lockstead_core::ww::{ContextPatience, Scheme, WwError};
use lockstead_core::{Awaited, AwaitedUse, LockError, WaitOutcome};

const ENDLESS: ContextPatience = ContextPatience::ENDLESS;
const INTERRUPTED: Result<(), WwError> = Err(WwError::Lock(LockError::Interrupted));
const TIMED_OUT: Result<(), WwError> = Err(WwError::Lock(LockError::TimedOut));

/// Makes a lock that participant 7 holds without a context, for which this context waits first.
fn awaited(ticket: u64) -> Lock {
    let lock = lock();
    force(lock, 7 | CONTEXTS | RESERVED | SLOW);
    set_holder(lock, MORTAL);
    set_first(lock, ticket);
    lock
}

fn patience_from_now() -> ContextPatience {
    ContextPatience { deadline: Some(time().after(50)), interruptible: false }
}

/// Goes through the firsts that a context may find.
#[test]
fn an_older_context_takes_the_first_place_and_a_younger_one_sleeps_behind() {
    lose(4);
    for scheme in SCHEMES {
        let [gone, older, me, younger, ended] = contexts(scheme, [4, 2, 1, 3, 5]);
        ended.finish();
        // Another one has its place, and is not told in its stead.
        context(class(scheme), 5);
        for (found, deposes) in [
            (0, true),
            (ticket(older), false),
            (ticket(younger), true),
            (ticket(gone), true),
            (ticket(ended), true),
        ] {
            for flags in [0, FOLLOWED, MORTAL, FOLLOWED | MORTAL] {
                if found == 0 && flags != 0 {
                    continue;
                }
                let lock = awaited(found | flags);
                let followed = flags & FOLLOWED;
                script(move || {
                    let mine = ticket(me) | followed;
                    let behind = found | flags | FOLLOWED;
                    assert_eq!(first(lock), if deposes { mine } else { behind });
                    WaitOutcome::Interrupted
                });
                set(|machine| machine.exchanges = 0);
                assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
                let [slept] = sleeps()[..] else { panic!() };
                assert_eq!((slept.channel, slept.counted), (Channel::Low, true));
                let mut expected = vec![];
                if deposes {
                    assert!(slept.shown.is_some(), "for the mutex");
                    // It deposes, admits, announces, and steps down.
                    assert_eq!((machine().exchanges, first(lock)), (4, 0));
                    if found != 0 && found != ticket(ended) {
                        expected.push(("context", 1));
                    }
                    if followed != 0 {
                        expected.push(("behind", 1));
                    }
                } else {
                    assert_eq!((slept.shown, slept.until), (None, None));
                    // It need not say twice that it sleeps.
                    let steps = u32::from(followed == 0);
                    assert_eq!(machine().exchanges, steps);
                    assert_eq!(first(lock), found | flags | FOLLOWED);
                }
                assert_eq!((woken(lock), machine().asleep, unplayed()), (expected, 0, 0));
            }
        }
    }
}

#[test]
fn a_context_that_holds_something_says_so_as_the_first_and_dies_behind_an_older_one() {
    for scheme in SCHEMES {
        let [older, me] = contexts(scheme, [2, 1]);
        let own = lock();
        assert_eq!(own.lock(me, here()), Ok(()));
        for found in [0, ticket(older)] {
            let lock = awaited(found);
            let dies = found != 0;
            if !dies {
                script(move || {
                    assert_eq!(first(lock), ticket(me) | MORTAL);
                    WaitOutcome::Interrupted
                });
            }
            let ended = lock.lock_how(me, &IMPATIENT, here());
            assert_eq!(ended, if dies { Err(WwError::Deadlock) } else { INTERRUPTED });
            assert_eq!((first(lock), unplayed(), wakes()), (found, 0, vec![]));
        }
    }
}

/// A signal handler that wants, in a context of its own, what its thread waits for is told.
#[test]
fn a_handler_does_not_wait_for_its_own_thread() {
    let [me, its] = contexts(Scheme::WoundWait, [1, 1]);
    for waiting in [[me, its], [its, me]] {
        let lock = awaited(0);
        script(move || {
            let recursive = Err(WwError::Lock(LockError::Recursive));
            assert_eq!(lock.lock(waiting[1], here()), recursive);
            assert_eq!(first(lock), ticket(waiting[0]));
            WaitOutcome::Interrupted
        });
        assert_eq!(lock.lock_how(waiting[0], &IMPATIENT, here()), INTERRUPTED);
        assert_eq!((sleeps().len(), wakes()), (1, vec![]));
    }
}

/// An exchange of the first that fails is made again with what was found.
#[test]
fn who_is_first_may_change_before_each_exchange() {
    let [older, me, younger] = contexts(Scheme::WoundWait, [2, 1, 3]);
    let lock = awaited(0);
    // It would become the first, and finds a younger one, then an older one behind whom it would
    // sleep, and then nobody.
    for found in [younger, older] {
        script_exchange(move || set_first(lock, ticket(found)));
    }
    script_exchange(move || set_first(lock, 0));
    script(move || {
        assert_eq!(first(lock), ticket(me));
        // Whoever steps down finds that another one sleeps behind it by now.
        script_exchange(move || set_first(lock, ticket(me) | FOLLOWED));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
    assert_eq!((first(lock), woken(lock)), (0, vec![("behind", 1)]));
    assert_eq!((sleeps().len(), unplayed()), (1, 0));
    // It takes over those that follow whom it finds.
    script_exchange(move || set_first(lock, ticket(younger) | FOLLOWED));
    script(move || {
        assert_eq!(first(lock), ticket(me) | FOLLOWED);
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
    assert_eq!(woken(lock), [("context", 1), ("behind", 1)]);
    // It finds that it was deposed as it steps down.
    script(move || {
        script_exchange(move || set_first(lock, ticket(older) | FOLLOWED));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
    assert_eq!((first(lock), woken(lock)), (ticket(older) | FOLLOWED, vec![]));
}

/// A first that an older context deposes is told, and sleeps behind that one.
#[test]
fn a_first_that_is_deposed_looks_again_and_hears_it_once() {
    let [older, me] = contexts(Scheme::WaitDie, [2, 1]);
    let lock = awaited(0);
    script(move || {
        let later = take_script();
        script(|| WaitOutcome::Interrupted);
        as_participant(2, || {
            assert_eq!(lock.lock_how(older, &IMPATIENT, here()), INTERRUPTED);
        });
        give_script(later);
        // It has stepped down, which the one that was deposed does not see yet.
        set_first(lock, ticket(older));
        WaitOutcome::Woken
    });
    script(move || {
        assert_eq!(first(lock), ticket(older) | FOLLOWED);
        WaitOutcome::Changed
    });
    script(|| WaitOutcome::Interrupted);
    assert_eq!(lock.lock_how(me, &IMPATIENT, here()), INTERRUPTED);
    let kinds: Vec<_> = sleeps().into_iter().map(|it| it.shown.is_some()).collect();
    assert_eq!((kinds, unplayed()), (vec![true, true, false, false], 0));
    assert_eq!(first(lock), ticket(older) | FOLLOWED);
}

#[test]
fn a_sleep_behind_the_first_is_told_of_and_ends_at_the_deadline() {
    let [older, me] = contexts(Scheme::WoundWait, [2, 1]);
    let lock = awaited(ticket(older));
    let address = std::ptr::from_ref(lock).addr();
    for observed in [false, true] {
        set(|machine| machine.observed = observed);
        let deadline = Some(time().after(50));
        let how = ContextPatience { deadline, interruptible: false };
        // Neither a signal nor a wake-up for nothing ends the wait.
        script(|| WaitOutcome::Interrupted);
        script(|| WaitOutcome::TimedOut);
        assert_eq!(lock.lock_how(me, &how, here()), TIMED_OUT);
        let wants = AwaitedUse::Mutex;
        let awaited = Awaited { address, wants, name: None, deadline };
        let expected: Vec<_> = [LockError::Interrupted, LockError::TimedOut]
            .into_iter()
            .flat_map(|error| [(awaited, None), (awaited, Some(Some(error)))])
            .filter(|(_, ended)| observed || ended.is_none())
            .collect();
        assert_eq!(told(), expected);
        let until: Vec<_> = sleeps().into_iter().map(|it| (it.until, it.counted)).collect();
        assert_eq!(until, [(deadline, true); 2]);
    }
    assert_eq!((first(lock), wakes()), (ticket(older) | FOLLOWED, vec![]));
}

/// A wake-up was meant for one of those behind: whoever gives up with it passes it on to the
/// first, or to a sleeper if there is none (WW-BEHIND).
#[test]
fn who_was_woken_and_gives_up_passes_the_wake_up_on() {
    let [oldest, older, me] = contexts(Scheme::WaitDie, [3, 2, 1]);
    let patience = || ContextPatience { interruptible: true, ..patience_from_now() };
    for (left, fails) in [(0, None), (ticket(older), None), (ticket(older), Some(ticket(oldest)))] {
        for outcome in [WaitOutcome::Woken, WaitOutcome::Interrupted] {
            let lock = awaited(ticket(older));
            script(move || {
                pass(50);
                set_first(lock, left);
                if let Some(found) = fails.filter(|_| outcome == WaitOutcome::Woken) {
                    script_exchange(move || set_first(lock, found));
                }
                outcome
            });
            let ended = lock.lock_how(me, &patience(), here());
            let woke = outcome == WaitOutcome::Woken;
            assert_eq!(ended, if woke { TIMED_OUT } else { INTERRUPTED });
            let (expected, wakes) = match (woke, left, fails) {
                (true, 0, _) => (0, vec![("behind", 1)]),
                (true, _, Some(found)) => (found | FOLLOWED, vec![]),
                (true, left, None) => (left | FOLLOWED, vec![]),
                (false, left, _) => (left, vec![]),
            };
            assert_eq!((first(lock), woken(lock), unplayed()), (expected, wakes, 0));
        }
    }
    // The first leaves before it can be told.
    let lock = awaited(ticket(older));
    script(move || {
        pass(50);
        script_exchange(move || set_first(lock, 0));
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock_how(me, &patience(), here()), TIMED_OUT);
    assert_eq!((first(lock), woken(lock), unplayed()), (0, vec![("behind", 1)], 0));
}

/// Whoever was woken and goes on sets *followed* again, in its own ticket or in the first's.
#[test]
fn who_was_woken_and_waits_on_says_that_others_follow() {
    for scheme in SCHEMES {
        for outcome in [WaitOutcome::Woken, WaitOutcome::Changed, WaitOutcome::Interrupted] {
            let [oldest, older, me] = contexts(scheme, [3, 2, 1]);
            let woke = outcome == WaitOutcome::Woken;
            // It becomes the first, and is not woken for the others any more: it wakes them as it
            // leaves.
            let lock = awaited(ticket(older));
            script(move || {
                set_first(lock, 0);
                outcome
            });
            script(move || {
                assert_eq!(first(lock), ticket(me) | u64::from(woke));
                set(|machine| machine.exchanges = 0);
                WaitOutcome::TimedOut
            });
            assert_eq!(lock.lock_how(me, &patience_from_now(), here()), TIMED_OUT);
            let expected = if woke { vec![("behind", 1)] } else { vec![] };
            assert_eq!((first(lock), woken(lock), machine().exchanges), (0, expected, 1));
            // It sleeps behind the next first, and says so even if that says so already: the look
            // may be older than the wake-up. An exchange that fails is no duty done.
            let lock = awaited(ticket(older));
            script(move || {
                set_first(lock, ticket(oldest) | FOLLOWED);
                set(|machine| machine.exchanges = 0);
                if woke {
                    script_exchange(move || set_first(lock, ticket(older) | FOLLOWED));
                }
                outcome
            });
            script(move || {
                assert_eq!(machine().exchanges, if woke { 2 } else { 0 });
                let behind = if woke { older } else { oldest };
                assert_eq!(first(lock), ticket(behind) | FOLLOWED);
                set_first(lock, ticket(older));
                WaitOutcome::TimedOut
            });
            assert_eq!(lock.lock_how(me, &patience_from_now(), here()), TIMED_OUT);
            // It owes nothing any more.
            assert_eq!((first(lock), woken(lock), unplayed()), (ticket(older), vec![], 0));
            [oldest, older, me].iter().for_each(|it| it.finish());
        }
    }
}

/// A first that takes the lock leaves its place, wakes those behind, and sends the contexts away.
#[test]
fn a_first_that_takes_the_lock_wakes_those_behind() {
    for scheme in SCHEMES {
        for (followed, late) in [(0, false), (FOLLOWED, false), (FOLLOWED, true)] {
            let [me] = contexts(scheme, [1]);
            let lock = awaited(0);
            script(move || {
                set_first(lock, ticket(me) | if late { 0 } else { followed });
                force(lock, CONTEXTS | RESERVED);
                script_exchange(|| {});
                if late {
                    script_exchange(move || set_first(lock, ticket(me) | FOLLOWED));
                }
                set(|machine| machine.exchanges = 0);
                WaitOutcome::Interrupted
            });
            assert_eq!(lock.lock(me, here()), Ok(()));
            // It takes, leaves, and dismisses.
            assert_eq!(machine().exchanges, 3 + u32::from(late));
            let expected = if followed == 0 { vec![] } else { vec![("behind", 1)] };
            assert_eq!((first(lock), woken(lock)), (0, expected));
            assert_eq!((peek(lock).contexts(), holder(lock), unplayed()), (false, ticket(me), 0));
            me.finish();
        }
    }
}

/// A first that was left behind by `fork` never leaves: a holder erases it.
#[test]
fn a_first_left_behind_by_fork_is_erased() {
    lose(4);
    for scheme in SCHEMES {
        let [gone, me] = contexts(scheme, [4, 1]);
        for alone in [false, true] {
            for followed in [0, FOLLOWED] {
                let lock = lock();
                force(lock, CONTEXTS | RESERVED);
                set_first(lock, ticket(gone) | followed);
                assert!(lock.try_lock((!alone).then_some(me), here()));
                let expected = if followed == 0 { vec![] } else { vec![("behind", 1)] };
                assert_eq!((first(lock), woken(lock)), (0, expected));
                assert!(!peek(lock).contexts());
            }
        }
        [gone, me].iter().for_each(|it| it.finish());
    }
}

/// A thread that has an endless patience and is told of nothing goes on waiting.
#[test]
fn a_wait_without_bounds_ends_with_the_lock() {
    let [older, me] = contexts(Scheme::WaitDie, [2, 1]);
    let lock = awaited(ticket(older));
    for outcome in [WaitOutcome::Woken, WaitOutcome::Changed, WaitOutcome::Interrupted] {
        script(move || outcome);
    }
    script(move || {
        set_first(lock, 0);
        force(lock, CONTEXTS | RESERVED);
        WaitOutcome::Changed
    });
    assert_eq!(lock.lock_how(me, &ENDLESS, here()), Ok(()));
    assert_eq!((me.acquired(), unplayed(), sleeps().len()), (1, 0, 4));
    assert!(lock.is_held_in(me) && !peek(lock).contexts());
}
