//! Changes the low half of the mutex's word in the processor's fewest cycles.
//!
//! # Role
//! [`Halves`] of [`U64`] on x86-64, and
//! [`Platform::restart_releases`](lockstead_core::Platform::restart_releases).
//!
//! # The acquisition
//! One `lock cmpxchg` of 32 bits. While the process has one thread, without the `lock`:
//! an instruction is one step for the signal handlers of its own thread in any case.
//! Whether it has one is what the libc says (`__libc_single_threaded`), as for its own
//! locks; a thread made by the bare system call is not counted.
//!
//! # The release
//! A comparison and a plain store in a restartable section (`rseq`): if a signal, a
//! preemption or a `membarrier` comes between the two, the kernel sends the thread to
//! the section's exit, and it releases by a locked instruction instead. Half the time
//! of the pair is saved; whoever sets a flag in the low half pays, by a `membarrier`
//! before it sleeps. The halves must be used in one size: a locked 64-bit instruction
//! just behind a 32-bit store waits for the store to arrive (a pair that mixes them
//! takes 1.6 times as long on AMD's Zen).
//!
//! A thread releases so if the libc registered it for `rseq`, and the process could be
//! registered for the `membarrier`; else by `lock cmpxchg`. Which of the two it is, is
//! settled when the thread joins; both may be used beside each other.
//!
//! # Invariants
//! - **HALVES-SECTIONS** [`SECTIONS`] is null, or the address of the word of the calling thread's
//!   registered area in which the kernel looks for a section; it stays registered until
//!   the thread ends.
//! - **HALVES-REGISTERED** A thread has `SECTIONS` ⇒ the process was registered for the
//!   `membarrier`.
//!
//! - **HALVES-REFUSED** A thread to which the `membarrier` is refused sleeps by a timer, if any
//!   release may miss it. It sets a flag in the word by a locked instruction, then reads
//!   [`USED`]. A thread that gets `SECTIONS` sets `USED`, and acquires by a locked instruction
//!   before its first release. So the one sees `USED`, or the other's release sees the flag.
//!
//! # Limits
//! The child of `vfork` shares the memory of its parent, but not the registration: what
//! it releases is not restarted, and a waiter in the parent may sleep for ever. (Such a
//! child may do nothing but start a program.) A debugger that steps through a section
//! ends it at each step; the release goes the other way then.
//!
//! # Source
//! Restartable sequences: Bershad, Redell, Ellis, "Fast mutual exclusion for
//! uniprocessors" (1992); the asymmetric fence in the place of the waker's is
//! Desnoyers' `membarrier`. The use for a mutex's release is ours.

use crate::atomics::U64;
use crate::membarrier::membarrier;
use core::arch::asm;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering::Relaxed};
use lockstead_core::{Halves, Ordering};

thread_local! {
    /// The place where the kernel looks for a section, as HALVES-SECTIONS says.
    static SECTIONS: Cell<*mut u64> = const { Cell::new(core::ptr::null_mut()) };
}

/// Says "more than one thread", where the libc says nothing.
static MANY: AtomicU8 = AtomicU8::new(0);
/// The place where the libc says whether the process has one thread.
static SINGLE: AtomicPtr<u8> = AtomicPtr::new((&raw const MANY).cast_mut().cast());
/// Whether a thread has ever had [`SECTIONS`], so that releases need to be restarted.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether a `membarrier` was refused to a thread although threads release in sections.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Returns the word of the calling thread's area that the fast paths of other languages store
/// their section's descriptor in; null: they release by a locked instruction.
#[must_use]
pub fn sections() -> *mut u64 {
    SECTIONS.get()
}

/// Settles how the calling thread, which joins, takes and releases.
pub(crate) fn join() {
    crate::membarrier::register_at_start();
    if let Some(single) = libc_says() {
        SINGLE.store(single.cast_mut(), Relaxed);
    }
    if let Some(word) = crate::rseq::sections()
        && !REFUSED.load(Relaxed)
        && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ)
    {
        USED.store(true, Relaxed);
        SECTIONS.set(word.as_ptr());
    }
}

/// Restarts the releases that other threads are in the middle of: see
/// [`Platform::restart_releases`](lockstead_core::Platform::restart_releases).
pub(crate) fn restart() {
    // A child is registered as its parent was; but nothing promises that.
    let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
        || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ)
            && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
    // Not only if the caller has sections: a filter may refuse the call to this thread alone.
    if !done && USED.load(Relaxed) {
        REFUSED.store(true, Relaxed);
    }
}

/// Tells whether threads may release in ways that cannot be restarted by all, since the process or
/// one of its threads has forbidden itself the call: then no sleeper may rely on being woken.
pub(crate) fn unreliable() -> bool {
    REFUSED.load(Relaxed)
}

/// Returns the place where the libc says whether the process has one thread.
pub(crate) fn libc_says() -> Option<*const u8> {
    let single: *const u8;
    // SAFETY: the instruction reads an entry of the global offset table, which the linker has
    // made; it is null in a libc that has no such symbol.
    unsafe {
        asm!(
            ".weak __libc_single_threaded",
            "mov {}, qword ptr [rip + __libc_single_threaded@GOTPCREL]",
            out(reg) single,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    (!single.is_null()).then_some(single)
}

impl Halves for U64 {
    #[inline(always)]
    fn compare_exchange_low(&self, current: u32, new: u32, _order: Ordering) -> bool {
        // SAFETY: the address is that of a live atomic, of which the instruction
        // touches the low half. To the language this is an atomic read-modify-write of
        // all 64 bits that happens to leave the high ones alone; which no other access
        // can tell, for locked instructions are totally ordered on x86-64 whatever
        // their size. Without the prefix: no other thread exists. That is said by
        // `MANY`, or by the libc's variable, which lives as long as the process, and
        // which the libc writes before the second thread exists.
        unsafe {
            asm!(
                "cmp byte ptr [{single}], 0",
                "jne 3f",
                "lock cmpxchg dword ptr [{word}], {new:e}",
                "2: jne {other}",
                ".pushsection .text.lks_restart, \"ax?\"",
                "3: cmpxchg dword ptr [{word}], {new:e}",
                "jmp 2b",
                ".popsection",
                single = in(reg) SINGLE.load(Relaxed),
                word = in(reg) self.low_half(),
                new = in(reg) new,
                inout("eax") current => _,
                other = label { return false },
                options(nostack),
            );
        }
        true
    }

    #[inline(always)]
    fn erase_low(&self, most: u32, _order: Ordering) -> bool {
        let sections = SECTIONS.get();
        if sections.is_null() {
            return self.erase_locked();
        }
        // SAFETY: `sections` is as HALVES-SECTIONS says, which `join` keeps. The comparison
        // and the store are of the low half of a live atomic (as in `compare_exchange_low`);
        // a store is a release on x86-64. The section is as the
        // kernel wants it: its descriptor is stored last before it begins, the store to
        // the lock is its last instruction, the exit lies outside with the signature
        // before it. The descriptor's address does not outlive this code, which could
        // be unloaded.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw?\"",
                ".balign 32",
                "2: .long 0, 0",
                ".quad 3f, 4f - 3f, 5f",
                ".popsection",
                "lea {scratch}, [rip + 2b]",
                "mov qword ptr [{sections}], {scratch}",
                "3:",
                "cmp dword ptr [{word}], {most:e}",
                "ja {other}",
                "mov dword ptr [{word}], 0",
                "4:",
                "mov qword ptr [{sections}], 0",
                ".pushsection .text.lks_restart, \"ax?\"",
                // The signature that every libc registers its threads with.
                ".long 0x53053053",
                "5: jmp {other}",
                ".popsection",
                sections = in(reg) sections,
                word = in(reg) self.low_half(),
                most = in(reg) most,
                scratch = out(reg) _,
                other = label {
                    Self::leave_section();
                    return false;
                },
                options(nostack),
            );
        }
        true
    }
}

impl U64 {
    /// Does as [`Halves::erase_low`], without a section.
    #[cold]
    #[inline(never)]
    fn erase_locked(&self) -> bool {
        // Not a look first: a load just behind the locked instruction of the
        // acquisition costs more than this one (on Intel's processors).
        self.compare_exchange_low(crate::me::me_or_zero(), 0, Ordering::Release)
    }

    /// Leaves the section of [`Halves::erase_low`] by its other exit.
    #[cold]
    #[inline(never)]
    fn leave_section() {
        let sections = SECTIONS.get();
        // SAFETY: HALVES-SECTIONS, kept by `join`: the word is the calling thread's.
        unsafe { sections.write_volatile(0) };
    }
}
