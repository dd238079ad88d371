//! The clock of the ledgers.

/// Reads `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the processor time that the calling thread has used, in nanoseconds.
pub(crate) fn used() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes into `time`, which is borrowed exclusively; both clocks exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
