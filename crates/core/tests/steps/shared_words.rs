//! What the words of locks between processes say, bit by bit.

use crate::common::segment::{GENERATION, get, life, name, rings, segment, set, vacant};
use crate::common::shared::{Call, acts, at, calls};
use crate::common::{Alone, U32, script_access, unplayed};
use lockstead_core::Atomic32;
use lockstead_core::robust::life::{
    LAST_PROCESS, LIFE_ALIVE, LIFE_DEAD, LIFE_DOUBTED, LIFE_FREE, LIFE_NUMBER, LIFE_PREPARED,
};
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::robust::word::{
    INCONSISTENT, LAST_GENERATION, LAST_SLOT, NOT_RECOVERABLE, OWNER, RESERVED, UNTOUCHED, WAITERS,
};
use lockstead_core::robust::{Claim, Domain, Fate, Identity, Life, NoSlot, SlotRecord};

#[test]
fn a_name_is_a_slot_and_a_generation() {
    assert_eq!((LAST_SLOT, LAST_GENERATION), (16_382, 16_383));
    let flags = [WAITERS, INCONSISTENT, RESERVED, UNTOUCHED, OWNER];
    assert_eq!(flags, [1 << 31, 1 << 30, 1 << 29, 1 << 28, (1 << 28) - 1]);
    assert_eq!(NOT_RECOVERABLE, !0);
    for slot in [0, 1, 2, 255, LAST_SLOT - 1, LAST_SLOT, LAST_SLOT + 1, LAST_SLOT + 2, !0] {
        for generation in [0, 1, 2, 77, LAST_GENERATION - 1, LAST_GENERATION, LAST_GENERATION + 1] {
            let name = Identity::new(slot, generation);
            let valid = (1..=16_382).contains(&slot) && generation <= 16_383;
            assert_eq!(name.is_some(), valid, "{slot} {generation}");
            let Some(name) = name else { continue };
            assert_eq!((name.slot(), name.generation()), (slot, generation));
            assert_eq!(name.bits(), generation << 14 | slot);
            for flag in [0, WAITERS, INCONSISTENT, RESERVED, UNTOUCHED, !OWNER] {
                assert_eq!(Identity::from_bits(name.bits() | flag), Some(name));
            }
        }
    }
    for flag in [0, WAITERS, INCONSISTENT, RESERVED, UNTOUCHED, !OWNER] {
        assert_eq!(Identity::from_bits(flag), None);
    }
    // The segment need not have the slot.
    assert_eq!(Identity::from_bits(!0).map(|name| name.slot()), Some(16_383));
}

/// The lower halves: what each is, as free, taken, prepared, alive.
const LOWER: [(u32, [bool; 4]); 10] = [
    (LIFE_FREE, [true, false, false, false]),
    (LIFE_DEAD, [false; 4]),
    (LIFE_ALIVE | 1, [false, true, false, true]),
    (LIFE_ALIVE | (LIFE_NUMBER - 1), [false, true, false, true]),
    (LIFE_ALIVE | LIFE_DOUBTED | 1, [false, true, false, true]),
    (LIFE_ALIVE | LIFE_PREPARED, [false, true, true, false]),
    (LIFE_ALIVE | LIFE_DOUBTED | LIFE_PREPARED, [false, true, true, false]),
    // A peer has written these.
    (LIFE_ALIVE, [false; 4]),
    (LIFE_DOUBTED, [false; 4]),
    (7, [false, true, false, true]),
];

fn of(low: u32, process: u32, generation: u32) -> Life {
    Life(u64::from(process << 14 | generation) << 32 | u64::from(low))
}

#[test]
fn a_life_word_is_what_it_says() {
    let numbers = [LIFE_FREE, LIFE_ALIVE, LIFE_DEAD, LIFE_DOUBTED, LIFE_NUMBER, LAST_PROCESS];
    assert_eq!(numbers, [0, 1 << 31, 3 << 30, 1 << 30, (1 << 30) - 1, (1 << 18) - 1]);
    assert_eq!(LIFE_PREPARED, LIFE_NUMBER);
    for (low, [free, taken, prepared, alive]) in LOWER {
        for generation in [0, 1, 77, LAST_GENERATION - 1, LAST_GENERATION] {
            for process in [0, 1, 5, LAST_PROCESS] {
                let life = of(low, process, generation);
                assert_eq!((life.life(), life.high()), (low, process << 14 | generation));
                assert_eq!((life.process(), life.generation()), (process, generation));
                let is = [life.is_free(), life.is_taken(), life.is_prepared(), life.is_alive()];
                assert_eq!(is, [free, taken, prepared, alive], "{life:x?}");
                let name = alive.then(|| Identity::new(9, generation).expect("a slot"));
                assert_eq!((life.identity(9), life.identity(0)), (name, None));
                let last = generation == LAST_GENERATION;
                assert_eq!(life.is_worn_out(), !taken && !free && last);
                assert_eq!(life.is_scrubbed(), prepared && last);
                assert_eq!(life.dead(), of(LIFE_DEAD, process, generation));
                assert_eq!(life.free(), of(0, 0, generation));
                assert_eq!(life.doubted().0, life.0 | 1 << 30);
                let trusted = if taken { life.0 & !(1 << 30) } else { life.0 };
                assert_eq!(life.trusted().0, trusted);
                assert_eq!(life.prepared(8), of(LIFE_ALIVE | LIFE_PREPARED, 8, generation));
                let next = if free { generation } else { generation + 1 };
                let can = !taken && next <= LAST_GENERATION;
                let taken_by = |number: u32| life.taken_by(8, number);
                assert_eq!(taken_by(3), can.then(|| of(LIFE_ALIVE | 3, 8, next)), "{life:x?}");
                assert_eq!(
                    (taken_by(0), taken_by(LIFE_ALIVE), taken_by(LIFE_DEAD)),
                    (None, None, None)
                );
            }
        }
    }
    // What is too much for its place goes nowhere else.
    assert_eq!(
        Life::alive(!0, !0, !0),
        of(LIFE_ALIVE | LIFE_NUMBER, LAST_PROCESS, LAST_GENERATION)
    );
    assert_eq!(Life::alive(1 << 14, 1 << 18, 1 << 30), of(LIFE_ALIVE, 0, 0));
    assert_eq!(Life::alive(1, 2, 3), of(LIFE_ALIVE | 3, 2, 1));
    assert_eq!(Life::ended(9), of(LIFE_DEAD, 0, 9));
}

fn current(record: &SlotRecord<Alone>) -> Life {
    Life(record.life.silently())
}

#[test]
fn a_life_word_changes_from_what_it_is_only() {
    let segment = segment();
    let record = segment.record(1);
    let one = life(1);
    assert_eq!(record.current(), one);
    assert!(!record.change(one.doubted(), one.dead()));
    assert_eq!(current(record), one);
    assert!(record.change(one, one.dead()));
    assert_eq!(current(record), one.dead());
    // Who leaves finds doubts, or none, or that it was declared dead.
    for (found, left) in [
        (one, one.free()),
        (one.doubted(), one.free()),
        (one.dead(), one.dead()),
        (life(2), life(2)),
        (of(LIFE_ALIVE | 201, 101, GENERATION + 1), of(LIFE_ALIVE | 201, 101, GENERATION + 1)),
        (one.free(), one.free()),
        (one.prepared(9), one.prepared(9)),
    ] {
        segment.lives(1, found);
        record.vacate(one);
        assert_eq!(current(record), left, "{found:x?}");
        segment.lives(1, found);
        assert_eq!(record.replace(one, life(3)), found.trusted() == one);
        let replaced = if found.trusted() == one { life(3) } else { found };
        assert_eq!(current(record), replaced);
    }
    // Doubts come and go between its steps: two exchanges and a look.
    let doubts = |order: &'static [bool]| {
        segment.lives(1, one);
        for doubted in order {
            let doubted = *doubted;
            script_access(&record.life, move || {
                segment.lives(1, if doubted { one.doubted() } else { one });
            });
        }
    };
    for order in [
        &[true, false, true, true, false, false][..],
        &[true, false, false, true, false, true, true, true],
    ] {
        doubts(order);
        assert!(record.replace(one, one.dead()));
        assert_eq!((current(record), unplayed()), (one.dead(), 0));
    }
    doubts(&[true, false]);
    script_access(&record.life, move || segment.lives(1, one.dead()));
    assert!(!record.replace(one, one.free()));
    assert_eq!((current(record), unplayed()), (one.dead(), 0));
}

/// Makes a segment of another size.
fn domain(records: Vec<SlotRecord<Alone>>, claims: usize) -> Domain<'static, Alone> {
    let claim = || Claim { what: U32::ZERO, units: U32::ZERO };
    Domain {
        doorbell: Box::leak(Box::new(U32::ZERO)),
        records: records.leak(),
        claims: (0..claims).map(|_| claim()).collect::<Vec<_>>().leak(),
        claims_each: 2,
        segment: &(),
        base: 0x1000,
    }
}

#[test]
fn a_segment_has_the_slots_and_claims_of_its_tables() {
    let domain = domain((0..LAST_SLOT + 3).map(|_| vacant()).collect(), 7);
    let record = |slot: u32| domain.record(slot).map(at);
    assert_eq!([0, LAST_SLOT + 1, LAST_SLOT + 2, LAST_SLOT + 3, !0].map(record), [None; 5]);
    for slot in [1, 2, LAST_SLOT - 1, LAST_SLOT] {
        assert_eq!(record(slot), Some(at(&domain.records[slot as usize])));
    }
    for (slot, first) in
        [(0, Some(0)), (1, Some(2)), (2, Some(4)), (3, None), (4, None), (!0, None)]
    {
        let claims = domain.claims_of(slot);
        assert_eq!(claims.len(), if first.is_some() { 2 } else { 0 });
        assert_eq!(claims.first().map(at), first.map(|it: usize| at(&domain.claims[it])));
    }
    // Behind the last slot nobody looks: not even for a reason why there is none.
    for record in domain.records {
        record.life.write(Life::alive(1, 2, 3).0);
    }
    domain.records[LAST_SLOT as usize + 1].life.write(Life::ended(LAST_GENERATION).0);
    assert_eq!(domain.take_slot(1, 1), Err(NoSlot::Full));
    domain.records[LAST_SLOT as usize].life.write(Life::ended(3).0);
    assert_eq!(domain.take_slot(1, 9), Ok((LAST_SLOT, Life::alive(4, 1, 9))));
    let lock = |offset: usize| domain.offset(0x1000_usize.wrapping_add(offset));
    assert_eq!([0, 7, 8, 15, 16].map(lock), [None, None, Some(1), Some(1), Some(2)]);
    assert_eq!(lock(usize::MAX), None);
    let most = (1 << 31) - 1;
    assert_eq!([most * 8 + 7, most * 8 + 8, 1 << 35].map(lock), [Some(most as u32), None, None]);
}

#[test]
fn a_name_tells_what_became_of_who_bears_it() {
    let segment = segment();
    let domain = segment.domain();
    let told =
        |slot, generation| match domain.fate(Identity::new(slot, generation).expect("in range")) {
            Fate::Lives(record, life) => ("lives", Some((at(record), life))),
            Fate::Died => ("died", None),
            Fate::Left(record, life) => ("left", Some((at(record), life))),
        };
    let place = at(segment.record(2));
    for (low, [free, _, _, alive]) in LOWER {
        let life = of(low, 3, GENERATION);
        segment.lives(2, life);
        let expected = match (alive, free) {
            (true, _) => ("lives", Some((place, life))),
            (_, true) => ("left", Some((place, life))),
            _ => ("died", None),
        };
        assert_eq!(told(2, GENERATION), expected, "{low:x}");
        assert_eq!(told(2, GENERATION + 1), ("died", None));
        assert_eq!(told(2, GENERATION - 1), ("died", None));
    }
    assert_eq!(told(6, GENERATION), ("died", None));
}

#[test]
fn a_newcomer_takes_the_first_slot_that_it_can() {
    let segment = segment();
    let domain = segment.domain();
    let new = |generation| Life::alive(generation, 50, 60);
    assert_eq!(domain.take_slot(50, 60), Ok((5, new(0))));
    assert_eq!(current(segment.record(5)), new(0));
    assert_eq!(domain.take_slot(50, 60), Err(NoSlot::Full));
    assert_eq!(domain.occupy(3, 50, 60), None);
    assert_eq!(domain.occupy(0, 50, 60), None);
    assert_eq!(domain.occupy(6, 50, 60), None);
    let worn = Life::ended(LAST_GENERATION);
    for (third, fourth, expected) in [
        (worn, life(4), NoSlot::WornOut),
        (life(3), worn.prepared(3), NoSlot::Scrubbed),
        (worn, worn.prepared(3), NoSlot::WornOut),
        (worn.prepared(3), worn, NoSlot::WornOut),
        (life(3).prepared(4), life(4), NoSlot::Full),
        (worn.prepared(3), life(4), NoSlot::Scrubbed),
    ] {
        segment.lives(3, third);
        segment.lives(4, fourth);
        assert_eq!(domain.take_slot(50, 60), Err(expected));
        assert_eq!((current(segment.record(3)), current(segment.record(4))), (third, fourth));
    }
    // A free one of the last generation may be used, until somebody dies there.
    segment.lives(4, Life(worn.0 >> 32 << 32));
    segment.lives(2, Life::ended(5));
    assert_eq!(domain.take_slot(50, 60), Ok((2, new(6))));
    assert_eq!(domain.take_slot(50, 60), Ok((4, new(LAST_GENERATION))));
    // The first slot of all. What a peer has claimed in a free one, who arrives there erases.
    segment.lives(1, life(1).free());
    segment.claims(1, 0, 9, 1);
    assert_eq!(domain.take_slot(50, 60), Ok((1, new(GENERATION))));
    assert_eq!(get(&segment.claim(1, 0).what), 9);
    // Without a number nobody comes.
    segment.lives(2, Life::ended(5));
    assert_eq!(domain.occupy(2, 50, 0), None);
    assert_eq!(current(segment.record(2)), Life::ended(5));
    assert_eq!(acts(), []);
}

#[test]
fn a_newcomer_erases_what_a_dead_one_had_before_it_lives() {
    let segment = segment();
    let domain = segment.domain();
    let record = segment.record(3);
    for doubted in [false, true] {
        segment.claims(2, 1, 8, 5);
        segment.claims(3, 0, 7 | AWAITED, 2);
        segment.claims(3, 1, 9, 3);
        segment.claims(4, 0, 9, 3);
        segment.lives(3, life(3).dead());
        calls();
        let prepared = life(3).prepared(50);
        // The first claim stands, so it does not look at the second before it erases that.
        script_access(&segment.claim(3, 1).what, move || {
            assert_eq!(current(record), prepared);
            if doubted {
                segment.lives(3, prepared.doubted());
            }
        });
        let taken = Life::alive(GENERATION + 1, 50, 60);
        assert_eq!(domain.occupy(3, 50, 60), Some(taken));
        assert_eq!(current(record), taken);
        let first = segment.claim(3, 0);
        assert_eq!(acts(), [rings(segment), Call::Wake(at(&first.what), u32::MAX)]);
        for (slot, number, what, units) in [(2, 1, 8, 5), (3, 0, 0, 0), (3, 1, 0, 0), (4, 0, 9, 3)]
        {
            let claim = segment.claim(slot, number);
            assert_eq!((get(&claim.what), get(&claim.units)), (what, units));
        }
        assert_eq!(unplayed(), 0);
    }
    // Nothing stood there.
    segment.lives(3, life(3).dead());
    assert!(domain.occupy(3, 50, 60).is_some());
    assert!(!domain.erase_claims(3));
    assert_eq!(acts(), []);
    set(&segment.claim(3, 1).units, 4);
    assert!(!domain.erase_claims(3));
    assert_eq!((acts(), get(&segment.claim(3, 1).units)), (vec![], 0));
    set(&segment.claim(3, 1).what, 4);
    assert!(domain.erase_claims(3));
    assert_eq!((acts(), get(&segment.claim(3, 1).what)), (vec![rings(segment)], 0));
    // Who arrives where somebody has written claims tells everybody a second time.
    let party = segment.party(3);
    party.arrive();
    assert_eq!(acts(), []);
    set(&segment.claim(3, 1).what, 4);
    party.arrive();
    assert_eq!(acts(), [rings(segment), rings(segment)]);
    assert_eq!(get(&segment.claim(3, 1).what), 0);
}

#[test]
fn a_newcomer_that_others_come_before_looks_again() {
    let segment = segment();
    let domain = segment.domain();
    let record = segment.record(3);
    // Look, exchange: somebody takes the free slot, dies, and is found dead.
    segment.lives(3, life(3).free());
    script_access(&record.life, || {});
    script_access(&record.life, move || segment.lives(3, life(3).dead()));
    script_access(&record.life, || {});
    // As it prepares the slot, somebody else does.
    script_access(&record.life, move || segment.lives(3, life(4)));
    assert_eq!(domain.occupy(3, 50, 60), None);
    assert_eq!((current(record), unplayed()), (life(4), 0));
    // Its process ends in the eyes of others while it prepares the slot: it begins again.
    segment.lives(3, life(3).dead());
    script_access(&record.life, || {});
    script_access(&record.life, || {});
    script_access(&record.life, move || segment.lives(3, life(3).prepared(50).dead()));
    let taken = Life::alive(GENERATION + 1, 50, 60);
    assert_eq!(domain.occupy(3, 50, 60), Some(taken));
    assert_eq!((current(record), unplayed()), (taken, 0));
    assert_eq!(acts(), []);
}

#[test]
fn a_name_that_nobody_has_put_there_ends_where_a_newcomer_could_bear_it() {
    let segment = segment();
    let domain = segment.domain();
    let record = segment.record(2);
    for (low, [free, taken, _, _]) in LOWER {
        for (generation, next) in
            [(GENERATION - 1, true), (GENERATION, free), (GENERATION + 1, false)]
        {
            let found = of(low, 3, generation);
            segment.lives(2, found);
            let ends = !taken && next;
            assert_eq!(domain.end_name(name(2)), ends, "{found:x?}");
            let after = if ends { Life::ended(GENERATION) } else { found };
            assert_eq!(current(record), after);
        }
    }
    segment.lives(2, life(2).free());
    script_access(&record.life, || {});
    script_access(&record.life, move || segment.lives(2, life(2)));
    assert!(!domain.end_name(name(2)));
    assert_eq!(current(record), life(2));
    assert!(!domain.end_name(Identity::new(6, 1).expect("in range")));
}

#[test]
fn somebody_is_declared_dead_only_as_what_it_was() {
    let segment = segment();
    let domain = segment.domain();
    for (found, declared, dies) in [
        (life(2), life(2), true),
        (life(2).prepared(3), life(2).prepared(3), true),
        (life(2).doubted(), life(2), false),
        (life(2).free(), life(2).free(), false),
        (life(2).dead(), life(2).dead(), false),
        (life(3), life(2), false),
    ] {
        segment.lives(2, found);
        calls();
        assert_eq!(domain.declare_dead(2, declared), dies, "{found:x?}");
        assert_eq!(current(segment.record(2)), if dies { found.dead() } else { found });
        assert_eq!(calls(), if dies { vec![rings(segment)] } else { vec![] });
    }
    assert!(!domain.declare_dead(0, life(2)) && !domain.declare_dead(6, life(2)));
    domain.wake_everybody();
    assert_eq!(calls(), [rings(segment)]);
}
