//! Reading a segment's file.

use super::people::{self, Claimed, People};
use super::{RootLayout, SegmentHeader};
use crate::shared::error::{SegmentError, io};
use crate::shared::file;
use crate::shared::shape::LockKind;
use lockstead_core::robust::Identity;
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, WAITERS};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A segment's file, open for reading. See the module.
#[derive(Debug)]
pub struct SegmentView {
    pub(super) file: File,
    pub(super) header: SegmentHeader,
    pub(super) layout: RootLayout,
}

/// The state of a lock by its word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LockState {
    /// Nobody has it alone. Others may read, or have units.
    Free,
    /// A living participant has it.
    Owned,
    /// Its owner has ended unnoticed ([`super::ParticipantView::unnoticed`]). Who next waits for
    /// it, or opens the segment, finds that out and gets it.
    OwnerMissing,
    /// Its owner has died; the next one gets it.
    OwnerDead,
    /// Nobody has it, and what a dead owner left was not looked at.
    Inconsistent,
    /// The lock is not recoverable.
    NotRecoverable,
}

/// A lock of a segment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LockView<'a> {
    /// The name that the program has for it, from the root on: `accounts[3].lock`.
    pub path: &'a str,
    /// The kind of the lock.
    pub kind: LockKind,
    /// The offset of the lock in the segment.
    pub offset: u64,
    /// Its first word: the owner and flags; of a condition variable, how often it was
    /// notified.
    pub word: u32,
    /// The second word, which names the hand-off waiter.
    pub other: u32,
    /// The state that these words mean. Always [`LockState::Free`] of a condition variable.
    pub state: LockState,
    /// The participant that has it alone, or had when it died.
    pub owner: Option<Identity>,
    /// The hand-off waiter, for which it is reserved.
    pub reserved_for: Option<Identity>,
    /// Somebody may sleep for it.
    pub waiters: bool,
    /// All units of a semaphore, and the free ones among them.
    pub units: Option<(u32, u32)>,
    /// The claims of living participants: its readers, or the holders of units.
    pub claims: &'a [Claimed],
}

/// The number of bytes that are read at once.
const CHUNK: u64 = 1 << 18;
/// The most bytes that the words of a lock have.
const WORDS: u64 = 40;

impl SegmentView {
    /// Opens the segment in the file of this name.
    ///
    /// # Errors
    /// [`SegmentError`], as [`Segment::open`](crate::shared::Segment::open).
    pub fn open(path: impl AsRef<Path>) -> Result<SegmentView, SegmentError> {
        SegmentView::from_file(file::open(path.as_ref(), false)?)
    }

    /// Opens the segment in a file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_file(file: File) -> Result<SegmentView, SegmentError> {
        let file::CheckedFile { file, header, layout } = file::check(file)?;
        Ok(SegmentView { file, header, layout })
    }

    /// Returns what the first page said when it was opened.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Returns what the root is made of.
    #[must_use]
    pub fn layout(&self) -> &RootLayout {
        &self.layout
    }

    /// Reads the doorbell, whose two highest bits count how often everybody was woken.
    ///
    /// # Errors
    /// [`SegmentError::Io`], [`SegmentError::Truncated`].
    pub fn doorbell(&self) -> Result<u32, SegmentError> {
        let mut bytes = [0; 4];
        self.read(&mut bytes, self.header.doorbell)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// Reads who takes part, or did.
    ///
    /// # Errors
    /// As [`doorbell`](Self::doorbell).
    pub fn people(&self) -> Result<People, SegmentError> {
        let header = &self.header;
        let mut records = vec![0; (header.claims_at - header.slots_at) as usize];
        self.read(&mut records, header.slots_at)?;
        let mut claims = vec![0; header.slots as usize * header.claims_each as usize * 8];
        self.read(&mut claims, header.claims_at)?;
        Ok(People::new(&self.file, header, &records, &claims))
    }

    /// Shows every lock to `show`, in the order of the source, until that says false.
    ///
    /// # Errors
    /// As [`doorbell`](Self::doorbell).
    pub fn locks(
        &self,
        people: &People,
        show: &mut dyn FnMut(&LockView<'_>) -> bool,
    ) -> Result<(), SegmentError> {
        let mut chunk = FileChunk { at: 0, bytes: Vec::new() };
        let mut failed = None;
        self.layout.visit(&mut |found| {
            let offset = self.header.root + found.offset;
            match chunk.words(self, offset, found.kind.size()) {
                Ok(words) => show(&LockView::new(found.path, found.kind, offset, words, people)),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Returns the name of the lock at this offset in the segment.
    #[must_use]
    pub fn path_of(&self, offset: u64) -> Option<String> {
        self.find(offset).map(|(path, _)| path)
    }

    /// Reads the lock at this offset in the segment, and returns what `look` makes of it; `None` if
    /// there is none.
    ///
    /// # Errors
    /// As [`doorbell`](Self::doorbell).
    pub fn lock_at<R>(
        &self,
        people: &People,
        offset: u64,
        look: impl FnOnce(&LockView<'_>) -> R,
    ) -> Result<Option<R>, SegmentError> {
        let Some((path, kind)) = self.find(offset) else { return Ok(None) };
        let mut words = vec![0; kind.size().min(WORDS) as usize];
        self.read(&mut words, offset)?;
        Ok(Some(look(&LockView::new(&path, kind, offset, &words, people))))
    }

    fn find(&self, offset: u64) -> Option<(String, LockKind)> {
        let mut path = String::new();
        let kind = self.layout.write_path(offset.checked_sub(self.header.root)?, &mut path).ok()?;
        Some((path, kind))
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), SegmentError> {
        self.file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let is = self.file.metadata().map_or(0, |metadata| metadata.len());
                SegmentError::Truncated { should: self.header.total, is }
            }
            _ => io("reading the segment")(error),
        })
    }
}

/// A piece of the file.
struct FileChunk {
    at: u64,
    bytes: Vec<u8>,
}

impl FileChunk {
    /// Reads so many bytes at this offset, which lie in the root.
    fn words(
        &mut self,
        view: &SegmentView,
        offset: u64,
        count: u64,
    ) -> Result<&[u8], SegmentError> {
        let end = self.at + self.bytes.len() as u64;
        if offset < self.at || offset + count > end {
            let length = CHUNK.min(view.header.total - offset);
            self.bytes.resize(length as usize, 0);
            view.read(&mut self.bytes, offset)?;
            self.at = offset;
        }
        let first = (offset - self.at) as usize;
        Ok(&self.bytes[first..first + count.min(WORDS) as usize])
    }
}

impl<'a> LockView<'a> {
    fn new(
        path: &'a str,
        kind: LockKind,
        offset: u64,
        words: &[u8],
        people: &'a People,
    ) -> LockView<'a> {
        let (word, other) = (people::short(words, 0), people::short(words, 4));
        let mut view = LockView {
            path,
            kind,
            offset,
            word,
            other,
            state: LockState::Free,
            owner: None,
            reserved_for: None,
            waiters: false,
            units: None,
            claims: people.claims_on(offset),
        };
        if kind == LockKind::Condvar {
            return view;
        }
        if kind == LockKind::Semaphore {
            view.units = Some((people::short(words, 8), people::short(words, 12)));
        }
        if word == NOT_RECOVERABLE {
            view.state = LockState::NotRecoverable;
            return view;
        }
        view.owner = Identity::from_bits(word);
        view.waiters = word & WAITERS != 0;
        if word & RESERVED != 0 {
            view.reserved_for = Identity::from_bits(other);
        }
        view.state = match view.owner {
            Some(owner) => match people.living(owner) {
                Some(owner) if owner.unnoticed => LockState::OwnerMissing,
                Some(_) => LockState::Owned,
                None => LockState::OwnerDead,
            },
            None if word & INCONSISTENT != 0 => LockState::Inconsistent,
            None => LockState::Free,
        };
        view
    }
}
