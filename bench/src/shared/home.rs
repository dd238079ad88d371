//! The locks that processes share: their names, and where each lies.

use super::memory::{Plain, SharedMemory};
use crate::Error;
use crate::locks::{BenchLock, PosixRobust, PosixShared, Pthread, PthreadKind};
use crate::uncontended::LimitLock;
use lockstead::shared::{Locked, Segment, SegmentOptions, Shareable, SharedMutex};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Places for threads in a segment that is measured.
const PARTICIPANTS: u32 = 1024;

/// The name of a lock that processes share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SharedLock {
    /// lockstead's shared mutex, which survives its owner.
    #[serde(rename = "lockstead")]
    Lockstead,
    /// `pthread_mutex_t`, shared and robust.
    #[serde(rename = "glibc-robust")]
    GlibcRobust,
    /// A shared `pthread_mutex_t`, which stays taken when its owner dies.
    #[serde(rename = "glibc-pshared")]
    GlibcShared,
}

impl SharedLock {
    /// All, in the order of the reports.
    pub const ALL: [SharedLock; 3] =
        [SharedLock::Lockstead, SharedLock::GlibcRobust, SharedLock::GlibcShared];

    /// Returns the name as reports show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SharedLock::Lockstead => "lockstead",
            SharedLock::GlibcRobust => "glibc-robust",
            SharedLock::GlibcShared => "glibc-pshared",
        }
    }
}

impl fmt::Display for SharedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Memory with one lock, alone in its page.
pub(super) trait Home: Sized + 'static {
    type Lock: BenchLock;

    fn create() -> Result<Self, Error>;

    fn attach(file: OwnedFd) -> Result<Self, Error>;

    fn file(&self) -> BorrowedFd<'_>;

    fn lock(&self) -> &Self::Lock;
}

// SAFETY: by PLAIN-BITS it is a word of which any bits are valid.
unsafe impl Plain for LimitLock {}
// SAFETY: made for several processes; `settle` is called once, by its creator.
unsafe impl Plain for Pthread<PosixRobust> {}
// SAFETY: by PLAIN-BITS: the C library initialises it, and other processes may write at any time.
unsafe impl Plain for Pthread<PosixShared> {}

/// A pthread mutex in memory that is shared.
pub(super) type Glibc<K> = SharedMemory<Pthread<K>>;

impl<K: PthreadKind + 'static> Home for Glibc<K>
where
    Pthread<K>: Plain + BenchLock,
{
    type Lock = Pthread<K>;

    fn create() -> Result<Self, Error> {
        let memory = SharedMemory::<Pthread<K>>::create()?;
        memory.settle();
        Ok(memory)
    }

    fn attach(file: OwnedFd) -> Result<Self, Error> {
        SharedMemory::open(file)
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn lock(&self) -> &Pthread<K> {
        self
    }
}

/// The root of a segment with one lock.
#[derive(Shareable)]
#[repr(C)]
pub(super) struct OneLock {
    lock: SharedMutex<()>,
}

impl Home for Segment<OneLock> {
    type Lock = SharedMutex<()>;

    fn create() -> Result<Self, Error> {
        Segment::memfd("lockstead-bench", &SegmentOptions::new().participants(PARTICIPANTS))
            .map_err(|why| Error::Segment { what: "cannot make a segment", why: why.to_string() })
    }

    fn attach(file: OwnedFd) -> Result<Self, Error> {
        Segment::from_fd(file).map_err(|why| Error::Segment {
            what: "cannot use the segment of the parent",
            why: why.to_string(),
        })
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn lock(&self) -> &SharedMutex<()> {
        &self.root().lock
    }
}

impl BenchLock for SharedMutex<()> {
    fn new() -> Self {
        SharedMutex::new(())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let Ok(Locked::Acquired(guard)) = self.lock() else { refused() };
        let result = section();
        drop(guard);
        result
    }
}

#[cold]
fn refused() -> ! {
    unreachable!("a measuring loop takes a lock that it does not hold, and nobody dies")
}

/// Evaluates an expression with `$H` standing for the home of the lock `$name`.
macro_rules! with_home {
    ($name:expr, $H:ident => $body:expr) => {{
        use $crate::locks::{PosixRobust, PosixShared};
        use $crate::shared::home as h;
        match $name {
            h::SharedLock::Lockstead => {
                type $H = lockstead::shared::Segment<h::OneLock>;
                $body
            }
            h::SharedLock::GlibcRobust => {
                type $H = h::Glibc<PosixRobust>;
                $body
            }
            h::SharedLock::GlibcShared => {
                type $H = h::Glibc<PosixShared>;
                $body
            }
        }
    }};
}
pub(super) use with_home;
