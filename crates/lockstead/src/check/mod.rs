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

mod engine;
mod finding;
mod inside;
mod listening;
mod lock;
mod text;
mod thread;

pub use engine::losses;
pub use finding::{Action, Finding, Level, findings, set_action};
pub use lock::{Checked, CheckedLock};
pub(crate) use lockstead_rules::Rule;

/// Says once for these places that a rule was broken, and panics if that is wanted.
/// The first place is where it was broken.
#[track_caller]
pub(crate) fn violation(rule: Rule, story: &str, places: &[(&'static str, lockstead_core::Site)]) {
    if let Some(finding) = engine::violation(rule, story, places)
        && finding::act(std::slice::from_ref(&finding))
    {
        panic!("{}", finding.text);
    }
}
