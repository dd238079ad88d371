//! What the semaphore between processes does to its numbers, step by step, on a machine with one
//! thread: what is counted, whom it wakes, and on whom a sleeper sleeps.

use crate::common::segment::{Segment, get, name, segment, set};
use crate::common::shared::{Call, acts, at, deeds, named, wakes_find};
use crate::common::shared_semaphore::{Numbers, SOME, numbers, parts, what, write};
use crate::common::{Alone, script_access, unplayed};
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::robust::word::{NOT_RECOVERABLE, WAITERS};
use lockstead_core::robust::{Domain, Party, RawSharedSemaphore, RobustError, Units};

fn held(segment: &'static Segment, slot: u32, number: usize) -> (u32, u32) {
    let claim = segment.claim(slot, number);
    (get(&claim.what), get(&claim.units))
}

fn channel(segment: &'static Segment) -> usize {
    at(&parts(segment)[7])
}

#[test]
fn units_are_taken_and_somebody_that_sleeps_is_woken_to_watch_their_holder() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let (me, what) = (segment.party(1), what(segment));
    for asleep in 0..3 {
        for on_their_way in 0..2 {
            for found in 0..2 {
                for (units, had) in [(1, 0), (2, 0), (2, 3)] {
                    segment.claims(1, 1, if had == 0 { 0 } else { what }, had);
                    write(segment, Numbers { lost: 4, asleep, on_their_way, ..SOME });
                    let wakes = asleep != 0 && on_their_way == 0;
                    if wakes {
                        wakes_find(&[found]);
                    }
                    let got = semaphore.try_acquire(&me, 1, units);
                    assert_eq!(got, Ok(Units { lost: 4 }));
                    assert_eq!(held(segment, 1, 1), (what, had + units));
                    let left = numbers(segment);
                    let expected = Numbers {
                        free: 2 - units,
                        asleep: if wakes && found == 0 { 0 } else { asleep },
                        on_their_way: if wakes { found } else { on_their_way },
                        channel: 40 + u32::from(wakes),
                        ..SOME
                    };
                    assert_eq!(left, expected, "{asleep} {on_their_way} {found}");
                    let call = wakes.then(|| Call::Wake(channel(segment), 1));
                    assert_eq!(deeds(), Vec::from_iter(call));
                    assert_eq!(named(), None);
                }
            }
        }
    }
    assert_eq!(semaphore.peek(), (9, 0));
    let fresh = RawSharedSemaphore::<Alone>::with_units(7);
    assert_eq!(fresh.peek(), (7, 7));
    assert_eq!(RawSharedSemaphore::<Alone>::default().peek(), (0, 0));
    // It wakes before it claims, and has claimed before others see fewer units.
    segment.claims(1, 1, 0, 0);
    write(segment, Numbers { asleep: 1, ..SOME });
    let claim = segment.claim(1, 1);
    script_access(&claim.units, || {});
    script_access(&claim.units, move || {
        assert_eq!(acts().len(), 1);
        assert_eq!(named(), Some(at(&segment.doorbell)));
    });
    script_access(&claim.what, move || {
        assert_eq!((get(&claim.units), get(&parts(segment)[3])), (1, 2));
    });
    assert_eq!(semaphore.try_acquire(&me, 1, 1), Ok(Units { lost: 0 }));
    assert_eq!(unplayed(), 0);
    // Where there is nobody to wake, it names nothing meanwhile.
    for units in 1..3 {
        segment.claims(1, 1, 0, 0);
        write(segment, SOME);
        script_access(&claim.what, move || assert_eq!((named(), get(&claim.units)), (None, units)));
        assert_eq!((semaphore.try_acquire(&me, 1, units), unplayed()), (Ok(Units { lost: 0 }), 0));
    }
    assert_eq!(semaphore.try_acquire(&me, 2, 1), Err(RobustError::TooManyClaims));
}

#[test]
fn who_finds_too_few_units_counts_those_of_the_living() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let (me, what) = (segment.party(1), what(segment));
    // Of nine: two, three, and two of a dead one's, and another lock's.
    segment.claims(2, 0, what | AWAITED, 2);
    segment.claims(2, 1, what + 1, 1);
    segment.claims(3, 0, what, 1);
    segment.claims(3, 1, what, 2);
    segment.claims(4, 1, what, 2);
    segment.dies(4);
    for (units, got) in [(4, Ok(Units { lost: 3 + 5 })), (5, Err(RobustError::TimedOut))] {
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
        write(segment, Numbers { free: 1, lost: 5, ..SOME });
        assert_eq!(semaphore.try_acquire(&me, 0, units), got);
        let (free, lost) = if got.is_ok() { (0, 0) } else { (4, 8) };
        assert_eq!(numbers(segment), Numbers { free, lost, ..SOME });
        let mine = if got.is_ok() { (what, 4) } else { (0, 0) };
        assert_eq!((held(segment, 1, 0), deeds()), (mine, vec![]));
    }
    // More are claimed than there are, and more were free than are.
    set(&segment.claim(1, 0).what, 0);
    write(segment, Numbers { total: 3, free: 0, ..SOME });
    assert_eq!(semaphore.try_acquire(&me, 0, 1), Err(RobustError::TimedOut));
    assert_eq!(numbers(segment), Numbers { total: 3, free: 0, ..SOME });
    write(segment, Numbers { total: 6, free: 5, ..SOME });
    assert_eq!(semaphore.try_acquire(&me, 0, 9), Err(RobustError::TimedOut));
    assert_eq!(numbers(segment), Numbers { total: 6, free: 1, lost: 0, ..SOME });
    // Enough are free: nobody counts.
    write(segment, Numbers { free: 7, lost: 0, ..SOME });
    assert_eq!(semaphore.try_acquire(&me, 0, 7), Ok(Units { lost: 0 }));
    assert_eq!(numbers(segment), Numbers { free: 0, ..SOME });
    // None are wanted.
    write(segment, Numbers { free: 0, ..SOME });
    set(&segment.claim(1, 0).units, 0);
    assert_eq!(semaphore.try_acquire(&me, 0, 0), Ok(Units { lost: 0 }));
}

#[test]
fn units_come_back_or_are_used_up_after_the_sleepers_are_woken() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let (me, what) = (segment.party(1), what(segment));
    let claim = segment.claim(1, 1);
    for uses in [false, true] {
        for (asleep, on_their_way) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)] {
            for (stands, has, units) in [
                (what, 3, 2),
                (what, 3, 3),
                (what, 3, 1),
                (what, 3, 4),
                (what | AWAITED, 2, 2),
                (what + 1, 3, 2),
                (0, 3, 2),
            ] {
                segment.claims(1, 1, stands, has);
                write(segment, Numbers { asleep, on_their_way, ..SOME });
                let gives = stands & !AWAITED == what && has >= units;
                let wakes = gives && asleep != 0;
                if wakes {
                    wakes_find(&[1]);
                }
                let took = match uses {
                    true => semaphore.consume(&me, 1, units),
                    false => semaphore.release(&me, 1, units),
                };
                assert_eq!(took, Ok(gives));
                let count = if asleep > 1 { u32::MAX } else { units };
                let expected = Numbers {
                    total: SOME.total - if gives && uses { units } else { 0 },
                    free: SOME.free + if gives && !uses { units } else { 0 },
                    asleep: if wakes && count > 1 { 0 } else { asleep },
                    on_their_way: on_their_way + u32::from(wakes),
                    channel: 40 + u32::from(wakes),
                    ..SOME
                };
                assert_eq!(numbers(segment), expected, "{asleep} {stands} {units}");
                let call = wakes.then(|| Call::Wake(channel(segment), count));
                assert_eq!(deeds(), Vec::from_iter(call));
                let left = match (gives, has == units) {
                    (true, true) => (0, 0),
                    (true, false) => (stands, has - units),
                    _ => (stands, has),
                };
                assert_eq!((held(segment, 1, 1), named()), (left, None));
            }
        }
    }
    // First it wakes, then it changes its claim, then the numbers.
    segment.claims(1, 1, what, 3);
    write(segment, Numbers { asleep: 1, ..SOME });
    script_access(&claim.units, || {});
    script_access(&claim.units, move || {
        assert_eq!(acts(), [Call::Wake(channel(segment), 3)]);
        assert_eq!((named(), get(&claim.what)), (Some(at(&segment.doorbell)), what));
    });
    script_access(&parts(segment)[3], move || {
        assert_eq!((get(&claim.what), get(&claim.units)), (0, 0))
    });
    assert_eq!((semaphore.release(&me, 1, 3), unplayed()), (Ok(true), 0));
    // Where there is nobody to wake, it names nothing meanwhile.
    segment.claims(1, 1, what, 3);
    write(segment, SOME);
    script_access(&claim.units, || {});
    script_access(&claim.units, move || assert_eq!((named(), get(&claim.units)), (None, 3)));
    assert_eq!((semaphore.release(&me, 1, 3), unplayed()), (Ok(true), 0));
    assert_eq!(semaphore.release(&me, 2, 1), Err(RobustError::TooManyClaims));
}

#[test]
fn new_units_are_free_before_they_are_counted() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let me = segment.party(1);
    for asleep in 0..3 {
        for found in 0..3 {
            write(segment, Numbers { asleep, ..SOME });
            if asleep != 0 {
                wakes_find(&[found]);
            }
            assert_eq!(semaphore.add(&me, 2), Ok(true));
            let count = if asleep > 1 { u32::MAX } else { 2 };
            let expected = Numbers {
                total: 11,
                free: 4,
                asleep: if found < count { 0 } else { asleep },
                on_their_way: if asleep == 0 { 0 } else { found },
                channel: 40 + u32::from(asleep != 0),
                ..SOME
            };
            assert_eq!(numbers(segment), expected);
            let call = (asleep != 0).then(|| Call::Wake(channel(segment), count));
            assert_eq!((deeds(), named()), (Vec::from_iter(call), None));
        }
    }
    let [_, _, total, free, ..] = parts(segment);
    // Where somebody may have to be woken, the doorbell is named meanwhile.
    for on_their_way in [0, 1] {
        write(segment, Numbers { on_their_way, ..SOME });
        script_access(free, || {});
        script_access(free, move || assert_eq!((get(total), get(free)), (9, 2)));
        script_access(total, || {});
        script_access(total, || {});
        script_access(total, move || {
            assert_eq!((get(total), get(free)), (9, 3));
            assert_eq!(named(), (on_their_way != 0).then(|| at(&segment.doorbell)));
        });
        assert_eq!((semaphore.add(&me, 1), unplayed()), (Ok(true), 0));
    }
    // As many as there can be, and no more.
    for asleep in [0, 1] {
        write(segment, Numbers { total: u32::MAX - 3, asleep, ..SOME });
        assert_eq!(semaphore.add(&me, 4), Ok(false));
        assert_eq!(numbers(segment), Numbers { total: u32::MAX - 3, asleep, ..SOME });
        assert_eq!(deeds(), []);
    }
    assert_eq!(semaphore.add(&me, 3), Ok(true));
    assert_eq!(get(total), u32::MAX);
    let low = Domain { base: usize::MAX, ..segment.domain() };
    let party = Party { domain: low, me: name(1) };
    assert_eq!(semaphore.add(&party, 1), Err(RobustError::Foreign));
    assert_eq!(semaphore.release(&party, 0, 1), Err(RobustError::Foreign));
    // The mutex is lost.
    set(&parts(segment)[0], NOT_RECOVERABLE);
    segment.claims(1, 0, what(segment), 3);
    assert_eq!(semaphore.add(&me, 1), Err(RobustError::NotRecoverable));
    assert_eq!(semaphore.release(&me, 0, 1), Err(RobustError::NotRecoverable));
    assert_eq!((held(segment, 1, 0), named()), ((what(segment), 3), None));
}

/// What is taken and used up in one step is free no longer before there is less of it: who is killed in
/// between has taken nothing.
#[test]
fn units_are_used_up_in_one_step_where_nobody_is_to_be_told_anything() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let me = segment.party(1);
    write(segment, SOME);
    let [mutex, _, total, free, ..] = parts(segment);
    script_access(total, move || assert_eq!((get(total), get(free)), (9, 1)));
    assert!(semaphore.try_use_up(&me, 1));
    assert_eq!((unplayed(), named()), (0, None));
    assert_eq!(numbers(segment), Numbers { total: 8, free: 1, ..SOME });
    assert!(semaphore.try_use_up(&me, 1));
    assert_eq!(numbers(segment), Numbers { total: 7, free: 0, ..SOME });
    for refused in [
        Numbers { free: 0, ..SOME },
        Numbers { asleep: 1, ..SOME },
        Numbers { on_their_way: 1, ..SOME },
        Numbers { lost: 1, ..SOME },
        Numbers { asleep: 1, on_their_way: 1, ..SOME },
        Numbers { on_their_way: 1, lost: 1, ..SOME },
    ] {
        write(segment, refused);
        assert!(!semaphore.try_use_up(&me, 1));
        assert_eq!((numbers(segment), deeds()), (refused, vec![]));
    }
    // Another one has the mutex.
    write(segment, SOME);
    set(mutex, name(2).bits());
    assert!(!semaphore.try_use_up(&me, 1));
    set(mutex, 0);
    assert_eq!(numbers(segment), SOME);
}

/// Who comes after an owner of the mutex that died counts, and says that all is well.
#[test]
fn who_succeeds_a_dead_owner_counts() {
    let segment = segment();
    let me = segment.party(1);
    segment.claims(4, 0, what(segment), 2);
    segment.dies(3);
    for dies in [false, true] {
        write(segment, Numbers { free: 1, ..SOME });
        set(&parts(segment)[0], if dies { name(3).bits() } else { WAITERS });
        assert_eq!(segment.semaphore.add(&me, 1), Ok(true));
        let (free, lost) = if dies { (7, 6) } else { (1, 0) };
        set(&parts(segment)[0], get(&parts(segment)[0]) & !WAITERS);
        assert_eq!(numbers(segment), Numbers { total: 10, free: free + 1, lost, ..SOME });
    }
}
