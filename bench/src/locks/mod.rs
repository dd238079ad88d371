//! The locks that are compared: their names, and one trait they all wear.
//!
//! # Role
//! [`LockName`] is what users type and reports say. [`BenchLock`] is what the
//! measuring loops are generic over; `with_lock!` goes from the one to the
//! other, so that every loop exists once for each lock, inlined alike.
//!
//! The C and C++ peers pay one call out of line for the lock and one for the
//! unlock, as they do in any program that uses them; pthread and `sem_t` pay
//! the same call into the C library.
//!
//! # Invariants
//! - **PEER-SETTLED** [`BenchLock::settle`] has initialised the lock at its final address before
//!   its first use, and [`Placed`] never moves it.
//! - **PEER-HELD** A lock is released by the thread that has just taken it, once: by
//!   [`BenchLock::with`] and its like.

mod cpp;
mod lock;
mod own;
mod posix;
mod rust;

pub use cpp::{Abseil, Cpp, Nsync, Tbb};
pub(crate) use cpp::{ShimPeer, ready};
pub use lock::{BenchLock, Placed};
pub use own::{
    Biased, Lockstead, LocksteadFair, RealTime, SemaphoreClassic, SemaphoreTuned, WaitWound,
};
pub use posix::{
    Adaptive, Inherit, Normal, PosixRobust, PosixShared, Pthread, PthreadKind, Robustly, SemT,
};
pub use rust::{ParkingLot, Std, Usync};

use crate::Error;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

macro_rules! names {
    ($($variant:ident, $name:literal, $doc:literal;)*) => {
        /// The name of a lock, as users type it and reports show it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum LockName {
            $(
                #[doc = $doc]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl LockName {
            /// All names, in the order of the reports.
            pub const ALL: &[LockName] = &[$(LockName::$variant),*];

            /// Returns the name as users type it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(LockName::$variant => $name,)*
                }
            }

            /// Returns the lock in a few words.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(LockName::$variant => $doc,)*
                }
            }
        }
    };
}

names! {
    Lockstead, "lockstead", "lockstead's mutex";
    LocksteadFair, "lockstead-fair", "lockstead's mutex whose waits are short";
    SemaphoreClassic, "semaphore-classic", "the kernel's semaphore of 2005: always sleeps";
    SemaphoreTuned, "semaphore-tuned", "a semaphore with every trick of lockstead's mutex";
    WaitWound, "ww", "lockstead's wait/wound mutex, in a context";
    RealTime, "rt", "lockstead's mutex with priority inheritance";
    Biased, "biased", "lockstead's mutex that belongs to one thread until another one comes";
    Std, "std", "Rust's std::sync::Mutex";
    ParkingLot, "parking_lot", "parking_lot::Mutex";
    Usync, "usync", "usync::Mutex";
    Pthread, "pthread", "pthread_mutex_t, the default kind";
    PthreadAdaptive, "pthread-adaptive", "pthread_mutex_t, the kind that spins";
    PthreadPi, "pthread-pi", "pthread_mutex_t with priority inheritance";
    SemT, "sem_t", "a POSIX semaphore";
    Abseil, "abseil", "absl::Mutex";
    Nsync, "nsync", "nsync_mu";
    Tbb, "tbb", "tbb::mutex of oneTBB";
}

impl LockName {
    /// Tells whether this is somebody else's lock: what lockstead's own are
    /// compared with.
    #[must_use]
    pub const fn is_peer(self) -> bool {
        !matches!(
            self,
            LockName::Lockstead
                | LockName::LocksteadFair
                | LockName::SemaphoreClassic
                | LockName::SemaphoreTuned
                | LockName::WaitWound
                | LockName::RealTime
                | LockName::Biased
        )
    }

    /// Tells whether it is a mutex that sleeps and does no more than exclude: what lockstead's
    /// mutex is to be ahead of. Not so a peer that lends priorities, nor a semaphore.
    #[must_use]
    pub const fn is_rival(self) -> bool {
        self.is_peer() && !matches!(self, LockName::PthreadPi | LockName::SemT)
    }

    /// Returns the bytes of the lock itself.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the lock cannot be had here, with the reason and
    /// what to install.
    pub fn bytes(self) -> Result<usize, Error> {
        with_lock!(self, L => <L as BenchLock>::bytes())
    }
}

/// Returns the locks that can be measured here, in the order of the reports.
#[must_use]
pub fn available() -> Vec<LockName> {
    LockName::ALL.iter().copied().filter(|lock| lock.bytes().is_ok()).collect()
}

/// Lists those that are meant for several threads: all but the biased one, which is lockstead's
/// mutex as soon as there are two.
#[must_use]
pub fn for_several_threads() -> Vec<LockName> {
    available().into_iter().filter(|&lock| lock != LockName::Biased).collect()
}

/// Returns the locks that cannot be measured here, each with the reason.
#[must_use]
pub fn unavailable() -> Vec<(LockName, String)> {
    LockName::ALL
        .iter()
        .filter_map(|&lock| lock.bytes().err().map(|why| (lock, why.to_string())))
        .collect()
}

/// Tells whether this build has the lock. Loads nothing: the library of one that is
/// built in may still be missing.
#[must_use]
pub const fn is_built_in(lock: LockName) -> bool {
    match lock {
        LockName::Abseil => Abseil::SHIM.is_some(),
        LockName::Nsync => Nsync::SHIM.is_some(),
        LockName::Tbb => Tbb::SHIM.is_some(),
        _ => true,
    }
}

/// A name that no lock has. The text lists the names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownLock(String);

impl fmt::Display for UnknownLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = LockName::ALL.iter().map(|lock| lock.name()).collect();
        write!(f, "no lock is called `{}`; the locks are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownLock {}

impl FromStr for LockName {
    type Err = UnknownLock;

    fn from_str(name: &str) -> Result<Self, UnknownLock> {
        LockName::ALL
            .iter()
            .copied()
            .find(|lock| lock.name() == name)
            .ok_or_else(|| UnknownLock(name.to_owned()))
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Evaluates an expression with `$L` standing for the type of the lock called
/// `$name`; `Err(Error::Unavailable)` if it cannot be had here.
macro_rules! with_lock {
    ($name:expr, $L:ident => $body:expr) => {{
        use $crate::locks as l;
        let name: l::LockName = $name;
        macro_rules! run {
            ($type:ty) => {{
                type $L = $type;
                Ok($body)
            }};
        }
        macro_rules! peer {
            ($peer:ty) => {
                match l::ready::<$peer>() {
                    Ok(()) => run!(l::Cpp<$peer>),
                    Err(why) => Err($crate::Error::Unavailable { lock: name, why }),
                }
            };
        }
        match name {
            l::LockName::Lockstead => run!(l::Lockstead),
            l::LockName::LocksteadFair => run!(l::LocksteadFair),
            l::LockName::SemaphoreClassic => run!(l::SemaphoreClassic),
            l::LockName::SemaphoreTuned => run!(l::SemaphoreTuned),
            l::LockName::WaitWound => run!(l::WaitWound),
            l::LockName::RealTime => run!(l::RealTime),
            l::LockName::Biased => run!(l::Biased),
            l::LockName::Std => run!(l::Std),
            l::LockName::ParkingLot => run!(l::ParkingLot),
            l::LockName::Usync => run!(l::Usync),
            l::LockName::Pthread => run!(l::Pthread<l::Normal>),
            l::LockName::PthreadAdaptive => run!(l::Pthread<l::Adaptive>),
            l::LockName::PthreadPi => run!(l::Pthread<l::Inherit>),
            l::LockName::SemT => run!(l::SemT),
            l::LockName::Abseil => peer!(l::Abseil),
            l::LockName::Nsync => peer!(l::Nsync),
            l::LockName::Tbb => peer!(l::Tbb),
        }
    }};
}
pub(crate) use with_lock;
