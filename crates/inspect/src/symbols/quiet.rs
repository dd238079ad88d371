//! Panics that are an answer.
//!
//! # Role
//! The reader of debug information takes much of a file on trust, and panics
//! over a damaged one. Nobody wants to read that: the report says what has no
//! name, and goes on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::thread::Result;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOKED: Once = Once::new();

/// Runs `body`; a panic in it is returned and not printed. Panics of other
/// threads, and others of this one, are printed as before.
pub(super) fn quietly<R>(body: impl FnOnce() -> R) -> Result<R> {
    HOOKED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let was = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    QUIET.set(was);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const CHILD: &str = "LOCKSTEAD_TEST_PANIC";

    #[test]
    fn only_expected_panics_are_silent() {
        if std::env::var_os(CHILD).is_some() {
            assert!(quietly(|| panic!("expected")).is_err());
            assert_eq!(quietly(|| 7).ok(), Some(7));
            let other = std::thread::spawn(|| panic!("unexpected"));
            assert!(other.join().is_err());
            return;
        }
        // What is printed is seen best from outside.
        let name = "symbols::quiet::tests::only_expected_panics_are_silent";
        let child = Command::new(std::env::current_exe().expect("a test has a file"))
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{text}");
        assert!(text.contains("unexpected\n") && !text.contains("\nexpected"), "{text}");
    }
}
