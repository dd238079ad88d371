//! The reason for which the latest call about a segment failed, in words.

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use core::fmt::Display;
use std::ffi::CString;

thread_local! {
    static REASON: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// The reason of a thread of which no call failed.
const NONE: &CStr = c"";

/// Remembers for the calling thread why its call fails.
#[cold]
pub(super) fn remember(why: &dyn Display) {
    let text = CString::new(why.to_string().replace('\0', " ")).ok();
    // A thread that is about to end remembers nothing.
    let _ = REASON.try_with(|reason| {
        // Not while a signal handler's caller is at it.
        if let Ok(mut reason) = reason.try_borrow_mut() {
            *reason = text;
        }
    });
}

/// Returns why this thread's latest call about a segment failed that did.
#[unsafe(no_mangle)]
extern "C" fn lks_shm_reason() -> *const c_char {
    let told = REASON.try_with(|reason| {
        let reason = reason.try_borrow().ok()?;
        Some(reason.as_ref()?.as_ptr())
    });
    told.ok().flatten().unwrap_or(NONE.as_ptr())
}
