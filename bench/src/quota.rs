//! A processor quota for this process: a control group of its own, for as long as it is
//! measured.
//!
//! # Role
//! [`QuotaGroup::enter`] makes a group below the one that the process is in (or, where the
//! kernel allows no groups below one with processes, beside it), gives it the quota and
//! moves the process there. Dropping it moves the process back, with those that it has
//! started, and removes the group. What a lock knows of quotas it learns when the first
//! thread uses one: a program that measures under a quota enters it before.
//!
//! # Progress
//! A process that is killed leaves an empty group behind; the next one to enter a quota
//! at that place removes it.

use crate::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The place where the hierarchies are mounted: of the second generation, and those of the first
/// that have the controller of processors.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const LEGACY: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// The length of a period, in microseconds.
const PERIOD: u64 = 100_000;

/// The smallest quota, in per cent of one processor: the kernel takes no less than a
/// millisecond in a period.
pub const MIN_QUOTA: u32 = 1;
/// The largest quota, in per cent of one processor.
pub const MAX_QUOTA: u32 = 100_000;

/// Attempts to leave and remove a group, a millisecond apart: a process may start
/// another one while it is moved, and one that ends stays a little longer.
const LEAVING: u32 = 100;

const PREFIX: &str = "lockstead-quota-";

/// A group that this process is in. Left and removed when dropped.
#[derive(Debug)]
pub(crate) struct QuotaGroup {
    group: PathBuf,
    /// The group in which the process was.
    home: PathBuf,
    unified: bool,
}

impl QuotaGroup {
    /// Moves this process into a group that may use so much of one processor.
    ///
    /// # Errors
    /// [`Error::Quota`] if the machine or its privileges do not allow it; then nothing is
    /// left behind.
    pub(crate) fn enter(percent: u32) -> Result<Self, Error> {
        let list = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut why = io::Error::new(
            io::ErrorKind::NotFound,
            "no control group with the processor controller is mounted under /sys/fs/cgroup",
        );
        for (home, unified) in homes(&list) {
            // Of the second generation, a group with processes has no groups below it that
            // are controlled: beside it there may be.
            let beside = home.parent().filter(|_| unified && !is_mount(&home)).map(Path::to_owned);
            for parent in [Some(home.clone()), beside].into_iter().flatten() {
                match Self::make(&parent, &home, unified, percent) {
                    Ok(quota) => return Ok(quota),
                    Err(error) => why = error,
                }
            }
        }
        Err(Error::Quota { source: why })
    }

    fn make(parent: &Path, home: &Path, unified: bool, percent: u32) -> io::Result<Self> {
        if unified && !offers_processors(parent) {
            return Err(io::Error::other(format!(
                "{} does not offer the controller `cpu`",
                parent.display()
            )));
        }
        remove_left_over(parent);
        let group = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&group)?;
        // From here on dropping it removes the group.
        let quota = Self { group, home: home.to_owned(), unified };
        let time = u64::from(percent) * PERIOD / 100;
        if unified {
            if !quota.group.join("cpu.max").exists() {
                fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
            }
            fs::write(quota.group.join("cpu.max"), format!("{time} {PERIOD}"))?;
        } else {
            fs::write(quota.group.join("cpu.cfs_period_us"), PERIOD.to_string())?;
            fs::write(quota.group.join("cpu.cfs_quota_us"), time.to_string())?;
        }
        fs::write(quota.group.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(quota)
    }

    /// Returns the number of periods so far in which the quota was used up before they ended.
    pub(crate) fn throttled(&self) -> Option<u64> {
        let text = fs::read_to_string(self.group.join("cpu.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok())
    }

    /// Returns the generation of control groups, as people call it.
    pub(crate) fn generation(&self) -> &'static str {
        if self.unified { "v2" } else { "v1" }
    }
}

impl Drop for QuotaGroup {
    /// Moves the process, and those that it has started, out of the group, which could not be
    /// removed otherwise.
    fn drop(&mut self) {
        let home = self.home.join("cgroup.procs");
        for _ in 0..LEAVING {
            let inside = fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default();
            for process in inside.lines() {
                let _ = fs::write(&home, process);
            }
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the directories of the groups that the process is in, that may have a quota; the second
/// generation first.
fn homes(list: &str) -> Vec<(PathBuf, bool)> {
    let mut homes = Vec::new();
    for (unified, mounts) in [(true, UNIFIED), (false, LEGACY)] {
        let Some(group) = own_group(list, unified) else { continue };
        let inside = group.trim_start_matches('/');
        homes.extend(
            mounts
                .iter()
                .map(|mount| Path::new(mount).join(inside))
                .filter(|home| home.join("cgroup.procs").exists())
                .map(|home| (home, unified)),
        );
    }
    homes
}

/// Returns the path of the process's group, from the text of `/proc/self/cgroup`.
fn own_group(list: &str, unified: bool) -> Option<&str> {
    list.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = if unified {
            number == "0" && controllers.is_empty()
        } else {
            controllers.split(',').any(|controller| controller == "cpu")
        };
        // What is outside of the process's view of the hierarchy cannot be reached.
        (fits && !path.starts_with("/..")).then_some(path)
    })
}

fn is_mount(group: &Path) -> bool {
    UNIFIED.iter().chain(&LEGACY).any(|mount| group == Path::new(mount))
}

fn offers_processors(group: &Path) -> bool {
    let controllers = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    controllers.split_ascii_whitespace().any(|controller| controller == "cpu")
}

/// Removes the groups of processes that have ended. Those of others stay: a group with a
/// process in it cannot be removed.
fn remove_left_over(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_own_group_is_found_in_both_generations() {
        let list = "2:cpuset:/x\n1:cpu,cpuacct:/a/b\n0::/c\n";
        assert_eq!(own_group(list, true), Some("/c"));
        assert_eq!(own_group(list, false), Some("/a/b"));
        assert_eq!(own_group("0::/../out\n", true), None);
        assert_eq!(own_group("", false), None);
    }

    #[test]
    fn a_quota_holds_while_it_lives_and_leaves_nothing() {
        let before = fs::read_to_string("/proc/self/cgroup").expect("Linux");
        let quota = match QuotaGroup::enter(50) {
            Ok(quota) => quota,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let group = quota.group.clone();
        let inside = fs::read_to_string("/proc/self/cgroup").expect("Linux");
        assert!(inside.contains(PREFIX), "{inside}");
        assert!(["v1", "v2"].contains(&quota.generation()));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        // Half a processor: a thread that wants all of one is stopped in each period.
        let start = Instant::now();
        while quota.throttled().is_some_and(|periods| periods == 0) {
            assert!(start.elapsed() < Duration::from_secs(60), "never stopped");
        }
        drop(quota);
        child.kill().and_then(|()| child.wait()).expect("it sleeps");
        assert!(!group.exists(), "{} is left", group.display());
        assert_eq!(fs::read_to_string("/proc/self/cgroup").expect("Linux"), before);
    }
}
