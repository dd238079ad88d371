//! What both semaphores do to their words, step by step, on a machine with one thread: over many
//! words, and what hooks and observers hear.

use crate::common::heard::{Heard, heard};
use crate::common::mutexes::bits::*;
use crate::common::{
    Alone, Sleep, U64, here, machine, script, script_exchange, set, sleeps, time, told, unplayed,
    wakes,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::word::{Counting, Subject, Word};
use lockstead_core::{
    Atomic64, Awaited, AwaitedUse, ClassicSemaphore, LockError, MAX_SLOTS, Off, Ordering,
    PermitOverflow, TunedSemaphore, WaitBounds, WaitOutcome,
};

type Tuned<H = Off> = TunedSemaphore<Alone, H, NoSpin>;
type Classic<H = Off> = ClassicSemaphore<Alone, H>;

/// Returns the word of a semaphore.
fn word<S: Semaphore>(semaphore: &S) -> &U64 {
    // SAFETY: a semaphore begins with its word (`repr(C)`), an atomic, and `semaphore` borrows it.
    unsafe { &*std::ptr::from_ref(semaphore).cast() }
}

fn force<S: Semaphore>(semaphore: &S, value: u64) {
    word(semaphore).store(value, Ordering::Relaxed);
}

fn peek<S: Semaphore>(semaphore: &S) -> u64 {
    word(semaphore).load(Ordering::Relaxed)
}

fn counts() -> Vec<u32> {
    wakes().into_iter().map(|it| it.1).collect()
}

/// What both semaphores are.
trait Semaphore: Sized + 'static {}
impl<H: lockstead_core::Hooks> Semaphore for Tuned<H> {}
impl<H: lockstead_core::Hooks> Semaphore for Classic<H> {}

/// Makes a semaphore without permits that lives for ever, on a machine on which no time passes but
/// in sleeps.
fn tuned<H: lockstead_core::Hooks>() -> &'static Tuned<H> {
    set(|machine| machine.tick = 0);
    Box::leak(Box::new(Tuned::new(0).expect("none")))
}

fn classic<H: lockstead_core::Hooks>() -> &'static Classic<H> {
    set(|machine| machine.tick = 0);
    Box::leak(Box::new(Classic::new(0).expect("none")))
}

/// Returns words of the tuned semaphore: every flag beside every other, with these permits.
fn tuned_words(permits: u32) -> Vec<Word> {
    let flags = [WAITERS, PREPARING, HANDOFF_ASLEEP, COVERED, HANDOFF | RESERVED, tail(3)];
    let set = |all: u32| (0..flags.len()).filter(move |bit| all >> bit & 1 == 1);
    let of = |all| Word(set(all).map(|bit| flags[bit]).sum::<u64>() + u64::from(permits));
    (0..1 << flags.len()).map(of).collect()
}

#[test]
fn tuned_takes_a_permit_that_is_there_from_every_word() {
    let semaphore = tuned::<Off>();
    for permits in [0, 1, 2, MAX_SLOTS] {
        for before in tuned_words(permits) {
            force(semaphore, before.0);
            let free = Counting::free(before);
            assert_eq!(semaphore.try_down(here()), free, "{before:?}");
            assert_eq!(peek(semaphore), before.0 - u64::from(free), "{before:?}");
        }
    }
    assert_eq!((wakes(), sleeps()), (vec![], vec![]));
}

#[test]
fn tuned_gives_a_permit_to_every_word_that_has_room_and_wakes_who_is_asleep() {
    let semaphore = tuned::<Off>();
    for permits in [0, 1, 2, MAX_SLOTS - 1, MAX_SLOTS] {
        for before in tuned_words(permits) {
            force(semaphore, before.0);
            let full = permits == MAX_SLOTS;
            let given = semaphore.up();
            assert_eq!(given, if full { Err(PermitOverflow) } else { Ok(()) }, "{before:?}");
            let after = if full { before } else { before.counted() };
            assert_eq!(peek(semaphore), after.0, "{before:?}");
            let mut expected = vec![];
            expected.extend(before.handoff_asleep().then_some(u32::MAX));
            expected.extend(before.waiters().then_some(1));
            assert_eq!(counts(), if full { vec![] } else { expected }, "{before:?}");
        }
    }
}

#[test]
fn tuned_looks_again_when_others_come_before() {
    let semaphore = tuned::<Off>();
    // Both attempts of the fast path fail, and the one after.
    force(semaphore, 5);
    for permits in [4, 3, 2] {
        script_exchange(move || force(semaphore, permits));
    }
    assert!(semaphore.try_down(here()));
    assert_eq!((peek(semaphore), unplayed()), (1, 0));
    force(semaphore, 2);
    for permits in [3, 2, 0] {
        script_exchange(move || force(semaphore, permits));
    }
    assert!(!semaphore.try_down(here()));
    assert_eq!((peek(semaphore), unplayed()), (0, 0));
    for permits in [1, 2, 3, 4 | WAITERS] {
        script_exchange(move || force(semaphore, permits));
    }
    assert_eq!(semaphore.up(), Ok(()));
    assert_eq!((peek(semaphore), counts(), unplayed()), (5, vec![1], 0));
    // Full by then.
    let full = u64::from(MAX_SLOTS);
    force(semaphore, full - 1);
    for permits in [full - 2, full - 1, full] {
        script_exchange(move || force(semaphore, permits));
    }
    assert_eq!(semaphore.up(), Err(PermitOverflow));
    assert_eq!((peek(semaphore), unplayed()), (full, 0));
}

/// Returns the word of the classic semaphore with this count, *sleepers* and queue.
fn of(count: i64, sleepers: bool, queued: u64) -> u64 {
    let low = u64::try_from((1 << 31) + count).expect("32 bits");
    queued * (1 << 33) + u64::from(sleepers) * (1 << 32) + low
}

/// Returns counts, *sleepers* and queues, each beside each.
fn classic_states() -> Vec<(i64, bool, u64)> {
    let mut states = vec![];
    for count in -3..=3 {
        for sleepers in [false, true] {
            states.extend((0..3).map(|queued| (count, sleepers, queued)));
        }
    }
    states
}

#[test]
fn classic_tells_how_many_permits_there_are() {
    let semaphore = classic::<Off>();
    for (count, sleepers, queued) in classic_states() {
        force(semaphore, of(count, sleepers, queued));
        let permits = (count + i64::from(sleepers)).max(0);
        assert_eq!(i64::from(semaphore.permits()), permits);
    }
}

/// A try that fails takes its decrement and that of the sleepers back, so that one of them must look
/// again where none is owed by then.
#[test]
fn classic_takes_a_permit_or_leaves_the_count_to_the_queue() {
    let semaphore = classic::<Off>();
    for (count, sleepers, queued) in classic_states() {
        let state = (count, sleepers, queued);
        force(semaphore, of(count, sleepers, queued));
        let taken = semaphore.try_down(here());
        assert_eq!(taken, count > 0, "{state:?}");
        if taken {
            assert_eq!((peek(semaphore), counts()), (of(count - 1, sleepers, queued), vec![]));
        } else {
            let left = count + i64::from(sleepers);
            assert_eq!(peek(semaphore), of(left, false, queued), "{state:?}");
            let woken = if left >= 0 && queued > 0 { vec![1] } else { vec![] };
            assert_eq!(counts(), woken, "{state:?}");
        }
    }
}

#[test]
fn classic_gives_a_permit_and_wakes_one_of_a_queue_to_which_permits_are_owed() {
    let semaphore = classic::<Off>();
    for (count, sleepers, queued) in classic_states() {
        force(semaphore, of(count, sleepers, queued));
        assert_eq!(semaphore.up(), Ok(()));
        assert_eq!(peek(semaphore), of(count + 1, sleepers, queued));
        let woken = if count < 0 && queued > 0 { vec![1] } else { vec![] };
        assert_eq!(counts(), woken, "{:?}", (count, sleepers, queued));
    }
    let most = i64::from(Classic::<Off>::MAX_PERMITS);
    force(semaphore, of(most - 1, false, 0));
    assert_eq!(semaphore.up(), Ok(()));
    for _ in 0..2 {
        assert_eq!(semaphore.up(), Err(PermitOverflow));
        assert_eq!(peek(semaphore), of(most, false, 0));
    }
    // Others have taken all of them, between its two steps: there was room after all, and then one
    // of the queue may have it.
    for (count, queued, left, result) in [
        (2, 0, 1, Err(PermitOverflow)),
        (1, 0, 0, Err(PermitOverflow)),
        (0, 0, 0, Ok(())),
        (0, 1, 0, Ok(())),
        (-1, 1, -1, Ok(())),
    ] {
        force(semaphore, of(most, false, 0));
        script_exchange(|| {});
        script_exchange(move || force(semaphore, of(count, false, queued)));
        assert_eq!(semaphore.up(), result, "{count}");
        assert_eq!(peek(semaphore), of(left, false, queued), "{count}");
        let woken = if count == 0 && queued > 0 { vec![1] } else { vec![] };
        assert_eq!((counts(), unplayed()), (woken, 0), "{count}");
    }
}

/// Who joins the queue counts itself among the sleepers, or takes a permit that was given to them.
#[test]
fn classic_joins_the_queue_and_leaves_it_with_a_permit() {
    let semaphore = classic::<Off>();
    for (count, sleepers, queued) in classic_states().into_iter().filter(|state| state.0 <= 0) {
        let state = (count, sleepers, queued);
        force(semaphore, of(count, sleepers, queued));
        let joined = count - 1 + i64::from(sleepers);
        let granted = joined >= 0;
        if !granted {
            script(move || {
                assert_eq!(peek(semaphore), of(joined, true, queued + 1), "{state:?}");
                // One permit for the sleepers, of which this is one.
                force(semaphore, of(0, true, queued + 1));
                WaitOutcome::Woken
            });
        }
        semaphore.down(here());
        let left = if granted { joined } else { 0 };
        assert_eq!(peek(semaphore), of(left, false, queued), "{state:?}");
        let woken = if queued > 0 { vec![1] } else { vec![] };
        assert_eq!((counts(), unplayed()), (woken, 0), "{state:?}");
        assert_eq!(sleeps().len(), usize::from(!granted));
    }
}

#[test]
fn classic_gives_up_and_has_the_next_look() {
    let semaphore = classic::<Off>();
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    for (count, sleepers, queued) in classic_states() {
        let state = (count, sleepers, queued);
        let seen = count - 1 + i64::from(sleepers);
        force(semaphore, of(0, false, 0));
        script(move || {
            // It looks once more, and is one of the sleepers, or has a permit.
            force(semaphore, of(count, sleepers, queued + 1));
            WaitOutcome::Interrupted
        });
        // Its exchange fails once.
        script_exchange(|| {});
        script_exchange(|| {});
        script_exchange(move || force(semaphore, of(count, sleepers, queued + 1)));
        let ended = semaphore.down_how(&how, here());
        assert_eq!(ended, if seen >= 0 { Ok(()) } else { Err(LockError::Interrupted) });
        // It was one of the sleepers for a moment.
        let left = if seen >= 0 { seen } else { seen + 1 };
        assert_eq!(peek(semaphore), of(left, false, queued), "{state:?}");
        let woken = if queued > 0 { vec![1] } else { vec![] };
        assert_eq!((counts(), unplayed()), (woken, 0), "{state:?}");
    }
}

#[test]
fn classic_steps_that_others_come_before_are_made_again() {
    let semaphore = classic::<Off>();
    force(semaphore, of(0, false, 0));
    script_exchange(|| {});
    script_exchange(move || force(semaphore, of(1, false, 0)));
    semaphore.down(here());
    assert_eq!((peek(semaphore), unplayed()), (of(1, false, 0), 0));
}

/// Declares a test of what hooks and observers hear of a semaphore.
macro_rules! heard_of {
    ($name:ident, $make:ident) => {
        #[test]
        fn $name() {
            let semaphore = $make::<Heard>();
            let site = here();
            let line = site.line();
            let fast = format!("acquired Unit Fast {line}");
            let begins = format!("will acquire Unit 0 {line}");
            assert_eq!(semaphore.up(), Ok(()));
            assert_eq!(heard(), ["releasing"]);
            assert_eq!(semaphore.down_lazily(|| unreachable!("there is a permit"), site), Ok(()));
            assert_eq!(heard(), [begins.clone(), fast.clone()]);
            assert!(!semaphore.try_down(site));
            assert_eq!(heard(), [""; 0]);
            semaphore.up().expect("room");
            heard();
            assert!(semaphore.try_down(site));
            assert_eq!(heard(), [fast]);
            let wants = AwaitedUse::Unit;
            let address = semaphore.id().0;
            for (interruptible, observed) in [(false, false), (true, true)] {
                set(|machine| machine.observed = observed);
                let deadline = interruptible.then(|| time().after(1000));
                let how = WaitBounds { deadline, interruptible, ..WaitBounds::FOREVER };
                script(move || {
                    if interruptible {
                        return WaitOutcome::Interrupted;
                    }
                    semaphore.up().expect("room");
                    heard();
                    WaitOutcome::Woken
                });
                let ended = semaphore.down_how(&how, site);
                let awaited = Awaited { address, wants, name: Some("hall"), deadline };
                let ends = observed.then_some((awaited, Some(ended.err())));
                assert_eq!(told(), [(awaited, None)].into_iter().chain(ends).collect::<Vec<_>>());
                if interruptible {
                    assert_eq!(ended, Err(LockError::Interrupted));
                    assert_eq!(heard(), [begins.clone(), format!("abandoned {line}")]);
                } else {
                    assert_eq!(ended, Ok(()));
                    assert_eq!(heard(), [format!("acquired Unit Slow {line}")]);
                }
                let [Sleep { until, .. }] = sleeps()[..] else { panic!() };
                assert!(deadline.is_none() || until == deadline);
                wakes();
            }
            assert_eq!((unplayed(), machine().asleep), (0, 0));
        }
    };
}

heard_of!(hooks_and_observers_hear_of_the_tuned_semaphore, tuned);
heard_of!(hooks_and_observers_hear_of_the_classic_semaphore, classic);
