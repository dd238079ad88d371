//! Bytes of code: of call sites in this very program, and of objects that a C
//! compiler builds both ways.
//!
//! # Protocol
//! Each function that is measured stands alone in a section of its own, whose
//! beginning and end the linker names: their distance is the function, to the byte,
//! with its cold parts and without the slow paths that it calls. A function with
//! nine pairs less one with a single pair, over eight, is a call site; prologues and
//! epilogues cancel out.

use super::compiled;
use super::subjects::ExplainedLock;
use core::panic::Location;
use lockstead_core::{ClassicSemaphore, RawMutex, TunedSemaphore};
use lockstead_linux::Linux;
use serde::Serialize;
use std::hint::black_box;

/// The bytes of code that were found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeText {
    /// Call sites in this program.
    pub sites: Vec<CallSiteBytes>,
    /// Shared objects built from C, one for each way.
    pub objects: Vec<CallsObject>,
    /// Why there are no objects; only there if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_absent: Option<String>,
}

/// A lock + unlock pair in this program, compiled into its caller.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallSiteBytes {
    /// The lock that was measured.
    pub lock: ExplainedLock,
    /// The bytes of one pair of lock and unlock.
    pub bytes_per_pair: f64,
}

/// A shared object with many call sites.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallsObject {
    /// What its call sites use: `none`, `mutex`, `semaphore`, `mutex, called` or `semaphore,
    /// called`.
    pub way: &'static str,
    /// The bytes of its `.text`.
    pub text_bytes: u64,
    /// The number of pairs of lock and unlock in it.
    pub pairs: u64,
    /// The bytes of one pair: those of the object less those of the object without locks, over the
    /// pairs.
    pub bytes_per_pair: f64,
}

impl CodeText {
    /// Returns the bytes of a pair in this program.
    #[must_use]
    pub fn site(&self, lock: ExplainedLock) -> Option<f64> {
        self.sites.iter().find(|site| site.lock == lock).map(|site| site.bytes_per_pair)
    }

    /// Returns the object built in this way.
    #[must_use]
    pub fn object(&self, way: &str) -> Option<&CallsObject> {
        self.objects.iter().find(|object| object.way == way)
    }
}

/// Reads the sections and asks the compiler.
#[must_use]
pub fn measure() -> CodeText {
    let (objects, objects_absent) = match compiled::build_all() {
        Ok(objects) => (objects, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    CodeText { sites: measured_sites(), objects, objects_absent }
}

/// Reads the sections.
fn measured_sites() -> Vec<CallSiteBytes> {
    let sites = [
        (ExplainedLock::Mutex, mutex_one::bytes(), mutex_nine::bytes()),
        (ExplainedLock::Semaphore, semaphore_one::bytes(), semaphore_nine::bytes()),
        (ExplainedLock::Semaphore2005, classic_one::bytes(), classic_nine::bytes()),
    ];
    let bytes = sites.map(|(lock, one, nine)| CallSiteBytes {
        lock,
        bytes_per_pair: (nine as f64 - one as f64) / 8.0,
    });
    bytes.to_vec()
}

/// Declares a function in a section of its own.
macro_rules! site {
    ($name:ident, $section:literal, $lock:ty, |$it:ident| $pairs:block) => {
        mod $name {
            use super::*;

            #[inline(never)]
            #[unsafe(link_section = $section)]
            fn site($it: &$lock) $pairs

            unsafe extern "C" {
                #[link_name = concat!("__start_", $section)]
                static BEGIN: u8;
                #[link_name = concat!("__stop_", $section)]
                static END: u8;
            }

            /// Returns the bytes of the function.
            pub(super) fn bytes() -> usize {
                // What nobody refers to is not linked.
                black_box(site as fn(&$lock));
                (&raw const END).addr() - (&raw const BEGIN).addr()
            }

            #[cfg(test)]
            pub(super) fn run(lock: &$lock) {
                site(lock);
            }
        }
    };
}

#[inline(always)]
fn pair_mutex(lock: &RawMutex<Linux>, site: lockstead_core::Site) {
    if lock.lock(site).is_ok() {
        // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
        unsafe { lock.unlock() };
    }
}

#[inline(always)]
fn pair_semaphore(lock: &TunedSemaphore<Linux>, site: lockstead_core::Site) {
    lock.down(site);
    // Nobody else gives permits: there is room for this one.
    let _ = lock.up();
}

#[inline(always)]
fn pair_classic(lock: &ClassicSemaphore<Linux>, site: lockstead_core::Site) {
    lock.down(site);
    // As above.
    let _ = lock.up();
}

macro_rules! nine {
    ($pair:ident, $lock:ident) => {
        nine!(@ $pair, $lock, 0 1 2 3 4 5 6 7 8)
    };
    (@ $pair:ident, $lock:ident, $($n:literal)*) => {
        // The same place for all: what the compiler could share it shares.
        let here = Location::caller();
        $(let _: u8 = $n; $pair($lock, here);)*
    };
}

site!(mutex_one, "lks_explain_m1", RawMutex<Linux>, |lock| {
    pair_mutex(lock, Location::caller());
});
site!(mutex_nine, "lks_explain_m9", RawMutex<Linux>, |lock| {
    nine!(pair_mutex, lock);
});
site!(semaphore_one, "lks_explain_s1", TunedSemaphore<Linux>, |lock| {
    pair_semaphore(lock, Location::caller());
});
site!(semaphore_nine, "lks_explain_s9", TunedSemaphore<Linux>, |lock| {
    nine!(pair_semaphore, lock);
});
site!(classic_one, "lks_explain_c1", ClassicSemaphore<Linux>, |lock| {
    pair_classic(lock, Location::caller());
});
site!(classic_nine, "lks_explain_c9", ClassicSemaphore<Linux>, |lock| {
    nine!(pair_classic, lock);
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_functions_are_real_and_leave_the_locks_free() {
        let mutex = RawMutex::<Linux>::new();
        mutex_one::run(&mutex);
        mutex_nine::run(&mutex);
        assert!(!mutex.is_locked());
        let semaphore = TunedSemaphore::<Linux>::new(1).expect("a permit");
        semaphore_one::run(&semaphore);
        semaphore_nine::run(&semaphore);
        assert_eq!(semaphore.permits(), 1);
        let classic = ClassicSemaphore::<Linux>::new(1).expect("a permit");
        classic_one::run(&classic);
        classic_nine::run(&classic);
        assert_eq!(classic.permits(), 1);
    }

    #[test]
    fn a_pair_has_a_size() {
        for site in measured_sites() {
            assert!((8.0..4000.0).contains(&site.bytes_per_pair), "{site:?}");
        }
    }
}
