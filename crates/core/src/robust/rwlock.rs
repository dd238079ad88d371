//! The reader-writer lock between processes, which survives its holders.
//!
//! # State
//! A [`RawSharedMutex`], which the writer owns; and for each reader one of that reader's claims,
//! which names the lock.
//!
//! # Protocol
//! ```text
//!   reader                                  writer
//!   1. makes its claim                      1. owns the word, UNTOUCHED
//!   2. reads the word                       2. reads all claims
//!      nobody owns it ──▶ reads                none names the lock ──▶ clears UNTOUCHED, writes
//!      else gives the claim back, waits        else sleeps on that claim and its reader's life
//! ```
//! Each side writes one of two words and then reads the other, all of it sequentially
//! consistent, so one of the two sees the other.
//!
//! A reader that ends has void claims; nothing must be repaired. A writer that ends while it
//! waits for readers has touched nothing, and [`UNTOUCHED`] says so.
//!
//! A reader that has no claim left takes the lock alone, and does not touch what it protects. So
//! a participant may read under any number of locks.
//!
//! # Source
//! Readers that write lines of their own only are those of brlock (Linux 2.4) and of hazard
//! pointers (Maged Michael, 2004).

use super::awaited::{RobustUse, RobustWait};
use super::life::Life;
use super::machine::{RobustMachine, WatchedWord, Woken, name_again, telling};
use super::mutex::RawSharedMutex;
use super::outcome::{Got, RobustError};
use super::party::Party;
use super::slot::{AWAITED, Claim, SlotRecord};
use super::wait::{Goal, Seek};
use super::word::{INCONSISTENT, OWNER, RESERVED, UNTOUCHED};
use crate::atomic::{Atomic32, Ordering};
use crate::platform::WaitBounds;

/// A reader-writer lock in memory that processes share.
#[repr(C, align(8))]
pub struct RawSharedRwLock<P: RobustMachine> {
    mutex: RawSharedMutex<P>,
}

/// How a reader has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadHold {
    /// It has the lock by its claim of this number.
    Claim(usize),
    /// It has the lock alone, for want of a claim.
    Alone,
    /// It has the lock alone, because the last writer died, and may repair what the lock
    /// protects. It releases the lock like a writer.
    OwnerDied,
}

impl<P: RobustMachine> RawSharedRwLock<P> {
    /// Builds a free lock, which is all zeroes.
    #[must_use]
    pub const fn new() -> Self {
        RawSharedRwLock { mutex: RawSharedMutex::new() }
    }

    /// Takes the lock for reading, by the caller's claim of this number, which is not in use.
    /// Returns `None` if all are in use.
    ///
    /// # Errors
    /// As `how` allows; [`RobustError::Recursive`] if the caller writes.
    #[inline]
    pub fn read(
        &self,
        party: &Party<'_, P>,
        claim: Option<usize>,
        how: &WaitBounds<'_, P>,
    ) -> Result<ReadHold, RobustError> {
        let until = |seek: Seek<'_, '_, '_, P>, goal| {
            if matches!(goal, Goal::Own(_)) && self.mutex.peek() == 0 {
                // It has no claim, so that it has not tried yet.
                return seek.until(goal);
            }
            let wait = RobustWait::new(&self.mutex, RobustUse::Read, how);
            telling::<P, _>(&wait, || seek.until(goal))
        };
        self.read_by(party, claim, until, how)
    }

    /// Takes the lock for reading if that needs no wait.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`] if it needs one; else as [`read`](Self::read).
    #[inline]
    pub fn try_read(
        &self,
        party: &Party<'_, P>,
        claim: Option<usize>,
    ) -> Result<ReadHold, RobustError> {
        self.read_by(party, claim, |seek, goal| seek.once(goal), &WaitBounds::FOREVER)
    }

    #[inline]
    fn read_by<'l, 'a, 'h>(
        &'l self,
        party: &'l Party<'a, P>,
        claim: Option<usize>,
        by: impl FnOnce(Seek<'l, 'a, 'h, P>, Goal) -> Result<Got, RobustError>,
        how: &'l WaitBounds<'h, P>,
    ) -> Result<ReadHold, RobustError> {
        let here = P::here();
        let seek = || self.mutex.seek(party, how, here);
        let Some(number) = claim else {
            // UNTOUCHED, for others may read meanwhile.
            return match by(seek(), Goal::Own(UNTOUCHED))? {
                Got::Clean => Ok(ReadHold::Alone),
                Got::OwnerDied => self.repairs(party, how),
            };
        };
        let (mine, what) = party.claim(number, &self.mutex)?;
        mine.make(what);
        // ord: SHR-6 (seq_cst): after the claim.
        let word = self.mutex.word.load(Ordering::SeqCst);
        if word & (OWNER | RESERVED | INCONSISTENT) == 0 {
            return Ok(ReadHold::Claim(number));
        }
        mine.give_back();
        if self.is_read_by(party) {
            // The caller would wait for a writer that waits for the caller.
            return Err(RobustError::Recursive);
        }
        match by(seek(), Goal::Share(number)) {
            Ok(Got::Clean) => Ok(ReadHold::Claim(number)),
            Ok(Got::OwnerDied) => self.repairs(party, how),
            Err(error) => Err(error),
        }
    }

    /// Has the caller, which wanted to read and owns what a dead writer left, wait for readers.
    fn repairs(
        &self,
        party: &Party<'_, P>,
        how: &WaitBounds<'_, P>,
    ) -> Result<ReadHold, RobustError> {
        self.own_all(party, how, Some(RobustUse::Read)).map(|()| ReadHold::OwnerDied)
    }

    /// Releases what [`read`](Self::read) returned. Returns false if the caller does not have that.
    #[inline]
    pub fn unread(&self, party: &Party<'_, P>, hold: ReadHold) -> bool {
        let ReadHold::Claim(number) = hold else {
            return self.mutex.unlock(party);
        };
        match party.claim(number, &self.mutex) {
            Ok((claim, what)) if claim.what.load(Ordering::Relaxed) & !AWAITED == what => {
                claim.give_back();
                true
            }
            _ => false,
        }
    }

    /// Takes the lock for writing.
    ///
    /// # Errors
    /// As `how` allows; [`RobustError::Recursive`] if the caller writes or reads.
    #[inline]
    pub fn write(&self, party: &Party<'_, P>, how: &WaitBounds<'_, P>) -> Result<Got, RobustError> {
        if self.is_read_by(party) {
            return Err(RobustError::Recursive);
        }
        let here = P::here();
        if !self.take(party) {
            return self.write_slow(party, how, here);
        }
        P::turn(here, Got::Clean as u64);
        self.own_all(party, how, Some(RobustUse::Write)).map(|()| Got::Clean)
    }

    #[cold]
    fn write_slow(
        &self,
        party: &Party<'_, P>,
        how: &WaitBounds<'_, P>,
        here: u64,
    ) -> Result<Got, RobustError> {
        let wait = RobustWait::new(&self.mutex, RobustUse::Write, how);
        telling::<P, _>(&wait, || {
            let got = self.mutex.seek(party, how, here).until(Goal::Own(UNTOUCHED))?;
            P::turn(here, got as u64);
            self.own_all(party, how, None).map(|()| got)
        })
    }

    /// Takes the lock for writing if that needs no wait.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`] if it needs one; else as [`write`](Self::write).
    #[inline]
    pub fn try_write(&self, party: &Party<'_, P>) -> Result<Got, RobustError> {
        if self.is_read_by(party) {
            return Err(RobustError::Recursive);
        }
        let got = if self.take(party) {
            Got::Clean
        } else {
            self.mutex.seek(party, &WaitBounds::FOREVER, P::here()).once(Goal::Own(UNTOUCHED))?
        };
        while let Some(reader) = self.reader(party) {
            if !party.suspects(reader.slot, reader.life) {
                self.mutex.unlock(party);
                return Err(RobustError::TimedOut);
            }
        }
        self.touch();
        Ok(got)
    }

    #[inline]
    fn take(&self, party: &Party<'_, P>) -> bool {
        let untouched = if fault!(shared_writer_touches_at_once) { 0 } else { UNTOUCHED };
        let mine = party.me.bits() | untouched;
        // ord: SHR-6 (seq_cst): before the look at the claims; SHR-1.
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        self.mutex.word.compare_exchange(0, mine, success, failure).is_ok()
    }

    /// Releases the lock that the caller has for writing, as [`RawSharedMutex::unlock`] does.
    #[inline]
    pub fn unwrite(&self, party: &Party<'_, P>) -> bool {
        self.mutex.unlock(party)
    }

    /// Releases the lock, which the caller has alone, as one that has changed nothing: after a death,
    /// without [`mark_consistent`](Self::mark_consistent), the next one is told of it in the caller's
    /// stead. Returns false, and does nothing, if the caller does not have it alone.
    pub fn unwrite_untouched(&self, party: &Party<'_, P>) -> bool {
        self.mutex.unlock_untouched(party)
    }

    /// Declares consistent what the lock protects, as [`RawSharedMutex::mark_consistent`] does.
    pub fn mark_consistent(&self, party: &Party<'_, P>) -> bool {
        self.mutex.mark_consistent(party)
    }

    /// Reads the word of the lock's mutex, for reports.
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.mutex.peek()
    }

    /// Reads the other word, as [`RawSharedMutex::peek_next`] does.
    #[must_use]
    pub fn peek_next(&self) -> u32 {
        self.mutex.peek_next()
    }

    /// Notes that the caller may touch what the lock protects, from now on.
    fn touch(&self) {
        self.mutex.word.fetch_and(!UNTOUCHED, Ordering::Relaxed);
    }

    /// Waits until nobody reads any more. Releases the lock if that fails. A wait that is not part of
    /// another one is told as one for this.
    fn own_all(
        &self,
        party: &Party<'_, P>,
        how: &WaitBounds<'_, P>,
        told: Option<RobustUse>,
    ) -> Result<(), RobustError> {
        let here = P::here();
        if let Some(reader) = self.reader(party)
            && let Err(error) = match told {
                None => self.drain(party, reader, how, here),
                Some(wants) => telling::<P, _>(&RobustWait::new(&self.mutex, wants, how), || {
                    self.drain(party, reader, how, here)
                }),
            }
        {
            if error != RobustError::Copied {
                self.mutex.unlock(party);
            }
            return Err(error);
        }
        self.touch();
        Ok(())
    }

    #[cold]
    fn drain<'a>(
        &self,
        party: &Party<'a, P>,
        first: ClaimingReader<'a, P>,
        how: &WaitBounds<'_, P>,
        here: u64,
    ) -> Result<(), RobustError> {
        let named = if fault!(shared_draining_writer_names_nothing) {
            P::at_death_wake(None)
        } else {
            party.domain.name_doorbell()
        };
        let mut reader = Some(first);
        let outcome = loop {
            let Some(found) = reader else { break Ok(()) };
            let by_another_way = P::is_caller(party.domain.segment, found.slot, found.life);
            if found.slot == party.me.slot() || by_another_way {
                break Err(RobustError::Recursive);
            }
            let outside = fault!(shared_writer_waits_outside);
            if outside {
                self.mutex.unlock(party);
            }
            if let Some(error) = found.sleep(party, how) {
                break Err(error);
            }
            if outside {
                let _ = self.mutex.seek(party, how, here).until(Goal::Own(UNTOUCHED));
            }
            if how.cancelled() {
                break Err(RobustError::Cancelled);
            }
            if how.deadline.is_some_and(|deadline| P::now() >= deadline) {
                break Err(RobustError::TimedOut);
            }
            P::turn(here, 0);
            reader = self.reader(party).filter(|_| !fault!(shared_writer_overlooks_readers));
        };
        name_again::<P, _>(named, &outcome);
        outcome
    }

    /// Tells whether the caller reads. It asks before it waits for anybody: of two participants
    /// that read and want to write, each would wait for the other.
    fn is_read_by(&self, party: &Party<'_, P>) -> bool {
        let used =
            party.record().map_or(0, |record| record.claims.load(Ordering::Relaxed) as usize);
        let what = party.domain.offset(core::ptr::from_ref(&self.mutex).addr());
        party.domain.claims_of(party.me.slot()).iter().take(used).any(|claim| {
            let claimed = claim.what.load(Ordering::Relaxed) & !AWAITED;
            claimed != 0 && Some(claimed) == what
        })
    }

    /// Finds a participant that reads.
    fn reader<'a>(&self, party: &Party<'a, P>) -> Option<ClaimingReader<'a, P>> {
        let what = party.domain.offset(core::ptr::from_ref(&self.mutex).addr())?;
        party.domain.all_living().find_map(|(slot, record, life, claims)| {
            let names = |claim: &&Claim<P>| {
                // ord: SHR-6 (seq_cst): after the word; SHR-7 (acquire).
                claim.what.load(Ordering::SeqCst) & !AWAITED == what
            };
            let claim = claims.iter().find(names)?;
            Some(ClaimingReader { slot, record, life, claim, what })
        })
    }
}

impl<P: RobustMachine> Default for RawSharedRwLock<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A participant that reads, and its claim.
struct ClaimingReader<'a, P: RobustMachine> {
    slot: u32,
    record: &'a SlotRecord<P>,
    life: Life,
    claim: &'a Claim<P>,
    what: u32,
}

impl<P: RobustMachine> ClaimingReader<'_, P> {
    /// Sleeps once while it reads. Returns the reason if the wait is over.
    fn sleep(&self, party: &Party<'_, P>, how: &WaitBounds<'_, P>) -> Option<RobustError> {
        let doorbell = party.domain.doorbell_value();
        let awaited = self.what | AWAITED;
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.claim.what.compare_exchange(self.what, awaited, success, failure) {
            Ok(_) => {}
            Err(found) if found == awaited => {}
            Err(_) => return None,
        }
        let watches = [
            WatchedWord::Word(&self.claim.what, awaited),
            WatchedWord::Word(party.domain.doorbell, doorbell),
            WatchedWord::Low(&self.record.life, self.life.life()),
            WatchedWord::High(&self.record.life, self.life.high()),
        ];
        let watched = if fault!(shared_writer_watches_no_reader) { 2 } else { watches.len() };
        let doubted = [(self.slot, self.life)];
        let doubted = &doubted[usize::from(fault!(unmarked_writer_asks_about_nobody))..];
        match party.sleep(&watches[..watched], how, doubted) {
            Woken::At(index) => {
                if !fault!(shared_draining_writer_wakes_nobody) {
                    party.domain.after_wake(index, doorbell);
                }
                None
            }
            Woken::Unsure => {
                if self.claim.what.load(Ordering::Relaxed) != awaited {
                    P::missed();
                }
                None
            }
            Woken::Changed => None,
            Woken::TimedOut => Some(RobustError::TimedOut),
            Woken::Interrupted => how.interruptible.then_some(RobustError::Interrupted),
            Woken::Cancelled => Some(RobustError::Cancelled),
            Woken::Copied => Some(RobustError::Copied),
        }
    }
}
