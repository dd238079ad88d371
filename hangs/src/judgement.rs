//! What `lockstead` said of a program, against what the program said of itself.

use crate::process::Hung;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of evidence, the strongest first.
pub const EVIDENCE: [&str; 5] = ["word", "pad", "guard", "seen", "likely"];

/// How a hang was seen that is, or is not, a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// There is none, and none was reported.
    RightlyNone,
    /// There is one, and it was reported.
    Deadlock,
    /// There is one, and it was reported as probable.
    Probable,
    /// There is one, and none was reported.
    Missed,
}

/// A reported deadlock: whether it is certain, and the ids of its threads.
pub type Cycle = (Verdict, BTreeSet<u64>);

/// The comparison for one program.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The number of owners that were named and are owners, by the evidence.
    pub right: BTreeMap<String, u32>,
    /// The number of owners that were among those that may hold.
    pub may_hold: u32,
    /// The number of owners that were not named: each lock with its owner.
    pub not_known: Vec<String>,
    /// All that was said and is not so.
    pub wrong: Vec<String>,
    /// What was said of deadlocks: the less of what both reports said.
    pub verdict: Verdict,
}

impl Judgement {
    /// Returns the number of owners that there are.
    #[must_use]
    pub fn owners(&self) -> u32 {
        let unknown = u32::try_from(self.not_known.len()).unwrap_or(u32::MAX);
        self.named() + self.may_hold + unknown
    }

    /// Returns the number of owners that were named rightly.
    #[must_use]
    pub fn named(&self) -> u32 {
        self.right.values().sum()
    }
}

/// Returns how far a report of `lockstead dump --json` agrees with the program's truth; `live` has
/// the deadlocks that `lockstead run` reported, if the program was under it.
#[must_use]
pub fn judge(hung: &Hung, dump: &Value, live: Option<&[Cycle]>) -> Judgement {
    let truth = &hung.truth;
    let id = |name: &str| hung.ids.get(name).copied().unwrap_or_default();
    let mut judgement = Judgement {
        right: BTreeMap::new(),
        may_hold: 0,
        not_known: Vec::new(),
        wrong: Vec::new(),
        verdict: Verdict::RightlyNone,
    };
    let nobody = BTreeSet::new();
    for (name, place) in &truth.locks {
        let waiters: BTreeSet<u64> = truth
            .waits
            .iter()
            .filter(|(_, lock)| *lock == name)
            .map(|(thread, _)| u64::from(id(thread)))
            .collect();
        let said = Said::of(dump, *place, &waiters);
        let owners = truth.owners.get(name).unwrap_or(&nobody);
        let lost = truth.leaks.get(name).unwrap_or(&nobody);
        if !waiters.is_empty() {
            for owner in owners {
                let id = u64::from(id(owner));
                if let Some(evidence) = said.holders.get(&id) {
                    *judgement.right.entry(evidence.clone()).or_default() += 1;
                } else if said.may_hold.contains(&id) {
                    judgement.may_hold += 1;
                } else {
                    judgement.not_known.push(format!("{name} of {owner}"));
                }
            }
        }
        let real: BTreeSet<u64> = owners.union(lost).map(|name| u64::from(id(name))).collect();
        for (holder, evidence) in said.holders.iter().filter(|(id, _)| !real.contains(id)) {
            let who = hung.ids.iter().find(|(_, id)| u64::from(**id) == *holder);
            let who = who.map_or_else(|| holder.to_string(), |(name, _)| name.clone());
            judgement.wrong.push(format!("{name} is not held by {who}, as the {evidence} says"));
        }
    }
    let said = array(&dump["cycles"]).filter_map(|cycle| {
        let verdict = match cycle["verdict"].as_str() {
            Some("deadlock") => Verdict::Deadlock,
            Some("probable") => Verdict::Probable,
            _ => return None,
        };
        Some((verdict, array(&cycle["threads"]).map(number).collect()))
    });
    let said = cycles(hung, said, &mut judgement.wrong);
    let live = live.map(|live| cycles(hung, live.iter().cloned(), &mut judgement.wrong));
    judgement.verdict = live.map_or(said, |live| said.max(live));
    judgement
}

/// What was said of one lock.
struct Said {
    holders: BTreeMap<u64, String>,
    may_hold: BTreeSet<u64>,
}

impl Said {
    /// Returns what was said of the locks that lie in the place, or that the waiters wait for.
    fn of(dump: &Value, (start, size): (u64, u64), waiters: &BTreeSet<u64>) -> Said {
        let mut said = Said { holders: BTreeMap::new(), may_hold: BTreeSet::new() };
        for lock in array(&dump["locks"]) {
            let address = lock["address"].as_u64().unwrap_or_default();
            let here = address >= start && address - start < size;
            let waits = array(&lock["waiting"]).any(|id| waiters.contains(&number(id)));
            if !here && !waits {
                continue;
            }
            for holder in array(&lock["holders"]) {
                let evidence = holder["evidence"].as_str().unwrap_or("no evidence");
                said.holders.insert(number(&holder["thread"]), evidence.to_owned());
            }
            said.may_hold.extend(array(&lock["may_hold"]).map(number));
        }
        said
    }
}

/// Returns what one report says of the deadlocks of a program; enters into `wrong` what is not so.
fn cycles(hung: &Hung, said: impl Iterator<Item = Cycle>, wrong: &mut Vec<String>) -> Verdict {
    let ids = |lost| -> BTreeSet<u64> {
        let names = hung.truth.deadlocked(lost);
        names.iter().filter_map(|name| hung.ids.get(*name)).map(|id| u64::from(*id)).collect()
    };
    let real = ids(true);
    let mut verdict = if ids(false).is_empty() { Verdict::RightlyNone } else { Verdict::Missed };
    for (said, members) in said {
        if !members.is_subset(&real) {
            wrong.push(format!("a deadlock of {members:?}, where {real:?} are in one"));
        } else if !matches!(verdict, Verdict::Deadlock | Verdict::RightlyNone) {
            verdict = said;
        }
    }
    verdict
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}
