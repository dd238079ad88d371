//! A finding of the checks as text.

use crate::finding_text::{called, limit, stack_lines};
use lockstead_inspect::check::model::{
    CycleKind, Details, HoldMode, Level, LockOrder, OrderExcuse, OrderStep, RuleViolation,
};
use lockstead_ledger::violation::BLOCKING;
use lockstead_render::words::clean;
use lockstead_rules::{Rule, Story};
use signal_hook::low_level::signal_name;
use std::fmt::Write;

#[cfg(test)]
mod tests;

/// The number of frames of a stack where there are four, so that it all fits a screen.
const FRAMES: usize = 7;
/// The number of steps from which on stacks are shortened.
const SOME: usize = 3;
const FEWER_FRAMES: usize = 5;
/// The number of steps from which on they are shortened further.
const MANY: usize = 6;
const FEW_FRAMES: usize = 3;
/// The most gates that are named.
const GATES: usize = 4;
/// The most locks of a cycle that are named in one line, and how long that may be.
const NAMED: usize = 8;
const LINE: usize = 90;

/// Returns the text of an inversion or a violation, a line feed at its end. `program` is `prog (pid
/// 12)`.
pub(crate) fn text(program: &str, details: &Details) -> String {
    let mut text = String::new();
    let level = details.level.unwrap_or(Level::Order).word();
    if let Some(order) = &details.order {
        let _ = writeln!(text, "lockstead: {level}: {}", title(order));
        order_lines(&mut text, program, order);
    } else if let Some(violation) = &details.violation {
        let rule = details.rule.as_deref().and_then(Rule::from_id);
        let phrase = rule.map_or("a rule that is not known", Rule::phrase);
        let _ = writeln!(text, "lockstead: {level}: {phrase}");
        let _ = writeln!(text, "  in {program}");
        if let Some((rule, story)) = rule.and_then(|rule| Some((rule, rule.story()?))) {
            if details.level == Some(Level::Order) {
                let _ = writeln!(text, "  no harm as it was seen: {}", story.doubt);
            }
            violation_lines(&mut text, rule, story, violation);
        }
    }
    text
}

fn title(order: &LockOrder) -> String {
    if order.cycle == CycleKind::Handler {
        return Rule::InHandler.phrase().into();
    }
    format!("{} of {} locks", Rule::LockOrderInversion.phrase(), order.steps.len().max(2))
}

fn order_lines(text: &mut String, program: &str, order: &LockOrder) {
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

/// The evidence on which an inversion of classes is a potential deadlock.
const HABITS: &str =
    "  not of the same locks, but of their origins: each order was seen with several pairs\n";

fn excuse(order: &LockOrder) -> Option<String> {
    Some(match order.excuse? {
        OrderExcuse::OneThread
            if order.steps.iter().all(|step| step.thread == order.steps[0].thread) =>
        {
            "one thread did it all".into()
        }
        OrderExcuse::OneThread => "fewer threads than locks did it".into(),
        OrderExcuse::Gate => {
            let gate = order.gate.as_ref().map_or("a lock".into(), |lock| clean(&lock.text()));
            format!("all of them hold {gate} meanwhile")
        }
        OrderExcuse::Alone => "the process had one thread then".into(),
        OrderExcuse::OtherInstances => "the locks are not the same, but of the same origin".into(),
    })
}

/// Describes the handler of an order: `a handler of SIGALRM that interrupts it`.
fn handler(order: &LockOrder) -> String {
    let signal = signal_text(order.signal.unwrap_or(0).into());
    // It may come to the thread that holds the lock as well.
    let seen = order.handler.as_ref().map(|who| format!(" (seen in {})", called(who)));
    format!("a handler of {signal} that interrupts it{}", seen.unwrap_or_default())
}

fn step_lines(text: &mut String, step: &OrderStep, handler: Option<&str>, frames: usize) {
    let who = called(&step.thread);
    let _ = writeln!(text, "  {who}");
    let wants = if step.asks_how == HoldMode::Write { "asks for" } else { "asks to read" };
    let asks = format!("    {wants} {}{}, at:\n", clean(&step.asks.text()), limit(step.timed));
    if handler.is_none() {
        text.push_str(&asks);
        stack_lines(text, step.asked.as_ref(), frames);
    }
    let reading = if step.holds_how == HoldMode::Write { "" } else { " for reading" };
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

/// Names a signal, as `SIGALRM`.
fn signal_text(signal: u64) -> String {
    let name = i32::try_from(signal).ok().and_then(signal_name);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}

fn violation_lines(text: &mut String, rule: Rule, story: &Story, violation: &RuleViolation) {
    let lock = match violation.lock.name.is_empty() {
        true => "a lock".into(),
        false => clean(&violation.lock.text()),
    };
    let told = |template: &str| fill(template, &|what| part(what, &lock, violation));
    let _ = writeln!(text, "  {}", called(&violation.thread));
    let does = told(story.does);
    if violation.stack.is_some() {
        let _ = writeln!(text, "    {does}, at:");
        stack_lines(text, violation.stack.as_ref(), FRAMES);
    } else {
        let _ = writeln!(text, "    {does}");
    }
    if violation.acquired.is_some() {
        let _ = writeln!(text, "    holds {lock}, acquired at:");
        stack_lines(text, violation.acquired.as_ref(), FRAMES);
    }
    let by_other = violation.other.as_ref().is_some_and(|it| it.tid != violation.thread.tid);
    let before = told(if by_other { story.before_by_other } else { story.before });
    if violation.earlier.is_some() {
        let _ = writeln!(text, "    {before} at:");
        stack_lines(text, violation.earlier.as_ref(), FRAMES);
    } else if violation.other.is_some() {
        let _ = writeln!(text, "    {before}");
    }
    if let Some(other) = violation.other_lock.as_ref().filter(|_| rule == Rule::Copied) {
        let _ = writeln!(text, "    the original is {}", clean(&other.text()));
    }
}

/// Puts words in the place of each `{name}`. What is put in is not looked through again: it is the
/// program's.
fn fill(template: &str, part: &dyn Fn(&str) -> String) -> String {
    let mut pieces = template.split('{');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').unwrap_or((piece, ""));
        text += &part(name);
        text += rest;
    }
    text
}

/// Returns what a name in a [`Story`] stands for.
fn part(name: &str, lock: &str, violation: &RuleViolation) -> String {
    let number = violation.number;
    match name {
        "lock" => lock.to_owned(),
        "second" => match &violation.other_lock {
            Some(lock) => clean(&lock.text()),
            None => "another mutex".into(),
        },
        "other" => violation.other.as_ref().map_or("a thread".into(), called),
        "signal" => signal_text(number),
        "times" => number.to_string(),
        "call" => {
            let call = usize::try_from(number).ok().and_then(|at| BLOCKING.get(at));
            (*call.unwrap_or(&"a function that may block")).into()
        }
        _ => format!("{{{name}}}"),
    }
}
