//! glibc's adaptive mutex: it spins as long as was worth it before, then it is the ordinary one.
//!
//! # Role
//! `PTHREAD_MUTEX_ADAPTIVE_NP`. The mutex keeps a mean of how long its spinners had to spin, and lets the
//! next one spin twice as long and a little more, at most a hundred turns. Spinners read before they
//! try, and wait longer each time (glibc 2.36 and later). Whether the owner runs it does not know.
//!
//! # Source
//! The behaviour of glibc 2.36 as its release notes and manual have it, and the numbers 100, 10, 2 and 8
//! of its defaults.

use super::futex::FutexMutex;
use super::plain::PlainLock;
use crate::engine::calls::{at, chance};
use crate::engine::task::Activity;
use crate::engine::words::{Sim, U32};
use lockstead_core::Platform;

/// The mutex: the word, and the mean beside it.
#[repr(C)]
pub(super) struct AdaptiveMutex {
    word: FutexMutex,
    /// The mean number of turns, a signed number.
    spins: U32,
}

/// The most turns, and the most that two looks are apart.
const MOST: i32 = 100;
const APART: u32 = 16;

impl AdaptiveMutex {
    pub(super) const fn new() -> Self {
        AdaptiveMutex { word: FutexMutex::new(), spins: U32::ZERO }
    }

    fn spin(&self) {
        let mean = self.spins.read().cast_signed();
        let most = (2 * mean + 10).min(MOST);
        let (mut turns, mut apart) = (0, 1);
        loop {
            let wait = apart + (chance() * f64::from(apart)) as u32;
            turns += wait.cast_signed();
            if turns >= most {
                self.word.lock();
                break;
            }
            Sim::relax_for(wait);
            apart = (2 * apart).min(APART);
            if self.word.looks_free() && self.word.try_lock() {
                break;
            }
        }
        self.spins.write((mean + (turns - mean) / 8).cast_unsigned());
    }
}

impl PlainLock for AdaptiveMutex {
    fn lock(&self) {
        if !self.word.try_lock() {
            at(Activity::SlowPath, || self.spin());
        }
    }

    fn unlock(&self) {
        self.word.unlock();
    }
}
