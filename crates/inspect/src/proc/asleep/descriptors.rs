//! What lies behind a descriptor that a thread sleeps on, and who has the other end.

use super::{Asleep, Ends, others, processes};
use crate::memory::Memory;
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
pub(super) enum Way {
    Read,
    Write,
}

impl Descriptor {
    pub(super) fn of(pid: u32, argument: u64) -> Descriptor {
        let number = argument.cast_signed() as i32;
        let link = fs::read_link(format!("/proc/{pid}/fd/{number}")).ok();
        Descriptor { pid, number, link: link.map(PathBuf::into_os_string) }
    }

    /// Where the kernel shows it; opens the file behind it.
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
        self.link.as_ref().is_some_and(|link| link.as_bytes() == b"anon_inode:[eventfd]")
    }

    /// The value of a field in what the kernel tells of it.
    fn field(&self, name: &str) -> Option<String> {
        field(&fs::read_to_string(format!("/proc/{}/fdinfo/{}", self.pid, self.number)).ok()?, name)
    }
}

fn field(info: &str, name: &str) -> Option<String> {
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(known, _)| *known == name).map(|(_, value)| value.trim().to_owned())
}

/// A descriptor that leads to the same file.
struct Opener {
    pid: u32,
    /// By what its open file was opened for.
    reads: bool,
    writes: bool,
}

/// All descriptors that lead where this one does, and whether all processes were seen.
fn openers(of: &Descriptor) -> (Vec<Opener>, bool) {
    let event = if of.is_event() { of.field("eventfd-id") } else { None };
    let pids = processes();
    // Without its number, one event counter is like another.
    let mut complete = pids.is_some() && (!of.is_event() || event.is_some());
    let mut found = Vec::new();
    for pid in pids.unwrap_or_default() {
        let entries = match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(entries) => entries,
            Err(error) => {
                // One that has ended has none.
                complete &= error.kind() != std::io::ErrorKind::PermissionDenied;
                continue;
            }
        };
        for entry in entries.flatten() {
            if fs::read_link(entry.path()).ok().map(PathBuf::into_os_string) != of.link {
                continue;
            }
            let number = entry.file_name();
            let file = format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy());
            let Ok(info) = fs::read_to_string(file) else { continue };
            if event.is_some() && field(&info, "eventfd-id") != event {
                continue;
            }
            let flags = field(&info, "flags").and_then(|text| i32::from_str_radix(&text, 8).ok());
            let mode = flags.unwrap_or(libc::O_RDWR) & libc::O_ACCMODE;
            let (reads, writes) = (mode != libc::O_WRONLY, mode != libc::O_RDONLY);
            found.push(Opener { pid, reads, writes });
        }
    }
    (found, complete)
}

/// What a thread waits for that reads or writes.
pub(super) fn wait(descriptor: &Descriptor, way: Way) -> Asleep {
    let text = descriptor.text();
    if !descriptor.is_pipe() && !descriptor.is_event() {
        let is_signals = text == "anon_inode:[signalfd]";
        let is_timer = text == "anon_inode:[timerfd]";
        return Asleep::on(
            text,
            match () {
                () if is_signals => Ends::Signal,
                () if is_timer => Ends::Time,
                () => Ends::Outside,
            },
        );
    }
    let (found, complete) = openers(descriptor);
    let other_end = found.iter().filter(|opener| match way {
        Way::Read => opener.writes,
        Way::Write => opener.reads,
    });
    let pids: Vec<u32> = other_end.map(|opener| opener.pid).collect();
    let mut outside = others(pids.iter().copied().filter(|&pid| pid != descriptor.pid));
    outside.iter_mut().for_each(|other| other.why = Some("has the other end".into()));
    let noun = if descriptor.is_event() { "an event counter".into() } else { text };
    let ends = match () {
        () if !outside.is_empty() => Ends::Processes { processes: outside },
        () if complete => Ends::Inside,
        () => Ends::Processes { processes: Vec::new() },
    };
    let what = match (way, &ends) {
        (Way::Read, Ends::Inside) => format!("{noun}, into which this process alone can write"),
        (Way::Write, Ends::Inside) => {
            format!("room in {noun}, from which this process alone can read")
        }
        (Way::Read, _) => noun,
        (Way::Write, _) => format!("room in {noun}"),
    };
    Asleep::on(what, ends)
}

/// What a thread waits for that opens a file.
pub(super) fn open(path: u64, memory: &dyn Memory) -> Asleep {
    let mut bytes = [0; PATH];
    // A page that is missing behind the path cuts the reading short.
    let length = memory.read(path, &mut bytes).unwrap_or(0);
    let name = bytes[..length].split(|&byte| byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    let is_fifo = fs::metadata(&*name).is_ok_and(|file| file.file_type().is_fifo());
    let end = if is_fifo { "the other end of " } else { "" };
    Asleep::on(format!("{end}{name} to be opened"), Ends::Outside)
}

/// What a thread waits for in `poll`: so many of `struct pollfd` lie at an address.
pub(super) fn poll(
    pid: u32,
    (at, count): (u64, u64),
    limited: bool,
    memory: &dyn Memory,
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

/// What a thread waits for in `select`: its sets are changed while they are read.
pub(super) fn select(limited: bool) -> Asleep {
    Asleep::plain(Ends::Outside).limited(limited)
}

/// What a thread waits for in `epoll_wait`.
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
        return Asleep::plain(Ends::Signal).limited(limited);
    }
    let shown = numbers.iter().take(LISTED).map(|&number| Descriptor::of(pid, number).text());
    let mut what = shown.collect::<Vec<_>>().join(", ");
    if numbers.len() > LISTED {
        what += &format!(" and {} more", numbers.len() - LISTED);
    }
    Asleep::on(what, Ends::Outside).limited(limited)
}

/// What a thread waits for that sends to a message queue or receives from it.
pub(super) fn queue(descriptor: &Descriptor, limited: bool) -> Asleep {
    let what = format!("POSIX message queue {}", descriptor.text());
    Asleep::on(what, Ends::Processes { processes: Vec::new() }).limited(limited)
}
