//! Sizes, and what may cross threads: checked by the compiler.

use lockstead::{
    CancelToken, Condvar, FairMutex, MappedMutexGuard, Mutex, MutexGuard, NamedMutex, Once,
    OnceLock, Owner, Permit, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, poison,
};
use std::cell::Cell;
use std::rc::Rc;

/// Compiles only if the type does not implement the trait: with both impls
/// applicable, the call is ambiguous.
macro_rules! assert_not {
    ($type:ty: $trait:ident) => {
        const _: fn() = || {
            trait Ambiguous<Marker> {
                fn check() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct HasIt;
            impl<T: ?Sized + $trait> Ambiguous<HasIt> for T {}
            let _check: fn() = <$type as Ambiguous<_>>::check;
        };
    };
}

const fn is_send<T: ?Sized + Send>() {}
const fn is_sync<T: ?Sized + Sync>() {}

const _: () = {
    is_send::<Mutex<u32>>();
    is_sync::<Mutex<u32>>();
    is_send::<FairMutex<u32>>();
    is_sync::<FairMutex<Cell<u32>>>();
    is_send::<NamedMutex<u32>>();
    is_sync::<NamedMutex<u32>>();
    is_sync::<Mutex<Cell<u32>>>();
    is_sync::<Mutex<dyn Send>>();
    is_sync::<MutexGuard<'_, u32>>();
    is_sync::<MappedMutexGuard<'_, u32>>();
    is_sync::<poison::Mutex<u32>>();
    is_sync::<CancelToken>();
    is_send::<CancelToken>();
    is_send::<Owner>();
    is_sync::<Condvar>();
    is_sync::<RwLock<u32>>();
    is_send::<RwLock<Cell<u32>>>();
    is_sync::<RwLockReadGuard<'_, u32>>();
    is_sync::<RwLockWriteGuard<'_, u32>>();
    is_sync::<Once>();
    is_sync::<OnceLock<u32>>();
    is_send::<OnceLock<Cell<u32>>>();
    is_sync::<Semaphore>();
    is_send::<Permit<'_>>();
};

assert_not!(MutexGuard<'_, u32>: Send);
assert_not!(MappedMutexGuard<'_, u32>: Send);
assert_not!(poison::MutexGuard<'_, u32>: Send);
assert_not!(MutexGuard<'_, Cell<u32>>: Sync);
assert_not!(MappedMutexGuard<'_, Cell<u32>>: Sync);
assert_not!(Mutex<Rc<u32>>: Sync);
assert_not!(Mutex<Rc<u32>>: Send);
assert_not!(NamedMutex<Rc<u32>>: Sync);
assert_not!(poison::Mutex<Rc<u32>>: Sync);
assert_not!(RwLock<Cell<u32>>: Sync);
assert_not!(RwLock<Rc<u32>>: Send);
assert_not!(RwLockReadGuard<'_, u32>: Send);
assert_not!(RwLockWriteGuard<'_, u32>: Send);
assert_not!(RwLockReadGuard<'_, Cell<u32>>: Sync);
assert_not!(RwLockWriteGuard<'_, Cell<u32>>: Sync);
assert_not!(OnceLock<Cell<u32>>: Sync);
assert_not!(OnceLock<Rc<u32>>: Send);
assert_not!(lockstead::lock_api::MutexGuard<'_, u32>: Send);
assert_not!(lockstead::lock_api::RwLockReadGuard<'_, u32>: Send);

// With the checks on, locks are larger.
#[cfg(not(feature = "check"))]
#[test]
fn the_mutex_is_eight_bytes() {
    assert_eq!(size_of::<Mutex<()>>(), 8);
    assert_eq!(size_of::<Mutex<[u64; 4]>>(), 8 + 32);
    assert_eq!(size_of::<MutexGuard<'_, ()>>(), size_of::<usize>());
    assert_eq!(size_of::<NamedMutex<()>>(), 8 + 3 * size_of::<usize>());
    assert_eq!(size_of::<Option<MutexGuard<'_, u8>>>(), size_of::<usize>());
    assert_eq!((size_of::<RwLock<()>>(), size_of::<Once>()), (16, 4));
    assert_eq!((size_of::<Condvar>(), size_of::<Semaphore>()), (8, 8));
}

#[test]
fn zeroes_are_a_free_mutex() {
    // SAFETY: all-zero bytes are a free mutex and a valid u32.
    let zeroed: Mutex<u32> = unsafe { std::mem::zeroed() };
    *zeroed.lock() += 1;
    assert_eq!(zeroed.into_inner(), 1);
}
