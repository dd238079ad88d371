//! What a copy of a participant does, which a signal handler has made by forking in the middle of a
//! wait: nothing. It writes no word of the segment, wakes nobody and names nothing, in whatever wait
//! that was. By then it may be another participant, with words that it names itself.

use crate::common::segment::{Segment, get, name, segment, set, words};
use crate::common::shared::{calls, named, script_sleep, unslept};
use crate::common::{Alone, U32, pass, unplayed};
use lockstead_core::WaitBounds;
use lockstead_core::robust::word::{INCONSISTENT, RESERVED, WAITERS};
use lockstead_core::robust::{RobustError, RobustMachine, SlotRecord, Woken};
use std::cell::Cell;
use std::rc::Rc;

/// The time that a waiter lets others barge past, in nanoseconds.
const PATIENCE: u64 = 5_000_000;

const FOREVER: WaitBounds<'static, Alone> = WaitBounds::FOREVER;

/// Returns all that others can see of participant 1 and of the locks.
fn seen(segment: &'static Segment) -> Vec<u64> {
    let record = |record: &SlotRecord<Alone>| {
        let SlotRecord { asked, waits_for, claims, note, asked_about, .. } = record;
        [asked, waits_for, claims, note, asked_about].map(get)
    };
    let records = segment.records.iter().flat_map(record);
    let claims = segment.claims.iter().flat_map(|claim| [get(&claim.what), get(&claim.units)]);
    let mutexes = [words::<_, 2>(&segment.mutex), words::<_, 2>(&segment.rwlock)];
    let words = mutexes.into_iter().flatten().chain(words::<_, 8>(&segment.semaphore));
    let words = words.chain(crate::common::segment::words::<_, 2>(&segment.condvar)).map(get);
    let lives = segment.records.iter().map(|record| record.life.silently());
    let small = records.chain(claims).chain(words).chain([get(&segment.doorbell)]);
    small.map(u64::from).chain(lives).collect()
}

/// What a waiter wants, and how its wait ended.
type Wait = fn(&'static Segment) -> Option<RobustError>;

/// Has participant 1 wait until it is copied in the sleep after those that end by `before`, each of
/// which runs first.
#[track_caller]
fn is_copied(
    what: &str,
    segment: &'static Segment,
    before: &[fn(&'static Segment) -> Woken],
    wait: Wait,
) {
    let mine = &segment.claim(1, 1).units;
    Alone::at_death_wake(Some(mine.into()));
    for action in before.iter().copied() {
        script_sleep(move || action(segment));
    }
    let asleep = Rc::new(Cell::new(Vec::new()));
    let sees = Rc::clone(&asleep);
    script_sleep(move || {
        sees.set(seen(segment));
        calls();
        Woken::Copied
    });
    assert_eq!(wait(segment), Some(RobustError::Copied), "{what}");
    assert_eq!((calls(), named()), (vec![], None), "{what}");
    assert_eq!(seen(segment), asleep.take(), "{what}");
    assert_eq!((unplayed(), unslept()), (0, 0), "{what}");
}

fn word<L>(lock: &L) -> &U32 {
    &words::<_, 2>(lock)[0]
}

#[test]
fn a_copy_of_who_waits_for_a_mutex_does_nothing() {
    let lock: Wait = |segment| segment.mutex.lock(&segment.party(1), &FOREVER).err();
    for (what, before) in [
        ("asleep", &[] as &[fn(&'static Segment) -> Woken]),
        ("woken before", &[|_| Woken::At(0), |_| Woken::Unsure]),
        ("at rest", &[|_| Woken::Changed]),
        (
            "reserved for",
            &[|_| {
                pass(PATIENCE);
                Woken::Unsure
            }],
        ),
    ] {
        let segment = segment();
        set(word(&segment.mutex), name(2).bits());
        is_copied(what, segment, before, lock);
        let is_reserved = get(word(&segment.mutex)) & RESERVED != 0;
        assert_eq!(is_reserved, what == "reserved for");
    }
}

#[test]
fn a_copy_of_who_waits_to_read_or_write_does_nothing() {
    let reads: Wait = |segment| segment.rwlock.read(&segment.party(1), Some(0), &FOREVER).err();
    let alone: Wait = |segment| segment.rwlock.read(&segment.party(1), None, &FOREVER).err();
    let writes: Wait = |segment| segment.rwlock.write(&segment.party(1), &FOREVER).err();
    for (what, stands, is_read, wait) in [
        ("reads", name(2).bits(), false, reads),
        ("reads alone", name(2).bits(), false, alone),
        ("writes", name(2).bits() | WAITERS, false, writes),
        ("waits for a reader", 0, true, writes),
        ("wants to repair", INCONSISTENT, true, reads),
    ] {
        let segment = segment();
        set(word(&segment.rwlock), stands);
        if is_read {
            segment.claims(2, 0, segment.offset(&segment.rwlock), 0);
        }
        is_copied(what, segment, &[], wait);
    }
}

#[test]
fn a_copy_of_who_waits_at_a_semaphore_does_nothing() {
    let acquires: Wait = |segment| {
        let units = segment.semaphore.acquire(&segment.party(1), 0, 1, &FOREVER);
        units.err()
    };
    let releases: Wait = |segment| segment.semaphore.release(&segment.party(1), 0, 1).err();
    let consumes: Wait = |segment| segment.semaphore.consume(&segment.party(1), 0, 1).err();
    let adds: Wait = |segment| segment.semaphore.add(&segment.party(1), 1).err();
    for (what, is_held, wait) in [
        ("waits for units", false, acquires),
        ("takes", true, acquires),
        ("gives back", true, releases),
        ("uses up", true, consumes),
        ("adds", true, adds),
    ] {
        let segment = segment();
        // Of three units participants 1 and 2 have one and two.
        set(&words::<_, 8>(&segment.semaphore)[2], 3);
        segment.claims(1, 0, segment.offset(&segment.semaphore), 1);
        segment.claims(2, 0, segment.offset(&segment.semaphore), 2);
        set(word(&segment.semaphore), if is_held { name(2).bits() } else { 0 });
        is_copied(what, segment, &[], wait);
    }
}

#[test]
fn a_copy_of_who_waits_for_a_condition_does_nothing() {
    let waits: Wait = |segment| {
        set(word(&segment.mutex), name(1).bits());
        segment.condvar.wait(&segment.party(1), &segment.mutex, &FOREVER).err()
    };
    is_copied("for a notification", segment(), &[], waits);
    is_copied(
        "for the mutex",
        segment(),
        &[|segment| {
            set(word(&segment.mutex), name(2).bits());
            Woken::At(0)
        }],
        waits,
    );
}
