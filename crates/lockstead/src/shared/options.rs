//! What a new segment is to be like.

/// The options with which a segment is made; whoever opens it takes it as it is.
///
/// ```
/// use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
///
/// let options = SegmentOptions::new().participants(64).claims(16).mode(0o660);
/// let segment = Segment::<SharedMutex<u64>>::memfd("orders", &options)?;
/// # Ok::<(), lockstead::shared::SegmentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SegmentOptions {
    pub(super) participants: u32,
    pub(super) claims: u32,
    pub(super) exclusive: bool,
    pub(super) mode: u32,
}

impl SegmentOptions {
    /// Creates options for 256 participants with 64 claims each, in a file that nobody but its
    /// owner may open.
    #[must_use]
    pub const fn new() -> Self {
        SegmentOptions { participants: 256, claims: 64, exclusive: false, mode: 0o600 }
    }

    /// Sets how many threads, of all processes, may use the segment at the same time: 1 to 16,382.
    /// Each has a slot of 128 bytes and its claims, used or not. (A slot is used again when its
    /// thread has ended.)
    #[must_use]
    pub const fn participants(mut self, participants: u32) -> Self {
        self.participants = participants;
        self
    }

    /// Sets how many [`SharedRwLock`](super::SharedRwLock)s a thread may read under at the same
    /// time without keeping other readers out, and how many [`Permit`](super::Permit)s of
    /// semaphores it may have: at most 192. With 0 there are no semaphores, and readers are alone.
    #[must_use]
    pub const fn claims(mut self, claims: u32) -> Self {
        self.claims = claims;
        self
    }

    /// Sets whether each thread gives the kernel a list of robust locks that lies in this segment,
    /// instead of joining the one that its libc has.
    ///
    /// It then ends without a trace even where the kernel has thrown the memory of its
    /// process away before it looks at the list (a process killed for want of memory).
    /// In return, robust mutexes of `pthread` do not work in such threads, and a thread
    /// can use one such segment.
    #[must_use]
    pub const fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Sets the permissions of the file, exactly as given, whatever the process's umask: 0o600
    /// unless said otherwise. Whoever may write the file may use the locks, and may spoil what they
    /// protect; whoever may only read it may look at it with `lockstead shm`.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & 0o777;
        self
    }
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self::new()
    }
}
