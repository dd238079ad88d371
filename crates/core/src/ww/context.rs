//! Classes, contexts, and what others may do to a context.

use super::ticket::Ticket;
use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::attached::Record;
use crate::platform::Platform;
use crate::slot::Slot;
use core::cell::Cell;
use core::marker::PhantomData;

/// Who backs off when two contexts want what the other has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Scheme {
    /// A younger context does not wait for an older one: it *dies*. An older one
    /// waits.
    WaitDie,
    /// A younger context waits. An older one that meets a younger holder *wounds*
    /// it: the holder backs off as soon as it waits for anything.
    WoundWait,
}

/// Locks that contexts acquire together: who is older is decided by the class's
/// count. All zeros with [`Scheme::WaitDie`].
#[repr(C)]
pub struct Class<P: Platform> {
    begun: P::U64,
    scheme: Scheme,
}

impl<P: Platform> Class<P> {
    /// A class of this scheme.
    #[must_use]
    pub const fn new(scheme: Scheme) -> Self {
        Class { begun: P::U64::ZERO, scheme }
    }

    /// Its scheme.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }
}

/// What others reach of a context.
type ContextRecord<P> = Record<<P as Platform>::U32, <P as Platform>::U64>;

fn ticket_of<P: Platform>(record: &ContextRecord<P>) -> Ticket {
    Ticket(record.ticket.load(Ordering::Relaxed))
}

/// Makes the context look again.
fn alarm<P: Platform>(record: &ContextRecord<P>) {
    let address = P::address32(&record.told);
    // ord: WW-3 release, pairs with the swap in `Context::hear`: what it
    // is told of comes first.
    record.told.store(1, Ordering::Release);
    P::wake(address, 1);
}

/// The record of a context, if that has not ended.
fn record<P: Platform>(ticket: Ticket) -> Option<&'static ContextRecord<P>> {
    let seat = P::participant(ticket.slot()?);
    seat.attached.records.get(ticket.place()).filter(|record| ticket_of::<P>(record).is(ticket))
}

/// Makes a context that waits look at what it waits for. Does nothing to one that
/// has ended; another that got the same number, in another class, looks for
/// nothing.
pub(super) fn tell<P: Platform>(ticket: Ticket) {
    if let Some(record) = record::<P>(ticket) {
        alarm::<P>(record);
    }
}

/// Wounds a context; false if it has ended.
pub(super) fn wound<P: Platform>(ticket: Ticket) -> bool {
    let Some(record) = record::<P>(ticket) else { return false };
    let (whole, wounded) = (ticket.plain(), ticket.plain().with_flag());
    // Relaxed: the order of this and what follows is that of `tell`.
    match record.ticket.compare_exchange(whole.0, wounded.0, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            if !fault!(ww_wound_is_not_told) {
                alarm::<P>(record);
            }
            true
        }
        Err(found) => found == wounded.0,
    }
}

/// One thread's attempt to hold several locks of a class.
///
/// Belongs to the thread that began it. [`Context::finish`] ends it; a context
/// that is forgotten takes one of its thread's [`CONTEXTS_PER_THREAD`] places
/// until the thread ends.
#[repr(C)]
pub struct Context<P: Platform> {
    ticket: u64,
    record: &'static ContextRecord<P>,
    acquired: Cell<u32>,
    scheme: Scheme,
    /// Of one thread.
    not_send: PhantomData<*const ()>,
}

impl<P: Platform> Context<P> {
    /// Begins: from now on the context is older than all that begin later.
    /// `None` if the thread has [`CONTEXTS_PER_THREAD`] already.
    #[must_use]
    pub fn begin(class: &Class<P>) -> Option<Self> {
        let me = P::me();
        let records = &P::participant(me).attached.records;
        let place = records.iter().position(|record| ticket_of::<P>(record) == Ticket::NONE)?;
        let record = &records[place];
        let ticket = Ticket::new(class.begun.fetch_add(1, Ordering::Relaxed), me, place);
        record.ticket.store(ticket.0, Ordering::Relaxed);
        Some(Context {
            ticket: ticket.0,
            record,
            acquired: Cell::new(0),
            scheme: class.scheme,
            not_send: PhantomData,
        })
    }

    /// Ends. The context holds no lock, and is not used again.
    pub fn finish(&self) {
        self.record.clear();
    }

    /// How many locks it holds.
    #[must_use]
    pub fn acquired(&self) -> u32 {
        self.acquired.get()
    }

    /// The scheme of its class.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// A number that is another for each context of a class, and the larger the
    /// younger; for reports.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.ticket().stamp()
    }

    #[inline(always)]
    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.ticket)
    }

    pub(super) fn slot(&self) -> Option<Slot> {
        self.ticket().slot()
    }

    #[inline(always)]
    pub(super) fn gained(&self) {
        self.acquired.set(self.acquired.get() + 1);
    }

    #[inline(always)]
    pub(super) fn lost(&self) {
        self.acquired.set(self.acquired.get() - 1);
    }

    /// Whether others may wait for it: one that holds nothing never backs off.
    pub(super) fn mortal(&self) -> bool {
        self.acquired.get() != 0
    }

    /// What ends this thread's sleeps.
    pub(super) fn alarm(&self) -> &'static P::U32 {
        &self.record.told
    }

    /// Before a wait: an alarm that has rung is silent again, and one that rings
    /// from now on ends the wait. What it rang for is seen by whoever looks after
    /// this.
    pub(super) fn hear(&self) {
        if self.record.told.load(Ordering::Relaxed) != 0 {
            // ord: WW-3 acquire, pairs with the store in `alarm`. A swap: a
            // store might erase an alarm that rings meanwhile unseen.
            self.record.told.swap(0, Ordering::Acquire);
        }
    }

    /// Whether an older context wants a lock that this one holds.
    pub(super) fn wounded(&self) -> bool {
        ticket_of::<P>(self.record).flagged()
    }

    /// An older context wants the lock that this one has just acquired.
    pub(super) fn wound_self(&self) {
        self.record.ticket.store(self.ticket().with_flag().0, Ordering::Relaxed);
    }

    /// It holds nothing: whatever wounded it has what it wanted.
    pub(super) fn heal(&self) {
        if self.wounded() {
            self.record.ticket.store(self.ticket, Ordering::Relaxed);
        }
    }
}

impl<P: Platform> core::fmt::Debug for Context<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context")
            .field("stamp", &self.stamp())
            .field("acquired", &self.acquired())
            .field("scheme", &self.scheme)
            .finish()
    }
}
