//! Clocks: one for waits, cheap enough to read at every acquisition, and processor
//! time.

use std::time::{Duration, Instant};

/// A monotonic clock with its unit measured. On x86-64 with a time stamp
/// counter that neither stops nor changes its pace it is that counter (some
/// ten nanoseconds a read), on aarch64 the generic timer's, which does neither by
/// architecture; elsewhere the system's monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct Ticks {
    counter: bool,
    ns_per_tick: f64,
}

impl Ticks {
    /// Chooses the clock and measures its unit, which takes 20 ms.
    pub(crate) fn calibrated() -> Self {
        let mut ticks = Self { counter: steady_counter(), ns_per_tick: 1.0 };
        if ticks.counter {
            let (start, from) = (Instant::now(), ticks.now());
            while start.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            let (ns, passed) = (start.elapsed().as_nanos(), ticks.now() - from);
            ticks.ns_per_tick = ns as f64 / passed as f64;
        }
        ticks
    }

    /// Returns the time, in ticks.
    #[inline(always)]
    pub(crate) fn now(self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.counter {
            // SAFETY: every x86-64 processor has this instruction, which reads a counter alone.
            return unsafe { core::arch::x86_64::_rdtsc() };
        }
        #[cfg(target_arch = "aarch64")]
        if self.counter {
            let count: u64;
            // SAFETY: Linux lets programs read this counter; the instruction touches no memory.
            unsafe {
                core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack));
            }
            return count;
        }
        monotonic().as_nanos() as u64
    }

    /// Converts a number of ticks to nanoseconds.
    pub(crate) fn ns(self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick).round() as u64
    }
}

#[cfg(target_arch = "x86_64")]
fn steady_counter() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines().find(|line| line.starts_with("flags")).is_some_and(|flags| {
            ["constant_tsc", "nonstop_tsc"]
                .iter()
                .all(|name| flags.split_ascii_whitespace().any(|flag| flag == *name))
        })
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn steady_counter() -> bool {
    cfg!(target_arch = "aarch64")
}

/// Returns the processor time of all threads of this process, living and ended.
pub(crate) fn process_cpu() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the processor time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the time of the system's monotonic clock, the same in every process.
pub(crate) fn monotonic() -> Duration {
    clock(libc::CLOCK_MONOTONIC)
}

/// Returns the processor time of all children that have been waited for.
pub(crate) fn children_cpu() -> Duration {
    // SAFETY: zeroes are a value of it, and the pointer is to a local variable.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: by CALL-LOCALS the pointers are to live local variables, which the call fills in.
    let code = unsafe { libc::clock_gettime(id, &raw mut time) };
    assert!(code == 0, "clock_gettime: {}", std::io::Error::last_os_error());
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_agree_with_the_system_clock() {
        let ticks = Ticks::calibrated();
        let (start, from) = (Instant::now(), ticks.now());
        std::thread::sleep(Duration::from_millis(30));
        let inner = ticks.ns(ticks.now() - from);
        let outer = start.elapsed().as_nanos() as u64;
        assert!(inner <= outer + outer / 20, "{inner} ns inside {outer} ns");
        assert!(inner >= 28_000_000, "{inner} ns of a sleep of 30 ms");
    }

    #[test]
    fn processor_time_grows_with_work() {
        let before = process_cpu();
        let start = Instant::now();
        while process_cpu() == before {
            assert!(start.elapsed() < Duration::from_secs(10), "no processor time in 10 s");
        }
    }
}
