//! What every lock under test can do, and the place that it is measured at.

/// A lock under test, without data.
pub trait BenchLock: Send + Sync + 'static {
    /// Returns a free lock that may still be moved.
    fn new() -> Self;

    /// Initialises a lock that must not move: it is called once, at the final address, before
    /// the first use.
    fn settle(&self) {}

    /// Runs `section` with the lock held. The section must not panic: some of
    /// the locks would stay locked.
    fn with<R>(&self, section: impl FnOnce() -> R) -> R;

    /// Returns the bytes of the lock itself.
    fn bytes() -> usize
    where
        Self: Sized,
    {
        size_of::<Self>()
    }
}

/// A lock at its final address, on cache lines of its own (two: the
/// prefetcher of neighbouring lines pairs them).
#[repr(align(128))]
pub struct Placed<L>(L);

impl<L: BenchLock> Placed<L> {
    /// Returns a free lock, ready for use.
    #[must_use]
    pub fn new() -> Box<Self> {
        let placed = Box::new(Placed(L::new()));
        placed.0.settle();
        placed
    }
}

impl<L> std::ops::Deref for Placed<L> {
    type Target = L;

    #[inline(always)]
    fn deref(&self) -> &L {
        &self.0
    }
}
