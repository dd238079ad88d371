//! The segment without a type for its root.

use super::super::attached::SegmentAttachment;
use super::super::error::SegmentError;
use super::super::inspect::{RootLayout, SegmentHeader};
use super::super::{Busy, JoinError, SegmentOptions, file, header};
use super::Form;
use core::fmt;
use core::ptr::NonNull;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Memory that processes share, with a root that is described by a [`Form`] instead of a
/// type. As [`Segment`](super::super::Segment) in all else, for trust and dropping too; the
/// same file may be opened as either where the two say the same of the root.
pub struct RawSegment {
    attachment: SegmentAttachment,
}

impl RawSegment {
    /// Makes a segment in a new file with this name. `fill` sees the root, which is
    /// zeroes, before anybody else does.
    ///
    /// # Errors
    /// As [`Segment::create`](super::super::Segment::create).
    ///
    /// # Panics
    /// If `fill` does; no file is left then.
    pub fn create(
        path: impl AsRef<Path>,
        options: &SegmentOptions,
        form: &Form,
        fill: impl FnOnce(NonNull<u8>),
    ) -> Result<Self, SegmentError> {
        let path = path.as_ref();
        let header = plan(options, form)?;
        let (file, temporary) = file::draft(path, options.mode)?;
        let segment = Self::make(file, &header, form, Some(path), fill)?;
        file::link(segment.attachment.file(), temporary, path)?;
        Ok(segment)
    }

    /// Opens the segment in the file of this name; with a `form`, only if its root is of
    /// that one.
    ///
    /// # Errors
    /// As [`Segment::open`](super::super::Segment::open).
    pub fn open(path: impl AsRef<Path>, form: Option<&Form>) -> Result<Self, SegmentError> {
        Self::of(file::open(path.as_ref(), true)?, form, Some(path.as_ref()))
    }

    /// Does what [`open`](Self::open) does, or what [`create`](Self::create) does if there is no
    /// such file; of several processes that do this at the same time, one makes it, and calls
    /// `fill`.
    ///
    /// # Errors
    /// As the two.
    ///
    /// # Panics
    /// As [`create`](Self::create).
    pub fn open_or_create(
        path: impl AsRef<Path>,
        options: &SegmentOptions,
        form: &Form,
        mut fill: impl FnMut(NonNull<u8>),
    ) -> Result<Self, SegmentError> {
        let path = path.as_ref();
        // Somebody else may make it and remove it, again and again; not with us.
        for _ in 0..16 {
            match Self::open(path, Some(form)) {
                Err(error) if is_io(&error, ErrorKind::NotFound) => {}
                other => return other,
            }
            match Self::create(path, options, form, &mut fill) {
                Err(error) if is_io(&error, ErrorKind::AlreadyExists) => {}
                other => return other,
            }
        }
        Self::open(path, Some(form))
    }

    /// Makes a segment without a name in the file system; `name` is what `/proc` shows.
    ///
    /// # Errors
    /// As [`Segment::memfd`](super::super::Segment::memfd).
    ///
    /// # Panics
    /// If `fill` does.
    pub fn memfd(
        name: &str,
        options: &SegmentOptions,
        form: &Form,
        fill: impl FnOnce(NonNull<u8>),
    ) -> Result<Self, SegmentError> {
        let header = plan(options, form)?;
        let file = file::memory(name)?;
        file::permit(&file, options.mode)?;
        Self::make(file, &header, form, None, fill)
    }

    /// Opens the segment behind a descriptor; with a `form`, only if its root is of that
    /// one.
    ///
    /// # Errors
    /// As [`Segment::from_fd`](super::super::Segment::from_fd).
    pub fn from_fd(fd: OwnedFd, form: Option<&Form>) -> Result<Self, SegmentError> {
        Self::of(File::from(fd), form, None)
    }

    /// Returns where the root begins, of [`SegmentHeader::root_bytes`]. Mapped as long as this
    /// lives, and shared with others that may write any bits there at any time.
    #[must_use]
    pub fn root(&self) -> NonNull<u8> {
        self.attachment.at(self.header().root)
    }

    /// Returns what the file's first page said when it was opened.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        self.attachment.header()
    }

    /// Returns what the root consists of.
    #[must_use]
    pub fn layout(&self) -> &RootLayout {
        self.attachment.layout()
    }

    /// Does what [`Segment::participate`](super::super::Segment::participate) does.
    ///
    /// # Errors
    /// [`JoinError`] says what is in the way.
    pub fn participate(&self) -> Result<(), JoinError> {
        // Not that of the root, which may be of no size and the segment's end.
        let address = self.attachment.at(0).addr().get();
        lockstead_linux::shared::join(address).map(drop)
    }

    /// Does what [`Segment::leave`](super::super::Segment::leave) does.
    ///
    /// # Errors
    /// [`Busy`] if the calling thread holds a lock here; nothing has changed then.
    pub fn leave(&self) -> Result<(), Busy> {
        lockstead_linux::shared::leave(self.attachment.handle())
    }

    /// Does what [`Segment::close`](super::super::Segment::close) does.
    ///
    /// # Errors
    /// The segment again, and who is in the way.
    pub fn close(self) -> Result<(), (Self, Busy)> {
        let closed = self.attachment.close();
        closed.map_err(|(attachment, busy)| (RawSegment { attachment }, busy))
    }

    /// Does what [`Segment::scrub`](super::super::Segment::scrub) does. Where a part of the root is
    /// [`UNKNOWN`](super::UNKNOWN) nothing is done: words of locks there may name the slot.
    pub fn scrub(&self) -> usize {
        self.attachment.scrub()
    }

    /// Makes a segment of a new and empty file that nobody else has.
    fn make(
        file: File,
        header: &SegmentHeader,
        form: &Form,
        path: Option<&Path>,
        fill: impl FnOnce(NonNull<u8>),
    ) -> Result<Self, SegmentError> {
        file::fill(&file, header, form.directory())?;
        if path.is_none() {
            file::seal(&file)?;
        }
        let attachment = SegmentAttachment::new(file, header, form.layout().clone(), path)?;
        let segment = RawSegment { attachment };
        fill(segment.root());
        Ok(segment)
    }

    fn of(file: File, form: Option<&Form>, path: Option<&Path>) -> Result<Self, SegmentError> {
        let file::CheckedFile { file, header, layout } = file::check(file)?;
        // Not before it is known to be a segment. What is cut meanwhile is found out when
        // it has been mapped. Who made it may have forbidden that.
        let _ = file::seal(&file);
        let difference = form.and_then(|form| form.difference(&layout, header.root_align));
        if let Some(difference) = difference {
            return Err(SegmentError::OtherRoot { difference });
        }
        let attachment = SegmentAttachment::new(file, &header, layout, path)?;
        Ok(RawSegment { attachment })
    }
}

fn plan(options: &SegmentOptions, form: &Form) -> Result<SegmentHeader, SegmentError> {
    SegmentHeader::new(&header::HeaderParts {
        directory: form.directory(),
        participants: options.participants,
        claims: options.claims,
        root_bytes: form.layout().size,
        root_align: form.align(),
        exclusive: options.exclusive,
    })
}

fn is_io(error: &SegmentError, kind: ErrorKind) -> bool {
    matches!(error, SegmentError::Io { error, .. } if error.kind() == kind)
}

impl AsFd for RawSegment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.attachment.file().as_fd()
    }
}

impl fmt::Debug for RawSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSegment").field("header", self.header()).finish_non_exhaustive()
    }
}
