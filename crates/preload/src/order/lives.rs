//! Lives of locks that end without a call: their memory goes.
//!
//! # Role
//! Memory that is freed, unmapped, or a part of a stack that was left, comes to be
//! something else, and a lock there is another one. What order the one before was
//! taken in says nothing of it. If somebody held it, a rule is broken.
//!
//! # Locks on stacks
//! Nobody says that a frame is left. The thread finds out: by its next call that
//! comes from a frame above the lock, whoever used that. (Chains of calls from
//! there are forgotten when the lock is noted, so that the fast path does not know
//! that call.) A thread that swaps contexts within its own stack, or runs a handler
//! on a stack that lies in one of its frames, leaves none so.
//!
//! Or by its own next use of the address from a chain of calls that it does not
//! know, if the word that was the return address of the frame that the lock lies in
//! is another one by then ([`Me::is_same_frame`]). A function that is called again
//! from the same place at once, without any call for a lock above it, is not told
//! from its first call: its locks are those of that call.

use super::places;
use super::stack::{is_own, own as stack};
use crate::me::{Me, on_stack_for_handlers};
use crate::order::chains;
use crate::rules::words::{self, LockWords, WordHolder};
use crate::rules::{self, Gone};
use crate::site::CallSite;
use crate::tls;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::known::CacheLine;
use lockstead_ledger::lock::{LockRecord, ObjectKind, RecordLife};
use lockstead_ledger::thread::{ThreadPart, state as life};

/// Ends the lives of locks in the memory from `low` to below `high`, before it goes by the call at
/// `site`.
#[inline]
pub fn gone(low: u64, high: u64, how: Gone, site: &CallSite) {
    if low < high && places::any(low, high) {
        gone_indeed(low, high, how, site);
    }
}

#[cold]
fn gone_indeed(low: u64, high: u64, how: Gone, site: &CallSite) {
    let Some(me) = crate::me::enter() else { return };
    let mut lives = 0;
    places::each(me.ledger, low, high, |index| {
        lives += u64::from(is_live(&me, index));
        forget_handoff(&me, index);
    });
    if lives != 0 {
        if how == Gone::Freed {
            me.marks_freed(low, high, site);
        }
        let stack = if me.may_be_held(low, high, how) { Some(me.stack(site)) } else { None };
        me.end_lives(low, high, how, stack);
    }
}

/// Forgets what the program has said of a lock, for it has not said that of the next one there.
fn forget_handoff(me: &Me, index: u32) {
    if let Some(lock) = me.ledger.lock(index) {
        rules::handoff::forget(lock.address.load(Relaxed));
    }
}

fn is_live(me: &Me, index: u32) -> bool {
    me.ledger.lock(index).is_some_and(|lock| matches!(lock.shape().1, RecordLife::Live))
}

impl Me {
    /// Tells whether a lock that lives in this memory may be held. What is freed can be read.
    fn may_be_held(&self, low: u64, high: u64, how: Gone) -> bool {
        let stack = self.thread.stack();
        if (0..stack.depth()).any(|i| (low..high).contains(&stack.entry(i).address())) {
            return true;
        }
        let mut held = false;
        places::each(self.ledger, low, high, |index| {
            let Some(lock) = self.ledger.lock(index) else { return };
            let (kind, life, _) = lock.shape();
            let address = lock.address.load(Relaxed);
            if !matches!(life, RecordLife::Live)
                || matches!(
                    kind,
                    ObjectKind::Condition | ObjectKind::Barrier | ObjectKind::ToldCondition
                )
            {
                return;
            }
            let end = address + (words::count(kind) * size_of::<u32>()) as u64;
            let is_whole = matches!(how, Gone::Freed | Gone::Moved) && end <= high;
            let words = if is_whole {
                // SAFETY: in a block of the program's that is not freed yet.
                Some(unsafe { LockWords::read(kind, address) })
            } else {
                LockWords::read_if_there(kind, address)
            };
            held |= words.is_none_or(|words| words.holder() != WordHolder::Nobody);
        });
        held
    }

    /// Leaves in the locks of a block that is about to be freed who frees it.
    fn marks_freed(&self, low: u64, high: u64, site: &CallSite) {
        places::each(self.ledger, low, high, |index| {
            let Some(lock) = self.ledger.lock(index).filter(|_| is_live(self, index)) else {
                return;
            };
            let (kind, _, attributes) = lock.shape();
            let address = lock.address.load(Relaxed);
            if address + (words::count(kind) * size_of::<u32>()) as u64 <= high {
                // SAFETY: such a lock lives in a block of the program's that is not freed yet.
                unsafe { rules::life::freed(self, address, (kind, attributes), site) };
            }
        });
    }

    /// Ends the lives of the locks there. Somebody may hold them if there is a stack
    /// of the call.
    fn end_lives(&self, low: u64, high: u64, how: Gone, stack: Option<u32>) {
        if let Some(stack) = stack {
            rules::memory_gone(self, low, high, how, stack);
        }
        places::each(self.ledger, low, high, |index| {
            forget_handoff(self, index);
            if let Some(lock) = self.ledger.lock(index)
                && is_live(self, index)
            {
                self.end_life(index, lock);
            }
        });
    }

    /// Ends the life of this lock.
    pub fn end_life(&self, index: u32, lock: &LockRecord) {
        let address = lock.address.load(Relaxed);
        self.give_up_lock(address);
        self.ledger.lose_lock(index);
        chains::life_ended(address);
    }

    /// Tells whether a lock that the thread holds can be read: its memory may be gone unseen.
    pub fn is_readable(&self, address: u64, lock: &LockRecord) -> bool {
        let here = &raw const address as u64;
        let (_, high) = stack();
        is_own(here) && (here..high).contains(&address)
            || lock.module.load(Relaxed) != 0 && self.ledger.header().unloads.load(Relaxed) == 0
            || LockWords::read_if_there(lock.shape().0, address).is_some()
    }

    /// Ends the lives of all locks on the stack of the thread, which ends. What it holds there
    /// itself has been reported as that.
    pub fn stack_ends(&self) {
        let (low, high) = stack();
        // The first thread's stack stays.
        let is_first = crate::sys::gettid() == crate::sys::getpid();
        if low < high && !is_first && places::any(low, high) {
            let held = self.thread.stack();
            for address in (0..held.depth()).map(|index| held.entry(index).address()) {
                if (low..high).contains(&address) {
                    let _ = held.revoke(address);
                }
            }
            self.end_lives(low, high, Gone::StackLeft, Some(0));
        }
    }

    /// Notes that a lock at this address became known by the call at `site`; `index` is that of its
    /// record.
    pub fn lies_at(&self, address: u64, index: u32, site: &CallSite) {
        places::note(address);
        let Some(lock) = self.ledger.lock(index) else { return };
        // What lies in a file, or is known, lies on no stack that ends.
        if lock.module.load(Relaxed) != 0 || lock.frame.load(Relaxed) != 0 {
            return;
        }
        let sp = site.stack_pointer();
        let (_, high) = stack();
        if is_own(sp) && (sp..high).contains(&address) {
            lock.frame.store(frame_of(address, self.chain(site)).max(ELSEWHERE), Relaxed);
            note_lowest(&self.thread, address);
            return;
        }
        lock.frame.store(ELSEWHERE, Relaxed);
        if let Some(owner) = self.owner_of_stack(address) {
            note_lowest(&owner, address);
        }
    }

    /// Returns the thread on whose stack the address lies.
    fn owner_of_stack(&self, address: u64) -> Option<ThreadPart<'static>> {
        if !places::may_be_on_stack(address) {
            return None;
        }
        self.ledger.threads().find(|thread| {
            let record = thread.record;
            (record.stack_low.load(Relaxed)..record.stack_high.load(Relaxed)).contains(&address)
                && record.state.load(Relaxed) == life::LIVE
        })
    }

    /// Ends the lives of locks that lie on the thread's stack below the call at `site`, for their
    /// frames were left.
    #[inline]
    pub fn leaves_frames(&self, site: &CallSite) {
        let lowest = self.record().lowest_lock.load(Relaxed);
        if lowest < site.stack_pointer() {
            self.leave_frames(lowest, site.stack_pointer());
        }
    }

    #[cold]
    fn leave_frames(&self, lowest: u64, sp: u64) {
        let within = || tls::words().stacks_within.load(Relaxed) != 0;
        // A handler's stack may be an array in a frame that is there still.
        if !is_own(sp) || within() || on_stack_for_handlers() {
            return;
        }
        self.record().lowest_lock.store(u64::MAX, Relaxed);
        let (low, high) = stack();
        self.end_lives(lowest.max(low), sp, Gone::StackLeft, Some(0));
        places::each(self.ledger, sp, high, |index| {
            if let Some(lock) = self.ledger.lock(index)
                && is_live(self, index)
            {
                self.record().lowest_lock.fetch_min(lock.address.load(Relaxed), Relaxed);
            }
        });
    }

    /// Ends the life of the lock at `address` if it lies on the thread's own stack, in a frame that
    /// was left. To be called before a chain of calls that is not known uses the lock.
    pub fn is_same_frame(&self, address: u64, site: &CallSite) {
        let sp = site.stack_pointer();
        let (_, high) = stack();
        if is_own(sp)
            && (sp..high).contains(&address)
            && let Some(lock) = self.ledger.find_lock(address).and_then(|i| self.ledger.lock(i))
            && !is_there(address, high, lock.frame.load(Relaxed))
        {
            self.end_lives(address, address + 1, Gone::StackLeft, Some(0));
        }
    }
}

/// Notes a lock at this address on the thread's stack: its next call from above does not take the
/// fast path, for no such chain is known any more. (One that it learns at this instant is; then the
/// lock is noticed later.)
fn note_lowest(owner: &ThreadPart<'_>, address: u64) {
    if owner.record.lowest_lock.fetch_min(address, Relaxed) <= address {
        return;
    }
    for line in owner.cache.iter().chain(owner.chains) {
        if line.sp.load(Relaxed) > address {
            line.sp.store(0, Relaxed);
        }
    }
}

/// The mark of a lock of which the frame is not known, or that has none.
const ELSEWHERE: u32 = 1;

/// The number of bits of a frame's mark that are of the return address; above is its distance from
/// the lock, in words.
const OF_RETURN: u32 = 20;

fn mark(distance: u64, address: u32) -> u32 {
    (distance as u32) << OF_RETURN | address & ((1 << OF_RETURN) - 1)
}

/// Returns the mark of the frame that a lock lies in: how far above it the frame's return address
/// is, and that. Zero where that is not known.
fn frame_of(address: u64, line: &CacheLine) -> u32 {
    let sp = line.sp.load(Relaxed);
    (0..line.distances.len())
        .map(|i| (u64::from(line.distances[i].load(Relaxed)), line.returns[i].load(Relaxed)))
        .filter(|&(distance, _)| distance != 0)
        .map(|(distance, address)| (sp + distance * 8, address))
        .find(|&(slot, _)| slot > address)
        .map(|(slot, found)| ((slot - (address & !7)) / 8, found))
        .filter(|&(distance, _)| distance < 1 << (32 - OF_RETURN))
        .map_or(0, |(distance, found)| mark(distance, found))
}

/// Tells whether the frame with this mark is there still, around the lock at `address`, on a stack
/// that ends at `high`.
fn is_there(address: u64, high: u64, frame: u32) -> bool {
    let distance = u64::from(frame >> OF_RETURN);
    let slot = (address & !7) + distance * 8;
    if distance == 0 || slot >= high {
        return true;
    }
    // SAFETY: the word lies on the thread's own stack above its stack pointer, where the lock lies,
    // and below its end.
    let found = unsafe { (slot as *const u32).read_volatile() };
    mark(distance, found) == frame
}
