//! The rules, each asked before the call that would break it.

use super::report::{Place, Rule, broken};
use super::table::Kind;
use super::with;
use lockstead_core::Platform;
use lockstead_linux::Linux;

/// The calling thread, as messages number it.
pub(super) fn me() -> u32 {
    Linux::me().get()
}

pub(super) fn report(rule: Option<Rule>) -> bool {
    let fine = rule.is_none();
    if let Some(rule) = rule {
        broken(&rule);
    }
    fine
}

/// Reports the rule that was broken; true if none was, or nobody was asked.
pub(super) fn settle(asked: Option<Result<(), Rule>>) -> bool {
    report(asked.and_then(Result::err))
}

/// Whether there is a lock at the address, of this kind, that was not destroyed.
pub(super) fn usable(address: usize, kind: Kind, call: &str, at: &Place) -> bool {
    if address == 0 {
        return report(Some(Rule {
            what: "null pointer",
            detail: format!("{call} was given a null pointer for a {kind}"),
            at: at.clone(),
        }));
    }
    if !address.is_multiple_of(align_of::<u64>()) {
        return report(Some(Rule {
            what: "not a lock",
            detail: format!("{call} was given {address:#x}, where no {kind} can be"),
            at: at.clone(),
        }));
    }
    let rule = with(|table| {
        let found = table.lock(address, kind, at).kind;
        let known = table.known(address).expect("introduced above");
        if let Some(destroyed) = &known.destroyed {
            return Some(Rule {
                what: "use after destroy",
                detail: format!("{call}: the {} was destroyed at {destroyed}", table.name(address)),
                at: at.clone(),
            });
        }
        (found != kind).then(|| Rule {
            what: "another kind of lock",
            detail: format!("{call} wants a {kind}, but this is a {}", table.name(address)),
            at: at.clone(),
        })
    });
    report(rule.flatten())
}

/// A lock that somebody holds is not made or ended.
pub(super) fn unheld(address: usize, what: &'static str, call: &str, at: &Place) -> bool {
    let rule = with(|table| {
        let held = table.holder(address, None)?;
        Some(Rule {
            what,
            detail: format!(
                "{call}: thread {} holds the {} since {}",
                held.thread,
                table.name(address),
                held.at
            ),
            at: at.clone(),
        })
    });
    report(rule.flatten())
}

/// Before a thread waits for a lock: it must not have it, and the order is noted.
pub(super) fn may_wait(hold: (usize, bool, u32), level: u32, call: &str, at: &Place) -> bool {
    let (address, _, thread) = hold;
    let told = with(|table| {
        if let Some(held) = table.holder(address, Some(thread)) {
            return Err(Rule {
                what: "recursive locking",
                detail: format!(
                    "{call}: thread {thread} holds the {} already, since {}",
                    table.name(address),
                    held.at
                ),
                at: at.clone(),
            });
        }
        Ok(table.ask(hold, level, at))
    });
    match told {
        Some(Err(rule)) => report(Some(rule)),
        Some(Ok(orders)) => {
            orders.iter().for_each(|order| eprint!("{order}"));
            true
        }
        None => true,
    }
}

/// Before a release: the calling thread must have what it releases.
pub(super) fn may_release(hold: (usize, bool, u32), call: &str, at: &Place) -> bool {
    let (address, reads, thread) = hold;
    let rule = with(|table| {
        if table.released(address, reads, thread) {
            return None;
        }
        let name = table.name(address);
        let (what, detail) = match table.holder(address, None) {
            Some(held) if held.thread != thread => (
                "release by another thread",
                format!(
                    "{call}: thread {thread} releases the {name}, which thread {} holds since {}",
                    held.thread, held.at
                ),
            ),
            Some(held) => (
                "another way of holding",
                format!(
                    "{call}: thread {thread} holds the {name} for {} only, since {}",
                    if held.reads { "reading" } else { "writing" },
                    held.at
                ),
            ),
            None => ("release of a free lock", format!("{call}: nobody holds the {name}")),
        };
        Some(Rule { what, detail, at: at.clone() })
    });
    report(rule.flatten())
}
