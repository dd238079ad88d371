//! Lets threads join at their first lock operation and leave when they end.
//!
//! # Role
//! Behind [`Platform::me`](lockstead_core::Platform::me). A thread's slot is
//! one thread-local word without a destructor, so that the fast paths read it
//! by one instruction; the clean-up hangs on a `pthread` key.
//!
//! # Protocol
//! Joining, with signals held off (a handler that takes a lock in the middle
//! of its own thread's joining would join a second time): (1) the process has
//! a key and a fork handler, (2) take a slot, (3) set the key, (4) set the
//! thread-local word.
//!
//! Leaving: the key's destructor runs after all thread-local destructors of
//! Rust and C++. Destructors of other keys may run after ours and take locks;
//! their thread then joins again, unattended: its slot is taken back when
//! others need one and the kernel no longer knows the thread.
//!
//! Fork: in the child the calling thread keeps its slot and with it the locks
//! it holds; all other slots are marked lost, so that waiting for a lock one
//! of them holds is an error and not a hang.
//!
//! # Limits
//! - A child made by the bare system call or `_Fork`, which run no handlers,
//!   takes the lost threads for living ones.
//! - A thread that ends while it holds a lock leaves it locked for good; a
//!   thread that gets the same slot later is taken for its owner. Not if it
//!   is a wait/wound mutex: then the slot goes to nobody, and waiting for the
//!   lock is an error, as after a fork.
//! - A thread whose first lock operation ever happens in the last of the
//!   libc's four rounds of key destructors, after ours, keeps its slot.
//! - The libc allocates once for the fork handler, and for each thread if 32
//!   other keys exist already. [`prepare`] gets both out of the way early.

use crate::me::{self, me_or_zero};
use crate::sys::{self, KeepErrno, NoSignals};
use crate::{oncpu, owner, pi, processors, table};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, Ordering::Relaxed, fence};
use lockstead_core::Slot;

// Atomics, because signal handlers of the same thread read and write them too.
thread_local! {
    /// Whether the key's destructor has run: it may not run again.
    static LEFT: AtomicBool = const { AtomicBool::new(false) };
    /// Lock sleeps that this thread is in: more than one when a signal
    /// handler that interrupted a sleep sleeps for another lock.
    static SLEEPS: AtomicU32 = const { AtomicU32::new(0) };
}

/// The key plus one; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);
/// The function that [`at_leaving`] was given, as a data pointer; null: none.
static AT_LEAVING: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static FORK_HANDLED: AtomicBool = AtomicBool::new(false);
/// The number of sleepers of the process: the sum of all `SLEEPS`.
static SLEEPERS: AtomicU32 = AtomicU32::new(0);

/// Makes the calling thread a participant.
#[cold]
#[inline(never)]
pub(crate) fn join() -> Slot {
    let _errno = KeepErrno::new();
    let _signals = NoSignals::new();
    // A handler may have joined before signals were held off.
    if let Some(slot) = Slot::new(me_or_zero()) {
        return slot;
    }
    prepare();
    let attended = !LEFT.with(|left| left.load(Relaxed)) && attend();
    let slot = table::claim(sys::gettid(), attended);
    owner::introduce(slot);
    crate::halves::join();
    crate::slice::join();
    // ord: JOIN-1 fence, pairs with HALF-2 and GONE-1: whoever cannot have this thread pass a fence
    // knows of it, or of the section in which it will release.
    fence(Ordering::SeqCst);
    me::set(slot.get());
    slot
}

/// Sees to it that [`leave`] runs at the end of the thread. Returns false if nothing will.
fn attend() -> bool {
    let Some(key) = KEY.load(Relaxed).checked_sub(1) else { return false };
    // Any value but null makes the libc call the destructor.
    let value = core::ptr::without_provenance::<c_void>(1);
    // SAFETY: `create_key` has created the key, and nobody deletes a key that `KEY` names.
    unsafe { libc::pthread_setspecific(key, value) == 0 }
}

extern "C" fn leave(_value: *mut c_void) {
    let _signals = NoSignals::new();
    LEFT.with(|left| left.store(true, Relaxed));
    // Not zero if the thread was cancelled, or left a handler, in a sleep.
    take_off(&SLEEPERS, SLEEPS.with(|sleeps| sleeps.swap(0, Relaxed)));
    if let Some(slot) = Slot::new(me::forget()) {
        let told = AT_LEAVING.load(Relaxed);
        if !told.is_null() {
            // SAFETY: not null, and `at_leaving`, the only writer, stores functions of this type.
            let forget = unsafe { core::mem::transmute::<*mut (), fn()>(told) };
            forget();
        }
        table::vacate(slot);
    }
}

/// Has `forget` called by each thread that gives its slot up, before another thread
/// can get it: for callers that keep a copy of the slot in a thread-local word of
/// their own, as fast paths in other languages do. It must neither lock nor
/// allocate. One such function in a process; the last one counts.
pub fn at_leaving(forget: fn()) {
    AT_LEAVING.store(forget as *mut (), Relaxed);
}

/// Counts the calling thread as a sleeper. Returns how many there are then.
///
/// A handler may leave the sleep by a jump between the two counts, here or in [`end_sleep`]. Both have the
/// thread count itself longer than the process does. So at its end the thread takes off one sleep too many,
/// which is made up for as soon as nobody sleeps, since the count stops at zero. The other order would
/// leave a sleeper in the count that nobody takes off.
pub(crate) fn begin_sleep() -> u32 {
    SLEEPS.with(|sleeps| sleeps.store(sleeps.load(Relaxed) + 1, Relaxed));
    processors::refresh();
    SLEEPERS.fetch_add(1, Relaxed) + 1
}

/// Takes the calling thread's latest sleep out of the count.
pub(crate) fn end_sleep() {
    take_off(&SLEEPERS, 1);
    SLEEPS.with(|sleeps| sleeps.store(sleeps.load(Relaxed) - 1, Relaxed));
}

/// Makes a count smaller, down to zero.
fn take_off(count: &AtomicU32, number: u32) {
    let fewer = |count: u32| Some(count.saturating_sub(number));
    // The function always has a new value, so this does not fail.
    let _ = count.fetch_update(Relaxed, Relaxed, fewer);
}

/// Set before each fork, and cleared by the first handler that runs in the child: threads that join
/// at the same moment register the handlers more than once.
static FORKS: AtomicBool = AtomicBool::new(false);

extern "C" fn before_fork() {
    FORKS.store(true, Relaxed);
}

extern "C" fn after_fork_in_child() {
    if !FORKS.swap(false, Relaxed) {
        return;
    }
    let _errno = KeepErrno::new();
    // Nobody sleeps: if a handler has interrupted a sleep, it forks now. That sleep takes itself off once more
    // when it ends, which leaves the count at zero; to count it here would leave one too many where the
    // handler has come between the sleep's two counts.
    SLEEPERS.store(0, Relaxed);
    let me = Slot::new(me_or_zero());
    table::keep_only(me, sys::gettid());
    me.into_iter().for_each(owner::introduce);
    pi::identity::after_fork_in_child();
}

/// Does now what the first lock operation that waits would do: asks for a
/// thread key and a fork handler, and counts the processors.
///
/// Calling it is optional, repeating it does nothing. A library that stands
/// under the program's allocator calls it when it is loaded, for the libc
/// allocates the fork handler; a program that enters a system call filter
/// calls it before, for counting processors opens files in `/proc` and `/sys`, and
/// looking for the table asks for one in `/run`.
pub fn prepare() {
    crate::stay();
    if KEY.load(Relaxed) == 0 {
        create_key();
    }
    if !FORK_HANDLED.load(Relaxed) {
        // A racing thread may register them a second time: FORKS has them do their work once.
        // SAFETY: the handlers are functions of this library, which `stay` keeps loaded.
        let refused =
            unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork_in_child)) };
        // Out of memory: tried again by the next thread that joins.
        FORK_HANDLED.store(refused == 0, Relaxed);
    }
    processors::count();
    oncpu::find();
}

fn create_key() {
    let mut key = 0;
    // SAFETY: `key` lives on this stack; the destructor is a function of this library, which
    // `stay` keeps loaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(leave)) } != 0 {
        // All keys are taken: threads stay unattended.
        return;
    }
    if KEY.compare_exchange(0, key + 1, Relaxed, Relaxed).is_err() {
        // SAFETY: created above, and no other thread knows the key.
        unsafe { libc::pthread_key_delete(key) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pi::PiWord;

    #[test]
    fn who_left_a_sleep_between_its_two_counts_takes_no_more_than_there_is() {
        prepare();
        // SAFETY: the child makes no call that is not safe after a fork, and ends without returning.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // No other thread is in the child, and nobody sleeps: `after_fork_in_child` says so. Nothing may
            // panic here, which would end the child well.
            let leaves = || {
                leave(core::ptr::null_mut());
                SLEEPERS.load(Relaxed) == 0
            };
            SLEEPS.with(|sleeps| sleeps.store(1, Relaxed));
            let begins = leaves() && begin_sleep() == 1;
            // What `end_sleep` does first.
            take_off(&SLEEPERS, 1);
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!(begins && leaves()))) };
        }
        let mut status = 0;
        // SAFETY: `status` is a word of this frame.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
    }

    /// Where the thread of a child stops, and what happens there.
    #[cfg(target_arch = "x86_64")]
    mod stepped {
        use super::*;

        /// What a handler does between two instructions of a thread.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub(super) enum There {
            /// It leaves by a jump, and the thread ends.
            Jumps,
            /// It forks, and returns in the child.
            Forks,
        }

        /// What a child says of a thread that has not so many instructions.
        const TOO_FEW: i32 = 2;
        /// The flag of the processor that has it trap after each instruction.
        const TRAP: i64 = 1 << 8;

        /// The instructions until the thread stops, for each of what may happen there; `u32::MAX`: it
        /// does not.
        static LEFT_TO_GO: AtomicU32 = AtomicU32::new(u32::MAX);
        static FORKS_THERE: AtomicBool = AtomicBool::new(false);

        extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, registers: *mut c_void) {
            let left = LEFT_TO_GO.load(Relaxed);
            LEFT_TO_GO.store(left.wrapping_sub(1), Relaxed);
            if left > 0 {
                return;
            }
            if !FORKS_THERE.load(Relaxed) {
                // The thread does not return to the sleep: it ends, as if a jump had led there.
                leave(core::ptr::null_mut());
                // SAFETY: ends the process without running anything of the parent's.
                unsafe { libc::_exit(i32::from(SLEEPERS.load(Relaxed) != 0)) };
            }
            before_fork();
            after_fork_in_child();
            // SAFETY: the kernel gives a handler the registers of what it has interrupted.
            let registers = unsafe { &mut *registers.cast::<libc::ucontext_t>() };
            registers.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
        }

        /// Counts a sleep of the calling thread, and takes it off, with a handler after so many
        /// instructions. Returns 0 if nobody is left in the counts, 1 if somebody is, or [`TOO_FEW`].
        fn counts(step: u32, there: There) -> i32 {
            LEFT_TO_GO.store(step, Relaxed);
            FORKS_THERE.store(there == There::Forks, Relaxed);
            // SAFETY: a zeroed action is valid, and the handler is of the type that the flag says.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = trapped as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO;
                libc::sigaction(libc::SIGTRAP, &raw const action, core::ptr::null_mut());
            }
            // Or the count would be taken by a system call and a walk over a mask, thousands of instructions.
            processors::refresh();
            // SAFETY: the flag has the kernel send a signal after each instruction, for which there is
            // a handler.
            unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
            begin_sleep();
            end_sleep();
            // SAFETY: clears the flag, or leaves it clear.
            unsafe { core::arch::asm!("pushfq", "and dword ptr [rsp], 0xfffffeff", "popfq") };
            if LEFT_TO_GO.load(Relaxed) != u32::MAX {
                return TOO_FEW;
            }
            let own = SLEEPS.with(|sleeps| sleeps.load(Relaxed));
            i32::from((SLEEPERS.load(Relaxed), own) != (0, 0))
        }

        /// Does that in a child after each number of instructions, and checks that nobody is left.
        pub(super) fn nobody_is_left(there: There) {
            prepare();
            for step in 0.. {
                // SAFETY: the child makes no call that is not safe after a fork, and ends without
                // returning.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: ends the process without running anything of the parent's.
                    unsafe { libc::_exit(counts(step, there)) };
                }
                let mut status = 0;
                // SAFETY: `status` is a word of this frame.
                let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert!(waited == child && libc::WIFEXITED(status), "{there:?}, {step}: {status}");
                match libc::WEXITSTATUS(status) {
                    0 => {}
                    TOO_FEW => {
                        assert!(step > 10, "so short is no count: {step} instructions");
                        return;
                    }
                    _ => panic!("{there:?} after {step} instructions leaves a sleeper"),
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn who_leaves_a_sleep_anywhere_in_its_counts_is_not_counted_for_ever() {
        stepped::nobody_is_left(stepped::There::Jumps);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn who_forks_anywhere_in_the_counts_of_a_sleep_is_counted_right_in_the_child() {
        stepped::nobody_is_left(stepped::There::Forks);
    }

    #[test]
    fn a_fork_handler_that_is_registered_twice_does_its_work_once() {
        let word = PiWord::new();
        prepare();
        assert!(word.lock_fast() || word.try_lock_slow());
        // SAFETY: the child makes no call that is not safe after a fork, and ends without returning.
        let child = unsafe { libc::fork() };
        if child == 0 {
            after_fork_in_child();
            // SAFETY: it ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!word.is_mine())) };
        }
        let mut status = 0;
        // SAFETY: the kernel writes how the child ended to a variable on this stack.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child does not know what it holds");
        // SAFETY: this thread has taken the lock above.
        unsafe { word.unlock() };
    }
}
