//! Decides which times of holding are measured, and records what they come to.
//!
//! # Role
//! Reading the clock twice costs more than a lock and its release do together, so that
//! not every hold can be timed. An acquisition asks `Me::times`, a release asks
//! `Me::measured`. All that is read is the program's own clock: how exact a time
//! is does not depend on when the command gets a processor.
//!
//! # Which holds are timed
//! - *After waiting*, always: a wait costs far more than two looks at the clock.
//! - *While that is cheap*, always: a thread may time one hold for each `PRICE` of its
//!   life, and `BURST` in advance. A lock that it acquires less often than that is
//!   timed each time.
//! - Of what remains one in 2, 4, and so on up to [`SAMPLE`](lockstead_ledger::SAMPLE),
//!   by place and chance: as many as can be paid. Each of these stands for its like.
//! - *Long ones*: an untimed hold of a millisecond or more during which the coarse clock
//!   was set. That does the command, but also each thread of the program that reads the
//!   real one, and whoever begins to wait, for the lock perhaps. Where such a hold began
//!   is an estimate (`Me::estimate`), which is counted, and the place is timed each time
//!   from then on.
//!
//! # Invariants
//! - **TIMING-EXPECTED** A hold counts once, in expectation. Whether an acquisition is timed is
//!   decided by what was before it and by chance, with the probability whose inverse is its
//!   weight: the gaps between two are geometric, so that a change of the rate at any
//!   moment favours none. A hold that counts for being long would have counted whether
//!   it was timed or not, so its weight is one.
//! - **TIMING-TOGETHER** All totals of a lock get the same: a hold and its weight, at once.

use crate::chain::line_of;
use crate::me::Me;
use crate::site::CallSite;
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::header::tick_of;
use lockstead_ledger::known::KnownLock;
use lockstead_ledger::lock::{Extension, HELD_SHIFT};
use lockstead_ledger::publish::RAREST;
use lockstead_ledger::publish::{Flags, Holding};

/// What a timed hold costs its thread, as a part of its life: some 0.1 of these 32.8 µs
/// in truth. Also the step in which a place knows when it was timed last.
const PRICE: u64 = 1 << PRICE_SHIFT;
const PRICE_SHIFT: u32 = 15;

/// What may be owed. Half of it is kept for the places that are used rarely.
const BURST: u64 = 512 * PRICE;

/// How many holds may be timed for having waited once.
const PER_WAIT: u64 = 8;

/// A lock that nobody waits for gets statistics when it was held for so long: 16 µs.
const HELD_BEFORE_STATISTICS: u64 = 250;

/// The time from which on a hold is long: 1 ms.
const LONG: u64 = 1 << 20;

/// The time, in nanoseconds, between two settings of the coarse clock where the command alone sets
/// it.
const USUAL_STEP: u64 = 4_000_000;

/// What a thread counts before it gives the count to the lock.
const COUNTED_AT_MOST: u32 = 1 << 30;

impl Me {
    /// Reads the clock, and sets the coarse one.
    pub(crate) fn clock(&self) -> u64 {
        let now = sys::now();
        self.ledger.header().set_clock(now);
        // Of a hold that is not timed this is what it cannot have begun before: so not
        // while there is one.
        if self.thread.stack().depth() == 0 {
            self.record().clock_read.store(now, Relaxed);
        }
        now
    }

    /// Counts an acquisition. If its time of holding is one of those that are measured,
    /// says with which flags, and when it began.
    #[inline]
    pub(crate) fn times(&self, known: &KnownLock) -> Option<(Flags, u64)> {
        if is_due(known) {
            return Some(self.times_now(known));
        }
        known.count.store(known.count.load(Relaxed) + 1, Relaxed);
        None
    }

    fn times_now(&self, known: &KnownLock) -> (Flags, u64) {
        let flags = Flags::timed(u32::from(known.rarity.load(Relaxed)));
        let now = self.clock();
        let rarity = self.pace(known, now);
        known.rarity.store(rarity as u8, Relaxed);
        self.counts_until_next(known);
        (flags, now)
    }

    /// Counts an acquisition that has waited, which is always timed.
    pub(crate) fn times_waited(&self, known: &KnownLock) -> (Flags, u64) {
        let paid = &self.record().paid_until;
        paid.store(paid.load(Relaxed).saturating_sub(PER_WAIT * PRICE), Relaxed);
        times_each(known);
        self.count(known);
        (Flags::timed(0), self.clock())
    }

    /// Counts the use of something that is not held.
    #[inline]
    pub(crate) fn counts(&self, known: &KnownLock) {
        if is_due(known) {
            known.rarity.store(RAREST as u8, Relaxed);
            self.counts_until_next(known);
        } else {
            known.count.store(known.count.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Counts a use, and draws when the next one is timed.
    fn counts_until_next(&self, known: &KnownLock) {
        let next = match (self.count(known), u32::from(known.rarity.load(Relaxed))) {
            (_, 0) => 0,
            (count, rarity) => count + self.gap(rarity),
        };
        known.next_sample.store(next, Relaxed);
    }

    /// Begins to time a place, at the pace of the one that it was known in before. A new
    /// one is timed each time, but not by a thread that knows so many that it cannot pay.
    pub(crate) fn begins(&self, known: &KnownLock, before: Option<TimingPace>) {
        let record = self.record();
        let owed = record.paid_until.load(Relaxed).saturating_sub(record.clock_read.load(Relaxed));
        let pace = before.unwrap_or(TimingPace {
            rarity: if owed > BURST / 8 * 7 { RAREST as u8 } else { 0 },
            timed_at: (record.clock_read.load(Relaxed) >> PRICE_SHIFT) as u16,
        });
        known.timed_at.store(pace.timed_at, Relaxed);
        known.rarity.store(pace.rarity, Relaxed);
        let next = if pace.rarity == 0 { 0 } else { self.gap(pace.rarity.into()) };
        known.next_sample.store(next, Relaxed);
    }

    /// Counts, and returns the count, which starts again long before it is too
    /// large for its word. The fast path counts by itself.
    fn count(&self, known: &KnownLock) -> u32 {
        if known.count.load(Relaxed) >= COUNTED_AT_MOST {
            self.hand_over(known);
        }
        let count = known.count.load(Relaxed) + 1;
        known.count.store(count, Relaxed);
        count
    }

    /// Returns how rare the timed holds of a place are from now on: by how long ago the last
    /// one was, and by what the thread can pay.
    fn pace(&self, known: &KnownLock, now: u64) -> u32 {
        let rarity = u32::from(known.rarity.load(Relaxed));
        let step = (now >> PRICE_SHIFT) as u16;
        let elapsed = step.wrapping_sub(known.timed_at.load(Relaxed));
        known.timed_at.store(step, Relaxed);
        let paid = &self.record().paid_until;
        let owed = paid.load(Relaxed).saturating_sub(now);
        if owed > if elapsed == 0 { BURST / 2 } else { BURST } {
            return (rarity + 1).min(RAREST);
        }
        paid.store(now + owed + PRICE, Relaxed);
        rarity.saturating_sub(elapsed.max(1).ilog2())
    }

    /// Returns the number of acquisitions before the next one that is timed, of which one in
    /// `2^rarity` is: geometric, by the logarithm of a random number.
    fn gap(&self, rarity: u32) -> u32 {
        /// Minus the binary logarithms of 1 - 2^-rarity, in parts of 2^20.
        const RATES: [u32; RAREST as usize] =
            [1_048_576, 435_198, 202_003, 97_632, 48_029, 23_824, 11_865, 5_921];
        let rate = RATES[(rarity.clamp(1, RAREST) - 1) as usize];
        let gap = (u64::from(minus_log2(self.throw())) << (20 - LOG_BITS)) / u64::from(rate);
        gap as u32
    }

    /// Returns a random number of 32 bits, never zero: xorshift (Marsaglia), the upper bits.
    fn throw(&self) -> u32 {
        let record = self.record();
        let mut dice = record.dice.load(Relaxed);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        record.dice.store(dice, Relaxed);
        (dice >> 32) as u32 | 1
    }

    /// Returns the step of the coarse clock.
    pub(crate) fn tick(&self) -> u32 {
        tick_of(self.ledger.header().clock.0.load(Relaxed))
    }

    /// Records a time of holding that the call at `site` has ended, if it is one of those that
    /// are measured.
    pub(crate) fn held_until_now(&self, holding: &Holding, site: Option<&CallSite>) {
        if let Some(hold) = self.measured(holding) {
            self.add_hold(&hold, site);
        }
    }

    /// Returns what a time of holding came to, which ends now, if it is one of those that are
    /// measured.
    pub(crate) fn measured(&self, holding: &Holding) -> Option<Measured> {
        let is_timed = holding.flags.has(Flags::TIMED);
        let has_moved = self.tick() != holding.tick;
        if !is_timed && !has_moved {
            return None;
        }
        let latest = self.estimate(holding.tick);
        let now = self.clock();
        let is_long = has_moved && now.saturating_sub(latest) >= LONG;
        if !is_timed && !is_long {
            return None;
        }
        let is_coarse = holding.started == 0;
        let started = if is_coarse { latest } else { holding.started };
        let weight = if is_long { 1 } else { holding.flags.weight() };
        if is_coarse {
            self.is_worth_timing(holding);
        }
        let ns = now.saturating_sub(started);
        // Once the lock is free it may be destroyed, and its statistics buried.
        let statistics = self.statistics(holding.lock, ns.saturating_mul(weight))?;
        let is_shared = holding.flags.has(Flags::READ);
        let stack = holding.stack;
        Some(Measured { stack, ended: now, ns, weight, is_coarse, is_shared, statistics })
    }

    /// Returns the statistics of a lock, which it has from the moment on at which it was held for
    /// so long that they are worth their memory.
    fn statistics(&self, lock: u32, held: u64) -> Option<&'static Extension> {
        let record = self.ledger.lock(lock)?;
        self.ledger.existing_extension(record).or_else(|| {
            let held = (held >> HELD_SHIFT).min(HELD_BEFORE_STATISTICS);
            let before = record.held_before.fetch_add(held as u32, Relaxed);
            let is_enough = u64::from(before) + held >= HELD_BEFORE_STATISTICS;
            if is_enough { self.ledger.extension(lock) } else { None }
        })
    }

    /// Returns when an untimed hold may have begun: while the coarse clock showed `tick`, and after
    /// the thread last read the real one, holding nothing. Mostly it did that shortly
    /// before, in that step, for the place is one that is used all the time; if not, the
    /// middle of the step is taken.
    pub(crate) fn estimate(&self, tick: u32) -> u64 {
        let header = self.ledger.header();
        let earliest = header.time_of(tick);
        let before = self.record().clock_read.load(Relaxed);
        if before >= earliest {
            return before + PRICE;
        }
        let was = header.clock_before.load(Relaxed);
        let latest = if tick_of(was) == tick { header.clock.0.load(Relaxed) } else { was };
        earliest + (latest.saturating_sub(earliest)).min(USUAL_STEP) / 2
    }

    /// Has the next holds at this place timed, for one was long.
    #[cold]
    pub(crate) fn is_worth_timing(&self, holding: &Holding) {
        let site = self.ledger.stack(holding.stack).map_or(0, |stack| stack.site());
        let line = &self.thread.cache[line_of(holding.address, site)].known;
        core::iter::once(line)
            .chain(self.thread.known_by_address(holding.address))
            .filter(|known| known.address.load(Relaxed) == holding.address)
            .for_each(times_each);
    }

    /// Records a time of holding that was ended by the call at `site`.
    #[cold]
    pub(crate) fn add_hold(&self, hold: &Measured, site: Option<&CallSite>) {
        let statistics = hold.statistics;
        let total = hold.ns.saturating_mul(hold.weight);
        statistics.hold.add(hold.ns, hold.weight, hold.stack);
        self.role(statistics).held(hold.is_shared, hold.weight, total);
        if hold.is_coarse {
            statistics.coarse.fetch_add(1, Relaxed);
            statistics.coarse_total.fetch_add(hold.ns, Relaxed);
        } else {
            statistics.timed.fetch_add(1, Relaxed);
        }
        if hold.weight > 1 {
            statistics.scaled.fetch_add(total - hold.ns, Relaxed);
        }
        let share = self.ledger.add_share(&statistics.held_at, hold.stack, hold.weight, total);
        if let Some(site) = site
            && share.stack.load(Relaxed) == hold.stack
            && share.released.load(Relaxed) == 0
        {
            share.released.store(self.stack(site), Relaxed);
        }
    }
}

/// How often a place is timed, and when it was last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimingPace {
    rarity: u8,
    timed_at: u16,
}

impl TimingPace {
    pub(crate) fn of(known: &KnownLock) -> TimingPace {
        TimingPace { rarity: known.rarity.load(Relaxed), timed_at: known.timed_at.load(Relaxed) }
    }
}

/// A time of holding that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The stack of the acquisition.
    stack: u32,
    ended: u64,
    ns: u64,
    /// How many holds it stands for.
    weight: u64,
    /// Whether it is an estimate when the hold began.
    is_coarse: bool,
    /// Whether it was one reader among others.
    is_shared: bool,
    statistics: &'static Extension,
}

impl Measured {
    /// Returns when it began and when it ended.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.ended.saturating_sub(self.ns), self.ended)
    }
}

fn is_due(known: &KnownLock) -> bool {
    known.count.load(Relaxed) >= known.next_sample.load(Relaxed)
}

fn times_each(known: &KnownLock) {
    known.rarity.store(0, Relaxed);
    known.next_sample.store(0, Relaxed);
}

/// The number of bits behind the point of a logarithm.
const LOG_BITS: u32 = 10;

/// Returns minus the binary logarithm of `x / 2^32`, for an `x` that is not zero, in parts
/// of `2^LOG_BITS`: bit by bit, by squaring what is left.
fn minus_log2(x: u32) -> u32 {
    let zeros = x.leading_zeros();
    // Between one and two, with 31 bits behind the point.
    let mut rest = u64::from(x << zeros);
    let mut log = 0;
    for _ in 0..LOG_BITS {
        rest = (rest * rest) >> 31;
        // No branch: it would be foreseen wrong half of the times.
        let bit = rest >> 32;
        rest >>= bit;
        log = (log << 1) | bit as u32;
    }
    ((zeros + 1) << LOG_BITS) - log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right_to_their_last_bit() {
        for x in (1..=u32::MAX).step_by(9_999_991).chain([1, 2, 3, u32::MAX]) {
            let exact = -(f64::from(x) / 4_294_967_296.0).log2() * f64::from(1 << LOG_BITS);
            let found = f64::from(minus_log2(x));
            assert!((found - exact).abs() <= 1.0, "{x}: {found}, not {exact}");
        }
    }
}
