//! A cycle of a snapshot as threads of a finding: what each waits for, and what it holds of that
//! which the one before it wants.

use super::model::{
    HolderEvidence, JudgedCycle, LockHeld, LockHolder, Snapshot, SnapshotLock, ThreadWait,
    WaitTarget,
};
use crate::report::finding::{FindingHold, FindingThread, FindingWait, NamedLock};

impl Snapshot {
    /// Returns the members of a cycle, each waiting for the next one. A thread that is not there
    /// is left out.
    #[must_use]
    pub fn parties(&self, cycle: &JudgedCycle) -> Vec<FindingThread> {
        let before = cycle.threads.iter().cycle().skip(cycle.threads.len().saturating_sub(1));
        let members = before.zip(&cycle.threads);
        members.filter_map(|(&before, &tid)| self.member(before, tid)).collect()
    }

    fn member(&self, before: u32, tid: u32) -> Option<FindingThread> {
        let thread = self.thread(tid)?;
        let waits = thread.wait().map(|wait| FindingWait {
            stack: thread.stack.clone(),
            python: thread.python.clone(),
            ..self.finding_wait(wait)
        });
        let wanted = self.thread(before)?.wait().and_then(|wait| self.wanted(wait));
        let holds = wanted.and_then(|lock| Some(self.finding_hold(lock, holder(lock, tid)?)));
        let name = Some(thread.name.clone());
        Some(FindingThread { tid, name, waits, holds, ..FindingThread::default() })
    }

    fn wanted(&self, wait: &ThreadWait) -> Option<&SnapshotLock> {
        match wait.target {
            WaitTarget::Lock { address } => self.lock(address),
            WaitTarget::Join { .. } | WaitTarget::Unknown { .. } => None,
        }
    }

    fn finding_wait(&self, wait: &ThreadWait) -> FindingWait {
        let lock = self.wanted(wait);
        FindingWait {
            how: match (lock.map(|lock| lock.kind.as_str()), wait.shared) {
                (None, _) => "join",
                (Some(_), true) => "read",
                (Some("mutex"), false) => "mutex",
                (Some("spin lock"), false) => "spin",
                (Some("semaphore"), false) => "semaphore",
                (Some(kind), false) if is_for_readers(kind) => "write",
                (Some(_), false) => "futex",
            },
            lock: lock.map(named),
            thread: match wait.target {
                WaitTarget::Join { thread } => Some(thread),
                WaitTarget::Lock { .. } | WaitTarget::Unknown { .. } => None,
            },
            timed: wait.until.is_some(),
            waited_ns: wait.waited_ns,
            ..FindingWait::default()
        }
    }

    fn finding_hold(&self, lock: &SnapshotLock, holder: &LockHolder) -> FindingHold {
        let stack = holder.acquired.and_then(|at| self.stacks.get(at)).cloned();
        FindingHold {
            lock: named(lock),
            shared: holder.shared,
            by_word: holder.evidence == HolderEvidence::Word && stack.is_none(),
            evidence: holder.evidence,
            rests_on: holder.rests_on.clone(),
            held_ns: holder.held_ns.filter(|_| holder.exact),
            stack,
        }
    }
}

fn holder(lock: &SnapshotLock, tid: u32) -> Option<&LockHolder> {
    match &lock.held {
        LockHeld::By { holders } => holders.iter().find(|holder| holder.thread == tid),
        _ => None,
    }
}

/// Tells whether there are readers and writers of such a lock.
fn is_for_readers(kind: &str) -> bool {
    ["rwlock", "RwLock", "SharedMutex"].iter().any(|part| kind.contains(part))
}

/// Returns the names of a lock as reports of a run have them: of a variable the kind is said
/// behind its name.
fn named(lock: &SnapshotLock) -> NamedLock {
    const PLACES: &[&str] = &["at 0x", "in ", "on the stack", "from ", "first used", "used in"];
    let variable = lock.name.strip_prefix(&lock.kind).and_then(|rest| rest.strip_prefix(' '));
    let variable = variable.filter(|rest| !PLACES.iter().any(|place| rest.starts_with(place)));
    NamedLock {
        name: variable.unwrap_or(&lock.name).to_owned(),
        type_name: [lock.attributes.join(" "), lock.kind.clone()].join(" ").trim().to_owned(),
        address: lock.address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: &str, name: &str, attributes: &[&str]) -> String {
        let lock = SnapshotLock {
            address: 64,
            kind: kind.into(),
            attributes: attributes.iter().map(|&word| word.into()).collect(),
            name: name.into(),
            held: LockHeld::Never,
            waiting: Vec::new(),
            may_hold: Vec::new(),
        };
        named(&lock).text()
    }

    #[test]
    fn a_lock_has_the_name_that_other_reports_of_a_run_give_it() {
        assert_eq!(text("mutex", "mutex front", &[]), "front (mutex)");
        assert_eq!(text("mutex", "mutex front", &["recursive"]), "front (recursive mutex)");
        assert_eq!(text("mutex", "mutex at 0x40 (heap)", &[]), "mutex at 0x40 (heap)");
        assert_eq!(
            text("mutex", "mutex from f() at f.c:1, #2", &[]),
            "mutex from f() at f.c:1, #2"
        );
        assert_eq!(text("mutex", "mutex in bare+0x40", &[]), "mutex in bare+0x40");
        assert_eq!(
            text("Rust std::sync::Mutex", "Rust std::sync::Mutex a::VAULT", &[]),
            "a::VAULT (Rust std::sync::Mutex)"
        );
        assert_eq!(text("GIL", "the GIL", &[]), "the GIL");
    }
}
