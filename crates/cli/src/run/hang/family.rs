//! The processes that descend from a run's, whether they are watched or not.

use lockstead_inspect::proc::status::StatusFile;
use std::collections::{BTreeSet, HashMap};
use std::fs;

/// Returns the processes among `roots` that live, and all that descend from them, as far as they
/// may be seen. A process that has ended is none, though nobody has waited for it.
pub(super) fn living(roots: impl Iterator<Item = u32>) -> BTreeSet<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return BTreeSet::new() };
    let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut living = BTreeSet::new();
    for pid in numbers {
        let Some((parent, ended)) = parent(pid) else { continue };
        children.entry(parent).or_default().push(pid);
        if !ended {
            living.insert(pid);
        }
    }
    let mut found = BTreeSet::new();
    let mut left: Vec<u32> = roots.collect();
    while let Some(pid) = left.pop() {
        // A number may have been given to another while the folder was read: no circle follows.
        if found.insert(pid) {
            left.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found.retain(|pid| living.contains(pid));
    found
}

/// The flag of a thread that ends by a signal, in field 9 of its `stat` (`PF_SIGNALED` of the
/// kernel's `sched.h`).
const ENDS_BY_SIGNAL: u32 = 0x400;

/// Tells whether a process is gone, or a signal ends it.
pub(super) fn ends(pid: u32) -> bool {
    let flags = |text: &str| -> Option<u32> {
        // The name may hold anything; field 3 follows it.
        let (_, after) = text.rsplit_once(')')?;
        after.split_whitespace().nth(9 - 3)?.parse().ok()
    };
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => flags(&text).is_some_and(|flags| flags & ENDS_BY_SIGNAL != 0),
        Err(_) => true,
    }
}

/// Returns the parent of a process, and whether it has ended itself.
fn parent(pid: u32) -> Option<(u32, bool)> {
    let status = StatusFile::read(&format!("/proc/{pid}/status")).ok()?;
    let parent = u32::try_from(status.number("PPid")?).ok()?;
    // The first thread of a process may have ended before the others.
    let is_zombie = status.text("State")?.starts_with(['Z', 'X']);
    Some((parent, is_zombie && status.number("Threads").is_none_or(|count| count < 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_killed_ends_though_nobody_has_waited_for_it() {
        let mut cat = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a program");
        let pid = cat.id();
        assert!(!ends(pid) && !ends(std::process::id()));
        cat.kill().expect("it lives");
        // SAFETY: `info` is plain bits of this frame, which the call fills in; it waits until the
        // child has ended, and leaves it there.
        let left = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid, &raw mut info, libc::WEXITED | libc::WNOWAIT)
        };
        assert_eq!(left, 0, "{}", std::io::Error::last_os_error());
        assert!(ends(pid));
        assert!(cat.wait().expect("a child").code().is_none());
        assert!(ends(pid), "it is gone");
    }

    #[test]
    fn children_of_children_are_found_and_those_that_ended_are_not() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sh -c 'echo; read -r x; :'; :"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        // The inner one has started when it has written.
        let mut line = [0];
        let out = shell.stdout.as_mut().expect("piped");
        std::io::Read::read_exact(out, &mut line).expect("a line");
        let found = living([shell.id()].into_iter());
        assert!(found.contains(&shell.id()) && found.len() == 2, "{found:?}");
        assert!(living([std::process::id()].into_iter()).is_superset(&found));
        drop(shell.stdin.take());
        shell.wait().expect("it can be waited for");
        assert_eq!(living([shell.id(), u32::MAX].into_iter()), BTreeSet::new());
    }
}
