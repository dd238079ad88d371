//! One thread, stopped between two instructions of its own by the processor's trap flag. A handler
//! of its thread runs there.
//!
//! A section that the kernel restarts (`rseq`) is ended by the first step in it: a stepped thread
//! releases the other way.

use std::arch::asm;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;

/// What a thread that is stepped through has before it.
pub(crate) struct Stepped<'a> {
    /// Steps until it stops.
    left: u64,
    /// What happens there. It gets the registers, in which the trap flag is clear by now.
    there: &'a mut dyn FnMut(&mut libc::ucontext_t),
}

thread_local! {
    static NOW: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

/// The flag of the processor that has it trap after each instruction.
const TRAP: u64 = 1 << 8;

extern "C" fn trapped(_number: libc::c_int, _about: *mut libc::siginfo_t, registers: *mut c_void) {
    // SAFETY: the thread steps, so that its `NOW` is what `stop_at` keeps on its stack meanwhile;
    // the kernel gives a handler the registers of what it has interrupted.
    let (now, registers) = unsafe {
        (&mut *NOW.get().cast::<Stepped<'_>>(), &mut *registers.cast::<libc::ucontext_t>())
    };
    if now.left > 0 {
        now.left -= 1;
        return;
    }
    registers.uc_mcontext.gregs[libc::REG_EFL as usize] &= !(TRAP as i64);
    (now.there)(registers);
}

/// Has the calling thread run `body`, and `there` after the given number of its instructions.
/// Returns false if it has not so many. Signals of traps must not be held off in `body`.
#[inline(never)]
pub(crate) fn stop_at(
    step: u64,
    there: &mut dyn FnMut(&mut libc::ucontext_t),
    body: impl FnOnce(),
) -> bool {
    let mut reached = false;
    let mut there = |registers: &mut libc::ucontext_t| {
        reached = true;
        there(registers);
    };
    let mut now = Stepped { left: step, there: &mut there };
    // SAFETY: a zeroed action is valid, and the handler is of the type that the flag says.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, null_mut()), 0);
    }
    NOW.set((&raw mut now).cast());
    // SAFETY: the flag has the kernel send a signal after each instruction, for which there is a
    // handler.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    body();
    // SAFETY: clears the flag, or leaves it clear.
    unsafe { asm!("pushfq", "and dword ptr [rsp], 0xfffffeff", "popfq") };
    NOW.set(null_mut());
    reached
}
