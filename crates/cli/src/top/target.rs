//! From the number that the user gives to the ledger of a process.

use lockstead_inspect::ledger::{MappedLedger, attach};
use lockstead_render::failure::Failure;
use lockstead_render::words::clean;
use std::collections::VecDeque;
use std::fs;
use std::io;

/// A process with a ledger.
pub(super) struct TopTarget {
    /// The number that the kernel has for it.
    pub(super) pid: u32,
    /// The ledger of the process, mapped.
    pub(super) ledger: MappedLedger,
    name: String,
    /// The time at which the process began, as the kernel counts: its number may be given to
    /// another one later.
    began: Option<u64>,
}

impl TopTarget {
    /// Returns the process `pid`, or the first below it that has a ledger: a `lockstead run` is
    /// known by its number in the shell, and so is a wrapper script.
    ///
    /// # Errors
    /// There is no such process, it may not be read, or none is watched; the
    /// text says what to do.
    pub(super) fn find(pid: u32) -> Result<TopTarget, Failure> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Run(format!("there is no process {pid}")),
            io::ErrorKind::PermissionDenied => Failure::Run(format!(
                "process {pid} may not be looked at: it belongs to another user, or has more \
                 rights than you; try: sudo lockstead top {pid}"
            )),
            _ => Failure::Run(format!("process {pid}: {error}")),
        };
        let mut refused = None;
        let mut seen = 0;
        let mut queue = VecDeque::from([pid]);
        while let Some(candidate) = queue.pop_front() {
            seen += 1;
            match attach(candidate) {
                Ok(Some(ledger)) => return Ok(TopTarget::new(candidate, ledger)),
                Ok(None) => {}
                // That of the process that was named matters, those of the
                // others may be what they are.
                Err(error) if candidate == pid => refused = Some(error),
                Err(_) => {}
            }
            queue.extend(children(candidate));
        }
        if let Some(error) = refused.filter(|_| seen == 1) {
            return Err(failed(error));
        }
        Err(Failure::Run(format!(
            "process {pid} is not watched by lockstead: start it with `lockstead run -- PROGRAM`, \
             or see who waits and holds now with `lockstead dump {pid}`, which works for any process"
        )))
    }

    fn new(pid: u32, ledger: MappedLedger) -> TopTarget {
        let name = fs::read_link(format!("/proc/{pid}/exe"))
            .ok()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "process".into());
        TopTarget { pid, ledger, name: clean(&name), began: began(pid) }
    }

    /// Returns what it runs, and its number.
    pub(super) fn name(&self) -> String {
        format!("{} (pid {})", self.name, self.pid)
    }

    /// Returns whether the process is there still.
    pub(super) fn is_there(&self) -> bool {
        began(self.pid).is_some_and(|began| self.began.is_none_or(|known| known == began))
    }
}

/// Returns the fields of `/proc/PID/stat` after the name, which may hold anything.
fn stat(pid: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?;
    Some(after.split_whitespace().map(str::to_owned).collect())
}

/// Returns when a process began, in ticks since boot; none if it has ended, be it that nobody has
/// asked for its status yet.
fn began(pid: u32) -> Option<u64> {
    let fields = stat(&pid.to_string())?;
    match fields.first()?.as_str() {
        // A process whose first thread has ended before the others looks like
        // one that nobody has asked for its status.
        "Z" if other_threads(pid) => {}
        "Z" | "X" => return None,
        _ => {}
    }
    fields.get(19)?.parse().ok()
}

fn other_threads(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

/// Returns the children of a process, the oldest first.
fn children(pid: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let parent = pid.to_string();
    let mut found: Vec<(u64, u32)> = all
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let child = name.parse().ok()?;
            let fields = stat(&name)?;
            (*fields.get(1)? == parent).then(|| Some((fields.get(19)?.parse().ok()?, child)))?
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, child)| child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{self, Command};

    #[test]
    fn processes_and_their_children_are_found() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep is there");
        assert!(children(process::id()).contains(&child.id()));
        assert!(began(child.id()).expect("it runs") >= began(process::id()).expect("so do I"));
        child.kill().expect("it is mine");
        // Not waited for: a zombie has ended.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while began(child.id()).is_some() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        child.wait().expect("it is mine");
    }

    #[test]
    fn what_is_not_watched_is_told_what_to_do() {
        let Err(Failure::Run(text)) = TopTarget::find(process::id()) else { panic!("not watched") };
        assert!(text.contains("lockstead run --") && text.contains("lockstead dump"), "{text}");
        let Err(Failure::Run(text)) = TopTarget::find(u32::MAX) else { panic!("no such process") };
        assert!(text.contains("there is no process"), "{text}");
    }
}
