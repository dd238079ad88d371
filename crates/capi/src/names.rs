//! Names of locks for messages, by address, because the locks have no room for them.

use core::ffi::{CStr, c_char, c_void};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static NAMES: Mutex<Option<HashMap<usize, String>>> = Mutex::new(None);

fn names() -> MutexGuard<'static, Option<HashMap<usize, String>>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the lock at an address.
pub(crate) fn name(lock: usize) -> Option<String> {
    names().as_ref()?.get(&lock).cloned()
}

/// Forgets the name of the lock at an address, which is no more.
pub(crate) fn forget(lock: usize) {
    if let Some(names) = names().as_mut() {
        names.remove(&lock);
    }
}

/// Gives the lock at `lock` a name, or takes it away where `name` is null.
///
/// # Safety
/// CAPI-MEMORY holds: `name` is null or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_set_name(lock: *const c_void, name: *const c_char) {
    if name.is_null() {
        return forget(lock.addr());
    }
    // SAFETY: CAPI-MEMORY: `name` is not null, so it is a string; the caller keeps it.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    names().get_or_insert_default().insert(lock.addr(), name);
}
