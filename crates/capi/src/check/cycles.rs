//! Threads that wait for each other: found by the one that closes the cycle.
//!
//! # Why what is found is true
//! A hold is noted after the lock was acquired and taken off before it is released, and
//! a thread says what it wants in one step with looking. So each thread of a cycle but
//! the looking one has said so before, holds what is noted of it, and waits without
//! end; the last one to come sees all of them.
//!
//! A wait in a context is no part of a cycle: the context may be told to back off.

use super::report::{self, Place};
use super::table::{Held, Table};
use super::with;

/// What a thread waits for without end.
#[derive(Clone, Debug)]
pub(super) struct Want {
    hold: (usize, bool, u32),
    at: Place,
}

impl Want {
    pub(super) fn thread(&self) -> u32 {
        self.hold.2
    }
}

/// The calling thread begins to wait: says so, and reports the cycle that this closes.
pub(super) fn close(hold: (usize, bool, u32), at: &Place) {
    let text = with(|table| {
        table.wants_nothing(hold.2);
        let want = Want { hold, at: at.clone() };
        table.wants.push(want.clone());
        let mut path = Vec::new();
        let mut seen = vec![hold.2];
        walk(table, hold.2, &want, &mut seen, &mut path).then(|| tell(table, &path))
    });
    if let Some(text) = text.flatten() {
        report::deadlock(&text);
    }
}

/// Whether a way leads from what is wanted back to `me`; then `path` has it.
fn walk(
    table: &Table,
    me: u32,
    want: &Want,
    seen: &mut Vec<u32>,
    path: &mut Vec<(Want, Held)>,
) -> bool {
    let (address, reads, _) = want.hold;
    // Readers do not wait for readers.
    let blocks = |held: &&Held| held.address == address && !(held.reads && reads);
    for held in table.held().iter().filter(blocks) {
        path.push((want.clone(), held.clone()));
        if held.thread == me {
            return true;
        }
        let next = table.wants.iter().find(|want| want.thread() == held.thread);
        if let Some(next) = next
            && !seen.contains(&held.thread)
        {
            seen.push(held.thread);
            if walk(table, me, next, seen, path) {
                return true;
            }
        }
        path.pop();
    }
    false
}

fn tell(table: &Table, path: &[(Want, Held)]) -> String {
    let mut text = match path.len() {
        1 => "1 thread waits for itself\n".to_owned(),
        count => format!("{count} threads wait for each other\n"),
    };
    for (want, held) in path {
        text += &format!(
            "  thread {} waits for the {}\n    at {}\n  which thread {} holds\n    since {}\n",
            want.thread(),
            table.name(held.address),
            want.at,
            held.thread,
            held.at
        );
    }
    text
}
