//! Locks over etcd, for programs that have outgrown one machine: in the shape of
//! [`SharedMutex`](lockstead::shared::SharedMutex), with fencing tokens, deadlines and the word of an
//! owner's death.
//!
//! | type | what it is |
//! |---|---|
//! | [`Session`] | a lease, and the thread that keeps it alive; all below is acquired by one |
//! | [`Mutex`], [`RwLock`], [`Semaphore`] | the locks, fair by the revision of etcd |
//! | [`HostMutex`] | a mutex at which a host queues once, for all its threads and processes |
//! | [`Election`] | who leads, and what it says of itself |
//! | [`MutexGuard`] and its kin | `token()`, `deadline()`, `check()`, `with_deadline()`, `lost()`, `txn()` |
//! | [`Locked`], [`Inconsistent`] | how the last owner left the lock |
//!
//! A lock over a network cannot promise what one in memory does: an owner that is stopped for longer than
//! its lease goes on beside the next one until it looks. [`MutexGuard::check`] is that look; what must not
//! be overtaken between the look and the deed compares [`MutexGuard::token`], or is a
//! [transaction](MutexGuard::txn). `docs/cluster.md` says what holds when.

#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(feature = "async")]
mod awaited;
mod beat;
mod clock;
mod election;
mod error;
mod etcd;
mod folder;
mod hold;
mod host;
mod locked;
pub mod member;
#[cfg(test)]
mod model;
mod mutex;
mod protocol;
mod rwlock;
mod semaphore;
mod session;
pub mod survey;
mod threads;
mod txn;
mod wait;
#[cfg(test)]
mod wrong;

pub use beat::Lost;
pub use clock::Moment;
pub use election::{Election, Leader, Leadership};
pub use error::{ClusterError, LostBy};
pub use etcd::{ClientOptions, Endpoint, TlsFiles, Traffic};
pub use host::{HostGuard, HostLocked, HostMutex, HostOptions};
pub use locked::{Exclusive, Inconsistent, Locked};
pub use lockstead::CancelToken;
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::{Permits, Semaphore, SemaphoreUse};
pub use session::{Health, Session, SessionOptions};
pub use txn::{GuardedTxn, KeyValue};
pub use wait::Patience;
