//! The state of a semaphore while it lives: who has its token.
//!
//! # Role
//! One [`Token`] for each lock record, at the same index; of other locks it stays
//! empty. What it shows goes into the [`Usage`] of the semaphore's origin.
//!
//! # Invariants
//! Each word says of which generation of the lock it speaks, so that nobody needs to
//! empty it when a life begins: what is left of the one before is taken for nothing.

use crate::ledger::Ledger;
use crate::usage::{Act, Origin, REASONS, Reason, Taker, Usage};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The state of one semaphore.
#[repr(C)]
#[derive(Debug)]
pub struct Token {
    /// A [`Taker`]; 0: nobody.
    taker: AtomicU64,
    /// Generation of the lock's record in bits 0..32, index of the [`Usage`] above.
    life: AtomicU64,
    /// The [`Reason`]s that were found, by their bits, and the lower bits of the
    /// generation above them.
    marks: AtomicU32,
    spare: AtomicU32,
}

const _: () = assert!(size_of::<Token>() == 24);

impl Token {
    /// The index of the usage, if the state is of this generation.
    fn usage(&self, generation: u32) -> Option<u32> {
        let life = self.life.load(Relaxed);
        (life as u32 == generation && life >> 32 != 0).then_some((life >> 32) as u32)
    }

    /// A new life begins, which belongs to `usage`; false if another thread has begun
    /// it. And the usage that the life before belonged to, if somebody had the token
    /// still.
    fn begin(&self, generation: u32, usage: u32) -> (bool, Option<u32>) {
        let before = self.life.load(Relaxed);
        let life = u64::from(generation) | u64::from(usage) << 32;
        if before as u32 == generation && before >> 32 != 0
            || self.life.compare_exchange(before, life, Relaxed, Relaxed).is_err()
        {
            return (false, None);
        }
        let left = Taker::unpack(self.taker.load(Relaxed), before as u32).is_some();
        (true, (left && before >> 32 != 0).then_some((before >> 32) as u32))
    }
}

/// A semaphore in one of its lives.
#[derive(Clone, Copy, Debug)]
pub struct Semaphore<'a> {
    token: &'a Token,
    generation: u32,
    /// What those of its origin came to.
    pub usage: &'a Usage,
    /// Its life begins with this look at it.
    pub is_new: bool,
}

impl Semaphore<'_> {
    /// Notes who has it now, and returns who had it.
    pub fn take(&self, taker: Taker) -> Option<Taker> {
        let word = taker.pack(self.generation);
        Taker::unpack(self.token.taker.swap(word, Relaxed), self.generation)
    }

    /// Notes that nobody has it, and returns who had it.
    pub fn give(&self) -> Option<Taker> {
        Taker::unpack(self.token.taker.swap(0, Relaxed), self.generation)
    }

    /// Who has it.
    #[must_use]
    pub fn taker(&self) -> Option<Taker> {
        Taker::unpack(self.token.taker.load(Relaxed), self.generation)
    }

    /// The bits of the [`Reason`]s that were found.
    fn marks(&self, word: u32) -> u32 {
        if word >> REASONS == self.generation << REASONS >> REASONS { word & MARKS } else { 0 }
    }

    /// Whether any of these was found.
    #[must_use]
    pub fn is_marked(&self, reasons: &[Reason]) -> bool {
        let marks = self.marks(self.token.marks.load(Relaxed));
        reasons.iter().any(|reason| marks & reason.bit() != 0)
    }

    /// Notes an act at this call site, which `details` are asked of if it is the first
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
    /// The semaphore with this index, if its use was noted in this life.
    #[must_use]
    pub fn semaphore(&self, lock: u32) -> Option<Semaphore<'a>> {
        let token = self.tokens().get(lock as usize)?;
        let generation = self.lock(lock)?.generation.load(Relaxed);
        let usage = self.usage(token.usage(generation)?)?;
        Some(Semaphore { token, generation, usage, is_new: false })
    }

    /// A semaphore that lives, and that comes from there if this life is new. `None`,
    /// and the loss counted, where there is no room.
    pub fn use_semaphore(&self, lock: u32, origin: Origin) -> Option<Semaphore<'a>> {
        if let Some(known) = self.semaphore(lock) {
            return Some(known);
        }
        let begun = self.begin_semaphore(lock, origin);
        if begun.is_none() {
            self.header().losses.usages.fetch_add(1, Relaxed);
        }
        begun
    }

    fn begin_semaphore(&self, lock: u32, origin: Origin) -> Option<Semaphore<'a>> {
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
        Some(Semaphore { token, generation, usage, is_new })
    }
}
