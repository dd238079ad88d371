//! What is known of all locks of a cluster at one moment: who holds, who waits, who waits for each other.
//!
//! From the places in the queues alone, each of which says who stands there; read in one request, so that
//! all of it was true at the same revision. What the threads of one host wait for locally is added by
//! whoever knows it ([`Survey::add_local`]).

use crate::error::ClusterError;
use crate::etcd::wire::{Get, Pair};
use crate::etcd::{Client, ClientOptions};
use crate::hold::TURNS;
use crate::protocol::{Held, LockKeys, Who, forget, permits_of, unescape};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A thread of any host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadName {
    /// The name of its host.
    pub host: String,
    /// The number of its process.
    pub pid: u32,
    /// The number of the thread.
    pub tid: u32,
}

/// A place in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The thread that asked for the lock.
    pub thread: ThreadName,
    /// The name of the thread.
    pub thread_name: String,
    /// The name of the program.
    pub program: String,
    /// Where in its source the lock was asked for.
    pub place: String,
    /// Whether it holds the lock.
    pub holds: bool,
    /// How it wants it: `write`, `read`, or so many permits.
    pub mode: String,
    /// Seconds since 1970, by its host's clock, at which it asked.
    pub since: u64,
    /// The fencing token of the place.
    pub token: u64,
    /// The number of its session's lease.
    pub lease: i64,
    /// What a leader says of itself.
    pub says: String,
    /// The lease of the lock that its program is a command under (`lockstead cluster lock`); 0: of none.
    pub under: i64,
}

/// A lock that somebody has, waits for, or has left in disorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockState {
    /// The name of the lock.
    pub name: String,
    /// The queue, in its order.
    pub places: Vec<Place>,
    /// An owner died and nobody has called consistent what it left.
    pub owner_died: bool,
    /// Nobody gets it any more.
    pub not_recoverable: bool,
}

/// A thread that waits for another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edge {
    /// The thread that waits.
    pub waiter: ThreadName,
    /// The thread that it waits for.
    pub holder: ThreadName,
    /// The lock that it waits for.
    pub lock: String,
    /// It is a lock within one host.
    pub local: bool,
    /// It is no lock: the waiter has started a command under the lock, in which the other one runs.
    #[serde(default)]
    pub command: bool,
    /// Where the waiter asked for it.
    pub place: String,
}

/// All locks of a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// The revision of etcd at which this was so.
    pub revision: i64,
    /// The locks, by name.
    pub locks: Vec<LockState>,
    /// The threads that wait, and for whom.
    pub edges: Vec<Edge>,
    /// Threads that wait for each other, each as the edges around.
    pub cycles: Vec<Vec<Edge>>,
}

/// What an administrator does with the locks of a cluster, without a session.
pub struct Surveyor {
    client: Client,
    root: String,
}

impl Surveyor {
    /// Prepares to look at the locks below `root`; nothing is sent.
    ///
    /// # Errors
    /// [`ClusterError::Options`].
    pub fn new(options: ClientOptions, root: &str) -> Result<Self, ClusterError> {
        Ok(Surveyor { client: Client::new(options)?, root: root.to_owned() })
    }

    /// Looks at all locks, in one request.
    ///
    /// # Errors
    /// As a request.
    pub fn look(&self) -> Result<Survey, ClusterError> {
        let prefix = format!("{}/lock/", self.root);
        let (revision, pairs) = self.client.get(&Get::all(&prefix))?;
        Ok(Survey::of(revision, &prefix, &pairs))
    }

    /// Takes a lock away from whoever holds it, by ending the session's lease: all that the session
    /// holds is lost. It learns so within a third of its lease, and may write until then. Returns the
    /// places that were removed.
    ///
    /// A lock that nobody holds is freed of what the dead left behind.
    ///
    /// # Errors
    /// As a request.
    pub fn release_by_force(&self, name: &str) -> Result<Vec<Place>, ClusterError> {
        let survey = self.look()?;
        let holders: Vec<Place> = survey
            .locks
            .into_iter()
            .filter(|lock| lock.name == name)
            .flat_map(|lock| lock.places)
            .filter(|place| place.holds)
            .collect();
        for lease in holders.iter().map(|place| place.lease).collect::<BTreeSet<_>>() {
            self.client.revoke(lease)?;
        }
        if holders.is_empty() {
            self.client.txn(&forget(&LockKeys::new(&self.root, name)), &mut false)?;
        }
        Ok(holders)
    }

    /// Returns the seconds for which a lease was made and those left; `None` if it has ended.
    ///
    /// # Errors
    /// As a request.
    pub fn lease(&self, lease: i64) -> Result<Option<(i64, i64)>, ClusterError> {
        self.client.time_to_live(lease)
    }
}

fn place(pair: &Pair) -> Place {
    let who = Who::read(&pair.value);
    let letter = pair.key.rsplit('/').next().and_then(|place| place.chars().next());
    let mode = match (letter, permits_of(&pair.key)) {
        (Some('r'), _) => "read".into(),
        (_, Some((want, of))) => format!("{want} of {of}"),
        _ => "write".into(),
    };
    Place {
        thread: ThreadName { host: who.host, pid: who.pid, tid: who.tid },
        thread_name: who.thread,
        program: who.program,
        place: who.place,
        holds: false,
        mode,
        since: who.since,
        token: u64::try_from(pair.created).unwrap_or(0) * TURNS,
        lease: pair.lease,
        says: who.says,
        under: who.under,
    }
}

/// Says of each place whether it is in: CLUSTER-FIRST, for all modes.
fn who_is_in(places: &mut [Place], permits: &[Option<(u32, u32)>]) {
    let (mut writers, mut used, mut full) = (0, 0_u64, false);
    for at in 0..places.len() {
        places[at].holds = match (places[at].mode.as_str(), permits[at]) {
            (_, Some((want, of))) => {
                used += u64::from(want);
                full |= used > u64::from(of);
                !full
            }
            ("read", _) => writers == 0,
            _ => at == 0,
        };
        writers += u32::from(places[at].mode == "write");
    }
}

impl Survey {
    fn of(revision: i64, prefix: &str, pairs: &[Pair]) -> Survey {
        let mut locks: BTreeMap<String, (Vec<&Pair>, Option<Held>, bool)> = BTreeMap::new();
        for pair in pairs {
            let Some((name, rest)) =
                pair.key.strip_prefix(prefix).and_then(|rest| rest.split_once('/'))
            else {
                continue;
            };
            let lock = locks.entry(unescape(name)).or_default();
            match rest {
                "held" => lock.1 = Held::read(&pair.value),
                "broken" => lock.2 = true,
                rest if rest.starts_with("q/") => lock.0.push(pair),
                _ => {}
            }
        }
        let mut survey =
            Survey { revision, locks: Vec::new(), edges: Vec::new(), cycles: Vec::new() };
        for (name, (queue, held, not_recoverable)) in locks {
            let permits: Vec<_> = queue.iter().map(|pair| permits_of(&pair.key)).collect();
            let mut places: Vec<Place> = queue.iter().map(|pair| place(pair)).collect();
            who_is_in(&mut places, &permits);
            let owner_died = held.is_some_and(|held| {
                held.died
                    || !queue.iter().any(|pair| pair.key.ends_with(&format!("/{}", held.place)))
            });
            if places.is_empty() && !owner_died && !not_recoverable {
                continue;
            }
            survey.add_edges(&name, &places);
            survey.locks.push(LockState { name, places, owner_died, not_recoverable });
        }
        survey.add_commands();
        survey.find_cycles();
        survey
    }

    fn add_edges(&mut self, name: &str, places: &[Place]) {
        for (at, waiter) in places.iter().enumerate().filter(|(_, place)| !place.holds) {
            // Those that hold, and those that wait before it: it is their turn first.
            let before = places[..at].iter();
            let before = before.filter(|other| {
                !(waiter.mode == "read" && other.mode == "read") || waiter.thread == other.thread
            });
            for other in before {
                self.edges.push(Edge {
                    waiter: waiter.thread.clone(),
                    holder: other.thread.clone(),
                    lock: name.to_owned(),
                    local: false,
                    command: false,
                    place: waiter.place.clone(),
                });
            }
        }
    }

    /// Adds that who has a lock for a command gives it back only after what that command waits for.
    fn add_commands(&mut self) {
        let places =
            || self.locks.iter().flat_map(|lock| lock.places.iter().map(move |p| (lock, p)));
        let within = || places().filter(|(_, place)| place.under != 0);
        let pairs = within().flat_map(|(_, inner)| {
            places()
                .filter(|(_, outer)| outer.lease == inner.under)
                .map(move |outer| (outer, inner))
        });
        let edges = pairs.map(|((lock, outer), inner)| Edge {
            waiter: outer.thread.clone(),
            holder: inner.thread.clone(),
            lock: lock.name.clone(),
            local: false,
            command: true,
            place: outer.place.clone(),
        });
        let edges: Vec<Edge> = edges.collect();
        self.edges.extend(edges);
    }

    /// Adds who waits for whom within one host, and looks for cycles again.
    pub fn add_local(&mut self, edges: impl IntoIterator<Item = Edge>) {
        self.edges.extend(edges);
        self.find_cycles();
    }

    /// Finds a shortest cycle through each thread that is in one; each cycle once.
    fn find_cycles(&mut self) {
        self.edges.sort();
        self.edges.dedup();
        let mut from: BTreeMap<&ThreadName, Vec<&Edge>> = BTreeMap::new();
        for edge in &self.edges {
            from.entry(&edge.waiter).or_default().push(edge);
        }
        let (mut cycles, mut known) = (Vec::new(), BTreeSet::new());
        for start in from.keys() {
            // Breadth first, with the edge by which each thread was reached.
            let mut reached: BTreeMap<&ThreadName, &Edge> = BTreeMap::new();
            let mut left = std::collections::VecDeque::from([*start]);
            while let Some(thread) = left.pop_front() {
                for edge in from.get(thread).into_iter().flatten() {
                    if let std::collections::btree_map::Entry::Vacant(new) =
                        reached.entry(&edge.holder)
                    {
                        new.insert(edge);
                        left.push_back(&edge.holder);
                    }
                }
            }
            let Some(mut edge) = reached.get(start) else { continue };
            let mut cycle = vec![(*edge).clone()];
            while edge.waiter != **start {
                edge = &reached[&edge.waiter];
                cycle.push((*edge).clone());
            }
            cycle.reverse();
            let mut threads: Vec<_> = cycle.iter().map(|edge| edge.waiter.clone()).collect();
            threads.sort();
            if known.insert(threads) {
                cycles.push(cycle);
            }
        }
        self.cycles = cycles;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, created: i64, tid: u32) -> Pair {
        let who = Who { host: "h".into(), pid: 1, tid, place: "f.rs:1".into(), ..Who::default() };
        let value = who.to_json().into_bytes();
        Pair { key: format!("r/lock/{key}"), value, created, changed: created, lease: 7 }
    }

    #[test]
    fn threads_that_wait_for_each_other_are_a_cycle_also_through_a_local_lock() {
        let pairs = [
            pair("a/q/w-1-1", 1, 1),
            pair("b/q/w-2-1", 2, 2),
            pair("a/q/w-2-2", 3, 2),
            pair("c/q/w-3-1", 4, 3),
        ];
        let mut survey = Survey::of(9, "r/lock/", &pairs);
        assert_eq!(survey.cycles, Vec::<Vec<Edge>>::new());
        let thread = |tid| ThreadName { host: "h".into(), pid: 1, tid };
        survey.add_local([Edge {
            waiter: thread(1),
            holder: thread(2),
            lock: "0x10".into(),
            local: true,
            command: false,
            place: String::new(),
        }]);
        assert_eq!(survey.cycles.len(), 1);
        let locks: Vec<_> = survey.cycles[0].iter().map(|edge| edge.lock.as_str()).collect();
        assert_eq!(locks, ["0x10", "a"]);
    }

    #[test]
    fn who_runs_a_command_under_a_lock_waits_for_what_that_command_waits_for() {
        let place = |key: &str, created: i64, pid: u32, lease: i64, under: i64| {
            let who = Who { host: "h".into(), pid, tid: pid, under, ..Who::default() };
            let value = who.to_json().into_bytes();
            Pair { key: format!("r/lock/{key}"), value, created, changed: created, lease }
        };
        // The command under `a`, of lease 1, takes `b` and waits for `c`: nobody waits for each other.
        let mut pairs = vec![
            place("a/q/w-1-1", 1, 1, 1, 0),
            place("b/q/w-2-1", 2, 2, 2, 1),
            place("c/q/w-9-1", 3, 9, 9, 8),
            place("c/q/w-2-2", 4, 2, 2, 1),
        ];
        assert_eq!(Survey::of(9, "r/lock/", &pairs).cycles, Vec::<Vec<Edge>>::new());
        // Now who has `c` waits for `a`.
        pairs.push(place("a/q/w-9-2", 5, 9, 9, 8));
        let survey = Survey::of(9, "r/lock/", &pairs);
        assert_eq!(survey.cycles.len(), 1);
        let edges = survey.cycles[0].iter();
        let edges: Vec<_> =
            edges.map(|edge| (edge.waiter.pid, edge.holder.pid, edge.command)).collect();
        assert_eq!(edges, [(1, 2, true), (2, 9, false), (9, 1, false)]);
    }

    #[test]
    fn a_thread_that_waits_for_itself_is_a_cycle_of_one() {
        let survey = Survey::of(9, "r/lock/", &[pair("a/q/w-1-1", 1, 1), pair("a/q/w-1-2", 2, 1)]);
        assert_eq!(survey.cycles.len(), 1);
        assert_eq!(survey.cycles[0].len(), 1);
    }

    #[test]
    fn who_is_in_follows_the_order_of_the_queue() {
        let is_in = |keys: &[&str]| -> Vec<bool> {
            let pairs: Vec<_> = keys.iter().zip(1..).map(|(key, at)| pair(key, at, 1)).collect();
            Survey::of(9, "r/lock/", &pairs).locks[0].places.iter().map(|p| p.holds).collect()
        };
        assert_eq!(
            is_in(&["a/q/r-1-1", "a/q/r-1-2", "a/q/w-1-3", "a/q/r-1-4"]),
            [true, true, false, false]
        );
        assert_eq!(
            is_in(&["s/q/s-2of3-1-1", "s/q/s-2of3-1-2", "s/q/s-1of3-1-3"]),
            [true, false, false]
        );
    }
}
