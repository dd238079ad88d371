//! Tries each single facility, where that is harmless.

use super::offer::Facility;
use crate::{Linux, futex, oncpu, owner, pi, rseq, sys};
use core::ptr::null;
use libc::{c_int, c_long};
use lockstead_core::Platform;
use lockstead_core::biased::Fences;

pub(super) fn all(kernel: &str) -> Vec<Facility> {
    vec![
        futex_call(),
        futex_waitv(),
        futex2(),
        pi_futex(),
        futex_lock_pi2(),
        robust_unlock(kernel),
        restartable_sequences(),
        slice_extension(),
        membarrier(
            "membarrier",
            libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED,
            Linux::can_fence(),
            "a biased mutex is an ordinary one from the start",
        ),
        membarrier(
            "membarrier_rseq",
            libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ,
            releases_in_sections(),
            "the mutex is released by an exchange, not by a section that is restarted",
        ),
        thread_cpu_clock(),
        oncpu_table(),
        perf_instructions(),
    ]
}

/// Returns how a call ended: its value, or the kernel's error.
pub(super) fn answer(value: c_long) -> Result<c_long, c_int> {
    if value < 0 { Err(sys::errno()) } else { Ok(value) }
}

pub(super) fn error(errno: c_int) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

/// Tells whether a call exists that was made with arguments which any kernel that has it
/// rejects by `EINVAL`.
fn exists(value: c_long) -> (bool, String) {
    match answer(value) {
        Ok(_) => (true, "the call works".into()),
        Err(libc::EINVAL) => (true, "the call exists".into()),
        Err(errno) => (false, error(errno)),
    }
}

fn futex_call() -> Facility {
    let word = 0_u32;
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: no thread knows the word, which lives as long as the call: nobody is woken.
    let result = answer(unsafe { libc::syscall(libc::SYS_futex, &word, op, 1) });
    Facility {
        name: "futex",
        offered: result.is_ok(),
        detail: result.map_or_else(error, |_| "the call works".into()),
        in_use: true,
        fallback: "waiting threads poll and yield",
    }
}

fn futex_waitv() -> Facility {
    // SAFETY: the kernel rejects a call without words to wait on.
    let (offered, detail) = exists(unsafe {
        libc::syscall(libc::SYS_futex_waitv, null::<u8>(), 0, 0, null::<u8>(), 0)
    });
    Facility {
        name: "futex_waitv",
        offered,
        detail,
        in_use: offered && !futex::waitv_refused(),
        fallback: "a cancelled wait ends after up to 5 ms instead of at once; waits for shared locks look every \
                   20 ms",
    }
}

fn futex2() -> Facility {
    /// `futex_wake`, Linux 6.7; the number is the same on all architectures
    /// that Rust supports.
    const FUTEX_WAKE: c_long = 454;
    // SAFETY: the kernel rejects unknown flags before it looks at any address.
    let (offered, detail) =
        exists(unsafe { libc::syscall(FUTEX_WAKE, null::<u32>(), 0, 0, u32::MAX) });
    Facility {
        name: "futex2",
        offered,
        detail,
        in_use: false,
        fallback: "none needed: the classic call does all that is used",
    }
}

fn pi_futex() -> Facility {
    let result = pi::probe();
    Facility {
        name: "pi_futex",
        offered: result.is_ok(),
        detail: result.map_or_else(error, |()| "a lock could be taken".into()),
        in_use: result.is_ok(),
        fallback: "real-time mutexes exclude, but lend no priorities; waits for them look every 1 ms",
    }
}

fn futex_lock_pi2() -> Facility {
    let result = pi::probe_lock_pi2();
    Facility {
        name: "futex_lock_pi2",
        offered: result.is_ok(),
        detail: result.map_or_else(error, |()| "a lock could be taken".into()),
        in_use: result.is_ok() && !pi::lock_pi2_refused(),
        fallback: "timed waits for real-time mutexes go by the wall clock, a second at a time",
    }
}

fn robust_unlock(kernel: &str) -> Facility {
    let offered = release(kernel).is_some_and(|release| release >= (7, 2));
    Facility {
        name: "robust_unlock",
        offered,
        detail: format!("part of Linux since 7.2, this is {kernel}; judged by the release"),
        in_use: false,
        fallback: "none needed: shared locks do not put themselves into the kernel's list",
    }
}

/// Returns the first two numbers of a kernel's release.
fn release(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn restartable_sequences() -> Facility {
    let area = rseq::area();
    Facility {
        name: "rseq",
        offered: area.is_some(),
        detail: match area {
            Some(area) => format!("registered by the libc, {} bytes", area.size),
            None => "not registered by the libc (needs glibc 2.35 or later)".into(),
        },
        in_use: area.is_some() && owner::uses_processor(),
        fallback: "the processor is asked for by a call",
    }
}

fn slice_extension() -> Facility {
    Linux::me();
    let (offered, detail, in_use) = crate::slice::probe();
    Facility {
        name: "rseq_slice_extension",
        offered,
        detail,
        in_use,
        fallback: "an owner may lose its processor while it holds a lock",
    }
}

/// Tells whether this thread releases mutexes in sections that the kernel restarts.
fn releases_in_sections() -> bool {
    Linux::me();
    !crate::sections().is_null()
}

fn membarrier(
    name: &'static str,
    command: c_int,
    in_use: bool,
    fallback: &'static str,
) -> Facility {
    // SAFETY: the call takes numbers, and only says which commands exist.
    let result =
        answer(unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) });
    let offered = result.is_ok_and(|commands| commands & c_long::from(command) != 0);
    Facility {
        name,
        offered,
        detail: match result {
            Ok(_) if offered => "the kernel lists the command".into(),
            Ok(_) => "the kernel does not list the command".into(),
            Err(errno) => error(errno),
        },
        in_use: offered && in_use,
        fallback,
    }
}

fn thread_cpu_clock() -> Facility {
    let offered = owner::thread_time(sys::gettid()).is_some();
    Facility {
        name: "thread_cpu_clock",
        offered,
        detail: if offered {
            "a thread's clock is readable by its number".into()
        } else {
            error(sys::errno())
        },
        in_use: offered && owner::uses_clock(),
        fallback: "spinners rely on their bound of time alone",
    }
}

fn oncpu_table() -> Facility {
    oncpu::find();
    let (offered, detail) = match oncpu::status() {
        Ok(Some(running)) if running.kept => {
            (true, format!("kept for {} processors", running.processors))
        }
        Ok(Some(_)) => (false, "there is one, but nobody keeps it".into()),
        Ok(None) => (false, "not started: `lockstead oncpu start`, as root".into()),
        Err(why) => (false, why.to_string()),
    };
    Facility {
        name: "oncpu_table",
        offered,
        detail,
        in_use: offered && owner::uses_table(),
        fallback: "whether an owner runs is found out by its processor-time clock",
    }
}

fn perf_instructions() -> Facility {
    /// `struct perf_event_attr` in its first version, as 64-bit words.
    const SIZE: u64 = 64;
    const TYPE_HARDWARE: u64 = 0;
    const COUNT_INSTRUCTIONS: u64 = 1;
    const DISABLED_NO_KERNEL_NO_HYPERVISOR: u64 = 1 | 1 << 5 | 1 << 6;
    let type_and_size = if cfg!(target_endian = "little") {
        TYPE_HARDWARE | SIZE << 32
    } else {
        TYPE_HARDWARE << 32 | SIZE
    };
    let flags = if cfg!(target_endian = "little") {
        DISABLED_NO_KERNEL_NO_HYPERVISOR
    } else {
        DISABLED_NO_KERNEL_NO_HYPERVISOR.reverse_bits()
    };
    let mut attributes = [type_and_size, COUNT_INSTRUCTIONS, 0, 0, 0, flags, 0, 0];
    // SAFETY: the kernel reads attributes on this stack, which say how long they are.
    let result = answer(unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_mut_ptr(), 0, -1, -1, 0)
    });
    if let Ok(file) = result {
        // SAFETY: the descriptor was opened above, and nobody else knows it.
        unsafe { libc::close(file as c_int) };
    }
    Facility {
        name: "perf_instructions",
        offered: result.is_ok(),
        detail: match result {
            Ok(_) => "a counter could be opened".into(),
            Err(libc::ENOENT) => "the processor has no counter, or the hypervisor hides it".into(),
            Err(errno) => error(errno),
        },
        in_use: false,
        fallback: "benchmarks count instructions by single-stepping, or not at all",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(release("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(release("7.2-rc1"), Some((7, 2)));
        assert!(release("10.0") > release("9.12"));
        assert_eq!(release("unknown"), None);
    }

    #[test]
    fn refused_calls_are_results() {
        assert_eq!(answer(3), Ok(3));
        // SAFETY: there is no such call: the kernel refuses it before it looks at anything.
        let (offered, detail) = exists(unsafe { libc::syscall(1_000_000) });
        assert!(!offered);
        assert!(!detail.is_empty());
    }
}
