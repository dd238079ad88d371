//! Where a lock lies.

use crate::segment::Attached;
use core::ptr::NonNull;
use std::sync::Arc;

/// A lock's place in a segment's root.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) segment: Arc<Attached>,
    pub(crate) offset: u64,
    address: NonNull<u8>,
}

// SAFETY: PLACE-LOCK: what lies there consists of atomics, which any thread may use.
unsafe impl Send for Place {}
// SAFETY: PLACE-LOCK: what lies there consists of atomics, as for Send.
unsafe impl Sync for Place {}

impl Place {
    /// Returns the place at this offset of the root, if `size` bytes lie there and the offset is a
    /// multiple of 8.
    pub(crate) fn new(segment: &Arc<Attached>, offset: u64, size: u64) -> Option<Place> {
        let end = offset.checked_add(size)?;
        let fits = offset.is_multiple_of(8) && end <= segment.raw().header().root_bytes;
        // SAFETY: the offset lies within the root, which is mapped.
        let address = fits.then(|| unsafe { segment.raw().root().add(offset as usize) })?;
        Some(Place { segment: segment.clone(), offset, address })
    }

    /// Returns what lies there, as a `T`.
    ///
    /// # Safety
    /// PLACE-LOCK: the place was made for a `T`, which consists of atomics.
    #[inline(always)]
    pub(crate) unsafe fn at<T>(&self) -> &T {
        // SAFETY: mapped as long as the segment, which the place keeps; the caller answers for the type.
        unsafe { self.address.cast().as_ref() }
    }

    /// Returns where it is, to be written before anybody else knows of it.
    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }
}
