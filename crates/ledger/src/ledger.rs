//! A mapped ledger: its parts as slices, and how room is claimed in them.

use crate::cells::{Native, NativeWord};
use crate::class::ClassRecord;
use crate::growth::{GrowingArea, Growth};
use crate::header::{LedgerHeader, LedgerLayout, MAGIC, VERSION};
use crate::lock::{Extension, LockRecord};
use crate::module::ModuleRecord;
use crate::order::EdgeRecord;
use crate::ring::{EventRing, RingRecord};
use crate::shares::ShareChunk;
use crate::table::AddressTable;
use crate::thread::{self, ThreadPart, ThreadRecord};
use crate::usage::{SemaphoreUsage, Token};
use crate::violation::{SeenViolation, ViolationRecord};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

pub use crate::part::{Extent, LedgerPart, PARTS};

/// A view of a mapped ledger.
#[derive(Clone, Copy)]
pub struct Ledger<'a> {
    base: *const u8,
    layout: LedgerLayout,
    /// How far the ledger is mapped; `None`: the whole of it.
    growth: Option<&'static Growth>,
    mapping: PhantomData<&'a LedgerHeader>,
}

// SAFETY: LEDGER-ZERO, kept by the record types: all that changes in the shared memory is
// an atomic, so that any thread may use a view that another one made.
unsafe impl Send for Ledger<'_> {}
// SAFETY: LEDGER-ZERO, as for `Send`: several threads may use one view.
unsafe impl Sync for Ledger<'_> {}

impl fmt::Debug for Ledger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("base", &self.base).field("layout", &self.layout).finish()
    }
}

/// Why a mapping is not a ledger that this version can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotALedger {
    /// The first words are others than a ledger's.
    Magic,
    /// Another version made the ledger; the number says which.
    Version(u32),
    /// The layout is none that this version makes, or it is larger than the mapping.
    Layout,
}

impl fmt::Display for NotALedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotALedger::Magic => write!(f, "this is no ledger of lockstead"),
            NotALedger::Version(found) => write!(
                f,
                "the ledger has version {found}, this command reads version {VERSION}: \
                 the program was started by another version of lockstead"
            ),
            NotALedger::Layout => write!(f, "the ledger is damaged: its layout is impossible"),
        }
    }
}

impl core::error::Error for NotALedger {}

impl<'a> Ledger<'a> {
    /// Returns how much of the ledger has been claimed.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent(Extent::PARTS.map(|part| self.used(part) as u64))
    }

    /// Returns a view in which nothing lies beyond these numbers, for a reader who does not
    /// believe the counters.
    #[must_use]
    pub fn within(mut self, most: &Extent) -> Ledger<'a> {
        let [threads, locks, extensions, words, modules, edges, violations, usages, shares, rings] =
            most.0;
        let layout = &mut self.layout;
        for (region, most) in [
            (&mut layout.threads, threads),
            (&mut layout.locks, locks),
            (&mut layout.extensions, extensions),
            (&mut layout.stacks, words),
            (&mut layout.classes, words),
            (&mut layout.modules, modules),
            (&mut layout.edges, edges),
            (&mut layout.violations, violations),
            (&mut layout.tokens, locks),
            (&mut layout.usages, usages),
            (&mut layout.shares, shares),
            (&mut layout.rings, rings),
        ] {
            region.capacity = region.capacity.min(most);
        }
        self
    }

    /// Makes a ledger in a fresh mapping of zeroes.
    ///
    /// # Safety
    /// `base` is the page-aligned address of `layout.size` bytes of zeroes that
    /// are mapped read-write and shared, stay mapped for `'a`, and of which
    /// nobody else knows yet.
    #[must_use]
    pub unsafe fn create(base: *mut u8, layout: LedgerLayout, pid: u32, now: u64) -> Ledger<'a> {
        // SAFETY: the caller promises a mapping of `layout.size` bytes, which begin with
        // the header, and that nobody else knows of it yet.
        unsafe { (&raw mut (*base.cast::<LedgerHeader>()).layout).write(layout) };
        let ledger = Ledger { base, layout, growth: None, mapping: PhantomData };
        let header = ledger.header();
        header.version.store(VERSION, Relaxed);
        header.pid.store(pid, Relaxed);
        header.began.store(now, Relaxed);
        header.clock.0.store(now, Relaxed);
        // Index 0 means "none" in these parts, so that it counts as used.
        for first in [
            &header.locks_used,
            &header.extensions_used,
            &header.stack_words_used,
            &header.usages_used,
            &header.shares_used,
        ] {
            first.store(1, Relaxed);
        }
        header.magic.store(MAGIC, Release); // ord: LED-11 (release): the layout
        ledger
    }

    /// Returns a view of a ledger that was made before, in this process or another.
    ///
    /// # Errors
    /// Says why `base` is no ledger. Nothing in it is trusted: every index that
    /// a reader takes from it is checked where it is used.
    ///
    /// # Safety
    /// `base` is the page-aligned address of `size` bytes that are mapped
    /// readable and shared and stay mapped for `'a`. Methods that write need
    /// them mapped writable.
    pub unsafe fn open(base: *const u8, size: u64) -> Result<Ledger<'a>, NotALedger> {
        if size < LedgerLayout::SMALLEST {
            return Err(NotALedger::Layout);
        }
        // SAFETY: the caller promises `size` mapped bytes, which are more than a header by
        // the check above. What changes in it is an atomic (LEDGER-ZERO).
        let header = unsafe { &*base.cast::<LedgerHeader>() };
        // ord: LED-11 (acquire).
        if header.magic.load(Acquire) != MAGIC {
            return Err(NotALedger::Magic);
        }
        let version = header.version.load(Relaxed);
        if version != VERSION {
            return Err(NotALedger::Version(version));
        }
        // SAFETY: the field lies in the caller's mapping, and all bit patterns are numbers.
        // The read is volatile and makes a copy, since a hostile peer could change the
        // field between a check and a use (LEDGER-UNTRUSTED).
        let layout = unsafe { (&raw const header.layout).read_volatile() };
        if !layout.is_sound() || layout.size > size {
            return Err(NotALedger::Layout);
        }
        Ok(Ledger { base, layout, growth: None, mapping: PhantomData })
    }

    /// Returns the same ledger, of which only as much is mapped as `growth` says.
    #[must_use]
    pub fn growing(self, growth: &'static Growth) -> Self {
        Ledger { growth: Some(growth), ..self }
    }

    /// Returns the address of the mapping.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.base
    }

    /// Tells whether an address lies in the ledger.
    #[must_use]
    pub fn spans(&self, address: *const u8) -> bool {
        (address as usize).wrapping_sub(self.base as usize) < self.layout.size as usize
    }

    /// Returns where each part lies.
    #[must_use]
    pub fn layout(&self) -> &LedgerLayout {
        &self.layout
    }

    /// Returns the first page.
    #[inline(always)]
    #[must_use]
    pub fn header(&self) -> &'a LedgerHeader {
        // SAFETY: the callers of `create` and `open` promise a mapping that begins with a
        // header. What changes in it is an atomic (LEDGER-ZERO).
        unsafe { &*self.base.cast() }
    }

    fn part<T>(&self, area: GrowingArea) -> &'a [T] {
        let region = area.region(&self.layout);
        let capacity = match self.growth {
            None => region.capacity,
            Some(growth) => region.capacity.min(growth.reached(area) / size_of::<T>() as u64),
        };
        // SAFETY: `LedgerLayout::divide` and `LedgerLayout::is_sound` keep the region inside the
        // ledger, and `Growth` says up to where it is mapped (GROWTH-MAPPED). The elements
        // consist of atomics, for which every bit pattern is valid (LEDGER-ZERO).
        unsafe {
            core::slice::from_raw_parts(
                self.base.add(region.offset as usize).cast(),
                capacity as usize,
            )
        }
    }

    /// Returns all slots of a table, of which the levels that are open are mapped.
    fn slots(&self, area: GrowingArea) -> &'a [NativeWord] {
        let region = area.region(&self.layout);
        // SAFETY: `LedgerLayout::divide` and `LedgerLayout::is_sound` keep the region inside the
        // ledger. The table touches no level that is not open, and opens none that is not
        // mapped (GROWTH-UNTOUCHED).
        unsafe {
            core::slice::from_raw_parts(
                self.base.add(region.offset as usize).cast(),
                region.capacity as usize,
            )
        }
    }

    /// Tells whether the first `count` elements of the area can be used, and maps them if it
    /// must.
    fn reach(&self, area: GrowingArea, count: u64) -> bool {
        self.growth.is_none_or(|growth| growth.reach(area, count * area.element(&self.layout)))
    }

    /// Returns all lock records, used or not.
    #[must_use]
    pub fn locks(&self) -> &'a [LockRecord] {
        self.part(GrowingArea::Locks)
    }

    /// Returns all statistics, used or not.
    #[must_use]
    pub fn extensions(&self) -> &'a [Extension] {
        self.part(GrowingArea::Extensions)
    }

    /// Returns all modules, used or not.
    #[must_use]
    pub fn modules(&self) -> &'a [ModuleRecord] {
        self.part(GrowingArea::Modules)
    }

    /// Returns all classes, used or not, by the id of their stack.
    #[must_use]
    pub fn classes(&self) -> &'a [ClassRecord] {
        self.part(GrowingArea::Classes)
    }

    pub(crate) fn tokens(&self) -> &'a [Token] {
        self.part(GrowingArea::Tokens)
    }

    pub(crate) fn usages(&self) -> &'a [SemaphoreUsage] {
        self.part(GrowingArea::Usages)
    }

    pub(crate) fn share_chunks(&self) -> &'a [ShareChunk] {
        self.part(GrowingArea::Shares)
    }

    /// Returns the ring of events with this index, used or not. `None` if there is none.
    #[inline]
    #[must_use]
    pub fn ring(&self, index: usize) -> Option<EventRing<'a, Native>> {
        let slots = self.layout.ring_slots as usize;
        let stride = RingRecord::stride(slots);
        let end = (index as u64).saturating_add(1).saturating_mul(stride as u64);
        if index as u64 >= self.layout.rings.capacity
            || self.growth.is_some_and(|growth| end > growth.reached(GrowingArea::Rings))
        {
            return None;
        }
        let at = self.layout.rings.offset as usize + index * stride;
        // SAFETY: the index is below the capacity, so the layout has room for the ring with so many
        // slots, and `Growth` says that it is mapped (GROWTH-MAPPED). Base and offset are multiples
        // of a page.
        Some(unsafe { RingRecord::at(self.base.add(at), slots) })
    }

    pub(crate) fn edges(&self) -> &'a [EdgeRecord] {
        self.part(GrowingArea::Edges)
    }

    pub(crate) fn violations(&self) -> &'a [ViolationRecord] {
        self.part(GrowingArea::Violations)
    }

    pub(crate) fn stack_words(&self) -> &'a [AtomicU64] {
        self.part(GrowingArea::Stacks)
    }

    /// Returns the table from address to lock record.
    #[inline]
    #[must_use]
    pub fn address_table(&self) -> AddressTable<'a> {
        let header = self.header();
        AddressTable::new(
            self.slots(GrowingArea::AddressTable),
            NativeWord::of(&header.address_level),
            NativeWord::of(&header.address_fill),
        )
        .growing(self.growth, GrowingArea::AddressTable)
    }

    pub(crate) fn stack_table(&self) -> AddressTable<'a> {
        let header = self.header();
        AddressTable::new(
            self.slots(GrowingArea::StackTable),
            NativeWord::of(&header.stack_level),
            NativeWord::of(&header.stack_fill),
        )
        .growing(self.growth, GrowingArea::StackTable)
    }

    /// Returns the table from the hash of an edge to its first record.
    #[must_use]
    pub fn edge_table(&self) -> AddressTable<'a> {
        let header = self.header();
        AddressTable::new(
            self.slots(GrowingArea::EdgeTable),
            NativeWord::of(&header.edge_level),
            NativeWord::of(&header.edge_fill),
        )
        .growing(self.growth, GrowingArea::EdgeTable)
    }

    /// Returns the thread with this index, used or not; `None` beyond what is mapped.
    #[inline]
    #[must_use]
    pub fn thread(&self, index: usize) -> Option<ThreadPart<'a>> {
        let held = self.layout.held as usize;
        let end = (index as u64).saturating_add(1).saturating_mul(thread::stride(held) as u64);
        if index as u64 >= self.layout.threads.capacity
            || self.growth.is_some_and(|growth| end > growth.reached(GrowingArea::Threads))
        {
            return None;
        }
        let at = self.layout.threads.offset as usize + index * thread::stride(held);
        // SAFETY: the index is below the capacity, so the layout has room for the thread's
        // part, and `Growth` says that it is mapped (GROWTH-MAPPED).
        Some(unsafe { ThreadPart::at(self.base.add(at), held) })
    }

    /// Returns all threads whose records have ever been used.
    pub fn threads(&self) -> impl Iterator<Item = ThreadPart<'a>> + use<'a> {
        let ledger = *self;
        (0..self.used(LedgerPart::Threads)).filter_map(move |index| ledger.thread(index))
    }

    /// Returns the serial number of the thread that has this handle, or had it last; 0 if none is
    /// known.
    #[must_use]
    pub fn thread_of(&self, handle: u64) -> u32 {
        let of = |record: &&ThreadRecord| {
            record.handle.load(Relaxed) == handle && !record.is_handle_released()
        };
        let threads = self.threads().map(|thread| thread.record).filter(of);
        let serials = threads.map(|record| record.serial.load(Relaxed));
        serials.max().unwrap_or(0)
    }

    fn counter(&self, part: LedgerPart) -> (&'a AtomicU64, u64) {
        let (header, layout) = (self.header(), &self.layout);
        match part {
            LedgerPart::Threads => (&header.threads_used, layout.threads.capacity),
            LedgerPart::Locks => (&header.locks_used, layout.locks.capacity),
            LedgerPart::Extensions => (&header.extensions_used, layout.extensions.capacity),
            LedgerPart::StackWords => (&header.stack_words_used, layout.stacks.capacity),
            LedgerPart::Modules => (&header.modules_used, layout.modules.capacity),
            LedgerPart::Edges => (&header.edges_used, layout.edges.capacity),
            LedgerPart::Violations => (&header.violations_used, layout.violations.capacity),
            LedgerPart::Usages => (&header.usages_used, layout.usages.capacity),
            LedgerPart::Shares => (&header.shares_used, layout.shares.capacity),
            LedgerPart::Rings => (&header.rings_used, layout.rings.capacity),
        }
    }

    /// Returns the number of elements that have been claimed, never above the capacity.
    #[must_use]
    pub fn used(&self, part: LedgerPart) -> usize {
        let (counter, capacity) = self.counter(part);
        let mapped = |growth: &Growth| {
            let areas = part.areas().iter();
            let all = areas.map(|&area| growth.reached(area) / area.element(&self.layout));
            all.min().unwrap_or(0)
        };
        let capacity = self.growth.map_or(capacity, |growth| capacity.min(mapped(growth)));
        // Records have 32 bits for an index.
        // ord: LED-12 (acquire).
        counter.load(Acquire).min(capacity).min(u64::from(u32::MAX)) as usize
    }

    /// Claims `count` elements in a row and returns the first. Returns `None` when there is
    /// no room; the caller counts the loss.
    pub fn claim(&self, part: LedgerPart, count: u64) -> Option<usize> {
        let (counter, capacity) = self.counter(part);
        let limit = capacity.min(u64::from(u32::MAX));
        let mut used = counter.load(Relaxed);
        loop {
            let after = used.checked_add(count).filter(|&after| after <= limit)?;
            if !part.areas().iter().all(|&area| self.reach(area, after)) {
                return None;
            }
            // ord: LED-12 (acq_rel): readers take indices below the counter. What they find
            // there is complete, or zero, by which they know that it is not.
            match counter.compare_exchange_weak(
                used,
                after,
                core::sync::atomic::Ordering::AcqRel,
                Relaxed,
            ) {
                Ok(_) => return Some(used as usize),
                Err(found) => used = found,
            }
        }
    }

    /// Leaves a violation, and returns its number. Counts a loss when there is no room.
    pub fn add_violation(&self, violation: &SeenViolation) -> Option<usize> {
        let Some(index) = self.claim(LedgerPart::Violations, 1) else {
            self.header().losses.violations.fetch_add(1, Relaxed);
            return None;
        };
        self.violations()[index].write(violation);
        Some(index)
    }

    /// Returns the record with this number; `None` beyond the last one.
    #[must_use]
    pub fn violation(&self, index: usize) -> Option<&'a ViolationRecord> {
        self.violations().get(index).filter(|_| index < self.used(LedgerPart::Violations))
    }
}
