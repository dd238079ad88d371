//! The regions of the layout, by name: where each lies, and of what it consists.

use crate::class::ClassRecord;
use crate::growth::GrowingArea;
use crate::header::{LedgerLayout, LedgerRegion};
use crate::lock::{Extension, LockRecord};
use crate::module::ModuleRecord;
use crate::order::EdgeRecord;
use crate::ring::RingRecord;
use crate::shares::ShareChunk;
use crate::thread;
use crate::usage::{SemaphoreUsage, Token};
use crate::violation::ViolationRecord;

impl GrowingArea {
    /// Returns where the area lies.
    #[must_use]
    pub fn region(self, layout: &LedgerLayout) -> LedgerRegion {
        match self {
            GrowingArea::Threads => layout.threads,
            GrowingArea::Extensions => layout.extensions,
            GrowingArea::Locks => layout.locks,
            GrowingArea::Stacks => layout.stacks,
            GrowingArea::Classes => layout.classes,
            GrowingArea::AddressTable => layout.address_table,
            GrowingArea::StackTable => layout.stack_table,
            GrowingArea::Modules => layout.modules,
            GrowingArea::Edges => layout.edges,
            GrowingArea::EdgeTable => layout.edge_table,
            GrowingArea::Violations => layout.violations,
            GrowingArea::Tokens => layout.tokens,
            GrowingArea::Usages => layout.usages,
            GrowingArea::Shares => layout.shares,
            GrowingArea::Rings => layout.rings,
        }
    }

    /// Returns the number of bytes from one element to the next.
    #[must_use]
    pub fn element(self, layout: &LedgerLayout) -> u64 {
        let bytes = match self {
            GrowingArea::Threads => thread::stride(layout.held as usize),
            GrowingArea::Extensions => size_of::<Extension>(),
            GrowingArea::Locks => size_of::<LockRecord>(),
            GrowingArea::Classes => size_of::<ClassRecord>(),
            GrowingArea::Stacks
            | GrowingArea::AddressTable
            | GrowingArea::StackTable
            | GrowingArea::EdgeTable => 8,
            GrowingArea::Modules => size_of::<ModuleRecord>(),
            GrowingArea::Edges => size_of::<EdgeRecord>(),
            GrowingArea::Violations => size_of::<ViolationRecord>(),
            GrowingArea::Tokens => size_of::<Token>(),
            GrowingArea::Usages => size_of::<SemaphoreUsage>(),
            GrowingArea::Shares => size_of::<ShareChunk>(),
            GrowingArea::Rings => RingRecord::stride(layout.ring_slots as usize),
        };
        bytes as u64
    }

    /// Returns the number of bytes of all its elements.
    #[must_use]
    pub fn bytes(self, layout: &LedgerLayout) -> u64 {
        self.region(layout).capacity * self.element(layout)
    }
}
