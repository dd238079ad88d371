//! Calls that may block for long, made under a lock: with `--sleepy` only.
//!
//! # Role
//! Each function is a look and then a jump to the real one, with the arguments as
//! they were: whatever happens in it, nothing of ours is on the stack, and a thread is
//! cancelled there as ever.
//!
//! Calls that were told not to wait are none of them: a deadline that has passed
//! already, a descriptor or a flag that says so.

use super::note::Note;
use crate::me::enter;
use crate::real;
use crate::site::CallSite;
use crate::sys;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::Flags;
use lockstead_ledger::violation::{BLOCKING, Rule};

/// Whether anybody wants to know.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Does this file's part of [`super::want_sleepy`].
pub fn want(wanted: bool) {
    WANTED.store(wanted, Relaxed);
}

/// Exports functions of up to six arguments, each as that of a name in
/// [`BLOCKING`].
macro_rules! blocking {
    ($($name:ident as $base:literal;)*) => { $(
        crate::looking_frame! {
            /// Stands before the function of this name, which may block.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name(index_of($base)) => look
        }
    )* };
}

blocking! {
    sleep as "sleep";
    usleep as "usleep";
    nanosleep as "nanosleep";
    clock_nanosleep as "clock_nanosleep";
    thrd_sleep as "thrd_sleep";
    pause as "pause";
    sigsuspend as "sigsuspend";
    sigwait as "sigwait";
    sigwaitinfo as "sigwaitinfo";
    sigtimedwait as "sigtimedwait";
    poll as "poll";
    ppoll as "ppoll";
    select as "select";
    pselect as "pselect";
    epoll_wait as "epoll_wait";
    epoll_pwait as "epoll_pwait";
    fsync as "fsync";
    fdatasync as "fdatasync";
    msync as "msync";
    sync as "sync";
    syncfs as "syncfs";
    flock as "flock";
    lockf as "lockf";
    tcdrain as "tcdrain";
    connect as "connect";
    accept as "accept";
    accept4 as "accept4";
    recv as "recv";
    recvfrom as "recvfrom";
    recvmsg as "recvmsg";
    recvmmsg as "recvmmsg";
    send as "send";
    sendto as "sendto";
    sendmsg as "sendmsg";
    sendmmsg as "sendmmsg";
    getaddrinfo as "getaddrinfo";
    wait as "wait";
    waitpid as "waitpid";
    waitid as "waitid";
    wait3 as "wait3";
    wait4 as "wait4";
    system as "system";
    __poll_chk as "poll";
    __ppoll_chk as "ppoll";
    __recv_chk as "recv";
    __recvfrom_chk as "recvfrom";
}

const fn index_of(name: &str) -> usize {
    let mut index = 0;
    loop {
        let (known, name) = (BLOCKING[index].as_bytes(), name.as_bytes());
        let mut at = 0;
        while at < known.len() && at < name.len() && known[at] == name[at] {
            at += 1;
        }
        if at == known.len() && at == name.len() {
            return index;
        }
        index += 1;
    }
}

unsafe extern "C" fn look(index: usize, arguments: &[usize; 6], site: &CallSite) {
    real::resolve();
    if !WANTED.load(Relaxed) {
        return;
    }
    let Some(me) = enter() else { return };
    let stack = me.thread.stack();
    let held = (0..stack.depth()).rev().find_map(|index| {
        let holding = stack.entry(index).read()?;
        let lock = me.ledger.lock(holding.lock)?;
        let is_lock = lock.shape().0 != ObjectKind::Semaphore && !holding.flags.has(Flags::LENT);
        is_lock.then_some(holding)
    });
    let Some(holding) = held else { return };
    // SAFETY: RULES-PASSED: the program passes them to the function of this name.
    if unsafe { returns_at_once(BLOCKING[index], arguments) } {
        return;
    }
    let tid = me.record().tid.load(Relaxed);
    let note = Note::new(Rule::Sleepy, holding.address, me.stack(site));
    me.note(&note.after(tid, holding.stack).number(index as u64));
}

/// Tells whether the call was told not to wait.
///
/// # Safety
/// These are arguments of the function: its pointers are null or good to read.
unsafe fn returns_at_once(name: &str, arguments: &[usize; 6]) -> bool {
    let number = |index: usize| arguments[index] as c_int;
    let has = |index: usize, flag: c_int| number(index) & flag != 0;
    // SAFETY: RULES-PASSED, by the caller's promise, a `timespec` or a `timeval`, of two words.
    let no_time = |index: usize| unsafe {
        let time = arguments[index] as *const [i64; 2];
        !time.is_null() && time.read_unaligned() == [0, 0]
    };
    match name {
        "sleep" | "usleep" => number(0) == 0,
        "nanosleep" | "thrd_sleep" => no_time(0),
        "poll" => number(2) == 0,
        "ppoll" | "sigtimedwait" => no_time(2),
        "select" | "pselect" => no_time(4),
        "epoll_wait" | "epoll_pwait" => number(3) == 0,
        "flock" => has(1, libc::LOCK_NB | libc::LOCK_UN),
        "lockf" => number(1) != libc::F_LOCK,
        "waitpid" | "wait4" => has(2, libc::WNOHANG),
        "wait3" => has(1, libc::WNOHANG),
        "waitid" => has(3, libc::WNOHANG),
        "recv" | "recvfrom" | "recvmmsg" | "send" | "sendto" | "sendmmsg" => {
            has(3, libc::MSG_DONTWAIT) || is_nonblocking(arguments[0])
        }
        "recvmsg" | "sendmsg" => has(2, libc::MSG_DONTWAIT) || is_nonblocking(arguments[0]),
        "connect" | "accept" | "accept4" => is_nonblocking(arguments[0]),
        _ => false,
    }
}

fn is_nonblocking(descriptor: usize) -> bool {
    // SAFETY: `F_GETFL` only asks, and touches no memory.
    let flags =
        unsafe { sys::call(libc::SYS_fcntl, [descriptor, libc::F_GETFL as usize, 0, 0, 0, 0]) };
    flags.is_ok_and(|flags| flags as c_int & libc::O_NONBLOCK != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_once(name: &str, arguments: [usize; 6]) -> bool {
        // SAFETY: the pointers that the tests pass are live or null.
        unsafe { returns_at_once(name, &arguments) }
    }

    #[test]
    fn calls_that_do_not_wait_are_known() {
        let (none, some) = ([0_i64, 0], [0_i64, 5]);
        let (none, some) = (none.as_ptr() as usize, some.as_ptr() as usize);
        assert!(at_once("poll", [0, 0, 0, 9, 9, 9]));
        assert!(!at_once("poll", [0, 0, u32::MAX as usize, 0, 0, 0]));
        assert!(at_once("select", [0, 0, 0, 0, none, 0]));
        assert!(!at_once("select", [0, 0, 0, 0, some, 0]));
        assert!(!at_once("select", [0; 6]), "without a deadline");
        assert!(at_once("nanosleep", [none, 0, 0, 0, 0, 0]));
        assert!(at_once("waitpid", [0, 0, libc::WNOHANG as usize, 0, 0, 0]));
        assert!(at_once("recv", [usize::MAX, 0, 0, libc::MSG_DONTWAIT as usize, 0, 0]));
        assert!(!at_once("fsync", [0; 6]));
    }

    #[test]
    fn every_function_has_its_name() {
        assert_eq!(BLOCKING[index_of("sleep")], "sleep");
        assert_eq!(BLOCKING[index_of("epoll_pwait")], "epoll_pwait");
        assert_eq!(BLOCKING[index_of("system")], "system");
    }
}
