//! The segments that this process has attached.
//!
//! # Role
//! From an address to the segment it lies in, for threads that are not members there
//! yet. A static table, read without a lock, also by signal handlers.
//!
//! # Invariants
//! - **REGISTRY-FROZEN** An entry's fields change only while it is neither attached nor used.
//! - **REGISTRY-COUNTED** Whoever uses an entry beyond looking at it has counted itself in
//!   [`OwnPlace::joined`] first and looked again; whoever detaches has said so first and
//!   then looks at the count. Each is sequentially consistent: one sees the other.

use super::process::{self, OwnPlace, SEGMENTS};
use crate::atomics::U32;
use crate::linux::Linux;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write as _};
use core::ptr::{NonNull, null_mut, slice_from_raw_parts};
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use lockstead_core::robust::{Claim, Domain, SlotRecord};

/// The parts of a segment, as it is mapped here.
#[derive(Clone, Copy, Debug)]
pub struct SegmentParts {
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
    /// The function that, given `what` and the segment, does it, and returns how many slots it
    /// changed.
    pub by: fn(*const (), &AttachedSegment, Chore) -> usize,
    /// The function that, given `what`, writes what the program calls the lock at this offset in the
    /// segment; fails if it knows none there.
    pub name: fn(*const (), usize, &mut LockName) -> fmt::Result,
    /// Lives until the segment is detached.
    pub what: *const (),
}

/// The purpose of going through the locks of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chore {
    /// Makes worn-out slots usable again, because a thread wants to join and finds no other slot.
    Scrub,
    /// Ends the names in locks that a newcomer could bear, because a process comes and finds
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

/// What is shown of the name of a lock: as much as the ledger keeps.
#[derive(Clone, Copy, Debug)]
pub struct LockName {
    bytes: [u8; 48],
    length: usize,
}

impl LockName {
    fn new() -> Self {
        LockName { bytes: [0; 48], length: 0 }
    }

    /// Returns the name as far as it fits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Write for LockName {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.length;
        let fits = (0..=room.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        let text = &text.as_bytes()[..fits.unwrap_or(0)];
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
        Ok(())
    }
}

/// Returns what the program calls a lock of an attached segment that the calling thread is about to
/// wait for, and so is counted in.
pub(crate) fn name_of(address: usize) -> Option<LockName> {
    entries().find(|(_, entry)| entry.contains(address))?.1.name_of(address)
}

pub(super) const FREE: u32 = 0;
pub(super) const CHANGING: u32 = 1;
pub(super) const ATTACHED: u32 = 2;

/// A segment that this process has attached.
#[derive(Debug)]
pub struct AttachedSegment {
    pub(super) state: AtomicU32,
    pub(super) exclusive: AtomicBool,
    pub(super) file: AtomicI32,
    pub(super) base: AtomicUsize,
    pub(super) len: AtomicUsize,
    pub(super) doorbell: AtomicPtr<U32>,
    pub(super) records: AtomicPtr<SlotRecord<Linux>>,
    pub(super) slot_count: AtomicUsize,
    pub(super) claims: AtomicPtr<Claim<Linux>>,
    pub(super) claim_count: AtomicUsize,
    pub(super) claims_each: AtomicUsize,
    pub(super) device: AtomicU64,
    pub(super) inode: AtomicU64,
    /// The number of start and file that [`origin`](super::origin) tells; 0: not certain.
    pub(super) origin: AtomicU64,
    /// The path at which the file was, to open it anew where there is no `/proc`; null: unknown.
    pub(super) path: AtomicPtr<c_char>,
    /// The functions of [`Scrub`] as data pointers; null: none.
    pub(super) scrub_by: AtomicPtr<()>,
    pub(super) scrub_name: AtomicPtr<()>,
    pub(super) scrub_what: AtomicPtr<()>,
}

pub(super) static TABLE: [AttachedSegment; SEGMENTS] = [const {
    AttachedSegment {
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
        scrub_name: AtomicPtr::new(null_mut()),
        scrub_what: AtomicPtr::new(null_mut()),
    }
}; SEGMENTS];

/// Entries above this number were never used.
pub(super) static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// A segment that is attached. Dropping it detaches nothing: see [`detach`](super::detach).
#[derive(Debug)]
pub struct SegmentHandle {
    pub(super) index: usize,
}

impl SegmentHandle {
    /// Returns the segment that was attached.
    #[must_use]
    pub fn attached(&self) -> &AttachedSegment {
        &TABLE[self.index]
    }

    /// Returns what all participants see of it.
    #[must_use]
    pub fn domain(&self) -> Domain<'_, Linux> {
        self.attached().domain()
    }
}

pub(super) fn entries() -> impl Iterator<Item = (usize, &'static AttachedSegment)> {
    TABLE.iter().enumerate().take(HIGHEST.load(Ordering::Relaxed))
}

/// Returns the segment of an address, with the caller counted in; [`AttachedSegment::exit`] takes
/// it out again.
pub(super) fn enter(address: usize) -> Option<&'static AttachedSegment> {
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

impl AttachedSegment {
    pub(super) fn is_attached(&self) -> bool {
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

    pub(super) fn place(&self) -> Option<&'static OwnPlace> {
        let offset = core::ptr::from_ref(self).addr() - TABLE.as_ptr().addr();
        process::place(offset / size_of::<AttachedSegment>())
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

    /// Has the segment's locks gone through, if somebody has said how. Returns how many slots
    /// changed.
    pub(super) fn scrub(&self, chore: Chore) -> usize {
        let by = self.scrub_by.load(Ordering::Relaxed);
        if by.is_null() {
            return 0;
        }
        // SAFETY: REGISTRY-FROZEN: `attach` stores functions of this type only.
        let by = unsafe {
            core::mem::transmute::<*mut (), fn(*const (), &AttachedSegment, Chore) -> usize>(by)
        };
        by(self.scrub_what.load(Ordering::Relaxed), self, chore)
    }

    /// Returns what the program calls the lock at this address in the segment, and in which file, if
    /// that is known. Who has a reference is counted in, or has the segment's handle.
    pub(super) fn name_of(&self, address: usize) -> Option<LockName> {
        let name = self.scrub_name.load(Ordering::Relaxed);
        if name.is_null() {
            return None;
        }
        // SAFETY: REGISTRY-FROZEN: `attach` stores functions of this type only.
        let name = unsafe {
            core::mem::transmute::<*mut (), fn(*const (), usize, &mut LockName) -> fmt::Result>(
                name,
            )
        };
        let offset = address.checked_sub(self.base.load(Ordering::Relaxed))?;
        let mut named = LockName::new();
        name(self.scrub_what.load(Ordering::Relaxed), offset, &mut named).ok()?;
        let path = self.file().2.and_then(|path| path.to_str().ok());
        if let Some(file) = path.and_then(|path| path.rsplit('/').next()) {
            let _ = write!(named, " in {file}");
        }
        Some(named)
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
