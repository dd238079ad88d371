//! etcd as far as the protocol needs it: revisions, leases, transactions, what watches see.

use crate::etcd::wire::{Answer, Compare, Get, Keys, Op, Outcome, Pair, Txn};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Etcd {
    pub(super) revision: i64,
    pub(super) keys: BTreeMap<String, Pair>,
    /// The leases, and until when each lives.
    pub(super) leases: BTreeMap<i64, u64>,
    /// What changed: revision, key, whether it vanished.
    pub(super) log: Vec<(i64, String, bool)>,
}

impl Etcd {
    fn holds(&self, compare: &Compare) -> bool {
        let all = |keys: &Keys, test: &dyn Fn(&Pair) -> bool| {
            self.keys.values().filter(|pair| keys.contains(&pair.key)).all(test)
        };
        // Of one key that is absent etcd compares zeroes; of a range without keys nothing.
        let one = |key: &str| self.keys.get(key);
        match compare {
            Compare::Absent(keys) => all(keys, &|_| false),
            Compare::CreatedAt(key, at) => one(key).map_or(0, |pair| pair.created) == *at,
            Compare::ChangedAt(key, at) => one(key).map_or(0, |pair| pair.changed) == *at,
            Compare::CreatedAfter(keys, at) => all(keys, &|pair| pair.created > *at),
            Compare::Is(key, value) => one(key).is_some_and(|pair| pair.value == value.as_bytes()),
        }
    }

    fn read(&self, get: &Get) -> Vec<Pair> {
        let mut found: Vec<Pair> = self
            .keys
            .values()
            .filter(|pair| get.keys.contains(&pair.key))
            .filter(|pair| get.created_until == 0 || pair.created <= get.created_until)
            .cloned()
            .collect();
        found.sort_by_key(|pair| pair.created);
        if get.latest != 0 {
            found.reverse();
            found.truncate(get.latest as usize);
        }
        found
    }

    fn needs_dead_lease(&self, txn: &Txn) -> bool {
        let chosen = if self.all_hold(txn) { &txn.then } else { &txn.otherwise };
        chosen.iter().any(|op| match op {
            Op::Put { lease, .. } => *lease != 0 && !self.leases.contains_key(lease),
            Op::Txn(inner) => self.needs_dead_lease(inner),
            _ => false,
        })
    }

    fn all_hold(&self, txn: &Txn) -> bool {
        txn.when.iter().all(|compare| self.holds(compare))
    }

    /// Carries out a transaction; `None` if a lease that it needs has ended.
    pub(super) fn execute(&mut self, txn: &Txn) -> Option<Answer> {
        if self.needs_dead_lease(txn) {
            return None;
        }
        let next = self.revision + 1;
        let before = self.log.len();
        let mut answer = self.carry_out(txn, next);
        if self.log.len() > before {
            self.revision = next;
        }
        answer.revision = self.revision;
        Some(answer)
    }

    fn carry_out(&mut self, txn: &Txn, next: i64) -> Answer {
        let succeeded = self.all_hold(txn);
        // Those of transactions within are compared before anything is done, too; the protocol has none
        // that would notice, since nothing precedes them.
        let chosen = if succeeded { &txn.then } else { &txn.otherwise };
        let mut outcomes = Vec::new();
        for op in chosen {
            outcomes.push(match op {
                Op::Put { key, value, lease } => {
                    let created = self.keys.get(key).map_or(next, |pair| pair.created);
                    let (key, value) = (key.clone(), value.clone().into_bytes());
                    self.log.push((next, key.clone(), false));
                    let pair =
                        Pair { key: key.clone(), value, created, changed: next, lease: *lease };
                    self.keys.insert(key, pair);
                    Outcome::Put
                }
                Op::Delete(keys) => Outcome::Delete(self.remove(next, |p| keys.contains(&p.key))),
                Op::Get(get) => Outcome::Get(self.read(get)),
                Op::Txn(inner) => Outcome::Txn(self.carry_out(inner, next)),
            });
        }
        Answer { revision: next, succeeded, outcomes }
    }

    fn remove(&mut self, revision: i64, which: impl Fn(&Pair) -> bool) -> i64 {
        let gone: Vec<String> =
            self.keys.values().filter(|pair| which(pair)).map(|pair| pair.key.clone()).collect();
        for key in &gone {
            self.keys.remove(key);
            self.log.push((revision, key.clone(), true));
        }
        i64::try_from(gone.len()).unwrap_or(i64::MAX)
    }

    /// Ends a lease.
    pub(super) fn revoke(&mut self, lease: i64) {
        if self.leases.remove(&lease).is_some() {
            let next = self.revision + 1;
            if self.remove(next, |pair| pair.lease == lease) > 0 {
                self.revision = next;
            }
        }
    }

    /// Tells whether a watch of these keys from this revision has anything to tell.
    pub(super) fn has_event(&self, keys: &Keys, from: i64, deletions: bool) -> bool {
        let of_interest = |(at, key, gone): &(i64, String, bool)| {
            *at >= from && keys.contains(key) && (*gone || !deletions)
        };
        self.log.iter().any(of_interest)
    }
}
