//! Maps the ledger into the program's address space: little of it at first, more as it
//! is needed.
//!
//! # Role
//! Address space counts against the program's limit (`RLIMIT_AS`), used or not, and a
//! program may set one at any time, or another process for it. So each area of the
//! ledger is mapped as far as it is used, and a little further. What cannot grow is
//! full: the loss is counted, as if the file ended there.
//!
//! # Protocol
//! The areas lie far below where the kernel puts mappings, with nothing but gaps
//! between. An area grows in place, by `mremap`, which needs no descriptor of the file
//! and takes nothing else's place. Then [`GROWTH`] is told. Of two threads that try the
//! same at once one is refused, and waits until the other one has told how far it came.
//! No signal is handled between the growth and the word of it.

use crate::{state, sys};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use lockstead_ledger::LedgerLayout;
use lockstead_ledger::growth::{AREAS, GrowingArea, Growth};

/// How far this process's ledger is mapped.
pub static GROWTH: Growth = Growth { reached: [const { AtomicU64::new(0) }; AREAS], more };

/// The steps in which sizes are reckoned. Where the kernel's pages are larger, it rounds each size up to
/// them, and no two pieces share one ([`LARGEST_PAGE`](lockstead_ledger::LARGEST_PAGE)).
const PAGE: u64 = 4096;

/// The distance from where the kernel puts mappings down to the ledger: what the program maps
/// meanwhile comes to lie there, and not between the areas.
const APART: u64 = 1 << 38;

/// The part of a limited address space that the ledger may grow to, as a divisor.
const SHARE: u64 = 8;

/// Returns the bytes of an area, in whole pages.
fn whole(area: GrowingArea, layout: &LedgerLayout) -> u64 {
    area.bytes(layout).next_multiple_of(PAGE)
}

/// Returns the bytes of an area that are mapped at first.
fn first(area: GrowingArea, layout: &LedgerLayout) -> u64 {
    let bytes = match area {
        GrowingArea::Threads => 2 * area.element(layout),
        // The first level.
        GrowingArea::AddressTable | GrowingArea::StackTable | GrowingArea::EdgeTable => {
            8 << lockstead_ledger::table::FIRST
        }
        // Most runs are not recorded.
        GrowingArea::Rings => PAGE,
        _ => (64 << 10_u64).max(area.element(layout)),
    };
    bytes.next_multiple_of(PAGE).min(whole(area, layout))
}

/// Returns the pieces that are mapped: offset and bytes of each.
fn pieces(layout: &LedgerLayout, reached: &[u64; AREAS]) -> impl Iterator<Item = (u64, u64)> {
    let areas = GrowingArea::ALL.map(|area| (area.region(layout).offset, reached[area as usize]));
    [(0, PAGE)].into_iter().chain(areas)
}

/// Returns how far the areas are mapped now.
#[must_use]
pub fn reached() -> [u64; AREAS] {
    GROWTH.reached.each_ref().map(|bytes| bytes.load(Relaxed))
}

/// Says how far they are. For one thread, while nobody else looks: a child of `fork` has none of
/// the threads that were at it.
pub fn set(reached: &[u64; AREAS]) {
    GROWING.store(0, Relaxed);
    REFUSED.iter().for_each(|size| size.store(0, Relaxed));
    for (place, &bytes) in GROWTH.reached.iter().zip(reached) {
        place.store(bytes, Relaxed);
    }
}

/// Maps the beginnings of the areas of a new ledger, each piece by `map` (address,
/// offset, bytes), and returns the base. `None`, and nothing mapped, if they found no
/// room.
///
/// # Safety
/// `map` maps the ledger's file there and takes nothing else's place.
pub unsafe fn place(layout: &LedgerLayout, map: impl Fn(u64, u64, u64) -> bool) -> Option<*mut u8> {
    let here = sys::map_private(PAGE as usize).ok()?;
    // SAFETY: the page was mapped just now, and nobody uses it.
    unsafe { sys::unmap(here, PAGE as usize) };
    let base = free_of_parents(lower(here as u64, APART, layout)?, layout)?;
    // A child goes on with work on its parent's ledger that a handler has interrupted,
    // and finds what that had reached.
    let before = |area| GROWTH.reached[area as usize].load(Relaxed).min(whole(area, layout));
    set(&GrowingArea::ALL.map(|area| first(area, layout).max(before(area))));
    for (done, (offset, bytes)) in pieces(layout, &reached()).enumerate() {
        if !map(base + offset, offset, bytes) {
            // SAFETY: the pieces were mapped above, and nobody uses them.
            unsafe { unmap(base as *mut u8, layout, done) };
            return None;
        }
    }
    Some(base as *mut u8)
}

/// Returns the base of a ledger that ends this far below an address.
fn lower(address: u64, apart: u64, layout: &LedgerLayout) -> Option<u64> {
    Some(address.checked_sub(apart)?.checked_sub(layout.size)? & !((2 << 20) - 1))
}

/// Returns that base, or one below the ledger of the process that this one was forked from. There
/// is empty memory now (see `fork`), about where the kernel's first free place leads a
/// child as well: it would be in the way of what is mapped first, or of what grows.
fn free_of_parents(base: u64, layout: &LedgerLayout) -> Option<u64> {
    // SAFETY: a process that places a ledger has one thread and no ledger yet.
    let Some(parents) = (unsafe { state::of_parent() }) else { return Some(base) };
    let (from, size) = (parents.base() as u64, parents.layout().size);
    let apart = base + layout.size <= from || from + size <= base;
    if apart { Some(base) } else { lower(from, 0, layout) }
}

/// Notes that the whole of the ledger is mapped.
pub fn is_whole(layout: &LedgerLayout) {
    set(&GrowingArea::ALL.map(|area| whole(area, layout)));
}

/// Gives the first pieces of a ledger back.
///
/// # Safety
/// They are mapped, and nobody uses them any more.
pub unsafe fn unmap(base: *mut u8, layout: &LedgerLayout, count: usize) {
    for (offset, bytes) in pieces(layout, &reached()).take(count) {
        // SAFETY: the caller promises that nobody uses the memory of the ledger any more.
        unsafe { sys::unmap(base.wrapping_add(offset as usize), bytes as usize) };
    }
}

/// The number of all pieces.
pub const ALL: usize = AREAS + 1;

/// Maps empty memory, of this process alone, where its parent has the ledger.
pub fn map_empty(base: *const u8, layout: &LedgerLayout) -> bool {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    pieces(layout, &reached()).all(|(offset, bytes)| {
        let (place, bytes) = (base as usize + offset as usize, bytes as usize);
        // SAFETY: the kernel maps only where nothing is; children and core dumps do without the
        // memory.
        unsafe {
            let arguments = [place, bytes, protection, flags as usize, usize::MAX, 0];
            let mapped = sys::call(libc::SYS_mmap, arguments) == Ok(place);
            if mapped {
                forget_in_children(place, bytes);
            }
            mapped
        }
    })
}

/// Keeps this memory from children and core dumps.
///
/// # Safety
/// It is the library's own.
pub unsafe fn forget_in_children(place: usize, bytes: usize) {
    for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
        // SAFETY: the caller promises that the memory is a mapping of the ledger's.
        let _ = unsafe { sys::call(libc::SYS_madvise, [place, bytes, advice as usize, 0, 0, 0]) };
    }
}

/// Returns the soft limit of a resource, all ones for none.
#[must_use]
pub fn limit(resource: u32) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let place = &raw mut limit as usize;
    // SAFETY: the kernel writes its answer to a structure on this stack.
    let asked = unsafe { sys::call(libc::SYS_prlimit64, [0, resource as usize, 0, place, 0, 0]) };
    if asked.is_ok() { limit.rlim_cur } else { u64::MAX }
}

/// Maps more of an area, as [`Growth::more`] says.
#[cold]
fn more(area: GrowingArea, bytes: u64) -> bool {
    let Some(ledger) = state::ledger() else { return false };
    let layout = ledger.layout();
    let (whole, bytes) = (whole(area, layout), bytes.next_multiple_of(PAGE));
    if bytes > whole {
        return false;
    }
    let place = ledger.base() as u64 + area.region(layout).offset;
    let known = &GROWTH.reached[area as usize];
    let mut patience = PATIENCE;
    loop {
        // ord: LED-10 (acquire): the mapping.
        let from = known.load(Acquire);
        if bytes <= from {
            return true;
        }
        let wished = (2 * from).clamp(bytes, whole);
        let others = without_signals(|| {
            // ord: LED-10 (acq_rel): what those that have ended have come to.
            GROWING.fetch_add(1, AcqRel);
            let can = |&to: &u64| is_fair(to - from) && grow(place, from, to);
            if let Some(to) = [wished, bytes].into_iter().find(can) {
                // ord: LED-10 (release): the mapping.
                known.fetch_max(to, Release);
            }
            // ord: LED-10 (acq_rel): as above.
            GROWING.fetch_sub(1, AcqRel) > 1
        });
        // ord: LED-10 (acquire): the mapping.
        if known.load(Acquire) == from {
            let refused = &REFUSED[area as usize];
            if !others {
                refused.store(from, Relaxed);
            }
            // Otherwise another thread may have been faster, and has not said how far it came.
            if refused.load(Relaxed) == from || patience == 0 {
                return false;
            }
            patience -= 1;
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
            let pause = &raw const pause as usize;
            // SAFETY: the kernel reads a time on this stack.
            let _ = unsafe { sys::call(libc::SYS_nanosleep, [pause, 0, 0, 0, 0, 0]) };
        }
    }
}

/// The number of threads that try to let an area grow.
static GROWING: AtomicU32 = AtomicU32::new(0);

/// The size of each area at which a thread that tried alone was refused: such an area is
/// full, and nobody sleeps for it. Whoever comes still tries, for a limit may have been raised.
static REFUSED: [AtomicU64; AREAS] = [const { AtomicU64::new(0) }; AREAS];

/// How often a thread sleeps for another one that tries, which the scheduler may have put aside: a
/// second in all.
const PATIENCE: u32 = 10_000;

/// Runs `body` with all signals blocked, those of the C library included. A handler that waited or
/// jumped away between a growth and the word of it would leave the area larger than anybody knows,
/// and then it could never grow again.
fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    let (all, mut before) = (u64::MAX, 0_u64);
    let set = |how: i32, new: *const u64, old: *mut u64| {
        let arguments = [how as usize, new as usize, old as usize, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel reads and writes sets of 64 signals on this stack.
        unsafe { sys::call(libc::SYS_rt_sigprocmask, arguments) }
    };
    let blocked = set(libc::SIG_SETMASK, &raw const all, &raw mut before);
    let result = body();
    if blocked.is_ok() {
        let _ = set(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
    }
    result
}

/// Tells whether the ledger may take so many bytes more.
fn is_fair(bytes: u64) -> bool {
    let space = limit(libc::RLIMIT_AS);
    space == u64::MAX || reached().iter().sum::<u64>() + bytes <= space / SHARE
}

fn grow(place: u64, from: u64, to: u64) -> bool {
    let arguments = [place as usize, from as usize, to as usize, 0, 0, 0];
    // SAFETY: the kernel grows the mapping in place, or refuses: the memory after an area is
    // nobody's.
    unsafe { sys::call(libc::SYS_mremap, arguments) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps a piece of the file as a kernel with such pages does, which rounds its size up.
    fn map(file: usize, place: u64, offset: u64, bytes: u64) -> bool {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as usize;
        let arguments = [place as usize, bytes as usize, protection, flags, file, offset as usize];
        // SAFETY: the kernel maps only where nothing is.
        unsafe { sys::call(libc::SYS_mmap, arguments) == Ok(place as usize) }
    }

    #[test]
    fn all_parts_grow_to_their_ends_on_kernels_with_larger_pages() {
        let layout = LedgerLayout::divide(LedgerLayout::SMALLEST);
        let here = sys::map_private(1).expect("a page") as u64;
        // Far from where the other tests' threads map.
        let base = lower(here, 2 * APART, &layout).expect("room below");
        for page in [4096, 16 << 10, 64 << 10] {
            // SAFETY: the kernel reads a name that lives on, and makes a file.
            let file = unsafe {
                sys::call(libc::SYS_memfd_create, [c"t".as_ptr() as usize, 0, 0, 0, 0, 0])
            };
            let file = file.expect("a file");
            // SAFETY: the call takes numbers; the file was made above.
            let sized =
                unsafe { sys::call(libc::SYS_ftruncate, [file, layout.size as usize, 0, 0, 0, 0]) };
            assert!(sized.is_ok());
            let firsts = GrowingArea::ALL.map(|area| first(area, &layout));
            for (offset, bytes) in pieces(&layout, &firsts) {
                assert_eq!(offset % page, 0, "the kernel maps at multiples of {page}");
                assert!(
                    map(file, base + offset, offset, bytes.next_multiple_of(page)),
                    "{offset:#x}"
                );
            }
            for area in GrowingArea::ALL {
                let [from, to] = [first(area, &layout), whole(area, &layout)]
                    .map(|bytes| bytes.next_multiple_of(page));
                let place = base + area.region(&layout).offset;
                assert!(grow(place, from, to), "{area:?} meets another part, with pages of {page}");
                // SAFETY: the last byte of what was mapped above, which no other thread knows; beyond the
                // end of the file this would end the test.
                unsafe { ((place + to - 1) as *mut u8).write_volatile(1) };
            }
            // SAFETY: the pieces were mapped above, and only this test knows them.
            unsafe { sys::unmap(base as *mut u8, layout.size as usize) };
            sys::close(file);
        }
        // SAFETY: `map_private` mapped the page above, and nobody reads or writes it.
        unsafe { sys::unmap(here as *mut u8, 1) };
    }
}
