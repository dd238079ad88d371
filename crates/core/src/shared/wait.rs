//! Waiting for a shared lock: sleeping, noticing deaths, giving up, the heir.
//!
//! # Protocol
//! A waiter names the doorbell as what the machine wakes if it ends (D2); looks at the
//! doorbell, then at the word; takes the lock if it is free or its owner is dead. Else
//! it marks the word ([`WAITERS`]) and sleeps on five words at once, in this order:
//!
//! | # | word | who wakes there |
//! |---|---|---|
//! | 0 | the lock's other word; of the heir the lock's word | who releases, or passes on |
//! | 1 | the doorbell | who rings; the machine, when a waiter that was woken ends |
//! | 2 | the owner's life | the machine, when the owner ends |
//! | 3 | the owner's generation and process | nobody |
//! | 4 | the lock's word | nobody |
//!
//! Woken by a death (2; or 1 with the doorbell as it was) it *rings*: everybody in the
//! segment looks again. For the machine wakes one sleeper for each death, and that one
//! may wait for another lock, or die.
//!
//! Whoever was woken, and then takes the lock or gives up, *passes on*: it wakes the
//! next one before it ceases to name the doorbell. Or it *pledges*, if it has the lock
//! and the machine allows it: it leaves the mark, so that its release wakes the next
//! one, and the doorbell stays named until then.
//!
//! A waiter that finds a word changed when it was about to sleep waits for critical
//! sections shorter than the way to sleep; one that a release has woken, and that finds the
//! lock taken, for a lock that is taken again faster than it wakes up. Either *rests*:
//! the mark is not set meanwhile, and who has the lock pays for no wake-ups.
//!
//! A lock that is reserved is its heir's, as if it had it: who waits watches the heir's
//! life. A waiter becomes the heir when it has waited longer than [`PATIENCE`] and
//! there is no other heir that lives.
//!
//! # Invariants
//! - **S1** If anybody sleeps on a lock, then somebody watches the life of its present
//!   owner; or the owner has pledged; or somebody who was woken has not looked at it yet, and names the doorbell;
//!   or a wake-up at the doorbell or at the lock is due from somebody whose life is
//!   watched.
//!
//! Why the last words are compared last (D3): a doorbell that rang before the waiter
//! queued at it was rung because of a change that the comparison of the word then
//! notices; and the other half of the life word tells a new participant of the same number
//! from the dead one.

use super::life::Life;
use super::mutex::SharedMutex;
use super::robust::{Robust, Watch, Woken};
use super::seat::{Fate, Party, Seat};
use super::word::{INCONSISTENT, Identity, NOT_RECOVERABLE, OWNER, RESERVED, UNTOUCHED, WAITERS};
use super::{Got, SharedError};
use crate::platform::{Atomic32, Nanos, Ordering, Wait};

/// How long a waiter lets others pass before it has the lock kept for itself, in
/// nanoseconds.
pub(super) const PATIENCE: u64 = 5_000_000;

/// What is sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// To own the lock, with these flags beside one's name.
    Own(u32),
    /// That nobody owns it, and a certain claim is made meanwhile: see
    /// [`rwlock`](super::rwlock).
    Share(usize),
}

/// What a look at the lock has shown.
enum Look<'a, P: Robust> {
    /// It was got.
    Had(Got),
    /// It will not be.
    Never(SharedError),
    /// Look again.
    Again,
    /// Somebody else has it, or it is kept for them.
    Theirs(Theirs<'a, P>),
}

struct Theirs<'a, P: Robust> {
    word: u32,
    /// The lock's other word, as it was when that was concluded.
    heir: u32,
    /// Of the owner, or of the heir of a lock that nobody has.
    seat: &'a Seat<P>,
    slot: u32,
    life: Life,
}

/// An acquisition that is not over.
pub(super) struct Seek<'l, 'a, 'h, P: Robust> {
    lock: &'l SharedMutex<P>,
    party: &'l Party<'a, P>,
    how: &'l Wait<'h, P>,
    /// From [`Robust::here`], before the fast path.
    here: u64,
    /// Somebody is to be woken before it is done: it was itself, and has passed nothing
    /// on yet.
    woken: bool,
    is_heir: bool,
    /// The lock changed hands on its way to sleep, or a release woke it.
    hot: bool,
    /// Nobody woke it for long.
    unsure: bool,
    /// Since when it sleeps, on and off.
    since: Option<Nanos>,
}

impl<'l, 'a, 'h, P: Robust> Seek<'l, 'a, 'h, P> {
    pub(super) fn new(
        lock: &'l SharedMutex<P>,
        party: &'l Party<'a, P>,
        how: &'l Wait<'h, P>,
        here: u64,
    ) -> Self {
        Seek {
            lock,
            party,
            how,
            here,
            woken: false,
            is_heir: false,
            hot: false,
            unsure: false,
            since: None,
        }
    }

    /// Tries until it is had, or the wait is over.
    pub(super) fn until(mut self, goal: Goal) -> Result<Got, SharedError> {
        if let Some(outcome) = self.spin(goal) {
            return outcome;
        }
        let named = self.party.domain.name_doorbell();
        let outcome = loop {
            P::turn(self.here, self.kept());
            // Before the word: see the module's last paragraph.
            let bell = self.party.domain.bell();
            let ended = match self.look(goal) {
                Look::Had(got) => {
                    if self.unsure && got == Got::Clean {
                        P::missed();
                    }
                    break Ok(got);
                }
                Look::Never(error) => Some(error),
                Look::Again => None,
                Look::Theirs(theirs) => self.sleep(bell, &theirs),
            };
            if let Some(error) = ended {
                break Err(error);
            }
            if let Some(error) = self.over() {
                break Err(error);
            }
        };
        self.leave(outcome);
        P::at_death_wake(named);
        outcome
    }

    /// All that it knows when it looks again, but for whether it is to rest: to others that
    /// is as being slow.
    fn kept(&self) -> u64 {
        let since = self.since.map_or(0, |since| since.0 + 1);
        since << 2 | u64::from(self.is_heir) << 1 | u64::from(self.woken)
    }

    /// Tries without waiting.
    pub(super) fn once(mut self, goal: Goal) -> Result<Got, SharedError> {
        loop {
            match self.look(goal) {
                Look::Had(got) => return Ok(got),
                Look::Never(error) => return Err(error),
                Look::Again => {}
                Look::Theirs(theirs) if self.party.suspects(theirs.slot, theirs.life) => {}
                Look::Theirs(_) => return Err(SharedError::TimedOut),
            }
        }
    }

    /// Looks a few times while nobody sleeps: a short critical section is over sooner
    /// than a sleep.
    fn spin(&mut self, goal: Goal) -> Option<Result<Got, SharedError>> {
        for _ in 0..P::SPINS {
            let word = self.lock.word.load(Ordering::Relaxed);
            if word & (OWNER | RESERVED) == 0 {
                match self.look(goal) {
                    Look::Had(got) => return Some(Ok(got)),
                    Look::Never(error) => return Some(Err(error)),
                    Look::Again | Look::Theirs(_) => {}
                }
            } else if word & WAITERS != 0 {
                return None;
            }
            P::relax();
        }
        None
    }

    /// Looks at the lock, and takes it if it can be had.
    fn look(&mut self, goal: Goal) -> Look<'a, P> {
        // ord: SHR-5 (acquire): who the lock is reserved for was written before that
        // it is.
        let word = self.lock.word.load(Ordering::Acquire);
        let heir = self.lock.heir.load(Ordering::Relaxed);
        if word == NOT_RECOVERABLE {
            return Look::Never(SharedError::NotRecoverable);
        }
        let mine = self.party.me;
        if let Some(owner) = Identity::from_bits(word) {
            if owner == mine {
                return Look::Never(SharedError::Recursive);
            }
            return match self.fate(owner, &self.lock.word, word) {
                Fate::Lives(seat, life) => {
                    self.theirs(Theirs { word, heir, seat, slot: owner.slot(), life })
                }
                Fate::Died => self.succeed(word, goal),
                Fate::Left(..) => Look::Again,
            };
        }
        if word & RESERVED != 0
            && let Some(named) = Identity::from_bits(heir)
            && named != mine
        {
            match self.fate(named, &self.lock.heir, heir) {
                Fate::Lives(seat, life) => {
                    return self.theirs(Theirs { word, heir, seat, slot: named.slot(), life });
                }
                Fate::Died => {}
                Fate::Left(..) => return Look::Again,
            }
        }
        match goal {
            Goal::Share(_) if word & RESERVED != 0 && !self.is_heir => {
                // For somebody dead.
                let _ = self.exchange(word, word & !RESERVED);
                Look::Again
            }
            Goal::Share(claim) if word & INCONSISTENT == 0 => self.share(claim),
            _ => self.own(word, word & (WAITERS | INCONSISTENT), goal),
        }
    }

    /// The lock is theirs; if that is the caller by another way to the segment, it would wait
    /// for itself.
    fn theirs(&self, theirs: Theirs<'a, P>) -> Look<'a, P> {
        if P::is_caller(self.party.domain.segment, theirs.slot, theirs.life) {
            return Look::Never(SharedError::Recursive);
        }
        Look::Theirs(theirs)
    }

    /// What has become of who is named in one of the lock's words, which had this value.
    fn fate(&self, who: Identity, word: &P::U32, value: u32) -> Fate<'a, P> {
        let fate = self.party.domain.fate(who);
        // Who has left has taken its name away before, so that it stands there no more, or
        // for somebody new; or it was never put there by who bore it, and is ended (G2).
        // ord: SHR-3 (acquire): after the look at the seat.
        if let Fate::Left(seat, life) = fate
            && word.load(Ordering::Acquire) == value
        {
            seat.retire(life);
        }
        fate
    }

    /// The owner named in the word is dead.
    fn succeed(&mut self, word: u32, goal: Goal) -> Look<'a, P> {
        let kept = word & (WAITERS | RESERVED | INCONSISTENT);
        if word & UNTOUCHED == 0 {
            return self.own(word, kept | INCONSISTENT, goal);
        }
        match goal {
            Goal::Share(_) if kept & INCONSISTENT == 0 => {
                // Nobody has it; the next look makes the claim.
                let _ = self.exchange(word, kept);
                Look::Again
            }
            _ => self.own(word, kept, goal),
        }
    }

    /// Makes the caller the owner. `flags` are those that the word keeps.
    fn own(&mut self, word: u32, flags: u32, goal: Goal) -> Look<'a, P> {
        let beside = match goal {
            Goal::Own(beside) => beside,
            // It wants to repair, and others may read still.
            Goal::Share(_) => UNTOUCHED,
        };
        let flags = if self.is_heir { flags & !RESERVED } else { flags };
        // Before it has the lock, which may be all that it ever does.
        let pledges = self.woken && P::pledge(self.party.domain.doorbell);
        let waiters = if pledges { WAITERS } else { 0 };
        if self.exchange(word, self.party.me.bits() | beside | flags | waiters).is_err() {
            return Look::Again;
        }
        self.woken &= !pledges;
        if self.is_heir {
            self.abdicate();
        }
        Look::Had(if flags & INCONSISTENT != 0 { Got::OwnerDied } else { Got::Clean })
    }

    /// Claims a share, which counts if nobody owns the lock then.
    fn share(&mut self, claim: usize) -> Look<'a, P> {
        let (claim, what) = match self.party.claim(claim, self.lock) {
            Ok(found) => found,
            Err(error) => return Look::Never(error),
        };
        claim.make(what);
        // ord: SHR-6 (seq_cst): after the claim; an owner looks for claims after it
        // has put itself here.
        let word = self.lock.word.load(Ordering::SeqCst);
        let reserved = word & RESERVED != 0 && !self.is_heir;
        if word & (OWNER | INCONSISTENT) != 0 || reserved {
            claim.give_back();
            return Look::Again;
        }
        if self.is_heir {
            self.unreserve();
            self.abdicate();
            // Others may sleep although nobody owns the lock, since it was kept.
            self.woken = true;
        }
        Look::Had(Got::Clean)
    }

    fn exchange(&self, word: u32, new: u32) -> Result<u32, u32> {
        // ord: SHR-1 (seq_cst): acquire: the critical sections before; release: who is
        // the heir. All of it: before an owner looks for claims (SHR-6).
        self.lock.word.compare_exchange(word, new, Ordering::SeqCst, Ordering::Relaxed)
    }

    /// Sleeps while it is theirs. The reason if the wait is over.
    fn sleep(&mut self, bell: u32, theirs: &Theirs<'a, P>) -> Option<SharedError> {
        let now = P::now();
        let since = *self.since.get_or_insert(now);
        if !self.is_heir && now.since(since) >= PATIENCE {
            self.is_heir = self.inherit(theirs.heir);
        }
        if core::mem::take(&mut self.hot)
            && !self.is_heir
            && let Some(moment) = P::REST
            && !self.how.interruptible
            && self.how.deadline.is_none_or(|deadline| now.after(moment) < deadline)
        {
            return self.ended(P::rest(moment));
        }
        let word = theirs.word | WAITERS | if self.is_heir { RESERVED } else { 0 };
        if word != theirs.word && self.exchange(theirs.word, word).is_err() {
            return None;
        }
        let me = self.party.seat();
        let channel = if self.is_heir {
            Watch::Word(&self.lock.word, word)
        } else {
            Watch::Word(&self.lock.heir, theirs.heir)
        };
        let watches = [
            channel,
            Watch::Word(self.party.domain.doorbell, bell),
            Watch::Low(&theirs.seat.life, theirs.life.life()),
            Watch::High(&theirs.seat.life, theirs.life.high()),
            Watch::Seen(&self.lock.word, word),
        ];
        let waits_for = self.party.domain.offset(core::ptr::from_ref(self.lock).addr());
        if let Some(seat) = me {
            seat.waits_for.store(waits_for.unwrap_or(0), Ordering::Relaxed);
        }
        let ended = self.party.sleep(&watches, self.how, &[(theirs.slot, theirs.life)]);
        if let Some(seat) = me.filter(|_| ended != Woken::Copied) {
            seat.waits_for.store(0, Ordering::Relaxed);
        }
        if let Woken::At(index) = ended {
            self.woken = true;
            self.party.domain.after_wake(index, bell);
        }
        self.hot = matches!(ended, Woken::Changed | Woken::At(0));
        self.unsure = ended == Woken::Unsure;
        self.ended(ended)
    }

    /// Why the wait is over after a sleep that ended like this.
    fn ended(&mut self, ended: Woken) -> Option<SharedError> {
        match ended {
            Woken::At(_) | Woken::Changed | Woken::Unsure => None,
            Woken::TimedOut => Some(SharedError::TimedOut),
            Woken::Interrupted => self.how.interruptible.then_some(SharedError::Interrupted),
            Woken::Cancelled => Some(SharedError::Cancelled),
            Woken::Copied => {
                // The heir is the one that this is a copy of.
                self.is_heir = false;
                Some(SharedError::Copied)
            }
        }
    }

    /// Whether the wait is over although the thread did not sleep: words that change
    /// all the time must not keep it beyond its time.
    fn over(&self) -> Option<SharedError> {
        if self.how.cancelled() {
            return Some(SharedError::Cancelled);
        }
        let late = self.how.deadline.is_some_and(|deadline| P::now() >= deadline);
        late.then_some(SharedError::TimedOut)
    }

    /// Has the lock kept for the caller, unless it is kept for somebody who lives.
    fn inherit(&self, heir: u32) -> bool {
        let other = Identity::from_bits(heir);
        let is_dead = |other| matches!(self.fate(other, &self.lock.heir, heir), Fate::Died);
        if !other.is_none_or(is_dead) {
            return false;
        }
        let me = self.party.me.bits();
        self.lock.heir.compare_exchange(heir, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The caller is the heir no longer.
    fn abdicate(&mut self) {
        self.is_heir = false;
        let me = self.party.me.bits();
        let _ = self.lock.heir.compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The lock is not kept for the caller any longer.
    fn unreserve(&self) {
        let mut word = self.lock.word.load(Ordering::Relaxed);
        while word & RESERVED != 0 && word != NOT_RECOVERABLE {
            match self.exchange(word, word & !RESERVED) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Passes on what is owed to the others.
    fn leave(&mut self, outcome: Result<Got, SharedError>) {
        if self.is_heir {
            self.unreserve();
            self.abdicate();
        }
        // Who gives up may have been the only one that watched the owner.
        if self.woken || outcome.is_err() {
            let all = outcome == Err(SharedError::NotRecoverable);
            P::wake_shared(&raw const self.lock.heir, if all { u32::MAX } else { 1 });
        }
    }
}
