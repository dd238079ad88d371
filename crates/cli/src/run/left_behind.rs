//! Processes of a run that outlive its program, whether they have called or not: each has
//! the run's token in its environment as it began.

use lockstead_ledger::hello::VARIABLE;
use std::fs;

/// Returns whether there is a process with this token, of those whose environment may be read.
pub(super) fn any(token: &str) -> bool {
    let entry = format!("{VARIABLE}={token};");
    let Ok(all) = fs::read_dir("/proc") else { return false };
    all.flatten()
        .filter(|process| process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        // That of a process that has ended, and that nobody has waited for, is empty.
        .filter_map(|process| fs::read(process.path().join("environ")).ok())
        .any(|all| all.split(|&byte| byte == 0).any(|one| one.starts_with(entry.as_bytes())))
}
