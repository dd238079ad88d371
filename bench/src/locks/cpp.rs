//! Peers in C and C++, through the shim in `bench/shim/`, each there only if
//! `build.rs` found its library, and if that is there when it is measured.
//!
//! # Role
//! The shims are shared objects that this program carries, and loads when a
//! peer is first asked for: it starts where none of their libraries is.
//!
//! The shim constructs the lock inside storage of a fixed size, so that a lock
//! lies where the others do and is reached without a pointer in between. Lock
//! and unlock are one call each into the shim by a pointer in memory, as a call
//! from a program to a library is; they cannot be inlined: read differences of a
//! nanosecond to the Rust locks with that in mind.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A peer whose shim may have been built.
pub trait ShimPeer: Send + Sync + 'static {
    /// What its shim's functions are called.
    const NAME: &'static str;
    /// The package that has its header and its library.
    const PACKAGE: &'static str;
    /// The shim, if it was built.
    const SHIM: Option<&'static [u8]>;

    /// Returns the functions of the loaded peer.
    fn calls() -> &'static ShimCalls;
}

/// A function of a shim that is given a lock's storage.
type ShimCall = unsafe extern "C" fn(*mut u8);

/// The functions of a shim. They are written once, before [`ready`] says that
/// the peer can be used, and by whoever uses it read after that.
pub struct ShimCalls {
    loaded: OnceLock<Result<(), String>>,
    init: AtomicPtr<c_void>,
    destroy: AtomicPtr<c_void>,
    lock: AtomicPtr<c_void>,
    unlock: AtomicPtr<c_void>,
    size: AtomicPtr<c_void>,
}

impl ShimCalls {
    const fn new() -> Self {
        const fn none() -> AtomicPtr<c_void> {
            AtomicPtr::new(std::ptr::null_mut())
        }
        ShimCalls {
            loaded: OnceLock::new(),
            init: none(),
            destroy: none(),
            lock: none(),
            unlock: none(),
            size: none(),
        }
    }

    fn load(&self, name: &str, shim: &[u8]) -> Result<(), String> {
        let library = open(name, shim)?;
        for (slot, what) in [
            (&self.init, "init"),
            (&self.destroy, "destroy"),
            (&self.lock, "lock"),
            (&self.unlock, "unlock"),
            (&self.size, "size"),
        ] {
            let symbol = CString::new(format!("peer_{name}_{what}")).expect("a plain name");
            // SAFETY: a library that stays loaded, and a terminated name.
            let found = unsafe { libc::dlsym(library.as_ptr(), symbol.as_ptr()) };
            if found.is_null() {
                return Err(format!("its shim has no {}", symbol.to_string_lossy()));
            }
            slot.store(found, Relaxed);
        }
        Ok(())
    }
}

/// Loads a shim for the life of the process; why it cannot.
fn open(name: &str, shim: &[u8]) -> Result<NonNull<c_void>, String> {
    let failed = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    let title = CString::new(format!("lockstead-peer-{name}")).expect("a plain name");
    // SAFETY: a terminated name; the call gives a descriptor or fails.
    let file = unsafe { libc::memfd_create(title.as_ptr(), libc::MFD_CLOEXEC) };
    if file == -1 {
        return Err(failed("no memory file can be made for its shim"));
    }
    // SAFETY: the descriptor was just opened, and nobody else owns it.
    let mut file = unsafe { File::from_raw_fd(file) };
    file.write_all(shim).map_err(|error| format!("its shim cannot be written: {error}"))?;
    // It stays open: the loader knows libraries by their paths, and another shim is not to have
    // this one's.
    let path = CString::new(format!("/proc/self/fd/{}", file.into_raw_fd())).expect("plain");
    // SAFETY: the shim begins with the constructors of the peer's library, which are made for
    // being loaded into any program; `dlerror` gives text that stays until the next call here.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        NonNull::new(library).ok_or_else(|| {
            let why = libc::dlerror();
            match why.is_null() {
                true => "its library cannot be loaded".to_owned(),
                false => CStr::from_ptr(why).to_string_lossy().into_owned(),
            }
        })
    }
}

/// Loads the peer, if that was not done yet; why it cannot be had.
pub(crate) fn ready<P: ShimPeer>() -> Result<(), String> {
    let package = P::PACKAGE;
    let Some(shim) = P::SHIM else {
        return Err(format!(
            "its library was not found when lockstead was built; install a C++ compiler and \
             {package}, then `cargo clean -p lockstead-bench` and build again"
        ));
    };
    let calls = P::calls();
    let loaded = calls.loaded.get_or_init(|| {
        calls.load(P::NAME, shim).map_err(|why| {
            format!(
                "its library was there when lockstead was built, and is not here ({why}); \
                     install {package}"
            )
        })
    });
    loaded.clone()
}

/// Bytes and alignment of the storage; the shim asserts that its locks fit.
#[repr(C, align(16))]
struct Storage(UnsafeCell<[u8; 64]>);

/// A lock of a peer whose shim has been loaded, which `ready` sees to.
pub struct Cpp<P: ShimPeer>(Storage, PhantomData<P>);

// SAFETY: a lock is made to be used by many threads; the storage is touched
// only by the shim.
unsafe impl<P: ShimPeer> Send for Cpp<P> {}
// SAFETY: as for `Send`: the peer's lock is made for use by several threads.
unsafe impl<P: ShimPeer> Sync for Cpp<P> {}

impl<P: ShimPeer> Cpp<P> {
    /// Calls a function of the shim for this lock.
    ///
    /// # Safety
    /// `which` is one of the peer's [`ShimCalls`] that take a lock, and the state of
    /// the lock is one that it may be called in.
    #[inline(always)]
    unsafe fn call(&self, which: &AtomicPtr<c_void>) {
        let found = which.load(Relaxed);
        debug_assert!(!found.is_null(), "the peer is ready before it has locks");
        // SAFETY: `ready` has found it, before there was a lock, under the name by
        // which the shim defines a function of this type.
        let call = unsafe { std::mem::transmute::<*mut c_void, ShimCall>(found) };
        // SAFETY: the caller's promise; the storage is large and aligned enough.
        unsafe { call(self.0.0.get().cast()) }
    }
}

impl<P: ShimPeer> super::BenchLock for Cpp<P> {
    fn new() -> Self {
        ready::<P>().expect("a lock is only made of a peer that is ready");
        Self(Storage(UnsafeCell::new([0; 64])), PhantomData)
    }

    fn settle(&self) {
        // SAFETY: the storage is at its final address, and nobody uses it yet.
        unsafe { self.call(&P::calls().init) }
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: `settle` constructed the lock, and it has not moved.
        unsafe { self.call(&P::calls().lock) };
        let result = section();
        // SAFETY: by PEER-SETTLED the lock is initialised, and by PEER-HELD this thread holds it.
        unsafe { self.call(&P::calls().unlock) };
        result
    }

    fn bytes() -> usize {
        ready::<P>().expect("asked only of a peer that is ready");
        let found = P::calls().size.load(Relaxed);
        // SAFETY: `ready` has found it under the name by which the shim defines a
        // function of this type.
        let size = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(found) };
        size()
    }
}

impl<P: ShimPeer> Drop for Cpp<P> {
    fn drop(&mut self) {
        // SAFETY: by PEER-SETTLED the lock is initialised; exclusive access says that nobody
        // holds it or waits.
        unsafe { self.call(&P::calls().destroy) }
    }
}

macro_rules! peer {
    ($(#[$doc:meta])* $peer:ident, $built:ident, $name:literal, $package:literal) => {
        $(#[$doc])*
        pub struct $peer;

        impl ShimPeer for $peer {
            const NAME: &'static str = $name;
            const PACKAGE: &'static str = $package;
            #[cfg($built)]
            const SHIM: Option<&'static [u8]> =
                Some(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".so")));
            #[cfg(not($built))]
            const SHIM: Option<&'static [u8]> = None;

            #[inline(always)]
            fn calls() -> &'static ShimCalls {
                static CALLS: ShimCalls = ShimCalls::new();
                &CALLS
            }
        }
    };
}

peer!(
    /// The mutex `absl::Mutex` of abseil.
    Abseil, peer_abseil, "abseil", "libabsl-dev"
);
peer!(
    /// The mutex `nsync_mu` of nsync.
    Nsync, peer_nsync, "nsync", "libnsync-dev"
);
peer!(
    /// The mutex `tbb::mutex` of TBB.
    Tbb, peer_tbb, "tbb", "libtbb-dev"
);
