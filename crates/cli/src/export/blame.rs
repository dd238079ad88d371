//! The stacks that have the time for which threads waited.
//!
//! # By holder
//! The time of a wait belongs to those who held the lock meanwhile, as far as they left events: of
//! several at once to the one that held it longest. What nobody is known to have held is shown as
//! that, so that the sum is what was waited.

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
    let holders = Holders::of(process);
    // Many waits have one stack: they are told apart by numbers first.
    let mut numbers: HashMap<(u32, u8, Option<u32>), u64> = HashMap::new();
    let mut examples: HashMap<(u32, u8), &Event> = HashMap::new();
    let waits = process.events.iter().filter(|event| event.kind == EventKind::Wait);
    for wait in waits.filter(|wait| idle || is_for_lock(wait)) {
        // What is joined is none of the locks.
        let generation = if super::labels::is_join(wait) { u8::MAX } else { wait.generation };
        let lock = (wait.lock, generation);
        examples.entry(lock).or_insert(wait);
        let mut add = |stack: Option<u32>, ns: u64| {
            let sum = numbers.entry((lock.0, lock.1, stack)).or_default();
            *sum = sum.saturating_add(ns);
        };
        match by {
            BlameBy::Waiter => add(Some(wait.stack), wait.lasted),
            BlameBy::Holder => holders.share(wait, &mut add),
        }
    }
    let program = Path::new(&process.facts.program);
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let root = plain(format!("{program} (pid {})", process.facts.pid));
    let mut stacks: BTreeMap<Vec<String>, (WeighedStack, u64)> = BTreeMap::new();
    for ((lock, generation, stack), ns) in numbers {
        let name = labels.lock(examples[&(lock, generation)]);
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
fn plain(name: String) -> FrameNames {
    FrameNames { name, file: None, line: None }
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
    fn share(&self, wait: &Event, add: &mut impl FnMut(Option<u32>, u64)) {
        let end = wait.began.saturating_add(wait.lasted);
        let holds = self.0.get(&(wait.lock, wait.generation)).map_or(&[][..], Vec::as_slice);
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
                    add(Some(hold.stack), until - at);
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
        Holders::of(&process).share(&wait, &mut |stack, ns| shares.push((stack, ns)));
        shares
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
    fn of_readers_at_once_the_one_counts_that_held_longest() {
        let holds = [(2, 0..50, 20), (3, 10..90, 30), (4, 20..40, 40), (5, 95..99, 50)];
        assert_eq!(shared(&holds, 30..100), [(Some(30), 60), (None, 5), (Some(50), 4), (None, 1)]);
    }
}
