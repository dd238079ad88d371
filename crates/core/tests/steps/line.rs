//! What the locks with a line do, step by step, on a machine with one thread: the fair mutex and the
//! exact condition variable.

use crate::common::{
    Alone, Channel, U32, as_participant, give_script, lose, machine, script, script_access,
    script_exchange, script_exchanged, set, sleeps, take_script, time, told, unplayed, wakes,
};
use lockstead_core::{
    Address, Atomic32, Awaited, AwaitedUse, LockError, Ordering, Place, RawExactCondvar,
    RawFifoMutex, ShownSleep, Slot, WaitBounds, WaitOutcome,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Mutex = &'static RawFifoMutex<Alone>;
type Condvar = &'static RawExactCondvar<Alone>;
type Standing = &'static Place<Alone>;

const FOREVER: WaitBounds<'static, Alone> = WaitBounds::FOREVER;
const INTERRUPTIBLE: WaitBounds<'static, Alone> = WaitBounds { interruptible: true, ..FOREVER };
const INTERRUPTED: Result<(), LockError> = Err(LockError::Interrupted);

fn mutex() -> Mutex {
    Box::leak(Box::new(RawFifoMutex::default()))
}

fn condvar() -> Condvar {
    Box::leak(Box::new(RawExactCondvar::default()))
}

fn place() -> Standing {
    Box::leak(Box::new(Place::default()))
}

fn owner(mutex: Mutex) -> u32 {
    mutex.owner().map_or(0, Slot::get)
}

fn unlock(mutex: Mutex, number: u32) {
    assert_eq!(owner(mutex), number);
    // SAFETY: this participant has the mutex, as the line above asserts.
    as_participant(number, || unsafe { mutex.unlock() });
}

/// Has a participant do something that sleeps, and stay there for ever.
fn stays<R>(number: u32, sleeps: impl FnOnce() -> R) {
    let asleep = machine().asleep;
    script(|| resume_unwind(Box::new(())));
    let ended = as_participant(number, || catch_unwind(AssertUnwindSafe(sleeps)));
    assert!(ended.is_err(), "it does not sleep");
    set(|machine| machine.asleep = asleep);
}

/// Makes a mutex that participant 7 has, with these in the line.
fn awaited(line: &[u32]) -> (Mutex, Vec<Standing>) {
    let mutex = mutex();
    assert!(as_participant(7, || mutex.try_lock()));
    (mutex, line.iter().map(|number| joins(mutex, *number)).collect())
}

fn joins(mutex: Mutex, number: u32) -> Standing {
    let place = place();
    stays(number, || mutex.lock_at(place, &FOREVER));
    place
}

fn waits(condvar: Condvar, number: u32) -> Standing {
    let place = place();
    stays(number, || condvar.wait_at(place, || {}, &FOREVER));
    place
}

fn state(place: Standing) -> String {
    format!("{place:?}")
}

/// Releases the mutex for one owner after the other, and returns who has it in turn.
fn goes_on(mutex: Mutex) -> Vec<u32> {
    let mut owners = vec![];
    loop {
        let now = owner(mutex);
        owners.push(now);
        if now == 0 {
            return owners;
        }
        unlock(mutex, now);
    }
}

/// Returns how often something was woken since the last call, which each time was one thread.
fn woken() -> usize {
    let all = wakes();
    assert!(all.iter().all(|wake| wake.1 == 1), "{all:?}");
    all.len()
}

#[test]
fn a_free_fifo_mutex_is_taken_and_released_by_one_exchange() {
    let mutex = mutex();
    assert_eq!((mutex.is_locked(), owner(mutex)), (false, 0));
    assert_eq!(mutex.lock_lazily(|| unreachable!("it is free")), Ok(()));
    assert_eq!((mutex.is_locked(), owner(mutex), machine().exchanges), (true, 1, 1));
    assert_eq!(format!("{mutex:?}"), "RawFifoMutex{owner=1}");
    assert_eq!(mutex.id().0, std::ptr::from_ref(mutex).addr());
    assert!(!mutex.try_lock());
    assert_eq!(mutex.lock_lazily(|| FOREVER), Err(LockError::Recursive));
    set(|machine| machine.exchanges = 0);
    unlock(mutex, 1);
    assert_eq!((mutex.is_locked(), machine().exchanges), (false, 1));
    assert!(mutex.try_lock());
    assert_eq!((owner(mutex), told(), wakes(), sleeps()), (1, vec![], vec![], vec![]));
    assert_eq!((size_of::<RawFifoMutex<Alone>>(), size_of::<RawExactCondvar<Alone>>()), (24, 16));
}

#[test]
fn a_thread_that_has_not_joined_takes_a_free_fifo_mutex_at_the_gate() {
    let mutex = mutex();
    set(|machine| machine.stranger = true);
    assert_eq!(mutex.lock_lazily(|| FOREVER), Ok(()));
    assert_eq!((owner(mutex), format!("{mutex:?}")), (1, "RawFifoMutex{owner=1}".into()));
    unlock(mutex, 1);
    set(|machine| machine.stranger = true);
    assert!(mutex.try_lock());
}

#[test]
fn a_fifo_mutex_goes_from_one_to_the_next_in_the_line() {
    let (mutex, places) = awaited(&[2, 3, 4]);
    assert_eq!(format!("{mutex:?}"), "RawFifoMutex{owner=7 queued}");
    let states = || places.iter().map(|place| state(place)).collect::<Vec<_>>();
    assert_eq!(states(), [2, 3, 4].map(|slot| format!("Place{{slot={slot} state=0}}")));
    for (at, number) in [2, 3, 4].into_iter().enumerate() {
        unlock(mutex, if at == 0 { 7 } else { number - 1 });
        assert!(!as_participant(5, || mutex.try_lock()), "nobody comes between");
        assert_eq!((owner(mutex), woken()), (number, 1));
        let expected: Vec<_> = (2..5)
            .map(|slot| {
                format!("Place{{slot={slot} state={}}}", if slot <= number { 2 } else { 0 })
            })
            .collect();
        assert_eq!(states(), expected);
    }
    // Nobody is left: the release needs no gate.
    assert_eq!(format!("{mutex:?}"), "RawFifoMutex{owner=4}");
    set(|machine| machine.exchanges = 0);
    unlock(mutex, 4);
    assert_eq!((owner(mutex), machine().exchanges, woken()), (0, 1, 0));
}

#[test]
fn a_waiter_sleeps_at_its_place_until_it_is_granted() {
    for observed in [false, true] {
        for how in [FOREVER, WaitBounds { deadline: Some(time().after(900_000)), ..FOREVER }] {
            let (mutex, _) = awaited(&[]);
            set(|machine| machine.observed = observed);
            script(|| WaitOutcome::Changed);
            script(move || {
                unlock(mutex, 7);
                assert_eq!(owner(mutex), 1);
                WaitOutcome::Woken
            });
            sleeps();
            assert_eq!(mutex.lock_lazily(move || how), Ok(()));
            let lock = mutex.id().0;
            let wants = AwaitedUse::Mutex;
            let shown = ShownSleep { lock, wants, is_endless: how.deadline.is_none() };
            let all: Vec<_> = sleeps();
            assert_eq!(all.len(), 2);
            for slept in all {
                assert_eq!((slept.channel, slept.until), (Channel::Sequence, how.deadline));
                assert_eq!((slept.shown, slept.counted), (Some(shown), true));
            }
            let awaited = Awaited { address: lock, wants, name: None, deadline: how.deadline };
            let mut expected = vec![(awaited, None)];
            expected.extend(observed.then_some((awaited, Some(None))));
            assert_eq!((told(), unplayed(), machine().asleep), (expected, 0, 0));
            unlock(mutex, 1);
            assert_eq!((owner(mutex), woken()), (0, 1));
            set(|machine| machine.observed = false);
        }
    }
}

/// It leaves the line wherever it stands there, for whatever reason.
#[test]
fn a_waiter_that_gives_up_leaves_the_line_to_the_others() {
    let token: &'static U32 = Box::leak(Box::new(U32::ZERO));
    let soon = WaitBounds { deadline: Some(time().after(400)), ..FOREVER };
    let cancellable = WaitBounds { cancel: Some(token), ..FOREVER };
    for before in [&[][..], &[2], &[2, 3]] {
        for behind in [&[][..], &[4], &[4, 5]] {
            for (how, outcome, error) in [
                (INTERRUPTIBLE, WaitOutcome::Interrupted, LockError::Interrupted),
                (soon, WaitOutcome::TimedOut, LockError::TimedOut),
                (cancellable, WaitOutcome::Cancelled, LockError::Cancelled),
            ] {
                let (mutex, _) = awaited(before);
                token.store(0, Ordering::Relaxed);
                let late = how.deadline.is_some_and(|deadline| time() >= deadline);
                if !late {
                    script(move || {
                        for number in behind {
                            joins(mutex, *number);
                        }
                        if outcome == WaitOutcome::Cancelled {
                            token.store(1, Ordering::Relaxed);
                        }
                        outcome
                    });
                }
                assert_eq!(mutex.lock_at(place(), &how), Err(error));
                assert_eq!((unplayed(), woken(), owner(mutex)), (0, 0, 7));
                let behind = if late { &[][..] } else { behind };
                let expected = [&[7], before, behind, &[0]].concat();
                assert_eq!(goes_on(mutex), expected);
                assert_eq!(woken(), before.len() + behind.len());
                assert!(as_participant(6, || mutex.try_lock()));
            }
        }
    }
}

/// It was called before it could leave: it waits for the grant, and has the mutex.
#[test]
fn a_waiter_that_gives_up_and_is_called_has_been_called() {
    let (mutex, _) = awaited(&[]);
    let standing = place();
    // Where its state is, the first wake-up tells.
    script(move || {
        unlock(mutex, 7);
        WaitOutcome::Woken
    });
    assert_eq!(mutex.lock_at(standing, &INTERRUPTIBLE), Ok(()));
    let [(Address(at), 1)] = wakes()[..] else { panic!("one") };
    unlock(mutex, 1);
    // SAFETY: the address of an atomic in a place that is never freed.
    let word: &'static U32 = unsafe { &*std::ptr::with_exposed_provenance(at) };
    // It is granted while it goes to the gate.
    for halfway in [false, true] {
        assert!(as_participant(7, || mutex.try_lock()));
        script(move || {
            script_exchange(move || {
                if halfway {
                    // The caller has called it, and not granted.
                    script_access(word, || {});
                    script_access(word, || resume_unwind(Box::new(())));
                    let ended = catch_unwind(AssertUnwindSafe(|| unlock(mutex, 7)));
                    assert!(ended.is_err() && word.load(Ordering::Relaxed) == 1);
                } else {
                    unlock(mutex, 7);
                }
            });
            WaitOutcome::Interrupted
        });
        if halfway {
            script(|| WaitOutcome::Changed);
            script(move || {
                word.store(2, Ordering::Release);
                WaitOutcome::Woken
            });
        }
        sleeps();
        as_participant(1, || assert_eq!(mutex.lock_at(standing, &INTERRUPTIBLE), Ok(())));
        assert_eq!((owner(mutex), unplayed()), (1, 0));
        let all = sleeps();
        assert_eq!(all.len(), if halfway { 3 } else { 1 });
        assert!(all.iter().all(|it| it.shown.is_some() && it.until.is_none()));
        unlock(mutex, 1);
        assert_eq!(owner(mutex), 0);
        wakes();
    }
}

/// Its thread has the gate: a handler must not wait for that.
#[test]
fn a_handler_at_the_gate_is_refused() {
    let (mutex, _) = awaited(&[]);
    let condvar = condvar();
    // The exchange of the mutex, of the gate, and at the gate.
    script_exchange(|| {});
    script_exchange(|| {});
    script_exchange(move || {
        assert_eq!(mutex.lock_lazily(|| FOREVER), Err(LockError::Recursive));
    });
    script(|| WaitOutcome::Interrupted);
    assert_eq!(mutex.lock_lazily(|| INTERRUPTIBLE), INTERRUPTED);
    assert_eq!((goes_on(mutex), unplayed()), (vec![7, 0], 0));
    waits(condvar, 2);
    script_exchanged(move || {
        let refused = LockError::Recursive;
        assert_eq!(condvar.notify_one(), Err(refused));
        assert_eq!(condvar.notify_all(), Err(refused));
        let release = || unreachable!("it does not wait");
        assert_eq!(condvar.wait(release, &FOREVER), Err(refused));
    });
    assert_eq!(condvar.notify_one(), Ok(true));
    assert_eq!((unplayed(), woken()), (0, 1));
}

#[test]
fn what_fork_left_behind_is_not_waited_for() {
    let (mutex, _) = awaited(&[]);
    lose(7);
    assert_eq!(mutex.lock_lazily(|| FOREVER), Err(LockError::OwnerLost));
    assert_eq!((sleeps(), told()), (vec![], vec![]));
}

/// The thread that had the gate is gone: others are refused, and a release frees the mutex.
#[test]
fn a_gate_that_fork_left_locked_is_not_waited_for() {
    let (mutex, _) = awaited(&[]);
    for _ in 0..3 {
        script_exchanged(|| {});
    }
    script_exchanged(move || {
        // Participant 2 sleeps at the gate meanwhile, in a part of its wait for the mutex.
        let later = take_script();
        script(|| {
            lose(1);
            WaitOutcome::Woken
        });
        sleeps();
        as_participant(2, || {
            assert_eq!(mutex.lock_lazily(|| FOREVER), Err(LockError::OwnerLost));
        });
        let shown: Vec<_> = sleeps().into_iter().filter_map(|slept| slept.shown).collect();
        assert!(!shown.is_empty());
        for shown in shown {
            assert!(shown.is_endless && shown.wants == AwaitedUse::Mutex);
            assert!(shown.lock > mutex.id().0, "the gate");
        }
        give_script(later);
        unlock(mutex, 7);
        assert_eq!(owner(mutex), 0);
        assert!(as_participant(3, || mutex.try_lock()));
    });
    script(|| WaitOutcome::Interrupted);
    assert_eq!(mutex.lock_lazily(|| INTERRUPTIBLE), INTERRUPTED);
    assert_eq!((owner(mutex), unplayed()), (3, 0));
}

/// Whoever comes to the gate may find that the mutex has been released, or that another one has it.
#[test]
fn a_fifo_mutex_that_changes_hands_is_looked_at_again() {
    // Freed just after the exchange at the gate has failed.
    let (mutex, _) = awaited(&[]);
    script_exchanged(|| {});
    script_exchanged(|| {});
    script_exchanged(move || unlock(mutex, 7));
    assert_eq!(mutex.lock_lazily(|| FOREVER), Ok(()));
    assert_eq!((owner(mutex), sleeps().len(), unplayed()), (1, 0, 0));
    assert_eq!(format!("{mutex:?}"), "RawFifoMutex{owner=1}");
    // Another one has it as the line is announced.
    let (mutex, _) = awaited(&[]);
    for _ in 0..3 {
        script_exchange(|| {});
    }
    script_exchange(move || {
        unlock(mutex, 7);
        assert!(as_participant(6, || mutex.try_lock()));
    });
    script(move || {
        unlock(mutex, 6);
        WaitOutcome::Woken
    });
    assert_eq!(mutex.lock_lazily(|| FOREVER), Ok(()));
    assert_eq!((owner(mutex), sleeps().len(), unplayed(), woken()), (1, 1, 0, 1));
}

#[test]
fn a_notification_of_an_exact_condition_variable_wakes_the_first_or_all() {
    let condvar = condvar();
    assert_eq!((condvar.notify_one(), condvar.notify_all()), (Ok(false), Ok(0)));
    assert_eq!((machine().exchanges, wakes()), (0, vec![]));
    assert_eq!(format!("{condvar:?}"), "RawExactCondvar{waiting=false}");
    for (count, first) in [(1, true), (3, true), (1, false), (2, false), (4, false)] {
        let places: Vec<_> = (2..2 + count).map(|number| waits(condvar, number)).collect();
        assert_eq!(format!("{condvar:?}"), "RawExactCondvar{waiting=true}");
        let mut left = count as usize;
        if first {
            assert_eq!((condvar.notify_one(), woken()), (Ok(true), 1));
            assert!(state(places[0]).ends_with("state=2}"));
            assert!(places[1..].iter().all(|place| state(place).ends_with("state=0}")));
            left -= 1;
        }
        assert_eq!((condvar.notify_all(), woken()), (Ok(left), left));
        assert!(places.iter().all(|place| state(place).ends_with("state=2}")));
        assert_eq!(format!("{condvar:?}"), "RawExactCondvar{waiting=false}");
    }
}

/// The line was not empty, and is when the notifier comes to the gate.
#[test]
fn a_notification_that_comes_late_tells_nobody() {
    let condvar = condvar();
    for all in [false, true] {
        waits(condvar, 2);
        script_exchange(move || assert_eq!(condvar.notify_one(), Ok(true)));
        if all {
            assert_eq!(condvar.notify_all(), Ok(0));
        } else {
            assert_eq!(condvar.notify_one(), Ok(false));
        }
        assert_eq!((woken(), unplayed()), (1, 0));
    }
}

#[test]
fn a_wait_stands_in_the_line_before_it_releases_and_ends_with_its_notification() {
    let condvar = condvar();
    let deadline = Some(time().after(900_000));
    for all in [false, true] {
        set(|machine| machine.observed = true);
        script(|| WaitOutcome::Changed);
        script(move || {
            let told =
                if all { condvar.notify_all() == Ok(1) } else { condvar.notify_one() == Ok(true) };
            assert!(told);
            WaitOutcome::Woken
        });
        let mut released = 0;
        let release = || {
            assert_eq!(format!("{condvar:?}"), "RawExactCondvar{waiting=true}");
            released += 1;
        };
        sleeps();
        assert_eq!(condvar.wait(release, &WaitBounds { deadline, ..FOREVER }), Ok(()));
        let address = std::ptr::from_ref(condvar).addr();
        let wants = AwaitedUse::Notification;
        let shown = ShownSleep { lock: address, wants, is_endless: false };
        let shows: Vec<_> = sleeps().into_iter().map(|it| (it.shown, it.until)).collect();
        assert_eq!(shows, [(Some(shown), deadline); 2]);
        let awaited = Awaited { address, wants, name: None, deadline };
        assert_eq!(told(), [(awaited, None), (awaited, Some(None))]);
        assert_eq!((released, woken(), unplayed(), machine().asleep), (1, 1, 0, 0));
        set(|machine| machine.observed = false);
    }
    // Nobody was told.
    script(|| WaitOutcome::Interrupted);
    assert_eq!(condvar.wait(|| {}, &INTERRUPTIBLE), INTERRUPTED);
    assert_eq!(format!("{condvar:?}"), "RawExactCondvar{waiting=false}");
}

#[test]
fn a_condition_variable_whose_gate_fork_left_locked_is_not_waited_for() {
    let condvar = condvar();
    waits(condvar, 2);
    script_exchanged(move || {
        lose(1);
        as_participant(3, || {
            let release = || unreachable!("it does not wait");
            assert_eq!(condvar.wait(release, &FOREVER), Err(LockError::OwnerLost));
            assert_eq!(condvar.notify_one(), Err(LockError::OwnerLost));
        });
    });
    assert_eq!(condvar.notify_one(), Ok(true));
    assert_eq!(unplayed(), 0);
}
