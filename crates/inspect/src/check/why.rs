//! How one lock came to be before another.
//!
//! # Role
//! Pure data: the shortest chain of pairs that leads from one lock to the other in
//! an order that a report kept. Nothing in it is trusted, for somebody may have
//! edited the file.

use super::order::{RecordedEdge, RecordedOrder};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// The locks that a word means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// These; if they are several, they are of one name or one class.
    Locks(BTreeSet<usize>),
    /// Locks of several names, which are these.
    Several(Vec<String>),
    /// The word means no lock.
    Nothing,
}

/// A way from one lock to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderPath {
    /// The pairs, each beginning where the one before it ends.
    pub edges: Vec<RecordedEdge>,
    /// They meet in classes only: a pair begins with another lock of the class
    /// that the one before it ends with.
    pub by_class: bool,
}

/// Returns which locks a word means: a name, a class, or a part of one name.
#[must_use]
pub fn meant(order: &RecordedOrder, word: &str) -> Meant {
    let that = |fits: &dyn Fn(&super::model::LockIdentity) -> bool| -> BTreeSet<usize> {
        let all = order.locks.iter().enumerate();
        all.filter(|(_, lock)| fits(lock)).map(|(at, _)| at).collect()
    };
    for exact in [that(&|lock| lock.name == word), that(&|lock| lock.class == word)] {
        if !exact.is_empty() {
            return Meant::Locks(exact);
        }
    }
    let parts = that(&|lock| lock.name.contains(word) || lock.class.contains(word));
    let of = |what: fn(&super::model::LockIdentity) -> &String| -> BTreeSet<&String> {
        parts.iter().map(|&at| what(&order.locks[at])).collect()
    };
    let (names, classes) = (of(|lock| &lock.name), of(|lock| &lock.class));
    match (parts.len(), names.len(), classes.len()) {
        (0, ..) => Meant::Nothing,
        (_, 1, _) | (_, _, 1) => Meant::Locks(parts),
        _ => Meant::Several(names.into_iter().cloned().collect()),
    }
}

/// Returns the shortest way from one of these locks to one of those.
#[must_use]
pub fn way(
    order: &RecordedOrder,
    from: &BTreeSet<usize>,
    to: &BTreeSet<usize>,
) -> Option<OrderPath> {
    let itself = |at: usize| at as u64;
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    for lock in &order.locks {
        let next = numbers.len() as u64;
        numbers.entry(&lock.class).or_insert(next);
    }
    // A lock that is not there is of no class, not of one with others.
    let of_class = |at: usize| match order.locks.get(at) {
        Some(lock) => numbers[lock.class.as_str()],
        None => at as u64 | 1 << 63,
    };
    let found =
        shortest(order, from, to, &itself).map(|edges| OrderPath { edges, by_class: false });
    found.or_else(|| {
        shortest(order, from, to, &of_class).map(|edges| OrderPath { edges, by_class: true })
    })
}

/// Searches in breadth over what `node` makes of locks.
fn shortest(
    order: &RecordedOrder,
    from: &BTreeSet<usize>,
    to: &BTreeSet<usize>,
    node: &dyn Fn(usize) -> u64,
) -> Option<Vec<RecordedEdge>> {
    let mut out: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, edge) in order.edges.iter().enumerate() {
        out.entry(node(edge.from)).or_default().push(at);
    }
    let ends: HashSet<u64> = to.iter().map(|&at| node(at)).collect();
    let mut reached: HashMap<u64, Option<usize>> = HashMap::new();
    let mut queue: VecDeque<u64> = VecDeque::new();
    for start in from.iter().map(|&at| node(at)) {
        if reached.insert(start, None).is_none() {
            queue.push_back(start);
        }
    }
    while let Some(here) = queue.pop_front() {
        for &at in out.get(&here).into_iter().flatten() {
            let next = node(order.edges[at].to);
            if ends.contains(&next) {
                let mut way = vec![order.edges[at].clone()];
                let mut before = here;
                while let Some(Some(edge)) = reached.get(&before) {
                    way.push(order.edges[*edge].clone());
                    before = node(order.edges[*edge].from);
                }
                way.reverse();
                return Some(way);
            }
            reached.entry(next).or_insert_with(|| {
                queue.push_back(next);
                Some(at)
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::model::LockIdentity;

    /// Makes a report of locks by name and class, and which comes before which.
    fn order(locks: &[(&str, &str)], pairs: &[(usize, usize)]) -> RecordedOrder {
        let lock = |&(name, class): &(&str, &str)| LockIdentity {
            name: name.into(),
            class: class.into(),
            ..LockIdentity::default()
        };
        let edge =
            |&(from, to): &(usize, usize)| RecordedEdge { from, to, ..RecordedEdge::default() };
        RecordedOrder {
            locks: locks.iter().map(lock).collect(),
            edges: pairs.iter().map(edge).collect(),
            ..RecordedOrder::default()
        }
    }

    fn pairs(way: &OrderPath) -> Vec<(usize, usize)> {
        way.edges.iter().map(|edge| (edge.from, edge.to)).collect()
    }

    fn set(all: &[usize]) -> BTreeSet<usize> {
        all.iter().copied().collect()
    }

    #[test]
    fn the_shortest_way_is_found_and_none_that_is_not_there() {
        let names = [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")];
        let order = order(&names, &[(0, 1), (1, 2), (2, 3), (0, 2), (3, 0)]);
        let found = way(&order, &set(&[0]), &set(&[3])).expect("a way");
        assert_eq!((pairs(&found), found.by_class), (vec![(0, 2), (2, 3)], false));
        let found = way(&order, &set(&[1]), &set(&[1])).expect("a cycle");
        assert_eq!(pairs(&found), [(1, 2), (2, 3), (3, 0), (0, 1)]);
        assert_eq!(way(&self::order(&names, &[(0, 1)]), &set(&[1]), &set(&[0])), None);
    }

    #[test]
    fn classes_connect_what_locks_do_not() {
        let names = [("a", "a"), ("m1", "m"), ("m2", "m"), ("b", "b")];
        let found = way(&order(&names, &[(0, 1), (2, 3)]), &set(&[0]), &set(&[3])).expect("a way");
        assert_eq!((pairs(&found), found.by_class), (vec![(0, 1), (2, 3)], true));
    }

    #[test]
    fn a_word_means_a_name_a_class_or_one_part() {
        let names = [("journal", "journal"), ("m from f, #1", "ms from f"), ("jar", "jar")];
        let mut order = order(&names, &[]);
        order.locks.push(LockIdentity { name: "m from f, #2".into(), ..order.locks[1].clone() });
        assert_eq!(meant(&order, "jar"), Meant::Locks(set(&[2])));
        assert_eq!(meant(&order, "ms from f"), Meant::Locks(set(&[1, 3])));
        assert_eq!(meant(&order, "#2"), Meant::Locks(set(&[3])));
        assert_eq!(meant(&order, "m from"), Meant::Locks(set(&[1, 3])), "of one class");
        assert_eq!(meant(&order, "j"), Meant::Several(vec!["jar".into(), "journal".into()]));
        assert_eq!(meant(&order, "x"), Meant::Nothing);
    }

    #[test]
    fn places_that_are_not_there_lead_nowhere() {
        let order = order(&[("a", "a")], &[(0, 7), (7, usize::MAX), (9, 0)]);
        assert_eq!(way(&order, &set(&[0]), &set(&[0])), None);
        assert!(way(&order, &set(&[0]), &set(&[usize::MAX])).is_some());
    }
}
