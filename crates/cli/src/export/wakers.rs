//! Who ended each wait.
//!
//! # Role
//! An event of a wait does not say who woke the thread: nobody knew at the time. But who gave the
//! lock back, or signalled, has left an event too. Of a wait that was granted the waker is who did
//! that last before it ended. If that event was lost, an earlier one of the same wait is taken for
//! it, or none.

use super::labels::is_join;
use crate::recording::{RecordedProcess, UNFINISHED};
use lockstead_ledger::events::{Event, EventKind, ending, hold};
use std::collections::HashMap;

/// A moment at which a thread let others go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waking {
    /// The time at which it was.
    pub(super) at: u64,
    /// The thread that did it.
    pub(super) thread: u32,
    /// The place of its event in the list; `None`: it was the end of the thread.
    pub(super) event: Option<usize>,
}

/// The wakers of a process.
pub(super) struct Wakers {
    /// The moments of each lock in their order, by its index and generation.
    locks: HashMap<(u32, u8), Vec<Waking>>,
    /// The ends of threads.
    ends: HashMap<u32, u64>,
}

impl Wakers {
    /// Takes in what a process recorded.
    pub(super) fn of(process: &RecordedProcess) -> Wakers {
        let mut locks: HashMap<(u32, u8), Vec<Waking>> = HashMap::new();
        for (place, event) in process.events.iter().enumerate() {
            let wakes = match event.kind {
                EventKind::Wake => true,
                // Who has not given it back has woken nobody.
                EventKind::Hold => event.how & hold::WAITED_FOR != 0 && event.ending != UNFINISHED,
                EventKind::Wait | EventKind::Thread => false,
            };
            if wakes {
                let at = event.began.saturating_add(event.lasted);
                let waking = Waking { at, thread: event.thread, event: Some(place) };
                locks.entry((event.lock, event.generation)).or_default().push(waking);
            }
        }
        locks.values_mut().for_each(|moments| moments.sort_by_key(|waking| waking.at));
        let threads = process.names.threads.iter();
        let ends = threads.filter_map(|thread| Some((thread.thread, thread.ended?))).collect();
        Wakers { locks, ends }
    }

    /// Returns who ended this wait, if that is known.
    pub(super) fn waker(&self, wait: &Event) -> Option<Waking> {
        if wait.kind != EventKind::Wait || wait.ending != ending::GRANTED {
            return None;
        }
        let end = wait.began.saturating_add(wait.lasted);
        let within = |at: u64| (wait.began..=end).contains(&at);
        if is_join(wait) {
            let at = *self.ends.get(&wait.lock)?;
            return within(at).then_some(Waking { at, thread: wait.lock, event: None });
        }
        let moments = self.locks.get(&(wait.lock, wait.generation))?;
        let before = moments.partition_point(|waking| waking.at <= end);
        let others = moments[..before].iter().rev().take_while(|waking| within(waking.at));
        others.copied().find(|waking| waking.thread != wait.thread)
    }
}
