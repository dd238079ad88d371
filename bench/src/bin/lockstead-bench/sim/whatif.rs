//! `lockstead sim whatif`: a recorded program on another machine.

use super::flags::Whatif;
use super::picture::Curve;
use super::simulate::simulate;
use super::{profile, scene};
use crate::failure::Failure;
use crate::output;
use crate::table::{TextTable, rate, time};
use lockstead_sim::{RunFigures, RunSettings, SimLockName, run as run_simulation};
use serde::Serialize;
use std::fmt::Write;

/// The present lock is the C library's.
const LOCKS: [(SimLockName, &str); 2] =
    [(SimLockName::Futex, "present"), (SimLockName::Lockstead, "lockstead")];

/// What `lockstead sim whatif --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhatifReport<'a> {
    /// The name of the machine.
    machine: &'a str,
    /// One object for each lock and number of cores.
    points: Vec<WhatifPoint>,
}

/// One lock on one number of cores.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WhatifPoint {
    /// The lock: `present`, which is the C library's, or `lockstead`.
    lock: &'static str,
    /// The number of cores.
    cores: usize,
    /// Jobs in a second of simulated time.
    jobs_per_second: f64,
    /// How much of all processors' time was used.
    processors_used_percent: f64,
    /// The longest wait for any lock.
    longest_wait_ns: u64,
    /// The lock that was waited for most; null if none was.
    worst: Option<String>,
    /// How much of the time that lock was held or on its way.
    worst_busy_percent: f64,
}

fn point(name: &'static str, cores: usize, figures: &RunFigures) -> WhatifPoint {
    let worst = figures.locks.iter().max_by_key(|lock| lock.wait);
    let busy = |held: u64| held as f64 / 1e12 / figures.seconds * 100.0;
    WhatifPoint {
        lock: name,
        cores,
        jobs_per_second: figures.jobs.round(),
        processors_used_percent: (figures.busy * 1000.0).round() / 10.0,
        longest_wait_ns: (figures.longest() * 1e9) as u64,
        worst: worst.filter(|lock| lock.wait > 0).map(|lock| lock.name.clone()),
        worst_busy_percent: worst.map_or(0.0, |lock| (busy(lock.held) * 10.0).round() / 10.0),
    }
}

/// Simulates what the flags ask for, and prints the figures.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Whatif) -> Result<(), Failure> {
    flags.files.check()?;
    let machine = scene::machine(&flags.machine)?;
    let workload = profile::read(&flags.profile)?;
    let cores =
        if flags.cores.is_empty() { scene::doubling(&machine) } else { flags.cores.clone() };
    let mut parts = Vec::new();
    for &cores in &cores {
        parts.push(scene::with_cores(&machine, cores)?);
    }
    let figures = simulate(LOCKS.len() * parts.len(), |job| {
        let (lock, part) = (LOCKS[job / parts.len()].0, &parts[job % parts.len()]);
        let tasks = flags.tasks.map_or(part.cpus(), |tasks| tasks as usize);
        run_simulation(
            part,
            lock,
            &workload,
            tasks,
            RunSettings { seed: 1, ..RunSettings::default() },
        )
    })?;
    let points: Vec<WhatifPoint> = figures
        .iter()
        .enumerate()
        .map(|(job, figures)| point(LOCKS[job / parts.len()].1, cores[job % parts.len()], figures))
        .collect();
    let mut text = format!("{} on {}\n\n", workload.name, machine.name);
    let titles =
        ["lock", "cores", "jobs a second", "processors", "longest wait", "waited for most"];
    let mut table = TextTable::new(&titles);
    for point in &points {
        table.row([
            point.lock.to_owned(),
            point.cores.to_string(),
            rate(point.jobs_per_second),
            format!("{:.1} %", point.processors_used_percent),
            time(point.longest_wait_ns as f64),
            point.worst.as_ref().map_or(String::new(), |name| {
                format!("{name} (held {:.0} % of the time)", point.worst_busy_percent)
            }),
        ]);
    }
    text += &table.render();
    for chunk in points.chunks(parts.len()) {
        let _ = writeln!(text, "\n{}: {}", chunk[0].lock, verdict(chunk));
    }
    text += "\nA job is one acquisition of the busiest lock and what lies between two of them. \
             Spinning locks under saturation are predicted by direction only.\n";
    let lines: Vec<Curve> = points
        .chunks(parts.len())
        .map(|chunk| Curve {
            name: chunk[0].lock.to_owned(),
            points: chunk.iter().map(|p| (p.cores as f64, p.jobs_per_second)).collect(),
        })
        .collect();
    flags.files.write_curves((&workload.name, &machine.name), &lines, &text)?;
    if flags.json {
        return output::print_json(&WhatifReport { machine: &machine.name, points });
    }
    output::print(&text)
}

/// A step that adds less than this share of what it could has stopped to scale.
const SCALES: f64 = 0.25;

fn verdict(points: &[WhatifPoint]) -> String {
    let stop = points.windows(2).find(|pair| {
        let more = pair[1].cores as f64 / pair[0].cores as f64 - 1.0;
        let gain = pair[1].jobs_per_second / pair[0].jobs_per_second.max(1.0) - 1.0;
        gain < SCALES * more
    });
    match stop {
        None => "scales to all cores".into(),
        Some(pair) => {
            let by = pair[1].worst.as_ref().map_or(String::new(), |name| format!(", by {name}"));
            format!("stops to scale at {} cores{by}", pair[0].cores)
        }
    }
}
