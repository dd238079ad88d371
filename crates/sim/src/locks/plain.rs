//! What the locks that are not the core's have in common.

/// A lock that needs neither the place of its caller nor anything else.
pub(crate) trait PlainLock {
    /// Takes the lock.
    fn lock(&self);
    /// Releases the lock, which the running task has (HELD-ONCE).
    fn unlock(&self);
}
