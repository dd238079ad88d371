//! Attaching a segment to this process, and detaching it.

use super::process;
use super::refusal::Busy;
use super::registry::{
    ATTACHED, AttachError, AttachedSegment, CHANGING, FREE, HIGHEST, SegmentHandle, SegmentParts,
    TABLE, entries,
};
use super::{description, list, member, number, origin};
use crate::atomics::U32;
use crate::linux::Linux;
use crate::sys::{self, KeepErrno};
use core::ffi::{CStr, c_int};
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering;
use lockstead_core::robust::word::LAST_SLOT;
use lockstead_core::robust::{Claim, SlotRecord};
use std::ffi::CString;

/// Makes a segment known to the process's threads, and the process to the segment: it gets a
/// number there, if it can; else who joins learns why not. `path` is an absolute one of the
/// file, if it has one.
///
/// # Safety
/// The parts are mapped, readable and writable, shared with the other processes, and
/// stay so until [`detach`] has succeeded. They may hold any bits. What was got of the
/// segment meanwhile, as a [`SegmentMember`](super::SegmentMember) or a party, is not used
/// afterwards.
///
/// # Errors
/// As [`AttachError`] says; nothing is attached then.
pub unsafe fn attach(
    parts: &SegmentParts,
    path: Option<&CStr>,
) -> Result<SegmentHandle, AttachError> {
    let _errno = KeepErrno::new();
    check(parts)?;
    process::prepare().map_err(AttachError::Unsupported)?;
    description::watch_forks();
    let file = duplicate(parts.file).map_err(AttachError::BadFile)?;
    let Some((device, inode)) = origin::identify(file) else {
        let error = sys::errno();
        // SAFETY: DESCRIPTOR-OURS: `duplicate` opened it above, and nobody else knows it.
        unsafe { libc::close(file) };
        return Err(AttachError::BadFile(error));
    };
    let Some(index) = reserve() else {
        // SAFETY: DESCRIPTOR-OURS: `duplicate` opened it above, and nobody else knows it.
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
    let by = parts.scrub.map_or(null_mut(), |scrub| scrub.by as *mut ());
    let name = parts.scrub.map_or(null_mut(), |scrub| scrub.name as *mut ());
    entry.scrub_by.store(by, Ordering::Relaxed);
    entry.scrub_name.store(name, Ordering::Relaxed);
    let what = parts.scrub.map_or(null(), |scrub| scrub.what);
    entry.scrub_what.store(what.cast_mut(), Ordering::Relaxed);
    HIGHEST.fetch_max(index + 1, Ordering::Relaxed);
    // ord: SHL-2 (seq_cst): release: the fields.
    entry.state.store(ATTACHED, Ordering::SeqCst);
    // Now, while the process may open the file, has a descriptor to spare, and sees `/proc`.
    // Where it does not, who joins tries again.
    let _ = number::of_process(entry);
    Ok(SegmentHandle { index })
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
    // SAFETY: DESCRIPTOR-OURS: `dup` has just made the descriptor; the call touches no memory.
    if fresh < 0 || unsafe { libc::ioctl(fresh, libc::FIOCLEX) } != 0 {
        return Err(sys::errno());
    }
    Ok(fresh)
}

fn check(parts: &SegmentParts) -> Result<(), AttachError> {
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
    let overlaps = |entry: &AttachedSegment| {
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
pub fn detach(handle: SegmentHandle) -> Result<(), (SegmentHandle, Busy)> {
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
    if origin::identify(file) == Some(identity) {
        // SAFETY: DESCRIPTOR-OURS: `attach` opened it, and the check above shows that the number
        // still means the same file.
        unsafe { libc::close(file) };
    }
    // ord: SHL-2 (release): the entry is used no more.
    entry.state.store(FREE, Ordering::Release);
    Ok(())
}
