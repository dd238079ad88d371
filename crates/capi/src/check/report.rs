//! What was done wrong, and where: says it, and ends the process unless it is told to go on.

use core::ffi::{CStr, c_char};
use core::fmt;
use lockstead_lockdep::book;
use lockstead_rules::Rule;
use std::sync::OnceLock;

/// A line of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SourcePlace {
    file: String,
    line: u32,
}

impl SourcePlace {
    /// Makes the place of a call from a file's name and a line.
    ///
    /// # Safety
    /// `file` is null or a string.
    pub(crate) unsafe fn new(file: *const c_char, line: u32) -> SourcePlace {
        let file = if file.is_null() {
            "?".into()
        } else {
            // SAFETY: CAPI-FILE: `file` is not null, so a string; the caller keeps it.
            unsafe { CStr::from_ptr(file) }.to_string_lossy().into_owned()
        };
        SourcePlace { file, line }
    }

    /// Makes what stands for a place where the program has named a class by a key instead.
    pub(crate) fn of_key(key: usize) -> SourcePlace {
        SourcePlace { file: format!("key {key:#x}"), line: 0 }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A rule that was broken.
#[derive(Debug)]
pub(crate) struct ReportedViolation {
    pub(crate) rule: Rule,
    /// The thread that broke it, with which lock, and what came before.
    pub(crate) detail: String,
    /// The place where it was done.
    pub(crate) at: SourcePlace,
}

impl ReportedViolation {
    pub(crate) fn new(rule: Rule, detail: String, at: &SourcePlace) -> ReportedViolation {
        ReportedViolation { rule, detail, at: at.clone() }
    }
}

/// Returns whether the program goes on after a misuse.
fn only_warns() -> bool {
    static WARNS: OnceLock<bool> = OnceLock::new();
    *WARNS.get_or_init(|| std::env::var_os("LOCKSTEAD_CHECK").is_some_and(|value| value == "warn"))
}

/// Prints a report, and ends the process unless it is told to go on: also of threads that wait for
/// each other, rather than hang.
pub(crate) fn fatal(text: &str) {
    eprint!("{text}");
    if !only_warns() {
        std::process::abort();
    }
}

/// Prints a violation, and aborts unless the program wants warnings only.
pub(crate) fn report(violation: &ReportedViolation) {
    let ReportedViolation { rule, detail, at } = violation;
    let first = book::first_line(rule.level(), rule.phrase());
    fatal(&format!("{first}  {detail}\n    at {at}\n"));
}
