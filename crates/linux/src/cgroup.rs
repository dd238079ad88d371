//! Reads the processor quota that control groups set, once, without allocating, for
//! [`processors`](crate::processors).
//!
//! # Protocol
//! `/proc/self/cgroup` names the process's group in each hierarchy. The quota
//! of the group and of each group above it counts; the smallest wins. Looked
//! for where distributions mount the hierarchies, under `/sys/fs/cgroup`; a
//! quota under another mount point is not seen.

use crate::sys::{Scratch, read_file};
use core::ffi::CStr;

/// The processor time per period, both in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quota {
    pub(crate) time: u64,
    pub(crate) period: u64,
}

impl Quota {
    /// Returns how many processors can run at the same time all the time, rounded up.
    pub(crate) fn processors(self) -> u32 {
        u32::try_from(self.time.div_ceil(self.period)).unwrap_or(u32::MAX).max(1)
    }

    fn is_below(self, other: Quota) -> bool {
        u128::from(self.time) * u128::from(other.period)
            < u128::from(other.time) * u128::from(self.period)
    }
}

/// The generation of a hierarchy: how it is named and how it writes quotas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Generation {
    /// Each group has one file, `cpu.max`.
    Unified,
    /// Each group has two files, in the hierarchy of the controller `cpu`.
    Legacy,
}

/// The places where distributions mount hierarchies.
const MOUNTS: [(Generation, &[u8]); 4] = [
    (Generation::Unified, b"/sys/fs/cgroup"),
    (Generation::Unified, b"/sys/fs/cgroup/unified"),
    (Generation::Legacy, b"/sys/fs/cgroup/cpu"),
    (Generation::Legacy, b"/sys/fs/cgroup/cpu,cpuacct"),
];

/// Returns the smallest quota over the process; `None` when there is none, or when
/// nothing can be read.
pub(crate) fn quota() -> Option<Quota> {
    let mut scratch = Scratch::new()?;
    // The list of groups, a path put together, a file's content.
    let (list, rest) = scratch.bytes().split_at_mut(Scratch::SIZE / 2);
    let (path, content) = rest.split_at_mut(Scratch::SIZE / 4);
    let list = read_file(c"/proc/self/cgroup", list)?;
    let mut smallest: Option<Quota> = None;
    for (generation, mount) in MOUNTS {
        let Some(group) = own_group(list, generation) else { continue };
        for group in up_to_root(group) {
            let found = match generation {
                Generation::Unified => {
                    read(path, content, &[mount, group, b"/cpu.max"]).and_then(parse_unified)
                }
                Generation::Legacy => {
                    let time =
                        read(path, content, &[mount, group, b"/cpu.cfs_quota_us"]).and_then(number);
                    let period = read(path, content, &[mount, group, b"/cpu.cfs_period_us"])
                        .and_then(number);
                    time.zip(period).and_then(|(time, period)| checked(time, period))
                }
            };
            if let Some(found) = found
                && smallest.is_none_or(|smallest| found.is_below(smallest))
            {
                smallest = Some(found);
            }
        }
    }
    smallest
}

/// Reads the file whose path is `parts` put together in `path`.
fn read<'a>(path: &mut [u8], content: &'a mut [u8], parts: &[&[u8]]) -> Option<&'a [u8]> {
    let mut length = 0;
    for part in parts {
        path.get_mut(length..length + part.len())?.copy_from_slice(part);
        length += part.len();
    }
    *path.get_mut(length)? = 0;
    read_file(CStr::from_bytes_with_nul(&path[..=length]).ok()?, content)
}

/// Returns the path of the process's group, from the text of `/proc/self/cgroup`. One
/// outside of the process's view of the hierarchy counts as the root.
fn own_group(list: &[u8], generation: Generation) -> Option<&[u8]> {
    list.split(|&byte| byte == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |&byte| byte == b':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match generation {
            Generation::Unified => number == b"0" && controllers.is_empty(),
            Generation::Legacy => controllers.split(|&byte| byte == b',').any(|c| c == b"cpu"),
        };
        let outside = path.starts_with(b"/..");
        ours.then_some(if outside { b"/" } else { path })
    })
}

/// Returns for `/a/b` that path, `/a`, and the root, written as the empty path.
fn up_to_root(group: &[u8]) -> impl Iterator<Item = &[u8]> {
    let own = group.strip_suffix(b"/").unwrap_or(group);
    core::iter::successors(Some(own), |path| {
        path.iter().rposition(|&byte| byte == b'/').map(|slash| &path[..slash])
    })
}

/// Parses `max 100000` or `150000 100000`.
fn parse_unified(text: &[u8]) -> Option<Quota> {
    let mut words = text.trim_ascii().split(|&byte| byte == b' ');
    checked(number(words.next()?)?, number(words.next()?)?)
}

fn checked(time: u64, period: u64) -> Option<Quota> {
    (period > 0).then_some(Quota { time, period })
}

/// Parses a whole number; `None` for `max`, `-1`, and whatever else is no number.
fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_quota_is_two_numbers() {
        let quota = |time, period| Some(Quota { time, period });
        assert_eq!(parse_unified(b"150000 100000\n"), quota(150_000, 100_000));
        assert_eq!(parse_unified(b"max 100000\n"), None);
        assert_eq!(parse_unified(b"100000\n"), None);
        assert_eq!(parse_unified(b"100000 0\n"), None);
        assert_eq!(parse_unified(b""), None);
        assert_eq!(parse_unified(b"\xff 1\n"), None);
    }

    #[test]
    fn quotas_round_up_to_whole_processors() {
        let processors = |time, period| Quota { time, period }.processors();
        assert_eq!(processors(150_000, 100_000), 2);
        assert_eq!(processors(200_000, 100_000), 2);
        assert_eq!(processors(1_000, 100_000), 1);
        assert_eq!(processors(0, 100_000), 1);
        assert_eq!(processors(u64::MAX, 1), u32::MAX);
    }

    #[test]
    fn the_smaller_of_two_quotas_is_the_smaller_fraction() {
        let half = Quota { time: 50_000, period: 100_000 };
        let third = Quota { time: 100_000, period: 300_000 };
        assert!(third.is_below(half));
        assert!(!half.is_below(third));
        assert!(!half.is_below(half));
    }

    const LIST: &[u8] = b"12:name=systemd:/\n4:cpu,cpuacct:/box/a:b\n1:cpuset:/x\n0::/user/me\n";

    #[test]
    fn the_group_is_found_in_both_generations() {
        assert_eq!(own_group(LIST, Generation::Unified), Some(&b"/user/me"[..]));
        assert_eq!(own_group(LIST, Generation::Legacy), Some(&b"/box/a:b"[..]));
        assert_eq!(own_group(b"1:cpuset:/x\n", Generation::Legacy), None);
        assert_eq!(own_group(b"0::/../../far\n", Generation::Unified), Some(&b"/"[..]));
        assert_eq!(own_group(b"", Generation::Unified), None);
    }

    #[test]
    fn every_group_up_to_the_root_is_visited() {
        let visited = |path: &'static [u8]| up_to_root(path).collect::<Vec<_>>();
        assert_eq!(visited(b"/a/b"), [&b"/a/b"[..], b"/a", b""]);
        assert_eq!(visited(b"/a"), [&b"/a"[..], b""]);
        assert_eq!(visited(b"/"), [&b""[..]]);
    }

    #[test]
    fn reading_the_real_groups_neither_fails_nor_invents() {
        if let Some(quota) = quota() {
            assert!(quota.period > 0);
        }
    }

    #[test]
    fn a_path_that_does_not_fit_is_not_read() {
        let (mut path, mut content) = ([0; 8], [0; 8]);
        assert_eq!(read(&mut path, &mut content, &[b"/proc/self", b"/stat"]), None);
    }
}
