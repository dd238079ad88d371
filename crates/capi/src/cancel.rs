//! Tokens that end waits.

use crate::export::c_type;
use core::sync::atomic::Ordering;
use lockstead_core::{Atomic32, Platform};
use lockstead_linux::{Linux, U32};

c_type! {
    /// The token of C that ends the waits it was given to.
    lks_cancel(U32): 4, 4
}

impl lks_cancel {
    pub(crate) fn word(&self) -> &U32 {
        &self.0
    }
}

/// Fires a token for good, and ends the waits it was given to.
#[unsafe(no_mangle)]
extern "C" fn lks_cancel_fire(token: &lks_cancel) {
    // ord: WAIT-2 (relaxed): publishes nothing.
    token.0.store(1, Ordering::Relaxed);
    Linux::wake(Linux::address32(&token.0), u32::MAX);
}

/// Tells whether a token was fired, for languages that cannot use the inline function.
#[unsafe(no_mangle)]
extern "C" fn lks_cancel_is_fired(token: &lks_cancel) -> i32 {
    i32::from(token.0.load(Ordering::Relaxed) != 0)
}
