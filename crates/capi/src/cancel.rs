//! Tokens that end waits.

use core::sync::atomic::Ordering;
use lockstead_core::{Atomic32, Platform};
use lockstead_linux::{Linux, U32};

/// A switch that ends the waits it was given to: `lks_cancel`.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_cancel(U32);

impl lks_cancel {
    pub(crate) fn word(&self) -> &U32 {
        &self.0
    }
}

/// Fires a token, for good.
#[unsafe(no_mangle)]
extern "C" fn lks_cancel_fire(token: &lks_cancel) {
    // ord: WAIT-2 (relaxed): publishes nothing.
    token.0.store(1, Ordering::Relaxed);
    Linux::wake(Linux::address32(&token.0), u32::MAX);
}

/// Whether a token was fired: for languages that cannot use the inline one.
#[unsafe(no_mangle)]
extern "C" fn lks_cancel_is_fired(token: &lks_cancel) -> i32 {
    i32::from(token.0.load(Ordering::Relaxed) != 0)
}
