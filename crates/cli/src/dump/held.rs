//! The holders, and what they hold.
//!
//! # Role
//! Memory shows of the held locks only those that others wait for, and these
//! are named where those wait, with what shows it; of the holders one line is
//! said. A ledger has every held lock: each has a line with its time and place.

use super::text::{DumpText, HEAD, LISTED, count, does, lasting, title};
use lockstead_inspect::snapshot::model::{
    HolderEvidence, LockHeld, LockHolder, SnapshotLock, SnapshotSource,
};
use lockstead_inspect::symbols::site;
use lockstead_render::words::{brief, clean};
use std::collections::{BTreeMap, BTreeSet};

/// What each thread holds, by the threads' ids.
type Holdings<'a> = BTreeMap<u32, Vec<(&'a SnapshotLock, &'a LockHolder)>>;

impl DumpText<'_> {
    /// Adds who holds a lock, and what that thread does now.
    pub(super) fn held(&mut self, lock: &SnapshotLock) {
        match &lock.held {
            LockHeld::By { holders } => {
                let listed = if self.everything { holders.len() } else { LISTED };
                for holder in holders.iter().take(listed) {
                    let name = self.named(holder.thread);
                    let how = if holder.shared { " to read" } else { "" };
                    let now = match self.found.thread(holder.thread) {
                        Some(thread) if thread.wait().is_none() => {
                            format!(", which {}", does(thread))
                        }
                        _ => String::new(),
                    };
                    let time = lasting(holder);
                    let held = match holder.evidence {
                        HolderEvidence::Likely if is_semaphore(lock) => "would be released",
                        HolderEvidence::Likely => "likely held",
                        _ => "held",
                    };
                    self.line(4, &format!("{held}{how} by {name}{time}{now}"));
                    if let Some(rests_on) = &holder.rests_on {
                        let evidence = holder.evidence.word();
                        self.line(6, &format!("{evidence}: {}", clean(rests_on)));
                    }
                    self.taken(holder.acquired);
                }
                if holders.len() > listed {
                    let more = holders.len() - listed;
                    self.line(4, &format!("and {more} more (--all lists them)"));
                }
            }
            LockHeld::Readers { count: readers } => {
                let text = count(*readers as usize, "reader");
                self.line(4, &format!("held by {text}; who they are is not in the lock"));
            }
            LockHeld::Elsewhere { owner, why, acquired } => {
                self.line(4, &format!("held by {owner}: {why}"));
                self.taken(*acquired);
            }
            LockHeld::Unknown { why } => self.line(4, why),
            LockHeld::Never => {}
        }
        if !lock.may_hold.is_empty() {
            let who = self.who(&lock.may_hold);
            let why = if lock.kind.starts_with("threading.") {
                "a function that it is in may have acquired it, and may have given it back"
            } else {
                "its address is on the stack there"
            };
            self.line(4, &format!("may be held by {who}: {why}"));
        }
    }

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
                let semaphores = held.iter().all(|(lock, _)| is_semaphore(lock));
                let holds = if semaphores { "would release" } else { "holds" };
                self.line(2, &format!("{who} {holds} {} and {what}", names.join(", ")));
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

/// Tells whether units of it are put back by whoever will, and not only by who took them.
fn is_semaphore(lock: &SnapshotLock) -> bool {
    lock.kind.contains("semaphore")
}

fn place(stack: &lockstead_inspect::stack::Stack) -> Option<String> {
    site(stack).map(|frame| brief(&frame.site()))
}
