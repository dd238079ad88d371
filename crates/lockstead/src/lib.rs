//! Locks for the threads of one process on Linux.

mod cancel;
mod dec_and_lock;
mod error;
mod guard;
mod mutex;
mod named;
mod owner;
pub mod poison;
mod refusal;
mod time;

pub use cancel::CancelToken;
pub use dec_and_lock::{Counter, dec_and_lock};
pub use error::{Cancelled, Interrupted, TimedOut};
pub use guard::{MappedMutexGuard, MutexGuard};
pub use lockstead_core::{Hooks, LockId, Off, Path, Site};
pub use mutex::Mutex;
pub use named::{Label, Named, NamedMutex};
pub use owner::Owner;
