//! The wrong steps that the model must catch, each chosen in one place of the protocol. Tests only.

use std::cell::Cell;

/// A wrong step beside the right one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// The end of a range is its beginning: comparisons over nothing hold.
    WrongRangeEnd,
    /// Whoever was woken is in, without a transaction.
    NoLookAfterWait,
    /// A claim does not compare that the own place is still there (etcd#11456).
    NoConfirmation,
    /// A retried acquisition takes its own mark for a dead owner's.
    OwnMarkForDead,
    /// An attempt that is over leaves no word for its late copies.
    NoVoid,
    /// A release leaves the mark, as if it were removed by a second request that was lost.
    HeldSeparately,
    /// A release that has to be repeated is taken for a loss.
    RetriedReleaseLost,
    /// A holder goes on without a look at the clock (etcd#11457).
    NoClock,
    /// The deadline is counted from the arrival of the answer.
    DeadlineFromAnswer,
}

thread_local! {
    static BROKEN: Cell<Option<Broken>> = const { Cell::new(None) };
}

/// Tells whether the protocol is to take this wrong step on this thread.
pub(crate) fn broken(step: Broken) -> bool {
    BROKEN.with(|broken| broken.get() == Some(step))
}

/// Runs `f` with the protocol taking this wrong step on this thread.
pub(crate) fn with_broken<R>(step: Broken, f: impl FnOnce() -> R) -> R {
    BROKEN.with(|broken| broken.set(Some(step)));
    let result = f();
    BROKEN.with(|broken| broken.set(None));
    result
}
