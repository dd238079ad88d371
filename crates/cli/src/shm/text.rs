//! What is found in a segment, for people.

use super::facts::{LockOwner, ParticipantState, SegmentFacts, SegmentLock, SegmentParticipant};
use lockstead_render::table::{self, TextTable};

/// How many locks are listed without `--all`.
const LINES: usize = 40;

/// Returns the whole text.
pub(super) fn render(facts: &SegmentFacts, all: bool) -> String {
    let mut text = recovered(facts);
    text += &format!(
        "{}: {} bytes, version {}, {} of {} slots taken{}; {} lock{}, {} of them free\n",
        facts.path,
        table::count(facts.bytes as f64),
        facts.version,
        facts.participants.iter().filter(|person| person.state != ParticipantState::Left).count(),
        facts.slots,
        if facts.exclusive { ", exclusive lists" } else { "" },
        table::count(facts.locks_total as f64),
        if facts.locks_total == 1 { "" } else { "s" },
        table::count(facts.locks_free as f64),
    );
    text += &deadlocks(facts);
    text += &participants(facts);
    text += &locks(facts, if all { usize::MAX } else { LINES });
    text
}

fn recovered(facts: &SegmentFacts) -> String {
    let Some(done) = &facts.recovered else { return String::new() };
    let mut text = match &done.declared_dead[..] {
        [] => "Nobody had to be declared dead.\n".to_owned(),
        slots => format!(
            "Declared dead, for {} not exist any more: {}. LockOwner waits for {} looks again.\n",
            if slots.len() == 1 { "it does" } else { "they do" },
            slots_of(slots),
            if slots.len() == 1 { "it" } else { "them" },
        ),
    };
    if !done.reset.is_empty() {
        text += &format!("Freed, although not recoverable: {}.\n", done.reset.join(", "));
    }
    if done.scrubbed > 0 {
        text += &format!("Made worn-out slots usable again: {}.\n", done.scrubbed);
    }
    text + "\n"
}

fn deadlocks(facts: &SegmentFacts) -> String {
    let mut text = String::new();
    for cycle in &facts.cycles {
        text += &format!("\nDEADLOCK: {} participants wait for each other\n", cycle.len());
        let holders = cycle.iter().cycle().skip(1);
        for (link, holder) in cycle.iter().zip(holders) {
            text += &format!(
                "  slot {} waits for {}, which slot {} has\n",
                link.slot, link.lock, holder.slot
            );
        }
    }
    text
}

fn participants(facts: &SegmentFacts) -> String {
    let shown: Vec<&SegmentParticipant> =
        facts.participants.iter().filter(|person| person.state != ParticipantState::Left).collect();
    if shown.is_empty() {
        return "\nNobody takes part.\n".into();
    }
    let mut table = TextTable::new(&[
        "slot",
        "process",
        "thread",
        "state",
        "for",
        "holds",
        "shares",
        "waits for",
    ]);
    for person in &shown {
        let waits = match (&person.waits_for, person.waits_for_offset) {
            (Some(name), _) => name.clone(),
            (None, Some(offset)) => format!("offset {offset:#x}"),
            (None, None) => "-".into(),
        };
        table.row([
            person.slot.to_string(),
            process(person),
            person.thread.to_string(),
            state(person).into(),
            person.age_ns.map_or("-".into(), |age| table::time(age as f64)),
            table::count(person.holds as f64),
            person.shares.to_string(),
            waits,
        ]);
    }
    let mut text = format!("\n{}", table.render());
    if shown.iter().any(|person| person.state == ParticipantState::Missing) {
        text += "\n  Missing: alive as far as the segment knows, but there is no such thread. Those who\n  \
                 wait for it find out within seconds; --recover tells them at once.\n";
    }
    if shown.iter().any(|person| person.worn_out) {
        text += "\n  Worn out: too many have died in this place for it to be taken again; --recover\n  \
                 makes it usable.\n";
    }
    text
}

fn process(person: &SegmentParticipant) -> String {
    let name = person.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    match person.process_here {
        Some(here) if here != person.process => {
            format!("{here}{name}, {} in its namespace", person.process)
        }
        _ => format!("{}{name}", person.process),
    }
}

fn state(person: &SegmentParticipant) -> &'static str {
    match person.state {
        _ if person.worn_out => "worn out",
        ParticipantState::Alive => "alive",
        ParticipantState::Missing => "missing",
        ParticipantState::Dead => "dead",
        ParticipantState::Left => "left",
    }
}

fn locks(facts: &SegmentFacts, most: usize) -> String {
    if facts.locks.is_empty() {
        return "\nNo lock is taken, and nobody waits.\n".into();
    }
    let mut table = TextTable::new(&["lock", "kind", "state", "who", "waits"]);
    for lock in facts.locks.iter().take(most) {
        table.row([
            lock.lock.clone(),
            lock.kind.into(),
            condition(lock),
            owner(lock),
            if lock.waiters.is_empty() { "-".into() } else { slots_of(&lock.waiters) },
        ]);
    }
    let mut text = format!("\n{}", table.render());
    let left = facts.locks.len().saturating_sub(most);
    if left > 0 {
        text += &format!("  and {} more that are not free (--all)\n", table::count(left as f64));
    }
    text
}

fn condition(lock: &SegmentLock) -> String {
    let mut text = match lock.state {
        "owner-missing" => "owner missing".to_owned(),
        "owner-dead" => "owner died".to_owned(),
        "not-recoverable" => "not recoverable".to_owned(),
        state => state.to_owned(),
    };
    if let (Some(units), Some(free)) = (lock.units, lock.units_free) {
        text += &format!(", {free} of {units} units free");
    }
    if let Some(next) = lock.reserved_for {
        text += &format!(", next: slot {}", next.slot);
    }
    text
}

fn owner(lock: &SegmentLock) -> String {
    if let Some(owner) = lock.owner {
        return who(owner);
    }
    if lock.shares.is_empty() {
        return "-".into();
    }
    let shares = lock.shares.iter().map(|share| match lock.units {
        Some(_) => format!("slot {}: {}", share.slot, share.units),
        None => format!("slot {}", share.slot),
    });
    shares.collect::<Vec<_>>().join(", ")
}

fn who(who: LockOwner) -> String {
    match (who.process, who.thread) {
        (Some(process), Some(thread)) => {
            format!("slot {} (process {process}, thread {thread})", who.slot)
        }
        _ => format!("slot {}, where somebody else sits by now", who.slot),
    }
}

fn slots_of(slots: &[u32]) -> String {
    let numbers: Vec<String> = slots.iter().map(u32::to_string).collect();
    format!("slot{} {}", if slots.len() == 1 { "" } else { "s" }, numbers.join(", "))
}
