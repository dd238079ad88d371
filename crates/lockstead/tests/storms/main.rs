//! The locks under the real machine: storms of threads, releases stepped through instruction by
//! instruction, handlers that jump out, coroutines that move on. One program, a module each, so
//! that the tests link once.
//!
//! The usual tests are short. The long storms take some minutes each:
//! `cargo test -p lockstead --test storms -- --ignored --nocapture --test-threads 1`,
//! with `LOCKSTEAD_STRESS_OPS` for another number of turns and `LOCKSTEAD_STRESS_SEED` for the
//! dice of a run before. With the first of the two, `releases` stops at every step in every case.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "what the modules use that step, which are left out there")
)]

mod biased;
mod condvar;
mod coroutines;
mod frame;
#[cfg(target_arch = "x86_64")]
mod jumps;
mod kinds;
mod mutex;
mod once;
#[cfg(target_arch = "x86_64")]
mod releases;
mod rt;
mod rwlock;
#[cfg(target_arch = "x86_64")]
mod step;
mod visitors;
mod ww;
