//! Segments, for C.

use super::types::{form, lks_shm_type};
use super::{join_errno, reason};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use lockstead::shared::raw::{Form, RawSegment};
use lockstead::shared::{AttachError, SegmentError, SegmentOptions, survive_cuts};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A segment that this process has open.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[derive(Debug)]
pub struct lks_shm_segment(RawSegment);

type Fill = unsafe extern "C" fn(root: *mut c_void, argument: *mut c_void);

/// The options of a new segment.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct lks_shm_options {
    participants: u32,
    claims: u32,
    mode: u32,
    flags: u32,
    fill: Option<Fill>,
    argument: *mut c_void,
}

const _: () = assert!(size_of::<lks_shm_options>() == 32);

/// The flag `LKS_SHM_EXCLUSIVE` of `shm.h`.
const EXCLUSIVE: u32 = 1;

impl lks_shm_options {
    const DEFAULT: Self = lks_shm_options {
        participants: 256,
        claims: 64,
        mode: 0o600,
        flags: 0,
        fill: None,
        argument: core::ptr::null_mut(),
    };

    fn options(&self) -> Result<SegmentOptions, SegmentError> {
        if self.flags & !EXCLUSIVE != 0 {
            return Err(SegmentError::Options("flags: LKS_SHM_EXCLUSIVE or none"));
        }
        let options = SegmentOptions::new().participants(self.participants).claims(self.claims);
        Ok(options.mode(self.mode).exclusive(self.flags & EXCLUSIVE != 0))
    }

    /// Calls the function that fills a new root, if the program has given one.
    fn fill(&self, root: NonNull<u8>) {
        if let Some(fill) = self.fill {
            // SAFETY: CAPI-MEMORY, which the program keeps: its own function, for a root of the
            // form that it has described, with the argument that it has given.
            unsafe { fill(root.as_ptr().cast(), self.argument) };
        }
    }
}

/// Returns the errno of an error.
fn errno(error: &SegmentError) -> i32 {
    match error {
        SegmentError::Io { error, .. } => error.raw_os_error().unwrap_or(libc::EIO),
        SegmentError::Options(_) => libc::EINVAL,
        SegmentError::OtherRoot { .. } => libc::EPROTO,
        SegmentError::Attach(AttachError::TooMany) => libc::EMFILE,
        SegmentError::Attach(AttachError::BadFile(error) | AttachError::Unsupported(error)) => {
            *error
        }
        SegmentError::Attach(AttachError::BadParts | AttachError::Overlaps) => libc::EINVAL,
        // What is wrong with the file the reason says.
        _ => libc::EBADMSG,
    }
}

/// Writes the opened segment, or null, where C wants it; returns 0 or a negative errno.
fn give(out: *mut *mut lks_shm_segment, opened: Result<RawSegment, SegmentError>) -> c_int {
    let (segment, code) = match opened {
        Ok(segment) => (Box::into_raw(Box::new(lks_shm_segment(segment))), 0),
        Err(error) => {
            reason::remember(&error);
            (core::ptr::null_mut(), -errno(&error))
        }
    };
    // SAFETY: CAPI-MEMORY: `out` is a place for a pointer; the program keeps it.
    unsafe { out.write(segment) };
    code
}

/// Returns the form that a description means, if there is one.
///
/// # Safety
/// CAPI-MEMORY holds: null, or a description.
unsafe fn described(root: *const lks_shm_type) -> Result<Option<Form>, SegmentError> {
    // SAFETY: CAPI-MEMORY: `root` is null or a description; the caller keeps it.
    let form = unsafe { root.as_ref().map(|root| form(root)) };
    form.transpose()
}

/// Returns what a new segment is to be like.
///
/// # Safety
/// CAPI-MEMORY holds: a description; options or null.
unsafe fn plan<'a>(
    root: *const lks_shm_type,
    options: *const lks_shm_options,
) -> Result<(Form, SegmentOptions, &'a lks_shm_options), SegmentError> {
    // SAFETY: CAPI-MEMORY: `root` is null or a description; the caller keeps it.
    let form = unsafe { described(root) }?;
    let Some(form) = form else {
        return Err(SegmentError::Options("a root: say how long it is, by LKS_SHM_BYTES"));
    };
    // SAFETY: CAPI-MEMORY: `options` is null or options; the caller keeps it.
    let given = unsafe { options.as_ref() }.unwrap_or(&lks_shm_options::DEFAULT);
    Ok((form, given.options()?, given))
}

/// Returns the path in a string.
///
/// # Safety
/// CAPI-MEMORY holds: null, or a string.
unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, SegmentError> {
    if path.is_null() {
        return Err(SegmentError::Options("a path"));
    }
    // SAFETY: CAPI-MEMORY: `path` is not null, so it is a string; the caller keeps it.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Defines functions that make a segment, given where to put it, a name, the form and options.
macro_rules! makes {
    ($($(#[$doc:meta])* fn $name:ident = $make:expr;)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// CAPI-MEMORY holds: each argument is as `shm.h` says.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            segment: *mut *mut lks_shm_segment,
            name: *const c_char,
            root: *const lks_shm_type,
            options: *const lks_shm_options,
        ) -> c_int {
            // SAFETY: CAPI-MEMORY: `root` and `options` are as `plan` wants them; the caller keeps
            // it.
            let opened = unsafe { plan(root, options) }.and_then(|(form, options, given)| {
                // SAFETY: CAPI-MEMORY: `name` is null or a string; the caller keeps it.
                let path = unsafe { path(name) }?;
                $make(path, &options, &form, |root| given.fill(root))
            });
            give(segment, opened)
        }
    )+};
}

makes! {
    /// Makes a segment in a new file.
    fn lks_shm_create = RawSegment::create;
    /// Opens a segment, or makes it.
    fn lks_shm_open_or_create = RawSegment::open_or_create;
    /// Makes a segment without a name in the file system.
    fn lks_shm_memfd = memfd;
}

fn memfd(
    name: &Path,
    options: &SegmentOptions,
    form: &Form,
    fill: impl FnOnce(NonNull<u8>),
) -> Result<RawSegment, SegmentError> {
    RawSegment::memfd(&name.to_string_lossy(), options, form, fill)
}

/// Opens the segment in the file of this name.
///
/// # Safety
/// CAPI-MEMORY holds: each argument is as `shm.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shm_open(
    segment: *mut *mut lks_shm_segment,
    name: *const c_char,
    root: *const lks_shm_type,
) -> c_int {
    // SAFETY: CAPI-MEMORY: `root` is null or a description; the caller keeps it.
    let opened = unsafe { described(root) }.and_then(|form| {
        // SAFETY: CAPI-MEMORY: `name` is null or a string; the caller keeps it.
        RawSegment::open(unsafe { path(name) }?, form.as_ref())
    });
    give(segment, opened)
}

/// Opens the segment behind a descriptor, which stays the caller's.
///
/// # Safety
/// CAPI-MEMORY holds: each argument is as `shm.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shm_from_fd(
    segment: *mut *mut lks_shm_segment,
    fd: c_int,
    root: *const lks_shm_type,
) -> c_int {
    // SAFETY: CAPI-MEMORY: `root` is null or a description; the caller keeps it.
    let opened = unsafe { described(root) }.and_then(|form| {
        let doing = "copying the descriptor";
        let copied = if fd < 0 {
            Err(io::Error::from_raw_os_error(libc::EBADF))
        } else {
            // SAFETY: the descriptor is not negative; if nothing is behind it, copying it fails.
            unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
        };
        let fd = copied.map_err(|error| SegmentError::Io { doing, error })?;
        RawSegment::from_fd(fd, form.as_ref())
    });
    give(segment, opened)
}

/// Leaves a segment and unmaps it.
///
/// # Safety
/// CAPI-MEMORY holds: one of the calls above opened the segment, and nobody has closed it.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shm_close(segment: *mut lks_shm_segment) -> c_int {
    if segment.is_null() {
        return 0;
    }
    // SAFETY: CAPI-MEMORY, which the caller keeps: `give` made it. The content is moved out, and
    // put back if it is not closed.
    let lks_shm_segment(raw) = unsafe { segment.read() };
    match raw.close() {
        Ok(()) => {
            // SAFETY: CAPI-MEMORY as above: `give` made the box, and its content is gone already.
            drop(unsafe { Box::from_raw(segment.cast::<MaybeUninit<lks_shm_segment>>()) });
            0
        }
        Err((raw, busy)) => {
            // SAFETY: CAPI-MEMORY as above: the place still belongs to the caller.
            unsafe { segment.write(lks_shm_segment(raw)) };
            reason::remember(&busy);
            -libc::EBUSY
        }
    }
}

/// Returns where the root begins.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_root(segment: &lks_shm_segment) -> *mut c_void {
    segment.0.root().as_ptr().cast()
}

/// Returns the number of bytes of the root.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_size(segment: &lks_shm_segment) -> usize {
    segment.0.header().root_bytes as usize
}

/// Returns the segment's own descriptor.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_fd(segment: &lks_shm_segment) -> c_int {
    segment.0.as_fd().as_raw_fd()
}

/// Makes the calling thread a participant.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_participate(segment: &lks_shm_segment) -> c_int {
    segment.0.participate().map_or_else(|error| -join_errno(error), |()| 0)
}

/// Gives the calling thread's slot up.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_leave(segment: &lks_shm_segment) -> c_int {
    match segment.0.leave() {
        Ok(()) => 0,
        Err(busy) => {
            reason::remember(&busy);
            -libc::EBUSY
        }
    }
}

/// Has this process survive it when a peer cuts a segment's file.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_survive_cuts() -> c_int {
    match survive_cuts() {
        Ok(()) => 0,
        Err(error) => {
            reason::remember(&error);
            -error.raw_os_error().unwrap_or(libc::EIO)
        }
    }
}
