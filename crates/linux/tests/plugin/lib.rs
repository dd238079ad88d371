//! Something that a program loads at run time and that has locks inside: see
//! `unloading.rs`.
#![allow(missing_docs, reason = "for one test, which lies beside")]

use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lockstead_core::RawMutex;
use lockstead_linux::Linux;

static LOCK: RawMutex<Linux> = RawMutex::new();
static USES: AtomicU64 = AtomicU64::new(0);

/// Takes a lock and gives it back. Returns how often that was done since this was loaded.
#[unsafe(no_mangle)]
extern "C" fn plugin_uses_a_lock() -> u64 {
    LOCK.lock(Location::caller()).expect("not held by this thread");
    let uses = USES.load(Relaxed) + 1;
    USES.store(uses, Relaxed);
    // SAFETY: this thread has taken the lock above, and only the holder releases it.
    unsafe { LOCK.unlock() };
    uses
}
