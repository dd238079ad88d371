//! The segments that this process has attached.
//!
//! # Role
//! From an address to the segment it lies in, for threads that are not members there
//! yet. A static table, read without a lock, also by signal handlers.
//!
//! # Invariants
//! - **REGISTRY-FROZEN** An entry's fields change only while it is neither attached nor used.
//! - **REGISTRY-COUNTED** Whoever uses an entry beyond looking at it has counted itself in
//!   [`Place::joined`] first and looked again; whoever detaches has said so first and
//!   then looks at the count. Each is sequentially consistent: one sees the other.

use super::member;
use super::process::{self, Place, SEGMENTS};
use super::refusal::{Busy, JoinError};
use super::{description, list, number, origin};
use crate::atomics::U32;
use crate::linux::Linux;
use crate::sys::{self, KeepErrno};
use core::ffi::{CStr, c_char, c_int};
use core::ptr::{NonNull, null, null_mut, slice_from_raw_parts};
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use lockstead_core::robust::word::LAST_SLOT;
use lockstead_core::robust::{Claim, Domain, Life, SlotRecord};
use std::ffi::CString;

/// The parts of a segment, as it is mapped here.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The address at which the mapping begins.
    pub base: NonNull<u8>,
    /// The length of the mapping in bytes.
    pub len: usize,
    /// The doorbell of the segment.
    pub doorbell: NonNull<U32>,
    /// The slots; number 0 is not used.
    pub records: NonNull<[SlotRecord<Linux>]>,
    /// The claims, the same number for each slot.
    pub claims: NonNull<[Claim<Linux>]>,
    /// The mapped file, open for reading and writing. A duplicate is kept.
    pub file: c_int,
    /// The code that knows where the segment's locks are, if there is any.
    pub scrub: Option<Scrub>,
    /// Threads join by robust lists of their own, with the head in the segment: their
    /// death is noticed even if the kernel has taken the process's memory away before.
    /// They must not use robust mutexes of the libc.
    pub exclusive: bool,
}

/// The code that goes through the segment's locks, for what [`Chore`] says.
#[derive(Clone, Copy, Debug)]
pub struct Scrub {
    /// Given `what` and the segment, does it; how many slots it changed.
    pub by: fn(*const (), &Attached, Chore) -> usize,
    /// Lives until the segment is detached.
    pub what: *const (),
}

/// The purpose of going through the locks of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chore {
    /// To make worn-out slots usable again: a thread wants to join, and finds no other slot.
    Scrub,
    /// To end the names in locks that somebody could bear who comes: a process comes and finds
    /// nobody, as after a start of the system, or in a copy of the file. Its pages may be of
    /// different moments.
    EndNames,
}

/// The reason for which a segment was not attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// A part lies outside of the mapping, is not aligned, or has the wrong size.
    BadParts,
    /// A segment is attached already at some of these addresses.
    Overlaps,
    /// 256 segments are attached.
    TooMany,
    /// The file descriptor is none (the kernel's error).
    BadFile(i32),
    /// The kernel has no memory, or no `MADV_WIPEONFORK` (Linux 4.14; its error).
    Unsupported(i32),
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AttachError::BadParts => f.write_str("a part of the segment is out of place"),
            AttachError::Overlaps => f.write_str("a segment is attached there already"),
            AttachError::TooMany => write!(f, "{SEGMENTS} segments are attached already"),
            AttachError::BadFile(error) => {
                write!(f, "the segment's file cannot be used (error {error})")
            }
            AttachError::Unsupported(error) => {
                write!(
                    f,
                    "no memory that a forked child finds empty (error {error}): Linux 4.14 has \
                     it, unless a filter of system calls refuses madvise"
                )
            }
        }
    }
}

impl core::error::Error for AttachError {}

const FREE: u32 = 0;
const CHANGING: u32 = 1;
const ATTACHED: u32 = 2;

/// A segment that this process has attached.
#[derive(Debug)]
pub struct Attached {
    state: AtomicU32,
    exclusive: AtomicBool,
    file: AtomicI32,
    base: AtomicUsize,
    len: AtomicUsize,
    doorbell: AtomicPtr<U32>,
    records: AtomicPtr<SlotRecord<Linux>>,
    slot_count: AtomicUsize,
    claims: AtomicPtr<Claim<Linux>>,
    claim_count: AtomicUsize,
    claims_each: AtomicUsize,
    device: AtomicU64,
    inode: AtomicU64,
    /// The number of start and file that [`origin`](super::origin) tells; 0: not certain.
    origin: AtomicU64,
    /// The path at which the file was, to open it anew where there is no `/proc`; null: unknown.
    path: AtomicPtr<c_char>,
    /// The function of [`Scrub`] as a data pointer; null: none.
    scrub_by: AtomicPtr<()>,
    scrub_what: AtomicPtr<()>,
}

static TABLE: [Attached; SEGMENTS] = [const {
    Attached {
        state: AtomicU32::new(FREE),
        exclusive: AtomicBool::new(false),
        file: AtomicI32::new(-1),
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        doorbell: AtomicPtr::new(null_mut()),
        records: AtomicPtr::new(null_mut()),
        slot_count: AtomicUsize::new(0),
        claims: AtomicPtr::new(null_mut()),
        claim_count: AtomicUsize::new(0),
        claims_each: AtomicUsize::new(0),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
        origin: AtomicU64::new(0),
        path: AtomicPtr::new(null_mut()),
        scrub_by: AtomicPtr::new(null_mut()),
        scrub_what: AtomicPtr::new(null_mut()),
    }
}; SEGMENTS];

/// Entries above this number were never used.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// A segment that is attached. Dropping it detaches nothing: see [`detach`].
#[derive(Debug)]
pub struct Handle {
    index: usize,
}

impl Handle {
    /// Returns the segment.
    #[must_use]
    pub fn attached(&self) -> &Attached {
        &TABLE[self.index]
    }

    /// Returns what all participants see of it.
    #[must_use]
    pub fn domain(&self) -> Domain<'_, Linux> {
        self.attached().domain()
    }
}

/// Makes a segment known to the process's threads, and the process to the segment: it gets a
/// number there, if it can; else who joins learns why not. `path` is an absolute one of the
/// file, if it has one.
///
/// # Safety
/// The parts are mapped, readable and writable, shared with the other processes, and
/// stay so until [`detach`] has succeeded. They may hold any bits. What was got of the
/// segment meanwhile, as a [`Member`](super::Member) or a party, is not used afterwards.
///
/// # Errors
/// As [`AttachError`] says; nothing is attached then.
pub unsafe fn attach(parts: &Parts, path: Option<&CStr>) -> Result<Handle, AttachError> {
    let _errno = KeepErrno::new();
    check(parts)?;
    process::prepare().map_err(AttachError::Unsupported)?;
    description::watch_forks();
    let file = duplicate(parts.file).map_err(AttachError::BadFile)?;
    let Some((device, inode)) = description::identify(file) else {
        let error = sys::errno();
        // SAFETY: DESCRIPTOR-OURS: it was opened above.
        unsafe { libc::close(file) };
        return Err(AttachError::BadFile(error));
    };
    let Some(index) = reserve() else {
        // SAFETY: DESCRIPTOR-OURS: it was opened above.
        unsafe { libc::close(file) };
        return Err(AttachError::TooMany);
    };
    let entry = &TABLE[index];
    entry.base.store(parts.base.as_ptr().expose_provenance(), Ordering::Relaxed);
    entry.len.store(parts.len, Ordering::Relaxed);
    entry.doorbell.store(parts.doorbell.as_ptr(), Ordering::Relaxed);
    entry.records.store(parts.records.as_ptr().cast(), Ordering::Relaxed);
    entry.slot_count.store(parts.records.len(), Ordering::Relaxed);
    entry.claims.store(parts.claims.as_ptr().cast(), Ordering::Relaxed);
    entry.claim_count.store(parts.claims.len(), Ordering::Relaxed);
    let each = parts.claims.len().checked_div(parts.records.len()).unwrap_or(0);
    entry.claims_each.store(each, Ordering::Relaxed);
    entry.exclusive.store(parts.exclusive, Ordering::Relaxed);
    entry.file.store(file, Ordering::Relaxed);
    entry.device.store(device, Ordering::Relaxed);
    entry.inode.store(inode, Ordering::Relaxed);
    entry.origin.store(origin::of_file(file), Ordering::Relaxed);
    let path = path.map_or(null_mut(), |path| path.to_owned().into_raw());
    entry.path.store(path, Ordering::Relaxed);
    let (by, what) = parts.scrub.map_or((null_mut(), null()), |s| (s.by as *mut (), s.what));
    entry.scrub_by.store(by, Ordering::Relaxed);
    entry.scrub_what.store(what.cast_mut(), Ordering::Relaxed);
    HIGHEST.fetch_max(index + 1, Ordering::Relaxed);
    // ord: SHL-2 (seq_cst): release: the fields.
    entry.state.store(ATTACHED, Ordering::SeqCst);
    // Now, while the process may open the file, has a descriptor to spare, and sees `/proc`.
    // Where it does not, who joins tries again.
    let _ = number::of_process(entry);
    Ok(Handle { index })
}

/// Returns a descriptor of the same description that is closed by `exec`; the error is the
/// system's.
fn duplicate(file: c_int) -> Result<c_int, i32> {
    // SAFETY: the call takes numbers: it duplicates a descriptor, or fails.
    let fresh = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 3) };
    if fresh >= 0 || matches!(sys::errno(), libc::EBADF | libc::EMFILE) {
        return if fresh >= 0 { Ok(fresh) } else { Err(sys::errno()) };
    }
    // A filter of system calls; not all know this way. SAFETY: as of the first call.
    let fresh = unsafe { libc::dup(file) };
    // SAFETY: DESCRIPTOR-OURS: the fresh one, or none.
    if fresh < 0 || unsafe { libc::ioctl(fresh, libc::FIOCLEX) } != 0 {
        return Err(sys::errno());
    }
    Ok(fresh)
}

fn check(parts: &Parts) -> Result<(), AttachError> {
    let (base, len) = (parts.base.addr().get(), parts.len);
    let end = base.checked_add(len).ok_or(AttachError::BadParts)?;
    let within = |at: usize, bytes: Option<usize>, align: usize| {
        let bytes = bytes?;
        let past = at.checked_add(bytes)?;
        (at >= base && past <= end && at.is_multiple_of(align)).then_some(())
    };
    let records = parts.records.len();
    let fits = within(parts.doorbell.addr().get(), Some(4), align_of::<U32>())
        .and_then(|()| {
            let bytes = records.checked_mul(size_of::<SlotRecord<Linux>>());
            let at = parts.records.cast::<u8>().addr().get();
            // The slot before the first one is the unused number 0: what the libc may
            // read in front of a slot is inside the segment.
            within(at, bytes, align_of::<SlotRecord<Linux>>())
        })
        .and_then(|()| {
            let bytes = parts.claims.len().checked_mul(size_of::<Claim<Linux>>());
            within(parts.claims.cast::<u8>().addr().get(), bytes, align_of::<Claim<Linux>>())
        });
    if fits.is_none() || !(2..=LAST_SLOT as usize + 1).contains(&records) {
        return Err(AttachError::BadParts);
    }
    let overlaps = |entry: &Attached| {
        let other = entry.base.load(Ordering::Relaxed);
        entry.is_attached() && base < other + entry.len.load(Ordering::Relaxed) && other < end
    };
    if entries().any(|(_, entry)| overlaps(entry)) { Err(AttachError::Overlaps) } else { Ok(()) }
}

fn reserve() -> Option<usize> {
    TABLE.iter().position(|entry| {
        // ord: SHL-2 (acquire): what the last user of the entry read there.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        entry.state.compare_exchange(FREE, CHANGING, success, failure).is_ok()
    })
}

/// Forgets a segment; afterwards it may be unmapped. The calling thread gives its slot
/// up.
///
/// # Errors
/// The handle again, and why: nothing has changed.
pub fn detach(handle: Handle) -> Result<(), (Handle, Busy)> {
    let _errno = KeepErrno::new();
    if let Err(busy) = member::leave(&handle) {
        return Err((handle, busy));
    }
    let entry = &TABLE[handle.index];
    let place = process::place(handle.index);
    // Without a look at the state: whoever joins meanwhile is to find the segment if it stays.
    let joined = place.map_or(0, |place| place.joined.load(Ordering::Relaxed));
    if joined != 0 {
        return Err((handle, Busy::Threads(joined)));
    }
    // ord: SHL-3 (seq_cst): before the look at the count (REGISTRY-COUNTED).
    entry.state.store(CHANGING, Ordering::SeqCst);
    // ord: SHL-3 (seq_cst): after what others are told above (REGISTRY-COUNTED).
    let joined = place.map_or(0, |place| place.joined.load(Ordering::SeqCst));
    if joined != 0 {
        // ord: SHL-2 (seq_cst): as at first.
        entry.state.store(ATTACHED, Ordering::SeqCst);
        return Err((handle, Busy::Threads(joined)));
    }
    if let Some(place) = place {
        number::forget(place);
    }
    list::forget(entry.range());
    let path = entry.path.swap(null_mut(), Ordering::Relaxed);
    if !path.is_null() {
        // SAFETY: REGISTRY-COUNTED: nobody uses the entry; `attach` made the string.
        drop(unsafe { CString::from_raw(path) });
    }
    let (file, identity, _) = entry.file();
    entry.file.store(-1, Ordering::Relaxed);
    // The program may have closed it, and have another file under its number.
    if description::identify(file) == Some(identity) {
        // SAFETY: DESCRIPTOR-OURS since `attach`.
        unsafe { libc::close(file) };
    }
    // ord: SHL-2 (release): the entry is used no more.
    entry.state.store(FREE, Ordering::Release);
    Ok(())
}

fn entries() -> impl Iterator<Item = (usize, &'static Attached)> {
    TABLE.iter().enumerate().take(HIGHEST.load(Ordering::Relaxed))
}

/// Returns the segment of an address, with the caller counted in; [`Attached::exit`] takes it out
/// again.
pub(super) fn enter(address: usize) -> Option<&'static Attached> {
    entries().find_map(|(index, entry)| {
        if !entry.contains(address) {
            return None;
        }
        let place = process::place(index)?;
        // ord: SHL-3 (seq_cst): before the second look (REGISTRY-COUNTED).
        place.joined.fetch_add(1, Ordering::SeqCst);
        if entry.contains(address) {
            return Some(entry);
        }
        entry.exit();
        None
    })
}

/// Tells whether an address is that of a slot of an attached segment.
pub(super) fn is_in_record(address: usize) -> bool {
    entries().any(|(_, entry)| {
        let records = entry.records.load(Ordering::Relaxed).addr();
        let bytes = entry.slot_count.load(Ordering::Relaxed) * size_of::<SlotRecord<Linux>>();
        entry.is_attached() && address.wrapping_sub(records) < bytes
    })
}

impl Attached {
    fn is_attached(&self) -> bool {
        // ord: SHL-2 (seq_cst): acquire: the fields; SHL-3: after the count (REGISTRY-COUNTED).
        self.state.load(Ordering::SeqCst) == ATTACHED
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        self.is_attached()
            && address.wrapping_sub(self.base.load(Ordering::Relaxed))
                < self.len.load(Ordering::Relaxed)
    }

    /// Takes the caller out of the count of those that use the entry.
    pub(super) fn exit(&self) {
        if let Some(place) = self.place() {
            // ord: SHL-3 (seq_cst): release: the caller's use.
            place.joined.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub(super) fn place(&self) -> Option<&'static Place> {
        let offset = core::ptr::from_ref(self).addr() - TABLE.as_ptr().addr();
        process::place(offset / size_of::<Attached>())
    }

    /// Returns where it begins and how long it is.
    #[must_use]
    pub fn range(&self) -> (usize, usize) {
        (self.base.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed))
    }

    /// Tells whether threads join by lists of their own.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive.load(Ordering::Relaxed)
    }

    /// Returns the process's own descriptor of its file, the file's device and inode, and its path.
    pub(super) fn file(&self) -> (c_int, (u64, u64), Option<&CStr>) {
        let identity = (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed));
        let path = self.path.load(Ordering::Relaxed);
        // SAFETY: REGISTRY-COUNTED: `attach` made the string, and `detach` frees it when nobody
        // uses the entry.
        let path = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
        (self.file.load(Ordering::Relaxed), identity, path)
    }

    /// Returns the number of this start of the system and this file; 0: not certain.
    pub(super) fn origin(&self) -> u64 {
        self.origin.load(Ordering::Relaxed)
    }

    /// Has the segment's locks gone through, if somebody has said how; how many slots changed.
    pub(super) fn scrub(&self, chore: Chore) -> usize {
        let by = self.scrub_by.load(Ordering::Relaxed);
        if by.is_null() {
            return 0;
        }
        // SAFETY: REGISTRY-FROZEN: `attach` stores functions of this type only.
        let by = unsafe {
            core::mem::transmute::<*mut (), fn(*const (), &Attached, Chore) -> usize>(by)
        };
        by(self.scrub_what.load(Ordering::Relaxed), self, chore)
    }

    /// Prepares a worn-out slot, so that nobody else does, and nobody takes it for worn
    /// out: its life word then, which is to be replaced when the slot is in order. Should the
    /// process end before, the slot is worn out again.
    ///
    /// # Errors
    /// [`JoinError`] if the process is not known in the segment; `Ok(None)` if the slot is
    /// not, or no longer, like this.
    pub fn prepare(&self, slot: u32, worn_out: Life) -> Result<Option<Life>, JoinError> {
        let process = number::of_process(self)?;
        let life = worn_out.prepared(process);
        let Some(record) = self.domain().record(slot).filter(|_| worn_out.is_worn_out()) else {
            return Ok(None);
        };
        if !record.change(worn_out, life) {
            return Ok(None);
        }
        self.domain().erase_claims(slot);
        Ok(Some(life))
    }

    /// Returns what a party sees of it. Who has a reference is counted in, or has the segment's
    /// handle.
    #[inline]
    #[must_use]
    pub fn domain(&self) -> Domain<'_, Linux> {
        let records = self.records.load(Ordering::Relaxed).cast_const();
        let records = slice_from_raw_parts(records, self.slot_count.load(Ordering::Relaxed));
        let claims = self.claims.load(Ordering::Relaxed).cast_const();
        let claims = slice_from_raw_parts(claims, self.claim_count.load(Ordering::Relaxed));
        // SAFETY: REGISTRY-COUNTED: nobody detaches the segment while it is used. The caller of
        // `attach` has promised that the parts are mapped and shared; `check` has seen that they
        // are aligned; they consist of atomics, for which any bits are valid.
        unsafe {
            Domain {
                doorbell: &*self.doorbell.load(Ordering::Relaxed),
                records: &*records,
                claims: &*claims,
                claims_each: self.claims_each.load(Ordering::Relaxed),
                segment: self,
                base: self.base.load(Ordering::Relaxed),
            }
        }
    }
}
