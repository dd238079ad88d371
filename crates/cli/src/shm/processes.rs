//! The processes that participants name, as this process sees them.

use lockstead_render::words::clean;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Looks processes up, in other namespaces too where they can be seen from here.
pub(super) struct Processes {
    own: Option<u64>,
    /// The number here of each process, by namespace and number there; made when the first foreign
    /// one is asked for.
    foreign: Option<HashMap<(u64, u32), u32>>,
}

/// What is known of a participant's process.
#[derive(Default)]
pub(super) struct SeenProcess {
    /// Its number where the command runs.
    pub(super) here: Option<u32>,
    pub(super) name: Option<String>,
    /// Its thread certainly does not exist.
    pub(super) missing: bool,
}

impl Processes {
    pub(super) fn new() -> Self {
        Processes { own: namespace("self"), foreign: None }
    }

    pub(super) fn look(&mut self, namespace: u64, process: u32, thread: u32) -> SeenProcess {
        if namespace == 0 || process == 0 {
            return SeenProcess::default();
        }
        if self.own == Some(namespace) {
            let missing = !exists(process, thread);
            let name = if missing { None } else { name(process) };
            return SeenProcess { here: (!missing).then_some(process), name, missing };
        }
        let foreign = self.foreign.get_or_insert_with(all_foreign);
        let here = foreign.get(&(namespace, process)).copied();
        SeenProcess { here, name: here.and_then(name), missing: false }
    }
}

fn namespace(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/pid")).ok().map(|file| file.ino())
}

fn name(process: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(clean(name.trim_end()))
}

/// Returns whether there is such a thread; by a system call, because /proc may hide the processes
/// of others.
fn exists(process: u32, thread: u32) -> bool {
    let (process, thread) = (process as libc::pid_t, thread as libc::pid_t);
    // SAFETY: signal 0 reaches no process; the kernel only says whether there is one.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    sent == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Returns the processes of other namespaces that this one can see.
fn all_foreign() -> HashMap<(u64, u32), u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|process| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
            let inner = numbers.split_ascii_whitespace().last()?.parse().ok()?;
            Some(((namespace(&process.to_string())?, inner), process))
        })
        .collect()
}
