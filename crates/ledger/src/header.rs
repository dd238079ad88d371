//! The first page of a ledger: where everything lies, and the coarse clock.

use crate::cells::Native;
use crate::lock::{Extension, LockRecord};
use crate::module::ModuleRecord;
use crate::order::EdgeRecord;
use crate::publish::{HeldEntry, RAREST};
use crate::ring::{FEW_RING_EVENTS, RING_EVENTS, RingRecord};
use crate::shares::ShareChunk;
use crate::table;
use crate::thread::{self, Retired};
use crate::usage::{SemaphoreUsage, Token};
use crate::violation::ViolationRecord;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// First word of every ledger: "lockstea" in ASCII.
pub const MAGIC: u64 = u64::from_le_bytes(*b"lockstea");

/// The version of the layout. The command reads its own library's ledgers only.
pub const VERSION: u32 = 10;

/// The largest page of a kernel on which programs are watched, in bytes: that of aarch64. The parts of a
/// ledger, which are mapped one by one, begin at multiples of it, so that a layout depends on its size alone.
/// What lies between two parts is in no memory, for nobody writes to it.
pub const LARGEST_PAGE: u64 = 64 << 10;

/// The most holds for which one timed hold stands.
pub const SAMPLE: u32 = 1 << RAREST;

/// The binary logarithm of the nanoseconds in a step of the coarse clock: 66 µs.
pub const TICK_SHIFT: u32 = 16;

/// Returns the step of the coarse clock at a time of `CLOCK_MONOTONIC` in nanoseconds. The
/// number comes again after three days.
#[inline(always)]
#[must_use]
pub const fn tick_of(ns: u64) -> u32 {
    (ns >> TICK_SHIFT) as u32
}

/// A part of the ledger that is an array.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LedgerRegion {
    /// Bytes from the beginning of the ledger.
    pub offset: u64,
    /// The number of its elements.
    pub capacity: u64,
}

/// The place where everything lies. The library writes it once, before it shares the ledger.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LedgerLayout {
    /// Bytes of the whole ledger, most of which nobody ever touches.
    pub size: u64,
    /// The threads, whose parts are [`thread::stride`] of `held` bytes apart.
    pub threads: LedgerRegion,
    /// The number of entries of each thread's held stack.
    pub held: u64,
    /// The array of [`LockRecord`]s. Index 0 is never used.
    pub locks: LedgerRegion,
    /// The array of [`Extension`]s. Index 0 is never used.
    pub extensions: LedgerRegion,
    /// The array of [`ModuleRecord`]s.
    pub modules: LedgerRegion,
    /// The words of 8 bytes in which stacks are stored. Word 0 is never used.
    pub stacks: LedgerRegion,
    /// The array of [`ClassRecord`](crate::class::ClassRecord)es, one for each word of `stacks`.
    pub classes: LedgerRegion,
    /// Slots of the table from address to lock, all levels together.
    pub address_table: LedgerRegion,
    /// Slots of the table from hash to stack, all levels together.
    pub stack_table: LedgerRegion,
    /// The array of [`EdgeRecord`]s.
    pub edges: LedgerRegion,
    /// Slots of the table from hash to edge, all levels together.
    pub edge_table: LedgerRegion,
    /// The array of [`ViolationRecord`]s.
    pub violations: LedgerRegion,
    /// The array of [`Token`]s, one for each of `locks`.
    pub tokens: LedgerRegion,
    /// The array of [`SemaphoreUsage`]s. Index 0 is never used.
    pub usages: LedgerRegion,
    /// The array of [`ShareChunk`]s. Index 0 is never used.
    pub shares: LedgerRegion,
    /// The rings, [`RingRecord::stride`] of `ring_slots` bytes apart.
    pub rings: LedgerRegion,
    /// The number of events that each ring has room for, a power of two.
    pub ring_slots: u64,
}

impl LedgerLayout {
    /// The smallest ledger that is of any use, in bytes.
    pub const SMALLEST: u64 = 1 << 24;
    /// The largest ledger that is asked for, in bytes of address space, not of memory.
    pub const LARGEST: u64 = 1 << 36;
    /// The part of a ledger that is rings of events, as a divisor.
    const RINGS_SHARE: u64 = 32;
    /// The most rings of events that a ledger has.
    pub const MOST_RINGS: u64 =
        Self::LARGEST / Self::RINGS_SHARE / RingRecord::stride(RING_EVENTS) as u64;

    /// Divides `size` bytes of address space, a power of two.
    ///
    /// # Panics
    /// If `size` lies below [`LedgerLayout::SMALLEST`], or the parts do not fit, which they do
    /// in powers of two.
    #[must_use]
    pub fn divide(size: u64) -> LedgerLayout {
        assert!(size >= Self::SMALLEST, "a ledger of {size} bytes is too small");
        // A quarter for threads; somewhat less for statistics, of which a seventh are further
        // stacks; an eighth each for locks, stacks and classes; the rest for tables, modules, rings
        // and what is checked.
        let size = size & !0xffff;
        let (held, ring_slots) = match size >= 1 << 32 {
            true => (16 * 1024, RING_EVENTS),
            false => (512, FEW_RING_EVENTS),
        };
        let stride = thread::stride(held as usize) as u64;
        let mut at = LARGEST_PAGE;
        let mut region = |bytes: u64, element: u64| {
            let offset = at;
            let capacity = bytes / element;
            at = (offset + capacity * element).next_multiple_of(LARGEST_PAGE);
            LedgerRegion { offset, capacity }
        };
        let threads = region(size / 4, stride);
        let extensions = region(size / 16 * 3, size_of::<Extension>() as u64);
        let locks = region(size / 8, size_of::<LockRecord>() as u64);
        let stacks = region(size / 16, 8);
        let classes = region(stacks.capacity * 16, 16);
        let address_table = region(table::bytes(locks.capacity), 8);
        let stack_table = region(table::bytes(stacks.capacity / 8), 8);
        let modules = region(
            (size / 64).min(16384 * size_of::<ModuleRecord>() as u64),
            size_of::<ModuleRecord>() as u64,
        );
        let edges = region(size / 64, size_of::<EdgeRecord>() as u64);
        let edge_table = region(table::bytes(edges.capacity), 8);
        let violations = region(size / 512, size_of::<ViolationRecord>() as u64);
        let token = size_of::<Token>() as u64;
        let tokens = region(locks.capacity * token, token);
        let usages = region(size / 256, size_of::<SemaphoreUsage>() as u64);
        let shares = region(size / 32, size_of::<ShareChunk>() as u64);
        let rings = region(size / Self::RINGS_SHARE, RingRecord::stride(ring_slots) as u64);
        assert!(at <= size, "the regions are larger than the ledger: {at} of {size}");
        LedgerLayout {
            size,
            threads,
            held,
            locks,
            extensions,
            modules,
            stacks,
            classes,
            address_table,
            stack_table,
            edges,
            edge_table,
            violations,
            tokens,
            usages,
            shares,
            rings,
            ring_slots: ring_slots as u64,
        }
    }

    /// Tells whether this is a layout that [`LedgerLayout::divide`] makes: a reader trusts no
    /// other.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (Self::SMALLEST..=Self::LARGEST).contains(&self.size)
            && self.size.is_power_of_two()
            && *self == Self::divide(self.size)
    }
}

const _: () = assert!(size_of::<HeldEntry<Native>>() == 32);

/// The numbers of what could not be recorded. The command says each at the end of a run.
#[repr(C)]
#[derive(Debug)]
pub struct LedgerLosses {
    /// Locks that have no record.
    pub locks: AtomicU64,
    /// Locks whose statistics found no room.
    pub extensions: AtomicU64,
    /// Stacks that found no room.
    pub stacks: AtomicU64,
    /// Threads that have no record.
    pub threads: AtomicU64,
    /// Modules that have no record.
    pub modules: AtomicU64,
    /// Acquisitions that a thread added too late: the lock had been destroyed and replaced by
    /// one of another class.
    pub late: AtomicU64,
    /// Edges between locks that found no room.
    pub edges: AtomicU64,
    /// Violations of rules that found no room.
    pub violations: AtomicU64,
    /// Facts that found no room, by which rules about signals, conditions and hand-offs are
    /// judged.
    pub facts: AtomicU64,
    /// Semaphores whose use found no room, so that nobody knows what they were used for.
    pub usages: AtomicU64,
    /// Events of threads for which there was no ring.
    pub events: AtomicU64,
}

/// A word that has its cache line for itself, because others write it and everybody reads it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct OwnLine(pub AtomicU64);

/// The beginning of a ledger, which no other part shares a page with.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct LedgerHeader {
    /// Holds [`MAGIC`], which the library stores last.
    pub magic: AtomicU64,
    /// The [`VERSION`] of the layout.
    pub version: AtomicU32,
    /// The process id, in the process's own PID namespace.
    pub pid: AtomicU32,
    /// The time at which the library began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub began: AtomicU64,
    /// The time at which the process ended in order; 0 before that.
    pub ended: AtomicU64,
    /// The place where each part lies.
    pub layout: LedgerLayout,

    /// The number of thread records that were ever used.
    pub threads_used: AtomicU64,
    /// The number of thread records whose threads have ended and that may be claimed anew.
    pub threads_ended: AtomicU64,
    /// The number of lock records that were ever used, index 0 included.
    pub locks_used: AtomicU64,
    /// The number of extensions that were ever used, index 0 included.
    pub extensions_used: AtomicU64,
    /// The number of words of stacks in use, word 0 included.
    pub stack_words_used: AtomicU64,
    /// The number of modules that were recorded.
    pub modules_used: AtomicU64,
    /// The number of levels of the address table in use, less one.
    pub address_level: AtomicU64,
    /// The number of levels of the stack table in use, less one.
    pub stack_level: AtomicU64,
    /// The number of entries in the newest level of the address table.
    pub address_fill: AtomicU64,
    /// The number of entries in the newest level of the stack table.
    pub stack_fill: AtomicU64,
    /// The number of edges between locks that were recorded.
    pub edges_used: AtomicU64,
    /// The number of levels of the edge table in use, less one.
    pub edge_level: AtomicU64,
    /// The number of entries in the newest level of the edge table.
    pub edge_fill: AtomicU64,
    /// The number of violations of rules that were recorded.
    pub violations_used: AtomicU64,
    /// The number of usages that were ever used, index 0 included.
    pub usages_used: AtomicU64,
    /// The number of chunks of shares that were ever used, index 0 included.
    pub shares_used: AtomicU64,
    /// The number of rings that are in use.
    pub rings_used: AtomicU64,
    /// The number of threads that ever were, from which each has its serial number.
    pub serials: AtomicU32,
    spare: AtomicU32,
    /// The number of beginnings of `dlclose`, and of ends of those that succeeded: addresses of code may have
    /// changed their meaning.
    pub unloads: AtomicU64,
    /// How often a module was noted, or noted anew: its names may be wanted from then on.
    pub modules_noted: AtomicU64,
    /// What could not be recorded.
    pub losses: LedgerLosses,
    /// What threads counted whose records have been given to others.
    pub retired: Retired,

    /// The coarse clock: nanoseconds of `CLOCK_MONOTONIC`. The command sets it every few
    /// milliseconds, and the program whenever one of its threads reads the real one.
    pub clock: OwnLine,
    /// What the clock showed before it was last set. Two threads that set it at one moment
    /// may leave something older.
    pub clock_before: AtomicU64,
}

const _: () = assert!(size_of::<LedgerHeader>() == 4096);

impl LedgerHeader {
    /// Sets the coarse clock, if it is in an earlier step.
    pub fn set_clock(&self, now: u64) {
        let shown = self.clock.0.load(Relaxed);
        if shown < now && tick_of(shown) != tick_of(now) {
            self.move_clock(shown, now);
        }
    }

    /// Moves the coarse clock to another step, so that a thread that holds a lock at present
    /// sees at its release that its hold lasted longer than this step. That may be a step
    /// ahead of the time, and one is enough for all of them.
    pub fn push_clock(&self, now: u64) {
        let shown = self.clock.0.load(Relaxed);
        if shown <= now {
            let next = if tick_of(shown) == tick_of(now) { 1 << TICK_SHIFT } else { 0 };
            self.move_clock(shown, if next == 0 { now } else { (shown | (next - 1)) + 1 });
        }
    }

    fn move_clock(&self, from: u64, to: u64) {
        // Relaxed: a thread that sees the step late takes a hold for shorter than a
        // step. If the exchange fails, another thread has moved the clock.
        if self.clock.0.compare_exchange(from, to, Relaxed, Relaxed).is_ok() {
            self.clock_before.store(from, Relaxed);
        }
    }

    /// Returns when the step began that an entry has noted, in nanoseconds. The entry must be
    /// younger than the three days after which numbers come again.
    #[must_use]
    pub fn time_of(&self, tick: u32) -> u64 {
        /// The clock may be read before another thread has moved it, by few steps.
        const AHEAD: u32 = 1 << 16;
        let clock = self.clock.0.load(Relaxed);
        let ago = tick_of(clock).wrapping_sub(tick);
        let steps = clock >> TICK_SHIFT;
        let steps = match ago.wrapping_neg() {
            ahead @ 1..AHEAD => steps + u64::from(ahead),
            _ => steps.saturating_sub(u64::from(ago)),
        };
        steps << TICK_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::GrowingArea;
    use core::mem::MaybeUninit;

    #[test]
    fn no_two_parts_share_a_page_of_whatever_size() {
        for size in (24..=36).map(|shift| 1_u64 << shift) {
            let layout = LedgerLayout::divide(size);
            let mut end = size_of::<LedgerHeader>() as u64;
            for area in GrowingArea::ALL {
                let (offset, bytes) = (area.region(&layout).offset, area.bytes(&layout));
                for page in [4096, 16 << 10, 64 << 10] {
                    assert_eq!(offset % page, 0, "{area:?} of {size}");
                    assert!(end.next_multiple_of(page) <= offset, "{area:?} of {size}");
                }
                end = offset + bytes;
            }
            assert!(
                end.next_multiple_of(LARGEST_PAGE) <= layout.size,
                "the last page is in the file"
            );
        }
    }

    #[test]
    fn the_coarse_clock_goes_forward_in_steps() {
        // SAFETY: zero is a valid header, for it consists of numbers (LEDGER-ZERO).
        let header: LedgerHeader = unsafe { MaybeUninit::zeroed().assume_init() };
        let both = || (header.clock.0.load(Relaxed), header.clock_before.load(Relaxed));
        let start = (5 << TICK_SHIFT) + 7;
        header.set_clock(start);
        header.set_clock(start + 9);
        header.set_clock(3);
        assert_eq!(both(), (start, 0), "the same step, or an earlier one");
        header.push_clock(start + 9);
        assert_eq!(both(), (6 << TICK_SHIFT, start));
        header.push_clock(start + 10);
        assert_eq!(both(), (6 << TICK_SHIFT, start), "not further ahead");
        header.push_clock(9 << TICK_SHIFT);
        assert_eq!(both(), (9 << TICK_SHIFT, 6 << TICK_SHIFT));
    }

    #[test]
    fn a_step_is_the_latest_of_its_number() {
        // SAFETY: zero is a valid header, for it consists of numbers (LEDGER-ZERO).
        let header: LedgerHeader = unsafe { MaybeUninit::zeroed().assume_init() };
        let around = 1 << (32 + TICK_SHIFT);
        header.clock.0.store(around + 5, Relaxed);
        let before = around - (1 << TICK_SHIFT);
        assert_eq!(header.time_of(tick_of(around)), around);
        assert_eq!(header.time_of(tick_of(before + 9)), before);
        assert_eq!(header.time_of(tick_of(around + (1 << TICK_SHIFT))), around + (1 << TICK_SHIFT));
        // Forty hours ago: more than half of the numbers.
        let long_ago = around - (1 << (31 + TICK_SHIFT)) - (1 << (26 + TICK_SHIFT));
        assert_eq!(header.time_of(tick_of(long_ago)), long_ago);
    }
}
