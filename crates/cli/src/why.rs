//! `lockstead why`: how one lock came to be before another.

use crate::check::recorded::{self, RecordedProcess};
use crate::finding_text::{called, limit, stack_lines};
use clap::Args;
use lockstead_inspect::check::model::HoldMode;
use lockstead_inspect::check::order::{RecordedEdge, RecordedOrder};
use lockstead_inspect::check::why::{Meant, OrderPath, meant, way};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use lockstead_render::words::{clean, plural};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead run --check --json locks.json -- ./bank
  lockstead why accounts journal locks.json
  lockstead why 'cache.c:41' table_lock locks.json      a part of a name will do

Exit status:
  0    shown
  1    nothing leads from the one to the other, or the report cannot be read
  2    wrong usage: a name means no lock, or several, which are listed")]
pub(crate) struct WhyFlags {
    /// The lock that is held: its name as in a report, or a part of it
    #[arg(value_name = "A")]
    pub(crate) first: String,
    /// The lock that is asked for
    #[arg(value_name = "B")]
    pub(crate) second: String,
    /// A report of `lockstead run --check --json FILE`, or - for standard input
    #[arg(value_name = "REPORT.json")]
    pub(crate) report: PathBuf,
    /// The process, where the run had several
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
}

/// The most names that are listed where several are meant.
const LISTED: usize = 20;
/// The number of frames of a stack.
const FRAMES: usize = 8;

/// Shows the shortest chain of the order.
///
/// # Errors
/// [`Failure::Usage`] where a name means no lock or several, [`Failure::Run`] where
/// nothing leads from one to the other.
pub(crate) fn run(flags: &WhyFlags) -> Result<(), Failure> {
    let report = recorded::read(&flags.report)?;
    let ordered: Vec<(&RecordedProcess, &RecordedOrder)> = report
        .processes
        .iter()
        .filter(|process| flags.pid.is_none_or(|pid| pid == process.pid))
        .filter_map(|process| Some((process, process.order.as_ref()?)))
        .collect();
    if ordered.is_empty() {
        return Err(Failure::Run(match flags.pid {
            Some(pid) => format!("the report has no order of locks of a process {pid}"),
            None => "the report has no order of locks: `lockstead run --check --json FILE` \
                     records it"
                .into(),
        }));
    }
    let first = which(&ordered, &flags.first)?;
    let second = which(&ordered, &flags.second)?;
    let mut ways: Vec<(&RecordedProcess, &RecordedOrder, OrderPath, bool)> = Vec::new();
    for ((process, order), (from, to)) in ordered.iter().zip(first.iter().zip(&second)) {
        if let Some(found) = way(order, from, to) {
            let back = way(order, to, from).is_some_and(|back| !back.by_class);
            ways.push((process, order, found, back));
        }
    }
    let best = ways.iter().min_by_key(|(.., way, _)| (way.by_class, way.edges.len()));
    let Some((process, order, found, back)) = best else {
        let left: u64 = ordered.iter().map(|(_, order)| order.left_out).sum();
        let left = match left {
            0 => String::new(),
            _ => format!(" ({} not in the report, being too many)", plural(left, "pair", "pairs")),
        };
        return Err(Failure::Run(format!(
            "nobody was seen to hold {} and ask, by whatever way, for {}{left}",
            flags.first, flags.second
        )));
    };
    let mut text = text(process, order, found);
    if *back {
        let _ = writeln!(
            text,
            "The other way round as well: lockstead why {} {}",
            quoted(&flags.second),
            quoted(&flags.first)
        );
    }
    if ways.len() > 1 {
        let others = plural(ways.len() as u64 - 1, "other process", "other processes");
        let _ = writeln!(text, "Also in {others} (--pid).");
    }
    output::print(&text)
}

/// Returns the locks that a word means in each of the processes.
fn which(
    ordered: &[(&RecordedProcess, &RecordedOrder)],
    word: &str,
) -> Result<Vec<BTreeSet<usize>>, Failure> {
    let all: Vec<Meant> = ordered.iter().map(|(_, order)| meant(order, word)).collect();
    let locks: Vec<BTreeSet<usize>> = all
        .iter()
        .map(|meant| match meant {
            Meant::Locks(locks) => locks.clone(),
            Meant::Several(_) | Meant::Nothing => BTreeSet::new(),
        })
        .collect();
    if locks.iter().any(|locks| !locks.is_empty()) {
        return Ok(locks);
    }
    let mut names: Vec<String> = all
        .into_iter()
        .flat_map(|meant| match meant {
            Meant::Several(names) => names,
            Meant::Locks(_) | Meant::Nothing => Vec::new(),
        })
        .collect();
    let several = !names.is_empty();
    if !several {
        let locks = ordered.iter().flat_map(|(_, order)| &order.locks);
        names = locks.map(|lock| lock.name.clone()).collect();
    }
    names.sort_unstable();
    names.dedup();
    let what = if several { "is part of several names" } else { "is no lock of this report" };
    let mut text = format!("`{word}` {what}; there are:");
    for name in names.iter().take(LISTED) {
        let _ = write!(text, "\n  {}", clean(name));
    }
    if names.len() > LISTED {
        let _ = write!(text, "\n  and {} more", names.len() - LISTED);
    }
    Err(Failure::Usage(text))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

fn text(process: &RecordedProcess, order: &RecordedOrder, found: &OrderPath) -> String {
    let name = |at: usize| order.locks.get(at).map_or("a lock".into(), |lock| clean(&lock.name));
    let (Some(first), Some(last)) = (found.edges.first(), found.edges.last()) else {
        return String::new();
    };
    let mut text = format!(
        "{} comes before {} in {}, in {}\n",
        name(first.from),
        name(last.to),
        process.name(),
        plural(found.edges.len() as u64, "step", "steps")
    );
    if found.by_class {
        text.push_str("by locks of the same origin: where a step begins with another one\n");
    }
    for (at, edge) in found.edges.iter().enumerate() {
        step(&mut text, order, edge, at + 1);
    }
    text
}

fn step(text: &mut String, order: &RecordedOrder, edge: &RecordedEdge, number: usize) {
    let lock = |at: usize| order.locks.get(at).map_or("a lock".into(), |lock| clean(&lock.text()));
    let stack = |at: Option<usize>| order.stacks.get(at?);
    let who = order.threads.get(edge.thread).map_or("a thread".into(), called);
    let alone = if edge.alone { ", the only thread then" } else { "" };
    let _ = writeln!(text, "  {number}. {who}{alone}");
    let wants = if edge.to_how == HoldMode::Write { "asks for" } else { "asks to read" };
    let _ = writeln!(text, "    {wants} {}{}, at:", lock(edge.to), limit(edge.timed));
    stack_lines(text, stack(edge.asked), FRAMES);
    let reading = if edge.from_how == HoldMode::Write { "" } else { " for reading" };
    let tried = if edge.tried { " by trylock" } else { "" };
    let _ = writeln!(text, "    holds {}{reading}, acquired{tried} at:", lock(edge.from));
    stack_lines(text, stack(edge.acquired), FRAMES);
}
