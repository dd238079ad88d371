//! A watcher of locks that writes down what it hears.

use lockstead_core::{Access, Hooks, LockId, Path, Site};
use std::cell::RefCell;

/// A watcher that writes down what it hears.
pub(crate) struct Heard;

thread_local! {
    static HEARD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The state in each lock that a [`Heard`] watches.
pub(crate) const STATE: u16 = 0x5a5a;

fn hear(state: u16, lock: LockId, what: String) {
    assert_eq!(state, STATE);
    assert_ne!(lock.0, 0);
    HEARD.with_borrow_mut(|heard| heard.push(what));
}

/// Returns what was heard since the last time.
pub(crate) fn heard() -> Vec<String> {
    HEARD.take()
}

impl Hooks for Heard {
    type Waits = lockstead_core::Standard;
    type State = u16;
    const NEW: u16 = STATE;

    fn will_acquire(state: &u16, lock: LockId, access: Access, subclass: u32, site: Site) {
        hear(*state, lock, format!("will acquire {access:?} {subclass} {}", site.line()));
    }
    fn will_wait(state: &u16, lock: LockId, endless: bool) {
        hear(*state, lock, format!("will wait {endless}"));
    }
    fn acquired(state: &u16, lock: LockId, access: Access, path: Path, site: Site) {
        hear(*state, lock, format!("acquired {access:?} {path:?} {}", site.line()));
    }
    fn abandoned(state: &u16, lock: LockId, site: Site) {
        hear(*state, lock, format!("abandoned {}", site.line()));
    }
    fn releasing(state: &u16, lock: LockId) {
        hear(*state, lock, "releasing".into());
    }
    fn name(_state: &u16) -> Option<&'static str> {
        Some("hall")
    }
}
