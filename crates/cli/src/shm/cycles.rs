//! Participants that wait for each other.
//!
//! A thread waits for one lock at a time, and of a lock that one has alone the owner
//! is in its word: so whom a participant waits for is one other, and a cycle is found
//! by going on from each until somebody comes again.

use super::facts::{CycleLink, ParticipantState, SegmentFacts};
use std::collections::{HashMap, HashSet};

/// Returns all cycles among those that live, each beginning with its lowest slot.
pub(super) fn find(facts: &SegmentFacts) -> Vec<Vec<CycleLink>> {
    let owners: HashMap<u64, u32> = facts
        .locks
        .iter()
        .filter_map(|lock| Some((lock.offset, lock.owner.filter(|owner| owner.alive)?.slot)))
        .collect();
    let waits: HashMap<u32, (u32, CycleLink)> = facts
        .participants
        .iter()
        .filter(|person| person.state == ParticipantState::Alive)
        .filter_map(|person| {
            let offset = person.waits_for_offset?;
            let lock = person.waits_for.clone()?;
            let link = CycleLink { slot: person.slot, generation: person.generation, lock };
            Some((person.slot, (*owners.get(&offset)?, link)))
        })
        .collect();
    let mut seen = HashSet::new();
    let mut cycles = Vec::new();
    let mut slots: Vec<u32> = waits.keys().copied().collect();
    slots.sort_unstable();
    for first in slots {
        let mut way = Vec::new();
        let mut at = first;
        while seen.insert(at) {
            let Some((next, link)) = waits.get(&at) else { break };
            way.push(link.clone());
            at = *next;
        }
        if let Some(begin) = way.iter().position(|link| link.slot == at) {
            let mut cycle = way.split_off(begin);
            let lowest = (0..cycle.len()).min_by_key(|&n| cycle[n].slot).unwrap_or(0);
            cycle.rotate_left(lowest);
            cycles.push(cycle);
        }
    }
    cycles
}
