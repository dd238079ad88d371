//! The ticket, which stands for a context in the words of a lock: it says when the context
//! began, and whose it is.
//!
//! ```text
//!  63            44 43  42 41                   2    1            0
//! ┌────────────────┬──────┬──────────────────────┬────────┬────────────────┐
//! │      slot      │place │        stamp         │ mortal │ wounded,       │
//! │                │      │                      │        │ or followed    │
//! └────────────────┴──────┴──────────────────────┴────────┴────────────────┘
//! ```
//! The *place* says which of its thread's contexts it is. Two contexts of different classes may
//! have the same stamp, and what is meant for one must not reach the other.
//!
//! Bit 0 has a name for each word that holds a ticket. In the record of a context it is
//! *wounded*: an older context wants a lock that this one holds. In the `first` of a lock it is
//! *followed*: other contexts sleep behind this one. *mortal* is set in `first`: the context holds
//! other locks and may be told to back off. Alone, in `holder`, it stands for a holder without a
//! context.
//!
//! The *stamp* counts the contexts of a class. Of two, the one that began earlier is the older,
//! as long as fewer than 2³⁹ began between them.

use crate::attached::CONTEXTS_PER_THREAD;
use crate::slot::Slot;

/// The flag of a ticket in the record of a context.
const WOUNDED: u64 = 1;
/// The flag of a ticket in the `first` of a lock.
const FOLLOWED: u64 = 1;
const MORTAL: u64 = 2;
const STAMP_SHIFT: u32 = 2;
const PLACE_SHIFT: u32 = 42;
const SLOT_SHIFT: u32 = 44;
const STAMP: u64 = (1 << PLACE_SHIFT) - (1 << STAMP_SHIFT);
const PLACES: usize = 1 << (SLOT_SHIFT - PLACE_SHIFT);

const _: () = assert!(CONTEXTS_PER_THREAD <= PLACES);

/// A context, or nobody. Pure: nothing here touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(pub(crate) u64);

impl Ticket {
    /// No context. As the holder: nobody, or a thread that has not said who it is yet.
    pub(crate) const NONE: Self = Ticket(0);
    /// The ticket of a holder without a context.
    pub(crate) const ALONE: Self = Ticket(MORTAL);

    /// Returns the ticket of the context of `slot`, at this place among the thread's, that began
    /// as the `stamp`-th of its class.
    pub(crate) const fn new(stamp: u64, slot: Slot, place: usize) -> Self {
        let whose = (slot.get() as u64) << SLOT_SHIFT | (place as u64) << PLACE_SHIFT;
        Ticket((stamp << STAMP_SHIFT) & STAMP | whose)
    }

    /// Returns when the context began, counted in its class.
    pub(crate) const fn stamp(self) -> u64 {
        (self.0 & STAMP) >> STAMP_SHIFT
    }

    /// Returns which of its thread's contexts it is.
    pub(crate) const fn place(self) -> usize {
        (self.0 >> PLACE_SHIFT) as usize % PLACES
    }

    /// Returns the slot of its thread; `None` for tickets that are no context.
    pub(crate) const fn slot(self) -> Option<Slot> {
        Slot::new((self.0 >> SLOT_SHIFT) as u32)
    }

    /// Tells whether these two are the same context.
    pub(crate) const fn is(self, other: Self) -> bool {
        self.plain().0 == other.plain().0
    }

    /// Tells whether this context began before the other.
    pub(crate) const fn older_than(self, other: Self) -> bool {
        const TOP: u32 = u64::BITS - PLACE_SHIFT;
        let [a, b] = [(self.0 & STAMP) << TOP, (other.0 & STAMP) << TOP];
        (a.wrapping_sub(b) as i64) < 0
    }

    /// Returns the ticket without flags.
    pub(crate) const fn plain(self) -> Self {
        Ticket(self.0 & !(WOUNDED | FOLLOWED | MORTAL))
    }

    /// Tells whether an older context wants a lock that this one holds. Only in a record.
    pub(crate) const fn wounded(self) -> bool {
        self.0 & WOUNDED != 0
    }

    /// Returns the ticket in the record of a context that was wounded.
    pub(crate) const fn with_wound(self) -> Self {
        Ticket(self.0 | WOUNDED)
    }

    /// Tells whether other contexts sleep behind this one. Only in `first`.
    pub(crate) const fn followed(self) -> bool {
        self.0 & FOLLOWED != 0
    }

    /// Returns the ticket of a first behind which other contexts sleep.
    pub(crate) const fn with_followers(self) -> Self {
        Ticket(self.0 | FOLLOWED)
    }

    /// Tells whether it holds other locks, and may have to back off. Only in `first`.
    pub(crate) const fn mortal(self) -> bool {
        self.0 & MORTAL != 0
    }

    /// Returns the ticket with *mortal* if `mortal`.
    pub(crate) const fn with_mortal(self, mortal: bool) -> Self {
        if mortal { Ticket(self.0 | MORTAL) } else { self }
    }

    /// Returns the low half, which the contexts behind it compare.
    pub(crate) const fn low(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u32) -> Slot {
        Slot::new(number).expect("in range")
    }

    #[test]
    fn a_ticket_keeps_its_fields_apart() {
        for stamp in [0, 1, (1 << 40) - 1, u64::MAX] {
            for (number, place) in [(1, 0), (crate::MAX_SLOTS, CONTEXTS_PER_THREAD - 1)] {
                let ticket = Ticket::new(stamp, slot(number), place);
                assert_eq!((ticket.slot(), ticket.place()), (Some(slot(number)), place));
                assert_eq!(ticket.stamp(), stamp & ((1 << 40) - 1));
                assert!(!ticket.wounded() && !ticket.followed() && !ticket.mortal());
                let marked = ticket.with_followers().with_mortal(true);
                assert!(marked.followed() && marked.mortal() && marked.is(ticket));
                assert_eq!(marked.plain().0, ticket.0);
            }
        }
    }

    #[test]
    fn a_ticket_is_laid_out_as_drawn() {
        let ticket = Ticket::new(5, slot(9), 3);
        assert_eq!(ticket.0, 9 << 44 | 3 << 42 | 5 << 2);
        assert_eq!(ticket.low(), 5 << 2);
        // Each flag is there once, however often it is set.
        for (marked, flag) in [
            (ticket.with_wound().with_wound(), 1),
            (ticket.with_followers().with_followers(), 1),
            (ticket.with_mortal(true).with_mortal(true), 2),
            (ticket.with_mortal(true).with_mortal(false), 2),
        ] {
            assert_eq!(marked.0, ticket.0 | flag);
        }
    }

    #[test]
    fn what_is_no_context_has_no_slot() {
        assert_eq!(Ticket::NONE.slot(), None);
        assert_eq!(Ticket::ALONE.slot(), None);
        assert_ne!(Ticket::ALONE, Ticket::NONE);
    }

    #[test]
    fn age_goes_by_the_stamp_alone_and_wraps() {
        let old = Ticket::new(5, slot(9), 3);
        let young = Ticket::new(6, slot(1), 0);
        assert!(old.older_than(young) && !young.older_than(old));
        assert!(!old.older_than(old.with_wound()));
        assert!(old.with_followers().with_mortal(true).older_than(young));
        let last = Ticket::new((1 << 40) - 1, slot(3), 0);
        let first = Ticket::new(1 << 40, slot(4), 1);
        assert!(last.older_than(first) && !first.older_than(last));
    }
}
