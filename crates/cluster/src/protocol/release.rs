//! How a place that is in is given back, called consistent or given up for good.

use super::{Held, LockKeys, Mode, Who};
use crate::etcd::wire::{Answer, Compare, Keys, Op, Outcome, Pair, Txn};

/// What a holder needs to know of its place to give it back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReleasePlan {
    pub(crate) keys: LockKeys,
    pub(crate) mode: Mode,
    pub(crate) place: String,
    pub(crate) lease: i64,
    pub(crate) created: i64,
    pub(crate) who: Who,
    /// A copy of the acquisition may still arrive.
    pub(crate) repeated: bool,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Released {
    Done,
    /// The place was gone before: the lease had ended, or somebody removed it by force.
    Gone,
}

impl ReleasePlan {
    pub(crate) fn own(&self) -> String {
        self.keys.at(&self.place)
    }

    /// Returns the condition under which the place is still held.
    pub(crate) fn is_held(&self) -> Compare {
        Compare::CreatedAt(self.own(), self.created)
    }

    fn end(&self, mut then: Vec<Op>, with_mark: bool) -> Txn {
        then.push(Op::delete(&self.own()));
        if with_mark && self.mode == Mode::Write {
            then.push(Op::delete(&self.keys.held()));
        }
        #[cfg(test)]
        let voids = self.repeated && !crate::wrong::broken(crate::wrong::Broken::NoVoid);
        #[cfg(not(test))]
        let voids = self.repeated;
        if voids {
            then.push(Op::put(&self.keys.void(&self.place), String::new(), self.lease));
        }
        let otherwise = vec![Op::get(&self.own()), Op::get(&self.keys.held())];
        Txn { when: vec![self.is_held()], then, otherwise }
    }

    /// Returns the transaction that releases: place and mark go together (CLUSTER-HELD).
    pub(crate) fn release(&self) -> Txn {
        #[cfg(test)]
        if crate::wrong::broken(crate::wrong::Broken::HeldSeparately) {
            return self.end(Vec::new(), false);
        }
        self.end(Vec::new(), true)
    }

    /// Returns the transaction that releases and has nobody acquire the lock again.
    pub(crate) fn give_up(&self) -> Txn {
        let held = Held { place: self.place.clone(), died: true, who: self.who.clone() };
        self.end(vec![Op::put(&self.keys.broken(), held.to_json(), 0)], true)
    }

    /// Returns the transaction that gives the place back as if the owner had died.
    pub(crate) fn leave_marked(&self) -> Txn {
        self.end(Vec::new(), false)
    }

    /// Returns the transaction that calls consistent what a dead owner left.
    pub(crate) fn mark_consistent(&self) -> Txn {
        let held = Held { place: self.place.clone(), died: false, who: self.who.clone() };
        let then = vec![Op::put(&self.keys.held(), held.to_json(), 0)];
        Txn { when: vec![self.is_held()], then, otherwise: Vec::new() }
    }

    /// Returns what the answer to a release says. `again`: the request was sent more than once, so that
    /// an earlier copy may have done it.
    pub(crate) fn released(&self, answer: &Answer, again: bool) -> Released {
        if answer.succeeded {
            return Released::Done;
        }
        // A place that went with its lease leaves the owner's mark behind, until the next owner writes
        // its own. While the session's lease is alive, only a copy of this release takes the place away.
        #[cfg(test)]
        let again = again && !crate::wrong::broken(crate::wrong::Broken::RetriedReleaseLost);
        let marked = answer.read(1).first().is_some_and(|mark| {
            Held::read(&mark.value).is_some_and(|held| held.place == self.place)
        });
        if again && answer.read(0).is_empty() && !marked { Released::Done } else { Released::Gone }
    }

    /// Returns a transaction of the user's that is carried out only while the place is held.
    pub(crate) fn guarded(&self, then: Vec<Op>) -> Txn {
        Txn { when: vec![self.is_held()], then, otherwise: Vec::new() }
    }
}

/// Returns what removes a lock's marks for good: after an administrator has put in order what a dead
/// owner left.
pub(crate) fn forget(keys: &LockKeys) -> Txn {
    let when = vec![Compare::Absent(Keys::Prefix(keys.queue()))];
    let then = vec![Op::Delete(Keys::One(keys.broken())), Op::Delete(Keys::One(keys.held()))];
    Txn { when, then, otherwise: Vec::new() }
}

/// Returns the pairs that the reads of a user's transaction found.
pub(crate) fn found(answer: &Answer) -> Vec<Vec<Pair>> {
    let pairs = answer.outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Get(pairs) => Some(pairs.clone()),
        _ => None,
    });
    pairs.collect()
}
