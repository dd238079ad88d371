//! The stacks that have the time for which threads waited.
//!
//! # By holder
//! The time of a wait belongs to those who held the lock meanwhile, as far as they left events: of
//! several at once to the one that gave it back last. What nobody is known to have held is shown as
//! that, so that the sum is what was waited. The wait itself counts once, for whom most of its time
//! belongs to.

use super::flags::BlameBy;
use super::labels::{Labels, is_for_lock};
use crate::recording::{FrameNames, RecordedProcess};
use lockstead_ledger::events::{Event, EventKind};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A stack, outermost frame first.
pub(super) type WeighedStack = Vec<FrameNames>;

/// What the time of a wait is shown as that no hold in the recording explains.
pub(super) const NOBODY: &str = "[nobody is known to have held it]";

/// Returns the stacks of a process with their nanoseconds, in the order of the stacks. With `idle`
/// those of all waits count, else those of waits for locks.
pub(super) fn weights(
    process: &RecordedProcess,
    by: BlameBy,
    idle: bool,
) -> Vec<(WeighedStack, u64)> {
    let labels = Labels::of(process);
    // Many waits have one stack: they are told apart by numbers first.
    let mut numbers: HashMap<(AwaitedThing, Option<u32>), u64> = HashMap::new();
    let mut examples: HashMap<AwaitedThing, &Event> = HashMap::new();
    each(process, by, idle, |wait, share| {
        let lock = awaited(wait);
        examples.entry(lock).or_insert(wait);
        let sum = numbers.entry((lock, share.who.map(|who| who.stack))).or_default();
        *sum = sum.saturating_add(share.ns);
    });
    let program = Path::new(&process.facts.program);
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let root = plain(format!("{program} (pid {})", process.facts.pid));
    let mut stacks: BTreeMap<Vec<String>, (WeighedStack, u64)> = BTreeMap::new();
    for ((lock, stack), ns) in numbers {
        let name = labels.lock(examples[&lock]);
        let verb = if by == BlameBy::Waiter { "waits for" } else { "holds" };
        let mut frames = vec![root.clone()];
        match stack {
            Some(stack) => {
                frames.extend(labels.stack(stack).iter().rev().map(|&frame| frame.clone()))
            }
            None => frames.push(plain(NOBODY.into())),
        }
        frames.push(plain(format!("[{verb} {name}]")));
        let key = frames.iter().map(|frame| frame.name.clone()).collect();
        let sum = &mut stacks.entry(key).or_insert_with(|| (frames, 0)).1;
        *sum = sum.saturating_add(ns);
    }
    stacks.into_values().filter(|&(_, ns)| ns != 0).collect()
}

/// Returns a frame that is no code.
pub(super) fn plain(name: String) -> FrameNames {
    FrameNames { name, file: None, line: None, module: None }
}

/// What is waited for: the index of a lock or the number of a thread, and the generation.
pub(super) type AwaitedThing = (u32, u8);

/// Returns what an event waits for.
pub(super) fn awaited(wait: &Event) -> AwaitedThing {
    // What is joined is none of the locks, of which none has this generation.
    (wait.lock, if super::labels::is_join(wait) { u8::MAX } else { wait.generation })
}

/// A thread that has some of the time of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlamedThread {
    /// The serial number of the thread.
    pub(super) thread: u32,
    /// The id of the stack with which it waited or held.
    pub(super) stack: u32,
}

/// A part of the time of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitShare {
    /// The thread that has it; `None`: nobody is known to have held the lock.
    pub(super) who: Option<BlamedThread>,
    /// How long it is.
    pub(super) ns: u64,
    /// Whether the wait itself counts here: of all its parts in one, the longest.
    pub(super) counts: bool,
}

/// Calls `add` with all parts of the waits of a process, with `idle` of all waits, else of those for
/// locks.
pub(super) fn each<'r>(
    process: &'r RecordedProcess,
    by: BlameBy,
    idle: bool,
    mut add: impl FnMut(&'r Event, WaitShare),
) {
    let holders = Holders::of(process);
    let waits = process.events.iter().filter(|event| event.kind == EventKind::Wait);
    let mut parts: Vec<(Option<BlamedThread>, u64)> = Vec::new();
    for wait in waits.filter(|wait| idle || is_for_lock(wait)) {
        parts.clear();
        match by {
            BlameBy::Waiter => {
                let who = BlamedThread { thread: wait.thread, stack: wait.stack };
                parts.push((Some(who), wait.lasted));
            }
            BlameBy::Holder => holders.share(wait, &mut |who, ns| parts.push((who, ns))),
        }
        if parts.is_empty() {
            parts.push((None, wait.lasted));
        }
        let longest = (0..parts.len()).rev().max_by_key(|&place| parts[place].1);
        for (place, &(who, ns)) in parts.iter().enumerate() {
            add(wait, WaitShare { who, ns, counts: Some(place) == longest });
        }
    }
}

/// One hold of a lock.
struct HoldSpan {
    began: u64,
    ended: u64,
    /// The latest end of this one and of all that began before it.
    latest: u64,
    thread: u32,
    stack: u32,
}

/// The holds of each lock, in the order in which they began.
struct Holders(HashMap<(u32, u8), Vec<HoldSpan>>);

impl Holders {
    fn of(process: &RecordedProcess) -> Holders {
        let mut locks: HashMap<(u32, u8), Vec<HoldSpan>> = HashMap::new();
        for event in process.events.iter().filter(|event| event.kind == EventKind::Hold) {
            let holds = locks.entry((event.lock, event.generation)).or_default();
            let ended = event.began.saturating_add(event.lasted);
            let latest = holds.last().map_or(0, |last| last.latest).max(ended);
            let (thread, stack) = (event.thread, event.stack);
            holds.push(HoldSpan { began: event.began, ended, latest, thread, stack });
        }
        Holders(locks)
    }

    /// Shares a wait out among the stacks of those who held the lock.
    fn share(&self, wait: &Event, add: &mut impl FnMut(Option<BlamedThread>, u64)) {
        let end = wait.began.saturating_add(wait.lasted);
        let holds = self.0.get(&awaited(wait)).map_or(&[][..], Vec::as_slice);
        let first = holds.partition_point(|hold| hold.latest <= wait.began);
        let holds = &holds[first..];
        let holds = &holds[..holds.partition_point(|hold| hold.began < end)];
        let mut at = wait.began;
        let mut next = 0;
        let mut current: Option<&HoldSpan> = None;
        while at < end {
            // Of all that have begun by now the one that ends last.
            while let Some(hold) = holds.get(next).filter(|hold| hold.began <= at) {
                next += 1;
                let is_later = current.is_none_or(|current| hold.ended > current.ended);
                if hold.thread != wait.thread && hold.ended > at && is_later {
                    current = Some(hold);
                }
            }
            match current.filter(|hold| hold.ended > at) {
                Some(hold) => {
                    let until = hold.ended.min(end);
                    add(Some(BlamedThread { thread: hold.thread, stack: hold.stack }), until - at);
                    at = until;
                }
                None => {
                    let until = holds.get(next).map_or(end, |hold| hold.began.min(end));
                    add(None, until - at);
                    at = until;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{ProcessFacts, ProcessNames};

    fn event(kind: EventKind, thread: u32, span: std::ops::Range<u64>, stack: u32) -> Event {
        Event {
            kind,
            began: span.start,
            lasted: span.end - span.start,
            how: 1,
            ending: 0,
            lock: 3,
            generation: 1,
            stack,
            thread,
            tid: 0,
        }
    }

    fn shared(
        holds: &[(u32, std::ops::Range<u64>, u32)],
        wait: std::ops::Range<u64>,
    ) -> Vec<(Option<u32>, u64)> {
        let mut events: Vec<Event> = holds
            .iter()
            .map(|(thread, span, stack)| event(EventKind::Hold, *thread, span.clone(), *stack))
            .collect();
        events.sort_by_key(|event| event.began);
        let facts = ProcessFacts { process: 0, pid: 1, program: "/bin/a".into(), began: 0 };
        let process =
            RecordedProcess { facts, names: ProcessNames::default(), events, samples: Vec::new() };
        let mut shares = Vec::new();
        let wait = event(EventKind::Wait, 1, wait, 9);
        Holders::of(&process)
            .share(&wait, &mut |who, ns| shares.push((who.map(|who| who.stack), ns)));
        shares
    }

    #[test]
    fn a_wait_counts_once_where_most_of_its_time_is() {
        let mut events: Vec<Event> = [(2, 0..40, 20), (3, 40..90, 30), (4, 90..95, 40)]
            .into_iter()
            .map(|(thread, span, stack)| event(EventKind::Hold, thread, span, stack))
            .collect();
        events.push(event(EventKind::Wait, 1, 10..95, 9));
        events.push(event(EventKind::Wait, 1, 200..200, 9));
        let facts = ProcessFacts { process: 0, pid: 1, program: "/bin/a".into(), began: 0 };
        let process =
            RecordedProcess { facts, names: ProcessNames::default(), events, samples: Vec::new() };
        let counted = |by| {
            let mut shares = Vec::new();
            each(&process, by, false, |_, share| {
                shares.push((share.who.map(|who| (who.thread, who.stack)), share.ns, share.counts));
            });
            shares
        };
        assert_eq!(
            counted(BlameBy::Holder),
            [
                (Some((2, 20)), 30, false),
                (Some((3, 30)), 50, true),
                (Some((4, 40)), 5, false),
                (None, 0, true),
            ],
        );
        assert_eq!(counted(BlameBy::Waiter), [(Some((1, 9)), 85, true), (Some((1, 9)), 0, true)],);
    }

    #[test]
    fn a_wait_is_shared_out_among_those_who_held_the_lock() {
        let holds = [(2, 0..120, 20), (3, 130..150, 30), (1, 150..160, 10), (2, 190..300, 21)];
        assert_eq!(
            shared(&holds, 100..200),
            [(Some(20), 20), (None, 10), (Some(30), 20), (None, 40), (Some(21), 10)],
            "its own hold is none that it waits for",
        );
        assert_eq!(shared(&[], 5..9), [(None, 4)]);
        assert_eq!(shared(&holds, 400..401), [(None, 1)]);
    }

    #[test]
    fn of_readers_at_once_the_one_counts_that_gave_it_back_last() {
        let holds = [(2, 0..50, 20), (3, 10..90, 30), (4, 20..40, 40), (5, 95..99, 50)];
        assert_eq!(shared(&holds, 30..100), [(Some(30), 60), (None, 5), (Some(50), 4), (None, 1)]);
    }
}
