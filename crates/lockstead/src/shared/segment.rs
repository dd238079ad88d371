//! Segments: memory with a root, locks in it, and participants.

use super::error::{AttachError, SegmentError};
use super::header::SegmentHeader;
use super::raw::{Form, RawSegment};
use super::{Busy, JoinError, SegmentOptions, Shareable};
use core::fmt;
use core::ptr::NonNull;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Memory that processes share, with a `T` in it.
///
/// It is a file: with a name, or in memory only and handed on as a descriptor. Each
/// process that wants to use it opens it; each thread that uses a lock in it is a
/// participant from then on, and the kernel tells the others when it ends.
///
/// A new segment's bytes are zeroes, which is a fresh value of every [`Shareable`] type;
/// they never pass over the stack, however many they are.
///
/// Dropping it leaves the segment and unmaps it. As long as other threads of this process
/// are participants, or this thread holds a lock there (because a guard was forgotten),
/// it stays mapped instead, until the process ends; [`close`](Self::close) says so.
///
/// # Trust
/// Who may write the file may write anything there, at any time, and is a peer for good
/// or bad. Whatever a peer writes, lock operations here end with a lock or an error, or
/// wait as they were told to; what a lock protects is as good as those who had it. A file
/// that a hostile peer may cut is the exception: touching what is gone is `SIGBUS`, which
/// ends the process unless it has called [`survive_cuts`](super::survive_cuts). A
/// [`memfd`](Self::memfd) cannot be cut.
///
/// # Example
/// ```
/// use lockstead::shared::{SegmentOptions, Segment, Shareable, SharedMutex};
///
/// #[derive(Shareable)]
/// #[repr(C)]
/// struct Bank {
///     accounts: [SharedMutex<i64>; 100],
/// }
///
/// # let path = std::env::temp_dir().join(format!("bank-{}", std::process::id()));
/// let bank = Segment::<Bank>::create(&path, &SegmentOptions::new())?;
/// *bank.root().accounts[3].lock()?.recover(|_| ())? += 20;
///
/// // Elsewhere, in another process:
/// let same = Segment::<Bank>::open(&path)?;
/// assert_eq!(*same.root().accounts[3].lock()?.recover(|_| ())?, 20);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Segment<T: Shareable> {
    raw: RawSegment,
    root: NonNull<T>,
}

// SAFETY: SEGMENT-MAPPED: the pointer leads into the segment's mapping, to a `T`, which all threads
// may use (SHAREABLE-BITS).
unsafe impl<T: Shareable> Send for Segment<T> {}
// SAFETY: SEGMENT-MAPPED, as for Send: all threads may use the `T` at a time (SHAREABLE-BITS).
unsafe impl<T: Shareable> Sync for Segment<T> {}

impl<T: Shareable> Segment<T> {
    /// Makes a segment in a new file with this name, with the permissions that `options`
    /// say. Nobody sees it before it is complete. `/dev/shm` is the place for it, unless
    /// it is to survive the system.
    ///
    /// # Errors
    /// [`SegmentError::Io`], of the kind
    /// [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) if there is such a file;
    /// [`SegmentError::Options`]; [`SegmentError::Attach`].
    ///
    /// # Panics
    /// If `T` describes itself with more than 1 MiB, or 48 levels, of types.
    pub fn create(path: impl AsRef<Path>, options: &SegmentOptions) -> Result<Self, SegmentError> {
        Self::create_with(path, options, |_| ())
    }

    /// Does what [`create`](Self::create) does, with a root that `fill` has changed before anybody
    /// else sees it. It is zeroes at first.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    ///
    /// # Panics
    /// As [`create`](Self::create), and if `fill` does; no file is left then.
    ///
    /// ```
    /// use lockstead::shared::{SegmentOptions, Segment, Shareable, SharedMutex};
    ///
    /// #[derive(Shareable)]
    /// #[repr(C)]
    /// struct Table {
    ///     columns: u64,
    ///     rows: SharedMutex<u64>,
    /// }
    ///
    /// # let path = std::env::temp_dir().join(format!("table-{}", std::process::id()));
    /// let table = Segment::<Table>::create_with(&path, &SegmentOptions::new(), |table| {
    ///     table.columns = 12;
    ///     *table.rows.get_mut() = 1000;
    /// })?;
    /// assert_eq!(table.root().columns, 12);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_with(
        path: impl AsRef<Path>,
        options: &SegmentOptions,
        fill: impl FnOnce(&mut T),
    ) -> Result<Self, SegmentError> {
        RawSegment::create(path, options, &Form::of::<T>(), filled_by(fill)).map(Self::with)
    }

    /// Opens the segment in the file of this name.
    ///
    /// # Errors
    /// [`SegmentError`]: each says what is wrong with the file and what to do.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SegmentError> {
        RawSegment::open(path, Some(&Form::of::<T>())).map(Self::with)
    }

    /// Does what [`open`](Self::open) does, or what [`create`](Self::create) does if there is no
    /// such file; of several processes that do this at the same time, one makes it.
    ///
    /// # Errors
    /// As the two.
    ///
    /// # Panics
    /// As [`create`](Self::create).
    pub fn open_or_create(
        path: impl AsRef<Path>,
        options: &SegmentOptions,
    ) -> Result<Self, SegmentError> {
        RawSegment::open_or_create(path, options, &Form::of::<T>(), |_| ()).map(Self::with)
    }

    /// Makes a segment without a name in the file system: others get its descriptor
    /// ([`AsFd`]), by inheritance or over a socket. It cannot be cut or extended by
    /// anybody. `name` is what `/proc` shows.
    ///
    /// # Errors
    /// [`SegmentError::Io`], [`SegmentError::Options`], [`SegmentError::Attach`].
    ///
    /// # Panics
    /// As [`create`](Self::create).
    ///
    /// ```
    /// use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
    /// use std::os::fd::AsFd;
    ///
    /// let segment = Segment::<SharedMutex<u64>>::memfd("total", &SegmentOptions::new())?;
    /// let same = segment.as_fd().try_clone_to_owned()?;
    /// let same = Segment::<SharedMutex<u64>>::from_fd(same)?;
    /// *segment.root().lock()?.recover(|_| ())? = 5;
    /// assert_eq!(*same.root().lock()?.recover(|_| ())?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memfd(name: &str, options: &SegmentOptions) -> Result<Self, SegmentError> {
        Self::memfd_with(name, options, |_| ())
    }

    /// Does what [`memfd`](Self::memfd) does, with a root that `fill` has changed.
    ///
    /// # Errors
    /// As [`memfd`](Self::memfd).
    ///
    /// # Panics
    /// As [`memfd`](Self::memfd), and if `fill` does.
    pub fn memfd_with(
        name: &str,
        options: &SegmentOptions,
        fill: impl FnOnce(&mut T),
    ) -> Result<Self, SegmentError> {
        RawSegment::memfd(name, options, &Form::of::<T>(), filled_by(fill)).map(Self::with)
    }

    /// Opens the segment behind a descriptor, which must allow reading and writing. If it
    /// is one in memory that is not sealed yet, it is sealed against changes of its size;
    /// unless whoever made it has forbidden that, and may still cut it: see
    /// [`survive_cuts`](super::survive_cuts).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_fd(fd: OwnedFd) -> Result<Self, SegmentError> {
        RawSegment::from_fd(fd, Some(&Form::of::<T>())).map(Self::with)
    }

    /// Returns what lies in the segment.
    ///
    /// Everything in it that is not an atomic or a lock is to be left as it is once the
    /// segment was created, by everybody.
    #[inline]
    #[must_use]
    pub fn root(&self) -> &T {
        // SAFETY: SEGMENT-MAPPED, of this size and alignment (`with`), and SHAREABLE-BITS. Peers
        // that keep to the protocol change atomics, and what locks protect, only.
        unsafe { self.root.as_ref() }
    }

    /// Returns what the file's first page said when it was opened.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        self.raw.header()
    }

    /// Makes the calling thread a participant now, and not at its first lock operation:
    /// so that a segment that is full, or a system that cannot tell of deaths, is found
    /// out where that can be handled.
    ///
    /// # Errors
    /// [`JoinError`] says what is in the way.
    pub fn participate(&self) -> Result<(), JoinError> {
        self.raw.participate()
    }

    /// Gives the calling thread's slot up, for other threads to take. It becomes a
    /// participant again with its next lock operation. (A thread that ends does this by
    /// itself.)
    ///
    /// # Errors
    /// [`Busy`] if it holds a lock here; nothing has changed then.
    pub fn leave(&self) -> Result<(), Busy> {
        self.raw.leave()
    }

    /// Leaves the segment and unmaps it.
    ///
    /// # Errors
    /// The segment again, and who is in the way: other threads of this process that are
    /// participants, or a lock that this thread holds.
    pub fn close(self) -> Result<(), (Self, Busy)> {
        let Segment { raw, root } = self;
        raw.close().map_err(|(raw, busy)| (Segment { raw, root }, busy))
    }

    /// Makes slots usable again of which each has been left by 16,384 dead participants,
    /// which is as many as the locks' words can tell apart; returns how many. Not needed
    /// otherwise: [`participate`](Self::participate) does it when there is no other slot.
    ///
    /// Locks that such a slot's last participant had when it died are nobody's then, and
    /// the next one that takes them is told of the death, as it would be without.
    pub fn scrub(&self) -> usize {
        self.raw.scrub()
    }

    /// Wraps a segment that was made or opened with the form of a `T`.
    fn with(raw: RawSegment) -> Self {
        let root = raw.root().cast();
        Segment { raw, root }
    }
}

/// Turns a `fill` for a `T` into one for a root.
fn filled_by<T: Shareable>(fill: impl FnOnce(&mut T)) -> impl FnOnce(NonNull<u8>) {
    // SAFETY: SEGMENT-MAPPED and SHAREABLE-BITS: a new segment's root, of the form of a `T`, all
    // zeroes. Nobody else knows the file, or its mapping.
    |root| fill(unsafe { root.cast().as_mut() })
}

impl<T: Shareable> AsFd for Segment<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}

impl<T: Shareable> fmt::Debug for Segment<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("header", self.header()).finish_non_exhaustive()
    }
}

impl From<AttachError> for SegmentError {
    fn from(error: AttachError) -> Self {
        SegmentError::Attach(error)
    }
}
