//! `lockstead sim measure`: the machine it runs on, as a file.

use super::flags::MeasureFlags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use lockstead_bench::costs::{self, Costs, CountedShare};
use lockstead_bench::{Error, Session};
use lockstead_render::machine::MachineFacts as Here;
use lockstead_sim::{Kernel, Lines, Machine, MachineLayout, Scheduler, Smt};

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(_: &MeasureFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let machine = here(&interrupt, &mut progress)?;
    drop(progress);
    output::print(&machine.text())
}

/// Returns the machine that this process runs on, measured.
///
/// # Errors
/// As [`Failure`].
pub(super) fn here(interrupt: &Interrupt, progress: &mut Progress) -> Result<Machine, Failure> {
    let place = Here::here();
    output::warn_about(&place);
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let costs = costs::measure(&mut Session::new(interrupt.flag(), &mut step)).map_err(failed)?;
    // With one processor there is no other one that could be found.
    let finds = (!costs.transfer.is_empty()).then(|| doubt("finds", costs.finds, FINDS_UNCOUNTED));
    let doubts = [finds.flatten(), doubt("keeps", costs.keeps, KEEPS_UNCOUNTED)];
    doubts.into_iter().flatten().for_each(output::warning);
    let cpu = place.cpu.unwrap_or_else(|| "unknown processor".into());
    Ok(machine(&costs, &format!("{cpu}, Linux {}, measured", place.kernel.unwrap_or_default())))
}

/// Returns what a measurement's error means to the command.
pub(super) fn failed(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted,
        error => Failure::Run(error.to_string()),
    }
}

/// Returns a time to a hundredth: more is not known.
fn rounded(time: f64) -> f64 {
    (time * 100.0).round() / 100.0
}

/// Returns what is to be said of a share that was not counted, or each time otherwise.
fn doubt(name: &str, share: Option<CountedShare>, otherwise: f64) -> Option<String> {
    match share {
        None => Some(format!(
            "`{name}` could not be counted, since too few wake-ups met a thread that slept: {otherwise} is taken \
             for it; measure again on an idle machine"
        )),
        Some(share) if share.counts < 3 => Some(format!(
            "`{name}` could be counted only {} of 5 times, since too few wake-ups met a thread that slept; \
             measure again on an idle machine",
            share.counts
        )),
        Some(share) if share.is_uncertain() => Some(format!(
            "`{name}` was {} to {} in {} counts, of which the median is taken: predict with both \
             (--set {name}=…) before you believe one",
            rounded(share.least),
            rounded(share.most),
            share.counts
        )),
        Some(_) => None,
    }
}

fn machine(costs: &Costs, about: &str) -> Machine {
    let us = |ns: f64| rounded(ns / 1000.0);
    let layout = MachineLayout {
        nodes: costs.layout.nodes,
        caches: costs.layout.caches,
        cores: costs.layout.cores,
        threads: costs.layout.threads,
        pace: 1.0,
        hops: Vec::new(),
        used: None,
    };
    let lines = Lines {
        hit: rounded(costs.hit),
        exchange: rounded(costs.exchange),
        sibling: rounded(costs.sibling.unwrap_or(costs.exchange)),
        transfer: distances(costs).into_iter().map(rounded).collect(),
        occupied: Vec::new(),
        memory: rounded(costs.memory),
        hold_write: rounded(costs.hold_write),
        hold_read: rounded(costs.hold_read),
        contended: Vec::new(),
        preference: 0.0,
        patience: 8,
        hold_variation: 0.0,
        // Chosen: two that took the same time for everything would stay in step for ever.
        jitter: 0.1,
        pause: rounded(costs.pause),
    };
    let scheduler = Scheduler {
        // Every turn is a slice, however many wait.
        latency: us(costs.slice),
        slice: us(costs.slice),
        granularity: if costs.intrusion < costs.slice / 2.0 { 0.0 } else { us(costs.slice) },
        credit: us(costs.slice),
        switch: us(costs.switch),
        wake: us(costs.wake),
        queue: us(QUEUE.min(costs.wake)),
        kick: us(costs.kick),
        signal: us(costs.signal),
        leaving: false,
        placement: 1.0,
        finds: rounded(costs.finds.map_or(FINDS_UNCOUNTED, |share| share.median)),
        keeps: rounded(costs.keeps.map_or(KEEPS_UNCOUNTED, |share| share.median)),
        // The kernel's rule: as many as a node has last-level caches, or an eighth of a node.
        stay: match &costs.layout {
            layout if layout.caches > 1 => layout.caches as f64,
            layout => (layout.cores * layout.threads / 8).max(1) as f64,
        },
        // A kernel with 250 ticks a second.
        balance: 4000.0,
        // The kernel's default (`sched_migration_cost_ns`).
        hot: 500.0,
        idle: costs.idle.iter().map(|&(after, exit)| (us(after), us(exit))).collect(),
    };
    let kernel = Kernel {
        call: rounded(costs.call),
        // What was measured took and released the lock, and counted twice.
        futex: rounded((costs.futex - 3.0 * costs.exchange).max(0.0)),
        bucket: BUCKET,
        buckets: 0.0,
        waking: 0.0,
        clock: rounded(costs.clock),
        restart: rounded(costs.restart),
    };
    let smt = Smt { speed: costs.speed, exchanges: 1.0 };
    Machine::new(("here", about), layout, lines, smt, scheduler, kernel)
}

/// What is taken where the shares were not counted: what a machine file without them has.
const FINDS_UNCOUNTED: f64 = 1.0;
const KEEPS_UNCOUNTED: f64 = 0.0;

/// What cannot be measured from outside, in nanoseconds: how long a wake-up locks the queue of its target,
/// and a change of a bucket the bucket. Orders of magnitude, as in the machines that are built in.
const QUEUE: f64 = 300.0;
const BUCKET: f64 = 60.0;

/// Returns a transfer for each distance that a machine of this layout has. What does not exist
/// between the others (one cache a node) costs what the next one does.
fn distances(costs: &Costs) -> Vec<f64> {
    let found = &costs.transfer;
    let last = found.last().copied().unwrap_or(costs.memory);
    let missing = match (costs.layout.nodes, costs.layout.caches) {
        (1, 1) => 1,
        (1, _) => 2,
        _ => 3,
    };
    match (found.len(), costs.layout.caches, costs.layout.cores) {
        (2, 1, _) if missing == 3 => vec![found[0], found[1], found[1]],
        _ => found.iter().copied().chain(std::iter::repeat(last)).take(missing).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_was_not_counted_or_not_twice_the_same_is_told() {
        let share = |least, most| Some(CountedShare { median: 0.5, least, most, counts: 5 });
        let none = doubt("keeps", None, KEEPS_UNCOUNTED).expect("said");
        assert!(
            none.contains("`keeps` could not be counted") && none.contains("0 is taken"),
            "{none}"
        );
        let far = doubt("finds", share(0.012, 0.55), FINDS_UNCOUNTED).expect("said");
        assert!(far.contains("`finds` was 0.01 to 0.55 in 5 counts"), "{far}");
        assert_eq!(doubt("finds", share(0.4, 0.55), FINDS_UNCOUNTED), None);
        let few = CountedShare { median: 0.9, least: 0.9, most: 0.9, counts: 2 };
        let few = doubt("keeps", Some(few), KEEPS_UNCOUNTED).expect("said");
        assert!(few.contains("only 2 of 5 times"), "{few}");
    }
}
