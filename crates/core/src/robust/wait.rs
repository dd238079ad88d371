//! Waiting for a lock between processes: sleeping, noticing deaths, giving up, the hand-off
//! waiter.
//!
//! # Protocol
//! A waiter
//!
//! 1. names the doorbell as the word that the machine wakes at if it ends (DEATH-NAMED-WORD);
//! 2. looks at the doorbell, then at the lock's word;
//! 3. takes the lock if it is free or its owner is dead, and is done;
//! 4. else sets [`WAITERS`] and sleeps on these words at once, in this order:
//!
//! | # | word | who wakes there |
//! |---|---|---|
//! | 0 | the lock's other word; for the hand-off waiter the lock's word | a release, or a waiter that passes a wake-up on |
//! | 1 | the doorbell | a participant that wakes everybody; the machine, when a waiter ends that was woken |
//! | 2 | the owner's life word, low half | the machine, when the owner ends |
//! | 3 | the owner's life word, high half: generation and process | nobody |
//! | 4 | the lock's word | nobody |
//! | 5 | the lock's other word, if nobody owns it: another one may be next by now | nobody |
//!
//! A death wakes it at 2, or at 1 with the doorbell unchanged. Then it *wakes everybody* in the
//! segment by the doorbell. For the machine wakes one sleeper for each death, and that one may
//! wait for another lock, or die.
//!
//! A waiter that was woken, and then takes the lock or gives up, *passes the wake-up on*: it
//! wakes the next one before it ceases to name the doorbell. Or it *defers* that wake-up, if it
//! has the lock and the machine allows it: it leaves [`WAITERS`] set, so that its release wakes
//! the next one, and the doorbell stays named until then.
//!
//! A waiter *rests* when critical sections are shorter than the way to sleep: it found a word
//! changed when it was about to sleep, or a release woke it and the lock is taken again. It
//! leaves [`WAITERS`] unset meanwhile, so that the owner pays for no wake-ups.
//!
//! A reserved lock belongs to its *hand-off waiter* as if that had it: the others watch the life
//! word of that one. A waiter becomes the hand-off waiter when it has waited longer than
//! [`patience`](RobustMachine::patience) and no other one lives.
//!
//! # Invariants
//! - **ROBUST-WATCHED** If anybody sleeps on a lock, then one of these holds: somebody watches
//!   the life word of its present owner; the owner has deferred its wake-up; a waiter that was
//!   woken has not looked at the lock yet, and names the doorbell; a wake-up at the doorbell or
//!   at the lock is due from a participant whose life word is watched.
//!
//! A waiter compares the last words last (DEATH-WAIT-ORDER). Somebody may use the doorbell before
//! the waiter queues there: the reason is a change that the comparison of the lock's word notices.
//! And the high half of the life word tells a newcomer with the same number from the dead tenant.

use super::domain::Fate;
use super::life::Life;
use super::machine::{RobustMachine, WatchedWord, Woken};
use super::outcome::{Got, RobustError};
use super::party::Party;
use super::slot::SlotRecord;
use super::word::{INCONSISTENT, Identity, NOT_RECOVERABLE, OWNER, RESERVED, UNTOUCHED, WAITERS};
use crate::atomic::{Atomic32, Ordering};
use crate::platform::{Nanos, WaitBounds};

/// What an acquisition is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// The caller wants to own the lock, with these flags beside its name.
    Own(u32),
    /// The caller wants to make the claim with this number while nobody owns the lock: see
    /// [`rwlock`](super::rwlock).
    Share(usize),
}

/// What a look at the lock has shown.
enum Look<'a, P: RobustMachine> {
    /// The caller has the lock.
    Had(Got),
    /// The caller will not get the lock.
    Never(RobustError),
    /// The lock is changing: look again.
    Again,
    /// Somebody else owns the lock, or it is reserved for them.
    Theirs(LockSeen<'a, P>),
}

/// The lock as a waiter saw it that has to sleep.
struct LockSeen<'a, P: RobustMachine> {
    word: u32,
    /// The lock's other word at that moment.
    reserved_for: u32,
    /// The record of the owner, or of the hand-off waiter of a lock that nobody owns.
    record: &'a SlotRecord<P>,
    slot: u32,
    life: Life,
}

/// An acquisition in progress.
pub(super) struct Seek<'l, 'a, 'h, P: RobustMachine> {
    /// The word of the lock.
    word: &'l P::U32,
    /// The other word of the lock: who it is reserved for.
    reserved_for: &'l P::U32,
    party: &'l Party<'a, P>,
    how: &'l WaitBounds<'h, P>,
    /// The caller's [`RobustMachine::here`] before the fast path.
    here: u64,
    /// Whether it must pass a wake-up on before it is done: it was woken itself, and has woken
    /// nobody yet.
    woken: bool,
    /// Whether it is the hand-off waiter.
    is_reserved: bool,
    /// Whether the lock changed hands on its way to sleep, or a release woke it.
    hot: bool,
    /// Whether nobody woke it for long.
    unsure: bool,
    /// The time at which it first slept.
    since: Option<Nanos>,
}

impl<'l, 'a, 'h, P: RobustMachine> Seek<'l, 'a, 'h, P> {
    pub(super) fn new(
        (word, reserved_for): (&'l P::U32, &'l P::U32),
        party: &'l Party<'a, P>,
        how: &'l WaitBounds<'h, P>,
        here: u64,
    ) -> Self {
        Seek {
            word,
            reserved_for,
            party,
            how,
            here,
            woken: false,
            is_reserved: false,
            hot: false,
            unsure: false,
            since: None,
        }
    }

    /// Tries until the caller has the lock, or the wait is over.
    pub(super) fn until(mut self, goal: Goal) -> Result<Got, RobustError> {
        if let Some(outcome) = self.spin(goal) {
            return outcome;
        }
        let named = if fault!(shared_waiter_names_nothing) {
            P::at_death_wake(None)
        } else {
            self.party.domain.name_doorbell()
        };
        let outcome = loop {
            P::turn(self.here, self.kept());
            // The doorbell before the lock's word: see the module's last paragraph.
            let doorbell = self.party.domain.doorbell_value();
            let ended = match self.look(goal) {
                Look::Had(got) => {
                    if self.unsure && got == Got::Clean {
                        P::missed();
                    }
                    break Ok(got);
                }
                Look::Never(error) => Some(error),
                Look::Again => None,
                Look::Theirs(theirs) => self.sleep(doorbell, &theirs),
            };
            if let Some(error) = ended.or_else(|| self.over()) {
                break Err(error);
            }
        };
        if outcome == Err(RobustError::Copied) {
            // Wake-ups, a reservation and what is named are those of the participant.
            return outcome;
        }
        if fault!(shared_waiter_stops_naming_before_it_passes_on) {
            P::at_death_wake(named);
        }
        self.leave(outcome);
        P::at_death_wake(named);
        outcome
    }

    /// Returns all that the waiter knows when it looks again, for a model checker; except
    /// whether it is to rest, which looks to others as being slow.
    fn kept(&self) -> u64 {
        let since = self.since.map_or(0, |since| since.0 + 1);
        since << 2 | u64::from(self.is_reserved) << 1 | u64::from(self.woken)
    }

    /// Tries for the lock without waiting.
    pub(super) fn once(mut self, goal: Goal) -> Result<Got, RobustError> {
        loop {
            match self.look(goal) {
                Look::Had(got) => return Ok(got),
                Look::Never(error) => return Err(error),
                Look::Again => {}
                Look::Theirs(theirs) if self.party.suspects(theirs.slot, theirs.life) => {}
                Look::Theirs(_) => return Err(RobustError::TimedOut),
            }
        }
    }

    /// Looks at the lock a few times while nobody sleeps: a short critical section is over
    /// sooner than a sleep.
    fn spin(&mut self, goal: Goal) -> Option<Result<Got, RobustError>> {
        for _ in 0..P::SPINS {
            let word = self.word.load(Ordering::Relaxed);
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

    /// Looks at the lock, and takes it if it is free or its owner is dead.
    fn look(&mut self, goal: Goal) -> Look<'a, P> {
        // ord: SHR-5 (acquire): who the lock is reserved for, and that the owner has its slot.
        let word = self.word.load(Ordering::Acquire);
        // ord: SHR-10 (acquire): the same of the other name.
        let reserved_for = self.reserved_for.load(Ordering::Acquire);
        if word == NOT_RECOVERABLE {
            return Look::Never(RobustError::NotRecoverable);
        }
        let mine = self.party.me;
        if let Some(owner) = Identity::from_bits(word) {
            if owner == mine {
                return Look::Never(RobustError::Recursive);
            }
            return match self.fate(owner, self.word, word) {
                Fate::Lives(record, life) => {
                    self.theirs(LockSeen { word, reserved_for, record, slot: owner.slot(), life })
                }
                Fate::Died => self.succeed(word, goal),
                Fate::Left(..) => Look::Again,
            };
        }
        if word & RESERVED != 0
            && !fault!(shared_newcomer_overtakes_the_handoff_waiter)
            && let Some(named) = Identity::from_bits(reserved_for)
            && named != mine
        {
            let slot = named.slot();
            match self.fate(named, self.reserved_for, reserved_for) {
                Fate::Lives(record, life) => {
                    return self.theirs(LockSeen { word, reserved_for, record, slot, life });
                }
                Fate::Died => {}
                Fate::Left(..) => return Look::Again,
            }
        }
        match goal {
            Goal::Share(_) if word & RESERVED != 0 && !self.is_reserved => {
                // The lock is reserved for somebody dead.
                let _ = self.exchange(word, word & !RESERVED);
                Look::Again
            }
            Goal::Share(claim) if word & INCONSISTENT == 0 => self.share(claim),
            _ => self.own(word, word & (WAITERS | INCONSISTENT), goal),
        }
    }

    /// Concludes that the lock is theirs. If that is the caller by another way to the segment,
    /// it would wait for itself.
    fn theirs(&self, theirs: LockSeen<'a, P>) -> Look<'a, P> {
        if P::is_caller(self.party.domain.segment, theirs.slot, theirs.life) {
            return Look::Never(RobustError::Recursive);
        }
        Look::Theirs(theirs)
    }

    /// Tells what has become of the participant that one of the lock's words names, which had
    /// this value.
    fn fate(&self, who: Identity, word: &P::U32, value: u32) -> Fate<'a, P> {
        let fate = self.party.domain.fate(who);
        // A participant that has left has taken its name away before, so that it stands there no
        // more, or for a newcomer. Or no participant ever put the name there, and it is ended
        // (LIFE-FREE-NAME).
        // ord: SHR-3 (acquire): after the look at the slot.
        if let Fate::Left(record, life) = fate
            && word.load(Ordering::Acquire) == value
            && !fault!(shared_free_slot_keeps_its_name)
        {
            record.retire(life);
        }
        fate
    }

    /// Succeeds the dead owner that the word names.
    fn succeed(&mut self, word: u32, goal: Goal) -> Look<'a, P> {
        let kept = word & (WAITERS | RESERVED | INCONSISTENT);
        if word & UNTOUCHED == 0 {
            let untold = fault!(shared_successor_tells_nobody);
            return self.own(word, if untold { kept } else { kept | INCONSISTENT }, goal);
        }
        match goal {
            Goal::Share(_) if kept & INCONSISTENT == 0 => {
                // Nobody owns the lock; the next look makes the claim.
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
            // The caller wants to repair, and others may read still.
            Goal::Share(_) => UNTOUCHED,
        };
        let flags = if self.is_reserved { flags & !RESERVED } else { flags };
        // Before the caller has the lock: that may be the last thing it does.
        let defers = self.woken
            && (fault!(shared_taker_defers_nothing) || P::defer_wake(self.party.domain.doorbell));
        let waiters =
            if defers && !fault!(shared_deferred_wake_leaves_no_mark) { WAITERS } else { 0 };
        if self.exchange(word, self.party.me.bits() | beside | flags | waiters).is_err() {
            return Look::Again;
        }
        self.woken &= !defers;
        if self.is_reserved {
            self.end_reservation();
        }
        Look::Had(if flags & INCONSISTENT != 0 { Got::OwnerDied } else { Got::Clean })
    }

    /// Makes a claim, which counts if nobody owns the lock then.
    fn share(&mut self, claim: usize) -> Look<'a, P> {
        let (claim, what) = match self.party.claim(claim, self.word) {
            Ok(found) => found,
            Err(error) => return Look::Never(error),
        };
        // ord: SHR-6 (seq_cst): after the claim; an owner looks for claims after it
        // has put itself here.
        let look = || self.word.load(Ordering::SeqCst);
        let early = fault!(shared_reader_claims_too_late).then(look);
        claim.make(what);
        let word = early.unwrap_or_else(look);
        let reserved = word & RESERVED != 0 && !self.is_reserved;
        let theirs = if fault!(shared_reader_overlooks_a_death) { 0 } else { INCONSISTENT } | OWNER;
        if word & theirs != 0 || reserved {
            claim.give_back();
            return Look::Again;
        }
        if self.is_reserved {
            if fault!(shared_reading_handoff_ends_before_it_is_unmarked) {
                self.end_reservation();
            }
            self.unreserve();
            self.end_reservation();
            // Others may sleep although nobody owns the lock, since it was reserved.
            self.woken |= !fault!(shared_handoff_waiter_reads_and_passes_nothing_on);
        }
        Look::Had(Got::Clean)
    }

    fn exchange(&self, word: u32, new: u32) -> Result<u32, u32> {
        // ord: SHR-1 (seq_cst): acquire: the critical sections before; release: who the lock is kept
        // for, and the caller's slot; all of it: before an owner looks for claims (SHR-6).
        self.word.compare_exchange(word, new, Ordering::SeqCst, Ordering::Relaxed)
    }

    /// Sleeps while the lock is theirs. Returns the reason if the wait is over.
    fn sleep(&mut self, doorbell: u32, theirs: &LockSeen<'a, P>) -> Option<RobustError> {
        let now = P::now();
        let since = *self.since.get_or_insert(now);
        if !self.is_reserved && now.since(since) >= P::patience() {
            self.is_reserved = self.reserve(theirs.reserved_for);
        }
        if core::mem::take(&mut self.hot)
            && !self.is_reserved
            && let Some(moment) = P::REST
            && !self.how.interruptible
            && self.how.deadline.is_none_or(|deadline| now.after(moment) < deadline)
        {
            return self.ended(P::rest(moment));
        }
        let word = theirs.word | WAITERS | if self.is_reserved { RESERVED } else { 0 };
        if word != theirs.word && self.exchange(theirs.word, word).is_err() {
            return None;
        }
        let me = self.party.record();
        let channel = if self.is_reserved {
            WatchedWord::Word(self.word, word)
        } else {
            WatchedWord::Word(self.reserved_for, theirs.reserved_for)
        };
        let watches = [
            channel,
            WatchedWord::Word(self.party.domain.doorbell, doorbell),
            WatchedWord::Low(&theirs.record.life, theirs.life.life()),
            match fault!(shared_waiter_compares_no_generation) {
                true => WatchedWord::Low(&theirs.record.life, theirs.life.life()),
                false => WatchedWord::High(&theirs.record.life, theirs.life.high()),
            },
            WatchedWord::Seen(self.word, word),
            WatchedWord::Seen(self.reserved_for, theirs.reserved_for),
        ];
        let waits_for = self.party.domain.offset(core::ptr::from_ref(self.word).addr());
        if let Some(record) = me {
            record.waits_for.store(waits_for.unwrap_or(0), Ordering::Relaxed);
        }
        let compared = match Identity::from_bits(word) {
            _ if fault!(shared_waiter_compares_the_word_first) => 4,
            None if !fault!(shared_waiter_overlooks_the_next) => 6,
            _ => 5,
        };
        let ended = self.party.sleep(&watches[..compared], self.how, &[(theirs.slot, theirs.life)]);
        if let Some(record) = me.filter(|_| ended != Woken::Copied) {
            record.waits_for.store(0, Ordering::Relaxed);
        }
        if let Woken::At(index) = ended {
            self.woken = true;
            self.party.domain.after_wake(index, doorbell);
        }
        self.hot = matches!(ended, Woken::Changed | Woken::At(0));
        self.unsure = ended == Woken::Unsure;
        self.ended(ended)
    }

    /// Returns why the wait is over after a sleep that ended like this, if it is.
    fn ended(&self, ended: Woken) -> Option<RobustError> {
        match ended {
            Woken::At(_) | Woken::Changed | Woken::Unsure => None,
            Woken::TimedOut => Some(RobustError::TimedOut),
            Woken::Interrupted => self.how.interruptible.then_some(RobustError::Interrupted),
            Woken::Cancelled => Some(RobustError::Cancelled),
            Woken::Copied => Some(RobustError::Copied),
        }
    }

    /// Returns why the wait is over although the thread did not sleep, if it is: words that
    /// change all the time must not keep it beyond its time.
    fn over(&self) -> Option<RobustError> {
        if self.how.cancelled() {
            return Some(RobustError::Cancelled);
        }
        let late = self.how.deadline.is_some_and(|deadline| P::now() >= deadline);
        late.then_some(RobustError::TimedOut)
    }

    /// Makes the caller the hand-off waiter, unless another one lives; tells whether it did.
    fn reserve(&self, reserved_for: u32) -> bool {
        let other = Identity::from_bits(reserved_for);
        let is_dead = |other| {
            fault!(shared_handoff_waiter_that_left_passes_for_dead)
                && !matches!(self.party.domain.fate(other), Fate::Lives(..))
                || matches!(self.fate(other, self.reserved_for, reserved_for), Fate::Died)
        };
        if !other.is_none_or(is_dead) {
            return false;
        }
        let me = self.party.me.bits();
        // ord: SHR-10 (release): that the caller has its slot, before its name.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        self.reserved_for.compare_exchange(reserved_for, me, success, failure).is_ok()
    }

    /// Ends the caller's time as the hand-off waiter.
    fn end_reservation(&mut self) {
        self.is_reserved = false;
        let me = self.party.me.bits();
        let _ = self.reserved_for.compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Takes the mark away that the lock is reserved for the caller.
    fn unreserve(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & RESERVED != 0 && word != NOT_RECOVERABLE {
            match self.exchange(word, word & !RESERVED) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Passes a wake-up on that the others wait for.
    fn leave(&mut self, outcome: Result<Got, RobustError>) {
        if self.is_reserved && !fault!(shared_handoff_waiter_stays_when_it_leaves) {
            if fault!(shared_handoff_ends_before_it_is_unmarked) {
                self.end_reservation();
            }
            self.unreserve();
            self.end_reservation();
        }
        // A waiter that gives up may have been the only one that watched the owner.
        let silent = fault!(shared_taker_passes_nothing_on) && outcome.is_ok()
            || fault!(shared_leaver_passes_nothing_on) && outcome.is_err()
            || fault!(shared_cancelled_waiter_passes_nothing_on)
                && outcome == Err(RobustError::Cancelled);
        if (self.woken || outcome.is_err()) && !silent {
            let all = outcome == Err(RobustError::NotRecoverable);
            P::wake_shared(self.reserved_for, if all { u32::MAX } else { 1 });
        }
    }
}
