//! A ledger in ordinary memory: what writers put in, readers find.

use lockstead_ledger::header::{TICK_SHIFT, tick_of};
use lockstead_ledger::lock::{ObjectKind, RecordLife, attribute};
use lockstead_ledger::publish::{Full, Holding, WaitKind, Waiting};
use lockstead_ledger::shares::{FIRST, STACKS};
use lockstead_ledger::thread::{HELD_IN_FIRST_PAGE, held_offset};
use lockstead_ledger::{Birth, Ledger, LedgerLayout, LedgerPart, NotALedger};
use std::alloc::{Layout as Memory, alloc_zeroed, dealloc};
use std::sync::atomic::Ordering::Relaxed;

/// A page-aligned area of zeroes.
struct Area {
    base: *mut u8,
    memory: Memory,
}

impl Area {
    fn new(size: u64) -> Area {
        let memory = Memory::from_size_align(size as usize, 4096).unwrap();
        // SAFETY: the caller gives no size of zero.
        let base = unsafe { alloc_zeroed(memory) };
        assert!(!base.is_null());
        Area { base, memory }
    }

    fn ledger(&self) -> Ledger<'_> {
        let layout = LedgerLayout::divide(self.memory.size() as u64);
        // SAFETY: the block is zeroed, page-aligned and of that size, and lives as long as
        // the area.
        unsafe { Ledger::create(self.base, layout, 42, 1_000_000) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated the block with this layout, and no view outlives the
        // area.
        unsafe { dealloc(self.base, self.memory) };
    }
}

fn birth(address: u64, init_stack: u32) -> Birth {
    Birth {
        address,
        kind: ObjectKind::Mutex,
        attributes: attribute::KNOWN,
        init_stack,
        first_stack: 0,
        module: 0,
    }
}

#[test]
fn layouts_of_all_sizes_fit() {
    let mut size = LedgerLayout::SMALLEST;
    while size <= LedgerLayout::LARGEST {
        let layout = LedgerLayout::divide(size);
        assert!(layout.is_sound(), "{size}");
        assert!(layout.threads.capacity >= 16, "{layout:?}");
        size *= 2;
    }
    let large = LedgerLayout::divide(LedgerLayout::LARGEST);
    assert!(large.threads.capacity >= 20_000, "{large:?}");
    assert!(large.locks.capacity >= 64_000_000, "{large:?}");
    assert_eq!(held_offset(), 16 * 1024);
    assert_eq!(HELD_IN_FIRST_PAGE, 128);
}

#[test]
fn foreign_memory_is_refused_with_a_reason() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let size = LedgerLayout::SMALLEST;
    // SAFETY: the block has `size` bytes and lives until the end of the test.
    let open = || unsafe { Ledger::open(area.base, size) }.map(|_| ());
    assert_eq!(open(), Err(NotALedger::Magic));
    let ledger = area.ledger();
    assert_eq!(open(), Ok(()));
    ledger.header().version.store(77, Relaxed);
    assert_eq!(open(), Err(NotALedger::Version(77)));
    ledger.header().version.store(lockstead_ledger::header::VERSION, Relaxed);
    // SAFETY: the block has more than these bytes and lives until the end of the test.
    assert_eq!(unsafe { Ledger::open(area.base, size / 2) }.err(), Some(NotALedger::Layout));
}

#[test]
fn a_stack_is_stored_once_and_told_apart_by_its_end() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let first = ledger.intern_stack(&[1, 2, 3], 0);
    assert_ne!(first, 0);
    assert_eq!(ledger.intern_stack(&[1, 2, 3], 0), first);
    assert_ne!(ledger.intern_stack(&[1, 2, 3], 9), first);
    assert_ne!(ledger.intern_stack(&[1, 2], 0), first);
    let stack = ledger.stack(first).unwrap();
    assert_eq!(
        (stack.returns().collect::<Vec<_>>(), stack.end, stack.site()),
        (vec![1, 2, 3], 0, 1)
    );
    for forged in [0, 1 << 20, u32::MAX] {
        assert!(ledger.stack(forged).is_none(), "{forged}");
    }
}

#[test]
fn a_full_ledger_counts_what_it_cannot_store() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let mut stored = 0u64;
    while ledger.intern_stack(&[stored + 1; 100], 0) != 0 {
        stored += 1;
    }
    assert!(stored > 100);
    assert_eq!(ledger.header().losses.stacks.load(Relaxed), 1);
    let mut locks = 0;
    while ledger.use_lock(&birth(64 * (locks + 1), 0)).is_some() {
        locks += 1;
    }
    assert_eq!(locks, ledger.layout().locks.capacity - 1);
    assert_eq!(ledger.header().losses.locks.load(Relaxed), 1);
    for lock in (1..=locks).rev() {
        let index = ledger.find_lock(64 * lock).unwrap();
        assert_eq!(ledger.lock(index).unwrap().address.load(Relaxed), 64 * lock);
    }
}

#[test]
fn locks_of_one_place_are_numbered_whatever_led_there() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let ways = [[0x1234, 0x5000], [0x1234, 0x6000], [0x4321, 0x5000]];
    let stacks = ways.map(|way| ledger.intern_stack(&way, 0));
    let numbers = [0, 1, 0, 2, 1].map(|way| stacks[way]);
    let serials = [0x1000, 0x2000, 0x3000, 0x4000, 0x5000].iter().zip(numbers).map(|lock| {
        let index = ledger.init_lock(&birth(*lock.0, lock.1)).unwrap();
        ledger.lock(index).unwrap().serial.load(Relaxed)
    });
    assert_eq!(serials.collect::<Vec<_>>(), [1, 2, 3, 1, 4]);
}

#[test]
fn lives_end_in_graves_and_then_in_one_grave() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let class = ledger.intern_stack(&[0x1234], 0);
    for life in 1..=200u64 {
        let index = ledger.init_lock(&birth(0x1000, class)).unwrap();
        let lock = ledger.lock(index).unwrap();
        assert_eq!(lock.shape(), (ObjectKind::Mutex, RecordLife::Live, attribute::KNOWN));
        assert_eq!(lock.serial.load(Relaxed) as u64, life);
        lock.acquisitions.fetch_add(life, Relaxed);
        if life % 2 == 0 {
            let statistics = ledger.extension(index).unwrap();
            statistics.contended.fetch_add(1, Relaxed);
            statistics.wait.add(1 << 20, 1, class);
            ledger.add_share(&statistics.waited_at, class, 1, 1 << 20);
        }
        if life % 3 == 0 {
            // Without a destruction: the next initialisation ends the life.
            continue;
        }
        ledger.destroy_lock(0x1000);
        assert_eq!(lock.shape().1, RecordLife::Destroyed);
    }
    let graves: Vec<_> = ledger
        .locks()
        .iter()
        .filter(|lock| matches!(lock.shape().1, RecordLife::Grave | RecordLife::MassGrave))
        .collect();
    assert_eq!(graves.len(), 65);
    let count = |f: &dyn Fn(&lockstead_ledger::lock::LockRecord) -> u64| -> u64 {
        graves.iter().map(|grave| f(grave)).sum()
    };
    assert_eq!(count(&|grave| u64::from(grave.buried.load(Relaxed))), 200);
    assert_eq!(count(&|grave| grave.acquisitions.load(Relaxed)), 200 * 201 / 2);
    let contended = |grave: &lockstead_ledger::lock::LockRecord| {
        ledger.existing_extension(grave).map_or(0, |e| e.contended.load(Relaxed))
    };
    assert_eq!(count(&contended), 100);
    let waited = |grave: &lockstead_ledger::lock::LockRecord| {
        ledger.existing_extension(grave).map_or(0, |e| {
            let waited: u64 = ledger.shares(&e.waited_at).map(|share| share.read().2).sum();
            assert_eq!(waited, e.wait.read().count());
            e.wait.read().total
        })
    };
    assert_eq!(count(&waited), 100 << 20);
}

#[test]
fn stacks_beyond_the_last_are_counted_together() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let index = ledger.use_lock(&birth(0x40, 0)).unwrap();
    let statistics = ledger.extension(index).unwrap();
    let most = STACKS as u32;
    for stack in (1..=most + 5).chain(0..=most + 5) {
        ledger.add_share(&statistics.held_at, stack, 1, 10);
    }
    let shares: Vec<_> = ledger.shares(&statistics.held_at).map(|share| share.read()).collect();
    assert_eq!(shares.len(), STACKS + 1);
    assert_eq!(shares[0], (1, 0, 2, 20));
    assert_eq!(shares[STACKS], (0, 0, 11, 110), "five twice, and once no stack");
    assert_eq!(ledger.shares(&statistics.waited_at).count(), 0);
}

#[test]
fn shares_without_room_are_counted_together() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let index = ledger.use_lock(&birth(0x40, 0)).unwrap();
    let statistics = ledger.extension(index).unwrap();
    while ledger.claim(LedgerPart::Shares, 1).is_some() {}
    for stack in 1..=FIRST as u32 + 3 {
        ledger.add_share(&statistics.held_at, stack, 1, 10);
    }
    let last = ledger.shares(&statistics.held_at).last().unwrap();
    assert_eq!(last.read(), (0, 0, 3, 30));
}

#[test]
fn held_locks_are_released_in_any_order() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let thread = ledger.thread(ledger.claim(LedgerPart::Threads, 1).unwrap()).unwrap();
    let stack = thread.stack();
    let hold = |address| Holding {
        address,
        stack: 7,
        tick: tick_of(5 << TICK_SHIFT),
        ..Holding::default()
    };
    for address in 1..=4 {
        stack.push(&hold(address)).unwrap();
    }
    assert_eq!(stack.pop(2).unwrap().address, 2);
    assert_eq!(stack.pop(9), None);
    let left = |n| -> Vec<u64> { (0..n).map(|i| stack.entry(i).address()).collect() };
    assert_eq!((stack.depth(), left(3)), (3, vec![1, 3, 4]));
    // Hand over hand: the stack does not climb.
    for address in 5..100 {
        stack.push(&hold(address)).unwrap();
        stack.pop(address - 1).unwrap();
    }
    assert_eq!((stack.depth(), left(3)), (3, vec![1, 3, 99]));
    // Another thread releases for this one; the hole is passed over.
    assert_eq!(stack.revoke(99).unwrap().tick, 5);
    assert_eq!(stack.pop(3).unwrap().address, 3);
    assert_eq!(stack.pop(1).unwrap().address, 1);
    assert_eq!((stack.depth(), stack.pop(1)), (0, None));
    for address in 1..=ledger.layout().held {
        stack.push(&hold(address)).unwrap();
    }
    assert_eq!(stack.push(&hold(1)), Err(Full));
}

#[test]
fn a_wait_is_confirmed_only_while_it_lasts() {
    let area = Area::new(LedgerLayout::SMALLEST);
    let ledger = area.ledger();
    let wait = &ledger.thread(0).unwrap().record.wait;
    assert!(wait.read().is_none());
    let waiting = Waiting {
        how: WaitKind::WRITE.timed_realtime(),
        stack: 3,
        target: 0x40,
        since: 10,
        deadline: 99,
        companion: 0,
    };
    wait.begin(&waiting);
    let (episode, read) = wait.read().unwrap();
    assert_eq!(read, waiting);
    assert!(read.how.is_timed() && read.how.is_realtime());
    assert_eq!(read.how.kind(), WaitKind::WRITE);
    assert!(wait.is_still(episode));
    wait.end();
    assert!(!wait.is_still(episode) && wait.read().is_none());
    wait.end();
    wait.begin(&waiting);
    assert!(!wait.is_still(episode));
    // Left by longjmp, and another wait begun.
    let (left, _) = wait.read().unwrap();
    wait.begin(&Waiting { target: 0x80, ..waiting });
    assert!(!wait.is_still(left));
    assert_eq!(wait.read().unwrap().1.target, 0x80);
}
