//! The mutex of a segment: its words, and how participant 1 locks it.

use super::segment::{Segment, Whom, get, words};
use super::shared::{Watch, at, unslept};
use super::{Alone, U32, unplayed};
use lockstead_core::WaitBounds;
use lockstead_core::robust::word::{INCONSISTENT, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{Got, Identity, Life, RobustError};

/// Returns the word, and that of the participant for which the lock is reserved.
pub(crate) fn parts(segment: &'static Segment) -> (&'static U32, &'static U32) {
    let [word, reserved_for] = words::<_, 2>(&segment.mutex);
    (word, reserved_for)
}

/// Locks, and expects that nothing was left unsaid and that the participant no longer waits.
pub(crate) fn lock(
    segment: &'static Segment,
    how: &WaitBounds<'_, Alone>,
) -> Result<Got, RobustError> {
    let got = segment.mutex.lock(&segment.party(1), how);
    assert_eq!((unplayed(), unslept()), (0, 0));
    assert_eq!(get(&segment.record(1).waits_for), 0);
    got
}

pub(crate) fn forever(segment: &'static Segment) -> Result<Got, RobustError> {
    lock(segment, &WaitBounds::FOREVER)
}

/// Returns what a waiter sleeps on, for this word, while it waits for the end of this participant.
pub(crate) fn watches(
    segment: &'static Segment,
    slot: u32,
    is_heir: bool,
    word: u32,
) -> Vec<Watch> {
    let (lock, reserved_for) = parts(segment);
    let record = segment.record(slot);
    let life = Life(record.life.silently());
    let channel = match is_heir {
        true => Watch::Word(at(lock), word),
        false => Watch::Word(at(reserved_for), get(reserved_for)),
    };
    let mut all = vec![
        channel,
        Watch::Word(at(&segment.doorbell), get(&segment.doorbell)),
        Watch::Low(at(&record.life), life.life()),
        Watch::High(at(&record.life), life.high()),
        Watch::Seen(at(lock), word),
    ];
    if Identity::from_bits(word).is_none() {
        all.push(Watch::Seen(at(reserved_for), get(reserved_for)));
    }
    all
}

/// Locks, where the participant may be a copy that writes nothing in its own name.
pub(crate) fn lock_any(
    segment: &'static Segment,
    how: &WaitBounds<'_, Alone>,
) -> Result<Got, RobustError> {
    let got = segment.mutex.lock(&segment.party(1), how);
    assert_eq!((unplayed(), unslept()), (0, 0));
    got
}

/// Returns which flags a word has after a try to own it that succeeds, or why one does not. `whom`: who
/// stands in the word; `heirs`: for whom the lock is reserved.
pub(crate) fn kept_by_a_try(whom: Whom, heirs: Whom, flags: u32) -> Result<u32, RobustError> {
    let kept = flags & (WAITERS | INCONSISTENT | RESERVED);
    match whom {
        Whom::Lives => Err(RobustError::TimedOut),
        Whom::Caller => Err(RobustError::Recursive),
        Whom::Nobody if flags & RESERVED != 0 && heirs == Whom::Lives => Err(RobustError::TimedOut),
        Whom::Nobody => Ok(kept & !RESERVED),
        Whom::Dead | Whom::Left if flags & UNTOUCHED == 0 => Ok(kept | INCONSISTENT),
        Whom::Dead | Whom::Left => Ok(kept),
    }
}
