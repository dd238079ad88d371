//! Which processors are near which: cores, last-level caches, memory nodes.
//!
//! # Role
//! Says how the processors that this process may use are laid out, as far as the system
//! tells, and picks the pairs between which distances are measured. Where they do not
//! come in equal parts (a mask leaves some out), they count as cores of one cache.

use std::collections::BTreeSet;
use std::fs;

/// `nodes` × `caches` × `cores` × `threads` processors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessorLayout {
    /// The number of memory nodes.
    pub nodes: usize,
    /// Last-level caches of a node.
    pub caches: usize,
    /// Cores of such a cache.
    pub cores: usize,
    /// Threads of a core.
    pub threads: usize,
    processors: Vec<Processor>,
}

/// A processor and what it shares with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Processor {
    number: usize,
    core: usize,
    cache: usize,
    node: usize,
}

/// A pair of logical processors.
pub(super) type ProcessorPair = (usize, usize);

/// The most pairs of one distance that are looked at.
const PAIRS: usize = 6;

impl ProcessorLayout {
    /// Returns the layout of the processors that this process may use.
    pub(super) fn here() -> Self {
        Self::of(allowed().into_iter().map(processor).collect())
    }

    fn of(processors: Vec<Processor>) -> Self {
        let count = |what: fn(&Processor) -> usize| {
            processors.iter().map(what).collect::<BTreeSet<_>>().len()
        };
        let (nodes, caches) = (count(|p| p.node), count(|p| p.cache));
        let (cores, all) = (count(|p| p.core), processors.len());
        let equal = |what: fn(&Processor) -> usize, groups: usize| {
            processors.iter().all(|p| {
                let here = processors.iter().filter(|other| what(other) == what(p)).count();
                here * groups == all
            })
        };
        let regular = equal(|p| p.node, nodes)
            && equal(|p| p.cache, caches)
            && equal(|p| p.core, cores)
            && caches % nodes == 0
            && cores % caches == 0;
        if !regular {
            return ProcessorLayout { nodes: 1, caches: 1, cores: all, threads: 1, processors };
        }
        ProcessorLayout {
            nodes,
            caches: caches / nodes,
            cores: cores / caches,
            threads: all / cores,
            processors,
        }
    }

    /// Returns the first processor that may be used.
    pub(super) fn first(&self) -> usize {
        self.processors.first().map_or(0, |p| p.number)
    }

    /// Returns two threads of one core.
    pub(super) fn siblings(&self) -> Option<ProcessorPair> {
        if self.threads < 2 {
            return None;
        }
        self.pairs_where(|one, other| one.core == other.core).first().copied()
    }

    /// Lists pairs by distance: within a last-level cache, between two of a node, between nodes.
    /// Distances that do not exist have none.
    pub(super) fn pairs(&self) -> [Vec<ProcessorPair>; 3] {
        if self.nodes * self.caches == 1 {
            let near =
                |one: &Processor, other: &Processor| self.threads == 1 || one.core != other.core;
            return [self.pairs_where(near), Vec::new(), Vec::new()];
        }
        [
            self.pairs_where(|one, other| one.cache == other.cache && one.core != other.core),
            self.pairs_where(|one, other| one.node == other.node && one.cache != other.cache),
            self.pairs_where(|one, other| one.node != other.node),
        ]
    }

    /// Returns some of the pairs for which that holds, spread over all.
    fn pairs_where(&self, holds: impl Fn(&Processor, &Processor) -> bool) -> Vec<ProcessorPair> {
        let mut all = Vec::new();
        for (at, one) in self.processors.iter().enumerate() {
            for other in self.processors[at + 1..].iter().filter(|other| holds(one, other)) {
                all.push((one.number, other.number));
            }
        }
        let step = all.len().div_ceil(PAIRS).max(1);
        all.into_iter().step_by(step).collect()
    }
}

/// Returns the processors that the calling thread may use.
pub(crate) fn allowed() -> Vec<usize> {
    // SAFETY: by ZEROED-BITS zero is a valid value of this plain C structure.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local variable of the size that is given.
    let read = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    let number = libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the size of the set.
    let inside = |cpu: &usize| read == 0 && unsafe { libc::CPU_ISSET(*cpu, &set) };
    let some: Vec<usize> = (0..number).filter(inside).collect();
    if some.is_empty() { vec![0] } else { some }
}

fn processor(number: usize) -> Processor {
    let folder = format!("/sys/devices/system/cpu/cpu{number}");
    let first = |file: &str| list(&format!("{folder}/{file}")).first().copied();
    let core = first("topology/thread_siblings_list").unwrap_or(number);
    let last = (0..8).rev().find_map(|index| first(&format!("cache/index{index}/shared_cpu_list")));
    let node = fs::read_dir(&folder).ok().and_then(|entries| {
        entries
            .flatten()
            .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
    });
    Processor { number, core, cache: last.unwrap_or(0), node: node.unwrap_or(0) }
}

/// Returns the numbers of a list such as `0-3,8`.
fn list(file: &str) -> Vec<usize> {
    fs::read_to_string(file).map(|text| numbers(text.trim())).unwrap_or_default()
}

fn numbers(text: &str) -> Vec<usize> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 2 nodes of 2 caches of 2 cores of 2 threads.
    fn sixteen() -> Vec<Processor> {
        (0..16)
            .map(|number| Processor {
                number,
                core: number / 2,
                cache: number / 4,
                node: number / 8,
            })
            .collect()
    }

    #[test]
    fn equal_parts_are_a_layout() {
        let layout = ProcessorLayout::of(sixteen());
        assert_eq!((layout.nodes, layout.caches, layout.cores, layout.threads), (2, 2, 2, 2));
        let [near, beside, far] = layout.pairs();
        assert!(near.iter().all(|&(a, b)| a / 4 == b / 4 && a / 2 != b / 2), "{near:?}");
        assert!(beside.iter().all(|&(a, b)| a / 8 == b / 8 && a / 4 != b / 4), "{beside:?}");
        assert!(far.iter().all(|&(a, b)| a / 8 != b / 8), "{far:?}");
        assert!([near, beside, far].iter().all(|pairs| (1..=PAIRS).contains(&pairs.len())));
        assert!(layout.siblings().is_some_and(|(a, b)| a / 2 == b / 2));
    }

    #[test]
    fn unequal_parts_are_cores_of_one_cache() {
        let layout = ProcessorLayout::of(sixteen().split_off(3));
        assert_eq!((layout.nodes, layout.caches, layout.cores, layout.threads), (1, 1, 13, 1));
        let [near, beside, far] = layout.pairs();
        assert!(!near.is_empty() && beside.is_empty() && far.is_empty());
    }

    #[test]
    fn one_processor_has_nobody_beside_it() {
        let layout = ProcessorLayout::of(sixteen()[..1].to_vec());
        assert_eq!((layout.cores, layout.threads, layout.siblings()), (1, 1, None));
        assert!(layout.pairs().iter().all(Vec::is_empty));
    }

    #[test]
    fn the_systems_lists_are_read() {
        assert_eq!(numbers("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(numbers(""), [0; 0]);
        assert!(!allowed().is_empty());
    }
}
