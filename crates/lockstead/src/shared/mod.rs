//! Locks in memory that processes share, which survive the death of their holders.
//!
//! ```
//! use lockstead::shared::{Locked, SegmentOptions, Segment, Shareable, SharedMutex};
//!
//! #[derive(Shareable)]
//! #[repr(C)]
//! struct Bank {
//!     accounts: [SharedMutex<i64>; 100],
//! }
//!
//! # let path = std::env::temp_dir().join(format!("bank-mod-{}", std::process::id()));
//! let bank = Segment::<Bank>::open_or_create(&path, &SegmentOptions::new())?;
//! match bank.root().accounts[3].lock()? {
//!     Locked::Acquired(mut account) => *account += 20,
//!     // Somebody died while it had the lock: look what it left, then say so.
//!     Locked::OwnerDied(account) => *account.mark_consistent() += 20,
//!     Locked::NotRecoverable => eprintln!("somebody did not"),
//! }
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it gives
//! - A process that dies, by whatever signal and at whichever instruction, leaves no lock
//!   locked: the next one gets it, and is told ([`Locked::OwnerDied`]). Nobody sleeps on.
//! - It costs next to nothing until then: taking and releasing a free mutex write nothing
//!   but its word, by one atomic operation each, and there is no limit on how many a thread
//!   holds.
//! - It works across containers: that a thread has the same number as another one in
//!   another PID namespace does not matter.
//! - The same for reader-writer locks, semaphores and condition variables.
//! - Every wait has a form with a timeout or deadline, one that a signal handler ends, and
//!   one that another thread ends by a [`CancelToken`](crate::CancelToken).
//!
//! # The types
//!
//! | type | bytes | for |
//! |---|---|---|
//! | [`Segment`] | | the memory, a file with a name or without one |
//! | [`Shareable`] | | what may lie there, with a derive for structs |
//! | [`SharedMutex`] | 8 | exclusion, one owner |
//! | [`SharedRwLock`] | 8 | many readers or one writer |
//! | [`SharedSemaphore`] | 40 | counting units, of which a dead holder's are returned |
//! | [`SharedCondvar`] | 8 | waiting for what a mutex protects to change |
//! | [`inspect`] | | looking at a segment, and repairing it, without its program |
//! | [`raw`] | | the same segments and locks without types, for other languages |
//!
//! # Participants
//! A thread takes part in a segment from its first lock operation there, or from
//! [`Segment::participate`], until it ends. It has a slot in the segment, of which there
//! are as many as [`SegmentOptions::participants`] says; when all are taken, lock operations of
//! further threads fail with [`SharedError::Join`].
//!
//! A forked child is somebody else: it may use the segment, holds nothing that its parent
//! does, and guards that it has inherited do nothing there. A child of `vfork` may only
//! call `exec` and `_exit`. A process that calls `exec` has died, as far as its locks are
//! concerned.
//!
//! # Trust
//! None. Any bits may stand in a segment, written by a peer that is broken or hostile, at
//! any time: a lock operation ends in a lock or an error, or waits as it was told to; it
//! does not crash, leave the segment, or loop. What a peer can do is what whoever has the
//! lock can do: keep it, and spoil what it protects. See [`Segment`] for the one thing
//! more that it can do to a file with a name, which is to cut it, and [`survive_cuts`].
//!
//! # Requirements
//! Linux 5.16 for sleeping on several words at once; before that, waiters look every 20
//! milliseconds. `docs/shared-locks.md` has the protocol, the file format, and what
//! happens at every point at which a participant can die.

mod attached;
#[cfg(all(doctest, feature = "derive"))]
mod compile_fail;
mod condvar;
mod cut;
mod error;
mod file;
mod form;
mod header;
pub mod inspect;
mod layout;
mod locked;
mod mutex;
mod named_before;
mod options;
pub mod raw;
mod rwlock;
mod scrub;
mod segment;
mod semaphore;
mod shape;
mod shareable;

pub use condvar::{SharedCondvar, Waited};
pub use cut::{pages_cut, survive_cuts};
pub use error::{AttachError, NotRecoverable, SegmentError, SharedError};
pub use locked::{HeldGuard, Inconsistent, Locked};
#[cfg(feature = "derive")]
pub use lockstead_derive::Shareable;
pub use lockstead_linux::shared::{Busy, JoinError};
pub use mutex::{SharedMutex, SharedMutexGuard};
pub use options::SegmentOptions;
pub use rwlock::{SharedReadGuard, SharedRwLock, SharedWriteGuard};
pub use segment::Segment;
pub use semaphore::{OnDeath, Permit, SharedSemaphore, Taken};
pub use shape::{Field, LockKind, Shape};
pub use shareable::Shareable;

use lockstead_core::robust::slot::{AWAITED, Claim};
use lockstead_core::{Atomic32, Ordering, robust};
use lockstead_linux::Linux;
use lockstead_linux::shared::SegmentMember;

/// The calling thread, in one segment.
type Party = robust::Party<'static, Linux>;

/// The holder of a lock, for a guard that is not one pointer.
///
/// In a forked child the member may be another participant by then, the child; that one
/// has the same lock by another guard, if it has it.
struct GuardHolder {
    member: &'static SegmentMember,
    me: robust::Identity,
}

impl GuardHolder {
    /// Returns the holder as a participant; `None` in a forked child.
    #[inline]
    fn party(&self) -> Option<Party> {
        self.member.party().filter(|party| party.me == self.me)
    }
}

/// Returns the calling thread as a participant of the segment of an address; it joins if it has
/// not.
#[inline]
fn party(address: usize) -> Result<(&'static SegmentMember, Party), SharedError> {
    let member = match lockstead_linux::shared::member(address) {
        Some(member) => member,
        None => join(address)?,
    };
    match member.party() {
        Some(party) => Ok((member, party)),
        None => Err(SharedError::NotInSegment),
    }
}

/// Returns the number of the claim on the lock of this address, among those that the calling thread uses
/// in its segment.
#[inline]
fn claim_on(member: &SegmentMember, party: &Party, address: usize) -> Option<usize> {
    let what = party.domain.offset(address)?;
    let claims = party.domain.claims_of(party.me.slot());
    let is_it = |claim: &Claim<Linux>| claim.what.load(Ordering::Relaxed) & !AWAITED == what;
    member.find_claim(|number| claims.get(number).is_some_and(is_it))
}

#[cold]
fn join(address: usize) -> Result<&'static SegmentMember, SharedError> {
    lockstead_linux::shared::join(address).map_err(|error| match error {
        JoinError::Foreign => SharedError::NotInSegment,
        error => SharedError::Join(error),
    })
}

/// Returns the error of this crate for one of the core. That a lock is not recoverable is said by
/// [`Locked`].
fn error_of(error: robust::RobustError) -> SharedError {
    match error {
        robust::RobustError::TimedOut => SharedError::TimedOut,
        robust::RobustError::Interrupted => SharedError::Interrupted,
        robust::RobustError::Cancelled | robust::RobustError::Copied => SharedError::Cancelled,
        robust::RobustError::Recursive => SharedError::Recursive,
        robust::RobustError::NotRecoverable => SharedError::Spoiled,
        robust::RobustError::TooManyClaims => SharedError::TooManyClaims,
        robust::RobustError::Foreign => SharedError::NotInSegment,
    }
}

/// Returns the error of a form that only tries.
fn held_error(error: SharedError) -> SharedError {
    match error {
        SharedError::TimedOut => SharedError::Held,
        error => error,
    }
}
