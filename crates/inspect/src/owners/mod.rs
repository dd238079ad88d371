//! Who holds a lock that does not say so.
//!
//! # Role
//! A function that holds a guard has code that would release it: the landing pad of the call that
//! the thread is in, where an exception would go. That code is run here, outside of the process, on
//! registers that the unwind tables give back and on memory that is only read. What it would
//! release, the thread holds. `docs/owners.md` says what that shows and what not.
//!
//! ```text
//!   frame of a thread ──lsda──▶ landing pad ──run──▶ events ──awaited──▶ releases the lock?
//!        │ registers               state, overlay, value:            search: does it hold it,
//!        └────────────────────────▶ one folder a processor           or wait for a condition?
//! ```
//!
//! What runs is code of the processor that the command runs on.
//!
//! Nothing here is bound to a process but by [`ReadableMemory`](crate::memory::ReadableMemory) and
//! by what is known of its code ([`run::KnownCode`]): tests bring their own.
//!
//! | module | what it knows |
//! |---|---|
//! | [`lsda`] | which landing pad a call has |
//! | [`value`] | numbers of which some bits are not known |
//! | [`overlay`] | the process's memory, with what a run has written over it |
//! | [`processor`], [`native`] | what a run asks of a processor, and of which; a folder for each has registers and instructions |
//! | [`state`] | what a run is at |
//! | [`functions`], [`code`] | which calls are followed, and what the others do |
//! | [`run`] | one run, and its bounds |
//! | [`event`] | what others could see of it |
//! | [`abseil`] | which Mutex of abseil a thread sleeps for |
//! | [`awaited`] | locks that are waited for, and how |
//! | [`shape`] | what the release of a lock looks like |
//! | [`moment`] | a thread, its frames and its wait |
//! | [`search`] | what one thread holds |
//! | [`stack`] | what it may hold |

#[cfg(any(test, target_arch = "aarch64"))]
pub mod aarch64;
pub mod abseil;
pub mod awaited;
pub mod code;
pub mod event;
pub mod functions;
pub mod lsda;
pub mod moment;
pub mod native;
pub mod overlay;
pub mod processor;
pub mod run;
#[cfg(test)]
mod run_tests;
pub mod search;
pub mod shape;
pub mod stack;
pub mod state;
pub mod value;
#[cfg(any(test, target_arch = "x86_64"))]
pub mod x86_64;
