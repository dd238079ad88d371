//! Segments: files of locks, each mapped once in a process.

use crate::error::{not_joined, unusable};
use core::ptr::NonNull;
use lockstead::shared::inspect::{LayoutNode, RootLayout};
use lockstead::shared::raw::{Form, RawSegment, RawSemaphore};
use lockstead::shared::{LockKind, OnDeath, SegmentError, SegmentOptions};
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// A segment that this process has mapped. Dropping the last reference unmaps it, if no other thread of
/// the process takes part.
pub(crate) struct Attached {
    raw: ManuallyDrop<RawSegment>,
    path: Option<PathBuf>,
}

// SAFETY: the segment is read only after it was made: its address, its header, its layout. What is in
// it are atomics. Which thread detaches it does not matter.
unsafe impl Send for Attached {}
// SAFETY: all threads may read what does not change, and use the atomics.
unsafe impl Sync for Attached {}

/// The segments of this process, by device and inode: two mappings of one would be two participants.
static KNOWN: LazyLock<Mutex<Segments>> = LazyLock::new(Mutex::default);

type Segments = HashMap<(u64, u64), Weak<Attached>>;

impl Attached {
    pub(crate) fn raw(&self) -> &RawSegment {
        &self.raw
    }

    /// Returns the one that this process has of the same file already, or this one.
    pub(crate) fn register(raw: RawSegment, path: Option<PathBuf>) -> PyResult<Arc<Attached>> {
        let about = about(raw.as_fd()).map_err(|error| PyOSError::new_err(error.to_string()))?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, segment| segment.strong_count() != 0);
        if let Some(segment) = known.get(&about).and_then(Weak::upgrade) {
            return Ok(segment);
        }
        let segment = Arc::new(Attached { raw: ManuallyDrop::new(raw), path });
        known.insert(about, Arc::downgrade(&segment));
        Ok(segment)
    }

    fn open(path: &Path) -> PyResult<Arc<Attached>> {
        let raw = RawSegment::open(path, None).map_err(|error| named(error, path))?;
        Attached::register(raw, std::path::absolute(path).ok())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // A thread that holds a lock here keeps the segment, and so does any other one: then it stays
        // mapped until the process ends.
        let _ = self.raw.leave();
        // SAFETY: the segment is taken out once, when the last reference is dropped, and not used again.
        drop(unsafe { ManuallyDrop::take(&mut self.raw) });
    }
}

fn about(fd: BorrowedFd<'_>) -> std::io::Result<(u64, u64)> {
    let file = File::from(fd.try_clone_to_owned()?);
    file.metadata().map(|about| (about.dev(), about.ino()))
}

/// Returns the exception for a file that cannot be had, with its name.
fn named(error: SegmentError, path: &Path) -> PyErr {
    match &error {
        SegmentError::Io { error: cause, .. } if cause.raw_os_error().is_some() => {
            let number = cause.raw_os_error();
            PyOSError::new_err((number, cause.to_string(), path.display().to_string()))
        }
        _ => unusable(error),
    }
}

/// One field of a root that is described from Python.
#[derive(FromPyObject)]
pub(crate) struct Described(pub(crate) String, pub(crate) String, pub(crate) u64, pub(crate) bool);

/// Returns the kind of lock of this name.
pub(crate) fn kind_of(name: &str) -> Option<LockKind> {
    let kinds = [LockKind::Mutex, LockKind::RwLock, LockKind::Semaphore, LockKind::Condvar];
    kinds.into_iter().find(|kind| kind.name() == name)
}

/// Describes a root: a struct of this name, or the one field alone where the name is empty. A field is
/// a lock of a kind, or data of so many bytes; several of them if it says that it is an array.
pub(crate) fn form(name: &str, fields: &[Described]) -> PyResult<Form> {
    let bad = || PyValueError::new_err("no such segment: fields are locks, or data with a size");
    let mut at = 0u64;
    let mut described = Vec::new();
    for Described(field, kind, count, is_array) in fields {
        let unit = RootLayout::plain("()", 0);
        let element = match kind_of(kind) {
            Some(kind) => RootLayout::lock(kind, kind.size(), kind.size(), unit).ok_or_else(bad)?,
            None if kind == "u64" => RootLayout::plain("u64", 8),
            None if kind == "u8" => RootLayout::plain("u8", 1),
            None => return Err(bad()),
        };
        let layout = if *is_array {
            let stride = element.size;
            RootLayout::array(*count, stride, element).ok_or_else(bad)?
        } else {
            element
        };
        let size = layout.size;
        described.push((field.clone(), at, layout));
        at =
            at.checked_add(size).and_then(|end| end.checked_next_multiple_of(8)).ok_or_else(bad)?;
    }
    let layout = match described.as_slice() {
        [(_, _, layout)] if name.is_empty() => layout.clone(),
        _ => RootLayout::structure(name, at, described).ok_or_else(bad)?,
    };
    Form::new(layout, 8).map_err(unusable)
}

/// A file of locks, in memory only or with a name, that this process has mapped.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Segment {
    pub(crate) attached: Arc<Attached>,
}

#[pymethods]
impl Segment {
    /// Makes the segment of this path, or opens the one that is there if `existing`; `units` are those
    /// of each semaphore in it.
    #[staticmethod]
    #[pyo3(signature = (path, name, fields, *, existing, participants, claims, mode, units))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        path: PathBuf,
        name: &str,
        fields: Vec<Described>,
        existing: bool,
        participants: u32,
        claims: u32,
        mode: u32,
        units: u32,
    ) -> PyResult<Segment> {
        let form = form(name, &fields)?;
        let options = SegmentOptions::new().participants(participants).claims(claims).mode(mode);
        let fill = |root| fill_semaphores(form.layout(), root, units);
        let raw = if existing {
            RawSegment::open_or_create(&path, &options, &form, fill)
        } else {
            RawSegment::create(&path, &options, &form, fill)
        };
        let raw = raw.map_err(|error| named(error, &path))?;
        let attached = Attached::register(raw, std::path::absolute(&path).ok())?;
        Ok(Segment { attached })
    }

    /// Opens the segment of this path, whatever is in it.
    #[staticmethod]
    fn open(path: PathBuf) -> PyResult<Segment> {
        Ok(Segment { attached: Attached::open(&path)? })
    }

    /// Opens the segment behind a descriptor, which stays the caller's.
    #[staticmethod]
    fn from_fd(fd: i32) -> PyResult<Segment> {
        if fd < 0 {
            return Err(PyValueError::new_err("fd: a descriptor that is open"));
        }
        // SAFETY: borrowed for this call; whether it is open the system says.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let io =
            |error: std::io::Error| PyOSError::new_err((error.raw_os_error(), error.to_string()));
        let about = about(borrowed).map_err(io)?;
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&about).cloned();
        if let Some(attached) = known.and_then(|known| known.upgrade()) {
            return Ok(Segment { attached });
        }
        let owned = borrowed.try_clone_to_owned().map_err(io)?;
        let raw = RawSegment::from_fd(owned, None).map_err(unusable)?;
        Ok(Segment { attached: Attached::register(raw, None)? })
    }

    /// Returns the path of the file, as it was made or opened; `None` of one without a name.
    #[getter]
    fn path(&self) -> Option<&Path> {
        self.attached.path.as_deref()
    }

    /// Returns the descriptor of the file, which stays the segment's.
    fn fileno(&self) -> i32 {
        self.attached.raw().as_fd().as_raw_fd()
    }

    /// Returns where the root lies in the file, and how many bytes it has.
    #[getter]
    fn root(&self) -> (u64, u64) {
        let header = self.attached.raw().header();
        (header.root, header.root_bytes)
    }

    /// Takes part in the segment with the calling thread, which lock operations do by themselves.
    fn participate(&self) -> PyResult<()> {
        self.attached.raw().participate().map_err(not_joined)
    }

    /// Returns the offset of the lock with this name, and its kind; the only lock without a name.
    fn find(&self, name: Option<&str>) -> PyResult<(u64, &'static str)> {
        let mut found = None;
        let mut several = false;
        self.attached.raw().layout().visit(&mut |lock| match name {
            Some(name) if lock.path == name => {
                found = Some((lock.offset, lock.kind.name()));
                false
            }
            Some(_) => true,
            None => {
                several = found.is_some();
                found = Some((lock.offset, lock.kind.name()));
                !several
            }
        });
        match (found, name) {
            (Some(found), _) if !several => Ok(found),
            (Some(_), _) => Err(PyKeyError::new_err(
                "the segment has several locks: say which one, as `lockstead shm` names it",
            )),
            (None, Some(name)) => {
                Err(PyKeyError::new_err(format!("no lock {name:?} in the segment")))
            }
            (None, None) => Err(PyKeyError::new_err("the segment has no lock that it tells of")),
        }
    }

    /// Returns all parts of the root: name, type, offset in the root and bytes of each.
    fn parts(&self) -> Vec<(String, String, u64, u64)> {
        let mut parts = Vec::new();
        list(self.attached.raw().layout(), 0, "", &mut parts);
        parts
    }
}

/// Gives each semaphore of a new root its units.
fn fill_semaphores(layout: &RootLayout, root: NonNull<u8>, units: u32) {
    layout.visit(&mut |lock| {
        if lock.kind == LockKind::Semaphore {
            // SAFETY: PLACE-LOCK: a semaphore lies there in the root, and nobody else knows of it yet.
            unsafe {
                let semaphore = RawSemaphore::new(units, OnDeath::Return);
                root.add(lock.offset as usize).cast().write(semaphore);
            }
        }
        true
    });
}

/// Lists what a layout consists of. An array of data is one part, and one of locks as many as it has.
fn list(layout: &RootLayout, at: u64, path: &str, parts: &mut Vec<(String, String, u64, u64)>) {
    let name = || if path.is_empty() { "root".to_owned() } else { path.to_owned() };
    match &layout.node {
        LayoutNode::Plain(kind) => parts.push((name(), kind.clone(), at, layout.size)),
        LayoutNode::Array { count, element, .. } if layout.locks == 0 => {
            let LayoutNode::Plain(kind) = &element.node else {
                return parts.push((name(), format!("[…; {count}]"), at, layout.size));
            };
            parts.push((name(), format!("[{kind}; {count}]"), at, layout.size));
        }
        LayoutNode::Array { count, stride, element } => {
            for index in 0..*count {
                list(element, at + index * stride, &format!("{path}[{index}]"), parts);
            }
        }
        LayoutNode::Struct { fields, .. } => {
            for (field, offset, layout) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                list(layout, at + offset, &format!("{path}{dot}{field}"), parts);
            }
        }
        LayoutNode::Lock { kind, offset, data } => {
            parts.push((name(), kind.name().to_owned(), at, layout.size));
            if data.size != 0 {
                let inside = match data.node {
                    LayoutNode::Plain(_) => format!("{}.data", name()),
                    _ => path.to_owned(),
                };
                list(data, at + offset, &inside, parts);
            }
        }
    }
}
