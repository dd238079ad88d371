//! Processors and priorities of threads.

use crate::Error;
use std::io;
use std::time::Duration;

/// The priorities under `SCHED_FIFO`: low, middle, high.
pub(super) const PRIORITIES: [i32; 3] = [10, 20, 30];

/// Returns the last processor that the process may use: the first one tends to have the
/// machine's other work.
pub(super) fn processor() -> usize {
    // SAFETY: a set of processors is plain bits, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes to the live set, which is as large as said.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: the numbers are within the set, which was filled in above.
    let allowed = (0..most).rfind(|&number| unsafe { libc::CPU_ISSET(number, &set) });
    allowed.filter(|_| result == 0).unwrap_or(0)
}

/// Puts the calling thread on a processor, with a priority under `SCHED_FIFO`.
pub(super) fn enter(processor: usize, priority: i32) -> io::Result<()> {
    // SAFETY: by ZEROED-BITS zero is a valid value of this plain C structure.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number came from a set of this size.
    unsafe { libc::CPU_SET(processor, &mut set) };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: by CALL-LOCALS the arguments are live; both calls concern the calling thread alone.
    let done = unsafe {
        libc::sched_setaffinity(0, size_of_val(&set), &set) == 0
            && libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells whether threads may do that.
pub(super) fn probe(processor: usize) -> Result<(), Error> {
    let highest = PRIORITIES[2];
    let thread = std::thread::Builder::new()
        .spawn(move || enter(processor, highest))
        .map_err(|source| Error::Threads { threads: 1, source })?;
    let entered = thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
    entered.map_err(|source| Error::Priorities { highest, source })
}

/// Uses this much time of the calling thread's processor, unless `over` says to stop.
/// Whatever the clock says, it ends after a second.
pub(super) fn burn(time: Duration, over: impl Fn() -> bool) {
    let (begin, start) = (std::time::Instant::now(), used());
    while used() - start < time && !over() && begin.elapsed() < Duration::from_secs(1) {
        std::hint::spin_loop();
    }
}

/// Returns the processor time that the calling thread has used.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: by CALL-LOCALS the pointers are to live local variables, which the call fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
