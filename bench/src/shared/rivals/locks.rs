//! The locks, in one form.

use crate::Error;
use crate::locks::{BenchLock, PosixRobust, Pthread, Robustly};
use crate::shared::memory::{Plain, SharedMemory};
use lockstead::shared::{
    HeldGuard, Inconsistent, Locked, Segment, SegmentOptions, Shareable, SharedError, SharedMutex,
    SharedMutexGuard, SharedReadGuard, SharedRwLock, SharedWriteGuard,
};
use std::cell::{Cell, UnsafeCell};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long a child may take for what it can do at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What lies where all can open it: one of each lock, free.
pub(super) struct RivalGround {
    segment: Segment<Root>,
    robust: SharedMemory<Pthread<PosixRobust>>,
    semaphore: SharedMemory<Posix>,
    folder: TempDir,
}

/// What the segment of lockstead's locks consists of.
#[derive(Shareable)]
#[repr(C)]
struct Root {
    mutex: SharedMutex<()>,
    rwlock: SharedRwLock<()>,
}

/// A POSIX semaphore in memory that processes share.
#[repr(transparent)]
struct Posix(UnsafeCell<libc::sem_t>);

// SAFETY: a semaphore is made to be used by many threads; the cell is touched only through its
// functions.
unsafe impl Sync for Posix {}
// SAFETY: one for several processes, initialised before anybody uses it; it has no pointers.
unsafe impl Plain for Posix {}

fn failed(what: &'static str) -> Error {
    Error::Process { what, source: io::Error::last_os_error() }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::Segment { what: "a lock refuses", why: why.to_string() }
}

impl RivalGround {
    pub(super) fn new() -> Result<Self, Error> {
        let segment = Segment::memfd("lockstead-rivals", &SegmentOptions::new().participants(64));
        let semaphore = SharedMemory::<Posix>::create()?;
        // SAFETY: it is shared memory of that size that nobody uses yet.
        if unsafe { libc::sem_init(semaphore.0.get(), 1, 1) } != 0 {
            return Err(failed("cannot make a semaphore"));
        }
        let robust = SharedMemory::<Pthread<PosixRobust>>::create()?;
        robust.settle();
        let folder = tempfile::tempdir()
            .map_err(|source| Error::Process { what: "cannot make a folder", source })?;
        let ground = RivalGround { segment: segment.map_err(refused)?, robust, semaphore, folder };
        File::create(ground.path())
            .map_err(|source| Error::Process { what: "cannot make a file", source })?;
        Ok(ground)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("lock")
    }

    /// Returns the folder, for locks that need one.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the file that locks of files are about, opened anew.
    pub(super) fn file(&self) -> Result<File, Error> {
        File::options().read(true).write(true).open(self.path()).map_err(|source| Error::Process {
            what: "cannot open the file with the locks",
            source,
        })
    }
}

/// A lock, as somebody has opened it.
pub(super) trait Rival<'g>: Sized {
    const NAME: &'static str;
    /// Whether it is a lock on a file, and so on what else the process does with that file.
    const IS_OF_FILE: bool = false;
    /// Whether several can have it to read.
    const SHARES: bool = false;
    /// A process may open it more than once, and a forked child use what its parent opened.
    const OPENS_TWICE: bool = true;

    fn open(ground: &'g RivalGround) -> Result<Self, Error>;

    /// Takes the lock. Returns true if the last owner died.
    fn lock(&self) -> Result<bool, Error>;

    /// Takes it if nobody has it. Returns whether it has it.
    fn try_lock(&self) -> Result<bool, Error>;

    /// Gives it back, or its share; an error if it is not the caller's.
    fn unlock(&self) -> Result<(), Error>;

    /// Takes a share of it.
    fn share(&self) -> Result<(), Error> {
        Err(refused("it cannot be shared"))
    }
}

/// Marks what was got as consistent, and whether that was needed.
fn whole<G: HeldGuard>(got: Locked<G>) -> Result<(G, bool), Error> {
    match got {
        Locked::Acquired(guard) => Ok((guard, false)),
        Locked::OwnerDied(guard) => Ok((Inconsistent::mark_consistent(guard), true)),
        Locked::NotRecoverable => Err(refused("not recoverable")),
    }
}

/// Returns what a trylock acquired: `None` if somebody has it.
fn tried<G: HeldGuard>(got: Result<Locked<G>, SharedError>) -> Result<Option<G>, Error> {
    match got {
        Ok(got) => Ok(Some(whole(got)?.0)),
        Err(SharedError::Held) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// lockstead's mutex, with the guard that it gave, if it is held.
pub(super) struct RivalMutex<'g> {
    lock: &'g SharedMutex<()>,
    guard: Cell<Option<SharedMutexGuard<'g, ()>>>,
}

impl<'g> Rival<'g> for RivalMutex<'g> {
    const NAME: &'static str = "lockstead mutex";

    fn open(ground: &'g RivalGround) -> Result<Self, Error> {
        Ok(RivalMutex { lock: &ground.segment.root().mutex, guard: Cell::new(None) })
    }

    #[inline]
    fn lock(&self) -> Result<bool, Error> {
        let (guard, died) = whole(self.lock.lock().map_err(refused)?)?;
        self.guard.set(Some(guard));
        Ok(died)
    }

    fn try_lock(&self) -> Result<bool, Error> {
        let got = tried(self.lock.try_lock())?;
        Ok(got.map(|guard| self.guard.set(Some(guard))).is_some())
    }

    #[inline]
    fn unlock(&self) -> Result<(), Error> {
        self.guard.take();
        Ok(())
    }
}

/// lockstead's reader-writer lock, with the guard that it gave, if it is held.
pub(super) struct RivalRwLock<'g> {
    lock: &'g SharedRwLock<()>,
    guard: Cell<Option<RwLockSide<'g>>>,
}

enum RwLockSide<'g> {
    Reads(#[expect(dead_code, reason = "kept for its drop")] SharedReadGuard<'g, ()>),
    Writes(#[expect(dead_code, reason = "kept for its drop")] SharedWriteGuard<'g, ()>),
}

impl<'g> Rival<'g> for RivalRwLock<'g> {
    const NAME: &'static str = "lockstead rwlock";
    const SHARES: bool = true;

    fn open(ground: &'g RivalGround) -> Result<Self, Error> {
        Ok(RivalRwLock { lock: &ground.segment.root().rwlock, guard: Cell::new(None) })
    }

    #[inline]
    fn lock(&self) -> Result<bool, Error> {
        let (guard, died) = whole(self.lock.write().map_err(refused)?)?;
        self.guard.set(Some(RwLockSide::Writes(guard)));
        Ok(died)
    }

    fn try_lock(&self) -> Result<bool, Error> {
        let got = tried(self.lock.try_write())?;
        Ok(got.map(|guard| self.guard.set(Some(RwLockSide::Writes(guard)))).is_some())
    }

    #[inline]
    fn unlock(&self) -> Result<(), Error> {
        self.guard.take();
        Ok(())
    }

    #[inline]
    fn share(&self) -> Result<(), Error> {
        let (guard, _) = whole(self.lock.read().map_err(refused)?)?;
        self.guard.set(Some(RwLockSide::Reads(guard)));
        Ok(())
    }
}

/// The C library's robust mutex.
pub(super) struct GlibcRobust<'g>(&'g Pthread<PosixRobust>);

impl<'g> Rival<'g> for GlibcRobust<'g> {
    const NAME: &'static str = "pthread robust";

    fn open(ground: &'g RivalGround) -> Result<Self, Error> {
        Ok(GlibcRobust(&ground.robust))
    }

    #[inline]
    fn lock(&self) -> Result<bool, Error> {
        let died = self.0.take() == Robustly::OwnerDied;
        if died {
            self.0.mark_consistent();
        }
        Ok(died)
    }

    fn try_lock(&self) -> Result<bool, Error> {
        Ok(match self.0.try_take() {
            Robustly::Busy => false,
            Robustly::Had => true,
            Robustly::OwnerDied => {
                self.0.mark_consistent();
                true
            }
        })
    }

    #[inline]
    fn unlock(&self) -> Result<(), Error> {
        let what = "cannot unlock a robust mutex";
        self.0.try_give_back().map_err(|source| Error::Process { what, source })
    }
}

/// A POSIX semaphore that begins with one.
pub(super) struct RivalSemaphore<'g>(&'g Posix);

impl<'g> Rival<'g> for RivalSemaphore<'g> {
    const NAME: &'static str = "sem_t";

    fn open(ground: &'g RivalGround) -> Result<Self, Error> {
        Ok(RivalSemaphore(&ground.semaphore))
    }

    #[inline]
    fn lock(&self) -> Result<bool, Error> {
        // SAFETY: the semaphore was initialised when the ground was made, and does not move.
        match unsafe { libc::sem_wait(self.0.0.get()) } {
            0 => Ok(false),
            _ => Err(failed("cannot wait for a semaphore")),
        }
    }

    fn try_lock(&self) -> Result<bool, Error> {
        // SAFETY: the semaphore was initialised when the ground was made, and does not move.
        match unsafe { libc::sem_trywait(self.0.0.get()) } {
            0 => Ok(true),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => Ok(false),
            _ => Err(failed("cannot try a semaphore")),
        }
    }

    #[inline]
    fn unlock(&self) -> Result<(), Error> {
        // SAFETY: the semaphore was initialised when the ground was made, and does not move.
        match unsafe { libc::sem_post(self.0.0.get()) } {
            0 => Ok(()),
            _ => Err(failed("cannot post a semaphore")),
        }
    }
}

/// A lock on a whole file (`flock`), that belongs to the open file description.
pub(super) struct Flock(File);

impl Flock {
    #[inline]
    fn call(&self, how: libc::c_int) -> Result<bool, Error> {
        // SAFETY: by CALL-NUMBERS: the descriptor is open as long as the file.
        match unsafe { libc::flock(self.0.as_raw_fd(), how) } {
            0 => Ok(true),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => Ok(false),
            _ => Err(failed("flock")),
        }
    }
}

impl<'g> Rival<'g> for Flock {
    const NAME: &'static str = "flock";
    const IS_OF_FILE: bool = true;
    const SHARES: bool = true;

    fn open(ground: &'g RivalGround) -> Result<Self, Error> {
        ground.file().map(Flock)
    }

    #[inline]
    fn lock(&self) -> Result<bool, Error> {
        self.call(libc::LOCK_EX).map(|_| false)
    }

    fn try_lock(&self) -> Result<bool, Error> {
        self.call(libc::LOCK_EX | libc::LOCK_NB)
    }

    #[inline]
    fn unlock(&self) -> Result<(), Error> {
        self.call(libc::LOCK_UN).map(drop)
    }

    #[inline]
    fn share(&self) -> Result<(), Error> {
        self.call(libc::LOCK_SH).map(drop)
    }
}

/// A record lock on one byte: of the open file description, or of the process, as POSIX has it.
struct RecordLock(File);

impl RecordLock {
    #[inline]
    fn call(&self, command: libc::c_int, kind: libc::c_int) -> Result<bool, Error> {
        // SAFETY: by ZEROED-BITS zero is a valid value of this plain C structure.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = kind as libc::c_short;
        range.l_whence = libc::SEEK_SET as libc::c_short;
        range.l_len = 1;
        // SAFETY: a structure that lives, and a descriptor that is open.
        match unsafe { libc::fcntl(self.0.as_raw_fd(), command, &raw const range) } {
            0 => Ok(true),
            _ => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                _ => Err(failed("fcntl")),
            },
        }
    }
}

/// Declares a kind of record locks.
macro_rules! record_lock {
    ($(#[$doc:meta])* $Name:ident, $name:literal, $wait:expr, $try:expr) => {
        $(#[$doc])*
        pub(super) struct $Name(RecordLock);

        impl<'g> Rival<'g> for $Name {
            const NAME: &'static str = $name;
            const IS_OF_FILE: bool = true;
            const SHARES: bool = true;

            fn open(ground: &'g RivalGround) -> Result<Self, Error> {
                Ok($Name(RecordLock(ground.file()?)))
            }

            #[inline]
            fn lock(&self) -> Result<bool, Error> {
                self.0.call($wait, libc::F_WRLCK).map(|_| false)
            }

            fn try_lock(&self) -> Result<bool, Error> {
                self.0.call($try, libc::F_WRLCK)
            }

            #[inline]
            fn unlock(&self) -> Result<(), Error> {
                self.0.call($try, libc::F_UNLCK).map(drop)
            }

            #[inline]
            fn share(&self) -> Result<(), Error> {
                self.0.call($wait, libc::F_RDLCK).map(drop)
            }
        }
    };
}

record_lock!(
    /// A lock of the open file description.
    OpenFile, "fcntl, OFD", libc::F_OFD_SETLKW, libc::F_OFD_SETLK
);
record_lock!(
    /// A lock of the process.
    Traditional, "fcntl, POSIX", libc::F_SETLKW, libc::F_SETLK
);
