//! The file of a recording, which two threads write.

use crate::recording::RecordingFile;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file as both threads have it.
pub(super) type SharedFile = Arc<Mutex<RecordingFile>>;

/// Returns the file for a chunk or two.
pub(super) fn open(file: &Mutex<RecordingFile>) -> MutexGuard<'_, RecordingFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}
