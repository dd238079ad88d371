//! Whether a process can be looked at, and what it is.

use super::shown::shown_as;
use super::status::StatusFile;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// `PF_KTHREAD` of the flags in `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Why there is nothing to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// No process or thread has this number.
    Absent,
    /// A thread of the kernel: it has no memory of its own.
    Kernel {
        /// The name that it has.
        name: String,
    },
    /// It has ended, and its parent has not asked for its status.
    Zombie {
        /// The name that it has.
        name: String,
        /// The process that started it.
        parent: u64,
    },
    /// Its addresses have 32 bits, and so its locks another layout.
    Narrow {
        /// The name that it has.
        name: String,
    },
    /// It ended while it was looked at.
    Ended,
    /// The system's answer, where it is none of these.
    System(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Absent => write!(f, "there is no such process"),
            Unusable::Kernel { name } => {
                write!(f, "it is a thread of the kernel ({name}), which has no locks of a program")
            }
            Unusable::Zombie { name, parent } => write!(
                f,
                "it ({name}) has ended and only waits for its parent, process {parent}, to notice"
            ),
            Unusable::Narrow { name } => write!(
                f,
                "it ({name}) is a 32-bit program; the locks of 64-bit programs alone are understood"
            ),
            Unusable::Ended => write!(f, "it ended while it was looked at"),
            Unusable::System(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Unusable {}

/// A process that exists and has memory.
#[derive(Clone, Debug)]
pub struct LiveProcess {
    /// Its number where the command runs.
    pub pid: u32,
    /// The number that was asked for, where that is one of its threads.
    pub asked: u32,
    /// The first thread's name.
    pub name: String,
    /// Command line, empty where it has none.
    pub command: Vec<String>,
    /// What the kernel says of it.
    pub status: StatusFile,
}

impl LiveProcess {
    /// Returns the process that the number belongs to: itself, or one of its threads.
    ///
    /// # Errors
    /// Why it cannot be looked at.
    pub fn open(number: u32) -> Result<LiveProcess, Unusable> {
        let absent = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Unusable::Absent,
            _ if error.raw_os_error() == Some(libc::ESRCH) => Unusable::Absent,
            _ => Unusable::System(format!("/proc/{number}: {error}")),
        };
        let asked = StatusFile::read(&format!("/proc/{number}/status")).map_err(absent)?;
        let pid = asked.number("Tgid").and_then(|pid| pid.try_into().ok()).unwrap_or(number);
        let status = if pid == number {
            asked
        } else {
            StatusFile::read(&format!("/proc/{pid}/status")).map_err(absent)?
        };
        let name = status.text("Name").unwrap_or_default().to_owned();
        let stat = std::fs::read(format!("/proc/{pid}/stat")).map_err(absent)?;
        if flags(&String::from_utf8_lossy(&stat)).is_some_and(|f| f & KERNEL_THREAD != 0) {
            return Err(Unusable::Kernel { name });
        }
        // The first thread of a process may have ended before the others.
        let ended = status.text("State").is_some_and(|state| state.starts_with(['Z', 'X']));
        if ended && super::task::numbers(pid).is_ok_and(|all| all.len() < 2) {
            return Err(Unusable::Zombie { name, parent: status.number("PPid").unwrap_or(0) });
        }
        if is_narrow(pid) == Some(true) {
            return Err(Unusable::Narrow { name });
        }
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = command
            .split(|&byte| byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        Ok(LiveProcess { pid, asked: number, name, command, status })
    }
}

/// Tells whether the program has 32-bit addresses; `None` where it cannot be read.
fn is_narrow(pid: u32) -> Option<bool> {
    let mut head = [0; 5];
    File::open(format!("/proc/{}/exe", shown_as(pid))).ok()?.read_exact(&mut head).ok()?;
    head.starts_with(b"\x7fELF").then_some(head[4] == 1)
}

/// Returns the flags in a file `stat`, the seventh field after the name.
fn flags(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_follow_the_name() {
        assert_eq!(flags("2 (k) thr) S 0 0 0 0 -1 2129984 0 0"), Some(2_129_984));
        assert_eq!(flags("2"), None);
    }

    #[test]
    fn this_process_can_be_looked_at_by_any_of_its_threads() {
        // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
        let tid = unsafe { libc::gettid() } as u32;
        let process = LiveProcess::open(tid).expect("one's own");
        assert_eq!((process.pid, process.asked), (std::process::id(), tid));
        assert!(!process.command.is_empty());
    }

    #[test]
    fn what_is_not_there_is_absent() {
        assert_eq!(LiveProcess::open(u32::MAX).map(|_| ()), Err(Unusable::Absent));
    }

    #[test]
    fn a_thread_of_the_kernel_is_refused() {
        // Number 2 is the kernel's wherever all processes can be seen.
        let is_kernel = std::fs::read_to_string("/proc/2/comm").is_ok_and(|n| n == "kthreadd\n");
        if !is_kernel {
            eprintln!("skipped: no thread of the kernel to be seen");
            return;
        }
        assert_eq!(
            LiveProcess::open(2).map(|_| ()),
            Err(Unusable::Kernel { name: "kthreadd".into() })
        );
    }

    #[test]
    fn a_process_that_has_ended_is_refused() {
        let mut child = std::process::Command::new("true").spawn().expect("true runs");
        let pid = child.id();
        let start = std::time::Instant::now();
        while !StatusFile::read(&format!("/proc/{pid}/status"))
            .is_ok_and(|s| s.text("State").is_some_and(|s| s.starts_with('Z')))
        {
            assert!(start.elapsed().as_secs() < 20, "true does not end");
            std::thread::yield_now();
        }
        let found = LiveProcess::open(pid).map(|_| ());
        child.wait().expect("it can be waited for");
        let parent = std::process::id().into();
        assert_eq!(found, Err(Unusable::Zombie { name: "true".into(), parent }));
    }
}
