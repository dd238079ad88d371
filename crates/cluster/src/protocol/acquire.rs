//! How a place in the queue is taken and how its holder comes to be in.

use super::{Held, LockKeys, Mode, Who, permits_of};
use crate::etcd::wire::{Answer, Compare, Get, Keys, Op, Outcome, Pair, Txn};

#[cfg(test)]
use crate::wrong::{Broken, broken};

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Send this, again and again until there is an answer.
    Send(Txn),
    /// Wait until one of these keys has changed since this revision, then call [`Acquire::look`].
    Wait { keys: Keys, from: i64, deletions: bool },
    /// The lock is acquired.
    In(Entered),
    /// The lock is not acquired, and no place is left behind.
    Refused(Refusal),
}

/// How a lock was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entered {
    /// The revision at which the place was created.
    pub(crate) revision: i64,
    /// The last owner's lease ended.
    pub(crate) died: bool,
}

/// The reason for which there is no acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    /// The place is gone: its lease has ended, or it was removed by force.
    Gone,
    NotRecoverable,
    /// A writer died; only for readers.
    Inconsistent,
    /// Somebody else has it, and no place was taken.
    Held,
    /// Others have another number of permits.
    Permits(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The first transaction is on its way; done, the lock is acquired or not, or a place is taken.
    Entering { at_once: bool },
    /// A transaction that claims the lock, or only looks, is on its way.
    Looking { died: bool },
    /// The place is being removed, for this reason.
    Leaving(Refusal),
    /// Permits are taken, and those that wait are to be told.
    Telling(Entered),
}

/// One attempt to acquire a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Acquire {
    keys: LockKeys,
    mode: Mode,
    place: String,
    lease: i64,
    who: Who,
    /// Only if that needs no wait.
    only_try: bool,
    phase: Phase,
    /// The revision at which the place was created; 0 until that is known.
    created: i64,
    /// A request may have been sent twice: a copy of the first one may arrive after the end.
    repeated: bool,
}

/// The state of a lock as an answer shows it.
struct View<'a> {
    own: Option<&'a Pair>,
    /// Those before the own place, the last one first; for permits all, in order.
    others: &'a [Pair],
    held: Option<&'a Pair>,
    broken: bool,
}

impl Acquire {
    pub(crate) fn new(
        keys: LockKeys,
        mode: Mode,
        lease: i64,
        attempt: u64,
        who: Who,
        only_try: bool,
    ) -> Self {
        let place = LockKeys::place(mode, lease, attempt);
        let phase = Phase::Entering { at_once: false };
        Acquire { keys, mode, place, lease, who, only_try, phase, created: 0, repeated: false }
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    fn own(&self) -> String {
        self.keys.at(&self.place)
    }

    /// Returns the mark of this attempt as owner.
    pub(crate) fn mark(&self, died: bool) -> String {
        Held { place: self.place.clone(), died, who: self.who.clone() }.to_json()
    }

    fn held_by_me(&self, died: bool) -> Op {
        Op::put(&self.keys.held(), self.mark(died), 0)
    }

    /// Returns what reads the state of the lock: own place, those before it, mark, broken.
    fn reads(&self) -> Vec<Op> {
        let permits = matches!(self.mode, Mode::Permits { .. });
        // Of an attempt whose place is not known yet the last two are read: its own may be the last.
        let latest = if permits { 0 } else { 1 + u32::from(self.created == 0) };
        let created_until = if permits { 0 } else { (self.created - 1).max(0) };
        vec![
            Op::get(&self.own()),
            Op::Get(Get { keys: self.keys.before(self.mode), created_until, latest }),
            Op::get(&self.keys.held()),
            Op::get(&self.keys.broken()),
        ]
    }

    /// Returns the conditions under which this attempt may still take a place.
    fn may_enter(&self) -> Vec<Compare> {
        let absent = |key: String| Compare::Absent(Keys::One(key));
        vec![absent(self.own()), absent(self.keys.void(&self.place)), absent(self.keys.broken())]
    }

    fn put_own(&self) -> Op {
        Op::put(&self.own(), self.who.to_json(), self.lease)
    }

    /// Returns the first step: one transaction that is in at once if nobody is before, and else queues.
    pub(crate) fn start(&mut self) -> Step {
        let mut when = self.may_enter();
        let queue =
            Op::Txn(Txn { when: when.clone(), then: vec![self.put_own()], ..Txn::default() });
        if let Mode::Permits { .. } = self.mode {
            // Who is in depends on a number, which etcd does not compare: it is read behind the entry.
            let then = std::iter::once(queue).chain(self.reads()).collect();
            return Step::Send(Txn { then, ..Txn::default() });
        }
        self.phase = Phase::Entering { at_once: true };
        when.push(Compare::Absent(self.keys.before(self.mode)));
        when.push(Compare::Absent(Keys::One(self.keys.held())));
        let mut then = vec![self.put_own()];
        if self.mode == Mode::Write {
            then.push(self.held_by_me(false));
        }
        let nothing = Op::Txn(Txn::default());
        let first = if self.only_try { nothing } else { queue };
        let otherwise = std::iter::once(first).chain(self.reads()).collect();
        Step::Send(Txn { when, then, otherwise })
    }

    /// Says that the last request is sent once more, since no answer came.
    pub(crate) fn repeats(&mut self) {
        self.repeated = true;
    }

    /// Returns what follows from the answer to the last request.
    pub(crate) fn answered(&mut self, answer: &Answer) -> Step {
        match self.phase {
            Phase::Entering { at_once } => self.entered(at_once, answer),
            Phase::Looking { died } => self.looked(died, answer),
            Phase::Leaving(why) => Step::Refused(why),
            Phase::Telling(entered) if answer.succeeded => Step::In(entered),
            Phase::Telling(_) => Step::Refused(Refusal::Gone),
        }
    }

    fn entered(&mut self, at_once: bool, answer: &Answer) -> Step {
        if answer.succeeded && at_once {
            self.created = answer.revision;
            return Step::In(Entered { revision: answer.revision, died: false });
        }
        let queued =
            matches!(answer.outcomes.first(), Some(Outcome::Txn(inner)) if inner.succeeded);
        let view = view(answer, 1);
        let Some(place) = view.own else {
            return match (view.broken, self.only_try) {
                (true, _) => self.refuse(Refusal::NotRecoverable),
                (false, true) => self.tried(&view),
                (false, false) => self.refuse(Refusal::Gone),
            };
        };
        self.created = place.created;
        if view.broken {
            return self.leave(Refusal::NotRecoverable);
        }
        if let Mode::Permits { .. } = self.mode {
            return self.count(&view, answer.revision, false);
        }
        // A copy of this transaction queued before: others may have come between, and be what was read.
        if !queued {
            return self.look();
        }
        let before: Vec<Pair> =
            view.others.iter().filter(|other| other.key != place.key).take(1).cloned().collect();
        self.judge(&View { others: &before, ..view }, answer.revision)
    }

    /// Decides about an attempt that has not queued, since it would not wait.
    fn tried(&mut self, view: &View) -> Step {
        if !view.others.is_empty() || view.held.is_none() {
            return self.refuse(Refusal::Held);
        }
        if self.mode == Mode::Read {
            return self.refuse(Refusal::Inconsistent);
        }
        // An owner has died and nobody waits. With a place the lock can be claimed; should another one
        // have come before by then, the place is given back.
        let queue =
            Op::Txn(Txn { when: self.may_enter(), then: vec![self.put_own()], ..Txn::default() });
        self.phase = Phase::Entering { at_once: false };
        let then = std::iter::once(queue).chain(self.reads()).collect();
        Step::Send(Txn { then, ..Txn::default() })
    }

    /// Returns the step that claims the lock if nobody is before any more, and else tells who is.
    pub(crate) fn look(&mut self) -> Step {
        self.phase = Phase::Looking { died: false };
        #[cfg(test)]
        if broken(Broken::NoLookAfterWait) {
            return Step::In(Entered { revision: self.created, died: false });
        }
        if self.mode != Mode::Write {
            return Step::Send(Txn { then: self.reads(), ..Txn::default() });
        }
        let mut when = self.is_first();
        when.push(Compare::Absent(Keys::One(self.keys.held())));
        Step::Send(Txn { when, then: vec![self.held_by_me(false)], otherwise: self.reads() })
    }

    fn is_first(&self) -> Vec<Compare> {
        let mut when = vec![
            Compare::CreatedAfter(self.keys.before(self.mode), self.created - 1),
            Compare::Absent(Keys::One(self.keys.broken())),
        ];
        // Over no place at all the first condition holds: the own one has to be there.
        #[cfg(test)]
        if broken(Broken::NoConfirmation) {
            return when;
        }
        when.push(Compare::CreatedAt(self.own(), self.created));
        when
    }

    /// Returns the step that claims the lock of a dead owner, whose mark was written at this revision.
    fn claim_from(&mut self, mark: i64) -> Step {
        self.phase = Phase::Looking { died: true };
        let mut when = self.is_first();
        when.push(Compare::ChangedAt(self.keys.held(), mark));
        Step::Send(Txn { when, then: vec![self.held_by_me(true)], otherwise: self.reads() })
    }

    fn looked(&mut self, died: bool, answer: &Answer) -> Step {
        if self.mode == Mode::Write && answer.succeeded {
            return Step::In(Entered { revision: self.created, died });
        }
        let view = view(answer, 0);
        // Gone, or there anew by a late copy of the first request: not the place that was waited with.
        if view.own.is_none_or(|own| own.created != self.created) {
            return self.leave(Refusal::Gone);
        }
        if view.broken {
            return self.leave(Refusal::NotRecoverable);
        }
        if let Mode::Permits { .. } = self.mode {
            return self.count(&view, answer.revision, true);
        }
        self.judge(&view, answer.revision)
    }

    /// Decides by who is before, and by the mark.
    fn judge(&mut self, view: &View, revision: i64) -> Step {
        if let Some(before) = view.others.first() {
            if self.only_try {
                return self.leave(Refusal::Held);
            }
            let keys = Keys::One(before.key.clone());
            return Step::Wait { keys, from: revision + 1, deletions: true };
        }
        let entered = Entered { revision: self.created, died: false };
        match (view.held, self.mode) {
            (None, Mode::Write) => self.look(),
            (None, _) => Step::In(entered),
            // Whoever had it exclusively is not there any more, or it would be before.
            (Some(_), Mode::Read | Mode::Permits { .. }) => self.leave(Refusal::Inconsistent),
            (Some(mark), Mode::Write) => match Held::read(&mark.value) {
                // A copy claimed it, whose answer was lost.
                Some(held) if held.place == self.place => {
                    #[cfg(test)]
                    let held = Held { died: held.died || broken(Broken::OwnMarkForDead), ..held };
                    Step::In(Entered { died: held.died, ..entered })
                }
                _ => self.claim_from(mark.changed),
            },
        }
    }

    /// Decides by the permits of those before.
    fn count(&mut self, view: &View, revision: i64, waited: bool) -> Step {
        let Mode::Permits { want, of } = self.mode else { return Step::Refused(Refusal::Gone) };
        let (mut used, mut all_in, mut last) = (0_u64, true, None);
        for other in view.others.iter().filter(|other| other.created < self.created) {
            let (theirs, total) = permits_of(&other.key).unwrap_or((0, of));
            if total != of {
                return self.leave(Refusal::Permits(total));
            }
            used += u64::from(theirs);
            // In order: who does not fit keeps those behind out.
            all_in &= used <= u64::from(of);
            last = Some(other);
        }
        let entered = Entered { revision: self.created, died: false };
        if used + u64::from(want) <= u64::from(of) {
            if !waited {
                return Step::In(entered);
            }
            self.phase = Phase::Telling(entered);
            let who = Who { is_in: true, ..self.who.clone() };
            let when = vec![Compare::CreatedAt(self.own(), self.created)];
            let then = vec![Op::put(&self.own(), who.to_json(), self.lease)];
            return Step::Send(Txn { when, then, otherwise: Vec::new() });
        }
        if self.only_try {
            return self.leave(Refusal::Held);
        }
        // The first that waits hears of each that leaves; the others, of the one before them.
        match last {
            Some(before) if !all_in => Step::Wait {
                keys: Keys::One(before.key.clone()),
                from: revision + 1,
                deletions: false,
            },
            _ => Step::Wait {
                keys: Keys::Prefix(self.keys.queue()),
                from: revision + 1,
                deletions: true,
            },
        }
    }

    /// Returns the step that removes the place, for whoever gives up.
    pub(crate) fn give_up(&mut self) -> Step {
        self.leave(Refusal::Held)
    }

    /// Ends an attempt that has no place. Another copy of its first request may still take one, unless it
    /// finds the attempt void.
    fn refuse(&mut self, why: Refusal) -> Step {
        if self.repeated { self.leave(why) } else { Step::Refused(why) }
    }

    /// Returns the step that removes the place. A claim whose answer was lost may have made this attempt
    /// the owner, which then releases and does not die.
    fn leave(&mut self, why: Refusal) -> Step {
        self.phase = Phase::Leaving(why);
        let mut otherwise = vec![Op::delete(&self.own())];
        #[cfg(test)]
        let voids = self.repeated && !broken(Broken::NoVoid);
        #[cfg(not(test))]
        let voids = self.repeated;
        if voids {
            otherwise.push(Op::put(&self.keys.void(&self.place), String::new(), self.lease));
        }
        let mut then = otherwise.clone();
        then.push(Op::delete(&self.keys.held()));
        let when = vec![Compare::Is(self.keys.held(), self.mark(false))];
        Step::Send(Txn { when, then, otherwise })
    }

    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated
    }
}

/// Reads a view from the answer's steps, the first of them at this number.
fn view(answer: &Answer, first: usize) -> View<'_> {
    View {
        own: answer.read(first).first(),
        others: answer.read(first + 1),
        held: answer.read(first + 2).first(),
        broken: !answer.read(first + 3).is_empty(),
    }
}
