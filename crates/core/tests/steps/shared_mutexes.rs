//! What the mutex between processes does to its words, step by step, on a machine with one thread:
//! from which words it is taken, and whom a release wakes.

use crate::common::segment::{NAMES, Whom, flags, get, life, name, population, segment, set};
use crate::common::shared::{Call, acts, answer, at, calls, wakes_find};
use crate::common::shared_mutex::{kept_by_a_try, parts};
use crate::common::{Alone, script_access, script_exchange32, unplayed};
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{
    Got, Identity, Life, Party, RawSharedMutex, RobustError, RobustMachine,
};

#[test]
fn a_try_takes_what_is_free_or_a_dead_ones() {
    let segment = population();
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    for (owner, whom) in NAMES {
        for (heir, heirs) in NAMES {
            for flags in flags() {
                let before = owner | flags;
                segment.lives(4, life(4).free());
                set(word, before);
                set(reserved_for, heir);
                let got = segment.mutex.try_lock(&me);
                let is_reserved = whom == Whom::Nobody && flags & RESERVED != 0;
                let has = kept_by_a_try(whom, heirs, flags);
                let outcome = |flags| match flags & INCONSISTENT {
                    0 => Got::Clean,
                    _ => Got::OwnerDied,
                };
                assert_eq!(got, has.map(outcome), "{before:x} {heir:x}");
                let after = has.map_or(before, |flags| flags | name(1).bits());
                assert_eq!((get(word), get(reserved_for)), (after, heir), "{before:x} {heir:x}");
                // A name of somebody who has left ends where it stood in the way.
                let ends = whom == Whom::Left || is_reserved && heirs == Whom::Left;
                let left = if ends { life(4).free().dead() } else { life(4).free() };
                assert_eq!(Life(segment.record(4).life.silently()), left);
            }
        }
    }
    set(word, NOT_RECOVERABLE);
    assert_eq!(segment.mutex.try_lock(&me), Err(RobustError::NotRecoverable));
    assert_eq!(get(word), NOT_RECOVERABLE);
    assert_eq!(calls(), []);
}

/// A caller that tries asks about the owner, and takes the lock of one that has ended unnoticed.
#[test]
fn a_try_asks_whether_the_owner_has_ended() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    for ended in [false, true] {
        for heir in [false, true] {
            answer(|answers| (answers.trust, answers.ended) = (Some(1000), u32::from(ended) << 2));
            segment.lives(2, life(2));
            set(&segment.record(1).asked, 0);
            set(word, if heir { RESERVED } else { name(2).bits() });
            set(reserved_for, if heir { name(2).bits() } else { 0 });
            calls();
            let got = segment.mutex.try_lock(&me);
            let has = if heir { Got::Clean } else { Got::OwnerDied };
            assert_eq!(got, if ended { Ok(has) } else { Err(RobustError::TimedOut) });
            assert_eq!(calls()[0], Call::Ask(2, life(2)));
        }
    }
}

/// A thread that has come to the segment by two ways does not wait for itself.
#[test]
fn a_lock_of_the_caller_by_another_way_is_the_callers() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    answer(|answers| answers.callers = 1 << 2);
    for (mine, expected) in [(2, RobustError::Recursive), (4, RobustError::TimedOut)] {
        set(word, name(mine).bits());
        assert_eq!(segment.mutex.try_lock(&me), Err(expected));
        set(word, RESERVED);
        set(reserved_for, name(mine).bits());
        assert_eq!(segment.mutex.try_lock(&me), Err(expected));
    }
}

/// Who looks at a slot that is free has read a word of before: it looks again before it ends a name.
#[test]
fn a_name_ends_only_where_it_still_stands() {
    let segment = segment();
    segment.lives(4, life(4).free());
    let (word, _) = parts(segment);
    let me = segment.party(1);
    for stands in [false, true] {
        set(word, name(4).bits());
        // The fast path, the first look, and the second.
        (0..2).for_each(|_| script_access(word, || {}));
        script_access(word, move || set(word, if stands { name(4).bits() } else { 0 }));
        let has = if stands { Got::OwnerDied } else { Got::Clean };
        assert_eq!(segment.mutex.try_lock(&me), Ok(has));
        let left = if stands { life(4).free().dead() } else { life(4).free() };
        assert_eq!((Life(segment.record(4).life.silently()), unplayed()), (left, 0));
    }
}

#[test]
fn a_try_that_others_come_before_looks_again() {
    let segment = population();
    let (word, _) = parts(segment);
    let me = segment.party(1);
    set(word, WAITERS);
    script_exchange32(|| {});
    script_exchange32(move || set(word, name(2).bits()));
    assert_eq!(segment.mutex.try_lock(&me), Err(RobustError::TimedOut));
    set(word, name(3).bits());
    script_exchange32(|| {});
    script_exchange32(move || set(word, name(1).bits() | INCONSISTENT));
    assert_eq!(segment.mutex.try_lock(&me), Err(RobustError::Recursive));
    assert_eq!(unplayed(), 0);
}

#[test]
fn a_lock_is_its_owners() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let lock = &segment.mutex;
    set(reserved_for, 77);
    for owner in [0, 1, 2] {
        for flags in flags() {
            let bits = if owner == 0 { 0 } else { name(owner).bits() };
            let before = bits | flags;
            set(word, before);
            assert_eq!(lock.peek(), before);
            assert_eq!(
                (lock.is_held_by(name(1)), lock.is_held_by(name(2))),
                (owner == 1, owner == 2)
            );
            assert_eq!(lock.mark_consistent(&segment.party(1)), owner == 1);
            let after = if owner == 1 { before & !INCONSISTENT } else { before };
            assert_eq!(get(word), after);
            set(word, before);
            assert_eq!(lock.take(name(1)), before == 0);
            assert_eq!(get(word), if before == 0 { name(1).bits() } else { before });
            for subtracts in [false, true] {
                answer(|answers| answers.subtracts = subtracts);
                set(word, before);
                let gives = before == name(1).bits();
                assert_eq!(lock.give(name(1)), gives);
                assert_eq!(get(word), if gives { 0 } else { before });
            }
        }
    }
    // All ones name nobody, even where the bits would be a participant's.
    set(word, NOT_RECOVERABLE);
    let last = Identity::from_bits(!0).expect("bits");
    assert!(!lock.is_held_by(last));
    let party = Party { me: last, ..segment.party(1) };
    assert!(!lock.mark_consistent(&party) && !lock.unlock(&party));
    assert_eq!((get(word), get(reserved_for), calls()), (NOT_RECOVERABLE, 77, vec![]));
    assert_eq!(RawSharedMutex::<Alone>::default().peek(), 0);
}

#[test]
fn a_release_wakes_whom_the_flags_tell_of() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    let all = |count| Call::Wake(at(reserved_for), count);
    let heir = Call::Wake(at(word), 1);
    for subtracts in [false, true] {
        answer(|answers| answers.subtracts = subtracts);
        for flags in flags() {
            for found in [0, 1] {
                set(word, name(1).bits() | flags);
                calls();
                wakes_find(&[found]);
                assert!(segment.mutex.unlock(&me));
                let lost = flags & INCONSISTENT != 0 && flags & UNTOUCHED == 0;
                let reserved = flags & RESERVED != 0;
                let waits = flags & (WAITERS | RESERVED) != 0;
                let left = match (lost, reserved) {
                    (true, _) => NOT_RECOVERABLE,
                    (_, true) => flags & (RESERVED | WAITERS | INCONSISTENT),
                    _ => flags & INCONSISTENT,
                };
                assert_eq!(get(word), left, "{flags:x}");
                let mut expected = vec![];
                expected.extend(reserved.then(|| heir.clone()));
                let passes = !lost && reserved && found == 1;
                expected.extend((waits && !passes).then(|| all(if lost { !0 } else { 1 })));
                assert_eq!(calls(), expected, "{flags:x} {found}");
                // Uses up what the wake-ups have not.
                while segment_wakes() {}
            }
        }
    }
    for other in [0, name(2).bits(), name(2).bits() | WAITERS] {
        set(word, other);
        assert!(!segment.mutex.unlock(&me));
        assert_eq!((get(word), calls()), (other, vec![]));
    }
}

/// Returns whether a wake-up that somebody was to be found by was left.
fn segment_wakes() -> bool {
    let woken = Alone::wake_shared(std::ptr::null(), 0) != 0;
    calls();
    woken
}

#[test]
fn a_release_that_others_come_before_looks_again() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    set(word, name(1).bits());
    script_exchange32(move || set(word, name(1).bits() | WAITERS));
    script_exchange32(move || set(word, name(1).bits() | WAITERS | RESERVED));
    assert!(segment.mutex.unlock(&me));
    assert_eq!((get(word), unplayed()), (WAITERS | RESERVED, 0));
    assert_eq!(calls(), [Call::Wake(at(word), 1), Call::Wake(at(reserved_for), 1)]);
    set(word, name(1).bits());
    script_exchange32(|| {});
    set(word, name(1).bits() | WAITERS);
    script_exchange32(move || set(word, NOT_RECOVERABLE));
    assert!(!segment.mutex.unlock(&me));
    assert_eq!((get(word), calls()), (NOT_RECOVERABLE, vec![]));
    // A flag that comes between look and subtraction stays.
    answer(|answers| answers.subtracts = true);
    for flags in [WAITERS, RESERVED, WAITERS | RESERVED] {
        for found in [0, 1] {
            set(word, name(1).bits());
            script_access(word, || {});
            script_access(word, move || set(word, name(1).bits() | flags));
            wakes_find(&[found]);
            assert!(segment.mutex.give(name(1)));
            let mut expected = vec![Call::Wake(at(word), 1)];
            expected.extend((found == 0).then(|| Call::Wake(at(reserved_for), 1)));
            assert_eq!((get(word), acts(), unplayed()), (flags, expected, 0));
        }
    }
}
