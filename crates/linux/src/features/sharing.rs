//! Tries the facilities of shared locks.

use super::facilities::{answer, error};
use super::offer::Facility;
use crate::shared;
use libc::c_int;

pub(super) fn all() -> [Facility; 3] {
    [robust_list(), wipe_on_fork(), description_locks()]
}

fn robust_list() -> Facility {
    let mut head: *const [isize; 3] = core::ptr::null();
    let mut size = 0_usize;
    // SAFETY: the kernel writes to two variables on this stack.
    let result = answer(unsafe {
        libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut size)
    });
    // SAFETY: null, or the head of this thread's list, three words that the libc keeps as long
    // as the thread lives.
    let offset = unsafe { head.as_ref() }.map(|head| head[1]);
    Facility {
        name: "robust_list",
        offered: result.is_ok(),
        detail: match (result, offset) {
            (Err(errno), _) => error(errno),
            (Ok(_), Some(offset)) => format!("the libc's list, words {offset} bytes from nodes"),
            (Ok(_), None) => "the libc has not registered its list yet".into(),
        },
        in_use: result.is_ok(),
        fallback: "no thread can take part in a shared segment",
    }
}

fn wipe_on_fork() -> Facility {
    let result = shared::wipes_on_fork();
    Facility {
        name: "wipe_on_fork",
        offered: result.is_ok(),
        detail: result.map_or_else(error, |()| "a page could be marked".into()),
        in_use: result.is_ok(),
        fallback: "no segment can be attached: a forked child would act as its parent",
    }
}

fn description_locks() -> Facility {
    // SAFETY: the name is a static C string; the file is new.
    let file = unsafe { libc::memfd_create(c"lockstead-features".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the structure is plain bits, for which zeros are a value: a lock on the whole file.
    let mut range: libc::flock = unsafe { core::mem::zeroed() };
    range.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: the kernel reads a structure on this stack; a wrong descriptor is an error.
    let result = answer(unsafe {
        libc::syscall(libc::SYS_fcntl, file, libc::F_OFD_SETLK as c_int, &raw const range)
    });
    if file >= 0 {
        // SAFETY: the descriptor was opened above, and nobody else knows it.
        unsafe { libc::close(file) };
    }
    Facility {
        name: "description_locks",
        offered: result.is_ok(),
        detail: result.map_or_else(error, |_| "the call works".into()),
        in_use: result.is_ok(),
        fallback: "deaths that the kernel does not report are found in the same PID namespace only",
    }
}
