//! What was waited for, the worst first, as a table that needs no script.

use super::timeline::{Lane, Timeline};
use lockstead_render::table::{count, time};
use lockstead_render::words::plural;

/// The most rows of a table.
const ROWS: usize = 50;

/// A row of a table.
#[derive(Debug)]
pub(super) struct TableRow {
    /// The place in the list of what is waited for.
    pub(super) thing: usize,
    pub(super) name: String,
    pub(super) kind: String,
    /// The process, where there are several.
    pub(super) process: String,
    pub(super) waited: String,
    /// What part of the table's time it has, in percent, for a bar.
    pub(super) share: String,
    pub(super) waits: String,
    pub(super) longest: String,
    pub(super) threads: String,
    pub(super) held: String,
}

/// A table of what was waited for.
#[derive(Debug, Default)]
pub(super) struct WaitTable {
    /// Its class, for the style.
    pub(super) class: &'static str,
    pub(super) rows: Vec<TableRow>,
    /// What has no row, in words.
    pub(super) more: Option<String>,
}

/// The sums of one thing in one lane of waits.
#[derive(Clone, Debug, Default)]
struct Sums {
    waits: u64,
    ns: u64,
    longest: u64,
    threads: u64,
    last_row: Option<usize>,
    held: u64,
}

impl WaitTable {
    /// Makes the table of the waits of one lane.
    pub(super) fn of(timeline: &Timeline, lane: Lane) -> WaitTable {
        let mut sums = vec![Sums::default(); timeline.things.len()];
        for event in &timeline.events {
            let sum = &mut sums[event.thing];
            if event.lane == lane {
                sum.waits += 1;
                sum.ns = sum.ns.saturating_add(event.lasted);
                sum.longest = sum.longest.max(event.lasted);
                // The events of a thread lie together.
                sum.threads += u64::from(sum.last_row != Some(event.row));
                sum.last_row = Some(event.row);
            } else if event.lane == Lane::Hold {
                sum.held = sum.held.saturating_add(event.lasted);
            }
        }
        let mut order: Vec<usize> = (0..sums.len()).filter(|&at| sums[at].waits != 0).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(sums[at].ns), at));
        let all: u64 = order.iter().map(|&at| sums[at].ns).sum();
        let several = timeline.processes.len() > 1;
        let rows = order.iter().take(ROWS).map(|&at| {
            let (sum, thing) = (&sums[at], &timeline.things[at]);
            let pid = timeline.processes[thing.process].pid;
            TableRow {
                thing: at,
                name: thing.name.clone(),
                kind: thing.kind.clone(),
                process: if several { format!("pid {pid}") } else { String::new() },
                waited: time(sum.ns as f64),
                share: format!("{:.1}", sum.ns as f64 * 100.0 / all.max(1) as f64),
                waits: count(sum.waits as f64),
                longest: time(sum.longest as f64),
                threads: count(sum.threads as f64),
                held: if sum.held == 0 { String::new() } else { time(sum.held as f64) },
            }
        });
        let rows = rows.collect();
        let rest = order.get(ROWS..).unwrap_or(&[]);
        let more = (!rest.is_empty()).then(|| {
            let ns: u64 = rest.iter().map(|&at| sums[at].ns).sum();
            let what = plural(rest.len() as u64, "more", "more");
            format!("And {what}, with {} of waiting.", time(ns as f64))
        });
        WaitTable { class: if lane == Lane::Wait { "wait" } else { "idle" }, rows, more }
    }
}
