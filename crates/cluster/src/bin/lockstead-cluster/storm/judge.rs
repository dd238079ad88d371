//! What must hold under faults, from what the clients say; and the register that they write.

use serde::Serialize;
use std::collections::BTreeMap;

/// What was heard of one owner.
#[derive(Clone, Copy, Debug)]
struct Owner {
    client: usize,
    /// The first and the last moment at which it was sure.
    first: u64,
    last: u64,
    /// It was told that the owner before it died.
    told: bool,
    /// It has begun to give the lock back.
    leaving: bool,
    /// It has learnt that the lock is lost.
    lost: bool,
}

/// A register that refuses whoever has a smaller token than one that it has seen, as storage has to.
#[derive(Debug, Default)]
struct Register {
    value: u64,
    greatest: u64,
}

/// One lock: its owners, and its register.
#[derive(Debug)]
pub(super) struct Judge {
    owners: BTreeMap<u64, Owner>,
    register: Register,
    /// The register looks at tokens; one that does not is what the storm has to catch.
    checks: bool,
    /// The greatest token by which the register was read, whatever the register makes of it.
    newest: u64,
    found: Found,
}

/// What was found, of one lock or of all.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Found {
    /// Owners, each with a token of its own: so many times the lock changed hands.
    pub(super) owners: u64,
    /// Writes that the register accepted and refused.
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// Owners that ended without giving the lock back, by what was heard of them.
    pub(super) deaths: u64,
    /// Owners that were told of a death: of one of those, or of one that was in and had not said so yet.
    pub(super) told: u64,
    /// Owners that learnt of their loss by themselves.
    pub(super) lost: u64,
    /// Accepted writes of an owner after a later one has read the register.
    pub(super) old_accepted: u64,
    /// Accepted writes by what was not the value any more.
    pub(super) lost_updates: u64,
    /// Moments at which two owners were sure.
    pub(super) overlaps: u64,
    /// Deaths of which the next owner was not told.
    pub(super) untold: u64,
    /// What must not be, in words.
    pub(super) wrong: Vec<String>,
}

impl Found {
    pub(super) fn add(&mut self, other: &Found) {
        self.owners += other.owners;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.deaths += other.deaths;
        self.told += other.told;
        self.lost += other.lost;
        self.old_accepted += other.old_accepted;
        self.lost_updates += other.lost_updates;
        self.overlaps += other.overlaps;
        self.untold += other.untold;
        self.wrong.extend(other.wrong.iter().cloned());
    }

    /// Says how far it is, before the owners are compared with each other.
    pub(super) fn progress(&self) -> String {
        format!(
            "{} owner changes, {} told of a death, {} writes refused",
            self.owners, self.told, self.refused
        )
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{} owner changes, {} owners ended without a release, {} were told of a death, {} learnt of \
             their loss; the register accepted {} writes and refused {}",
            self.owners, self.deaths, self.told, self.lost, self.accepted, self.refused
        )
    }
}

impl Judge {
    pub(super) fn new(checks: bool) -> Judge {
        let (register, found) = (Register::default(), Found::default());
        Judge { owners: BTreeMap::new(), register, checks, newest: 0, found }
    }

    /// Hears of a new owner, which reads the register; returns what it reads, or `None` where it is
    /// refused.
    pub(super) fn enters(&mut self, client: usize, token: u64, at: u64, told: bool) -> Option<u64> {
        let owner = Owner { client, first: at, last: at, told, leaving: false, lost: false };
        self.found.owners += 1;
        self.found.told += u64::from(told);
        if let Some(other) = self.owners.insert(token, owner) {
            let text = format!("token {token} was given to {} and to {client}", other.client);
            self.found.wrong.push(text);
        }
        self.newest = self.newest.max(token);
        if self.refuses(token) {
            return None;
        }
        Some(self.register.value)
    }

    pub(super) fn is_sure(&mut self, token: u64, at: u64) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.last = owner.last.max(at);
        }
    }

    fn refuses(&mut self, token: u64) -> bool {
        if self.checks && token < self.register.greatest {
            self.found.refused += 1;
            return true;
        }
        self.register.greatest = self.register.greatest.max(token);
        false
    }

    /// Has an owner write the number behind the one that it has read. Returns it, or `None` where that
    /// was refused.
    pub(super) fn writes(&mut self, token: u64, read: u64) -> Option<u64> {
        if self.refuses(token) {
            return None;
        }
        // Judged by what was heard, not by what the register keeps: it may be a broken one.
        self.found.accepted += 1;
        if token < self.newest {
            self.found.old_accepted += 1;
            let text =
                format!("the write by token {token} was accepted after a read by {}", self.newest);
            self.found.wrong.push(text);
        }
        if read != self.register.value {
            self.found.lost_updates += 1;
            self.found.wrong.push(format!(
                "the write by token {token} rests on {read}, and {} was there: an update is lost",
                self.register.value
            ));
        }
        self.register.value = read + 1;
        Some(self.register.value)
    }

    pub(super) fn leaves(&mut self, token: u64) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.leaving = true;
        }
    }

    pub(super) fn is_lost(&mut self, token: u64) {
        self.found.lost += 1;
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.lost = true;
        }
    }

    /// Returns what was heard so far.
    pub(super) fn so_far(&self) -> &Found {
        &self.found
    }

    /// Returns what was found once all is over.
    pub(super) fn verdict(&self) -> Found {
        let mut found = self.found.clone();
        let (mut until, mut before): (u64, Option<(u64, Owner)>) = (0, None);
        for (token, owner) in &self.owners {
            // In the order of tokens: whoever has a greater one was never sure before a smaller one's
            // last moment.
            if until > owner.first {
                found.overlaps += 1;
                found.wrong.push(format!(
                    "a smaller token than {token} of client {} was sure for {} ns after this one was in",
                    owner.client,
                    until - owner.first
                ));
            }
            until = until.max(owner.last);
            if let Some((older, _)) = before.filter(|(_, other)| !other.leaving || other.lost) {
                found.deaths += 1;
                if !owner.told {
                    found.untold += 1;
                    found.wrong.push(format!(
                        "the owner by token {token} was not told that the one by {older} died"
                    ));
                }
            }
            before = Some((*token, *owner));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_owners_at_once_are_noticed() {
        let mut judge = Judge::new(true);
        judge.enters(1, 10, 100, false);
        judge.is_sure(10, 200);
        judge.leaves(10);
        judge.enters(2, 20, 201, false);
        judge.leaves(20);
        assert_eq!(judge.verdict().wrong, [""; 0]);
        judge.is_sure(10, 300);
        assert_eq!(judge.verdict().overlaps, 1);
    }

    #[test]
    fn a_register_refuses_old_owners_and_one_that_does_not_is_noticed() {
        for checks in [true, false] {
            let mut judge = Judge::new(checks);
            let read = judge.enters(1, 10, 100, false).expect("read");
            assert_eq!(judge.enters(2, 20, 200, true), Some(read));
            let old = judge.writes(10, read);
            judge.writes(20, read);
            let found = judge.verdict();
            if checks {
                assert_eq!((old, found.refused, found.accepted), (None, 1, 1));
                assert_eq!(found.wrong, [""; 0]);
            } else {
                assert_eq!((found.refused, found.old_accepted, found.lost_updates), (0, 1, 1));
            }
        }
    }

    #[test]
    fn a_death_that_is_not_told_is_noticed() {
        let mut judge = Judge::new(true);
        judge.enters(1, 10, 100, false);
        judge.enters(2, 20, 200, true);
        judge.leaves(20);
        judge.is_lost(20);
        assert_eq!((judge.verdict().deaths, judge.verdict().untold), (1, 0));
        judge.enters(1, 30, 300, false);
        assert_eq!((judge.verdict().deaths, judge.verdict().untold), (2, 1));
    }
}
