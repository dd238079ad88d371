//! Putting in order what is stuck in a segment.

use super::{ParticipantView, RootLayout, SegmentHeader, SegmentView};
use crate::shared::attached::SegmentAttachment;
use crate::shared::error::{SegmentError, SharedError};
use crate::shared::file;
use crate::shared::shape::LockKind;
use core::sync::atomic::Ordering;
use lockstead_core::robust::word::NOT_RECOVERABLE;
use lockstead_core::robust::{
    self as robust, Fate, Got, Identity, RawSharedMutex, RawSharedRwLock, RawSharedSemaphore,
    RobustMachine,
};
use lockstead_linux::{Linux, U32};
use std::path::Path;

/// A participant of a segment that knows nothing of its program's types.
#[derive(Debug)]
pub struct Mender {
    attachment: SegmentAttachment,
    /// The participants that lived, as far as the segment knew, before this asked about any.
    living: Vec<Identity>,
}

/// The repair of a lock, if it needed one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Mended {
    /// Nothing had to be repaired.
    Fine,
    /// Its owner had died: it is free now, and what it protects counts as consistent.
    Recovered,
    /// It was not recoverable: it is free now, and what it protects counts as
    /// consistent.
    Reset,
    /// Nothing was repaired: somebody has it who lives.
    Held,
    /// Nothing was repaired: it is not recoverable.
    NotRecoverable,
}

impl Mender {
    /// Opens the segment in the file of this name, to take part in it. Whoever comes to a
    /// segment asks about all that are there, so those that have ended without the kernel's
    /// having said so are marked then; [`declare_dead`](Self::declare_dead) names them.
    ///
    /// # Errors
    /// [`SegmentError`], as [`Segment::open`](crate::shared::Segment::open).
    pub fn open(path: impl AsRef<Path>) -> Result<Mender, SegmentError> {
        let path = path.as_ref();
        let view = SegmentView::from_file(file::open(path, true)?)?;
        let people = view.people()?;
        let living = people.all().iter().filter(|one| one.alive);
        let living = living.filter_map(ParticipantView::identity).collect();
        let SegmentView { file, header, layout } = view;
        let attachment = SegmentAttachment::new(file, &header, layout, Some(path))?;
        Ok(Mender { attachment, living })
    }

    /// Returns what the first page said when it was opened.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        self.attachment.header()
    }

    /// Returns what the root is made of.
    #[must_use]
    pub fn layout(&self) -> &RootLayout {
        self.attachment.layout()
    }

    /// Asks about every participant whether it has ended without the kernel's having said
    /// so, and says so; returns the slots of those that had lived, as far as the segment
    /// knew, when this was opened or is called, and are dead now. Then has everybody who
    /// sleeps in the segment look again.
    #[must_use]
    pub fn declare_dead(&self) -> Vec<u32> {
        let domain = self.attachment.domain();
        let mut living = self.living.clone();
        for slot in 1..self.header().slots {
            let Some(record) = domain.record(slot) else { continue };
            let life = record.current();
            if life.is_taken() {
                living.extend(life.identity(slot));
                let _ = Linux::has_ended(domain.segment, slot, life);
            }
        }
        domain.wake_everybody();
        let dead = living.into_iter().filter(|one| matches!(domain.fate(*one), Fate::Died));
        let mut slots: Vec<u32> = dead.map(Identity::slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Frees a lock that a dead owner has, and declares what it protects consistent,
    /// which is the caller's to know; `reset`: also one that is not recoverable. `offset`
    /// and `kind` are those of a [`LockView`](super::LockView): at another place this
    /// would change data.
    ///
    /// # Errors
    /// [`SharedError::NotInSegment`] if no lock can be there; [`SharedError::Join`].
    pub fn mend(&self, offset: u64, kind: LockKind, reset: bool) -> Result<Mended, SharedError> {
        let header = self.header();
        let root = header.root..=header.root + header.root_bytes;
        let end = offset.checked_add(kind.size()).filter(|end| root.contains(end));
        if end.is_none() || !root.contains(&offset) || !offset.is_multiple_of(8) {
            return Err(SharedError::NotInSegment);
        }
        let at = self.attachment.at(offset);
        let (_, party) = crate::shared::party(at.addr().get())?;
        // Of all that follows: within the root, which is mapped while the attachment lives,
        // and aligned; made of atomics only, for which any bits are valid.
        let outcome = match kind {
            LockKind::Condvar => return Ok(Mended::Fine),
            LockKind::Mutex => {
                // SAFETY: SEGMENT-MAPPED and LAYOUT-WITHIN, as said above the match.
                let lock = unsafe { at.cast::<RawSharedMutex<Linux>>().as_ref() };
                lock.try_lock(&party).inspect(|_| {
                    lock.mark_consistent(&party);
                    lock.unlock(&party);
                })
            }
            LockKind::RwLock => {
                // SAFETY: SEGMENT-MAPPED and LAYOUT-WITHIN, as said above the match.
                let lock = unsafe { at.cast::<RawSharedRwLock<Linux>>().as_ref() };
                lock.try_write(&party).inspect(|_| {
                    lock.mark_consistent(&party);
                    lock.unwrite(&party);
                })
            }
            LockKind::Semaphore => {
                // SAFETY: SEGMENT-MAPPED and LAYOUT-WITHIN, as said above the match.
                let mutex = unsafe { at.cast::<RawSharedMutex<Linux>>().as_ref() };
                // SAFETY: SEGMENT-MAPPED and LAYOUT-WITHIN, as said above the match.
                let lock = unsafe { at.cast::<RawSharedSemaphore<Linux>>().as_ref() };
                let owner = robust::Identity::from_bits(mutex.peek());
                let died =
                    owner.is_some_and(|owner| matches!(party.domain.fate(owner), Fate::Died));
                match owner {
                    // Its mutex is never held for long by one who lives.
                    Some(_) if !died => Err(robust::RobustError::TimedOut),
                    _ => {
                        lock.add(&party, 0).map(|_| if died { Got::OwnerDied } else { Got::Clean })
                    }
                }
            }
        };
        match outcome {
            Ok(Got::Clean) => Ok(Mended::Fine),
            Ok(Got::OwnerDied) => Ok(Mended::Recovered),
            Err(robust::RobustError::TimedOut | robust::RobustError::Recursive) => Ok(Mended::Held),
            Err(robust::RobustError::NotRecoverable) if reset => {
                let words = at.cast::<U32>();
                // SAFETY: SEGMENT-MAPPED and LAYOUT-WITHIN, as said above the match.
                let (word, reserved_for) = unsafe { (words.as_ref().get(), words.add(1).as_ref()) };
                let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
                let done = word.compare_exchange(NOT_RECOVERABLE, 0, success, failure).is_ok();
                Linux::wake_shared(reserved_for, u32::MAX);
                Ok(if done { Mended::Reset } else { Mended::Held })
            }
            Err(robust::RobustError::NotRecoverable) => Ok(Mended::NotRecoverable),
            Err(error) => Err(crate::shared::error_of(error)),
        }
    }

    /// Does what [`Segment::scrub`](crate::shared::Segment::scrub) does.
    pub fn scrub(&self) -> usize {
        self.attachment.scrub()
    }
}
