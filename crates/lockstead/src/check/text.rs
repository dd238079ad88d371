//! Places in words, with the calls that led there.

use backtrace::{Backtrace, BacktraceFrame};
use lockstead_core::Site;
use std::fmt::Write;

/// The number of frames of a call chain that are shown: two locks, two chains each, must fit a
/// screen of 40 lines.
const FRAMES: usize = 6;

/// The code that is not the program's, in front of what led to a call and behind it.
const OURS: [&str; 7] = [
    "lockstead::",
    "lockstead_core::",
    "lockstead_lockdep::",
    "backtrace::",
    "core::",
    "std::",
    "__rust",
];

/// Adds a line below the first one.
pub(super) fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "  {line}");
}

/// Adds a place and the call chain that led there.
pub(super) fn place(text: &mut String, what: &str, site: Site, chain: Option<&Backtrace>) {
    let _ = writeln!(text, "    {what} at {site}");
    let Some(chain) = chain else { return };
    let mut chain = chain.clone();
    chain.resolve();
    let symbols = chain.frames().iter().flat_map(BacktraceFrame::symbols);
    let mut lines = Vec::new();
    for symbol in symbols {
        let Some(name) = symbol.name() else { continue };
        let name = format!("{name:#}");
        // Also of a type of ours, as a trait's method has it.
        let is_ours = |code: &&str| name.trim_start_matches('<').starts_with(*code);
        if OURS.iter().any(is_ours) {
            continue;
        }
        lines.push(match (symbol.filename(), symbol.lineno()) {
            (Some(file), Some(line)) => format!("{name} ({}:{line})", file.display()),
            _ => name,
        });
    }
    let more = lines.len().saturating_sub(FRAMES);
    for line in lines.iter().take(if more == 1 { FRAMES + 1 } else { FRAMES }) {
        let _ = writeln!(text, "      in {line}");
    }
    if more > 1 {
        let _ = writeln!(text, "      and {more} more");
    }
}
