//! Bytes of the locks, beside those that others have published.

use super::subjects::OWNED_BYTES;
use crate::LockName;
use lockstead::rt::{RtMutex, RtRecursiveMutex};
use lockstead::shared::{SharedCondvar, SharedMutex, SharedRwLock, SharedSemaphore};
use lockstead_core::ww::RawWwMutex;
use lockstead_linux::Linux;
use serde::Serialize;

/// The size of one lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Size {
    /// The lock, in words.
    pub lock: String,
    /// The number of bytes.
    pub bytes: usize,
    /// Whether it was taken from the type itself, in this program; otherwise it is what was
    /// published.
    pub measured: bool,
    /// The source of a published size; null of a measured one.
    pub source: Option<&'static str>,
}

const ANNOUNCED: &str = "the announcement of 2005";
const KERNEL: &str = "the kernel, without debugging";

/// Returns the sizes of this project's locks, the C library's, and the kernel's.
#[must_use]
pub fn all() -> Vec<Size> {
    let here =
        |lock: &str, bytes| Size { lock: lock.to_owned(), bytes, measured: true, source: None };
    let told = |lock: &str, bytes, source| Size {
        lock: lock.to_owned(),
        bytes,
        measured: false,
        source: Some(source),
    };
    let named = |lock: LockName| lock.bytes().ok().map(|bytes| here(lock.description(), bytes));
    let own =
        [LockName::Lockstead, LockName::SemaphoreTuned, LockName::SemaphoreClassic].map(named);
    let peers = [LockName::Pthread, LockName::SemT].map(named);
    let mut sizes: Vec<Size> = own.into_iter().flatten().collect();
    // Without the data that they guard.
    sizes.extend([
        here("the tuned semaphore with its owner beside it", OWNED_BYTES),
        here("lockstead's wait/wound mutex", size_of::<RawWwMutex<Linux>>()),
        here("lockstead's mutex with priority inheritance", size_of::<RtMutex<()>>()),
        here("the same, recursive", size_of::<RtRecursiveMutex<()>>()),
        here("lockstead's mutex between processes", size_of::<SharedMutex<()>>()),
        here("its reader-writer lock", size_of::<SharedRwLock<()>>()),
        here("its semaphore", size_of::<SharedSemaphore>()),
        here("its condition variable", size_of::<SharedCondvar>()),
    ]);
    sizes.extend(peers.into_iter().flatten());
    sizes.extend([
        told("the kernel's struct mutex, 32-bit x86", 16, ANNOUNCED),
        told("the kernel's struct semaphore, 32-bit x86", 20, ANNOUNCED),
        told("the kernel's struct mutex of today, x86-64", 24, KERNEL),
    ]);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutex_and_semaphore_have_eight_bytes() {
        let sizes = all();
        let eight = sizes.iter().filter(|size| size.measured && size.bytes == 8).count();
        // The three that are compared, priority inheritance, and between processes.
        assert!(eight >= 5, "{sizes:?}");
        let own = ["lockstead's mutex", "every trick", "semaphore of 2005"];
        for name in own.into_iter().chain(["inheritance", "lockstead's mutex between"]) {
            let first = sizes.iter().find(|size| size.measured && size.lock.contains(name));
            assert_eq!(first.map(|size| size.bytes), Some(8), "{name}: {sizes:?}");
        }
        assert!(sizes.iter().all(|size| size.measured == size.source.is_none()));
    }
}
