//! The holders, and what they hold.
//!
//! # Role
//! Memory shows of the held locks only those that others wait for, and these
//! are named where those wait: of the holders one line is said. A ledger has
//! every held lock: each has a line with its time and place.

use super::text::{DumpText, HEAD, does, lasting, title};
use lockstead_inspect::snapshot::model::{LockHeld, LockHolder, SnapshotLock, SnapshotSource};
use lockstead_inspect::symbols::site;
use std::collections::{BTreeMap, BTreeSet};

/// What each thread holds, by the threads' ids.
type Holdings<'a> = BTreeMap<u32, Vec<(&'a SnapshotLock, &'a LockHolder)>>;

impl DumpText<'_> {
    /// Adds threads that hold locks; from memory, those that do not wait.
    pub(super) fn holders(&mut self, shown: &mut BTreeSet<u32>) {
        let found = self.found;
        let mut holdings = Holdings::new();
        for lock in &found.locks {
            let LockHeld::By { holders } = &lock.held else { continue };
            for holder in holders {
                holdings.entry(holder.thread).or_default().push((lock, holder));
            }
        }
        let recorded = found.source == SnapshotSource::Ledger;
        if !recorded {
            holdings.retain(|tid, _| !shown.contains(tid));
        }
        if holdings.is_empty() {
            return;
        }
        shown.extend(holdings.keys());
        self.out += "\n";
        self.line(0, &format!("{HEAD}holding{HEAD:#}"));
        let places: Vec<Option<String>> = found.stacks.iter().map(place).collect();
        for (tid, held) in holdings {
            let who = self.named(tid);
            let thread = found.thread(tid);
            if !recorded {
                let names: Vec<String> = held.iter().map(|(lock, _)| title(lock)).collect();
                let what = thread.map(does).unwrap_or_default();
                self.line(2, &format!("{who} holds {} and {what}", names.join(", ")));
            } else {
                let what = match thread {
                    Some(thread) if thread.wait().is_some() => "waits, as above".into(),
                    Some(thread) => does(thread),
                    None => "has ended".into(),
                };
                self.line(2, &format!("{who} {what}, and holds"));
                for (lock, holder) in held {
                    let how = if holder.shared { " to read" } else { "" };
                    let at = holder.acquired.and_then(|at| places.get(at)?.as_deref());
                    let taken = at.map(|at| format!(", taken in {at}")).unwrap_or_default();
                    let (name, time) = (title(lock), lasting(holder));
                    self.line(4, &format!("{name}{how}{time}{taken}"));
                }
            }
            if let Some(thread) = thread.filter(|thread| thread.wait().is_none()) {
                self.stack(thread);
            }
        }
    }
}

fn place(stack: &lockstead_inspect::stack::Stack) -> Option<String> {
    site(stack).map(|frame| lockstead_render::words::clean(&frame.site()))
}
