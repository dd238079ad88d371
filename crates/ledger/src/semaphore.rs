//! A semaphore while it lives: who has its token.
//!
//! # Role
//! The library that checks notes each call in the [`Token`] of the semaphore, and what
//! that shows in the [`SemaphoreUsage`] of the semaphore's origin.

use crate::ledger::{Ledger, LedgerPart};
use crate::usage::{Act, REASONS, Reason, SemaphoreUsage, Taker, Token, UsageOrigin};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// A semaphore in one of its lives.
#[derive(Clone, Copy, Debug)]
pub struct SemaphoreRecord<'a> {
    token: &'a Token,
    generation: u32,
    /// The usage of the origin that the semaphore comes from.
    pub usage: &'a SemaphoreUsage,
    /// Whether its life begins with this look at it.
    pub is_new: bool,
}

impl SemaphoreRecord<'_> {
    /// Notes that `taker` has the token now, and returns who had it.
    pub fn take(&self, taker: Taker) -> Option<Taker> {
        let word = taker.pack(self.generation);
        Taker::unpack(self.token.taker.swap(word, Relaxed), self.generation)
    }

    /// Notes that nobody has the token, and returns who had it.
    pub fn give(&self) -> Option<Taker> {
        Taker::unpack(self.token.taker.swap(0, Relaxed), self.generation)
    }

    /// Returns who has the token.
    #[must_use]
    pub fn taker(&self) -> Option<Taker> {
        Taker::unpack(self.token.taker.load(Relaxed), self.generation)
    }

    /// Returns the bits of the [`Reason`]s that were found, which `word` holds.
    fn marks(&self, word: u32) -> u32 {
        if word >> REASONS == self.generation << REASONS >> REASONS { word & MARKS } else { 0 }
    }

    /// Tells whether any of these reasons was found.
    #[must_use]
    pub fn is_marked(&self, reasons: &[Reason]) -> bool {
        let marks = self.marks(self.token.marks.load(Relaxed));
        reasons.iter().any(|reason| marks & reason.bit() != 0)
    }

    /// Notes an act at the call site `site`. Asks `details` for the rest if it is the first
    /// one there.
    pub fn act(&self, reason: Reason, site: u64, details: impl FnOnce() -> Act) {
        let bit = reason.bit();
        let with = |word| Some(self.generation << REASONS | self.marks(word) | bit);
        let before = self.token.marks.fetch_update(Relaxed, Relaxed, with).unwrap_or_default();
        self.usage.act(reason, site, self.marks(before) & bit == 0, details);
    }
}

/// The bits of all reasons.
const MARKS: u32 = (1 << REASONS) - 1;

impl<'a> Ledger<'a> {
    /// Returns the semaphore with this index, if its use was noted in this life.
    #[must_use]
    pub fn semaphore(&self, lock: u32) -> Option<SemaphoreRecord<'a>> {
        let token = self.tokens().get(lock as usize)?;
        let generation = self.lock(lock)?.generation.load(Relaxed);
        let usage = self.usage(token.usage(generation)?)?;
        Some(SemaphoreRecord { token, generation, usage, is_new: false })
    }

    /// Returns a semaphore that lives, and begins its life, as one of `origin`, if it is new.
    /// Returns `None`, and counts the loss, where there is no room.
    pub fn use_semaphore(&self, lock: u32, origin: UsageOrigin) -> Option<SemaphoreRecord<'a>> {
        if let Some(known) = self.semaphore(lock) {
            return Some(known);
        }
        let begun = self.begin_semaphore(lock, origin);
        if begun.is_none() {
            self.header().losses.usages.fetch_add(1, Relaxed);
        }
        begun
    }

    fn begin_semaphore(&self, lock: u32, origin: UsageOrigin) -> Option<SemaphoreRecord<'a>> {
        let (token, record) = (self.tokens().get(lock as usize)?, self.lock(lock)?);
        let generation = record.generation.load(Relaxed);
        let (is_new, left) = token.begin(generation, self.usage_of(origin)?);
        if let Some(left) = left.and_then(|left| self.usage(left)) {
            left.left.fetch_add(1, Relaxed);
        }
        let usage = self.usage(token.usage(generation)?)?;
        if is_new {
            usage.one_more(record, origin);
        }
        Some(SemaphoreRecord { token, generation, usage, is_new })
    }

    /// Returns the usage with this index; `None` beyond the last one.
    #[must_use]
    pub fn usage(&self, index: u32) -> Option<&'a SemaphoreUsage> {
        let used = self.used(LedgerPart::Usages) as u32;
        self.usages().get(index as usize).filter(|_| (1..used).contains(&index))
    }

    /// Returns the index of the usage of this origin, made if there is none.
    fn usage_of(&self, origin: UsageOrigin) -> Option<u32> {
        let class = self.classes().get(origin.stack as usize)?;
        // ord: LED-9 (acquire): the record that was stored before.
        let mut first = class.usages.load(Acquire);
        let mut made = None;
        loop {
            if let Some(found) = self.find_usage(first, origin) {
                // A record that was made in vain stays without an origin.
                return Some(found);
            }
            let index = match made {
                Some(index) => index,
                None => *made.insert(self.claim(LedgerPart::Usages, 1)? as u32),
            };
            let usage = self.usage(index)?;
            usage.write(origin, first);
            // ord: LED-9 (acq_rel): publishes the record; brings that of another one.
            match class.usages.compare_exchange(first, index, AcqRel, Acquire) {
                Ok(_) => {
                    // ord: LED-9 (release): publishes the record.
                    usage.ready.store(1, Release);
                    return Some(index);
                }
                Err(other) => first = other,
            }
        }
    }

    fn find_usage(&self, first: u32, origin: UsageOrigin) -> Option<u32> {
        // A list is no longer than there are kinds of origins, however damaged it is.
        let mut index = first;
        for _ in 0..16 {
            let usage = self.usage(index)?;
            if usage.is_of(origin) {
                return Some(index);
            }
            index = usage.next.load(Relaxed);
        }
        None
    }
}
