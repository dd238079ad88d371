//! What semaphores are used for, as it is left and read.

use lockstead_ledger::header::LedgerLayout;
use lockstead_ledger::ledger::{Ledger, LedgerPart};
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::usage::{ACTS, Act, REASONS, Reason, Sharing, Taker, UsageOrigin};
use lockstead_ledger::{Birth, semaphore::SemaphoreRecord};
use std::alloc::{Layout as Memory, alloc_zeroed};
use std::sync::atomic::Ordering::Relaxed;

/// Returns the smallest ledger, for the time of the test program.
fn ledger() -> Ledger<'static> {
    let memory = Memory::from_size_align(LedgerLayout::SMALLEST as usize, 4096).expect("sound");
    // SAFETY: the size is not zero. The block is zeroed, as large as the layout, never
    // freed, and nobody else knows of it.
    unsafe {
        Ledger::create(alloc_zeroed(memory), LedgerLayout::divide(LedgerLayout::SMALLEST), 1, 1)
    }
}

fn birth(address: u64) -> Birth {
    Birth {
        address,
        kind: ObjectKind::Semaphore,
        attributes: 0,
        init_stack: 0,
        first_stack: 0,
        module: 3,
    }
}

fn origin(stack: u32, value: Option<u32>) -> UsageOrigin {
    UsageOrigin { stack, value, sharing: Sharing::Private }
}

/// Initialises a semaphore there, and returns it.
fn begin(ledger: &Ledger<'static>, address: u64, from: UsageOrigin) -> SemaphoreRecord<'static> {
    let lock = ledger.init_lock(&birth(address)).expect("there is room");
    let begun = ledger.use_semaphore(lock, from).expect("there is room");
    assert!(begun.is_new);
    begun
}

fn act(reason: Reason) -> Act {
    Act {
        reason,
        stack: 1,
        thread: 2,
        tid: 3,
        other: Taker { thread: 4, stack: 5 },
        other_tid: 6,
        number: 7,
    }
}

#[test]
fn those_of_one_origin_are_added_up() {
    let ledger = ledger();
    let first = begin(&ledger, 0x1000, origin(5, Some(1)));
    let second = begin(&ledger, 0x2000, origin(5, Some(1)));
    assert!(std::ptr::eq(first.usage, second.usage));
    assert_eq!(first.usage.lives.load(Relaxed), 2);
    assert_eq!(first.usage.elsewhere.load(Relaxed), 1);
    assert_eq!(first.usage.address.load(Relaxed), 0x1000);
    assert_eq!(first.usage.module.load(Relaxed), 3);
    // Another value, another place, another way to share are other origins.
    let named = UsageOrigin { sharing: Sharing::Named, ..origin(5, Some(1)) };
    let others = [origin(5, Some(0)), origin(5, None), origin(6, Some(1)), named];
    for (at, other) in others.into_iter().enumerate() {
        let one = begin(&ledger, 0x3000 + at as u64 * 64, other);
        assert_eq!(one.usage.origin(), Some(other));
        assert_eq!(one.usage.lives.load(Relaxed), 1);
    }
    // All above one are alike.
    let two = begin(&ledger, 0x5000, origin(5, Some(2)));
    let nine = begin(&ledger, 0x6000, origin(5, Some(9)));
    assert!(std::ptr::eq(two.usage, nine.usage));
    assert_eq!((nine.usage.origin().and_then(|o| o.value), nine.usage.most()), (Some(2), 9));
    let less = begin(&ledger, 0x7000, origin(7, Some(8)));
    assert_eq!((less.usage.origin().and_then(|o| o.value), less.usage.most()), (Some(8), 8));
    assert_eq!(ledger.used(LedgerPart::Usages), 1 + 7);
}

#[test]
fn who_has_the_token_is_known_in_its_life_alone() {
    let ledger = ledger();
    let taker = Taker { thread: 7, stack: 9 };
    let life = begin(&ledger, 0x1000, origin(5, Some(1)));
    assert_eq!(life.give(), None);
    assert_eq!(life.take(taker), None);
    assert_eq!(life.taker(), Some(taker));
    assert_eq!(life.take(Taker { thread: 8, stack: 1 }), Some(taker));
    life.act(Reason::TakenTwice, 0x77, || act(Reason::TakenTwice));
    assert!(life.is_marked(&[Reason::InHandler, Reason::TakenTwice]));
    assert!(!life.is_marked(&[Reason::InHandler, Reason::BeginsTaken]));
    // Initialised anew while somebody has it.
    let next = begin(&ledger, 0x1000, origin(5, Some(1)));
    assert_eq!((next.taker(), next.give()), (None, None));
    assert!(!next.is_marked(&Reason::ALL));
    assert_eq!(life.usage.left.load(Relaxed), 1);
    assert_eq!(next.usage.lives.load(Relaxed), 2);
    let lock = ledger.find_lock(0x1000).expect("known");
    assert!(ledger.semaphore(lock).is_some_and(|known| !known.is_new));
    ledger.destroy_lock(0x1000);
    assert!(ledger.semaphore(lock).is_none(), "this life is over");
}

#[test]
fn acts_count_once_for_a_semaphore_and_each_time_for_their_site() {
    let ledger = ledger();
    let [one, other] = [0x1000, 0x2000].map(|address| begin(&ledger, address, origin(5, Some(1))));
    for life in [one, one, other] {
        life.act(Reason::RisesAbove, 0x50, || act(Reason::RisesAbove));
    }
    one.act(Reason::InHandler, 0x50, || act(Reason::InHandler));
    let usage = one.usage;
    let acts: Vec<_> = usage.acts().collect();
    assert_eq!(acts, [(act(Reason::RisesAbove), 3), (act(Reason::InHandler), 1)]);
    assert_eq!(usage.shown[Reason::RisesAbove as usize].load(Relaxed), 2);
    for site in 0..ACTS as u64 {
        one.act(Reason::GivenByAnother, 0x1000 + site, || act(Reason::GivenByAnother));
    }
    assert_eq!((usage.acts().count(), usage.more_acts.load(Relaxed)), (ACTS, 2));
}

#[test]
fn usages_without_room_are_counted() {
    let ledger = ledger();
    let room = ledger.layout().usages.capacity;
    assert!(room >= 16, "{room}");
    let lock = ledger.use_lock(&birth(0x9000)).expect("there is room");
    let all = (1..=room as u32 + 1).map(|at| {
        let lock = ledger.init_lock(&birth(u64::from(at) * 64)).expect("there is room");
        ledger.use_semaphore(lock, origin(at + 8, Some(1))).is_some()
    });
    // Index 0 is none.
    assert_eq!(all.filter(|&fits| fits).count() as u64, room - 1);
    assert_eq!(ledger.header().losses.usages.load(Relaxed), 2);
    assert!(ledger.use_semaphore(lock, origin(9, Some(1))).is_some(), "of a known origin");
}

#[test]
fn numbers_of_threads_and_reasons_have_no_gaps() {
    assert_eq!(Taker::number_of(7), 7);
    for serial in [0, Taker::UNKNOWN, Taker::UNKNOWN + 1, u32::MAX] {
        assert!((1..Taker::UNKNOWN).contains(&Taker::number_of(serial)), "{serial:#x}");
    }
    for (number, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(Reason::from_raw(number as u32), Some(reason));
    }
    assert_eq!(Reason::from_raw(REASONS as u32), None);
}

#[test]
fn a_layout_of_another_size_is_refused_and_not_tried() {
    let sound = LedgerLayout::divide(LedgerLayout::SMALLEST);
    assert_eq!(sound.tokens.capacity, sound.locks.capacity);
    assert!(sound.is_sound());
    // Whoever writes such a number must not be able to end the reader.
    for size in [LedgerLayout::SMALLEST + 0x40000, LedgerLayout::LARGEST - 0x10000, 0, u64::MAX] {
        assert!(!LedgerLayout { size, ..sound }.is_sound(), "{size}");
    }
}
