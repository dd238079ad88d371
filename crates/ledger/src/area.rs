//! The regions of the layout, by name: where each lies, and of what it consists.

use crate::class::Class;
use crate::growth::Area;
use crate::header::{Layout, Region};
use crate::lock::{Extension, LockRecord};
use crate::module::ModuleRecord;
use crate::order::EdgeRecord;
use crate::shares::ShareChunk;
use crate::thread;
use crate::usage::{Token, Usage};
use crate::violation::ViolationRecord;

impl Area {
    /// Returns where the area lies.
    #[must_use]
    pub fn region(self, layout: &Layout) -> Region {
        match self {
            Area::Threads => layout.threads,
            Area::Extensions => layout.extensions,
            Area::Locks => layout.locks,
            Area::Stacks => layout.stacks,
            Area::Classes => layout.classes,
            Area::AddressTable => layout.address_table,
            Area::StackTable => layout.stack_table,
            Area::Modules => layout.modules,
            Area::Edges => layout.edges,
            Area::EdgeTable => layout.edge_table,
            Area::Violations => layout.violations,
            Area::Tokens => layout.tokens,
            Area::Usages => layout.usages,
            Area::Shares => layout.shares,
        }
    }

    /// Returns the number of bytes from one element to the next.
    #[must_use]
    pub fn element(self, layout: &Layout) -> u64 {
        let bytes = match self {
            Area::Threads => thread::stride(layout.held as usize),
            Area::Extensions => size_of::<Extension>(),
            Area::Locks => size_of::<LockRecord>(),
            Area::Classes => size_of::<Class>(),
            Area::Stacks | Area::AddressTable | Area::StackTable | Area::EdgeTable => 8,
            Area::Modules => size_of::<ModuleRecord>(),
            Area::Edges => size_of::<EdgeRecord>(),
            Area::Violations => size_of::<ViolationRecord>(),
            Area::Tokens => size_of::<Token>(),
            Area::Usages => size_of::<Usage>(),
            Area::Shares => size_of::<ShareChunk>(),
        };
        bytes as u64
    }

    /// Returns the number of bytes of all its elements.
    #[must_use]
    pub fn bytes(self, layout: &Layout) -> u64 {
        self.region(layout).capacity * self.element(layout)
    }
}
