//! Doing something once, for C.

use crate::export::c_type;
use crate::own::enter;
use crate::wait;
use lockstead_core::{OnceError, RawOnce, WaitBounds};
use lockstead_linux::Linux;

c_type! {
    /// The once of C: the core's, four bytes.
    lks_once(RawOnce<Linux>): 4, 4
}

#[cfg(feature = "check")]
impl lks_once {
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_completed()
    }
}

/// Asks whether it is the caller's turn; returns 1 if it is, 0 if it is done.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lks_once_begin_slow(
    once: &lks_once,
    how: u32,
    argument: u64,
) -> i32 {
    enter();
    let begin = |how: &WaitBounds<'_, Linux>| match once.0.begin(true, how) {
        Ok(None) => 0,
        Ok(Some(turn)) => {
            core::mem::forget(turn);
            1
        }
        Err(OnceError::NotAwaited(error)) => -wait::errno(error),
        Err(OnceError::Poisoned) => unreachable!("a failure leaves it to the next"),
    };
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { wait::waiting(how, argument, begin) }
}

/// Ends the caller's turn, well or not.
///
/// # Safety
/// CAPI-HOLDER holds: it is the caller's turn.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lks_once_end_slow(once: &lks_once, done: i32) {
    // SAFETY: CAPI-HOLDER: it is the calling thread's turn; the caller keeps it.
    let turn = unsafe { once.0.turn() };
    if done != 0 {
        turn.complete();
    }
}
