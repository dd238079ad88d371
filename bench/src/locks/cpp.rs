//! Peers in C and C++, through the shim in `bench/shim/`, each there only if
//! `build.rs` found its library.
//!
//! The shim constructs the lock inside storage of a fixed size, so that a lock
//! lies where the others do and is reached without a pointer in between. Lock
//! and unlock are one call each into the shim, which cannot be inlined: read
//! differences of a nanosecond to the Rust locks with that in mind.

/// Bytes and alignment of the storage; the shim asserts that its locks fit.
#[cfg(any(peer_abseil, peer_nsync, peer_tbb))]
#[repr(C, align(16))]
struct Storage(std::cell::UnsafeCell<[u8; 64]>);

#[cfg_attr(
    not(all(peer_abseil, peer_nsync, peer_tbb)),
    allow(unused_macros, reason = "one use for each library that was found")
)]
macro_rules! shim_lock {
    ($(#[$doc:meta])* $type:ident, $init:ident, $destroy:ident, $lock:ident, $unlock:ident, $size:ident) => {
        unsafe extern "C" {
            fn $init(storage: *mut u8);
            fn $destroy(storage: *mut u8);
            fn $lock(storage: *mut u8);
            fn $unlock(storage: *mut u8);
            safe fn $size() -> usize;
        }

        $(#[$doc])*
        pub struct $type(Storage);

        // SAFETY: a lock is made to be used by many threads; the storage is
        // touched only by the shim.
        unsafe impl Send for $type {}
        // SAFETY: as above.
        unsafe impl Sync for $type {}

        impl $type {
            #[inline(always)]
            fn storage(&self) -> *mut u8 {
                self.0.0.get().cast()
            }
        }

        impl super::BenchLock for $type {
            fn new() -> Self {
                Self(Storage(std::cell::UnsafeCell::new([0; 64])))
            }

            fn settle(&self) {
                // SAFETY: the storage is large and aligned enough, at its
                // final address, and nobody uses it yet.
                unsafe { $init(self.storage()) }
            }

            #[inline(always)]
            fn with<R>(&self, section: impl FnOnce() -> R) -> R {
                // SAFETY: `settle` constructed the lock, and it has not moved.
                unsafe { $lock(self.storage()) };
                let result = section();
                // SAFETY: as above; this thread holds it.
                unsafe { $unlock(self.storage()) };
                result
            }

            fn bytes() -> usize {
                $size()
            }
        }

        impl Drop for $type {
            fn drop(&mut self) {
                // SAFETY: `Placed::new` settled it; nobody holds or waits.
                unsafe { $destroy(self.storage()) }
            }
        }
    };
}

#[cfg(peer_abseil)]
shim_lock!(
    /// `absl::Mutex`.
    Abseil, peer_abseil_init, peer_abseil_destroy, peer_abseil_lock, peer_abseil_unlock,
    peer_abseil_size
);

#[cfg(peer_nsync)]
shim_lock!(
    /// `nsync_mu`.
    Nsync, peer_nsync_init, peer_nsync_destroy, peer_nsync_lock, peer_nsync_unlock,
    peer_nsync_size
);

#[cfg(peer_tbb)]
shim_lock!(
    /// `tbb::mutex`.
    Tbb, peer_tbb_init, peer_tbb_destroy, peer_tbb_lock, peer_tbb_unlock, peer_tbb_size
);
