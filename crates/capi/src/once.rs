//! Doing something once.

use crate::own::enter;
use crate::wait;
use lockstead_core::{OnceError, RawOnce};
use lockstead_linux::Linux;

/// The once of C: the core's, four bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_once(RawOnce<Linux>);

#[cfg(feature = "check")]
impl lks_once {
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_completed()
    }
}

const _: () = assert!(size_of::<lks_once>() == 4 && align_of::<lks_once>() == 4);

/// Asks to do it: 1 if it is the caller's turn, 0 if it is done.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lks_once_begin_slow(
    once: &lks_once,
    how: u32,
    argument: u64,
) -> i32 {
    enter();
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    match once.0.begin(true, &how) {
        Ok(None) => 0,
        Ok(Some(turn)) => {
            core::mem::forget(turn);
            1
        }
        Err(OnceError::NotAwaited(error)) => -wait::errno(error),
        Err(OnceError::Poisoned) => unreachable!("a failure leaves it to the next"),
    }
}

/// The caller's turn has ended, well or not.
///
/// # Safety
/// It was its turn.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lks_once_end_slow(once: &lks_once, done: i32) {
    // SAFETY: as the caller says.
    let turn = unsafe { once.0.turn() };
    if done != 0 {
        turn.complete();
    }
}
