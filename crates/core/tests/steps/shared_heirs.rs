//! What becomes of a waiter for the mutex between processes that has waited for long, step by step, on a
//! machine with one thread: the lock is reserved for it.

use crate::common::segment::{GENERATION, get, life, name, rings, segment, set};
use crate::common::shared::{Call, answer, at, calls, deeds, script_sleep, wakes_find};
use crate::common::shared_mutex::{forever, lock_any, parts, watches};
use crate::common::{pass, script_exchange32, time};
use lockstead_core::WaitBounds;
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, WAITERS};
use lockstead_core::robust::{Got, Life, RobustError, Woken};

const PATIENCE: u64 = 5_000_000;

/// A copy leaves what the participant has written: that it waits, and that the lock is its.
#[test]
fn a_copy_touches_nothing_of_the_participants() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    set(word, name(2).bits());
    script_sleep(|| {
        pass(PATIENCE);
        Woken::Unsure
    });
    script_sleep(move || {
        assert_eq!(
            (get(word), get(reserved_for)),
            (name(2).bits() | WAITERS | RESERVED, name(1).bits())
        );
        Woken::Copied
    });
    assert_eq!(lock_any(segment, &WaitBounds::FOREVER), Err(RobustError::Copied));
    assert_eq!(
        (get(word), get(reserved_for)),
        (name(2).bits() | WAITERS | RESERVED, name(1).bits())
    );
    assert_eq!(get(&segment.record(1).waits_for), segment.offset(&segment.mutex));
}

#[test]
fn who_is_patient_has_the_lock_reserved() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let me = name(1).bits();
    // Whom the other word names already, and whether the waiter takes that one's place.
    for (named, late, takes) in [
        (0, 0, true),
        (0, 1, false),
        (name(3).bits(), 0, true),
        (name(4).bits(), 0, true),
        (name(2).bits(), 0, false),
        ((GENERATION + 1) << 14 | 2, 0, true),
    ] {
        segment.dies(3);
        segment.lives(4, life(4).free());
        set(word, name(2).bits());
        set(reserved_for, named);
        script_sleep(move || {
            pass(PATIENCE - late);
            Woken::Unsure
        });
        if named == name(4).bits() {
            // It ends that name first, and looks again.
            script_sleep(move || {
                assert_eq!((get(word), get(reserved_for)), (name(2).bits() | WAITERS, named));
                Woken::Unsure
            });
        }
        script_sleep(move || {
            let flags = if takes { WAITERS | RESERVED } else { WAITERS };
            assert_eq!(get(word), name(2).bits() | flags);
            assert_eq!(get(reserved_for), if takes { me } else { named });
            let Some(Call::Sleep(slept, None)) = calls().pop() else { panic!() };
            assert_eq!(slept, watches(segment, 2, takes, name(2).bits() | flags));
            set(word, flags & !WAITERS);
            if !takes {
                set(word, 0);
            }
            Woken::At(0)
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
        assert_eq!((get(word), get(reserved_for)), (me, if takes { 0 } else { named }));
        assert_eq!(deeds(), [Call::Wake(at(reserved_for), 1)]);
        let left = Life(segment.record(4).life.silently());
        assert_eq!(
            left,
            if named == name(4).bits() { life(4).free().dead() } else { life(4).free() }
        );
    }
    // Somebody else names itself before: it is the second exchange after the first sleep's.
    set(word, name(2).bits());
    set(reserved_for, 0);
    segment.lives(4, life(4));
    script_sleep(move || {
        pass(PATIENCE);
        script_exchange32(move || set(reserved_for, name(4).bits()));
        Woken::Unsure
    });
    script_sleep(move || {
        assert_eq!((get(word), get(reserved_for)), (name(2).bits() | WAITERS, name(4).bits()));
        set(word, 0);
        Woken::Unsure
    });
    assert_eq!(forever(segment), Ok(Got::Clean));
}

#[test]
fn an_heir_gives_its_right_back_when_it_leaves() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let heir = || {
        set(word, name(2).bits());
        set(reserved_for, 0);
        script_sleep(|| {
            pass(PATIENCE);
            Woken::Unsure
        });
    };
    for (left, after) in [
        (name(2).bits() | RESERVED, name(2).bits()),
        (name(2).bits() | WAITERS | RESERVED, name(2).bits() | WAITERS),
        (RESERVED | INCONSISTENT, INCONSISTENT),
        (name(2).bits(), name(2).bits()),
    ] {
        heir();
        script_sleep(move || {
            set(word, left);
            Woken::Cancelled
        });
        assert_eq!(forever(segment), Err(RobustError::Cancelled));
        assert_eq!((get(word), get(reserved_for)), (after, 0), "{left:x}");
    }
    // Others change the word as it does so.
    for (found, after) in [
        (name(4).bits() | RESERVED | WAITERS, name(4).bits() | WAITERS),
        (name(4).bits(), name(4).bits()),
        (NOT_RECOVERABLE, NOT_RECOVERABLE),
    ] {
        heir();
        script_sleep(move || {
            script_exchange32(move || set(word, found));
            Woken::Cancelled
        });
        assert_eq!(forever(segment), Err(RobustError::Cancelled));
        assert_eq!((get(word), get(reserved_for)), (after, 0), "{found:x}");
    }
    // The lock is lost: all bits are ones, and stay.
    heir();
    script_sleep(move || {
        set(word, NOT_RECOVERABLE);
        Woken::At(0)
    });
    assert_eq!(forever(segment), Err(RobustError::NotRecoverable));
    assert_eq!((get(word), get(reserved_for)), (NOT_RECOVERABLE, 0));
    // Who has named itself there meanwhile stays.
    heir();
    script_sleep(move || {
        set(reserved_for, name(4).bits());
        Woken::Cancelled
    });
    assert_eq!(forever(segment), Err(RobustError::Cancelled));
    assert_eq!(get(reserved_for), name(4).bits());
    // An heir that another one has the lock before insists, and does not rest.
    heir();
    script_sleep(move || {
        set(word, name(4).bits());
        Woken::At(0)
    });
    script_sleep(move || {
        assert_eq!(get(word), name(4).bits() | WAITERS | RESERVED);
        let Some(Call::Sleep(slept, None)) = calls().pop() else { panic!() };
        assert_eq!(slept, watches(segment, 4, true, name(4).bits() | WAITERS | RESERVED));
        segment.dies(4);
        Woken::At(2)
    });
    assert_eq!(forever(segment), Ok(Got::OwnerDied));
    assert_eq!((get(word), get(reserved_for)), (name(1).bits() | WAITERS | INCONSISTENT, 0));
    assert_eq!(deeds(), [rings(segment), Call::Wake(at(reserved_for), 1)]);
}

/// The others watch the heir of a free lock as if that had it.
#[test]
fn who_waits_for_an_heir_watches_its_life() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    set(word, RESERVED);
    set(reserved_for, name(4).bits());
    script_sleep(move || {
        let Some(Call::Sleep(slept, None)) = calls().pop() else { panic!() };
        assert_eq!(slept, watches(segment, 4, false, RESERVED | WAITERS));
        segment.dies(4);
        Woken::At(2)
    });
    assert_eq!(forever(segment), Ok(Got::Clean));
    assert_eq!((get(word), get(reserved_for)), (name(1).bits() | WAITERS, name(4).bits()));
}

/// What a checker is told is all that the waiter goes on with.
#[test]
fn a_checker_is_told_what_a_waiter_goes_on_with() {
    let segment = segment();
    let (word, _) = parts(segment);
    answer(|answers| answers.checked = true);
    set(word, name(2).bits());
    pass(100);
    let began = time();
    script_sleep(|| Woken::Unsure);
    script_sleep(|| {
        pass(PATIENCE);
        Woken::At(1)
    });
    script_sleep(|| Woken::Unsure);
    script_sleep(move || {
        set(word, 0);
        Woken::Unsure
    });
    calls();
    wakes_find(&[]);
    assert_eq!(forever(segment), Ok(Got::Clean));
    let turns: Vec<_> = calls()
        .into_iter()
        .filter_map(
            |call| if let Call::Turn(here, kept) = call { Some((here, kept)) } else { None },
        )
        .collect();
    let here = turns[0].0;
    let since = (began.0 + 1) << 2;
    let kept = [0, since, since | 1, since | 3, since | 3];
    assert_eq!(turns, kept.map(|kept| (here, kept)));
}
