//! The guards of a real-time mutex: proof that the thread holds it, and the way to the data.

use super::RtMutex;
use super::raw::Raw;
use crate::guard::guards;
use crate::{Hooks, Unnamed};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

guards! {
    /// The holder's access to the data of an [`RtMutex`]; dropping it releases.
    ///
    /// Stays on its thread, since the owner alone releases:
    ///
    /// ```compile_fail,E0277
    /// let mutex = lockstead::rt::RtMutex::new(0);
    /// let guard = mutex.lock();
    /// std::thread::scope(|s| { s.spawn(move || drop(guard)); });
    /// ```
    RtMutexGuard of RtMutex;
    /// An [`RtMutexGuard`] narrowed to a part of the data by [`RtMutexGuard::map`];
    /// dropping it releases the whole mutex.
    MappedRtMutexGuard over Raw<H>;
    /// Narrows the guard to a part of the data.
    ///
    /// A function, not a method, so that it cannot hide one of `T`.
    map;
}
