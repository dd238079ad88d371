//! The segment with the locks of a storm.

use super::limits::MAX_LOCKS;
use super::protected::{Depot, ProtectedPair, fresh};
use crate::Error;
use lockstead::shared::{
    Segment, SegmentError, SegmentOptions, Shareable, SharedMutex, SharedRwLock, SharedSemaphore,
};
use std::path::Path;

/// What the locks lie in.
#[derive(Shareable)]
#[repr(C)]
pub(super) struct StormField {
    pub(super) mutexes: [SharedMutex<ProtectedPair>; MAX_LOCKS],
    pub(super) rwlocks: [SharedRwLock<ProtectedPair>; MAX_LOCKS],
    pub(super) semaphores: [SharedSemaphore; MAX_LOCKS],
    pub(super) depots: [Depot; MAX_LOCKS],
}

/// Returns a segment with all locks free.
pub(super) fn segment(options: &SegmentOptions) -> Result<Segment<StormField>, Error> {
    Segment::memfd_with("lockstead-storm", options, fill).map_err(refused)
}

/// Creates the same segment with a name in the file system.
pub(super) fn named(path: &Path, options: &SegmentOptions) -> Result<Segment<StormField>, Error> {
    Segment::create_with(path, options, fill).map_err(refused)
}

fn fill(field: &mut StormField) {
    for (at, semaphore) in field.semaphores.iter_mut().enumerate() {
        *semaphore = fresh(at);
    }
}

fn refused(why: SegmentError) -> Error {
    Error::Segment { what: "cannot make a segment", why: why.to_string() }
}
