//! What was done wrong, and where, in words.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::sync::OnceLock;

/// A line of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    file: String,
    line: u32,
}

impl Place {
    /// # Safety
    /// `file` is null or a string.
    pub(crate) unsafe fn new(file: *const c_char, line: u32) -> Place {
        let file = if file.is_null() {
            "?".into()
        } else {
            // SAFETY: a string (the caller).
            unsafe { CStr::from_ptr(file) }.to_string_lossy().into_owned()
        };
        Place { file, line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A rule that was broken.
#[derive(Debug)]
pub(crate) struct Rule {
    /// In a few words.
    pub(crate) what: &'static str,
    /// Who, which lock, and what came before.
    pub(crate) detail: String,
    /// Where.
    pub(crate) at: Place,
}

/// Whether the program goes on after a misuse.
fn only_warns() -> bool {
    static WARNS: OnceLock<bool> = OnceLock::new();
    *WARNS.get_or_init(|| std::env::var_os("LOCKSTEAD_CHECK").is_some_and(|value| value == "warn"))
}

/// Says that threads wait for each other, and ends the process rather than hang, unless
/// it is told to go on.
pub(crate) fn deadlock(text: &str) {
    eprint!("lockstead: DEADLOCK: {text}");
    if !only_warns() {
        std::process::abort();
    }
}

/// Says it, and ends the process unless it is told to go on.
pub(crate) fn broken(rule: &Rule) {
    eprintln!("lockstead: RULE: {}\n  {}\n    at {}", rule.what, rule.detail, rule.at);
    if !only_warns() {
        std::process::abort();
    }
}
