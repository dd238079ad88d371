//! Threads that wait for each other: found by the one that closes the cycle.
//!
//! # Protocol
//! A thread whose wait has no end says what it wants, and looks, in one step with
//! respect to all others that do so (the engine's mutex). So of the threads of a
//! cycle the last one sees all others.
//!
//! # Why what it sees is true
//! The looking thread holds what the thread before it in the cycle wants; that one
//! cannot have got it, so it has released nothing since it began to want, and so
//! on around the cycle. A want that has been granted by now belongs to no cycle.

use super::Finding;
use super::engine::{self, Engine};
use super::thread::{Held, Shared, Want};
use std::collections::HashSet;
use std::sync::Arc;

/// A thread of a cycle: it wants what the next one holds.
pub(super) struct Member {
    /// Who.
    pub(super) thread: Arc<Shared>,
    /// What.
    pub(super) want: Want,
    /// How the next one has it.
    pub(super) held: Held,
}

/// The calling thread begins to wait, as `publish` says; reports the cycle that
/// this closes.
pub(super) fn close(me: &Arc<Shared>, publish: impl FnOnce()) -> Vec<Finding> {
    engine::with(|engine| {
        publish();
        let mut seen = HashSet::from([me.id]);
        let mut path = Vec::new();
        if walk(engine, me, me, &mut seen, &mut path) { engine.deadlock(&path) } else { Vec::new() }
    })
}

/// Whether a way leads from what `from` wants back to `me`; then `path` has it.
fn walk(
    engine: &Engine,
    me: &Arc<Shared>,
    from: &Arc<Shared>,
    seen: &mut HashSet<u32>,
    path: &mut Vec<Member>,
) -> bool {
    let Some(want) = from.wants() else { return false };
    for thread in engine.threads() {
        // Readers do not wait for readers.
        let blocks = |held: &Held| held.number == want.number && !(held.shared && want.shared);
        let Some(held) = thread.held().into_iter().find(blocks) else { continue };
        path.push(Member { thread: from.clone(), want, held });
        if thread.id == me.id || seen.insert(thread.id) && walk(engine, me, thread, seen, path) {
            return true;
        }
        path.pop();
    }
    false
}
