//! Stands before `free`, `realloc`, `munmap` and their like, in the library that checks: locks in
//! that memory are no more.
//!
//! These are called where nothing else of ours is: by the loader before the first
//! constructor, and inside the look-up of the real functions. Nothing here
//! allocates, and before the real functions are known what is to be freed is
//! leaked rather than waited for.

use crate::order::lives::gone;
use crate::real::{self, REAL};
use crate::rules::Gone;
use crate::site::CallSite;
use crate::{modules, state, sys, tls};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

crate::passing! {
    free(1) => before_free;
    realloc(2) => before_realloc;
    reallocarray(3) => before_reallocarray;
    munmap(2) => before_munmap;
}

crate::thunk! {
    mremap(5) => remap;
}

/// Exports `mmap` under its names. It has six arguments, which all stay in their registers.
macro_rules! mapping {
    ($($name:ident: $real:ident;)*) => { $(
        crate::mapping_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name: $real => before_mmap
        }
    )* };
}

mapping! {
    mmap: mmap;
    mmap64: mmap64;
}

/// Fills the table of real functions, unless that is being done further up this
/// stack: says whether it is full.
fn resolve() -> bool {
    if real::resolved() {
        return true;
    }
    // Nobody has made a thread pointer before the first constructor.
    let words = tls::words();
    if words.resolving.swap(1, Relaxed) == 0 {
        real::resolve();
        words.resolving.store(0, Relaxed);
    }
    real::resolved()
}

/// Stands in for a function that is not known yet: frees nothing, and gets none.
unsafe extern "C" fn nothing() -> usize {
    0
}

/// The function that says how large a block is; 1: there is none that fits.
static SIZE: AtomicUsize = AtomicUsize::new(0);

/// Returns the function of the allocator whose blocks `free` frees.
#[cold]
fn find_size() -> usize {
    let (free, size) = (REAL.free.address(), REAL.malloc_usable_size.address());
    // A program may bring an allocator that does not say.
    let found = if modules::are_together(free as u64, size as u64) { size } else { 1 };
    SIZE.store(found, Relaxed);
    found
}

/// Returns the bytes of a block; zero if nobody says.
#[inline]
unsafe fn size_of_block(block: *mut c_void) -> u64 {
    let function = match SIZE.load(Relaxed) {
        0 => find_size(),
        found => found,
    };
    if function == 1 {
        return 0;
    }
    // SAFETY: `function` is the `malloc_usable_size` of the allocator that made the block, which
    // the program passes.
    unsafe {
        let function: unsafe extern "C" fn(*mut c_void) -> usize = core::mem::transmute(function);
        function(block) as u64
    }
}

/// Ends the lives of the locks in a block of the allocator's that goes, or may.
#[inline]
unsafe fn block_goes(block: *mut c_void, how: Gone, site: &CallSite) {
    if !block.is_null() && state::ledger().is_some() {
        let low = block as u64;
        // SAFETY: INTERPOSE-ARGUMENTS: the program passes a block of this allocator.
        gone(low, low + unsafe { size_of_block(block) }, how, site);
    }
}

unsafe extern "C" fn before_free(block: *mut c_void, site: &CallSite) -> usize {
    if !resolve() {
        return nothing as *const () as usize;
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { block_goes(block, Gone::Freed, site) };
    REAL.free.address()
}

unsafe extern "C" fn before_realloc(block: *mut c_void, _: usize, site: &CallSite) -> usize {
    if !resolve() {
        return nothing as *const () as usize;
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { block_goes(block, Gone::Moved, site) };
    REAL.realloc.address()
}

unsafe extern "C" fn before_reallocarray(
    block: *mut c_void,
    _: usize,
    _: usize,
    site: &CallSite,
) -> usize {
    if !resolve() {
        return nothing as *const () as usize;
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { block_goes(block, Gone::Moved, site) };
    REAL.reallocarray.address()
}

/// Ends the lives of the locks in these pages: the kernel takes the last one whole.
fn pages_go(low: usize, length: usize, site: &CallSite) {
    if state::ledger().is_some() {
        let length = length.checked_next_multiple_of(sys::page()).unwrap_or(length);
        gone(low as u64, (low as u64).saturating_add(length as u64), Gone::Unmapped, site);
    }
}

/// Returns what the kernel takes from a mapping that shrinks from `old` to `new` bytes: the distance
/// from the mapping's beginning, and the bytes.
fn cut_off(old: usize, new: usize, page: usize) -> Option<(usize, usize)> {
    let old = old.checked_next_multiple_of(page)?;
    let new = new.checked_next_multiple_of(page)?;
    (new < old).then(|| (new, old - new))
}

unsafe extern "C" fn before_munmap(address: *mut c_void, length: usize, site: &CallSite) -> usize {
    if !resolve() {
        return nothing as *const () as usize;
    }
    // A call that is going to be refused takes nothing.
    if (address as usize).is_multiple_of(sys::page()) {
        pages_go(address as usize, length, site);
    }
    REAL.munmap.address()
}

unsafe extern "C" fn before_mmap(
    address: *mut c_void,
    length: usize,
    _: c_int,
    flags: c_int,
    site: &CallSite,
) {
    // It does not allocate, and so the look-up does not come back here.
    real::resolve();
    if flags & libc::MAP_FIXED != 0
        && flags & libc::MAP_FIXED_NOREPLACE != libc::MAP_FIXED_NOREPLACE
    {
        pages_go(address as usize, length, site);
    }
}

unsafe extern "C" fn remap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
    site: &CallSite,
) -> *mut c_void {
    if !resolve() {
        return libc::MAP_FAILED;
    }
    if let Some((from, length)) = cut_off(old, new, sys::page()) {
        pages_go((address as usize).saturating_add(from), length, site);
    }
    if flags & libc::MREMAP_FIXED != 0 {
        pages_go(to as usize, new, site);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { real::call::mremap()(address, old, new, flags, to) };
    if answer != libc::MAP_FAILED && answer != address && flags & libc::MREMAP_DONTUNMAP == 0 {
        pages_go(address as usize, old, site);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_loses_whole_pages_of_the_kernels() {
        assert_eq!(cut_off(8192, 4096, 4096), Some((4096, 4096)));
        assert_eq!(cut_off(8192, 100, 4096), Some((4096, 4096)));
        assert_eq!(cut_off(8000, 4097, 4096), None);
        assert_eq!(cut_off(8192, 4096, 16 << 10), None, "all of it is one page");
        assert_eq!(cut_off(80 << 10, 1, 64 << 10), Some((64 << 10, 64 << 10)));
        assert_eq!(cut_off(4096, 8192, 4096), None);
        assert_eq!(cut_off(usize::MAX, 1, 4096), None, "the kernel refuses it");
    }
}
