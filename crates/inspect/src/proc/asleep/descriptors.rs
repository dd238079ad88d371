//! What lies behind a descriptor that a thread sleeps on, and who has the other end.

use super::model::{Asleep, WaitEnds, others};
use super::surroundings::{EVENT, SleepSurroundings, field, key};
use crate::memory::ReadableMemory;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Descriptors of one call that are named.
const LISTED: usize = 4;
/// Descriptors of one `poll` that are looked at.
const MOST: u64 = 4096;
/// Bytes of a path that is read from a process.
const PATH: usize = 4096;

/// A descriptor of a process.
pub(super) struct Descriptor {
    pid: u32,
    number: i32,
    /// What it leads to, as the kernel calls it: a path, `pipe:[12]`, `socket:[13]`.
    link: Option<OsString>,
}

/// What a thread wants to do with a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeUse {
    Read,
    Write,
}

impl Descriptor {
    pub(super) fn of(pid: u32, argument: u64) -> Descriptor {
        let number = argument.cast_signed() as i32;
        let link = fs::read_link(format!("/proc/{pid}/fd/{number}")).ok();
        Descriptor { pid, number, link: link.map(PathBuf::into_os_string) }
    }

    /// Returns where the kernel shows it; opens the file behind it.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", self.pid, self.number)
    }

    pub(super) fn text(&self) -> String {
        match &self.link {
            Some(link) => link.to_string_lossy().into_owned(),
            None => format!("descriptor {}", self.number),
        }
    }

    fn is_pipe(&self) -> bool {
        fs::metadata(self.path()).is_ok_and(|file| file.file_type().is_fifo())
    }

    fn is_event(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.as_bytes() == EVENT.as_bytes())
    }
}

/// A descriptor that leads to the same file.
struct Opener {
    pid: u32,
    /// Whether its open file was opened for reading; `writes`: for writing.
    reads: bool,
    writes: bool,
}

/// Returns all descriptors that lead where this one does.
fn openers(of: &Descriptor, around: &SleepSurroundings) -> Vec<Opener> {
    let Some(link) = of.link.clone() else { return Vec::new() };
    let key = key(link, of.pid, &of.number.to_string());
    let opener = |(pid, number): &(u32, String)| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let flags = field(&info, "flags").and_then(|text| i32::from_str_radix(&text, 8).ok());
        let mode = flags.unwrap_or(libc::O_RDWR) & libc::O_ACCMODE;
        Some(Opener { pid: *pid, reads: mode != libc::O_WRONLY, writes: mode != libc::O_RDONLY })
    };
    around.opened().leading_to(&key).iter().filter_map(opener).collect()
}

/// Returns of whom "this process alone" is said.
fn seen(around: &SleepSurroundings) -> &'static str {
    if around.opened().complete { "" } else { ", of those that may be looked at" }
}

/// Returns an event counter: the kernel adds to one as well, for requests, groups and devices.
fn event(descriptor: &Descriptor, way: PipeUse, around: &SleepSurroundings) -> Asleep {
    let found = openers(descriptor, around);
    let pids = found.iter().map(|opener| opener.pid).filter(|&pid| pid != descriptor.pid);
    let mut processes = others(pids);
    processes.iter_mut().for_each(|other| other.why = Some("has it as well".into()));
    let seen = seen(around);
    let what = match (way, processes.is_empty()) {
        (PipeUse::Read, true) => {
            format!(
                "an event counter, into which this process and the kernel alone can write{seen}"
            )
        }
        (PipeUse::Write, true) => {
            format!("room in an event counter, from which this process alone can read{seen}")
        }
        (PipeUse::Read, false) => "an event counter".into(),
        (PipeUse::Write, false) => "room in an event counter".into(),
    };
    Asleep::on(what, WaitEnds::Processes { processes })
}

/// Returns what a thread waits for that reads or writes.
pub(super) fn wait(descriptor: &Descriptor, way: PipeUse, around: &SleepSurroundings) -> Asleep {
    let text = descriptor.text();
    if descriptor.is_event() {
        return event(descriptor, way, around);
    }
    if !descriptor.is_pipe() {
        let is_signals = text == "anon_inode:[signalfd]";
        let is_timer = text == "anon_inode:[timerfd]";
        return Asleep::on(
            text,
            match () {
                () if is_signals => WaitEnds::Signal,
                () if is_timer => WaitEnds::Time,
                () => WaitEnds::Outside,
            },
        );
    }
    let found = openers(descriptor, around);
    let other_end = found.iter().filter(|opener| match way {
        PipeUse::Read => opener.writes,
        PipeUse::Write => opener.reads,
    });
    let pids: Vec<u32> = other_end.map(|opener| opener.pid).collect();
    let mut outside = others(pids.iter().copied().filter(|&pid| pid != descriptor.pid));
    outside.iter_mut().for_each(|other| other.why = Some("has the other end".into()));
    // One with a name is there for others to open.
    let is_nameless = descriptor.link.as_ref().is_some_and(|l| l.as_bytes().starts_with(b"pipe:["));
    let alone = outside.is_empty() && is_nameless;
    let seen = seen(around);
    let what = match (way, alone) {
        (PipeUse::Read, true) => format!("{text}, into which this process alone can write{seen}"),
        (PipeUse::Write, true) => {
            format!("room in {text}, from which this process alone can read{seen}")
        }
        (PipeUse::Read, false) => text,
        (PipeUse::Write, false) => format!("room in {text}"),
    };
    let inside = alone && around.opened().complete;
    let ends = if inside { WaitEnds::Inside } else { WaitEnds::Processes { processes: outside } };
    Asleep::on(what, ends)
}

/// Returns what a thread waits for that opens a file.
pub(super) fn open(path: u64, memory: &dyn ReadableMemory) -> Asleep {
    let mut bytes = [0; PATH];
    // A page that is missing behind the path cuts the reading short.
    let length = memory.read(path, &mut bytes).unwrap_or(0);
    let name = bytes[..length].split(|&byte| byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    let is_fifo = fs::metadata(&*name).is_ok_and(|file| file.file_type().is_fifo());
    let end = if is_fifo { "the other end of " } else { "" };
    Asleep::on(format!("{end}{name} to be opened"), WaitEnds::Outside)
}

/// Returns what a thread waits for in `poll`: so many of `struct pollfd` lie at an address.
pub(super) fn poll(
    pid: u32,
    (at, count): (u64, u64),
    limited: bool,
    memory: &dyn ReadableMemory,
) -> Asleep {
    let number = |index: u64| -> Option<u64> {
        let mut bytes = [0; 4];
        let read = memory.read(at.checked_add(index * 8)?, &mut bytes).ok()?;
        (read == 4).then(|| i64::from(i32::from_ne_bytes(bytes)).cast_unsigned())
    };
    let numbers =
        (0..count.min(MOST)).filter_map(number).filter(|number| number.cast_signed() >= 0);
    several(pid, &numbers.collect::<Vec<_>>(), limited)
}

/// Returns what a thread waits for in `select`: its sets are changed while they are read.
pub(super) fn select(limited: bool) -> Asleep {
    Asleep::plain(WaitEnds::Outside).limited(limited)
}

/// Returns what a thread waits for in `epoll_wait`.
pub(super) fn epoll(pid: u32, descriptor: u64, limited: bool) -> Asleep {
    let file = format!("/proc/{pid}/fdinfo/{}", descriptor.cast_signed() as i32);
    let info = fs::read_to_string(file).unwrap_or_default();
    let numbers = info.lines().filter_map(|line| {
        let rest = line.strip_prefix("tfd:")?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    });
    several(pid, &numbers.collect::<Vec<_>>(), limited)
}

fn several(pid: u32, numbers: &[u64], limited: bool) -> Asleep {
    if numbers.is_empty() {
        return Asleep::plain(WaitEnds::Signal).limited(limited);
    }
    let shown = numbers.iter().take(LISTED).map(|&number| Descriptor::of(pid, number).text());
    let mut what = shown.collect::<Vec<_>>().join(", ");
    if numbers.len() > LISTED {
        what += &format!(" and {} more", numbers.len() - LISTED);
    }
    Asleep::on(what, WaitEnds::Outside).limited(limited)
}

/// Returns what a thread waits for that sends to a message queue or receives from it.
pub(super) fn queue(descriptor: &Descriptor, limited: bool) -> Asleep {
    let what = format!("POSIX message queue {}", descriptor.text());
    Asleep::on(what, WaitEnds::Processes { processes: Vec::new() }).limited(limited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn read_of(number: i32, complete: bool) -> Asleep {
        let around = SleepSurroundings::with_nobody(complete);
        let descriptor = Descriptor::of(std::process::id(), number.unsigned_abs().into());
        let asleep = wait(&descriptor, PipeUse::Read, &around);
        // SAFETY: takes a number, that of a descriptor which the test has made.
        unsafe { libc::close(number) };
        asleep
    }

    fn pipe() -> i32 {
        let mut ends = [0; 2];
        // SAFETY: writes two numbers to an array borrowed exclusively.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: takes a number, that of a descriptor made above.
        unsafe { libc::close(ends[1]) };
        ends[0]
    }

    #[test]
    fn a_pipe_is_ones_own_only_where_all_processes_were_seen() {
        let seen = read_of(pipe(), true);
        let text = seen.what.unwrap_or_default();
        assert!(text.ends_with(", into which this process alone can write"), "{text}");
        assert_eq!(seen.ends, WaitEnds::Inside);
        let unseen = read_of(pipe(), false);
        let text = unseen.what.unwrap_or_default();
        assert!(text.ends_with("alone can write, of those that may be looked at"), "{text}");
        assert_eq!(unseen.ends, WaitEnds::Processes { processes: Vec::new() });
    }

    #[test]
    fn what_has_a_name_and_what_the_kernel_writes_to_are_nobodys_own() {
        let folder = std::env::temp_dir().join(format!("lockstead-fifo-{}", std::process::id()));
        let path = CString::new(folder.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the path lives in this frame.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        // SAFETY: the path lives in this frame, too.
        let both = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        let nobody = WaitEnds::Processes { processes: Vec::new() };
        assert_eq!(read_of(both, true).ends, nobody);
        fs::remove_file(folder).expect("the test made it");
        // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
        let counter = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        assert_eq!(read_of(counter, true).ends, nobody);
    }
}
