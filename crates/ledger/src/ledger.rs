//! A mapped ledger: its parts as slices, and how room is claimed in them.

use crate::breach::BreachRecord;
use crate::cells::NativeWord;
use crate::class::Class;
use crate::header::{Header, Layout, MAGIC, Region, VERSION};
use crate::lock::{Extension, LockRecord};
use crate::module::ModuleRecord;
use crate::order::EdgeRecord;
use crate::table::Table;
use crate::thread::{self, Thread, ThreadRecord};
use crate::token::Token;
use crate::usage::Usage;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// A view of a mapped ledger.
#[derive(Clone, Copy)]
pub struct Ledger<'a> {
    base: *const u8,
    layout: Layout,
    mapping: PhantomData<&'a Header>,
}

// SAFETY: a ledger is shared memory whose every field is an atomic.
unsafe impl Send for Ledger<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ledger<'_> {}

impl fmt::Debug for Ledger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("base", &self.base).field("layout", &self.layout).finish()
    }
}

/// Why a mapping is not a ledger that this version can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotALedger {
    /// The first words are others.
    Magic,
    /// Made by another version; the number.
    Version(u32),
    /// The layout is none that this version makes, or larger than the mapping.
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

/// A part in which room is claimed by raising a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Thread records.
    Threads,
    /// Lock records.
    Locks,
    /// Statistics.
    Extensions,
    /// Words of stacks.
    StackWords,
    /// Modules.
    Modules,
    /// Edges between locks.
    Edges,
    /// Breaches of rules.
    Breaches,
    /// Usages of semaphores.
    Usages,
}

/// How many parts there are.
pub const PARTS: usize = 8;

/// How many elements of each part have been claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent(pub [u64; PARTS]);

impl Extent {
    /// In the order of the numbers.
    const PARTS: [Part; PARTS] = [
        Part::Threads,
        Part::Locks,
        Part::Extensions,
        Part::StackWords,
        Part::Modules,
        Part::Edges,
        Part::Breaches,
        Part::Usages,
    ];

    /// Bytes of the file that exist if so many were claimed: whoever claims an
    /// element writes to it. Less, if more.
    #[must_use]
    pub fn least_bytes(&self) -> u64 {
        let sizes = [
            size_of::<ThreadRecord>(),
            size_of::<LockRecord>(),
            size_of::<Extension>(),
            size_of::<u64>(),
            size_of::<ModuleRecord>(),
            size_of::<EdgeRecord>(),
            size_of::<BreachRecord>(),
            size_of::<Usage>(),
        ];
        let all = self.0.iter().zip(sizes);
        all.fold(0, |sum: u64, (count, size)| sum.saturating_add(count.saturating_mul(size as u64)))
    }
}

impl<'a> Ledger<'a> {
    /// How much of it has been claimed.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent(Extent::PARTS.map(|part| self.used(part) as u64))
    }

    /// A view in which nothing lies beyond these numbers: for a reader who does
    /// not believe the counters.
    #[must_use]
    pub fn within(mut self, most: &Extent) -> Ledger<'a> {
        let [threads, locks, extensions, words, modules, edges, breaches, usages] = most.0;
        let layout = &mut self.layout;
        for (region, most) in [
            (&mut layout.threads, threads),
            (&mut layout.locks, locks),
            (&mut layout.extensions, extensions),
            (&mut layout.stacks, words),
            (&mut layout.classes, words),
            (&mut layout.modules, modules),
            (&mut layout.edges, edges),
            (&mut layout.breaches, breaches),
            (&mut layout.tokens, locks),
            (&mut layout.usages, usages),
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
    pub unsafe fn create(base: *mut u8, layout: Layout, pid: u32, now: u64) -> Ledger<'a> {
        // SAFETY: the caller's mapping; nobody else reads it yet.
        unsafe { (&raw mut (*base.cast::<Header>()).layout).write(layout) };
        let ledger = Ledger { base, layout, mapping: PhantomData };
        let header = ledger.header();
        header.version.store(VERSION, Relaxed);
        header.pid.store(pid, Relaxed);
        header.began.store(now, Relaxed);
        header.clock.0.store(now, Relaxed);
        // Index 0 means "none" in these.
        for first in [
            &header.locks_used,
            &header.extensions_used,
            &header.stack_words_used,
            &header.usages_used,
        ] {
            first.store(1, Relaxed);
        }
        header.magic.store(MAGIC, Release);
        ledger
    }

    /// A ledger that was made before, in this process or another.
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
        if size < Layout::SMALLEST {
            return Err(NotALedger::Layout);
        }
        // SAFETY: the mapping is larger than a header.
        let header = unsafe { &*base.cast::<Header>() };
        if header.magic.load(Acquire) != MAGIC {
            return Err(NotALedger::Magic);
        }
        let version = header.version.load(Relaxed);
        if version != VERSION {
            return Err(NotALedger::Version(version));
        }
        // SAFETY: the field lies in the mapping; a copy, read volatile, since a
        // hostile peer could change it between a check and a use.
        let layout = unsafe { (&raw const header.layout).read_volatile() };
        if !layout.is_sound() || layout.size > size {
            return Err(NotALedger::Layout);
        }
        Ok(Ledger { base, layout, mapping: PhantomData })
    }

    /// The address of the mapping.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.base
    }

    /// Where everything lies.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The first page.
    #[inline(always)]
    #[must_use]
    pub fn header(&self) -> &'a Header {
        // SAFETY: by the contract of `create` and `open` the mapping begins with
        // a header, whose changing fields are atomics.
        unsafe { &*self.base.cast() }
    }

    fn part<T>(&self, region: Region) -> &'a [T] {
        // SAFETY: the region lies in the mapping (`Layout::is_sound`), the
        // element types consist of atomics, and zero is valid for all of them.
        unsafe {
            core::slice::from_raw_parts(
                self.base.add(region.offset as usize).cast(),
                region.capacity as usize,
            )
        }
    }

    /// All lock records, used or not.
    #[must_use]
    pub fn locks(&self) -> &'a [LockRecord] {
        self.part(self.layout.locks)
    }

    /// All statistics, used or not.
    #[must_use]
    pub fn extensions(&self) -> &'a [Extension] {
        self.part(self.layout.extensions)
    }

    /// All modules, used or not.
    #[must_use]
    pub fn modules(&self) -> &'a [ModuleRecord] {
        self.part(self.layout.modules)
    }

    /// All classes, used or not: by the id of their stack.
    #[must_use]
    pub fn classes(&self) -> &'a [Class] {
        self.part(self.layout.classes)
    }

    pub(crate) fn tokens(&self) -> &'a [Token] {
        self.part(self.layout.tokens)
    }

    pub(crate) fn usages(&self) -> &'a [Usage] {
        self.part(self.layout.usages)
    }

    pub(crate) fn edges(&self) -> &'a [EdgeRecord] {
        self.part(self.layout.edges)
    }

    pub(crate) fn breaches(&self) -> &'a [BreachRecord] {
        self.part(self.layout.breaches)
    }

    pub(crate) fn stack_words(&self) -> &'a [AtomicU64] {
        self.part(self.layout.stacks)
    }

    /// The table from address to lock record.
    #[inline]
    #[must_use]
    pub fn address_table(&self) -> Table<'a> {
        let header = self.header();
        Table::new(
            self.part(self.layout.address_table),
            NativeWord::of(&header.address_level),
            NativeWord::of(&header.address_fill),
        )
    }

    pub(crate) fn stack_table(&self) -> Table<'a> {
        let header = self.header();
        Table::new(
            self.part(self.layout.stack_table),
            NativeWord::of(&header.stack_level),
            NativeWord::of(&header.stack_fill),
        )
    }

    /// The table from the hash of an edge to its first record.
    #[must_use]
    pub fn edge_table(&self) -> Table<'a> {
        let header = self.header();
        Table::new(
            self.part(self.layout.edge_table),
            NativeWord::of(&header.edge_level),
            NativeWord::of(&header.edge_fill),
        )
    }

    /// The thread with this index, used or not.
    #[inline]
    #[must_use]
    pub fn thread(&self, index: usize) -> Option<Thread<'a>> {
        let held = self.layout.held as usize;
        if index as u64 >= self.layout.threads.capacity {
            return None;
        }
        let at = self.layout.threads.offset as usize + index * thread::stride(held);
        // SAFETY: the index is below the capacity, so the thread's part lies in
        // the mapping.
        Some(unsafe { Thread::at(self.base.add(at), held) })
    }

    /// All threads whose records have ever been used.
    pub fn threads(&self) -> impl Iterator<Item = Thread<'a>> + use<'a> {
        let ledger = *self;
        (0..self.used(Part::Threads)).filter_map(move |index| ledger.thread(index))
    }

    fn counter(&self, part: Part) -> (&'a AtomicU64, u64) {
        let (header, layout) = (self.header(), &self.layout);
        match part {
            Part::Threads => (&header.threads_used, layout.threads.capacity),
            Part::Locks => (&header.locks_used, layout.locks.capacity),
            Part::Extensions => (&header.extensions_used, layout.extensions.capacity),
            Part::StackWords => (&header.stack_words_used, layout.stacks.capacity),
            Part::Modules => (&header.modules_used, layout.modules.capacity),
            Part::Edges => (&header.edges_used, layout.edges.capacity),
            Part::Breaches => (&header.breaches_used, layout.breaches.capacity),
            Part::Usages => (&header.usages_used, layout.usages.capacity),
        }
    }

    /// The number of elements that have been claimed, never above the capacity.
    #[must_use]
    pub fn used(&self, part: Part) -> usize {
        let (counter, capacity) = self.counter(part);
        // Index as 32 bits is all that records can say.
        counter.load(Acquire).min(capacity).min(u64::from(u32::MAX)) as usize
    }

    /// Claims `count` elements in a row and returns the first; `None` when there
    /// is no room (the caller counts the loss).
    pub fn claim(&self, part: Part, count: u64) -> Option<usize> {
        let (counter, capacity) = self.counter(part);
        let limit = capacity.min(u64::from(u32::MAX));
        let mut used = counter.load(Relaxed);
        loop {
            let after = used.checked_add(count).filter(|&after| after <= limit)?;
            // Acq_rel: readers take indices below the counter; what they find
            // there is complete or recognisably not (zero).
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
}
