//! Memory of the library's own that a forked child finds empty.
//!
//! # Role
//! `MADV_WIPEONFORK` is of whole pages, of a size that only the kernel knows: 4 KiB on x86-64, and 4, 16 or 64
//! on aarch64. What is to be emptied therefore stands between two [`Padding`]s, so that the pages in which it
//! lies hold nothing else, wherever the loader has put it. It would not do to align it to the largest page:
//! glibc before 2.35 aligns a library to the kernel's pages only, whatever its file asks for.
//!
//! # Invariant
//! **WIPED-ALONE** What is given to [`advise`] lies in whole steps of [`STEP`], or in such that hold nothing but
//! it and its paddings.

use crate::sys;

/// A multiple of the kernel's page, whichever that is.
pub const STEP: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { LEAST };
/// The least page of a kernel, to which the memory is aligned.
const LEAST: usize = 4096;

/// The bytes before and after what is to be emptied. Nobody writes to them.
pub type Padding = [u8; STEP - LEAST];

/// A padding, which stays zero for ever.
pub const PADDING: Padding = [0; STEP - LEAST];

/// Gives the kernel this advice on the pages in which `bytes` from `place` lie. Tells whether it took it.
///
/// # Safety
/// They are a static of the library's, in memory that is zero at first, with a [`Padding`] in front and
/// one behind (WIPED-ALONE), and may become what the advice makes of them.
#[must_use]
pub unsafe fn advise(place: usize, bytes: usize, advice: libc::c_int) -> bool {
    let (from, to) = steps(STEP, place, bytes);
    // SAFETY: the caller promises it of the place, and of the steps around it there are its paddings.
    let asked =
        unsafe { sys::call(libc::SYS_madvise, [from, to - from, advice as usize, 0, 0, 0]) };
    asked.is_ok()
}

/// Returns where the steps of this size begin and end in which these bytes lie.
const fn steps(step: usize, place: usize, bytes: usize) -> (usize, usize) {
    (place / step * step, (place + bytes).next_multiple_of(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_reach_no_further_than_the_paddings() {
        assert_eq!(size_of::<Padding>(), STEP - LEAST);
        // That of the other processor, too.
        for step in [LEAST, 64 << 10] {
            let padding = step - LEAST;
            for place in (0..4 * step).step_by(LEAST).map(|at| at + (1 << 30)) {
                for bytes in [LEAST, 2 * LEAST, step, 3 * step] {
                    let (from, to) = steps(step, place, bytes);
                    assert!(from <= place && place + bytes <= to);
                    assert!(place - from <= padding && to - (place + bytes) <= padding);
                    assert_eq!((from % step, to % step), (0, 0));
                }
            }
        }
    }
}
