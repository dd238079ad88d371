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
use crate::real::{self, REAL, Real};
use crate::site::CallSite;
use crate::sys;
use core::ffi::c_int;
use core::mem::offset_of;
use lockstead_ledger::publish::WaitKind;

/// The numbers of the calls that are looked at: the kernel's on x86-64.
const CALL: usize = 202;
const WAIT_FOR_ONE_OF: usize = 449;
const WAKE_2: usize = 454;
const WAIT_2: usize = 455;

/// The operation without its flags.
const OPERATION: usize = 127;
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
const SLEEPING: u32 = mask(&[
    libc::FUTEX_WAIT,
    libc::FUTEX_WAIT_BITSET,
    libc::FUTEX_LOCK_PI,
    libc::FUTEX_WAIT_REQUEUE_PI,
    LOCK_PI_2 as c_int,
]);
/// The operations that wake.
const WAKING: u32 = mask(&[
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
struct SleepingCall {
    /// The number of the call, and its arguments.
    number: usize,
    arguments: [usize; 6],
    /// What the program gets.
    result: isize,
    place: SleepPlace,
    spare: usize,
}

// The stack pointer is a multiple of 16 where functions are called.
const _: () = assert!(size_of::<SleepingCall>() % 16 == 8);

/// Stands before glibc's function of this name.
///
/// # Safety
/// As of the function of this name.
#[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        // An indirect pointer relative to its place, of four bytes.
        ".cfi_personality 0x9b, lockstead_personality",
        "cmp edi, {futex}",
        "je 3f",
        "lea eax, [rdi - {wait_for_one_of}]",
        "cmp eax, {wait_2} - {wait_for_one_of}",
        "ja 2f",
        "cmp edi, {wait_for_one_of}",
        "je 4f",
        "cmp edi, {wait_2}",
        "je 4f",
        "cmp edi, {wake_2}",
        "je 5f",
        // Not ours: on, with all registers as they were.
        "2:",
        "mov rax, qword ptr [rip + {real} + {function}]",
        "test rax, rax",
        "je 6f",
        "jmp rax",
        "3:",
        "mov eax, edx",
        "and eax, {operation}",
        "cmp eax, 31",
        "ja 2b",
        "mov r11d, {sleeping}",
        "bt r11d, eax",
        "jc 4f",
        "mov r11d, {waking}",
        "bt r11d, eax",
        "jnc 2b",
        // It wakes.
        "5:",
        "lea r11, [rip + {wakes}]",
        "jmp 7f",
        // The functions are not known yet.
        "6:",
        "lea r11, [rip + {resolves}]",
        "7:",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 48",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "mov rcx, rbp",
        "call r11",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "jmp rax",
        // It may sleep. The frame is found by the stack pointer alone, which the kernel shows.
        "4:",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "push rbx",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset rbx, -24",
        "push r12",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset r12, -32",
        "push r13",
        ".cfi_def_cfa_offset 40",
        ".cfi_offset r13, -40",
        "push r14",
        ".cfi_def_cfa_offset 48",
        ".cfi_offset r14, -48",
        "push r15",
        ".cfi_def_cfa_offset 56",
        ".cfi_offset r15, -56",
        "sub rsp, {size} + 16",
        ".cfi_def_cfa_offset {size} + 72",
        // The real function has its last argument on the stack: at rsp, when it is called.
        "mov [rsp + 16], rdi",
        "mov [rsp + 24], rsi",
        "mov [rsp + 32], rdx",
        "mov [rsp + 40], rcx",
        "mov [rsp + 48], r8",
        "mov [rsp + 56], r9",
        "mov rax, [rsp + {size} + 72]",
        "mov [rsp + 64], rax",
        "mov [rsp], rax",
        "lea rdi, [rsp + 16]",
        "lea rsi, [rsp + {size} + 56]",
        "call {begins}",
        "mov rdi, [rsp + 16]",
        "mov rsi, [rsp + 24]",
        "mov rdx, [rsp + 32]",
        "mov rcx, [rsp + 40]",
        "mov r8, [rsp + 48]",
        "mov r9, [rsp + 56]",
        "call rax",
        "mov [rsp + 72], rax",
        "lea rdi, [rsp + 16]",
        "lea rsi, [rsp + {size} + 56]",
        "call {ends}",
        "mov rax, [rsp + 72]",
        "add rsp, {size} + 16",
        ".cfi_def_cfa_offset 56",
        "pop r15",
        ".cfi_def_cfa_offset 48",
        ".cfi_restore r15",
        "pop r14",
        ".cfi_def_cfa_offset 40",
        ".cfi_restore r14",
        "pop r13",
        ".cfi_def_cfa_offset 32",
        ".cfi_restore r13",
        "pop r12",
        ".cfi_def_cfa_offset 24",
        ".cfi_restore r12",
        "pop rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_restore rbx",
        "pop rbp",
        ".cfi_def_cfa_offset 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        futex = const CALL,
        wait_for_one_of = const WAIT_FOR_ONE_OF,
        wake_2 = const WAKE_2,
        wait_2 = const WAIT_2,
        operation = const OPERATION,
        sleeping = const SLEEPING,
        waking = const WAKING,
        real = sym REAL,
        function = const offset_of!(Real, syscall),
        size = const size_of::<SleepingCall>(),
        wakes = sym wakes,
        resolves = sym resolves,
        begins = sym begins,
        ends = sym ends,
    )
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
