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
//! worn out. So a seat that is worn out and that no word names when it is looked for, one
//! word after the other, is named by none until somebody takes it. The name of a dead
//! heir, which means nothing, is erased in passing. Claims name locks and not seats, and
//! those of a seat are void while nobody lives there and given back by who takes it.
//!
//! What remains is a thread that has read the word of a lock, and stops before its
//! exchange while 16,384 participants die in the seat that the word names, one of them
//! with that lock; it is as unlikely without scrubbing.

use super::attached::Attachment;
use super::layout::Layout;
use super::shape::LockKind;
use core::sync::atomic::Ordering;
use lockstead_core::Atomic64;
use lockstead_core::shared::seat::LIFE_FREE;
use lockstead_core::shared::word::NOT_RECOVERABLE;
use lockstead_core::shared::{Identity, Life};
use lockstead_linux::U32;

/// Whether nobody is in this seat, and nobody can come.
pub(super) fn is_worn_out(life: Life) -> bool {
    !life.is_alive() && life.taken_by(1).is_none()
}

/// Has the worn-out seats begin anew that no lock names; returns how many.
pub(super) fn scrub(attachment: &Attachment, layout: &Layout) -> usize {
    let root = attachment.header().root;
    let seats = attachment.domain().seats;
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
            let owner = word.load(Ordering::Acquire);
            if owner != NOT_RECOVERABLE {
                forget(&mut worn, owner);
            }
            let named = heir.load(Ordering::Relaxed);
            let is_worn = Identity::from_bits(named)
                .is_some_and(|who| matches!(worn.get(who.slot() as usize), Some(Some(_))));
            let erased = is_worn
                && heir.compare_exchange(named, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if is_worn && !erased {
                forget(&mut worn, named);
            }
        }
        true
    });
    let fresh = Life::new(0, LIFE_FREE);
    let begun = seats.iter().zip(worn).skip(1).filter(|(seat, life)| {
        let Some(life) = life else { return false };
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        seat.life.compare_exchange(life.0, fresh.0, success, failure).is_ok()
    });
    begun.count()
}

/// The seat named in a word stays as it is.
fn forget(worn: &mut [Option<Life>], word: u32) {
    if let Some(who) = Identity::from_bits(word)
        && let Some(life) = worn.get_mut(who.slot() as usize)
    {
        *life = None;
    }
}
