//! Lock order and lock rules, checked while the program runs: what the feature
//! `check` adds.
//!
//! With the feature every [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock) and
//! their named forms tell of each acquisition. Orders of locks that can deadlock
//! are reported *before* they do, deadlocks when they close, and so are violations
//! of the rules that the types leave open. Without the feature nothing of this
//! exists: the locks have their 8 bytes and their few instructions.
//!
//! # What is found
//! - `DEADLOCK`: threads wait for each other, for ever.
//! - `RULE`: a thread has ended with a guard leaked; a read lock is taken again by
//!   the thread that has it, which a waiting writer makes a deadlock; and the rules of
//!   [`ww`](crate::ww#misuse).
//! - `POTENTIAL`: two or more threads took the same locks in orders that
//!   contradict each other, and nothing kept them apart.
//! - `ORDER`: orders that contradict each other, but one thread alone did it, or
//!   a further lock keeps the threads apart, or the locks are others of the same
//!   classes.
//!
//! A class is what locks of one name have in common or, of locks without a name,
//! the place that created them. [`Mutex::lock_nested`](crate::Mutex::lock_nested)
//! gives the place in a nesting: a lock at one level is another lock than at the
//! next, as in the kernel's lockdep.
//!
//! Each cause is reported once, to standard error, and kept for [`findings`].
//! `LOCKSTEAD_CHECK` in the environment, or [`set_action`], says what else to do.
//!
//! # What is not
//! Semaphores (whose units have no owner), [`Once`](crate::Once), the locks of
//! [`lock_api`](crate::lock_api), and what signal handlers do while they
//! interrupt a check. Locks of other kinds, in any language, are for
//! `lockstead run --check`.
//!
//! # Source
//! The kernel's lockdep (Molnar and van de Ven, 2006).
//!
//! # Example
//! ```
//! use lockstead::{NamedMutex, check};
//!
//! static FRONT: NamedMutex<u32> = NamedMutex::named("front", 0);
//! static BACK: NamedMutex<u32> = NamedMutex::named("back", 0);
//!
//! check::set_action(check::Action::Silent);
//! drop((FRONT.lock(), BACK.lock()));
//! // Another order, and by the same thread: it cannot deadlock with itself.
//! let back = BACK.lock();
//! drop((FRONT.lock(), back));
//! let found = &check::findings()[0];
//! assert_eq!(found.level, check::Level::Order);
//! assert!(found.text.contains("front"));
//! ```

mod cycles;
mod engine;
mod lock;
mod text;
mod thread;

pub use lock::{Checked, Lock};

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Level {
    /// An inversion that, as it was seen, cannot deadlock.
    Order,
    /// An inversion that can.
    Potential,
    /// A rule was broken.
    Rule,
    /// It happened.
    Deadlock,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Order => "ORDER",
            Level::Potential => "POTENTIAL",
            Level::Rule => "RULE",
            Level::Deadlock => "DEADLOCK",
        })
    }
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
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
    /// Print all; `LOCKSTEAD_CHECK=strict`.
    Strict = 2,
    /// As [`Action::Report`], and panic in the thread that completed it, before it
    /// waits; `LOCKSTEAD_CHECK=panic`. (Not for a thread that ends.)
    Panic = 3,
    /// Nothing; `LOCKSTEAD_CHECK=silent`.
    Silent = 4,
}

/// 0: not said yet.
static ACTION: AtomicU8 = AtomicU8::new(0);

/// Says what to do with findings from now on; goes before `LOCKSTEAD_CHECK`.
pub fn set_action(action: Action) {
    ACTION.store(action as u8, Relaxed);
}

/// What to do. A value of `LOCKSTEAD_CHECK` that means nothing is said once.
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

/// All findings of this process so far, in their order.
#[must_use]
pub fn findings() -> Vec<Finding> {
    engine::findings()
}

/// What was not checked, for want of room or time: empty, but in programs of
/// millions of locks.
#[must_use]
pub fn losses() -> Vec<String> {
    engine::losses()
}

/// A rule was broken: says so once for these places, and panics if that is wanted.
/// The first place is where it was broken.
#[track_caller]
pub(crate) fn violation(what: &str, story: &str, places: &[(&str, crate::Site)]) {
    let mut found = None;
    thread::outside(|| found = engine::violation(what, story, places));
    if let Some(finding) = found
        && act(std::slice::from_ref(&finding))
    {
        panic!("{}", finding.text);
    }
}

/// Prints what was found, if that is wanted, keeps it, and says whether to panic. In this
/// order: a program that has seen a finding may end, and has its text.
fn act(found: &[Finding]) -> bool {
    let action = action();
    let printed = |finding: &&Finding| match action {
        Action::Silent => false,
        Action::Strict => true,
        Action::Report | Action::Panic => finding.level > Level::Order,
    };
    for finding in found.iter().filter(printed) {
        eprint!("{}", finding.text);
    }
    engine::keep(found);
    action == Action::Panic && found.iter().any(|finding| finding.level > Level::Order)
}
