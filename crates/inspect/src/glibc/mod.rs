//! The locks of the GNU C library, recognised in memory.
//!
//! # Role
//! A thread in a futex call gives away an address and a value. Each file here
//! knows one kind of object: where in it threads sleep, and which relations
//! among its fields hold while they do. An object is recognised only if *all*
//! of these hold and fit the call's arguments; that the call was made from
//! inside the C library is for the caller to know. Offsets and bits are those
//! of the library's binary interface on 64-bit machines, which programs that
//! were linked statically or mapped a shared lock keep it from changing.
//!
//! | module | what it knows |
//! |---|---|
//! | [`mutex`] | `pthread_mutex_t` of all kinds: the owner is in it |
//! | [`rwlock`] | `pthread_rwlock_t`: a writer is in it, readers are counted |
//! | [`others`] | condition variables, semaphores, barriers: no owner |
//! | [`thread`] | the library's record of a thread: joins, locks of streams |

pub mod mutex;
pub mod others;
pub mod rwlock;
pub mod thread;

use crate::memory::ReadableMemory;

/// The place where a mutex names its owner.
pub(crate) const MUTEX_OWNER: u64 = 8;
/// The place where a reader-writer lock names the thread that writes.
pub(crate) const RWLOCK_WRITER: u64 = 24;
/// The bit of its first word that says that writers have their turn.
pub(crate) const WRITE_PHASE: u32 = 1;
/// The place in its first word at which the count of its readers begins.
pub(crate) const READERS_SHIFT: u32 = 3;

/// Threads have numbers up to this, whatever the system's setting.
const MOST_THREADS: u32 = 1 << 22;

/// Fields of an object, read in one piece.
struct GlibcFields<const N: usize>([u8; N]);

impl<const N: usize> GlibcFields<N> {
    fn read(memory: &dyn ReadableMemory, address: u64) -> Option<Self> {
        let mut bytes = [0; N];
        (memory.read(address, &mut bytes).ok()? == N).then_some(GlibcFields(bytes))
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(std::array::from_fn(|n| self.0[offset + n]))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(std::array::from_fn(|n| self.0[offset + n]))
    }

    /// Tells whether two words that glibc leaves alone are zero, or bear the mark of
    /// `lockstead run --check`: in the first, the highest bit, which no address has.
    fn is_spare(&self, mark: usize, check: usize) -> bool {
        self.u64(mark) >> 63 == 1 || self.u64(mark) == 0 && self.u64(check) == 0
    }
}

/// Returns a number that a thread may have.
fn is_thread(number: u32) -> bool {
    (1..=MOST_THREADS).contains(&number)
}
