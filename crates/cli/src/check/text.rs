//! A finding of the checks as text.

use crate::finding_text::{called, limit, stack_lines};
use crate::words::clean;
use lockstead_inspect::check::model::{
    CycleKind, Details, Excuse, How, Level, Order, Step, Thread, Violation,
};
use lockstead_inspect::check::rules;
use lockstead_ledger::violation::{BLOCKING, Rule};
use signal_hook::low_level::signal_name;
use std::fmt::Write;

#[cfg(test)]
mod tests;

/// Frames of a stack where there are four, so that it all fits a screen.
const FRAMES: usize = 7;
/// Steps from which on stacks are shortened.
const SOME: usize = 3;
const FEWER_FRAMES: usize = 5;
/// Steps from which on they are shortened further.
const MANY: usize = 6;
const FEW_FRAMES: usize = 3;
/// Gates that are named.
const GATES: usize = 4;
/// Locks of a cycle that are named in one line, and how long that may be.
const NAMED: usize = 8;
const LINE: usize = 90;

/// The text of an inversion or a violation, a line feed at its end. `program` is
/// `prog (pid 12)`.
pub(crate) fn text(program: &str, details: &Details) -> String {
    let mut text = String::new();
    let level = details.level.unwrap_or(Level::Order).word();
    if let Some(order) = &details.order {
        let _ = writeln!(text, "lockstead: {level}: {}", title(order));
        order_lines(&mut text, program, order);
    } else if let Some(violation) = &details.violation {
        let rule = details.rule.as_deref().and_then(rules::from_slug);
        let phrase = rule.map_or("a rule that is not known", rules::phrase);
        let _ = writeln!(text, "lockstead: {level}: {phrase}");
        let _ = writeln!(text, "  in {program}");
        if let Some(rule) = rule {
            if details.level == Some(Level::Order) {
                let _ = writeln!(text, "  no harm as it was seen: {}", doubt(rule));
            }
            violation_lines(&mut text, rule, violation);
        }
    }
    text
}

fn title(order: &Order) -> String {
    if order.cycle == CycleKind::Handler {
        return rules::phrase(Rule::InHandler).into();
    }
    format!("lock order inversion of {} locks", order.steps.len().max(2))
}

fn order_lines(text: &mut String, program: &str, order: &Order) {
    let count = order.steps.len();
    let names = order.steps.iter().map(|step| clean(&step.holds.name));
    let mut cycle: Vec<String> = names.take(NAMED).collect();
    if count > NAMED {
        cycle.push(format!("{} more", count - NAMED));
    }
    let back = match order.cycle {
        CycleKind::Classes => {
            order.steps.last().map_or(String::new(), |step| clean(&step.asks.name))
        }
        _ => cycle.first().cloned().unwrap_or_default(),
    };
    let cycle = format!(": {} -> {back}", cycle.join(" -> "));
    // Long names stand with the steps, which say it all.
    let cycle = if cycle.chars().count() <= LINE { cycle.as_str() } else { "" };
    let _ = writeln!(text, "  in {program}{cycle}");
    match excuse(order) {
        Some(excuse) => {
            let _ = writeln!(text, "  no deadlock as it was seen: {excuse}");
        }
        None if order.cycle == CycleKind::Classes => text.push_str(HABITS),
        None => {}
    }
    let frames = match count {
        0..SOME => FRAMES,
        SOME..MANY => FEWER_FRAMES,
        _ => FEW_FRAMES,
    };
    for (at, step) in order.steps.iter().enumerate() {
        let in_handler = order.cycle == CycleKind::Handler && at + 1 == count;
        let handler = in_handler.then(|| handler(order));
        step_lines(text, step, handler.as_deref(), frames);
    }
}

/// On which evidence an inversion of classes is a potential deadlock.
const HABITS: &str =
    "  not of the same locks, but of their origins: each order was seen with several pairs\n";

fn excuse(order: &Order) -> Option<String> {
    Some(match order.excuse? {
        Excuse::OneThread
            if order.steps.iter().all(|step| step.thread == order.steps[0].thread) =>
        {
            "one thread did it all".into()
        }
        Excuse::OneThread => "fewer threads than locks did it".into(),
        Excuse::Gate => {
            let gate = order.gate.as_ref().map_or("a lock".into(), |lock| clean(&lock.text()));
            format!("all of them hold {gate} meanwhile")
        }
        Excuse::Alone => "the process had one thread then".into(),
        Excuse::OtherInstances => "the locks are not the same, but of the same origin".into(),
    })
}

/// `a handler of SIGALRM that interrupts it`.
fn handler(order: &Order) -> String {
    let signal = signal_text(order.signal.unwrap_or(0).into());
    // It may come to the thread that holds the lock as well.
    let seen = order.handler.as_ref().map(|who| format!(" (seen in {})", called(who)));
    format!("a handler of {signal} that interrupts it{}", seen.unwrap_or_default())
}

fn step_lines(text: &mut String, step: &Step, handler: Option<&str>, frames: usize) {
    let who = called(&step.thread);
    let _ = writeln!(text, "  {who}");
    let wants = if step.asks_how == How::Write { "asks for" } else { "asks to read" };
    let asks = format!("    {wants} {}{}, at:\n", clean(&step.asks.text()), limit(step.timed));
    if handler.is_none() {
        text.push_str(&asks);
        stack_lines(text, step.asked.as_ref(), frames);
    }
    let reading = if step.holds_how == How::Write { "" } else { " for reading" };
    let tried = if step.tried { " by trylock" } else { "" };
    let lock = clean(&step.holds.text());
    let _ = writeln!(text, "    holds {lock}{reading}, acquired{tried} at:");
    stack_lines(text, step.acquired.as_ref(), frames);
    if let Some(handler) = handler {
        let _ = writeln!(text, "  {handler}");
        text.push_str(&asks);
        stack_lines(text, step.asked.as_ref(), frames);
    }
    if !step.gates.is_empty() {
        let mut gates: Vec<String> =
            step.gates.iter().take(GATES).map(|gate| clean(&gate.name)).collect();
        if step.gates.len() > GATES {
            gates.push(format!("{} more", step.gates.len() - GATES));
        }
        let _ = writeln!(text, "    and holds {}", gates.join(", "));
    }
}

/// `SIGALRM`.
fn signal_text(signal: u64) -> String {
    let name = i32::try_from(signal).ok().and_then(signal_name);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}

fn violation_lines(text: &mut String, rule: Rule, violation: &Violation) {
    let lock = match violation.lock.name.is_empty() {
        true => "a lock".into(),
        false => clean(&violation.lock.text()),
    };
    let _ = writeln!(text, "  {}", called(&violation.thread));
    let does = does(rule, &lock, violation);
    let _ = match violation.stack {
        Some(_) => writeln!(text, "    {does}, at:"),
        None => writeln!(text, "    {does}"),
    };
    if violation.stack.is_some() {
        stack_lines(text, violation.stack.as_ref(), FRAMES);
    }
    if violation.acquired.is_some() {
        let _ = writeln!(text, "    holds {lock}, acquired at:");
        stack_lines(text, violation.acquired.as_ref(), FRAMES);
    }
    if violation.earlier.is_some() || violation.other.is_some() {
        let other = violation.other.as_ref().filter(|other| other.tid != violation.thread.tid);
        let earlier = earlier(rule, &lock, other);
        let _ = match violation.earlier {
            Some(_) => writeln!(text, "    {earlier} at:"),
            None => writeln!(text, "    {earlier}"),
        };
        if violation.earlier.is_some() {
            stack_lines(text, violation.earlier.as_ref(), FRAMES);
        }
    }
    if let Some(other) = violation.other_lock.as_ref().filter(|_| rule == Rule::Copied) {
        let _ = writeln!(text, "    the original is {}", clean(&other.text()));
    }
}

/// Why a violation may be none.
fn doubt(rule: Rule) -> &'static str {
    match rule {
        Rule::JoinHolding => "the joined thread did not want it any more",
        Rule::ConditionHolding => "the condition was signalled without it too",
        Rule::ProcessExit => "nobody else wanted it",
        Rule::InHandler => "nobody takes it outside of handlers",
        Rule::OverwrittenFree => "its words are in order, as an assignment leaves them",
        _ => "it may be meant so",
    }
}

/// What the thread did.
fn does(rule: Rule, lock: &str, violation: &Violation) -> String {
    let second = violation.other_lock.as_ref().map(|lock| clean(&lock.text()));
    let second = second.unwrap_or_else(|| "another mutex".into());
    let joined = violation.other.as_ref().map_or("a thread".into(), called);
    match rule {
        Rule::UnlockByAnother => format!("unlocks {lock}, which it does not hold"),
        Rule::UnlockOfUnlocked => format!("unlocks {lock}, which nobody holds"),
        Rule::Recursion => format!("locks {lock}"),
        Rule::Uninitialised => format!("uses {lock}, which nobody initialised"),
        Rule::Overwritten => format!("finds {lock} written over"),
        Rule::ReleasedElsewhere => format!("finds {lock}, which it holds, released"),
        Rule::OverwrittenFree => format!("uses {lock}, which was written over"),
        Rule::Copied => format!("uses {lock}, a copy"),
        Rule::ThreadExit => format!("has ended and holds {lock}"),
        Rule::ProcessExit => format!("ends the process while {lock} is held"),
        Rule::Freed => format!("frees the memory of {lock}"),
        Rule::Unmapped => format!("unmaps the memory of {lock}"),
        Rule::StackLeft => format!("leaves the stack that {lock} lies on"),
        Rule::InitialisedHeld => format!("initialises {lock}"),
        Rule::DestroyedHeld => format!("destroys {lock}"),
        Rule::Destroyed => format!("uses {lock}"),
        Rule::InFreedMemory => format!("uses {lock}, whose memory was freed"),
        Rule::InHandler => {
            format!("takes {lock} in a handler of {}", signal_text(violation.number))
        }
        Rule::HeldAtFork => format!("uses {lock} in a forked child"),
        Rule::JoinHolding => format!("waits for the end of {joined} and holds {lock}"),
        Rule::ConditionUnlocked => {
            format!("waits for a condition with {lock}, which it does not hold")
        }
        Rule::ConditionRecursive => {
            let times = violation.number;
            format!("waits for a condition with {lock}, which it holds {times} times")
        }
        Rule::ConditionMutexes => {
            format!("waits for a condition with {lock}, for which others wait with {second}")
        }
        Rule::ConditionHolding => {
            format!("waits for a condition with {second} and holds {lock}")
        }
        Rule::RecursiveRead => format!("reads {lock} again"),
        Rule::Sleepy => {
            let call = usize::try_from(violation.number).ok().and_then(|at| BLOCKING.get(at));
            format!("calls {} and holds {lock}", call.unwrap_or(&"a function that may block"))
        }
    }
}

/// What was done before, by the thread itself if there is no other.
fn earlier(rule: Rule, lock: &str, other: Option<&Thread>) -> String {
    let other = other.map(called);
    let held = || match &other {
        Some(other) => format!("held by {other}, acquired"),
        None => "it was acquired".into(),
    };
    let by = |what: &str| match &other {
        Some(other) => format!("{what} by {other}"),
        None => what.to_owned(),
    };
    match rule {
        Rule::UnlockOfUnlocked => by("unlocked before"),
        Rule::Recursion => format!("holds {lock} already, acquired"),
        Rule::ConditionRecursive => "acquired last".into(),
        Rule::ThreadExit | Rule::Sleepy => "acquired".into(),
        Rule::Copied => by("the original was initialised"),
        Rule::Destroyed => by("destroyed"),
        Rule::InFreedMemory => by("the memory was freed"),
        Rule::OverwrittenFree => "initialised".into(),
        Rule::Uninitialised => by("seen before"),
        Rule::InHandler => by("acquired with that signal unblocked"),
        Rule::HeldAtFork => match &other {
            Some(other) => format!("held at the fork by {other} of the parent, acquired"),
            None => "held at the fork, acquired".into(),
        },
        Rule::JoinHolding | Rule::ConditionHolding => match &other {
            Some(other) => format!("{other} takes {lock}"),
            None => format!("{lock} is taken by the other thread"),
        },
        Rule::ConditionMutexes => by("the other wait"),
        Rule::RecursiveRead => "acquired before".into(),
        Rule::UnlockByAnother
        | Rule::Overwritten
        | Rule::ReleasedElsewhere
        | Rule::ProcessExit
        | Rule::Freed
        | Rule::Unmapped
        | Rule::StackLeft
        | Rule::InitialisedHeld
        | Rule::DestroyedHeld
        | Rule::ConditionUnlocked => held(),
    }
}
