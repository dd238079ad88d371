//! Why a thread is not let into a segment, or does not get out of it, and what to do then.

/// The reason for which a thread did not become a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// No segment is attached there.
    Foreign,
    /// All slots are taken by living participants.
    Full,
    /// No slot is free but such as have seen 16,384 deaths, which is the end of them.
    WornOut,
    /// The thread is a member of 56 segments.
    TooManySegments,
    /// The kernel, or a filter, refuses memory that forked children find empty or not at all
    /// (`MADV_WIPEONFORK`, `MADV_DONTFORK`; its error).
    NoMemory(i32),
    /// The kernel, or a filter, refuses the calls for robust lists.
    NoRobustList,
    /// The libc's list is not of a known kind; how far its words are from its nodes.
    UnknownList(isize),
    /// An exclusive segment, and the thread holds robust mutexes of the libc, or is a
    /// member of a segment that is not exclusive.
    ListInUse,
    /// The thread holds 2,000 robust mutexes of the libc or more.
    ListTooLong,
    /// The process could not open the segment's file anew, which it needs to be known by a
    /// lock on it (the system's error).
    NoDescription(i32),
    /// The file system forgets record locks of a file that is only mapped any more, as overlay
    /// file systems do: it would take the process for dead.
    ForgetfulFileSystem,
    /// Somebody has locked the segment's file, beyond its end, for writing.
    FileLocked,
    /// The system, or a filter, refuses record locks (its error).
    NoRecordLocks(i32),
    /// All numbers of processes are in use.
    TooManyProcesses,
}

impl core::fmt::Display for JoinError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = match self {
            JoinError::Foreign => "no segment is attached at this address",
            JoinError::Full => {
                "all records of the segment are taken: end a thread that uses it, or make the \
                 segment with more of them"
            }
            JoinError::WornOut => {
                "all free records of the segment are worn out by deaths, and cannot be made usable \
                 again: its directory does not tell where all locks are, or who is about to do it \
                 is stopped. End a thread that uses the segment, or make it anew with more records"
            }
            JoinError::TooManySegments => "the thread is a member of 56 segments: leave one first",
            JoinError::NoMemory(error) => {
                let way_out = match *error {
                    libc::ENOMEM => "let the process have more memory, or more mappings",
                    libc::EINVAL => "use Linux 4.14 or later",
                    _ => "allow mmap, and madvise with MADV_WIPEONFORK and MADV_DONTFORK",
                };
                return write!(
                    f,
                    "the system, or a filter of system calls, refuses memory that a forked child \
                     finds empty: {}; {way_out}",
                    std::io::Error::from_raw_os_error(*error)
                );
            }
            JoinError::NoRobustList => {
                "the kernel, or a filter of system calls, refuses robust lists: \
                 allow get_robust_list and set_robust_list"
            }
            JoinError::UnknownList(offset) => {
                return write!(
                    f,
                    "the libc's robust list is of an unknown kind (offset {offset}; those of glibc \
                     and musl are known): make the segment exclusive, and use it on threads that \
                     have no robust mutexes of the libc"
                );
            }
            JoinError::ListInUse => {
                "the segment is exclusive, and the thread holds robust mutexes of the libc or uses \
                 another segment that is not: use a thread of its own for it"
            }
            JoinError::ListTooLong => {
                "the thread holds 2,000 robust mutexes of the libc: release some first"
            }
            JoinError::NoDescription(error) => {
                let way_out = match *error {
                    libc::EMFILE | libc::ENFILE => "close some, or raise the limit of open files",
                    libc::EACCES | libc::EPERM => {
                        "let the process's user read and write it, or open the segment before \
                         giving up the right to"
                    }
                    libc::EDEADLK => "do not join from handlers of fork",
                    libc::ESTALE => {
                        "its path or its descriptor is another file's by now: leave them as they \
                         were, and mount /proc"
                    }
                    _ => {
                        "open the segment by its path, or mount /proc and leave the segment's \
                         descriptor open"
                    }
                };
                return write!(
                    f,
                    "the process cannot open the segment's file anew, and without that nobody \
                     would be sure to learn of its end: {}; {way_out}",
                    std::io::Error::from_raw_os_error(*error)
                );
            }
            JoinError::ForgetfulFileSystem => {
                "the segment's file is on a file system that forgets record locks of files that \
                 are mapped (overlay file systems do, on which containers have their files): \
                 everybody would take the process for dead. Put the segment into memory (memfd), \
                 into /dev/shm, or on a volume"
            }
            JoinError::FileLocked => {
                "another program has locked the segment's file for writing, to beyond its end, \
                 where participants are known by locks: have it lock no more than the file, or \
                 use flock"
            }
            JoinError::NoRecordLocks(error) => {
                return write!(
                    f,
                    "the system, or a filter of system calls, refuses record locks on the \
                     segment's file ({}), and without them nobody would be sure to learn of the \
                     process's end: allow fcntl with F_OFD_SETLK and F_OFD_GETLK",
                    std::io::Error::from_raw_os_error(*error)
                );
            }
            JoinError::TooManyProcesses => {
                "131,071 processes use the segment: end some, or make another segment"
            }
        };
        f.write_str(text)
    }
}

impl core::error::Error for JoinError {}

/// The reason for which a slot was not given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// The thread holds a lock, shares one, or has units of a semaphore there.
    Holds,
    /// It was interrupted in the middle of a lock operation.
    Waits,
    /// So many threads of this process are members, or have ended while they held
    /// something there.
    Threads(u32),
    /// The kernel refused to change the robust list, or the slot stands too far behind
    /// mutexes of the libc there.
    Refused,
}

impl core::fmt::Display for Busy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Busy::Holds => f.write_str("the thread holds locks there"),
            Busy::Waits => f.write_str("the thread waits for a lock"),
            Busy::Threads(count) => write!(f, "{count} other threads are members"),
            Busy::Refused => f.write_str(
                "the robust list cannot be changed: the kernel refuses that, or the thread holds \
                 2,000 robust mutexes of the libc",
            ),
        }
    }
}

impl core::error::Error for Busy {}
