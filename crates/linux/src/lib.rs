//! Linux under the locks of `lockstead-core`: real atomics, the futex calls,
//! membership of threads, and what the machine can tell about them.
//!
//! Programs use the crate `lockstead`. This crate is the only one of the
//! project that makes system calls for locks; it allocates nothing through the
//! program's allocator on their paths and takes no lock of `std` or libc.
//!
//! ```
//! use core::panic::Location;
//! use lockstead_core::RawMutex;
//! use lockstead_linux::Linux;
//!
//! static LOCK: RawMutex<Linux> = RawMutex::new();
//!
//! LOCK.lock(Location::caller()).expect("not held by this thread");
//! assert!(LOCK.is_locked());
//! // SAFETY: taken two lines above.
//! unsafe { LOCK.unlock() };
//! ```

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("lockstead-linux supports 64-bit Linux only: its futex calls pass 64-bit times");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "lockstead-linux supports x86-64 and aarch64: for this processor it lacks what `halves` does to half a \
     word, the place of a thread's restartable-sequence area (`rseq`), and weak symbols (`stay`)"
);

mod atomics;
mod cgroup;
pub mod features;
mod fence;
pub mod futex;
mod halves;
mod linux;
mod me;
mod membarrier;
mod membership;
mod observer;
pub mod oncpu;
pub mod owner;
pub mod pi;
mod platform;
mod processors;
mod rseq;
pub mod shared;
mod single;
pub mod slice;
mod slots;
mod stay;
mod sys;
mod table;

pub use atomics::{Cell, U32, U64};
pub use halves::sections;
pub use linux::Linux;
/// How locks tell `lockstead run` of what they do.
#[doc(hidden)]
pub use lockstead_told as told;
pub use membership::{at_leaving, prepare};
pub use stay::stay;
