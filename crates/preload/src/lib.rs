//! Observes a program's pthread locks from inside, and changes nothing about them: the library
//! that `lockstead run` puts under the program.
//!
//! The crate is a part of other people's processes. It allocates nothing
//! through the program's allocator, takes no lock of the program's kind, prints
//! nothing, and needs glibc 2.34 or newer on x86-64 or aarch64.
//!
//! In the workspace it is an ordinary library, so that its parts are tested as
//! such; the shared object is made with
//! `cargo rustc -p lockstead-preload --crate-type cdylib --features shared-object --profile
//! preload`.
//!
//! # Map
//! A call arrives in [`interpose`], by way of an assembler [`thunk`](mod@thunk) that notes
//! its [`site`]; what it means goes through [`record`] into the ledger, with the
//! [`chain`] of calls that led to it ([`unwind`] finds it, [`modules`] notes the
//! files); `events` leaves what happens in a run that is recorded, and `waiters` counts who waits; [`mod@futex`] has what is done on bare words; [`fast`] does the same without Rust for what is common. [`me`] is the
//! calling thread, [`tls`] its own few words, [`state`] whether the process
//! records at all. [`start`] and [`fork`] make the ledger, from what is in the
//! [`environment`], or what [`attached`] is given in a process that runs already, and [`grow`] keeps
//! its place; [`ending`] ends the records of threads, by the library's [`key`]. [`call`] has the words in which all of these speak of a call,
//! [`arch`] what is written for one processor, [`real`] the functions that were there before us, [`sys`] the system calls that ask
//! nobody. With the feature `check` the library also notes in which `order` locks are taken,
//! and which [`rules`] are broken.

#![no_std]
// On other targets there is nothing to interpose, and the crate is empty.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[cfg(test)]
extern crate std;

pub mod arch;
pub mod attached;
pub mod call;
pub mod cancel;
pub mod chain;
pub mod ending;
pub mod environment;
mod events;
pub mod fast;
pub mod fork;
pub mod futex;
pub mod grow;
pub mod handing;
pub mod interpose;
pub mod key;
pub mod late;
pub mod me;
pub mod modules;
pub mod names;
#[cfg(feature = "check")]
pub mod order;
pub mod real;
pub mod record;
pub mod records;
pub mod rules;
pub mod site;
pub mod start;
pub mod state;
pub mod sys;
pub mod taken;
pub mod thunk;
pub mod timing;
pub mod tls;
pub mod told;
pub mod unwind;
mod waiters;
pub mod wiped;

/// Ends the program at once, rather than unwind through frames that are not ours. Nothing in
/// the library may panic.
#[cfg(all(feature = "shared-object", not(test)))]
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `abort` has no precondition and is async-signal-safe.
    unsafe { libc::abort() }
}
