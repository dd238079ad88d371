//! What to do about a lock, in a sentence, and the rule behind it.
//!
//! # Role
//! Pure data: from the part that waiting for a lock had in the time of the process's threads, and
//! from what its holder did meanwhile. `docs/report.md` has the rules as a table; a test compares
//! the two.

pub(super) mod model;

pub use model::{Verdict, VerdictRule};

use super::holders::{HolderDoing, HolderPlace, HolderReport};
use super::model::{LockReport, WaitingShare, percent};
use std::borrow::Cow;

/// The part of the time that threads were not idle, in per cent, below which a lock is not worth
/// fixing.
const SMALL: f64 = 1.0;
/// The part of a lock's waiting, in per cent, from which on something is its cause.
const HALF: f64 = 50.0;

/// Returns the verdict on a lock of a process whose threads spent their time so; `None` if nobody
/// waited for it.
#[must_use]
pub fn of(lock: &LockReport, waiting: &WaitingShare) -> Option<Verdict> {
    let waited = lock.wait.total_ns;
    if waited == 0 {
        return None;
    }
    let verdict = |rule: VerdictRule, cause: Option<Cow<'_, str>>| {
        let advice = rule.advice();
        let text = cause.map_or_else(|| advice.to_owned(), |cause| format!("{cause}: {advice}"));
        Some(Verdict { rule, text })
    };
    if percent(waited, waiting.busy_ns()) < SMALL {
        return verdict(VerdictRule::Small, None);
    }
    let Some(holder) = &lock.holder else { return verdict(VerdictRule::Unseen, None) };
    if !holder.enough {
        return verdict(VerdictRule::FewLooks, None);
    }
    let split = &holder.split;
    let part = |share: f64| format!("for {share:.0}% of that");
    if let Some((call, share)) = largest(holder, HolderDoing::Asleep, |place| &place.call) {
        let cause = format!("its holder was in {call} {}", part(share));
        return verdict(VerdictRule::Asleep, Some(cause.into()));
    }
    if let Some((other, share)) = largest(holder, HolderDoing::Waiting, |place| &place.lock) {
        let cause = format!("its holder waited for {other} {}", part(share));
        return verdict(VerdictRule::OtherLock, Some(cause.into()));
    }
    for (share, rule, cause) in [
        (
            split.ready_percent,
            VerdictRule::NoProcessor,
            "its holder was ready and had no processor",
        ),
        (split.free_percent, VerdictRule::Free, "it was free and no waiter awake"),
        (split.running_percent, VerdictRule::Running, "its holder ran"),
        (split.unknown_percent, VerdictRule::Unseen, "somebody held it who was not seen"),
    ] {
        if share >= HALF {
            return verdict(rule, Some(format!("{cause} {}", part(share)).into()));
        }
    }
    let parts = [
        (split.running_percent, "ran"),
        (split.asleep_percent, "slept"),
        (split.waiting_percent, "waited itself"),
        (split.ready_percent, "had no processor"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(share, _)| *share >= 10.0)
        .map(|(share, what)| format!("{what} {share:.0}%"))
        .collect();
    let free = format!("it was free {:.0}%", split.free_percent);
    let cause = match &parts[..] {
        [] => free,
        parts => format!("its holder {}, {free}", parts.join(", ")),
    };
    verdict(VerdictRule::Mixed, Some(cause.into()))
}

/// Returns what has the largest part of such places, if that is half of the waiting.
fn largest<'h>(
    holder: &'h HolderReport,
    doing: HolderDoing,
    what: impl Fn(&'h HolderPlace) -> &'h Option<String>,
) -> Option<(&'h str, f64)> {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for place in holder.places.iter().filter(|place| place.doing == doing) {
        let Some(name) = what(place) else { continue };
        match sums.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += place.share_percent,
            None => sums.push((name, place.share_percent)),
        }
    }
    let largest = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (largest.1 >= HALF).then_some(largest)
}
