//! Where simulated memory lies: one range of real memory, so that an address
//! gives its cache line by a subtraction, and its place in the line natively.
//!
//! # Invariants
//! - **ARENA-ONE-SIM** What is placed here is used by the tasks of one simulation, and by
//!   nobody once that is over. Then the memory is erased and used again.
//! - **ARENA-OWNS-NOTHING** What is placed here owns nothing.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::Cell;

/// The number of bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// The number of bytes of an arena: pages that are not touched cost nothing.
const BYTES: usize = 32 << 20;

/// The alignment of the whole.
const PAGE: usize = 4096;

thread_local! {
    /// The range of this thread while no simulation uses it.
    static IDLE: Cell<*mut u8> = const { Cell::new(std::ptr::null_mut()) };
}

/// The memory of one simulation.
pub(crate) struct Arena {
    base: *mut u8,
    used: usize,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let mut base = IDLE.replace(std::ptr::null_mut());
        if base.is_null() {
            // Asked for an alignment, the allocator would erase all of it by itself.
            let layout = Layout::array::<u8>(BYTES + PAGE).expect("a possible layout");
            // SAFETY: the layout is that of a block, which is not empty.
            let memory = unsafe { alloc_zeroed(layout) };
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            // SAFETY: less than a page further there are BYTES left.
            base = unsafe { memory.add(memory.addr().next_multiple_of(PAGE) - memory.addr()) };
        }
        Arena { base, used: 0 }
    }

    /// Puts a value on cache lines of its own.
    pub(crate) fn place<T>(&mut self, value: T) -> &'static T {
        const { assert!(!std::mem::needs_drop::<T>(), "M2") };
        let align = LINE.max(align_of::<T>());
        let at = self.used.next_multiple_of(align);
        let end = at + size_of::<T>();
        assert!(end <= BYTES, "a simulation may use {BYTES} bytes of memory");
        self.used = end.next_multiple_of(LINE);
        // SAFETY: the range from `at` to `end` lies in the arena, is aligned for T (the
        // base is aligned to a page, no type here to more), and given away once. The
        // reference is used within the simulation only (ARENA-ONE-SIM).
        unsafe {
            let place = self.base.add(at).cast::<T>();
            place.write(value);
            &*place
        }
    }

    /// Puts values on cache lines that they have to themselves, one behind the other.
    pub(crate) fn place_all<T>(&mut self, values: Vec<T>) -> &'static [T] {
        const { assert!(!std::mem::needs_drop::<T>(), "M2") };
        let align = LINE.max(align_of::<T>());
        let at = self.used.next_multiple_of(align);
        let end = at + size_of::<T>() * values.len();
        assert!(end <= BYTES, "a simulation may use {BYTES} bytes of memory");
        self.used = end.next_multiple_of(LINE);
        let many = values.len();
        // SAFETY: as in `place`, for each of them; the elements of a slice lie like this.
        unsafe {
            let first = self.base.add(at).cast::<T>();
            for (index, value) in values.into_iter().enumerate() {
                first.add(index).write(value);
            }
            std::slice::from_raw_parts(first, many)
        }
    }

    /// Returns the number of the line at `address`; `None` for memory outside, which is the
    /// caller's own.
    #[inline]
    pub(crate) fn line(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.base.addr());
        (offset < self.used).then_some(offset / LINE)
    }

    /// Returns an address as an offset, which is the same in every run.
    pub(crate) fn offset(&self, address: usize) -> usize {
        address.wrapping_sub(self.base.addr())
    }

    /// Returns the number of lines in use.
    pub(crate) fn lines(&self) -> usize {
        self.used / LINE
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range is the arena's, and nobody uses it any more (ARENA-ONE-SIM).
        unsafe { self.base.write_bytes(0, self.used) };
        IDLE.set(self.base);
        // A second arena of the thread was allocated meanwhile: it is the one that is
        // forgotten, which happens only if simulations are nested.
    }
}
