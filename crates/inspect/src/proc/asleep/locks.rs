//! Locks of files: who waits for one, and who has it.
//!
//! # Role
//! `/proc/locks` has each lock with those that wait for it below it. It names the
//! process that *made* a lock. A record lock (`fcntl`) is that process's own; one
//! of `flock`, and of an open file description, belongs to whoever has that
//! description, which children inherit: `/proc/PID/fdinfo` shows who that is.

use super::descriptors::Descriptor;
use super::file_locks::{FileLock, FileLockKind, of_description};
use super::model::{Asleep, OtherProcess, WaitEnds, others};
use super::surroundings::{SleepSurroundings, field};
use crate::memory::ReadableMemory;
use crate::proc::task::SleepingCall;
use std::fs;

/// Returns the locks that those which wait as `waits` says wait for.
fn wanted(entries: &[FileLock], waits: impl Fn(&FileLock) -> bool) -> Vec<&FileLock> {
    let waiters = entries.iter().filter(|entry| entry.waits && waits(entry));
    let numbers: Vec<u64> = waiters.map(|entry| entry.number).collect();
    let is_wanted = |entry: &&FileLock| !entry.waits && numbers.contains(&entry.number);
    entries.iter().filter(is_wanted).collect()
}

/// What one thread asks for, as the list has it.
#[derive(Debug, Default, PartialEq, Eq)]
struct LockRequest {
    /// Device and inode of the file.
    file: Option<String>,
    /// Mode, start and end, where these are known.
    range: Option<[String; 3]>,
}

impl LockRequest {
    fn of(
        pid: u32,
        call: &SleepingCall,
        kind: FileLockKind,
        memory: &dyn ReadableMemory,
        info: &str,
    ) -> LockRequest {
        let field = |name| field(info, name);
        let file = || {
            let mount = field("mnt_id")?;
            let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).ok()?;
            let mut mounts = mounts.lines().map(str::split_ascii_whitespace);
            let mut mount = mounts.find_map(|mut m| (m.next() == Some(&mount)).then_some(m))?;
            let (major, minor) = mount.nth(1)?.split_once(':')?;
            let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
            Some(format!("{major:02x}:{minor:02x}:{}", field("ino")?))
        };
        let range =
            if kind == FileLockKind::Flock { None } else { asked(call.arguments[2], memory) };
        LockRequest { file: file(), range }
    }

    /// Returns whether a lock fits the request; what is not known of the request agrees with
    /// anything.
    fn is(&self, entry: &FileLock) -> bool {
        self.file.as_ref().is_none_or(|file| *file == entry.words[3])
            && self.range.as_ref().is_none_or(|[mode, start, end]| {
                [&entry.words[2], &entry.words[4], &entry.words[5]] == [mode, start, end]
            })
    }
}

/// Returns mode and range of a `struct flock`, if it counts from the beginning of the file.
fn asked(at: u64, memory: &dyn ReadableMemory) -> Option<[String; 3]> {
    let kinds = memory.read_u64(at)?;
    let (start, length) = (memory.read_u64(at + 8)? as i64, memory.read_u64(at + 16)? as i64);
    let mode = match i32::from(kinds as i16) {
        libc::F_RDLCK => "READ",
        libc::F_WRLCK => "WRITE",
        _ => return None,
    };
    if (kinds >> 16) as i16 != libc::SEEK_SET as i16 {
        return None;
    }
    // A negative length is one before the start.
    let (first, last) = match length {
        0 => (start, i64::MAX),
        1.. => (start, start.checked_add(length - 1)?),
        _ => (start.checked_add(length)?, start - 1),
    };
    let last = if last == i64::MAX { "EOF".to_owned() } else { last.to_string() };
    Some([mode.to_owned(), first.to_string(), last])
}

/// Returns what a thread waits for that asks for a lock of this kind.
pub(super) fn wait(
    pid: u32,
    call: &SleepingCall,
    kind: FileLockKind,
    memory: &dyn ReadableMemory,
    around: &SleepSurroundings,
) -> Asleep {
    let number = call.arguments[0];
    let descriptor = Descriptor::of(pid, number);
    let what = format!("the lock of {} ({})", descriptor.text(), kind.call());
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number as i32));
    let info = info.unwrap_or_default();
    let request = LockRequest::of(pid, call, kind, memory, &info);
    // Who waits for a lock of a description is listed without a number.
    let asks = |entry: &FileLock| {
        entry.is(kind)
            && request.is(entry)
            && (entry.pid == i64::from(pid) || kind == FileLockKind::Description)
    };
    let locks = wanted(around.locks(), asks);
    let mut processes = match kind {
        FileLockKind::Record => makers(&locks),
        FileLockKind::Flock | FileLockKind::Description => having(&locks, around),
    };
    // Two that read, and both want to write, have locks that are listed alike: but none waits for
    // its own.
    let has_alike = |held: &FileLock| locks.iter().any(|lock| lock.is_same(held));
    if processes.len() > 1 && of_description(&info).iter().any(has_alike) {
        processes.retain(|other| other.pid != pid);
    }
    Asleep::on(what, WaitEnds::Holders { processes })
}

/// Returns the processes that made these locks.
fn makers(locks: &[&FileLock]) -> Vec<OtherProcess> {
    others(locks.iter().filter_map(|lock| u32::try_from(lock.pid).ok().filter(|&pid| pid != 0)))
}

/// Returns the processes that have the open files which these locks are of.
fn having(locks: &[&FileLock], around: &SleepSurroundings) -> Vec<OtherProcess> {
    if locks.is_empty() {
        return Vec::new();
    }
    let has = |held: &FileLock| locks.iter().any(|lock| lock.is_same(held));
    let mut found =
        others(around.holders().iter().filter(|(_, held)| has(held)).map(|&(pid, _)| pid));
    if found.is_empty() {
        // They may be another user's, or nobody's any more.
        found = makers(locks);
        let why = "made the lock; who has the open file now cannot be seen";
        found.iter_mut().for_each(|other| other.why = Some(why.into()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::file_locks::entries;
    use super::*;
    use crate::memory::SavedMemory;

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
        let list: Vec<FileLock> = entries(LIST).collect();
        let of = |kind: FileLockKind, pid| -> Vec<i64> {
            let found = wanted(&list, |entry| entry.is(kind) && entry.pid == pid);
            found.iter().map(|entry| entry.pid).collect()
        };
        assert_eq!(of(FileLockKind::Flock, 901), [900]);
        assert_eq!(of(FileLockKind::Record, 901), [903]);
        assert_eq!(of(FileLockKind::Record, 902), [0; 0]);
        let entry =
            FileLock::parse("1: FLOCK  ADVISORY  WRITE 900 fe:00:77 0 EOF").expect("a lock");
        assert!(!entry.waits);
    }

    #[test]
    fn of_many_waiters_each_has_its_own_range_and_file() {
        let asks = |mode: i32, whence: i32, start: i64, length: i64| {
            let kinds = u64::from(mode as u16) | u64::from(whence as u16) << 16;
            let words = [kinds, start.cast_unsigned(), length.cast_unsigned()];
            let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            asked(64, &SavedMemory::new(64, bytes)).map(|range| range.join(" "))
        };
        assert_eq!(asks(libc::F_WRLCK, libc::SEEK_SET, 5, 1).as_deref(), Some("WRITE 5 5"));
        assert_eq!(asks(libc::F_RDLCK, libc::SEEK_SET, 0, 0).as_deref(), Some("READ 0 EOF"));
        assert_eq!(asks(libc::F_WRLCK, libc::SEEK_SET, 10, -4).as_deref(), Some("WRITE 6 9"));
        assert_eq!(asks(libc::F_WRLCK, libc::SEEK_END, 0, 1), None);
        let waiter =
            &entries(LIST).find(|entry| entry.waits && entry.is(FileLockKind::Record)).expect("it");
        let request = |file: &str, range: Option<[&str; 3]>| LockRequest {
            file: Some(file.into()),
            range: range.map(|range| range.map(str::to_owned)),
        };
        assert!(request("fe:00:78", Some(["WRITE", "5", "5"])).is(waiter));
        assert!(request("fe:00:78", None).is(waiter));
        assert!(!request("fe:00:78", Some(["WRITE", "6", "6"])).is(waiter));
        assert!(!request("fe:01:78", Some(["WRITE", "5", "5"])).is(waiter));
    }
}
