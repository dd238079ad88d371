//! The reader-writer lock that survives its owners.
//!
//! # State
//! A [`SharedMutex`], which the writer has; and among the claims of each reader one
//! that names the lock.
//!
//! # Protocol
//! A reader claims, then looks at the word: if nobody owns the lock, it reads. Else it
//! gives its claim back and waits. A writer takes the mutex, [`UNTOUCHED`], then looks
//! at all claims of living participants and sleeps on each that names the lock, and on
//! its reader's life; then what the lock protects is its own. Claim and word are two
//! words that both sides write one of and then read the other of, all of it
//! sequentially consistent: one of the two sees the other.
//!
//! A reader that ends has void claims; nothing must be repaired. A writer that ends
//! while it waits for readers has touched nothing, and the word says so.
//!
//! A reader that has no claim left takes the lock alone, and does not touch what it
//! protects. So there is no limit on how many locks a participant reads under.
//!
//! # Source
//! Readers that write their own lines only are those of brlock (Linux 2.4) and of
//! hazard pointers (Maged Michael, 2004).

use super::life::Life;
use super::machine::{Robust, Watch, Woken};
use super::mutex::SharedMutex;
use super::outcome::{Got, SharedError};
use super::party::Party;
use super::slot::{AWAITED, Claim, SlotRecord};
use super::wait::{Goal, Seek};
use super::word::{INCONSISTENT, OWNER, RESERVED, UNTOUCHED};
use crate::platform::{Atomic32, Ordering, Wait};

/// A reader-writer lock for memory that processes share.
#[repr(C, align(8))]
pub struct SharedRwLock<P: Robust> {
    mutex: SharedMutex<P>,
}

/// How a reader has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadHold {
    /// By its claim of this number.
    Claim(usize),
    /// Alone, for want of a claim.
    Alone,
    /// Alone, since its last writer died: what it protects may be repaired. To be
    /// released as by a writer.
    OwnerDied,
}

impl<P: Robust> SharedRwLock<P> {
    /// A free lock. So are zeroes.
    #[must_use]
    pub const fn new() -> Self {
        SharedRwLock { mutex: SharedMutex::new() }
    }

    /// Takes it for reading, by the caller's claim of this number, which is not in use;
    /// `None` if all are.
    ///
    /// # Errors
    /// As `how` allows; [`SharedError::Recursive`] if the caller has it for writing.
    #[inline]
    pub fn read(
        &self,
        party: &Party<'_, P>,
        claim: Option<usize>,
        how: &Wait<'_, P>,
    ) -> Result<ReadHold, SharedError> {
        self.read_by(party, claim, |seek, goal| seek.until(goal), how)
    }

    /// Takes it for reading if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`] if it does; as [`read`](Self::read).
    #[inline]
    pub fn try_read(
        &self,
        party: &Party<'_, P>,
        claim: Option<usize>,
    ) -> Result<ReadHold, SharedError> {
        self.read_by(party, claim, |seek, goal| seek.once(goal), &Wait::FOREVER)
    }

    #[inline]
    fn read_by<'l, 'a, 'h>(
        &'l self,
        party: &'l Party<'a, P>,
        claim: Option<usize>,
        by: impl FnOnce(Seek<'l, 'a, 'h, P>, Goal) -> Result<Got, SharedError>,
        how: &'l Wait<'h, P>,
    ) -> Result<ReadHold, SharedError> {
        let here = P::here();
        let seek = || self.mutex.seek(party, how, here);
        let Some(number) = claim else {
            // Others may read meanwhile.
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
            // It would wait for a writer that waits for it.
            return Err(SharedError::Recursive);
        }
        match by(seek(), Goal::Share(number)) {
            Ok(Got::Clean) => Ok(ReadHold::Claim(number)),
            Ok(Got::OwnerDied) => self.repairs(party, how),
            Err(error) => Err(error),
        }
    }

    /// The caller, who wanted to read, owns what a dead writer has left.
    fn repairs(&self, party: &Party<'_, P>, how: &Wait<'_, P>) -> Result<ReadHold, SharedError> {
        self.own_all(party, how).map(|()| ReadHold::OwnerDied)
    }

    /// Releases what [`read`](Self::read) has got. False if the caller does not have
    /// it.
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

    /// Takes it for writing.
    ///
    /// # Errors
    /// As `how` allows; [`SharedError::Recursive`] if the caller has it, also for
    /// reading.
    #[inline]
    pub fn write(&self, party: &Party<'_, P>, how: &Wait<'_, P>) -> Result<Got, SharedError> {
        if self.is_read_by(party) {
            return Err(SharedError::Recursive);
        }
        let here = P::here();
        let got = if self.take(party) {
            Got::Clean
        } else {
            self.mutex.seek(party, how, here).until(Goal::Own(UNTOUCHED))?
        };
        P::turn(here, got as u64);
        self.own_all(party, how).map(|()| got)
    }

    /// Takes it for writing if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`] if it does; as [`write`](Self::write).
    #[inline]
    pub fn try_write(&self, party: &Party<'_, P>) -> Result<Got, SharedError> {
        if self.is_read_by(party) {
            return Err(SharedError::Recursive);
        }
        let got = if self.take(party) {
            Got::Clean
        } else {
            self.mutex.seek(party, &Wait::FOREVER, P::here()).once(Goal::Own(UNTOUCHED))?
        };
        while let Some(reader) = self.reader(party) {
            if !party.suspects(reader.slot, reader.life) {
                self.mutex.unlock(party);
                return Err(SharedError::TimedOut);
            }
        }
        self.touch();
        Ok(got)
    }

    #[inline]
    fn take(&self, party: &Party<'_, P>) -> bool {
        let mine = party.me.bits() | UNTOUCHED;
        // ord: SHR-6 (seq_cst): before the look at the claims; SHR-1.
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        self.mutex.word.compare_exchange(0, mine, success, failure).is_ok()
    }

    /// Releases it; as [`SharedMutex::unlock`].
    #[inline]
    pub fn unwrite(&self, party: &Party<'_, P>) -> bool {
        self.mutex.unlock(party)
    }

    /// As [`SharedMutex::mark_consistent`].
    pub fn mark_consistent(&self, party: &Party<'_, P>) -> bool {
        self.mutex.mark_consistent(party)
    }

    /// The word of its mutex, for reports.
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.mutex.peek()
    }

    /// The caller may touch what the lock protects, from now on.
    fn touch(&self) {
        self.mutex.word.fetch_and(!UNTOUCHED, Ordering::Relaxed);
    }

    /// Waits until nobody reads. Releases the lock if that fails.
    fn own_all(&self, party: &Party<'_, P>, how: &Wait<'_, P>) -> Result<(), SharedError> {
        let here = P::here();
        if let Some(reader) = self.reader(party)
            && let Err(error) = self.drain(party, reader, how, here)
        {
            if error != SharedError::Copied {
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
        first: Reader<'a, P>,
        how: &Wait<'_, P>,
        here: u64,
    ) -> Result<(), SharedError> {
        let named = party.domain.name_doorbell();
        let mut reader = Some(first);
        let outcome = loop {
            let Some(found) = reader else { break Ok(()) };
            let by_another_way = P::is_caller(party.domain.segment, found.slot, found.life);
            if found.slot == party.me.slot() || by_another_way {
                break Err(SharedError::Recursive);
            }
            if let Some(error) = found.sleep(party, how) {
                break Err(error);
            }
            if how.cancelled() {
                break Err(SharedError::Cancelled);
            }
            if how.deadline.is_some_and(|deadline| P::now() >= deadline) {
                break Err(SharedError::TimedOut);
            }
            P::turn(here, 0);
            reader = self.reader(party);
        };
        P::at_death_wake(named);
        outcome
    }

    /// Whether the caller reads. To be known before it waits for anybody: of two that read
    /// and want to write, each would wait for the other.
    fn is_read_by(&self, party: &Party<'_, P>) -> bool {
        let used =
            party.record().map_or(0, |record| record.claims.load(Ordering::Relaxed) as usize);
        let what = party.domain.offset(core::ptr::from_ref(&self.mutex).addr());
        party.domain.claims_of(party.me.slot()).iter().take(used).any(|claim| {
            let claimed = claim.what.load(Ordering::Relaxed) & !AWAITED;
            claimed != 0 && Some(claimed) == what
        })
    }

    /// Somebody who reads.
    fn reader<'a>(&self, party: &Party<'a, P>) -> Option<Reader<'a, P>> {
        let what = party.domain.offset(core::ptr::from_ref(&self.mutex).addr())?;
        party.domain.all_living().find_map(|(slot, record, life, claims)| {
            let names = |claim: &&Claim<P>| {
                // ord: SHR-6 (seq_cst): after the word; SHR-7 (acquire).
                claim.what.load(Ordering::SeqCst) & !AWAITED == what
            };
            let claim = claims.iter().find(names)?;
            Some(Reader { slot, record, life, claim, what })
        })
    }
}

impl<P: Robust> Default for SharedRwLock<P> {
    fn default() -> Self {
        Self::new()
    }
}

struct Reader<'a, P: Robust> {
    slot: u32,
    record: &'a SlotRecord<P>,
    life: Life,
    claim: &'a Claim<P>,
    what: u32,
}

impl<P: Robust> Reader<'_, P> {
    /// Sleeps while it reads, once.
    fn sleep(&self, party: &Party<'_, P>, how: &Wait<'_, P>) -> Option<SharedError> {
        let bell = party.domain.bell();
        let awaited = self.what | AWAITED;
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.claim.what.compare_exchange(self.what, awaited, success, failure) {
            Ok(_) => {}
            Err(found) if found == awaited => {}
            Err(_) => return None,
        }
        let watches = [
            Watch::Word(&self.claim.what, awaited),
            Watch::Word(party.domain.doorbell, bell),
            Watch::Low(&self.record.life, self.life.life()),
            Watch::High(&self.record.life, self.life.high()),
        ];
        match party.sleep(&watches, how, &[(self.slot, self.life)]) {
            Woken::At(index) => {
                party.domain.after_wake(index, bell);
                None
            }
            Woken::Unsure => {
                if self.claim.what.load(Ordering::Relaxed) != awaited {
                    P::missed();
                }
                None
            }
            Woken::Changed => None,
            Woken::TimedOut => Some(SharedError::TimedOut),
            Woken::Interrupted => how.interruptible.then_some(SharedError::Interrupted),
            Woken::Cancelled => Some(SharedError::Cancelled),
            Woken::Copied => Some(SharedError::Copied),
        }
    }
}
