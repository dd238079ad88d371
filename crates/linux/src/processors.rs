//! Counts the processors that the process may use.
//!
//! # Role
//! Tells spinners whether another thread can run while they spin. The number is
//! the smaller of the affinity masks and the processor quota of the control
//! groups, rounded up.
//!
//! # Progress
//! Counted when the first thread joins. The affinity is looked at again when a
//! thread goes to sleep for a lock and the last look is older than
//! [`REFRESH`]; the quota is not, for that opens files, which a program that
//! has entered a system call filter since may not survive.

use crate::cgroup::{self, Quota};
use crate::futex;
use crate::sys::KeepErrno;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The nanoseconds between two looks at the affinity.
const REFRESH: u64 = 1_000_000_000;

/// The number of processors in use; 0: not counted yet.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The number of processors that the quota allows; `u32::MAX` without one.
static ALLOWANCE: AtomicU32 = AtomicU32::new(u32::MAX);
/// The time at which the affinity is next looked at.
static DUE: AtomicU64 = AtomicU64::new(0);

/// Returns the number of processors, which was counted before.
#[inline]
pub(crate) fn effective() -> u32 {
    match COUNT.load(Relaxed) {
        0 => count(),
        known => known,
    }
}

/// Counts the processors, unless that has been done.
#[cold]
pub(crate) fn count() -> u32 {
    let known = COUNT.load(Relaxed);
    if known != 0 {
        return known;
    }
    let _errno = KeepErrno::new();
    ALLOWANCE.store(cgroup::quota().map_or(u32::MAX, Quota::processors), Relaxed);
    recount()
}

/// Looks at the affinity again if that is due.
pub(crate) fn refresh() {
    let now = futex::now();
    let due = DUE.load(Relaxed);
    let next = now.after(REFRESH).0;
    if now.0 >= due && DUE.compare_exchange(due, next, Relaxed, Relaxed).is_ok() {
        let _errno = KeepErrno::new();
        recount();
    }
}

fn recount() -> u32 {
    let fresh = affinity().min(ALLOWANCE.load(Relaxed)).max(1);
    COUNT.store(fresh, Relaxed);
    fresh
}

/// The largest number of processors that Linux can be built for.
const MOST: usize = 8192;
type Mask = [u64; MOST / 64];

/// Returns on how many processors the calling thread or the main thread may run. Both,
/// since in a program that pins each of its threads to a processor of its own
/// the mask of one says nothing about the rest.
pub(crate) fn affinity() -> u32 {
    let mut mask: Mask = [0; MOST / 64];
    add_affinity(&mut mask, 0);
    // SAFETY: the call takes no argument and cannot fail.
    add_affinity(&mut mask, unsafe { libc::getpid() });
    mask.iter().map(|bits| bits.count_ones()).sum()
}

/// Adds the mask of a thread; nothing if the kernel refuses to tell.
fn add_affinity(mask: &mut Mask, thread: libc::pid_t) {
    let mut one: Mask = [0; MOST / 64];
    // SAFETY: the kernel writes at most the size given, to a mask on this stack.
    let written = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, thread, size_of::<Mask>(), one.as_mut_ptr())
    };
    if written > 0 {
        mask.iter_mut().zip(one).for_each(|(all, bits)| *all |= bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_follows_the_affinity_after_a_while() {
        let before = affinity();
        assert!(before >= 1);
        assert_eq!(count(), effective());
        // A count that is wrong is put right at the next look.
        COUNT.store(before + 1, Relaxed);
        DUE.store(u64::MAX, Relaxed);
        refresh();
        assert_eq!(effective(), before + 1, "looked before it was due");
        DUE.store(0, Relaxed);
        refresh();
        assert!(effective() <= before);
        assert!(DUE.load(Relaxed) > futex::now().0);
    }
}
