//! Clang's thread-safety analysis takes right code, and refuses wrong code.

use crate::common::{package, strict};
use std::process::Command;

const COMPILER: &str = "clang++";

/// Compiles with this mistake in the source. Returns what the compiler said if it refused.
fn refusal(mistake: Option<&str>, debug: bool) -> Option<String> {
    let mut command = strict(COMPILER, "c++17");
    command.args(["-Wthread-safety", "-Wno-unused-private-field", "-fsyntax-only"]);
    command.args(mistake.map(|mistake| format!("-D{mistake}")));
    command.args(debug.then_some("-DLKS_DEBUG"));
    let output = command.arg(package().join("tests/cpp/annotated.cc")).output();
    let output = output.expect("the compiler runs");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn right_code_is_taken_and_wrong_code_refused() {
    if let Err(error) = Command::new(COMPILER).arg("--version").output() {
        eprintln!("skipped: {COMPILER} does not run: {error}");
        return;
    }
    for debug in [false, true] {
        assert_eq!(refusal(None, debug), None, "the checking build: {debug}");
        for (mistake, words) in [
            ("UNGUARDED", "reading variable 'balance_' requires holding mutex 'mutex_'"),
            ("NOT_HELD", "calling function 'add' requires holding mutex 'mutex_'"),
            ("NEVER_RELEASED", "mutex 'mutex_' is still held at the end of function"),
            ("NEVER_TAKEN", "releasing mutex 'mutex_' that was not held"),
            ("TAKEN_TWICE", "acquiring mutex 'mutex_' that is already held"),
            ("WRITTEN_BY_A_READER", "writing variable 'rate_' requires holding"),
            ("UNTRIED", "writing variable 'balance_' requires holding mutex 'mutex_'"),
            ("C_UNGUARDED", "variable 'of_plain' requires holding mutex 'plain'"),
            ("C_INTERRUPTED", "variable 'of_plain' requires holding mutex 'plain'"),
            ("FAIR_UNGUARDED", "variable 'of_fair' requires holding mutex 'fair'"),
            ("FAIR_NEVER_RELEASED", "mutex 'fair' is still held at the end of function"),
            ("MIGRATED_UNGUARDED", "variable 'of_kernels' requires holding mutex 'kernels'"),
            ("MIGRATED_NEVER_RELEASED", "mutex 'kernels' is still held at the end of function"),
        ] {
            let said = refusal(Some(mistake), debug).unwrap_or_else(|| panic!("{mistake}: taken"));
            assert!(said.contains(words), "{mistake}: {said}");
        }
    }
}
