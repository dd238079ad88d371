//! The rules, each asked before the call that would break it.

use super::report::{self, ReportedViolation, SourcePlace};
use super::table::{CheckedKind, LockOfThread, with};
use lockstead_core::Platform;
use lockstead_linux::Linux;
use lockstead_rules::Rule;

/// Returns the number of the calling thread, which messages have too.
pub(super) fn me() -> u32 {
    Linux::me().get()
}

/// Reports the rule that was broken; returns true if none was, or nobody was asked.
pub(super) fn settle(asked: Option<Result<(), ReportedViolation>>) -> bool {
    match asked {
        Some(Err(violation)) => {
            report::report(&violation);
            false
        }
        Some(Ok(())) | None => true,
    }
}

/// Reports that a rule was broken, and returns false.
pub(super) fn refused(rule: Rule, detail: String, at: &SourcePlace) -> bool {
    settle(Some(Err(ReportedViolation::new(rule, detail, at))))
}

/// Returns whether something of this kind can lie at the address.
pub(super) fn can_be(address: usize, what: &str, call: &str, at: &SourcePlace) -> bool {
    if address == 0 {
        let detail = format!("{call} was given a null pointer for a {what}");
        return refused(Rule::NullPointer, detail, at);
    }
    if !address.is_multiple_of(align_of::<u64>()) {
        let detail = format!("{call} was given {address:#x}, where no {what} can be");
        return refused(Rule::NotALock, detail, at);
    }
    true
}

/// Returns whether there is a lock at the address, of this kind, that was not destroyed.
pub(super) fn usable(address: usize, kind: CheckedKind, call: &str, at: &SourcePlace) -> bool {
    can_be(address, &kind.to_string(), call, at)
        && settle(with(|table| {
            let known = table.lock(address, kind, at);
            let (found, destroyed) = (known.kind, known.destroyed.clone());
            let name = table.name(address);
            let (rule, detail) = match destroyed {
                Some(there) => {
                    (Rule::Destroyed, format!("{call}: the {name} was destroyed at {there}"))
                }
                None if found != kind => {
                    (Rule::OtherKind, format!("{call} wants a {kind}, but this is a {name}"))
                }
                None => return Ok(()),
            };
            Err(ReportedViolation::new(rule, detail, at))
        }))
}

/// Returns whether nobody holds a lock that is to be made or ended.
pub(super) fn unheld(address: usize, rule: Rule, call: &str, at: &SourcePlace) -> bool {
    settle(with(|table| {
        let Some(held) = table.holder(address, None) else { return Ok(()) };
        let (thread, since, name) = (held.thread, held.at(), table.name(address));
        let detail = format!("{call}: thread {thread} holds the {name} since {since}");
        Err(ReportedViolation::new(rule, detail, at))
    }))
}

/// Returns whether a thread may wait for a lock, which it must not have, and notes the order.
pub(super) fn may_wait(part: LockOfThread, level: u32, call: &str, at: &SourcePlace) -> bool {
    let (address, _, thread) = part;
    let asked = with(|table| {
        if let Some(held) = table.holder(address, Some(thread)) {
            let (name, since) = (table.name(address), held.at());
            let detail = format!("{call}: thread {thread} holds the {name} already, since {since}");
            return Err(ReportedViolation::new(Rule::Recursion, detail, at));
        }
        Ok(table.ask(part, level, at, |_| true))
    });
    settle(told(asked))
}

/// Prints the orders that can deadlock which a question has brought to light.
pub(super) fn told(
    asked: Option<Result<Vec<String>, ReportedViolation>>,
) -> Option<Result<(), ReportedViolation>> {
    asked.map(|asked| asked.map(|orders| orders.iter().for_each(|order| eprint!("{order}"))))
}

/// Reports the deadlock that the calling thread closes, which begins to wait without end.
pub(super) fn wait(part: LockOfThread, at: &SourcePlace) {
    if let Some(deadlock) = with(|table| table.wait(part, at)).flatten() {
        report::fatal(&deadlock);
    }
}

/// Returns whether the calling thread has what it releases, and notes that it has it no more.
pub(super) fn may_release(part: LockOfThread, call: &str, at: &SourcePlace) -> bool {
    gives_back(part, None, call, at)
}

/// Returns whether the thread may wait on a condition, which releases its mutex.
pub(super) fn may_wait_with(part: LockOfThread, call: &str, at: &SourcePlace) -> bool {
    gives_back(part, Some(Rule::ConditionUnlocked), call, at)
}

/// Returns whether the thread has what it gives back; if not, `rule` is broken, or the rule of any
/// release where it is `None`.
fn gives_back(part: LockOfThread, rule: Option<Rule>, call: &str, at: &SourcePlace) -> bool {
    let (address, _, thread) = part;
    settle(with(|table| {
        if table.released(part) {
            return Ok(());
        }
        let name = table.name(address);
        let (usual, detail) = match table.holder(address, None) {
            Some(held) if held.thread != thread => {
                let (owner, since) = (held.thread, held.at());
                let detail = format!("the {name}, which thread {owner} holds since {since}");
                (Rule::UnlockByAnother, format!("{call}: thread {thread} releases {detail}"))
            }
            Some(held) => {
                let (how, since) = (if held.reads() { "reading" } else { "writing" }, held.at());
                let detail = format!("holds the {name} for {how} only, since {since}");
                (Rule::OtherWay, format!("{call}: thread {thread} {detail}"))
            }
            None => (Rule::UnlockOfUnlocked, format!("{call}: nobody holds the {name}")),
        };
        Err(ReportedViolation::new(rule.unwrap_or(usual), detail, at))
    }))
}
