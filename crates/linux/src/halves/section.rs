//! Where the calling thread tells the kernel of its section, and how it releases without one.
//!
//! # Invariants
//! HALVES-SECTIONS, which [`join`](super::join) keeps.

use core::cell::Cell;
use lockstead_core::{Halves, Ordering};

thread_local! {
    /// The place where the kernel looks for a section, as HALVES-SECTIONS says.
    pub(super) static SECTIONS: Cell<*mut u64> = const { Cell::new(core::ptr::null_mut()) };
}

/// Does as [`Halves::erase_low`], without a section.
#[cold]
#[inline(never)]
pub(super) fn erase_locked(word: &impl Halves) -> bool {
    // Not a look first: on Intel's processors a load just behind the locked instruction of
    // the acquisition costs more than this one.
    word.compare_exchange_low(crate::me::me_or_zero(), 0, Ordering::Release)
}

/// Leaves the section of [`Halves::erase_low`] by its other exit.
#[cold]
#[inline(never)]
pub(super) fn leave() {
    let sections = SECTIONS.get();
    // SAFETY: HALVES-SECTIONS, kept by `join`: the word is the calling thread's.
    unsafe { sections.write_volatile(0) };
}
