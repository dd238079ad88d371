//! What a program says of itself before it hangs.

use std::collections::{BTreeMap, BTreeSet};

/// The facts that a program printed, one a line.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The addresses and sizes of the locks, by name.
    pub locks: BTreeMap<String, (u64, u64)>,
    /// The threads that hold a lock, by the name of the lock.
    pub owners: BTreeMap<String, BTreeSet<String>>,
    /// The threads that took a lock, and lost what would give it back, by the name of the lock.
    pub leaks: BTreeMap<String, BTreeSet<String>>,
    /// The locks of which each owner can end the wait of another thread, as of a semaphore with
    /// several units; of other locks all owners together do.
    pub any: BTreeSet<String>,
    /// The locks that threads wait for, by the name of the thread.
    pub waits: BTreeMap<String, String>,
    /// The one thread among the owners behind which another thread waits, by the name of that one.
    pub behind: BTreeMap<String, String>,
    /// The threads whose ends others wait for, by the name of the waiting one.
    pub joins: BTreeMap<String, String>,
    /// The ids of threads whose names the kernel does not know.
    pub ids: BTreeMap<String, u32>,
}

impl Truth {
    /// Takes note of one line that a program printed.
    ///
    /// # Errors
    /// If the line is none of those that the programs print.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let unknown = || format!("not a line of a program: {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let radix = if digits.len() == text.len() { 10 } else { 16 };
            u64::from_str_radix(digits, radix).map_err(|_| unknown())
        };
        match words[..] {
            ["LOCK", name, address, size] => {
                self.locks.insert(name.into(), (number(address)?, number(size)?));
            }
            ["OWN", lock, thread] => {
                self.owners.entry(lock.into()).or_default().insert(thread.into());
            }
            ["LEAK", lock, thread] => {
                self.leaks.entry(lock.into()).or_default().insert(thread.into());
            }
            ["ANY", lock] => {
                self.any.insert(lock.into());
            }
            ["WAIT", thread, lock] => {
                self.waits.insert(thread.into(), lock.into());
            }
            ["BEHIND", thread, other] => {
                self.behind.insert(thread.into(), other.into());
            }
            ["JOIN", thread, ending] => {
                self.joins.insert(thread.into(), ending.into());
            }
            ["THREAD", name, id] => {
                let id = u32::try_from(number(id)?).map_err(|_| unknown())?;
                self.ids.insert(name.into(), id);
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// Returns the names of all threads that a fact is about.
    #[must_use]
    pub fn threads(&self) -> BTreeSet<&str> {
        let holding = self.owners.values().chain(self.leaks.values()).flatten();
        let waiting = self.waits.keys().chain(self.joins.keys()).chain(self.joins.values());
        holding.chain(waiting).map(String::as_str).collect()
    }

    /// Returns the threads without which the wait of `thread` cannot end; `lost` says whether those
    /// that lost a guard count as owners.
    fn awaited<'a>(&'a self, thread: &str, lost: bool) -> Vec<&'a str> {
        if let Some(other) = self.behind.get(thread) {
            return vec![other];
        }
        let lock = self.waits.get(thread);
        let owners = lock.and_then(|lock| self.owners.get(lock));
        let leaks = lock.filter(|_| lost).and_then(|lock| self.leaks.get(lock));
        let joined = self.joins.get(thread);
        let is_any = lock.is_some_and(|lock| self.any.contains(lock));
        let count = owners.iter().chain(&leaks).map(|some| some.len()).sum::<usize>();
        let owners = owners.into_iter().chain(leaks).filter(|_| !is_any || count < 2).flatten();
        owners.chain(joined).map(String::as_str).collect()
    }

    /// Returns the threads that wait for each other in a cycle; `lost` says whether those that lost
    /// a guard count as owners: what they took is held, and no frame of theirs shows it.
    #[must_use]
    pub fn deadlocked(&self, lost: bool) -> BTreeSet<&str> {
        let in_cycle = |start: &&str| {
            let mut open = self.awaited(start, lost);
            let mut seen = BTreeSet::new();
            while let Some(thread) = open.pop() {
                if thread == *start {
                    return true;
                }
                if seen.insert(thread) {
                    open.extend(self.awaited(thread, lost));
                }
            }
            false
        };
        self.threads().into_iter().filter(in_cycle).collect()
    }
}
