//! One thread as `/proc/PID/task/TID` shows it.

use super::file;
use super::futex::{self, FutexWait};
use super::status::StatusFile;
use crate::arch;
use crate::memory::{ProcessMemory, ReadableMemory};
use std::io;

/// What a thread is doing, as far as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskDoing {
    /// It is on a processor, or waits for one.
    Running,
    /// It sleeps in a system call.
    Call(SleepingCall),
    /// Asleep outside any system call: stopped by a fault or a signal.
    Stopped {
        /// The value of the stack pointer.
        sp: u64,
        /// The value of the program counter.
        pc: u64,
    },
    /// The kernel refuses to tell.
    Refused,
}

/// A system call that a thread sleeps in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SleepingCall {
    /// The number that the kernel has for it.
    pub number: i64,
    /// The arguments that it was called with.
    pub arguments: [u64; 6],
    /// The value of the stack pointer.
    pub sp: u64,
    /// The value of the program counter.
    pub pc: u64,
}

impl SleepingCall {
    /// Returns the call that the thread goes on with. One with a limit of time that a stop has interrupted, a
    /// tracer's say, has the number of `restart_syscall` from then on, with the arguments that it had; its
    /// own number is in the instruction that loaded it, before that of the call. Where that is not found
    /// the call remains what it is.
    #[must_use]
    pub fn before_restart(self, memory: &dyn ReadableMemory) -> SleepingCall {
        /// The calls that the kernel goes on with so.
        const GO_ON: &[i64] = &[
            futex::FUTEX,
            libc::SYS_nanosleep,
            libc::SYS_clock_nanosleep,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll,
        ];
        if self.number != libc::SYS_restart_syscall {
            return self;
        }
        // More of it where there is more.
        let code = [64, 8].into_iter().find_map(|length| {
            let mut code = vec![0; length];
            let read = memory.read(self.pc.checked_sub(length as u64)?, &mut code);
            read.is_ok_and(|read| read == length).then_some(code)
        });
        let number = code.and_then(|code| arch::number_before_call(&code));
        let Some(number) = number else { return self };
        if GO_ON.contains(&number) { SleepingCall { number, ..self } } else { self }
    }
}

impl TaskDoing {
    /// Returns whether its stack has gone, as that of a main thread that has ended before others.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self == TaskDoing::Stopped { sp: 0, pc: 0 }
    }

    /// Returns whether it sleeps until a time has come, which makes the call return 0.
    #[must_use]
    pub fn is_sleep(&self) -> bool {
        let sleeps = [libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_restart_syscall];
        matches!(self, TaskDoing::Call(call) if sleeps.contains(&call.number))
    }

    /// Returns stack pointer and program counter of a thread that sleeps.
    #[must_use]
    pub fn registers(&self) -> Option<(u64, u64)> {
        match *self {
            TaskDoing::Call(SleepingCall { sp, pc, .. }) | TaskDoing::Stopped { sp, pc } => {
                Some((sp, pc))
            }
            TaskDoing::Running | TaskDoing::Refused => None,
        }
    }

    /// Parses the text of a file `syscall`.
    #[must_use]
    pub fn parse(text: &str) -> Option<TaskDoing> {
        let text = text.trim();
        if text == "running" {
            return Some(TaskDoing::Running);
        }
        let mut words = text.split(' ');
        let number: i64 = words.next()?.parse().ok()?;
        let values: Vec<u64> = words
            .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
            .collect::<Option<_>>()?;
        match values[..] {
            [sp, pc] => Some(TaskDoing::Stopped { sp, pc }),
            [a, b, c, d, e, f, sp, pc] => Some(TaskDoing::Call(SleepingCall {
                number,
                arguments: [a, b, c, d, e, f],
                sp,
                pc,
            })),
            _ => None,
        }
    }
}

/// A thread at one moment.
#[derive(Clone, Debug)]
pub struct TaskMoment {
    /// Its number where the command runs.
    pub tid: u32,
    /// Its number for itself: what it writes into locks.
    pub own: u32,
    /// The name that it has.
    pub name: String,
    /// The kernel's letter: `S` asleep, `R` running, `D` asleep and not to be
    /// disturbed, `T` stopped, `t` traced, `Z` ended.
    pub state: char,
    /// The thread's state: running, or in which call it sleeps.
    pub doing: TaskDoing,
}

impl TaskMoment {
    /// Reads a thread; `nested` as [`StatusFile::nested`] says of its process.
    ///
    /// # Errors
    /// It has ended.
    pub fn read(pid: u32, tid: u32, nested: bool) -> io::Result<TaskMoment> {
        let stat = file::read(&format!("/proc/{pid}/task/{tid}/stat"))?;
        let (name, state) = stat_name_and_state(&String::from_utf8_lossy(&stat))
            .ok_or(io::ErrorKind::InvalidData)?;
        // Only where numbers differ is it worth a file a thread.
        let own = if nested {
            StatusFile::read(&format!("/proc/{pid}/task/{tid}/status"))?.own_number()
        } else {
            None
        };
        Ok(TaskMoment { tid, own: own.unwrap_or(tid), name, state, doing: doing(pid, tid)? })
    }

    /// Returns the futex wait it is in.
    #[must_use]
    pub fn futex(&self) -> Option<FutexWait> {
        match self.doing {
            TaskDoing::Call(call) => FutexWait::decode(&call),
            _ => None,
        }
    }

    /// Returns the function of the kernel that it sleeps in, where that may be read.
    #[must_use]
    pub fn kernel_function(pid: u32, tid: u32) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).ok()?;
        (!text.is_empty() && text != "0").then_some(text)
    }
}

/// Threads for which one reader is enough.
const SHARE: usize = 128;
/// Most of the time goes to the kernel, which has locks of its own.
const READERS: usize = 4;

/// Reads these threads; those that have ended since are left out. Of many, each
/// processor reads a part: the sooner the last is read, the closer is the whole
/// to one moment.
#[must_use]
pub fn read_all(pid: u32, tids: &[u32], nested: bool) -> Vec<TaskMoment> {
    let read = |tids: &[u32]| -> Vec<TaskMoment> {
        tids.iter().filter_map(|&tid| TaskMoment::read(pid, tid, nested).ok()).collect()
    };
    let readers = std::thread::available_parallelism().map_or(1, usize::from);
    let readers = readers.min(READERS).min(tids.len().div_ceil(SHARE)).max(1);
    let part = tids.len().div_ceil(readers).max(1);
    let mut parts = tids.chunks(part);
    let first = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        // Where no thread can be had, the caller reads that part too.
        let others: Vec<_> = parts
            .map(|part| {
                let reader = std::thread::Builder::new().spawn_scoped(scope, move || read(part));
                (part, reader.ok())
            })
            .collect();
        let mut tasks = read(first);
        for (part, reader) in others {
            tasks.extend(reader.and_then(|r| r.join().ok()).unwrap_or_else(|| read(part)));
        }
        tasks
    })
}

/// Returns what a thread is doing now.
///
/// # Errors
/// It has ended.
pub fn doing(pid: u32, tid: u32) -> io::Result<TaskDoing> {
    match file::read(&format!("/proc/{pid}/task/{tid}/syscall")) {
        Ok(text) => match TaskDoing::parse(&String::from_utf8_lossy(&text)) {
            Some(TaskDoing::Call(call)) => {
                Ok(TaskDoing::Call(call.before_restart(&ProcessMemory::new(pid))))
            }
            other => other.ok_or_else(|| io::ErrorKind::InvalidData.into()),
        },
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) => {
            Ok(TaskDoing::Refused)
        }
        // A kernel that is built without the file, or a /proc that hides it,
        // tells as little.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && std::fs::exists(format!("/proc/{pid}/task/{tid}/stat"))? =>
        {
            Ok(TaskDoing::Refused)
        }
        Err(error) => Err(error),
    }
}

/// Returns how often a thread was taken off a processor; see [`StatusFile::switches`].
#[must_use]
pub fn switches(pid: u32, tid: u32) -> Option<(u64, u64)> {
    StatusFile::read(&format!("/proc/{pid}/task/{tid}/status")).ok()?.switches()
}

/// Returns the numbers of all threads, ascending.
///
/// # Errors
/// The process has ended.
pub fn numbers(pid: u32) -> io::Result<Vec<u32>> {
    let mut found: Vec<u32> = std::fs::read_dir(format!("/proc/{pid}/task"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// Returns name and state from a file `stat`. The name may hold any character, so its end is the
/// last bracket.
fn stat_name_and_state(stat: &str) -> Option<(String, char)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    Some((name.to_owned(), rest.trim_start().chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::memory::SavedMemory;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn names_may_look_like_fields() {
        assert_eq!(stat_name_and_state("7 (a) R (b) S 1 2"), Some(("a) R (b".into(), 'S')));
        assert_eq!(stat_name_and_state("garbage"), None);
    }

    #[test]
    fn what_a_thread_does_is_read_from_one_line() {
        assert_eq!(TaskDoing::parse("running\n"), Some(TaskDoing::Running));
        assert_eq!(
            TaskDoing::parse("-1 0x7ffd 0x55"),
            Some(TaskDoing::Stopped { sp: 0x7ffd, pc: 0x55 })
        );
        let call =
            SleepingCall { number: 202, arguments: [16, 128, 2, 0, 0, 0], sp: 0x70, pc: 0x71 };
        assert_eq!(
            TaskDoing::parse("202 0x10 0x80 0x2 0x0 0x0 0x0 0x70 0x71\n"),
            Some(TaskDoing::Call(call))
        );
        assert_eq!(TaskDoing::parse(""), None);
        assert_eq!(TaskDoing::parse("202 0x10"), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_that_goes_on_has_the_number_that_it_began_with() {
        let asleep = |code: &[u8]| {
            let memory = SavedMemory::new(0x1000, code.to_vec());
            let number = libc::SYS_restart_syscall;
            let call = SleepingCall { number, arguments: [7; 6], sp: 0x70, pc: 0x1008 };
            (call.before_restart(&memory).number, call.before_restart(&memory).arguments)
        };
        let number = futex::FUTEX as u8;
        let code = [0x90, 0xb8, number, 0, 0, 0, 0x0f, 0x05];
        let of = |at: usize, byte| {
            let mut code = code;
            code[at] = byte;
            asleep(&code).0
        };
        assert_eq!(asleep(&code), (futex::FUTEX, [7; 6]));
        assert_eq!(of(2, libc::SYS_nanosleep as u8), libc::SYS_nanosleep);
        // Not a call that goes on, another instruction, another call, nothing to read.
        for (at, byte) in [(2, libc::SYS_read as u8), (5, 1), (1, 0xb9), (7, 0x34)] {
            assert_eq!(of(at, byte), libc::SYS_restart_syscall, "{byte:#x} at {at}");
        }
        assert_eq!(asleep(&code[..7]).0, libc::SYS_restart_syscall);
    }

    #[test]
    fn a_sleep_that_was_stopped_is_the_sleep_that_it_was() {
        let mut program = Command::new("sleep").arg("1000").spawn().expect("a program");
        let pid = program.id();
        let end = Instant::now() + Duration::from_secs(60);
        let until = |reached: &dyn Fn(&TaskMoment) -> bool| loop {
            let task = TaskMoment::read(pid, pid, false).expect("it runs");
            if reached(&task) {
                break task.doing;
            }
            assert!(Instant::now() < end, "{task:?}");
            std::thread::sleep(Duration::from_millis(1));
        };
        let sleeps = |task: &TaskMoment| task.state == 'S' && task.doing.is_sleep();
        let before = until(&sleeps);
        let signal = |signal| {
            // SAFETY: the call takes numbers only; the child has not been waited for, so that its
            // number is its own.
            assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
        };
        signal(libc::SIGSTOP);
        until(&|task| task.state == 'T');
        signal(libc::SIGCONT);
        let after = until(&sleeps);
        let raw = std::fs::read_to_string(format!("/proc/{pid}/syscall")).expect("it sleeps");
        program.kill().and_then(|()| program.wait().map(drop)).expect("it ends");
        if !raw.starts_with(&libc::SYS_restart_syscall.to_string()) {
            println!("skipped: the sleep of this machine is no call that goes on: {raw}");
            return;
        }
        if cfg!(target_arch = "x86_64") {
            assert_eq!(after, before);
        }
    }

    #[test]
    fn many_threads_are_all_read_in_their_order() {
        let end = std::sync::Barrier::new(3 * SHARE + 1);
        let end = std::sync::Arc::new(end);
        let threads: Vec<_> = (0..3 * SHARE)
            .map(|_| {
                let end = end.clone();
                std::thread::spawn(move || end.wait().is_leader())
            })
            .collect();
        let pid = std::process::id();
        let tids = numbers(pid).expect("one's own");
        let read: Vec<u32> = read_all(pid, &tids, false).iter().map(|task| task.tid).collect();
        end.wait();
        threads.into_iter().for_each(|thread| drop(thread.join()));
        assert!(read.len() >= 3 * SHARE && read.is_sorted(), "{} of {}", read.len(), tids.len());
        assert!(read.iter().all(|tid| tids.contains(tid)));
        assert!(read_all(u32::MAX, &[1, 2], false).is_empty());
    }

    #[test]
    fn the_thread_that_reads_is_running() {
        // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
        let tid = unsafe { libc::gettid() } as u32;
        let pid = std::process::id();
        assert!(numbers(pid).expect("one's own threads").contains(&tid));
        let task = TaskMoment::read(pid, tid, false).expect("one's own");
        assert!(matches!(task.doing, TaskDoing::Running | TaskDoing::Call(_)), "{task:?}");
        assert!(switches(pid, tid).is_some());
        assert!(TaskMoment::read(pid, u32::MAX, false).is_err());
    }
}
