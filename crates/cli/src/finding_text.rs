//! What the texts of all findings are made of: threads and stacks.

use lockstead_inspect::check::model::ThreadIdentity;
use lockstead_inspect::stack::{Frame, Stack, StackEnd};
use lockstead_inspect::symbols::program_frames;
use lockstead_render::words::{brief, clean};
use std::fmt::Write;

/// Names a thread: `thread "worker" (tid 13)`.
pub(crate) fn thread_text(name: Option<&str>, tid: u32) -> String {
    match name {
        Some(name) => format!("thread \"{}\" (tid {tid})", clean(name)),
        None if tid == 0 => "a thread".into(),
        None => format!("thread {tid}"),
    }
}

/// Returns what is said of a request that would have ended by itself.
pub(crate) fn limit(timed: bool) -> &'static str {
    if timed { ", until a deadline" } else { "" }
}

/// Names a thread: `thread "worker" (tid 13)`.
pub(crate) fn called(thread: &ThreadIdentity) -> String {
    thread_text(thread.name.as_deref(), thread.tid)
}

/// Adds a recorded stack, a line a frame.
pub(crate) fn stack_lines(text: &mut String, stack: Option<&Stack>, most: usize) {
    match stack {
        Some(stack) => frames(text, stack, most),
        None => text.push_str("      (its stack was not recorded)\n"),
    }
}

/// Adds the frames of the program, no more than `most`.
pub(crate) fn frames(text: &mut String, stack: &Stack, most: usize) {
    let shown = program_frames(stack);
    // One line for what is left out takes no less room than one frame.
    let most = if shown.len() > most { most - 1 } else { most };
    for frame in shown.iter().take(most) {
        line(text, frame);
    }
    if shown.len() > most {
        let _ = writeln!(text, "      ... {} more", shown.len() - most);
    } else if shown.is_empty() {
        text.push_str("      (no frame of the program)\n");
    } else if !matches!(stack.end, StackEnd::Bottom) {
        let _ = writeln!(text, "      ({})", stack.end);
    }
}

/// Adds one frame; it says so where the frame was looked for on the stack.
pub(crate) fn line(text: &mut String, frame: &Frame) {
    let probable = if frame.found { " (probable)" } else { "" };
    let _ = writeln!(text, "      {}{probable}", brief(&frame.site()));
}
