//! The one step by which all slow paths change a lock word: a compare-exchange of all 64 bits.

use crate::atomic::{Atomic64, Ordering};
use crate::platform::Platform;
use crate::word::{Subject, Word};

/// Replaces `from` by `to` in the lock word, with slow unlocks to come where the release of `K`
/// may lose something. Returns the word as written.
///
/// # Errors
/// The word that was found in the place of `from`.
#[inline]
pub(crate) fn exchange<P: Platform, K: Subject>(
    word: &P::U64,
    from: Word,
    to: Word,
) -> Result<Word, Word> {
    let to = K::written(to, P::slow_unlocks());
    // ord: WORD-1 acq_rel: acquire pairs with WORD-2 (the release of the lock we
    // may be taking), release pairs with WORD-1 of the spinner that finds our node
    // through the tail.
    match word.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => Ok(to),
        Err(found) => Err(Word(found)),
    }
}
