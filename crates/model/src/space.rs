//! Where model memory lies, so that a location has the same name in every
//! execution whatever address the allocator chose.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// A region of memory that lies still for the whole search.
#[derive(Clone, Debug)]
struct StillRegion {
    range: Range<usize>,
    name: Name,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    /// The value shared by the threads of a scenario.
    Shared,
    /// The table of participants, with the size of a slot.
    Slots(usize),
    /// The stack of a thread.
    Stack(usize),
}

/// An address, by the region in which it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegionAddress {
    name: Name,
    offset: usize,
}

impl RegionAddress {
    /// Tells whether a 64-bit value here may be a lock's state word: in a slot it is
    /// a heartbeat.
    pub(crate) fn may_hold_a_word(&self) -> bool {
        !matches!(self.name, Name::Slots(_))
    }
}

impl fmt::Display for RegionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Name::Shared => write!(f, "shared+{:#x}", self.offset),
            Name::Slots(size) => {
                write!(f, "slot {}+{:#x}", self.offset / size + 1, self.offset % size)
            }
            Name::Stack(thread) => write!(f, "stack of thread {thread}-{:#x}", self.offset),
        }
    }
}

thread_local! {
    /// Tables of participants live for ever (PLATFORM-FOREVER), one for
    /// each thread of the operating system that runs searches.
    static SLOTS: RefCell<Vec<(Range<usize>, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Makes a table of participants known to the searches of this thread.
pub(crate) fn announce_slots<T>(slots: &'static [T]) {
    let range = slots.as_ptr_range();
    let range = range.start.addr()..range.end.addr();
    SLOTS.with_borrow_mut(|all| all.push((range, size_of::<T>())));
}

/// The memory of one search.
#[derive(Default)]
pub(crate) struct Space {
    regions: Vec<StillRegion>,
    /// Tables of participants already among the regions.
    tables: usize,
}

impl Space {
    pub(crate) fn shared(&mut self, start: usize, size: usize) {
        self.regions.push(StillRegion { range: start..start + size, name: Name::Shared });
    }

    pub(crate) fn stack(&mut self, thread: usize, range: Range<usize>) {
        self.regions.push(StillRegion { range, name: Name::Stack(thread) });
    }

    /// Returns the place at `address`; `None` for memory that may move.
    pub(crate) fn place(&mut self, address: usize) -> Option<RegionAddress> {
        SLOTS.with_borrow(|all| {
            for (range, size) in &all[self.tables..] {
                self.regions.push(StillRegion { range: range.clone(), name: Name::Slots(*size) });
            }
            self.tables = all.len();
        });
        let region = self.regions.iter().find(|r| r.range.contains(&address))?;
        let offset = match region.name {
            // Stacks grow downwards from a fixed top.
            Name::Stack(_) => region.range.end - address,
            _ => address - region.range.start,
        };
        Some(RegionAddress { name: region.name, offset })
    }

    /// Returns the name of what lies at this address, as a number.
    pub(crate) fn key_at(&mut self, address: usize) -> Option<u64> {
        self.place(address).map(Space::key)
    }

    /// Returns the name of a place as a number.
    pub(crate) fn key(place: RegionAddress) -> u64 {
        let region = match place.name {
            Name::Shared => 1,
            Name::Slots(_) => 2,
            Name::Stack(thread) => 3 + thread as u64,
        };
        region << 40 | place.offset as u64
    }
}
