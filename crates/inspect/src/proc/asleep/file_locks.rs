//! The lists of file locks that the kernel shows.

/// The kind of a lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileLockKind {
    Flock,
    Record,
    Description,
}

impl FileLockKind {
    /// Returns the word that `/proc/locks` has for this kind.
    pub(super) fn word(self) -> &'static str {
        match self {
            FileLockKind::Flock => "FLOCK",
            FileLockKind::Record => "POSIX",
            FileLockKind::Description => "OFDLCK",
        }
    }

    pub(super) fn call(self) -> &'static str {
        match self {
            FileLockKind::Flock => "flock",
            FileLockKind::Record => "fcntl, of a range",
            FileLockKind::Description => "fcntl, of an open file description",
        }
    }
}

/// A lock of a file, or a wait for one: a line of `/proc/locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileLock {
    /// Which lock, or for which one it waits.
    pub(super) number: u64,
    pub(super) waits: bool,
    /// FileLockKind, mode, device with inode, range: what is the same wherever a lock is listed.
    pub(super) words: Vec<String>,
    /// The process that made it; -1 for a lock of an open file description.
    pub(super) pid: i64,
}

impl FileLock {
    pub(super) fn parse(line: &str) -> Option<FileLock> {
        let mut words = line.split_whitespace().peekable();
        let number = words.next()?.strip_suffix(':')?.parse().ok()?;
        let waits = words.next_if_eq(&"->").is_some();
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        if words.len() < 7 {
            return None;
        }
        let pid = words.remove(3).parse().ok()?;
        Some(FileLock { number, waits, words, pid })
    }

    pub(super) fn is(&self, kind: FileLockKind) -> bool {
        self.words[0] == kind.word()
    }

    /// Returns whether this is the same lock, in another list.
    pub(super) fn is_same(&self, other: &FileLock) -> bool {
        (&self.words, self.pid) == (&other.words, other.pid)
    }
}

/// Returns the lines of a list.
pub(super) fn entries(list: &str) -> impl Iterator<Item = FileLock> + '_ {
    list.lines().filter_map(FileLock::parse)
}

/// Returns the locks that what the kernel tells of a descriptor has.
pub(super) fn of_description(info: &str) -> Vec<FileLock> {
    let lines = info.lines().filter_map(|line| line.strip_prefix("lock:"));
    lines.filter_map(FileLock::parse).filter(|entry| !entry.waits).collect()
}
