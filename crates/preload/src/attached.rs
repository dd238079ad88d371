//! Comes into a process that runs already, and leaves it again.
//!
//! # Protocol
//! `lockstead attach` has a thread of the process load the library, for itself alone and without its
//! constructor, and call the functions here, one after the other:
//! 1. [`lockstead_attach`]: the library begins to record. No call leads into it yet; the command then
//!    has the program's calls lead here.
//! 2. The command has them lead past it again, and puts zero into the word of [`state`] that says
//!    whether calls are recorded. Whoever is in the library finds no ledger any more, and leaves.
//! 3. [`lockstead_leave`], when nobody is in the library: the C library forgets the functions that
//!    it would call.
//! 4. [`lockstead_forget`], when nobody is in these either: the ledger's memory is given back. Then
//!    the library is unloaded.
//!
//! Threads are not created through the library here: each would have a frame of the library's at the
//! end of its stack for as long as it lives. They are noticed by their first call.

use crate::interpose::keys;
use crate::{fork, grow, late, me, names, start, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::attach::AttachRequest;

/// Begins to record, as `request` says, and answers in it. Called again, it answers only.
///
/// # Safety
/// Called by the command, with a request and a token that are this call's alone, in a thread
/// that holds no lock of the C library's.
#[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
pub unsafe extern "C" fn lockstead_attach(request: *mut AttachRequest) -> c_int {
    // SAFETY: the caller promises a request that is this call's alone.
    let request = unsafe { &mut *request };
    let token = request.token as *const u8;
    // SAFETY: the caller promises a token of so many bytes.
    let token = unsafe { core::slice::from_raw_parts(token, request.token_length as usize) };
    if late::comes() {
        // For a command that comes after one that was killed.
        answer(request);
        return 0;
    }
    me::note_first_stack(request.first_stack as usize);
    names::note_of_first(request.name);
    // SAFETY: the caller promises that no call of the program's leads here yet.
    match unsafe { start::begin_late(token) } {
        Ok(file) => {
            request.file = file as u64;
            answer(request);
        }
        Err(refused) => request.refused = refused.into(),
    }
    0
}

/// Says where the library's parts are.
fn answer(request: &mut AttachRequest) {
    request.state = &raw const state::STATE.base as usize as u64;
    let [first, second, third] = fork::HANDLERS.map(|handler| handler as usize as u64);
    request.called_back = [first, second, third, keys::destructor() as u64];
}

/// Has the C library forget the library's functions.
///
/// # Safety
/// Called by the command when nobody else is in the library, and no call leads here.
#[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
pub unsafe extern "C" fn lockstead_leave() -> c_int {
    state::STATE.base.store(0, Relaxed);
    keys::give_up();
    fork::unwatch();
    0
}

/// Gives the ledger's memory back. In a forked child it is empty memory at the same place, if any.
///
/// # Safety
/// As [`lockstead_leave`], which was called before; nobody goes on with what is in the ledger.
#[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
pub unsafe extern "C" fn lockstead_forget() -> c_int {
    // SAFETY: the caller promises that nobody else is in the library.
    if let Some(ledger) = unsafe { state::forget() } {
        // SAFETY: the pieces were mapped for the ledger, and nobody uses them any more.
        unsafe { grow::unmap(ledger.base().cast_mut(), ledger.layout(), grow::ALL) };
    }
    0
}

/// Signs an address as a function does that returns to it, for the command to put in the place of one.
///
/// # Safety
/// Called by the command, with words that are this call's alone: the address, and where the frame of the
/// function ends.
#[cfg(target_arch = "aarch64")]
#[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
pub unsafe extern "C" fn lockstead_sign(words: *mut [u64; 2]) -> c_int {
    // SAFETY: the caller promises words that are this call's alone.
    let words = unsafe { &mut *words };
    words[0] = crate::arch::signed(words[0], words[1]);
    0
}
