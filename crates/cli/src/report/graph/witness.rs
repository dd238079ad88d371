//! Who was seen to take two locks in an order, where, and how.

use crate::finding_text::{called, limit};
use lockstead_inspect::check::model::{HoldMode, LockIdentity, OrderStep, ThreadIdentity};
use lockstead_inspect::check::order::{RecordedEdge, RecordedOrder};
use lockstead_inspect::stack::Stack;
use lockstead_inspect::symbols::program_frames;
use lockstead_render::words::{brief, clean};

/// The most gates that are named.
const GATES: usize = 3;

/// The number of frames of a place.
const PLACES: usize = 2;

/// One order as it was seen, in words.
#[derive(Debug, Default)]
pub(crate) struct OrderWitness {
    /// The name of the thread that did so.
    pub(crate) who: String,
    /// The place at which it acquired the lock that it held, and its callers'.
    pub(crate) acquired: Vec<String>,
    /// How: `for reading`, `by trylock`; empty of what is usual.
    pub(crate) held_how: String,
    /// The place at which it asked for the other one, and its callers'.
    pub(crate) asked: Vec<String>,
    /// How: `to read`, `until a deadline`; empty of what is usual.
    pub(crate) asked_how: String,
    /// The further locks that it held, in words.
    pub(crate) gates: String,
}

/// An order as a report or a finding has it.
struct Seen<'a> {
    thread: Option<&'a ThreadIdentity>,
    held: (HoldMode, bool, Option<&'a Stack>),
    asked: (HoldMode, bool, Option<&'a Stack>),
    gates: Vec<&'a LockIdentity>,
    alone: bool,
}

impl OrderWitness {
    pub(super) fn of_edge(order: &RecordedOrder, edge: &RecordedEdge) -> OrderWitness {
        let stack = |at: Option<usize>| at.and_then(|at| order.stacks.get(at));
        OrderWitness::of(Seen {
            thread: order.threads.get(edge.thread),
            held: (edge.from_how, edge.tried, stack(edge.acquired)),
            asked: (edge.to_how, edge.timed, stack(edge.asked)),
            gates: edge.gates.iter().filter_map(|&at| order.locks.get(at)).collect(),
            alone: edge.alone,
        })
    }

    pub(super) fn of_step(step: &OrderStep) -> OrderWitness {
        OrderWitness::of(Seen {
            thread: Some(&step.thread),
            held: (step.holds_how, step.tried, step.acquired.as_ref()),
            asked: (step.asks_how, step.timed, step.asked.as_ref()),
            gates: step.gates.iter().collect(),
            alone: step.alone,
        })
    }

    fn of(seen: Seen<'_>) -> OrderWitness {
        let ((held, tried, acquired), (asked, timed, asked_at)) = (seen.held, seen.asked);
        let how = |words: &[(bool, &'static str)]| {
            let said = words.iter().filter(|(is, _)| *is).map(|&(_, word)| word);
            said.collect::<Vec<_>>().join(", ")
        };
        let mut gates: Vec<String> =
            seen.gates.iter().take(GATES).map(|gate| brief(&gate.name)).collect();
        if seen.gates.len() > GATES {
            gates.push(format!("{} more", seen.gates.len() - GATES));
        }
        let who = seen.thread.map_or_else(|| "a thread".into(), called);
        OrderWitness {
            who: if seen.alone { format!("{who}, the only one then") } else { who },
            acquired: places(acquired),
            held_how: how(&[(held != HoldMode::Write, "for reading"), (tried, "by trylock")]),
            asked: places(asked_at),
            asked_how: how(&[
                (asked != HoldMode::Write, "to read"),
                (timed, limit(true).trim_start_matches(", ")),
            ]),
            gates: gates.join(", "),
        }
    }

    /// Returns how the one lock was held and the other one asked for, where that is not as usual.
    pub(super) fn how(&self) -> impl Iterator<Item = String> {
        let all = [("held", &self.held_how), ("asked", &self.asked_how)].into_iter();
        all.filter(|(_, how)| !how.is_empty()).map(|(what, how)| format!("{what} {how}"))
    }
}

/// Returns the innermost places of the program in a stack: the first may be in a function that only
/// takes the lock, for many callers.
fn places(stack: Option<&Stack>) -> Vec<String> {
    let Some(stack) = stack else { return vec!["a place that was not recorded".into()] };
    let frames = program_frames(stack);
    if frames.is_empty() {
        return vec![clean(&stack.end.to_string())];
    }
    frames.iter().take(PLACES).map(|frame| brief(&frame.site())).collect()
}
