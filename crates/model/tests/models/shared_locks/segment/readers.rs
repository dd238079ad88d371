//! Models of the reader-writer lock.

use super::*;
use lockstead_core::robust::word::{NOT_RECOVERABLE, OWNER, RESERVED, UNTOUCHED};
use lockstead_core::robust::{RawSharedRwLock, ReadHold};
use lockstead_model::Scenario;

/// What a participant does, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// The thread locks to read.
    Read,
    /// The same, but may give up.
    LimitedRead,
    /// Reads without a claim.
    ReadAlone,
    /// The thread locks to write.
    Write,
    /// The same, but may give up.
    LimitedWrite,
    /// Writes if it need not wait.
    TryWrite,
    /// Releases what it has got, if anything.
    Release,
    /// Leaves its slot. It holds nothing.
    Leave,
    /// Takes the first free slot.
    Come,
}

/// What is asserted of who has the lock before whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turns {
    /// No order is asserted.
    Any,
    /// Nobody has it before whom it is reserved for. Nobody gives up.
    Handed,
    /// The same; and no reader has it that comes when a writer is known to wait for readers. Each
    /// writer comes once.
    Drained,
}

/// A lock, and what is noted of it.
#[repr(C)]
pub(crate) struct Locks {
    common: Common,
    lock: RawSharedRwLock<Model>,
    /// The thread that writes or repairs, from 1.
    writer: U32,
    /// A bit for each thread that reads.
    readers: U32,
    /// Whether a writer died and nobody was told.
    due: U32,
    /// A bit for each participant that asks to read.
    asks: U32,
    /// The hand-off waiter that the last writer saw the lock reserved for, as words name it.
    promised: U32,
    /// The writer that a reader saw waiting for readers, until it writes.
    drains: U32,
    /// What is asserted of who comes first.
    turns: Turns,
    /// What the lock protects.
    data: U32,
}

impl Locks {
    fn new(lives: usize, turns: Turns) -> Self {
        let locks = Locks {
            common: Common::new(),
            lock: RawSharedRwLock::new(),
            writer: U32::ZERO,
            readers: U32::ZERO,
            due: U32::ZERO,
            asks: U32::ZERO,
            promised: U32::ZERO,
            drains: U32::ZERO,
            turns,
            data: U32::ZERO,
        };
        locks.common.populate(lives);
        locks
    }

    /// Takes note, as `by` gets the lock. A reader may be `behind` a writer.
    fn enters(&self, by: Identity, writes: bool, told: bool, behind: u32) {
        aside(|| {
            let (me, order) = (thread() as u32, Ordering::Relaxed);
            let promised = self.promised.load(order);
            if promised == by.bits() {
                self.promised.store(0, order);
            } else if let Some(next) = Identity::from_bits(promised) {
                // A reader that has it already may let other readers in before it says so.
                let reads = self.asks.load(order) & bit(next) != 0;
                assert!(!writes && reads, "somebody overtakes who the lock is reserved for");
            }
            if writes && self.drains.load(order) == by.bits() {
                self.drains.store(0, order);
            }
            assert!(
                behind == 0 || self.drains.load(order) != behind,
                "a reader overtakes a writer"
            );
            assert_eq!(self.writer.load(order), 0, "beside a writer");
            if writes {
                assert_eq!(self.readers.load(order), 0, "beside a reader");
                self.writer.store(me + 1, order);
            } else {
                self.readers.fetch_or(1 << me, order);
            }
            self.asks.fetch_and(!bit(by), order);
            let due = self.due.swap(0, order) != 0;
            assert_eq!(due, told, "a death and what is told of it");
        });
    }

    /// Returns the writer that the calling thread, which wants to read, comes after.
    fn behind(&self) -> u32 {
        if self.turns != Turns::Drained {
            return 0;
        }
        // The look at what is noted comes after a step, or it would be one with the last operation.
        self.data.load(Ordering::Relaxed);
        aside(|| self.drains.load(Ordering::Relaxed))
    }

    fn leaves(&self) {
        aside(|| {
            let me = thread() as u32;
            let word = self.lock.peek();
            let writes = self.writer.load(Ordering::Relaxed) == me + 1;
            if writes && word & RESERVED != 0 && self.turns != Turns::Any {
                let next = self.common.living(self.lock.peek_next());
                self.promised.store(next, Ordering::Relaxed);
            }
            if !writes && word & UNTOUCHED != 0 && self.turns == Turns::Drained {
                self.drains.store(word & OWNER, Ordering::Relaxed);
            }
            if self.writer.load(Ordering::Relaxed) == me + 1 {
                self.writer.store(0, Ordering::Relaxed);
            }
            self.readers.fetch_and(!(1 << me), Ordering::Relaxed);
        });
    }

    fn run<'a>(&'a self, mut party: Party<'a, Model>, ops: &[Op]) {
        let lock = &self.lock;
        // 0: nothing; 1: by its claim; 2: alone; 3: to repair; 4: to write.
        let mut held = 0u64;
        for (at, &op) in ops.iter().enumerate() {
            let party = match op {
                Op::Come => {
                    forget((at as u64 + 1) << 8);
                    party = self.common.comes();
                    continue;
                }
                _ => &party,
            };
            let reads = matches!(op, Op::Read | Op::LimitedRead | Op::ReadAlone);
            let behind = if reads { self.behind() } else { 0 };
            let late = u64::from(behind != 0) << 4;
            forget(u64::from(party.me.bits()) << 32 | (at as u64 + 1) << 8 | late | held);
            if reads && self.turns != Turns::Any {
                aside(|| self.asks.fetch_or(bit(party.me), Ordering::Relaxed));
            }
            let how = match op {
                Op::LimitedRead | Op::LimitedWrite => limited(),
                _ => WaitBounds::FOREVER,
            };
            let got = match op {
                Op::Read | Op::LimitedRead => lock.read(party, Some(0), &how).map(Ok),
                Op::ReadAlone => lock.read(party, None, &how).map(Ok),
                Op::Write | Op::LimitedWrite => lock.write(party, &how).map(Err),
                Op::TryWrite => lock.try_write(party).map(Err),
                Op::Leave => {
                    self.common.leaves(party);
                    continue;
                }
                Op::Come => continue,
                Op::Release => {
                    if held != 0 {
                        // A step in the critical section, at which others would be seen.
                        self.data.load(Ordering::Relaxed);
                        self.leaves();
                    }
                    let released = match held {
                        0 => true,
                        1 => lock.unread(party, ReadHold::Claim(0)),
                        2 => lock.unread(party, ReadHold::Alone),
                        3 => lock.unread(party, ReadHold::OwnerDied),
                        _ => lock.unwrite(party),
                    };
                    assert!(released, "it has the lock");
                    held = 0;
                    continue;
                }
            };
            let told = match got {
                Ok(Ok(hold)) => {
                    held = match hold {
                        ReadHold::Claim(_) => 1,
                        ReadHold::Alone => 2,
                        ReadHold::OwnerDied => 3,
                    };
                    hold == ReadHold::OwnerDied
                }
                Ok(Err(got)) => {
                    held = 4;
                    got == Got::OwnerDied
                }
                Err(error) => {
                    let may = matches!(op, Op::LimitedRead | Op::LimitedWrite | Op::TryWrite);
                    assert!(may && error == RobustError::TimedOut, "{error:?}");
                    continue;
                }
            };
            self.enters(party.me, held > 2, told, behind);
            if told {
                assert!(lock.mark_consistent(party), "it has the lock");
            }
        }
        forget(0);
    }

    /// Takes note that the participant of this thread has died.
    fn mourn(&self, dead: usize) {
        let (me, order) = (dead as u32, Ordering::Relaxed);
        if self.writer.load(order) == me + 1 {
            self.writer.store(0, order);
        }
        self.readers.fetch_and(!(1 << me), order);
        let Some((slot, bits)) = self.common.dead(dead) else { return };
        self.asks.fetch_and(!(1 << slot), order);
        let word = self.lock.peek();
        let owns = word & OWNER == bits && word != NOT_RECOVERABLE;
        // Who dies with the lock does not release it.
        if owns || self.promised.load(order) == bits {
            self.promised.store(0, order);
        }
        if owns && word & UNTOUCHED == 0 {
            self.due.store(1, order);
        }
    }
}

/// Returns the bit of a participant, by its slot.
fn bit(who: Identity) -> u32 {
    1 << who.slot()
}

/// Makes the scenario of participants that each do one of these; equal ones must stand together.
pub(crate) fn readers(programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    readers_in(Turns::Any, programs)
}

/// Makes the same scenario, of which more is asserted.
pub(crate) fn readers_in(turns: Turns, programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    let lives = programs.len();
    Scenario::new(move || Locks::new(lives, turns))
        .mourn(Locks::mourn)
        .programs(programs, |s: &Locks, ops| s.run(s.common.party(), ops))
}

/// Makes the scenario of these programs, and of what one does that comes in the place of a dead
/// one.
pub(crate) fn readers_again(
    programs: &'static [&'static [Op]],
    again: &'static [Op],
) -> Scenario<Locks> {
    readers(programs).again(move |s: &Locks| {
        let party = s.common.takes_over();
        s.run(party, again);
    })
}

/// Makes the scenario of participants that each do one of these, and leave their slots and come
/// again, to the first slot that is free then: so no two are alike.
pub(crate) fn come_and_go(programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    let lives = programs.len();
    let all = Scenario::new(move || Locks::new(lives, Turns::Any)).mourn(Locks::mourn);
    programs
        .iter()
        .fold(all, |scenario, ops| scenario.thread(|s: &Locks| s.run(s.common.party(), ops)))
}

/// A program that reads once.
pub(crate) const READS: &[Op] = &[Op::Read, Op::Release];
/// Reads, and reads again.
pub(crate) const READS_TWICE: &[Op] = &[Op::Read, Op::Release, Op::Read, Op::Release];
/// Writes, and writes again.
pub(crate) const WRITES_TWICE: &[Op] = &[Op::Write, Op::Release, Op::Write, Op::Release];
/// Reads, unless it takes too long.
pub(crate) const MAY_READ: &[Op] = &[Op::LimitedRead, Op::Release];
/// Reads without a claim.
pub(crate) const ALONE: &[Op] = &[Op::ReadAlone, Op::Release];
/// A program that writes once.
pub(crate) const WRITES: &[Op] = &[Op::Write, Op::Release];
/// Writes, unless it takes too long.
pub(crate) const MAY_WRITE: &[Op] = &[Op::LimitedWrite, Op::Release];
/// Writes, unless it must wait.
pub(crate) const TRIES: &[Op] = &[Op::TryWrite, Op::Release];
/// A program that reads, then writes.
pub(crate) const BOTH: &[Op] = &[Op::Read, Op::Release, Op::Write, Op::Release];
/// Reads, leaves, comes again, and writes.
pub(crate) const READS_LEAVES_WRITES: &[Op] =
    &[Op::Read, Op::Release, Op::Leave, Op::Come, Op::Write, Op::Release];
/// Writes, leaves, comes again, and reads.
pub(crate) const WRITES_LEAVES_READS: &[Op] =
    &[Op::Write, Op::Release, Op::Leave, Op::Come, Op::Read, Op::Release];
/// Writes, leaves, comes again, and writes.
pub(crate) const LEAVES_BETWEEN: &[Op] =
    &[Op::Write, Op::Release, Op::Leave, Op::Come, Op::Write, Op::Release];
/// A program that writes and leaves.
pub(crate) const WRITES_AND_LEAVES: &[Op] = &[Op::Write, Op::Release, Op::Leave];
/// Leaves, and comes to read.
pub(crate) const COMES_TO_READ: &[Op] = &[Op::Leave, Op::Come, Op::Read, Op::Release];
/// Leaves, and comes to write.
pub(crate) const COMES_TO_WRITE: &[Op] = &[Op::Leave, Op::Come, Op::Write, Op::Release];
