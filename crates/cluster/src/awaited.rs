//! Acquisitions that are awaited, on tokio: each occupies one of its threads for blocking work while it
//! waits, since the requests below block. Dropped, the future ends the wait and leaves no place behind.

use crate::error::ClusterError;
use crate::locked::Locked;
use crate::wait::Patience;
use crate::{Leadership, Mutex, MutexGuard, Permits, ReadGuard, RwLock, Semaphore, WriteGuard};
use lockstead::CancelToken;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

/// Fires its token with the future that it is part of.
struct Cancels(Arc<CancelToken>);

impl Drop for Cancels {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs blocking work on a thread for it, and cancels it with the future.
async fn awaited<T: Send + 'static>(
    work: impl FnOnce(Patience<'_>) -> Result<T, ClusterError> + Send + 'static,
) -> Result<T, ClusterError> {
    let token = Arc::new(CancelToken::new());
    let cancels = Cancels(Arc::clone(&token));
    let done = tokio::task::spawn_blocking(move || work(Patience::Cancel(&token))).await;
    drop(cancels);
    match done {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ClusterError::Cancelled),
    }
}

impl Mutex {
    /// Acquires the mutex as [`lock`](Mutex::lock), on tokio.
    ///
    /// # Errors
    /// As [`lock`](Mutex::lock); [`ClusterError::Cancelled`]: the runtime ends.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    #[track_caller]
    pub fn lock_async(
        &self,
    ) -> impl Future<Output = Result<Locked<MutexGuard>, ClusterError>> + Send + 'static {
        let (mutex, caller) = (self.clone(), Location::caller());
        awaited(move |patience| mutex.lock_by(patience, caller))
    }
}

impl RwLock {
    /// Acquires the lock as [`write`](RwLock::write), on tokio.
    ///
    /// # Errors
    /// As [`write`](RwLock::write); [`ClusterError::Cancelled`]: the runtime ends.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    #[track_caller]
    pub fn write_async(
        &self,
    ) -> impl Future<Output = Result<Locked<WriteGuard>, ClusterError>> + Send + 'static {
        let (lock, caller) = (self.clone(), Location::caller());
        awaited(move |patience| lock.write_by(patience, caller))
    }

    /// Acquires the lock as [`read`](RwLock::read), on tokio.
    ///
    /// # Errors
    /// As [`read`](RwLock::read); [`ClusterError::Cancelled`]: the runtime ends.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    #[track_caller]
    pub fn read_async(
        &self,
    ) -> impl Future<Output = Result<ReadGuard, ClusterError>> + Send + 'static {
        let (lock, caller) = (self.clone(), Location::caller());
        awaited(move |patience| lock.read_by(patience, caller))
    }
}

impl Semaphore {
    /// Acquires one permit as [`acquire`](Semaphore::acquire), on tokio.
    ///
    /// # Errors
    /// As [`acquire`](Semaphore::acquire); [`ClusterError::Cancelled`]: the runtime ends.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    #[track_caller]
    pub fn acquire_async(
        &self,
    ) -> impl Future<Output = Result<Permits, ClusterError>> + Send + 'static {
        let (semaphore, caller) = (self.clone(), Location::caller());
        awaited(move |patience| semaphore.acquire_by(1, patience, caller))
    }
}

/// Gives guards a release that is awaited.
macro_rules! unlock_async {
    ($($name:ident),*) => { $(
        impl $name {
            /// Releases as `unlock`, on tokio. The release is made also if the future is dropped.
            ///
            /// # Errors
            /// As `unlock`.
            ///
            /// # Panics
            /// Outside of a runtime of tokio.
            pub fn unlock_async(
                self,
            ) -> impl Future<Output = Result<(), ClusterError>> + Send + 'static {
                awaited(move |_| self.unlock())
            }
        }
    )* };
}

unlock_async!(MutexGuard, WriteGuard, ReadGuard, Permits, Leadership);
