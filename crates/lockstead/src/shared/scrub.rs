//! Going through all locks of a segment: to use worn-out slots again, and to end names that no
//! living participant bears.
//!
//! ```text
//!   worn out ── prepare ──▶ prepared ── erase its names in all locks ──▶ free, generation 0
//!       ▲                      │
//!       └─ the scrubber ends ──┘
//! ```
//!
//! # Files of two moments
//! After a crash of the system the pages of a file may be of different moments. So may those of a
//! copy that was made while programs used it. Then a lock may name a participant whose slot says
//! that it has left, or that it never came. The next newcomer would bear that name, and own the
//! lock. So a process that finds nobody living ends such names, before any of its threads takes a
//! slot ([`end_name`](lockstead_core::robust::Domain::end_name)). Their locks have dead owners
//! then, as all others that somebody had at that moment.
//!
//! # Why scrubbing is right
//! A lock's word names its owner by slot and generation, and the word of a dead owner may stand for
//! ever. So nobody uses a slot's generation twice: when it has come to the last one, and its
//! participant has died, nobody takes the slot any more. It may begin with 0 again once no word of
//! the segment names it.
//!
//! Words name a participant in two places, as a lock's owner and as its hand-off waiter, and the
//! directory leads to both. Only the participant itself writes its name there, and a worn-out slot
//! has none. So the scrubber erases the names that it finds, one word after the other, and there
//! are none until somebody takes the slot. The name of a dead hand-off waiter means nothing. The
//! name of a dead owner is erased as its successor would do it, but for the successor's own name:
//! nobody has the lock then, and it is inconsistent. Claims name locks and not slots. They are void
//! while nobody lives in their slot, and the next tenant gives them back.
//!
//! Locks to which the directory does not lead may lie where a part of the root is unknown
//! ([`UNKNOWN`](super::raw::UNKNOWN)). Then nobody scrubs, and what is worn out stays so.
//!
//! A scrubber *prepares* the worn-out slots meanwhile, without a new generation. So one at a time
//! scrubs each, and nobody takes a name for worn out that a newcomer bears by then. Whoever finds
//! the name of such a slot in a lock finds it dead, as before, and succeeds it. If the scrubber
//! ends in between, its process's number shows that, and the slot is worn out as before.
//!
//! What remains is a thread that has read the word of a lock, and stops before its exchange while
//! 16,384 participants die in the slot that the word names, one of them with that lock. It is as
//! unlikely without scrubbing.

use super::layout::RootLayout;
use super::shape::LockKind;
use core::fmt;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{Identity, Life};
use lockstead_linux::U32;
use lockstead_linux::shared::{AttachedSegment, Chore, LockName, Scrub};

/// The knowledge of a segment that scrubbing it needs.
#[derive(Debug)]
pub(super) struct Scrubber {
    /// The layout of the root.
    pub(super) layout: RootLayout,
    /// The offset at which the root begins.
    pub(super) root: u64,
}

impl Scrubber {
    /// Returns the hook that `lockstead_linux` calls when threads join. The scrubber lives as long
    /// as the segment is attached.
    pub(super) fn hook(&self) -> Scrub {
        Scrub { by: scrub_by, name: write_name, what: core::ptr::from_ref(self).cast() }
    }

    /// Has the worn-out slots begin anew, and no lock name them; returns how many.
    pub(super) fn scrub(&self, attached: &AttachedSegment) -> usize {
        if self.layout.has_unknown() {
            return 0;
        }
        let domain = attached.domain();
        let mut worn = vec![None; domain.records.len()];
        for (slot, record) in (0..).zip(domain.records).skip(1) {
            let life = record.current();
            if life.is_worn_out()
                // Nobody scrubs who is not known: its end would not be.
                && let Ok(Some(prepared)) = attached.prepare(slot, life)
            {
                worn[slot as usize] = Some(prepared);
            }
        }
        if worn.iter().all(Option::is_none) {
            return 0;
        }
        self.each_lock(attached, |owner, reserved_for| {
            erase(&worn, reserved_for, |_| 0);
            erase(&worn, owner, |word| match word {
                NOT_RECOVERABLE => word,
                _ if word & UNTOUCHED != 0 => word & (WAITERS | RESERVED | INCONSISTENT),
                _ => word & (WAITERS | RESERVED) | INCONSISTENT,
            });
        });
        let begun = domain.records.iter().zip(worn).filter(|(record, prepared)| {
            prepared.is_some_and(|life| record.replace(life, Life(0)))
        });
        let begun = begun.count();
        // Who sleeps for a lock of which the owner's name was erased looks again.
        domain.wake_everybody();
        begun
    }

    /// Ends the names in locks that a newcomer could bear, in a segment in which nobody lives;
    /// returns of how many slots. Where a part of the root is unknown, in the locks that are known.
    fn end_names(&self, attached: &AttachedSegment) -> usize {
        let domain = attached.domain();
        let mut ended = 0;
        self.each_lock(attached, |owner, reserved_for| {
            for word in [owner, reserved_for].map(|word| word.load(Ordering::Relaxed)) {
                let named = Identity::from_bits(word).filter(|_| word != NOT_RECOVERABLE);
                ended += usize::from(named.is_some_and(|who| domain.end_name(who)));
            }
        });
        ended
    }

    /// Returns the two words of each lock that name participants: the owner's and the hand-off
    /// waiter's.
    fn each_lock(&self, attached: &AttachedSegment, mut then: impl FnMut(&AtomicU32, &AtomicU32)) {
        let base = attached.domain().base;
        self.layout.visit(&mut |lock| {
            if lock.kind != LockKind::Condvar {
                let word = base + (self.root + lock.offset) as usize;
                let at = |address| {
                    // SAFETY: LAYOUT-WITHIN and SEGMENT-MAPPED: a word of a lock within the root,
                    // an atomic, for which any bits are valid.
                    let word: &U32 = unsafe { &*with_exposed_provenance(address) };
                    word.get()
                };
                then(at(word), at(word + 4));
            }
            true
        });
    }
}

/// Scrubs, or ends names, for [`Scrub::by`].
fn scrub_by(what: *const (), attached: &AttachedSegment, chore: Chore) -> usize {
    // SAFETY: SEGMENT-MAPPED: `hook` gave this pointer, and the segment is attached, since there is
    // a reference to it.
    let scrubber = unsafe { &*what.cast::<Scrubber>() };
    match chore {
        Chore::Scrub => scrubber.scrub(attached),
        Chore::EndNames => scrubber.end_names(attached),
    }
}

/// Writes what the program calls the lock at this offset in the segment.
fn write_name(what: *const (), offset: usize, name: &mut LockName) -> fmt::Result {
    // SAFETY: SEGMENT-MAPPED: `hook` gave this pointer, and the segment is attached, since the
    // caller is counted in.
    let scrubber = unsafe { &*what.cast::<Scrubber>() };
    let offset = (offset as u64).checked_sub(scrubber.root).ok_or(fmt::Error)?;
    scrubber.layout.write_path(offset, name).map(drop)
}

/// Erases the name of a prepared slot from a word.
fn erase(worn: &[Option<Life>], word: &AtomicU32, erased: impl Fn(u32) -> u32) {
    let mut named = word.load(Ordering::Acquire);
    while let Some(who) = Identity::from_bits(named)
        && worn.get(who.slot() as usize).is_some_and(Option::is_some)
    {
        let erased = erased(named);
        if erased == named {
            return;
        }
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match word.compare_exchange(named, erased, success, failure) {
            Ok(_) => return,
            Err(found) => named = found,
        }
    }
}
