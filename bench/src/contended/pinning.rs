//! Where and how exactly a measuring thread runs.

use std::mem::{size_of, zeroed};

/// Returns the processors that this thread may run on, ascending; none if the kernel does not say.
fn processors() -> Vec<usize> {
    // SAFETY: all zeroes is an empty set, which the kernel fills.
    let (set, code) = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        let code = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        (set, code)
    };
    if code != 0 {
        return Vec::new();
    }
    let most = libc::CPU_SETSIZE as usize;
    // SAFETY: the number is below the size of the set, which was filled in above.
    (0..most).filter(|&processor| unsafe { libc::CPU_ISSET(processor, &set) }).collect()
}

/// Pins the calling thread to one of its processors, the next for each `index`. Where the
/// kernel does not allow it the thread stays as it is.
pub(crate) fn pin(index: usize) {
    let processors = processors();
    let Some(&mine) = processors.get(index % processors.len().max(1)) else { return };
    // SAFETY: the number comes from such a set; the kernel reads the local variable.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(mine, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Has the calling thread sleep no longer than it says: by default the kernel adds some 50 µs to
/// save timers.
pub(crate) fn sleep_exactly() {
    // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_pinned_to_processors_in_turn() {
        let all = processors();
        assert!(!all.is_empty());
        for index in 0..all.len() + 1 {
            let mine = std::thread::spawn(move || {
                pin(index);
                processors()
            });
            assert_eq!(mine.join().expect("no panic"), [all[index % all.len()]]);
        }
        assert_eq!(processors(), all, "the others stay as they were");
    }
}
