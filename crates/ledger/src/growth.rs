//! A ledger of which only a part is mapped, which grows where it is needed.
//!
//! # Role
//! The file is as large as its layout; the process that writes it need not have all
//! of it in its address space, of which it may have little. Each area is mapped from
//! its beginning up to where it was reached, and a thread that wants more asks for it.
//!
//! # Invariants
//! - **GROWTH-MAPPED** Below what [`Growth::reached`] says of an area the memory is mapped, and
//!   stays so. It only ever rises while others can see it.
//! - **GROWTH-UNTOUCHED** Nothing of an area is touched above that: its arrays end there, an
//!   element is claimed, and a level of a table opened, when it lies below. An array is as long
//!   as when it was asked for: a thread that has claimed an element asks for it anew.

use core::sync::atomic::{AtomicU64, Ordering::Acquire};

/// A region of the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named like the regions")]
pub enum GrowingArea {
    Threads,
    Extensions,
    Locks,
    Stacks,
    Classes,
    AddressTable,
    StackTable,
    Modules,
    Edges,
    EdgeTable,
    Violations,
    Tokens,
    Usages,
    Shares,
    Rings,
}

/// The number of areas there are.
pub const AREAS: usize = 15;

impl GrowingArea {
    /// All areas, in the order in which they lie.
    pub const ALL: [GrowingArea; AREAS] = [
        GrowingArea::Threads,
        GrowingArea::Extensions,
        GrowingArea::Locks,
        GrowingArea::Stacks,
        GrowingArea::Classes,
        GrowingArea::AddressTable,
        GrowingArea::StackTable,
        GrowingArea::Modules,
        GrowingArea::Edges,
        GrowingArea::EdgeTable,
        GrowingArea::Violations,
        GrowingArea::Tokens,
        GrowingArea::Usages,
        GrowingArea::Shares,
        GrowingArea::Rings,
    ];
}

/// How far a ledger is mapped.
#[derive(Debug)]
pub struct Growth {
    /// The bytes of each area that are mapped.
    pub reached: [AtomicU64; AREAS],
    /// Maps an area up to so many bytes, or says that this cannot be.
    pub more: fn(GrowingArea, u64) -> bool,
}

impl Growth {
    /// Returns the number of bytes of the area that are mapped.
    #[inline]
    #[must_use]
    pub fn reached(&self, area: GrowingArea) -> u64 {
        // ord: LED-10 (acquire): the mapping.
        self.reached[area as usize].load(Acquire)
    }

    /// Tells whether so many bytes of the area are mapped, and maps them if they are not.
    #[inline]
    #[must_use]
    pub fn reach(&self, area: GrowingArea, bytes: u64) -> bool {
        bytes <= self.reached(area) || (self.more)(area, bytes)
    }
}
