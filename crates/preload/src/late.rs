//! What is known of a thread that was there before the library, or was created past it.

use crate::{real, sys};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the library came when the process ran already.
static LATE: AtomicBool = AtomicBool::new(false);

/// Notes that the library comes into a process that runs already. Returns whether it had come before.
pub fn comes() -> bool {
    LATE.swap(true, Relaxed)
}

/// Tells whether the library came when the process ran already.
#[must_use]
pub fn is_late() -> bool {
    LATE.load(Relaxed)
}

/// Returns the calling thread's stack, as far as it is certain: its lowest address and its end.
#[must_use]
pub fn stack() -> Option<(usize, usize)> {
    // SAFETY: a ledger is made only after the real functions were resolved, and only a thread that
    // looks for its record comes here.
    let high = unsafe { real::call::pthread_self()() } as usize;
    Some((certain(&raw const high as usize, high)?, high))
}

const PAGE: usize = 4096;
/// The most pages above the stack pointer that are looked at.
const ABOVE: usize = 1024;
/// The most pages below it.
const BELOW: usize = 64;

/// Returns the lowest address from which all is readable up to `high`, where a thread's descriptor
/// lies and with it the end of its stack; not far below `here`, a place on that. `None` if what lies
/// between is no one stack: the thread may run on one of the program's own making.
fn certain(here: usize, high: usize) -> Option<usize> {
    let page = here & !(PAGE - 1);
    let above = high.checked_sub(page)?.div_ceil(PAGE);
    let readable = |at: usize| sys::is_readable(at as u64);
    if above > ABOVE || !(0..above).all(|index| readable(page + index * PAGE)) {
        return None;
    }
    let below = (1..=BELOW).take_while(|index| readable(page - index * PAGE)).count();
    Some(page - below * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_known_as_far_as_it_can_be_read() {
        std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(|| {
                let here = 0_u64;
                let here = &raw const here as usize;
                // SAFETY: asks for the calling thread's own handle.
                let high = unsafe { libc::pthread_self() } as usize;
                let low = certain(here, high).expect("a stack");
                assert!(low <= here && here - low <= (BELOW + 1) * PAGE);
                assert!((low..high).step_by(PAGE).all(|at| sys::is_readable(at as u64)));
                // Another thread's stack has a guard between.
                let elsewhere = std::thread::spawn(move || certain(here, high));
                assert!(elsewhere.join().expect("it ends").is_some(), "it can be read");
                assert_eq!(certain(high, here), None, "upside down");
                assert_eq!(certain(PAGE, 8 * PAGE), None, "nothing is there");
            })
            .expect("a thread")
            .join()
            .expect("it holds");
    }
}
