//! What the reader-writer lock between processes does to its word and to claims, step by step, on a
//! machine with one thread.

use crate::common::segment::{
    NAMES, Segment, Whom, flags, get, life, name, population, segment, set, words,
};
use crate::common::shared::{Call, answer, at, calls};
use crate::common::shared_mutex::kept_by_a_try;
use crate::common::{Alone, U32, script_access, script_exchange32, unplayed};
use lockstead_core::WaitBounds;
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{Domain, Got, Party, RawSharedRwLock, ReadHold, RobustError};

fn parts(segment: &'static Segment) -> (&'static U32, &'static U32) {
    let [word, reserved_for] = words::<_, 2>(&segment.rwlock);
    (word, reserved_for)
}

/// Returns what a try to read makes of a word: how the caller has the lock, and the word then.
fn read(word: u32, owner: Whom, heir: Whom) -> (Result<ReadHold, RobustError>, u32) {
    let owns = |flags| (Ok(ReadHold::OwnerDied), name(1).bits() | flags);
    let kept = word & (WAITERS | RESERVED | INCONSISTENT);
    let mut free = word;
    match owner {
        Whom::Caller => return (Err(RobustError::Recursive), word),
        Whom::Lives => return (Err(RobustError::TimedOut), word),
        Whom::Dead | Whom::Left if word & UNTOUCHED == 0 => return owns(kept | INCONSISTENT),
        Whom::Dead | Whom::Left if kept & INCONSISTENT != 0 => return owns(kept),
        Whom::Dead | Whom::Left => free = kept,
        Whom::Nobody => {}
    }
    if free & RESERVED != 0 {
        if heir == Whom::Lives {
            return (Err(RobustError::TimedOut), free);
        }
        free &= !RESERVED;
    }
    match free & INCONSISTENT {
        0 => (Ok(ReadHold::Claim(1)), free),
        _ => owns(free & (WAITERS | INCONSISTENT)),
    }
}

#[test]
fn a_try_to_read_claims_what_nobody_owns_and_owns_what_a_dead_writer_left() {
    let segment = population();
    let (word, reserved_for) = parts(segment);
    let what = segment.offset(&segment.rwlock);
    let me = segment.party(1);
    let claim = segment.claim(1, 1);
    for (owner, whom) in NAMES {
        for (heir, heirs) in NAMES {
            for flags in flags() {
                let before = owner | flags;
                segment.lives(4, life(4).free());
                set(word, before);
                set(reserved_for, heir);
                set(&claim.what, 0);
                let (outcome, after) = read(before, whom, heirs);
                assert_eq!(segment.rwlock.try_read(&me, Some(1)), outcome, "{before:x} {heir:x}");
                assert_eq!((get(word), get(reserved_for)), (after, heir), "{before:x} {heir:x}");
                let claimed = outcome == Ok(ReadHold::Claim(1));
                assert_eq!(get(&claim.what), if claimed { what } else { 0 }, "{before:x}");
                // Without a claim it reads alone, and touches nothing.
                segment.lives(4, life(4).free());
                set(word, before);
                set(&claim.what, 0);
                let alone = segment.rwlock.try_read(&me, None);
                let has = kept_by_a_try(whom, heirs, flags);
                let hold = |flags| match flags & INCONSISTENT {
                    0 => ReadHold::Alone,
                    _ => ReadHold::OwnerDied,
                };
                assert_eq!(alone, has.map(hold), "{before:x} {heir:x}");
                let untouched = if alone == Ok(ReadHold::Alone) { UNTOUCHED } else { 0 };
                let after = has.map_or(before, |flags| flags | name(1).bits() | untouched);
                assert_eq!((get(word), get(&claim.what)), (after, 0), "{before:x}");
                // The same for a try to write, which touches.
                segment.lives(4, life(4).free());
                set(word, before);
                let wrote = segment.rwlock.try_write(&me);
                let got =
                    |flags| if flags & INCONSISTENT == 0 { Got::Clean } else { Got::OwnerDied };
                assert_eq!(wrote, has.map(got), "{before:x} {heir:x}");
                let after = has.map_or(before, |flags| flags | name(1).bits());
                assert_eq!(get(word), after);
            }
        }
    }
    set(word, NOT_RECOVERABLE);
    assert_eq!(segment.rwlock.try_read(&me, Some(0)), Err(RobustError::NotRecoverable));
    assert_eq!(segment.rwlock.try_read(&me, None), Err(RobustError::NotRecoverable));
    assert_eq!(segment.rwlock.try_write(&me), Err(RobustError::NotRecoverable));
    assert_eq!((get(word), calls()), (NOT_RECOVERABLE, vec![]));
    assert_eq!(RawSharedRwLock::<Alone>::default().peek(), 0);
}

#[test]
fn a_claim_is_the_participants_own_and_counts_from_then_on() {
    let segment = segment();
    let me = segment.party(2);
    let what = segment.offset(&segment.rwlock);
    let lock = &segment.rwlock;
    let (highest, used) = (&segment.records[0].claims, &segment.record(2).claims);
    assert_eq!(lock.try_read(&me, Some(2)), Err(RobustError::TooManyClaims));
    assert_eq!((get(highest), get(used)), (0, 0));
    // The highest slot is raised before the slot's own number is.
    script_access(used, || {});
    script_access(used, move || assert_eq!(get(highest), 2));
    assert_eq!(lock.try_read(&me, Some(1)), Ok(ReadHold::Claim(1)));
    assert_eq!((get(highest), get(used), unplayed()), (2, 2, 0));
    assert_eq!((get(&segment.claim(2, 0).what), get(&segment.claim(2, 1).what)), (0, what));
    // It has been raised by others already.
    set(highest, 4);
    assert_eq!(lock.try_read(&me, Some(0)), Ok(ReadHold::Claim(0)));
    assert_eq!((get(highest), get(used)), (4, 2));
    set(used, 1);
    assert_eq!(lock.try_read(&me, Some(0)), Ok(ReadHold::Claim(0)));
    assert_eq!(get(used), 1);
    assert_eq!(lock.try_read(&me, Some(1)), Ok(ReadHold::Claim(1)));
    assert_eq!((get(highest), get(used)), (4, 2));
    // Another one comes as it raises: lower, and higher.
    for (found, left) in [(1, 2), (3, 3), (2, 2)] {
        set(highest, 0);
        set(used, 0);
        script_exchange32(move || set(highest, found));
        assert_eq!(lock.try_read(&me, Some(0)), Ok(ReadHold::Claim(0)));
        assert_eq!((get(highest), unplayed()), (left, 0));
    }
    let foreign: &RawSharedRwLock<Alone> = Box::leak(Box::new(RawSharedRwLock::new()));
    let low = Domain { base: usize::MAX, ..segment.domain() };
    let party = Party { domain: low, me: name(2) };
    assert_eq!(foreign.try_read(&party, Some(0)), Err(RobustError::Foreign));
    assert!(!foreign.unread(&party, ReadHold::Claim(0)));
}

#[test]
fn who_reads_leaves_its_own_claim_and_wakes_who_waits_for_it() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, _) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    let claim = segment.claim(1, 1);
    for (stands, leaves, wakes) in [
        (what, true, false),
        (what | AWAITED, true, true),
        (what + 1, false, false),
        (0, false, false),
        (AWAITED, false, false),
    ] {
        segment.claims(1, 1, stands, 0);
        calls();
        assert_eq!(lock.unread(&me, ReadHold::Claim(1)), leaves);
        assert_eq!(get(&claim.what), if leaves { 0 } else { stands });
        let expected = wakes.then(|| Call::Wake(at(&claim.what), u32::MAX));
        assert_eq!(calls(), Vec::from_iter(expected));
    }
    segment.claims(1, 1, what, 0);
    assert!(!lock.unread(&me, ReadHold::Claim(0)) && !lock.unread(&me, ReadHold::Claim(2)));
    for hold in [ReadHold::Alone, ReadHold::OwnerDied] {
        set(word, name(1).bits() | UNTOUCHED);
        assert!(lock.unread(&me, hold));
        assert_eq!(get(word), 0);
        assert!(!lock.unread(&me, hold));
    }
    set(word, name(1).bits() | INCONSISTENT);
    assert!(!lock.mark_consistent(&segment.party(2)) && lock.mark_consistent(&me));
    assert_eq!((lock.peek(), lock.unwrite(&segment.party(2))), (name(1).bits(), false));
    assert!(lock.unwrite(&me));
    assert_eq!(lock.peek(), 0);
    // Who has touched nothing passes the death on, and is the owner to do so.
    set(word, name(1).bits() | INCONSISTENT);
    assert!(!lock.unwrite_untouched(&segment.party(2)));
    assert_eq!(get(word), name(1).bits() | INCONSISTENT);
    assert!(lock.unwrite_untouched(&me));
    assert_eq!(get(word), INCONSISTENT);
}

#[test]
fn who_reads_does_not_write_and_does_not_wait_to_read_again() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, _) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    for (number, stands, used, reads) in [
        (0, what, 1, true),
        (1, what, 2, true),
        (1, what | AWAITED, 2, true),
        (1, what, 1, false),
        (1, what + 1, 2, false),
        (0, 0, 2, false),
    ] {
        for number in [0, 1].into_iter().filter(|it| *it != number) {
            set(&segment.claim(1, number).what, 0);
        }
        segment.claims(1, number, stands, 0);
        set(&segment.record(1).claims, used);
        set(word, 0);
        let expected = if reads { Err(RobustError::Recursive) } else { Ok(Got::Clean) };
        assert_eq!(lock.try_write(&me), expected, "{number} {stands} {used}");
        set(word, 0);
        assert_eq!(lock.write(&me, &WaitBounds::FOREVER), expected);
        // Read again it does where that needs no wait.
        set(word, 0);
        let other = Some(1 - number);
        set(&segment.claim(1, 1 - number).what, 0);
        assert!(lock.try_read(&me, other).is_ok());
        assert!(lock.unread(&me, ReadHold::Claim(1 - number)));
        set(&segment.record(1).claims, if number == 1 { used } else { 1 });
        set(word, name(2).bits());
        let refused = if reads { RobustError::Recursive } else { RobustError::TimedOut };
        if number == 1 && used == 1 {
            continue;
        }
        assert_eq!(lock.try_read(&me, other), Err(refused), "{number} {stands}");
        assert_eq!(get(&segment.claim(1, 1 - number).what), 0);
    }
    // A lock that no claim can name is read by nobody, though claims stand that name nothing.
    let low = Domain { base: usize::MAX, ..segment.domain() };
    let party = Party { domain: low, me: name(1) };
    set(&segment.claim(1, 0).what, 0);
    set(word, 0);
    assert_eq!(lock.try_write(&party), Ok(Got::Clean));
}

/// Participant 2 has a claim: whether it counts.
#[test]
fn a_writer_heeds_the_claims_of_those_that_live() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, _) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    let fresh = || {
        segment.lives(2, life(2));
        segment.claims(2, 1, what, 0);
        set(&segment.record(2).claims, 2);
        set(&segment.records[0].claims, 2);
        set(word, 0);
    };
    type Change = (fn(&'static Segment, u32), bool);
    let changes: [Change; 10] = [
        (|_, _| {}, true),
        (|segment, _| segment.dies(2), false),
        (|segment, _| segment.lives(2, life(2).prepared(3)), false),
        (|segment, _| segment.lives(2, life(2).free()), false),
        (|segment, _| segment.lives(2, life(2).doubted()), true),
        (|segment, _| set(&segment.record(2).claims, 1), false),
        (|segment, _| set(&segment.record(2).claims, 9), true),
        (|segment, _| set(&segment.records[0].claims, 1), false),
        (|segment, _| set(&segment.records[0].claims, 99), true),
        (|segment, what| set(&segment.claim(2, 1).what, what + 1), false),
    ];
    for (index, (change, reads)) in changes.into_iter().enumerate() {
        fresh();
        change(segment, what);
        let expected = if reads { Err(RobustError::TimedOut) } else { Ok(Got::Clean) };
        assert_eq!(lock.try_write(&me), expected, "{index}");
        assert_eq!(get(word), if reads { 0 } else { name(1).bits() });
    }
    fresh();
    set(&segment.claim(2, 1).what, what | AWAITED);
    assert_eq!(lock.try_write(&me), Err(RobustError::TimedOut));
    // The last slot of the table counts as well.
    fresh();
    set(&segment.claim(2, 1).what, 0);
    segment.lives(5, life(5));
    segment.claims(5, 0, what, 0);
    assert_eq!(lock.try_write(&me), Err(RobustError::TimedOut));
    set(&segment.claim(5, 0).what, 0);
    // One that has ended unnoticed does not count.
    fresh();
    answer(|answers| (answers.trust, answers.ended) = (Some(1000), 1 << 2));
    calls();
    assert_eq!(lock.try_write(&me), Ok(Got::Clean));
    assert_eq!(calls()[0], Call::Ask(2, life(2)));
    assert_eq!(get(word), name(1).bits());
}
