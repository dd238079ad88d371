//! Using seats again that are worn out.
//!
//! # Why it is right
//! A lock's word names its owner by seat and generation, and a word of a dead owner may
//! stand for ever. So a seat's generation is never used twice: when it has come to the
//! last one, and its participant has died, the seat is taken by nobody any more.
//!
//! It may begin with 0 again once no word of the segment names it. Words name a
//! participant in two places, a lock's owner and its heir, which the directory leads to;
//! only the participant itself writes its name there, and there is none in a seat that is
//! worn out. So the names that are found are erased, one word after the other, and then
//! there are none until somebody takes the seat. The name of a dead heir means nothing.
//! That of a dead owner is erased as its successor would erase it, but for the successor's
//! own name: what is left is a lock that nobody has and that is inconsistent. Claims name
//! locks and not seats, and those of a seat are void while nobody lives there and given
//! back by who takes it.
//!
//! Where a part of the root is unknown ([`UNKNOWN`](super::raw::UNKNOWN)) locks may be that
//! the directory does not lead to: then nothing is scrubbed, and what is worn out stays so.
//!
//! One at a time scrubs: another one, that has found a seat worn out before it began with 0
//! again, would erase the name of who sits there since.
//!
//! What remains is a thread that has read the word of a lock, and stops before its
//! exchange while 16,384 participants die in the seat that the word names, one of them
//! with that lock; it is as unlikely without scrubbing.

use super::attached::Attachment;
use super::layout::Layout;
use super::shape::LockKind;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::Atomic64;
use lockstead_core::shared::seat::LIFE_FREE;
use lockstead_core::shared::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::shared::{Identity, Life, Seat};
use lockstead_linux::shared::in_turn;
use lockstead_linux::{Linux, U32};

/// Whether nobody is in this seat, and nobody can come.
pub(super) fn is_worn_out(life: Life) -> bool {
    !life.is_alive() && life.taken_by(1).is_none()
}

/// Has the worn-out seats begin anew, and no lock name them; returns how many.
pub(super) fn scrub(attachment: &Attachment, layout: &Layout) -> usize {
    in_turn(attachment.handle(), || scrub_alone(attachment, layout)).unwrap_or(0)
}

fn scrub_alone(attachment: &Attachment, layout: &Layout) -> usize {
    if layout.has_unknown() {
        return 0;
    }
    let root = attachment.header().root;
    let domain = attachment.domain();
    let seats = domain.seats;
    let mut worn: Vec<Option<Life>> = seats
        .iter()
        .map(|seat| Some(Life(seat.life.load(Ordering::Acquire))).filter(|life| is_worn_out(*life)))
        .collect();
    if worn.iter().skip(1).all(Option::is_none) {
        return 0;
    }
    layout.visit(&mut |lock| {
        if lock.kind != LockKind::Condvar {
            let words = attachment.at(root + lock.offset).cast::<U32>();
            // SAFETY: two words of a lock within the root (F1), which is mapped while the
            // attachment lives; they are atomics, for which any bits are valid.
            let (word, heir) = unsafe { (words.as_ref().get(), words.add(1).as_ref().get()) };
            erase(seats, &mut worn, heir, |_| 0);
            erase(seats, &mut worn, word, |word| match word {
                NOT_RECOVERABLE => word,
                _ if word & UNTOUCHED != 0 => word & (WAITERS | RESERVED | INCONSISTENT),
                _ => word & (WAITERS | RESERVED) | INCONSISTENT,
            });
        }
        true
    });
    let fresh = Life::new(0, LIFE_FREE);
    let begun = seats.iter().zip(worn).skip(1).filter(|(seat, life)| {
        let Some(life) = life else { return false };
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        seat.life.compare_exchange(life.0, fresh.0, success, failure).is_ok()
    });
    let begun = begun.count();
    // Who sleeps for a lock of which the owner's name was erased looks again.
    domain.ring();
    begun
}

/// Erases the name of a worn-out seat from a word. If that does not succeed at once the
/// seat stays as it is.
fn erase(
    seats: &[Seat<Linux>],
    worn: &mut [Option<Life>],
    word: &AtomicU32,
    erased: impl FnOnce(u32) -> u32,
) {
    let named = word.load(Ordering::Acquire);
    let Some(slot) = Identity::from_bits(named).map(|who| who.slot() as usize) else { return };
    let Some(seat @ Some(_)) = worn.get_mut(slot) else { return };
    if *seat != Some(Life(seats[slot].life.load(Ordering::Acquire))) {
        // A peer has written over it.
        *seat = None;
        return;
    }
    let erased = erased(named);
    let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    if erased != named && word.compare_exchange(named, erased, success, failure).is_err() {
        *seat = None;
    }
}
