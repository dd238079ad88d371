//! Tokens that end waits.

use lockstead_cluster::CancelToken;

/// The token of C that ends the waits it was given to.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[derive(Debug)]
pub struct lks_cluster_cancel(pub(crate) CancelToken);

/// Makes a token; never null.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_cancel_new() -> *mut lks_cluster_cancel {
    Box::into_raw(Box::new(lks_cluster_cancel(CancelToken::new())))
}

/// Fires a token for good, and ends the waits it was given to.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_cancel_fire(token: &lks_cluster_cancel) {
    token.0.cancel();
}

/// Gives a token back; null is none.
///
/// # Safety
/// ABROAD-HANDLE holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_cancel_free(token: *mut lks_cluster_cancel) {
    if !token.is_null() {
        // SAFETY: ABROAD-HANDLE: it came from `lks_cluster_cancel_new`, and nobody uses it any more; the
        // caller keeps it.
        drop(unsafe { Box::from_raw(token) });
    }
}
