//! Locks of files: who waits for one, and who has it.
//!
//! # Role
//! `/proc/locks` has each lock with those that wait for it below it. It names the
//! process that *made* a lock. A record lock (`fcntl`) is that process's own; one
//! of `flock`, and of an open file description, belongs to whoever has that
//! description, which children inherit: `/proc/PID/fdinfo` shows who that is.

use super::descriptors::Descriptor;
use super::{Asleep, Ends, Other, others, processes};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Which kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Flock,
    Record,
    Description,
}

impl Kind {
    /// As the kernel's lists have it.
    fn word(self) -> &'static str {
        match self {
            Kind::Flock => "FLOCK",
            Kind::Record => "POSIX",
            Kind::Description => "OFDLCK",
        }
    }

    fn call(self) -> &'static str {
        match self {
            Kind::Flock => "flock",
            Kind::Record => "fcntl, of a range",
            Kind::Description => "fcntl, of an open file description",
        }
    }
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Which lock, or for which one it waits.
    number: u64,
    waits: bool,
    /// Kind, mode, device with inode, range: what is the same wherever a lock is listed.
    words: Vec<String>,
    /// The process that made it; -1 for a lock of an open file description.
    pid: i64,
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split_whitespace().peekable();
        let number = words.next()?.strip_suffix(':')?.parse().ok()?;
        let waits = words.next_if_eq(&"->").is_some();
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        if words.len() < 7 {
            return None;
        }
        let pid = words.remove(3).parse().ok()?;
        Some(Entry { number, waits, words, pid })
    }

    fn is(&self, kind: Kind) -> bool {
        self.words[0] == kind.word()
    }

    fn inode(&self) -> Option<u64> {
        self.words[3].rsplit(':').next()?.parse().ok()
    }
}

/// The locks that those which wait as `waits` says wait for.
fn wanted(list: &str, kind: Kind, waits: impl Fn(&Entry) -> bool) -> Vec<Entry> {
    let entries: Vec<Entry> = list.lines().filter_map(Entry::parse).collect();
    let waiters = entries.iter().filter(|entry| entry.waits && entry.is(kind) && waits(entry));
    let numbers: Vec<u64> = waiters.map(|entry| entry.number).collect();
    let is_wanted = |entry: &&Entry| !entry.waits && numbers.contains(&entry.number);
    entries.iter().filter(is_wanted).cloned().collect()
}

/// What a thread waits for that asks for a lock of this kind.
pub(super) fn wait(pid: u32, descriptor: u64, kind: Kind) -> Asleep {
    let descriptor = Descriptor::of(pid, descriptor);
    let what = format!("the lock of {} ({})", descriptor.text(), kind.call());
    let inode = fs::metadata(descriptor.path()).map(|file| file.ino()).ok();
    let list = fs::read_to_string("/proc/locks").unwrap_or_default();
    // Who waits for a lock of a description is listed without a number.
    let asks = |entry: &Entry| {
        entry.inode() == inode && (entry.pid == i64::from(pid) || kind == Kind::Description)
    };
    let locks = wanted(&list, kind, asks);
    let processes = match kind {
        Kind::Record => {
            others(locks.iter().filter_map(|lock| u32::try_from(lock.pid).ok().filter(|&p| p != 0)))
        }
        Kind::Flock | Kind::Description => having(&locks),
    };
    Asleep::on(what, Ends::Holders { processes })
}

/// The processes that have the open files which these locks are of.
fn having(locks: &[Entry]) -> Vec<Other> {
    if locks.is_empty() {
        return Vec::new();
    }
    let mut found =
        others(processes().unwrap_or_default().into_iter().filter(|&pid| has(pid, locks)));
    if found.is_empty() {
        // They may be another user's, or nobody's any more.
        let made = locks.iter().filter_map(|lock| u32::try_from(lock.pid).ok().filter(|&p| p != 0));
        found = others(made);
        let why = "made the lock; who has the open file now cannot be seen";
        found.iter_mut().for_each(|other| other.why = Some(why.into()));
    }
    found
}

fn has(pid: u32, locks: &[Entry]) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    let mut texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    texts.any(|text| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("lock:"));
        let mut held = lines.filter_map(Entry::parse).filter(|entry| !entry.waits);
        held.any(|held| locks.iter().any(|lock| lock.words == held.words && lock.pid == held.pid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
1: FLOCK  ADVISORY  WRITE 900 fe:00:77 0 EOF
1: -> FLOCK  ADVISORY  WRITE 901 fe:00:77 0 EOF
2: POSIX  ADVISORY  READ 902 fe:00:77 0 9
3: POSIX  ADVISORY  WRITE 903 fe:00:78 0 EOF
3: -> POSIX  ADVISORY  WRITE 901 fe:00:78 5 5
nonsense
4: LEASE
";

    #[test]
    fn a_waiter_stands_below_its_lock() {
        let of = |kind, pid| -> Vec<i64> {
            let found = wanted(LIST, kind, |entry| entry.pid == pid);
            found.iter().map(|entry| entry.pid).collect()
        };
        assert_eq!(of(Kind::Flock, 901), [900]);
        assert_eq!(of(Kind::Record, 901), [903]);
        assert_eq!(of(Kind::Record, 902), [0; 0]);
        let entry = Entry::parse("1: FLOCK  ADVISORY  WRITE 900 fe:00:77 0 EOF").expect("a lock");
        assert_eq!((entry.inode(), entry.waits), (Some(77), false));
    }
}
