//! Models of the mutex.

use super::*;
use lockstead_core::robust::RawSharedMutex;
use lockstead_core::robust::word::{INCONSISTENT, OWNER, RESERVED, UNTOUCHED};
use lockstead_model::Scenario;

/// What a participant does, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Takes a lock; after a death it declares consistent what that protects.
    Lock(usize),
    /// The same, but may give up.
    Limited(usize),
    /// The same, unless somebody cancels that.
    Cancellable(usize),
    /// Cancels that of others.
    Cancel,
    /// The same, if it need not wait.
    Try(usize),
    /// Takes a lock, and after a death declares nothing.
    Careless(usize),
    /// The same, and touches nothing of what it protects: the next one is told of the death.
    Spare(usize),
    /// Takes a lock, unless a signal handler ends the wait.
    Heed(usize),
    /// Releases a lock, if it has been got.
    Unlock(usize),
    /// Leaves its slot. It holds nothing.
    Leave,
    /// Takes the first free slot.
    Come,
}

impl Op {
    /// Returns the lock that is meant.
    fn lock(self) -> usize {
        match self {
            Op::Lock(lock)
            | Op::Limited(lock)
            | Op::Cancellable(lock)
            | Op::Try(lock)
            | Op::Careless(lock)
            | Op::Spare(lock)
            | Op::Heed(lock)
            | Op::Unlock(lock) => lock,
            Op::Cancel | Op::Leave | Op::Come => 0,
        }
    }
}

/// Locks, and what is noted of each.
#[repr(C)]
pub(crate) struct Locks {
    common: Common,
    locks: [RawSharedMutex<Model>; 2],
    /// The thread that is in its critical section, from 1.
    inside: [U32; 2],
    /// Whether an owner died and nobody was told.
    due: [U32; 2],
    /// The hand-off waiter that the last owner saw the lock reserved for, as words name it.
    promised: [U32; 2],
    /// Whether nobody may have a lock before whom it is reserved for.
    in_turn: bool,
    /// Whether somebody may release a lock after a death and declare nothing.
    may_be_lost: bool,
    /// What the locks protect.
    data: [U32; 2],
    /// What cancels a wait.
    cancel: U32,
}

impl Locks {
    fn new(lives: usize, in_turn: bool) -> Self {
        let locks = Locks {
            common: Common::new(),
            locks: [const { RawSharedMutex::new() }; 2],
            inside: [const { U32::ZERO }; 2],
            due: [const { U32::ZERO }; 2],
            promised: [const { U32::ZERO }; 2],
            in_turn,
            may_be_lost: true,
            data: [const { U32::ZERO }; 2],
            cancel: U32::ZERO,
        };
        locks.common.populate(lives);
        locks
    }

    fn entered(&self, lock: usize, me: Identity, got: Got) {
        aside(|| {
            let promised = self.promised[lock].swap(0, Ordering::Relaxed);
            let kept = promised == 0 || promised == me.bits();
            assert!(kept, "somebody overtakes who the lock is reserved for");
            let me = thread() as u32 + 1;
            let before = self.inside[lock].swap(me, Ordering::Relaxed);
            assert_eq!(before, 0, "two owners");
            let due = self.due[lock].swap(0, Ordering::Relaxed) != 0;
            assert_eq!(due, got == Got::OwnerDied, "a death and what is told of it");
        });
    }

    /// Takes note of who is to have the lock next, which the calling thread is about to release.
    fn promises(&self, lock: usize) {
        let word = self.locks[lock].peek();
        if self.in_turn && word & RESERVED != 0 && word != u32::MAX {
            let next = self.common.living(self.locks[lock].peek_next());
            self.promised[lock].store(next, Ordering::Relaxed);
        }
    }

    fn run<'a>(&'a self, mut party: Party<'a, Model>, ops: &[Op]) {
        let mut held = 0u64;
        // The locks that were taken to touch nothing, and of these the ones of which a death was told.
        let (mut spared, mut mourned) = (0u64, 0u64);
        for (at, &op) in ops.iter().enumerate() {
            let party = match op {
                Op::Come => {
                    forget((at as u64 + 1) << 8);
                    party = self.common.comes();
                    continue;
                }
                _ => &party,
            };
            forget(
                u64::from(party.me.bits()) << 32
                    | (at as u64 + 1) << 8
                    | mourned << 4
                    | spared << 2
                    | held,
            );
            let which = op.lock();
            let lock = &self.locks[which];
            let got = match op {
                Op::Lock(_) | Op::Careless(_) | Op::Spare(_) => {
                    lock.lock(party, &WaitBounds::FOREVER)
                }
                Op::Limited(_) => lock.lock(party, &limited()),
                Op::Heed(_) => {
                    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
                    lock.lock(party, &how)
                }
                Op::Cancellable(_) => lock.lock(party, &cancelled_by(&self.cancel)),
                Op::Try(_) => lock.try_lock(party),
                Op::Cancel => {
                    cancel(&self.cancel);
                    continue;
                }
                Op::Leave => {
                    self.common.leaves(party);
                    continue;
                }
                Op::Come => continue,
                Op::Unlock(_) => {
                    if held >> which & 1 != 0 {
                        let [is_spared, told] =
                            [spared, mourned].map(|bits| bits >> which & 1 != 0);
                        held &= !(1 << which);
                        (spared, mourned) = (spared & !(1 << which), mourned & !(1 << which));
                        // A step in the critical section, at which others would be seen.
                        self.data[which].load(Ordering::Relaxed);
                        aside(|| {
                            self.inside[which].store(0, Ordering::Relaxed);
                            self.promises(which);
                            if told {
                                self.due[which].store(1, Ordering::Relaxed);
                            }
                        });
                        let released = if is_spared {
                            lock.unlock_untouched(party)
                        } else {
                            lock.unlock(party)
                        };
                        assert!(released, "it has the lock");
                    }
                    continue;
                }
            };
            match got {
                Ok(got) => {
                    held |= 1 << which;
                    self.entered(which, party.me, got);
                    if matches!(op, Op::Spare(_)) {
                        spared |= 1 << which;
                        mourned |= u64::from(got == Got::OwnerDied) << which;
                    } else if got == Got::OwnerDied && !matches!(op, Op::Careless(_)) {
                        assert!(lock.mark_consistent(party), "it has the lock");
                    }
                }
                Err(RobustError::TimedOut) => {
                    assert!(matches!(op, Op::Limited(_) | Op::Try(_)), "it waits for ever");
                }
                Err(RobustError::Interrupted) => {
                    assert!(matches!(op, Op::Heed(_)), "no handler ends its wait");
                }
                Err(RobustError::Cancelled) => {
                    assert!(matches!(op, Op::Cancellable(_)), "nobody cancels it");
                }
                Err(RobustError::NotRecoverable) => {
                    let gone = aside(|| lock.peek() == u32::MAX);
                    assert!(gone && self.may_be_lost, "the lock is lost");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        forget(0);
    }

    /// Takes note that the participant of this thread has died.
    fn mourn(&self, dead: usize) {
        let me = dead as u32 + 1;
        let Some((_, bits)) = self.common.dead(dead) else { return };
        for which in 0..2 {
            if self.inside[which].load(Ordering::Relaxed) == me {
                self.inside[which].store(0, Ordering::Relaxed);
            }
            let word = self.locks[which].peek();
            let owned = word & OWNER == bits && word != u32::MAX;
            // Of who has touched nothing nobody is told, but of what it was told itself.
            let harmless = word & UNTOUCHED != 0 && word & INCONSISTENT == 0;
            if owned && !harmless {
                self.due[which].store(1, Ordering::Relaxed);
            }
            // Who dies with the lock does not release it.
            if owned || self.promised[which].load(Ordering::Relaxed) == bits {
                self.promised[which].store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Makes the scenario of participants that each do one of these; equal ones must stand together.
pub(crate) fn locks(programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    with_turns(programs, false)
}

/// Makes the same scenario, in which nobody has a lock before whom it is reserved for. None of the
/// participants gives up.
pub(crate) fn locks_in_turn(programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    with_turns(programs, true)
}

fn with_turns(programs: &'static [&'static [Op]], in_turn: bool) -> Scenario<Locks> {
    let lives = programs.len();
    let may_be_lost = programs.iter().any(|ops| ops.iter().any(|op| matches!(op, Careless(_))));
    Scenario::new(move || Locks { may_be_lost, ..Locks::new(lives, in_turn) })
        .mourn(Locks::mourn)
        .programs(programs, |s: &Locks, ops| s.run(s.common.party(), ops))
}

/// Makes the scenario of these programs, and of what one does that comes in the place of a dead
/// one.
pub(crate) fn locks_again(
    programs: &'static [&'static [Op]],
    again: &'static [Op],
) -> Scenario<Locks> {
    locks(programs).again(move |s: &Locks| {
        let party = s.common.takes_over();
        s.run(party, again);
    })
}

/// Makes the scenario of participants that each do one of these, and leave their slots and come
/// again, to the first slot that is free then: so no two are alike.
pub(crate) fn come_and_go(programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    let lives = programs.len();
    let all = Scenario::new(move || Locks::new(lives, false)).mourn(Locks::mourn);
    programs
        .iter()
        .fold(all, |scenario, ops| scenario.thread(|s: &Locks| s.run(s.common.party(), ops)))
}

/// Makes the scenario in which one leaves its slot, while another one doubts that it lives, and
/// finds that it does.
pub(crate) fn doubted() -> Scenario<Locks> {
    Scenario::new(|| Locks::new(2, false))
        .thread(|s: &Locks| {
            let party = s.common.party();
            let record = &s.common.records[party.me.slot() as usize];
            s.common.leaves(&party);
            aside(|| assert!(record.current().is_free(), "a slot that is left and not free"));
            forget(0);
        })
        .thread(|s: &Locks| {
            let _ = s.common.party();
            let life = Life::alive(1, 1, 1);
            let record = &s.common.records[1];
            if record.change(life, life.doubted()) {
                record.change(life.doubted(), life);
            }
            forget(0);
        })
}

/// Makes the scenario in which one comes to a dead one's slot, while another one doubts that it
/// goes on preparing it, and finds that it does.
pub(crate) fn doubted_newcomer() -> Scenario<Locks> {
    let make = || {
        let locks = Locks::new(2, false);
        locks.common.records[MOST].life.store(Life::ended(1).0, Ordering::Relaxed);
        locks
    };
    Scenario::new(make)
        .thread(|s: &Locks| {
            let _ = s.common.party();
            let taken = s.common.domain().occupy(MOST as u32, 1, 1);
            assert_eq!(taken, Some(Life::alive(2, 1, 1)), "nobody else comes");
            forget(0);
        })
        .thread(|s: &Locks| {
            let _ = s.common.party();
            let record = &s.common.records[MOST];
            let life = record.current();
            if life.is_taken() && record.change(life, life.doubted()) {
                record.change(life.doubted(), life);
            }
            forget(0);
        })
}

/// Makes the same scenario, beside a free lock in which the name of a slot stands that has been
/// left, as only somebody leaves it there who does not keep to the protocol.
pub(crate) fn spoiled(programs: &'static [&'static [Op]]) -> Scenario<Locks> {
    let lives = programs.len();
    let make = move || {
        let locks = Locks::new(lives, false);
        let free = Life::alive(1, 1, 1).free();
        locks.common.records[MOST].life.store(free.0, Ordering::Relaxed);
        let name = Identity::new(MOST as u32, 1).expect("a slot");
        assert!(locks.locks[0].take(name), "it is free");
        locks.due[0].store(1, Ordering::Relaxed);
        locks
    };
    let all = Scenario::new(make).mourn(Locks::mourn);
    programs
        .iter()
        .fold(all, |scenario, ops| scenario.thread(|s: &Locks| s.run(s.common.party(), ops)))
}

use Op::{Cancel, Cancellable, Careless, Come, Heed, Leave, Limited, Lock, Spare, Try, Unlock};

/// One that touches nothing.
pub(crate) const SPARES: &[Op] = &[Spare(0), Unlock(0)];
/// One, unless a signal handler ends the wait.
pub(crate) const HEEDS: &[Op] = &[Heed(0), Unlock(0)];
/// A program of one critical section.
pub(crate) const ONE: &[Op] = &[Lock(0), Unlock(0)];
/// A program of two critical sections.
pub(crate) const TWICE: &[Op] = &[Lock(0), Unlock(0), Lock(0), Unlock(0)];
/// A program of three critical sections.
pub(crate) const THRICE: &[Op] = &[Lock(0), Unlock(0), Lock(0), Unlock(0), Lock(0), Unlock(0)];
/// One, unless it takes too long.
pub(crate) const MAYBE: &[Op] = &[Limited(0), Unlock(0)];
/// One, unless it is cancelled.
pub(crate) const YIELDS: &[Op] = &[Cancellable(0), Unlock(0)];
/// A program that cancels others.
pub(crate) const CANCELS: &[Op] = &[Cancel];
/// One, and cancels others.
pub(crate) const ONE_AND_CANCELS: &[Op] = &[Lock(0), Unlock(0), Cancel];
/// Two, and cancels others.
pub(crate) const TWICE_AND_CANCELS: &[Op] = &[Lock(0), Unlock(0), Lock(0), Unlock(0), Cancel];
/// One, unless it must wait.
pub(crate) const TRY: &[Op] = &[Try(0), Unlock(0)];
/// One, and after a death the lock is lost.
pub(crate) const CARELESS: &[Op] = &[Careless(0), Unlock(0)];
/// One of the other lock.
pub(crate) const OTHER: &[Op] = &[Lock(1), Unlock(1)];
/// Nothing: it only comes.
pub(crate) const IDLE: &[Op] = &[];
/// One critical section, and leaves.
pub(crate) const ONE_AND_LEAVES: &[Op] = &[Lock(0), Unlock(0), Leave];
/// Two, between which it leaves and comes again.
pub(crate) const LEAVES_BETWEEN: &[Op] = &[Lock(0), Unlock(0), Leave, Come, Lock(0), Unlock(0)];
/// Leaves, and comes for one.
pub(crate) const COMES: &[Op] = &[Leave, Come, Lock(0), Unlock(0)];
/// One, unless it takes too long; then leaves, and comes for another.
pub(crate) const MAYBE_AND_COMES: &[Op] = &[Limited(0), Unlock(0), Leave, Come, Lock(0), Unlock(0)];
/// A program of sections of both locks, one in the other.
pub(crate) const NESTED: &[Op] = &[Lock(0), Lock(1), Unlock(1), Unlock(0)];
/// A program of sections of both locks, one after the other.
pub(crate) const BOTH: &[Op] = &[Lock(0), Unlock(0), Lock(1), Unlock(1)];
/// A program of sections of both locks, of which the first is released first.
pub(crate) const CROSSED: &[Op] = &[Lock(0), Lock(1), Unlock(0), Unlock(1)];
