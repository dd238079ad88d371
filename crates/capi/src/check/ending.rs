//! The end of a thread: what it holds now it holds for ever.

use super::report::{ReportedViolation, report};
use super::table::with;
use lockstead_rules::Rule;

/// Reports what the thread of this number has left behind. It has ended, but for its number, which
/// nobody else has yet.
pub(crate) fn leaving(thread: u32) {
    let left = with(|table| {
        let held = table.left_by(thread);
        let mut all: Vec<_> = held
            .iter()
            .map(|held| {
                let name = table.name(held.address);
                let detail = format!("thread {thread} has ended and holds the {name}");
                ReportedViolation::new(Rule::ThreadExit, detail, held.at())
            })
            .collect();
        all.extend(table.contexts.left_by(thread).into_iter().map(|begun| {
            let detail =
                format!("thread {thread} has ended without lks_ww_ctx_fini of its context");
            ReportedViolation::new(Rule::ThreadExitContext, detail, &begun)
        }));
        all
    });
    left.unwrap_or_default().iter().for_each(report);
}
