//! Classes, contexts, and what others may do to a context.

use super::ticket::Ticket;
use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::attached::SlotContext;
use crate::platform::Platform;
use crate::slot::Slot;
use core::cell::Cell;
use core::marker::PhantomData;

/// The rule that says which of two contexts backs off when each wants what the other has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Scheme {
    /// A younger context does not wait for an older one: it *dies*, that is, backs off. An older
    /// one waits.
    WaitDie,
    /// A younger context waits, unless an older one waits for the same lock: then it backs off. An
    /// older one that meets a younger holder *wounds* it: the holder backs off as soon as it waits
    /// for anything.
    WoundWait,
}

/// A class of locks that contexts acquire together. Its count decides which of two contexts is
/// the older. All zeros with [`Scheme::WaitDie`].
#[repr(C)]
pub struct Class<P: Platform> {
    begun: P::U64,
    scheme: Scheme,
}

impl<P: Platform> Class<P> {
    /// Makes a class of this scheme.
    #[must_use]
    pub const fn new(scheme: Scheme) -> Self {
        Class { begun: P::U64::ZERO, scheme }
    }

    /// Returns the scheme of the class.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }
}

/// The part of a context that other threads reach.
type ContextRecord<P> = SlotContext<<P as Platform>::U32, <P as Platform>::U64>;

fn ticket_of<P: Platform>(record: &ContextRecord<P>) -> Ticket {
    Ticket(record.ticket.load(Ordering::Relaxed))
}

/// Makes the context of this record look again at what it waits for.
fn alarm<P: Platform>(record: &ContextRecord<P>) {
    let address = P::address32(&record.told);
    // ord: WW-3 release, pairs with the swap in `Context::hear`: what the context
    // is told of comes first.
    record.told.store(1, Ordering::Release);
    P::wake(address, 1);
}

/// Makes the contexts of a thread look again at what they wait for: a thread that may hold it has
/// ended, and wakes nobody.
pub fn look_again<P: Platform>(thread: Slot) {
    if fault!(ww_ended_holder_tells_nobody) {
        return;
    }
    let records = &P::participant(thread).attached.records;
    // ord: WW-4 release, pairs with the addition in `Context::begin`. An addition of nothing, which reads
    // the newest ticket: a context is seen here, or has seen the end of the thread.
    let begun = records.iter().filter(|record| record.ticket.fetch_add(0, Ordering::Release) != 0);
    begun.for_each(alarm::<P>);
}

/// Returns the record of a context, if that has not ended.
fn record<P: Platform>(ticket: Ticket) -> Option<&'static ContextRecord<P>> {
    let participant = P::participant(ticket.slot()?);
    participant
        .attached
        .records
        .get(ticket.place())
        .filter(|record| ticket_of::<P>(record).is(ticket))
}

/// Makes a context look at what it waits for. Does nothing to one that has ended, or for
/// [`Ticket::NONE`]. Another that got the same stamp, in another class, looks in vain.
pub(super) fn tell<P: Platform>(ticket: Ticket) {
    if let Some(record) = record::<P>(ticket) {
        alarm::<P>(record);
    }
}

/// Wounds the context of this ticket without flags. Returns false if it has ended.
pub(super) fn wound<P: Platform>(whole: Ticket) -> bool {
    let Some(record) = record::<P>(whole) else { return false };
    let wounded = whole.with_wound();
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
/// It belongs to the thread that began it. [`Context::finish`] ends it; a context
/// that is forgotten takes one of its thread's `CONTEXTS_PER_THREAD` places
/// until the thread ends, and the thread's slot from then on: locks that it holds name both, and
/// are an error for who asks for them.
#[repr(C)]
pub struct Context<P: Platform> {
    ticket: u64,
    record: &'static ContextRecord<P>,
    acquired: Cell<u32>,
    scheme: Scheme,
    /// A context stays with the thread that began it.
    not_send: PhantomData<*const ()>,
}

impl<P: Platform> Context<P> {
    /// Begins a context, which is older than all that begin later.
    /// Returns `None` if the thread has `CONTEXTS_PER_THREAD` already.
    #[must_use]
    pub fn begin(class: &Class<P>) -> Option<Self> {
        let me = P::me();
        let records = &P::participant(me).attached.records;
        let place = records.iter().position(|record| ticket_of::<P>(record) == Ticket::NONE)?;
        let record = &records[place];
        let ticket = Ticket::new(class.begun.fetch_add(1, Ordering::Relaxed), me, place);
        // ord: WW-4 acquire, pairs with the addition in `look_again`: the end of threads whose locks this
        // context asks for, if they overlooked it. The record is vacant, so this stores the ticket.
        record.ticket.fetch_add(ticket.0, Ordering::Acquire);
        Some(Context {
            ticket: ticket.0,
            record,
            acquired: Cell::new(0),
            scheme: class.scheme,
            not_send: PhantomData,
        })
    }

    /// Ends the context, which holds no lock and is not used again.
    pub fn finish(&self) {
        self.record.clear();
    }

    /// Returns how many locks the context holds.
    #[must_use]
    pub fn acquired(&self) -> u32 {
        self.acquired.get()
    }

    /// Returns the scheme of its class.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns a number, for reports, that is different for each context of a class; a younger
    /// context has a larger one.
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

    /// Tells whether it may have to back off: a context that holds nothing never does (WW-BARE).
    pub(super) fn mortal(&self) -> bool {
        self.acquired.get() != 0
    }

    /// Returns the word that ends this thread's sleeps.
    pub(super) fn alarm(&self) -> &'static P::U32 {
        &self.record.told
    }

    /// Prepares for a wait: takes back an alarm that was given, so that only one that is given
    /// from now on ends the wait. What an earlier one was given for is seen by a look after this.
    pub(super) fn hear(&self) {
        if self.record.told.load(Ordering::Relaxed) != 0 {
            // ord: WW-3 acquire, pairs with the store in `alarm`. A swap: a
            // store might erase an alarm that is given meanwhile.
            self.record.told.swap(0, Ordering::Acquire);
        }
    }

    /// Tells whether an older context wants a lock that this one holds.
    pub(super) fn wounded(&self) -> bool {
        ticket_of::<P>(self.record).wounded()
    }

    /// Wounds this context itself: an older one wants the lock that it has just acquired.
    pub(super) fn wound_self(&self) {
        self.record.ticket.store(self.ticket().with_wound().0, Ordering::Relaxed);
    }

    /// Heals the context, which holds nothing: the context that wounded it has what it wanted.
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
