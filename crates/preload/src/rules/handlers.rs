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
use crate::order::stack;
use crate::real::{self, REAL, call};
use crate::site::CallSite;
use crate::state;
use crate::{sys, tls};
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use lockstead_ledger::Ledger;
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
    swapcontext(2) => swap_context;
}

/// The largest number of a signal; the first is 1.
const SIGNALS: usize = 64;

/// The handlers that the program has installed.
static HANDLERS: [AtomicUsize; SIGNALS + 1] = [const { AtomicUsize::new(0) }; SIGNALS + 1];
/// The signals that have such a handler: bit 0 is signal 1.
static INSTALLED: AtomicU64 = AtomicU64::new(0);
/// The signals among them that have it for the next time only.
static ONE_SHOT: AtomicU64 = AtomicU64::new(0);

/// Returns the bit that stands for a signal.
#[must_use]
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Returns the signals that may run handlers of the program's on the calling thread now.
#[must_use]
pub fn open() -> u64 {
    let mut blocked = 0_u64;
    let arguments =
        [libc::SIG_BLOCK as usize, 0, &raw mut blocked as usize, size_of::<u64>(), 0, 0];
    // SAFETY: writes the thread's mask, of this size, into a live word.
    let asked = unsafe { crate::sys::call(libc::SYS_rt_sigprocmask, arguments) };
    if asked.is_ok() { installed() & !blocked } else { 0 }
}

/// Returns the signals that have handlers of the program's.
#[inline]
#[must_use]
pub fn installed() -> u64 {
    INSTALLED.load(Relaxed)
}

/// Tells whether a handler of this signal is one to be noted.
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

/// The largest of the numbers that are no handlers: `SIG_DFL`, `SIG_IGN` and, for `sigset`,
/// `SIG_HOLD`.
const LAST_SPECIAL: usize = 2;

/// Returns what to install in place of the program's handler, and the handler before.
fn replace(signal: c_int, handler: usize, one_shot: bool) -> (usize, usize) {
    if !is_noted(signal) {
        return (handler, 0);
    }
    let place = &HANDLERS[signal as usize];
    // ord: PRE-4 (acquire): the handler.
    let before = place.load(Acquire);
    if handler <= LAST_SPECIAL || handler == ours() || state::ledger().is_none() {
        return (handler, before);
    }
    // A child on a thread pointer of its own has handlers of its own, and this memory.
    if tls::own().is_none() {
        return (handler, before);
    }
    // ord: PRE-4 (release): the handler.
    place.store(handler, Release);
    let bit = bit(signal as u32);
    if one_shot {
        ONE_SHOT.fetch_or(bit, Relaxed);
    } else {
        ONE_SHOT.fetch_and(!bit, Relaxed);
    }
    INSTALLED.fetch_or(bit, Relaxed);
    (ours(), before)
}

/// Puts the handler before back, because the new one could not be installed.
fn put_back(signal: c_int, before: usize) {
    if is_noted(signal) {
        // ord: PRE-4 (release): the handler.
        HANDLERS[signal as usize].store(before, Release);
        if before == 0 {
            runs_no_more(signal);
        }
    }
}

/// Notes that the signal has no handler of the program's any more.
fn runs_no_more(signal: c_int) {
    // A child by `vfork` has handlers of its own, and this memory.
    let is_ours = |ledger: &Ledger<'_>| ledger.header().pid.load(Relaxed) == sys::getpid();
    if is_noted(signal) && state::ledger().is_some_and(is_ours) {
        INSTALLED.fetch_and(!bit(signal as u32), Relaxed);
    }
}

/// Tells whether this is the default, or to ignore the signal.
fn is_none(handler: usize) -> bool {
    matches!(handler, libc::SIG_DFL | libc::SIG_IGN)
}

/// `struct sigaction`: the part that is read and written here.
#[repr(C)]
#[derive(Clone, Copy)]
struct SignalAction {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

const _: () = assert!(size_of::<SignalAction>() == size_of::<libc::sigaction>());

unsafe extern "C" fn action(
    signal: c_int,
    new: *const SignalAction,
    old: *mut SignalAction,
    _: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS: the program passes null, which is excluded, or an action, which
    // the real function reads too.
    let mut copy = (!new.is_null()).then(|| unsafe { new.read() });
    let wanted = copy.map_or(0, |copy| copy.handler);
    let one_shot = copy.is_some_and(|copy| copy.flags & libc::SA_RESETHAND != 0);
    let (handler, before) = replace(signal, wanted, one_shot);
    let passed = match &mut copy {
        None => new,
        Some(copy) => {
            copy.handler = handler;
            core::ptr::from_ref(copy)
        }
    };
    // SAFETY: INTERPOSE-ARGUMENTS: the program's arguments go to the function that it called, the
    // action with a handler of ours that calls the program's.
    let answer = unsafe { call::sigaction()(signal, passed.cast(), old.cast()) };
    if answer != 0 {
        put_back(signal, before);
        return answer;
    }
    if copy.is_some() && is_none(wanted) {
        runs_no_more(signal);
    }
    if !old.is_null() {
        // SAFETY: INTERPOSE-ARGUMENTS: the program passes room for the old action, which the real
        // function has filled.
        unsafe {
            if (*old).handler == ours() {
                (*old).handler = before;
            }
        }
    }
    answer
}

/// Installs a handler for the functions that take one and return the one before.
fn simple(
    signal: c_int,
    handler: usize,
    one_shot: bool,
    real: unsafe extern "C" fn(c_int, usize) -> usize,
) -> usize {
    let (passed, before) = replace(signal, handler, one_shot);
    // SAFETY: INTERPOSE-ARGUMENTS: the program's arguments go to the function that it called, but
    // for a handler of ours that calls the program's.
    let old = unsafe { real(signal, passed) };
    if old == usize::MAX {
        put_back(signal, before);
    } else if is_none(handler) {
        runs_no_more(signal);
    }
    if old == ours() { before } else { old }
}

/// Exports the functions that take a handler and return the former one; the flag says whether the
/// handler is for one time only.
macro_rules! by {
    ($($name:ident: $real:ident, $one_shot:literal;)*) => { $(
        unsafe extern "C" fn $name(signal: c_int, handler: usize, _: &CallSite) -> usize {
            real::resolve();
            // SAFETY: `resolve` has found the real function, which has the type of this one.
            simple(signal, handler, $one_shot, unsafe { call::$real() })
        }
    )* };
}

by! {
    by_signal: signal, false;
    by_bsd_signal: bsd_signal, false;
    by_ssignal: ssignal, false;
    by_sysv_signal: sysv_signal, true;
    by_sigset: sigset, false;
}

crate::handler_frame! {
    /// Runs in place of all handlers of the program's, with the arguments of the long form, of which
    /// the short one takes the first.
    on_signal => begins, ends
}

/// The handler and what was noted before, in two registers.
#[repr(C)]
struct BegunHandler {
    handler: usize,
    before: usize,
}

/// What was noted is not known: the thread has no record.
const UNNOTED: usize = usize::MAX;

unsafe extern "C" fn begins(signal: c_int) -> BegunHandler {
    // ord: PRE-4 (acquire): the handler.
    let handler = HANDLERS.get(signal as usize).map_or(0, |place| place.load(Acquire));
    let handler = if handler <= LAST_SPECIAL { nothing as *const () as usize } else { handler };
    if ONE_SHOT.load(Relaxed) != 0 && ONE_SHOT.load(Relaxed) & bit(signal as u32) != 0 {
        runs_no_more(signal);
    }
    if tls::own().is_some_and(|words| words.record.load(Relaxed).is_null()) {
        // One that was never seen gets a record.
        drop(me::enter());
    }
    let before = context().map_or(UNNOTED, |context| context.swap(signal as u32, Relaxed) as usize);
    BegunHandler { handler, before }
}

unsafe extern "C" fn nothing() {}

unsafe extern "C" fn ends(before: usize) {
    if before != UNNOTED
        && let Some(context) = context()
    {
        context.store(before as u32, Relaxed);
    }
}

/// Returns the word that names the signal in whose handler the calling thread is; 0: it is in none.
pub(super) fn context() -> Option<&'static AtomicU32> {
    let _ = state::ledger()?;
    let base = tls::own()?.record.load(Relaxed).cast::<ThreadRecord>();
    // SAFETY: STATE-OWN-LEDGER, kept by `state`: the record lies in this process's ledger, which
    // stays mapped.
    (!base.is_null()).then(|| unsafe { &(*base).context })
}

/// Notes that the thread jumps, perhaps out of its handlers.
fn jumps() {
    real::resolve();
    if let Some(context) = context()
        && context.load(Relaxed) != 0
    {
        context.store(0, Relaxed);
    }
}

type Jump = *const core::ffi::c_void;

/// Exports what runs before each function that may lead out of a handler.
macro_rules! leading_out {
    ($($name:ident: $real:ident;)*) => { $(
        unsafe extern "C" fn $name(_: Jump, _: &CallSite) -> usize {
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
}

unsafe extern "C" fn swap_context(_: Jump, to: Jump, site: &CallSite) -> usize {
    jumps();
    // SAFETY: INTERPOSE-ARGUMENTS: the program passes a context that it has made, which the real
    // function reads too.
    stack::swaps(site.stack_pointer(), unsafe { stack_pointer_of(to) });
    REAL.swapcontext.address()
}

/// Returns the stack pointer in a `ucontext_t`; 0 without one.
///
/// # Safety
/// There is one at `context`, unless it is null.
unsafe fn stack_pointer_of(context: Jump) -> u64 {
    let context = context.cast::<libc::ucontext_t>();
    if context.is_null() {
        return 0;
    }
    // SAFETY: the caller promises that a `ucontext_t` lies there unless it is null, which is
    // excluded.
    unsafe { crate::arch::interrupted_stack_pointer(&*context) }
}
