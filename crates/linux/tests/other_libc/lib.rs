//! The locks for a program in C, which another libc than the compiler's is linked into:
//! see `shared_musl.rs`.
#![allow(missing_docs, reason = "for one program, which lies beside")]

#[path = "../segment/mod.rs"]
mod segment;

use core::sync::atomic::Ordering::Relaxed;
use lockstead_core::Atomic64;
use lockstead_core::robust::{Got, RobustError};
use lockstead_linux::shared;
use segment::Segment;
use std::sync::OnceLock;
use std::time::Duration;

static SEGMENT: OnceLock<Segment> = OnceLock::new();

/// Returns the one segment, made by whoever asks first.
fn segment() -> &'static Segment {
    SEGMENT.get_or_init(Segment::new)
}

/// Acquires a lock. Returns 0: got it; 1: got it from a dead owner, and declared it consistent; 2:
/// too late.
#[unsafe(no_mangle)]
extern "C" fn segment_lock(number: u32, milliseconds: u32) -> i32 {
    let time = Duration::from_millis(milliseconds.into());
    match segment().lock_within(number as usize, time) {
        Ok(Got::Clean) => 0,
        Ok(Got::OwnerDied) => {
            segment().lock(number as usize).mark_consistent(&segment().party());
            1
        }
        Err(RobustError::TimedOut) => 2,
        Err(_) => 3,
    }
}

#[unsafe(no_mangle)]
extern "C" fn segment_unlock(number: u32) -> bool {
    segment().unlock(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn segment_leave() -> bool {
    shared::leave(segment().handle()).is_ok()
}

/// Returns the calling thread's name; 0: it is nobody.
#[unsafe(no_mangle)]
extern "C" fn segment_me() -> u32 {
    shared::me(segment().address()).map_or(0, |me| me.bits())
}

/// Returns a word for the program's own use.
#[unsafe(no_mangle)]
extern "C" fn segment_word(number: u32) -> *mut u64 {
    segment().word(number as usize).as_ptr()
}

/// Tells whether somebody lives who has this name.
#[unsafe(no_mangle)]
extern "C" fn segment_lives(name: u32) -> bool {
    let Some(who) = lockstead_core::robust::Identity::from_bits(name) else { return false };
    let life = lockstead_core::robust::Life(segment().record(who.slot()).life.load(Relaxed));
    life.identity(who.slot()) == Some(who)
}
