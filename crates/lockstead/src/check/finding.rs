//! Findings: what is done with them, and all that there were.

use super::inside::locked;
pub use lockstead_rules::Level;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The level of the finding.
    pub level: Level,
    /// The report: a first line `lockstead: LEVEL: what`, then who, which locks
    /// and where.
    pub text: String,
}

/// What to do with a finding, besides keeping it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Action {
    /// Print it to standard error, unless it is an [`Level::Order`]; the default,
    /// and `LOCKSTEAD_CHECK=report`.
    Report = 1,
    /// Print every finding; `LOCKSTEAD_CHECK=strict`.
    Strict = 2,
    /// Print like [`Action::Report`], and panic in the thread that completed the finding, before it
    /// waits; `LOCKSTEAD_CHECK=panic`. A thread that ends does not panic.
    Panic = 3,
    /// Print no finding at all; `LOCKSTEAD_CHECK=silent`.
    Silent = 4,
}

/// The [`Action`] that was chosen; 0 before that.
static ACTION: AtomicU8 = AtomicU8::new(0);

static FOUND: Mutex<Vec<Finding>> = Mutex::new(Vec::new());

/// Says what to do with findings from now on; goes before `LOCKSTEAD_CHECK`.
pub fn set_action(action: Action) {
    ACTION.store(action as u8, Relaxed);
}

/// Returns what to do. A value of `LOCKSTEAD_CHECK` that means nothing is said once.
fn action() -> Action {
    match ACTION.load(Relaxed) {
        1 => Action::Report,
        2 => Action::Strict,
        3 => Action::Panic,
        4 => Action::Silent,
        _ => {
            let action = match std::env::var("LOCKSTEAD_CHECK").as_deref() {
                Ok("strict") => Action::Strict,
                Ok("panic") => Action::Panic,
                Ok("silent") => Action::Silent,
                Ok("report") | Err(_) => Action::Report,
                Ok(other) => {
                    eprintln!(
                        "lockstead: LOCKSTEAD_CHECK={other} means nothing: it can be report, \
                         strict, panic or silent"
                    );
                    Action::Report
                }
            };
            set_action(action);
            action
        }
    }
}

/// Returns all findings of this process so far, in their order.
#[must_use]
pub fn findings() -> Vec<Finding> {
    locked(&FOUND).clone()
}

/// Prints what was found, if that is wanted, keeps it, and says whether to panic. In this
/// order: a program that has seen a finding may end, and has its text.
pub(super) fn act(found: &[Finding]) -> bool {
    let action = action();
    let printed = |finding: &&Finding| match action {
        Action::Silent => false,
        Action::Strict => true,
        Action::Report | Action::Panic => finding.level > Level::Order,
    };
    for finding in found.iter().filter(printed) {
        eprint!("{}", finding.text);
    }
    locked(&FOUND).extend_from_slice(found);
    action == Action::Panic && found.iter().any(|finding| finding.level > Level::Order)
}
