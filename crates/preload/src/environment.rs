//! Reads the environment as the kernel laid it out, before libc has looked at it.

use core::ffi::{CStr, c_char};
use lockstead_ledger::hello;

/// Returns the value of the variable `name`.
///
/// # Safety
/// `envp` is an environment: pointers to zero-terminated strings, the last one
/// null, that stay as they are as long as the value is used.
pub unsafe fn find<'a>(envp: *const *mut c_char, name: &[u8]) -> Option<&'a [u8]> {
    for i in 0.. {
        // SAFETY: the caller promises a vector of strings that ends with a null pointer, where
        // the loop ends.
        let entry = unsafe {
            let entry = *envp.add(i);
            if entry.is_null() {
                return None;
            }
            CStr::from_ptr(entry).to_bytes()
        };
        if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
    }
    None
}

/// Takes out what the command has put in, so that the programs that this one
/// starts find the environment that it would have had without.
///
/// # Safety
/// As for [`find`], and nobody else looks at the environment meanwhile.
pub unsafe fn forget(envp: *mut *mut c_char) {
    let mut kept = 0;
    for i in 0.. {
        // SAFETY: the caller promises a vector that ends with a null pointer, where the loop
        // ends; `kept` is at most `i`.
        unsafe {
            let entry = *envp.add(i);
            *envp.add(kept) = entry;
            if entry.is_null() {
                return;
            }
            let text = CStr::from_ptr(entry).to_bytes();
            let ours = text.strip_prefix(hello::VARIABLE.as_bytes());
            let keep = if ours.is_some_and(|rest| rest.starts_with(b"=")) {
                false
            } else if let Some(list) = text.strip_prefix(b"LD_PRELOAD=") {
                without_first(entry, list.len())
            } else {
                true
            };
            kept += usize::from(keep);
        }
    }
}

/// Removes the first of the libraries in `entry`, an `LD_PRELOAD` whose value
/// is `length` bytes long; the command has put ours in front. Says whether
/// there are others.
///
/// # Safety
/// The string is zero-terminated, writable and nobody else's.
unsafe fn without_first(entry: *mut c_char, length: usize) -> bool {
    const NAME: usize = b"LD_PRELOAD=".len();
    // SAFETY: the entry is a string of the caller's: the value lies in it, and its zero.
    let value =
        unsafe { core::slice::from_raw_parts_mut(entry.add(NAME).cast::<u8>(), length + 1) };
    let Some(end) = value.iter().position(|byte| matches!(byte, b':' | b' ')) else {
        return false;
    };
    value.copy_within(end + 1.., 0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn with_environment<R>(entries: &[&str], run: impl FnOnce(*mut *mut c_char) -> R) -> R {
        let mut strings: Vec<Vec<u8>> =
            entries.iter().map(|entry| entry.bytes().chain([0]).collect()).collect();
        let mut vector: Vec<*mut c_char> = strings
            .iter_mut()
            .map(|string| string.as_mut_ptr().cast())
            .chain([core::ptr::null_mut()])
            .collect();
        run(vector.as_mut_ptr())
    }

    fn forgotten(entries: &[&str]) -> Vec<Vec<u8>> {
        with_environment(entries, |envp| {
            // SAFETY: `with_environment` passes a vector of strings that ends with null.
            unsafe {
                forget(envp);
                (0..)
                    .map(|i| *envp.add(i))
                    .take_while(|entry| !entry.is_null())
                    .map(|entry| CStr::from_ptr(entry).to_bytes().to_vec())
                    .collect()
            }
        })
    }

    #[test]
    fn values_are_found_by_whole_names() {
        with_environment(&["LOCKSTEAD_RUNS=1", "LOCKSTEAD_RUN=2", "X=3"], |envp| {
            // SAFETY: `with_environment` passes a vector of strings that ends with null.
            unsafe {
                assert_eq!(find(envp, b"LOCKSTEAD_RUN"), Some(&b"2"[..]));
                assert_eq!(find(envp, b"X"), Some(&b"3"[..]));
                assert_eq!(find(envp, b"Y"), None);
            }
        });
    }

    #[test]
    fn what_was_put_in_is_taken_out() {
        assert_eq!(forgotten(&["A=1", "LOCKSTEAD_RUN=t;", "LD_PRELOAD=/x/l.so"]), [b"A=1"]);
        assert_eq!(
            forgotten(&["LD_PRELOAD=/x/l.so:/y/m.so n.so", "LOCKSTEAD_RUNS=1"]),
            [&b"LD_PRELOAD=/y/m.so n.so"[..], b"LOCKSTEAD_RUNS=1"]
        );
        assert_eq!(forgotten(&[]), Vec::<Vec<u8>>::new());
    }
}
