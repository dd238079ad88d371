//! Locks that processes share: where such a lock lies for each of them, and cycles that lead
//! through several processes.
//!
//! # What a cycle rests on
//! Each member's ledger says for which lock it waits without a deadline, and which it holds, and
//! has said so at two looks, so all the time between. Locks in memory that is shared are the same
//! one if they lie at the same place of the same file; so the kernel's futex calls have it, too.
//! The word of a mutex names its owner beside that, and has to agree. Of locks of lockstead's in
//! segments the ledger has no holders: [the segment](super::segments) has them, at both looks. Such a
//! cycle may stay in one process.

use super::processes::Observed;
use super::segments::Segments;
use super::watch::ProcessWatch;
use lockstead_inspect::maps::Maps;
use lockstead_inspect::memory::{ProcessMemory, ReadableMemory};
use lockstead_inspect::proc::status::StatusFile;
use lockstead_inspect::waits::graph::{self, GraphHold, GraphWait, Wants};
use lockstead_inspect::waits::modes::HoldMode;
use lockstead_inspect::waits::observe::LastingWaiter;
use lockstead_ledger::lock::attribute;
use lockstead_ledger::publish::{Episode, Flags, Holding, WaitKind};
use lockstead_render::words::clean;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks at waits in several processes.
const LOOK: Duration = Duration::from_millis(100);
/// The place where glibc's mutex names its owner.
const MUTEX_OWNER: u64 = 8;

/// A place in shared memory, the same for whoever has mapped it: the file, and the offset in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SharedPlace {
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    pub(super) offset: u64,
}

/// Returns where an address of a process lies, if others can share it.
pub(super) fn place(process: &Observed, address: u64) -> Option<SharedPlace> {
    let maps = Maps::of(process.pid).ok()?;
    let mapping = maps.find(address).filter(|mapping| mapping.shared)?;
    let (device, inode) = (mapping.device, mapping.inode);
    Some(SharedPlace { device, inode, offset: mapping.file_offset(address) })
}

/// Returns the addresses at which a process has that place.
pub(super) fn addresses(process: &Observed, place: SharedPlace) -> Vec<u64> {
    let Ok(maps) = Maps::of(process.pid) else { return Vec::new() };
    let of_file = maps.iter().filter(|mapping| {
        mapping.shared && mapping.device == place.device && mapping.inode == place.inode
    });
    let address = of_file.filter_map(|mapping| {
        let address = mapping.range.start.wrapping_add(place.offset.checked_sub(mapping.offset)?);
        mapping.range.contains(&address).then_some(address)
    });
    address.collect()
}

/// Returns the number of the thread that a mutex names as its owner, if it can be read.
pub(super) fn owner_by_word(process: &Observed, mutex: u64) -> Option<u32> {
    let mut owner = [0; 4];
    let read = ProcessMemory::new(process.pid).read(mutex + MUTEX_OWNER, &mut owner);
    matches!(read, Ok(4)).then(|| u32::from_ne_bytes(owner)).filter(|&tid| tid != 0)
}

/// Returns whether the process has a thread of that number.
pub(super) fn is_thread_of(process: &Observed, tid: u32) -> bool {
    fs::exists(format!("/proc/{}/task/{tid}", process.pid)).unwrap_or(false)
}

/// Returns the process of a thread that is not one of this process, `prog (pid 12)`, if there is
/// one of that number.
pub(super) fn process_of(process: &Observed, tid: u32) -> Option<String> {
    let status = StatusFile::read(&format!("/proc/{tid}/status")).ok()?;
    let of = status.number("Tgid").and_then(|of| u32::try_from(of).ok())?;
    let is_other = process.visible && of != process.pid;
    is_other.then(|| format!("{} (pid {of})", name(of).unwrap_or_else(|| "a program".into())))
}

/// Returns what a thread is called.
pub(super) fn name(tid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    Some(clean(String::from_utf8_lossy(&name).trim_end()))
}

/// A thread of a cycle.
#[derive(Clone)]
pub(super) struct CrossMember {
    pub(super) process: Arc<Observed>,
    pub(super) waiter: LastingWaiter,
    /// What it holds, and the member before it waits for.
    pub(super) holding: Holding,
}

/// A process, a thread of it, and the wait in which it is.
type Who = (usize, u32, Episode);

fn who(process: &Arc<Observed>, waiter: &LastingWaiter) -> Who {
    (Arc::as_ptr(process) as usize, waiter.thread, waiter.episode)
}

/// The name of a lock, the same in all processes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Shared(SharedPlace),
    Private(usize, u64),
}

/// Looks for cycles through several processes.
pub(super) struct CrossCycles {
    next: Instant,
    /// The keys of those that waited at the last look, kept because maps take long to read.
    keys: HashMap<(Who, u64), Key>,
    /// The cycles of the last look.
    before: HashSet<Vec<Who>>,
    /// The waits that are in a cycle that was reported.
    dead: HashSet<Who>,
}

impl CrossCycles {
    pub(super) fn new(now: Instant) -> Self {
        let (keys, before, dead) = Default::default();
        CrossCycles { next: now, keys, before, dead }
    }

    /// Returns whether this thread's wait is part of a cycle that was reported.
    pub(super) fn is_dead(&self, process: &Arc<Observed>, waiter: &LastingWaiter) -> bool {
        self.dead.contains(&who(process, waiter))
    }

    /// Returns whether a thread of the process is in a cycle that was reported.
    pub(super) fn has_dead(&self, process: &Arc<Observed>) -> bool {
        self.dead.iter().any(|who| who.0 == Arc::as_ptr(process) as usize)
    }

    /// Returns the cycles that have closed, each once; members in the order in which they wait.
    pub(super) fn look(
        &mut self,
        live: &[(Arc<Observed>, ProcessWatch)],
        now: Instant,
    ) -> Vec<Vec<CrossMember>> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + LOOK;
        let waiters: Vec<(&Arc<Observed>, LastingWaiter)> = live
            .iter()
            .filter(|(process, _)| process.visible)
            .flat_map(|(process, watch)| {
                watch.complete(process).into_iter().map(move |waiter| (process, waiter))
            })
            .filter(|(process, waiter)| is_for_ever(waiter) && !self.is_dead(process, waiter))
            .collect();
        let waiting: Vec<(&Arc<Observed>, &LastingWaiter)> =
            waiters.iter().map(|(process, waiter)| (*process, waiter)).collect();
        let mut processes = waiting.iter().map(|(process, _)| Arc::as_ptr(process));
        let first = processes.next();
        let in_segment = |(process, waiter): &(&Arc<Observed>, &LastingWaiter)| {
            is_in_segment(process, waiter.waiting.target)
        };
        if processes.all(|process| Some(process) == first) && !waiting.iter().any(in_segment) {
            self.before.clear();
            self.keys.clear();
            return Vec::new();
        }
        let (waits, holds) = self.edges(&waiting);
        let (mut cycles, mut found) = (HashSet::new(), Vec::new());
        let graph_holds: Vec<GraphHold> = holds.iter().map(|(hold, _)| *hold).collect();
        for cycle in graph::cycles(&waits, &graph_holds) {
            let before = cycle.members.iter().cycle().skip(cycle.members.len() - 1);
            let members = cycle.members.iter().zip(before).map(|(member, before)| {
                let (process, waiter) = waiting[member.thread as usize];
                let holding = holds.iter().find(|(hold, _)| {
                    hold.thread == member.thread && Some(hold.lock) == before.wants.lock()
                });
                let (process, waiter) = (process.clone(), waiter.clone());
                Some(CrossMember { process, waiter, holding: holding?.1 })
            });
            // In a queue behind another one, who holds nothing of it.
            let Some(members) = members.collect::<Option<Vec<CrossMember>>>() else { continue };
            let crosses = members.iter().any(|m| !Arc::ptr_eq(&m.process, &members[0].process));
            let is_new = members.iter().any(|m| in_segment(&(&m.process, &m.waiter)));
            if !crosses && !is_new {
                continue;
            }
            let mut whos: Vec<Who> =
                members.iter().map(|member| who(&member.process, &member.waiter)).collect();
            whos.sort_unstable_by_key(|who| (who.0, who.1));
            if self.before.contains(&whos) && agree(&members) {
                self.dead.extend(whos.iter().copied());
                found.push(members);
            }
            cycles.insert(whos);
        }
        self.before = cycles;
        found
    }

    /// Returns who of these waits for which lock, and who holds which of them and how, each with what
    /// is known of that.
    fn edges(
        &mut self,
        waiting: &[(&Arc<Observed>, &LastingWaiter)],
    ) -> (Vec<GraphWait>, Vec<(GraphHold, Holding)>) {
        let known = std::mem::take(&mut self.keys);
        let mut key = |process: &Arc<Observed>, waiter: &LastingWaiter, address: u64| {
            let named = (who(process, waiter), address);
            let found =
                known.get(&named).copied().unwrap_or_else(|| match place(process, address) {
                    Some(place) => Key::Shared(place),
                    None => Key::Private(named.0.0, address),
                });
            self.keys.insert(named, found);
            found
        };
        let (mut numbers, mut segments) = (HashMap::new(), Segments::default());
        let mut number = |key: Key| {
            let next = numbers.len() as u64;
            *numbers.entry(key).or_insert(next)
        };
        let (mut waits, mut holds) = (Vec::new(), Vec::new());
        for (at, (process, waiter)) in waiting.iter().enumerate() {
            let (thread, address) = (at as u32, waiter.waiting.target);
            let target = key(process, waiter, address);
            let lock = number(target);
            let mut wants = match waiter.waiting.how.kind() {
                WaitKind::READ => Wants::Shared(lock),
                _ => Wants::Exclusive(lock),
            };
            for holding in waiter.held.iter().filter(|holding| is_alone(holding)) {
                let lock = number(key(process, waiter, holding.address));
                holds.push((GraphHold { thread, lock, mode: HoldMode::Alone }, *holding));
            }
            if let Key::Shared(place) = target
                && is_in_segment(process, address)
            {
                for holder in segments.holders(process, place) {
                    let is_it = |(process, waiter): &&(&Arc<Observed>, &LastingWaiter)| {
                        holder.is(process, waiter.tid)
                    };
                    let Some(by) = waiting.iter().position(|one| is_it(&one)) else { continue };
                    let reads = holder.mode == HoldMode::Shared;
                    match by == at {
                        // It is about to see whether it can.
                        true if reads => continue,
                        // A writer that is waiting for those who read.
                        true => wants = Wants::Closing(lock),
                        false => {}
                    }
                    let flags =
                        if reads { Flags::BY_WORD.and(Flags::READ) } else { Flags::BY_WORD };
                    let hold = GraphHold { thread: by as u32, lock, mode: holder.mode };
                    if !holds.iter().any(|(known, _)| *known == hold) {
                        holds.push((hold, Holding { address, flags, ..Holding::default() }));
                    }
                }
            }
            waits.push(GraphWait { thread, wants, timed: false });
        }
        (waits, holds)
    }
}

/// Tells whether a lock lies in a segment of lockstead's.
fn is_in_segment(process: &Observed, lock: u64) -> bool {
    let ledger = process.ledger.view();
    let record = ledger.find_lock(lock).and_then(|index| ledger.lock(index));
    record.is_some_and(|record| {
        let (kind, _, attributes) = record.shape();
        kind.is_told() && attributes & attribute::SHARED != 0
    })
}

fn is_for_ever(waiter: &LastingWaiter) -> bool {
    let how = waiter.waiting.how;
    matches!(how.kind(), WaitKind::MUTEX | WaitKind::WRITE | WaitKind::READ | WaitKind::SPIN)
        && !how.is_timed()
}

fn is_alone(holding: &Holding) -> bool {
    !holding.flags.has(Flags::READ) && !holding.flags.has(Flags::LENT)
}

/// Returns whether all live, and the word of each mutex that one waits for names the next one.
fn agree(members: &[CrossMember]) -> bool {
    members.iter().enumerate().all(|(at, member)| {
        let next = &members[(at + 1) % members.len()];
        let named = match member.waiter.waiting.how.kind() {
            _ if next.holding.flags.has(Flags::BY_WORD) => Some(next.waiter.tid),
            WaitKind::MUTEX => owner_by_word(&member.process, member.waiter.waiting.target),
            _ => Some(next.waiter.tid),
        };
        !member.process.has_ended() && named == Some(next.waiter.tid)
    })
}
