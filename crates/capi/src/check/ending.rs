//! The end of a thread: what it holds now it holds for ever.

use super::report::{Rule, broken};
use super::with;

/// The thread of this number has ended, but for its number, which nobody else has yet.
pub(crate) fn leaving(thread: u32) {
    let left = with(|table| {
        let held = table.left_by(thread);
        let mut rules: Vec<_> = held
            .iter()
            .map(|held| Rule {
                what: "thread exit while holding",
                detail: format!(
                    "thread {thread} has ended and holds the {}",
                    table.name(held.address)
                ),
                at: held.at.clone(),
            })
            .collect();
        rules.extend(table.contexts.left_by(thread).into_iter().map(|begun| Rule {
            what: "thread exit with a context",
            detail: format!("thread {thread} has ended without lks_ww_ctx_fini of its context"),
            at: begun,
        }));
        rules
    });
    left.unwrap_or_default().iter().for_each(broken);
}
