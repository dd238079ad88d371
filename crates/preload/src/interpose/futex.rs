//! Stands before libc's function for system calls: the way to the kernel for Rust's std,
//! parking_lot, abseil, C++'s atomic waits and others.
//!
//! # Role
//! Only calls on futex words are looked at. All others go on with every register as it was, after a
//! few comparisons: among them are those that come back twice, or on another stack.
//!
//! A call that may sleep has a frame of ours with all registers that the caller wants back, so that
//! whoever unwinds the stack of a sleeping thread from outside finds the caller's. The function is
//! no point at which threads are cancelled; one that asks to be cancelled at any instruction may be,
//! and the personality routine withdraws its wait.
//!
//! A call that wakes is counted before it is made, and then only passed on: when it has been made,
//! the word may be anybody's.

use super::SavedErrno;
use super::until::{deadline, timed};
use crate::futex::{self, FutexSleep, SleepEnd, SleepPlace};
use crate::real::{self, REAL};
use crate::site::CallSite;
use crate::sys;
use core::ffi::c_int;
use lockstead_ledger::publish::WaitKind;

// The numbers of the calls that are looked at: newer ones have the same number everywhere.
use crate::arch::FUTEX as CALL;
pub(crate) const WAIT_FOR_ONE_OF: usize = 449;
pub(crate) const WAKE_2: usize = 454;
pub(crate) const WAIT_2: usize = 455;

/// The operation without its flags.
pub(crate) const OPERATION: usize = 127;
/// The flag for the wall clock.
const REALTIME: usize = libc::FUTEX_CLOCK_REALTIME as usize;
const WAIT: usize = libc::FUTEX_WAIT as usize;
const WAKE: usize = libc::FUTEX_WAKE as usize;
const WAIT_BITSET: usize = libc::FUTEX_WAIT_BITSET as usize;
const LOCK_PI_2: usize = 13;
const LOCK_PI: usize = libc::FUTEX_LOCK_PI as usize;

const fn mask(operations: &[c_int]) -> u32 {
    let (mut mask, mut at) = (0, 0);
    while at < operations.len() {
        mask |= 1 << operations[at];
        at += 1;
    }
    mask
}

/// The operations that may sleep.
pub(crate) const SLEEPING: u32 = mask(&[
    libc::FUTEX_WAIT,
    libc::FUTEX_WAIT_BITSET,
    libc::FUTEX_LOCK_PI,
    libc::FUTEX_WAIT_REQUEUE_PI,
    LOCK_PI_2 as c_int,
]);
/// The operations that wake.
pub(crate) const WAKING: u32 = mask(&[
    libc::FUTEX_WAKE,
    libc::FUTEX_WAKE_BITSET,
    libc::FUTEX_WAKE_OP,
    libc::FUTEX_REQUEUE,
    libc::FUTEX_CMP_REQUEUE,
    libc::FUTEX_CMP_REQUEUE_PI,
    libc::FUTEX_UNLOCK_PI,
]);

/// What the trampoline of a call that may sleep passes from before the real one to after it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SleepingCall {
    /// The number of the call, and its arguments.
    number: usize,
    arguments: [usize; 6],
    /// What the program gets.
    result: isize,
    place: SleepPlace,
    spare: usize,
}

// The stack pointer is a multiple of 16 where functions are called, and beside it an odd number of words
// is on the stack.
const _: () = assert!(size_of::<SleepingCall>() % 16 == 8);

crate::system_call_frame! {
    /// Stands before glibc's function of this name.
    ///
    /// # Safety
    /// As of the function of this name.
    #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
    pub syscall: syscall => wakes, resolves, begins, ends
}

unsafe extern "C" fn resolves() -> usize {
    real::resolve();
    REAL.syscall.address()
}

unsafe extern "C" fn wakes(number: usize, word: usize, operation: usize, site: &CallSite) -> usize {
    real::resolve();
    let may_be_parked = number as u32 as usize == CALL && operation & OPERATION == WAKE;
    futex::wakes(word as u64, may_be_parked, site);
    REAL.syscall.address()
}

unsafe extern "C" fn begins(call: &mut SleepingCall, site: &CallSite) -> usize {
    real::resolve();
    call.place = futex::wait_begins(&call.sleep(), site);
    REAL.syscall.address()
}

unsafe extern "C" fn ends(call: &mut SleepingCall, site: &CallSite) {
    let end = match call.result {
        0.. => SleepEnd::Woken,
        _ => match SavedErrno::keep().value() {
            libc::ETIMEDOUT => SleepEnd::TimedOut,
            libc::EINTR => SleepEnd::Interrupted,
            _ => SleepEnd::Refused,
        },
    };
    futex::wait_ends(call.place, end, site);
}

impl SleepingCall {
    fn sleep(&self) -> FutexSleep {
        let [first, second, third, fourth, fifth, sixth] = self.arguments;
        let clock = |realtime| if realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
        let at = |time: usize, clock: c_int| end(time).map(|at| (at, clock));
        let mut word = first as u64;
        let (mut may_be_parked, mut is_for_lock) = (false, false);
        let until = match self.number as u32 as usize {
            WAIT_FOR_ONE_OF => {
                // Of each word its value, its address and its flags.
                let address = first as u64 + 8;
                word = if sys::is_readable(address) {
                    // SAFETY: the kernel has just read these bytes.
                    unsafe { (address as *const u64).read_unaligned() }
                } else {
                    0
                };
                at(fourth, fifth as c_int)
            }
            WAIT_2 => at(fifth, sixth as c_int),
            _ => {
                let operation = second & OPERATION;
                may_be_parked = operation == WAIT && third as u32 == 1;
                let is_mutex = operation == WAIT_BITSET && third as u32 == 2 && fourth == 0;
                is_for_lock = is_mutex || operation == LOCK_PI || operation == LOCK_PI_2;
                match operation {
                    WAIT => end(fourth)
                        .map(|span| (sys::now().saturating_add(span), libc::CLOCK_MONOTONIC)),
                    LOCK_PI => at(fourth, libc::CLOCK_REALTIME),
                    _ => at(fourth, clock(second & REALTIME != 0)),
                }
            }
        };
        let (how, deadline) = match until {
            Some((at, clock)) => (timed(WaitKind::FUTEX, clock), at),
            None => (WaitKind::FUTEX, 0),
        };
        FutexSleep { word, may_be_parked, is_for_lock, how, deadline }
    }
}

/// Reads a time, in nanoseconds; `None` where there is none, or nothing that could be read.
fn end(time: usize) -> Option<u64> {
    let time = time as u64;
    let is_there = time != 0 && sys::is_readable(time) && sys::is_readable(time.checked_add(8)?);
    // SAFETY: the kernel has just read both words.
    is_there.then(|| unsafe { deadline(time as *const libc::timespec) })
}
