//! Ends the records of threads that end.

use crate::me::Me;
use crate::state::{self, STATE};
use crate::tls::{self, ThreadStage};
use crate::{key, rules, taken};
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::thread::ThreadPart;

/// How often glibc runs the destructors of keys that are set again
/// (`PTHREAD_DESTRUCTOR_ITERATIONS`); ours acts in the last round, so that
/// other destructors' locks are recorded.
const DESTRUCTOR_ROUNDS: usize = 4;

/// Ends the record of the calling thread, in the last round of its destructors.
///
/// # Safety
/// Called by the destructor of our key, with the value that the key had.
pub unsafe extern "C" fn key_destructor(value: *mut c_void) {
    let Some(words) = tls::own() else { return };
    if value.cast() != words.record.load(Relaxed) {
        return;
    }
    let round = words.rounds.fetch_add(1, Relaxed) + 1;
    if round < DESTRUCTOR_ROUNDS {
        key::watch_end(value as usize);
        return;
    }
    let Some(ledger) = state::ledger() else { return };
    // SAFETY: the value is the address of a record of this process's ledger: a forked child
    // has an empty state page until its handler has cleared the pointer
    // (STATE-OWN-LEDGER, kept by `state`).
    let thread = unsafe { ThreadPart::at(value.cast(), STATE.held.load(Relaxed)) };
    // Whatever was busy: the thread's frames are gone.
    let me = Me::work(ledger, thread);
    words.stage.store(ThreadStage::Silent as usize, Relaxed);
    words.record.store(core::ptr::null_mut(), Relaxed);
    taken::thread_ends(&me);
    rules::thread_ends(&me);
    me.end();
}
