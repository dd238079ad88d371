//! Knowing when a thread is in a signal handler, and of which signal.
//!
//! # Protocol
//! The handlers that the program installs are replaced by one of ours, which notes
//! the signal, calls the program's and notes the end. Flags and masks stay the
//! program's, so that the kernel does what it would have done: alternate stacks,
//! one-shot handlers, restarted calls. Whoever asks for a handler is told the
//! program's.
//!
//! A handler may be left by a jump. Then the note is taken back at the jump; a jump
//! within the handler leaves it unnoted, so that nothing is said of the rest.
//!
//! Handlers of faults are left alone: they run where the fault is, and not between
//! any two instructions.

use crate::me;
use crate::real::{self, REAL, call};
use crate::site::Site;
use crate::state;
use crate::tls;
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use lockstead_ledger::thread::ThreadRecord;

crate::thunk! {
    sigaction(3) => action;
    __sigaction(3) => action;
    signal(2) => by_signal;
    bsd_signal(2) => by_bsd_signal;
    ssignal(2) => by_ssignal;
    sysv_signal(2) => by_sysv_signal;
    __sysv_signal(2) => by_sysv_signal;
    sigset(2) => by_sigset;
}

crate::passing! {
    longjmp(1) => jump;
    _longjmp(1) => plain_jump;
    siglongjmp(1) => signal_jump;
    __longjmp_chk(1) => checked_jump;
    setcontext(1) => set_context;
    swapcontext(1) => swap_context;
}

/// Signals have numbers from 1 to this.
const SIGNALS: usize = 64;

/// The program's handlers.
static HANDLERS: [AtomicUsize; SIGNALS + 1] = [const { AtomicUsize::new(0) }; SIGNALS + 1];
/// Signals that have ever had one: bit 0 is signal 1.
static INSTALLED: AtomicU64 = AtomicU64::new(0);

/// The bit of a signal.
#[must_use]
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Signals that may run handlers of the program's on the calling thread now.
#[must_use]
pub fn open() -> u64 {
    let mut blocked = 0_u64;
    let arguments =
        [libc::SIG_BLOCK as usize, 0, &raw mut blocked as usize, size_of::<u64>(), 0, 0];
    // SAFETY: writes the thread's mask, of this size, into a live word.
    let asked = unsafe { crate::sys::call(libc::SYS_rt_sigprocmask, arguments) };
    if asked.is_ok() { installed() & !blocked } else { 0 }
}

/// Signals that have handlers of the program's.
#[inline]
#[must_use]
pub fn installed() -> u64 {
    INSTALLED.load(Relaxed)
}

/// Whether a handler of this signal is one to be noted.
fn is_noted(signal: c_int) -> bool {
    (1..=SIGNALS as c_int).contains(&signal)
        && !matches!(
            signal,
            libc::SIGSEGV
                | libc::SIGBUS
                | libc::SIGFPE
                | libc::SIGILL
                | libc::SIGTRAP
                | libc::SIGSYS
                | libc::SIGABRT
        )
}

fn ours() -> usize {
    on_signal as *const () as usize
}

/// `SIG_DFL`, `SIG_IGN` and, for `sigset`, `SIG_HOLD`.
const LAST_SPECIAL: usize = 2;

/// What to install in place of the program's handler, and the one before.
fn replace(signal: c_int, handler: usize) -> (usize, usize) {
    if !is_noted(signal) {
        return (handler, 0);
    }
    let place = &HANDLERS[signal as usize];
    // ord: PRE-4 (acquire): the handler.
    let before = place.load(Acquire);
    if handler <= LAST_SPECIAL || handler == ours() || state::ledger().is_none() {
        return (handler, before);
    }
    // ord: PRE-4 (release): the handler.
    place.store(handler, Release);
    INSTALLED.fetch_or(bit(signal as u32), Relaxed);
    (ours(), before)
}

/// It could not be installed.
fn put_back(signal: c_int, before: usize) {
    if is_noted(signal) {
        // ord: PRE-4 (release): the handler.
        HANDLERS[signal as usize].store(before, Release);
    }
}

/// `struct sigaction`: the part that is read and written here.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

const _: () = assert!(size_of::<Action>() == size_of::<libc::sigaction>());

unsafe extern "C" fn action(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
    _: &Site,
) -> c_int {
    real::resolve();
    // SAFETY: the program's action, if any, which the real function reads too.
    let mut copy = (!new.is_null()).then(|| unsafe { new.read() });
    let wanted = copy.map_or(0, |copy| copy.handler);
    let (handler, before) = replace(signal, wanted);
    let passed = match &mut copy {
        None => new,
        Some(copy) => {
            copy.handler = handler;
            core::ptr::from_ref(copy)
        }
    };
    // SAFETY: the program's arguments go to the function that it called, the action
    // with a handler of ours that calls the program's.
    let answer = unsafe { call::sigaction()(signal, passed.cast(), old.cast()) };
    if answer != 0 {
        put_back(signal, before);
    } else if !old.is_null() {
        // SAFETY: the real function has filled it.
        unsafe {
            if (*old).handler == ours() {
                (*old).handler = before;
            }
        }
    }
    answer
}

/// The others take and return a handler.
fn simple(
    signal: c_int,
    handler: usize,
    real: unsafe extern "C" fn(c_int, usize) -> usize,
) -> usize {
    let (passed, before) = replace(signal, handler);
    // SAFETY: the program's arguments go to the function that it called, as above.
    let old = unsafe { real(signal, passed) };
    if old == usize::MAX {
        put_back(signal, before);
    }
    if old == ours() { before } else { old }
}

unsafe extern "C" fn by_signal(signal: c_int, handler: usize, _: &Site) -> usize {
    real::resolve();
    // SAFETY: resolved.
    simple(signal, handler, unsafe { call::signal() })
}

unsafe extern "C" fn by_bsd_signal(signal: c_int, handler: usize, _: &Site) -> usize {
    real::resolve();
    // SAFETY: resolved.
    simple(signal, handler, unsafe { call::bsd_signal() })
}

unsafe extern "C" fn by_ssignal(signal: c_int, handler: usize, _: &Site) -> usize {
    real::resolve();
    // SAFETY: resolved.
    simple(signal, handler, unsafe { call::ssignal() })
}

unsafe extern "C" fn by_sysv_signal(signal: c_int, handler: usize, _: &Site) -> usize {
    real::resolve();
    // SAFETY: resolved.
    simple(signal, handler, unsafe { call::sysv_signal() })
}

unsafe extern "C" fn by_sigset(signal: c_int, handler: usize, _: &Site) -> usize {
    real::resolve();
    // SAFETY: resolved.
    simple(signal, handler, unsafe { call::sigset() })
}

/// In place of all handlers of the program's, with the arguments of the long form,
/// of which the short one takes the first.
#[unsafe(naked)]
unsafe extern "C" fn on_signal() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 32",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "call {begins}",
        "mov [rsp + 24], rdx",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "call rax",
        "mov rdi, [rsp + 24]",
        "call {ends}",
        "leave",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        begins = sym begins,
        ends = sym ends,
    )
}

/// Handler and what was noted before, in two registers.
#[repr(C)]
struct Begun {
    handler: usize,
    before: usize,
}

/// What was noted is not known: the thread has no record.
const UNNOTED: usize = usize::MAX;

unsafe extern "C" fn begins(signal: c_int) -> Begun {
    // ord: PRE-4 (acquire): the handler.
    let handler = HANDLERS.get(signal as usize).map_or(0, |place| place.load(Acquire));
    let handler = if handler <= LAST_SPECIAL { nothing as *const () as usize } else { handler };
    if tls::words().record.load(Relaxed).is_null() {
        // One that was never seen gets a record.
        drop(me::enter());
    }
    let before = context().map_or(UNNOTED, |context| context.swap(signal as u32, Relaxed) as usize);
    Begun { handler, before }
}

unsafe extern "C" fn nothing() {}

unsafe extern "C" fn ends(before: usize) {
    if before != UNNOTED
        && let Some(context) = context()
    {
        context.store(before as u32, Relaxed);
    }
}

/// The signal in whose handler the calling thread is, 0 for none.
fn context() -> Option<&'static AtomicU32> {
    let _ = state::ledger()?;
    let base = tls::words().record.load(Relaxed).cast::<ThreadRecord>();
    // SAFETY: as in `me::enter`: a record of this process's ledger, which stays
    // mapped.
    (!base.is_null()).then(|| unsafe { &(*base).context })
}

/// The thread jumps, perhaps out of its handlers.
fn jumps() {
    real::resolve();
    if let Some(context) = context()
        && context.load(Relaxed) != 0
    {
        context.store(0, Relaxed);
    }
}

type Jump = *const core::ffi::c_void;

/// What is done before each function that may lead out of a handler.
macro_rules! leading_out {
    ($($name:ident: $real:ident;)*) => { $(
        unsafe extern "C" fn $name(_: Jump, _: &Site) -> usize {
            jumps();
            REAL.$real.address()
        }
    )* };
}

leading_out! {
    jump: longjmp;
    plain_jump: _longjmp;
    signal_jump: siglongjmp;
    checked_jump: __longjmp_chk;
    set_context: setcontext;
    swap_context: swapcontext;
}
