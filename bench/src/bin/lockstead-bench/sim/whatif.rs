//! `lockstead sim whatif`: a recorded program on another machine.

use super::draws::{Draws, LongestWait, MARK, notes};
use super::flags::Whatif;
use super::picture::Curve;
use super::profile::Profile;
use super::represent::{RecordedLoad, Unrepresented, not_predictable};
use super::simulate::simulate;
use super::{profile, scene};
use crate::failure::Failure;
use crate::output;
use crate::table::{TextTable, rate};
use lockstead_sim::{Machine, RunFigures, RunSettings, run as run_simulation};
use serde::Serialize;
use std::fmt::Write;

/// What `lockstead sim whatif --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhatifReport<'a> {
    /// The name of the machine.
    machine: &'a str,
    /// The number of seeds of each simulation.
    seeds: u64,
    /// One object for each lock and number of cores.
    points: Vec<WhatifPoint>,
    /// One object for each lock: where it stops to scale, as far as that can be predicted.
    knees: Vec<WhatifKnee>,
    /// What of the program is simulated as something else: what had at least 1 % of its threads'
    /// time.
    unrepresented: Vec<Unrepresented>,
    /// The share of the processors that others used while the program was recorded; null if unknown.
    /// Above 20 nothing is predicted.
    others_percent: Option<f64>,
    /// The share of the time that its threads wanted a processor for which they had none; null if
    /// unknown. Below 2 others were in nobody's way.
    delayed_percent: Option<f64>,
}

/// One lock on one number of cores.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WhatifPoint {
    /// The lock, by the name that it has in `lockstead sim list`, or `present`, which is the C
    /// library's.
    lock: &'static str,
    /// The number of cores.
    cores: usize,
    /// Why there is no prediction, in words; null if there is one. Then and with `--anyway` there are
    /// figures.
    not_predictable: Option<String>,
    /// The figures; null if there is no prediction.
    figures: Option<WhatifFigures>,
}

/// What is predicted of one lock on one number of cores.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WhatifFigures {
    /// Jobs in a second of simulated time: the median over the seeds.
    jobs_per_second: f64,
    /// `jobs_per_second` of the slowest seed.
    lowest: f64,
    /// `jobs_per_second` of the fastest seed.
    highest: f64,
    /// Whether the two are further apart than a quarter of the median: then the system has more than
    /// one state, or is near a collapse.
    seeds_disagree: bool,
    /// How much of all processors' time was used, with the seed of the median.
    processors_used_percent: f64,
    /// The longest wait for any lock with any seed, those among them that had not ended when the
    /// simulation did.
    longest_wait_ns: u64,
    /// Whether that wait had ended.
    longest_wait_ended: bool,
    /// The most tasks that still waited for a lock when the simulation of a seed ended.
    still_waiting: u64,
    /// The lock that was waited for most, with the seed of the median; null if none was.
    worst: Option<String>,
    /// How much of the time that lock was held or on its way.
    worst_busy_percent: f64,
}

/// Where a lock stops to scale.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WhatifKnee {
    /// The lock, as in `points`.
    lock: &'static str,
    /// The number of cores beyond which more of them add less than a quarter of what they could, by
    /// the medians; null if there is none.
    cores: Option<usize>,
    /// The same number with the seed for which it is lowest; null if it is none for any.
    lowest: Option<usize>,
    /// The same number with the seed for which it is highest; null if it is none for any seed.
    highest: Option<usize>,
    /// The lock of the program that stops it; null if none is waited for.
    by: Option<String>,
}

fn figures_of(runs: &[RunFigures]) -> WhatifFigures {
    let draws = Draws::new(runs);
    let (figures, longest) = (draws.median(), draws.longest());
    let worst = figures.locks.iter().max_by_key(|lock| lock.wait);
    let busy = |held: u64| held as f64 / 1e12 / figures.seconds * 100.0;
    WhatifFigures {
        jobs_per_second: figures.jobs.round(),
        lowest: draws.lowest().round(),
        highest: draws.highest().round(),
        seeds_disagree: draws.disagree(),
        processors_used_percent: (figures.busy * 1000.0).round() / 10.0,
        longest_wait_ns: longest.ns,
        longest_wait_ended: longest.ended,
        still_waiting: draws.waiting(),
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
    let machine = flags.machine.resolve()?;
    let locks =
        flags.lock.iter().map(|name| scene::compared(name)).collect::<Result<Vec<_>, _>>()?;
    let Profile { workload, unrepresented, others_percent, delayed_percent } =
        profile::read(&flags.profile)?;
    let mut cores =
        if flags.cores.is_empty() { scene::doubling(&machine) } else { flags.cores.clone() };
    cores.sort_unstable();
    cores.dedup();
    let mut parts = Vec::new();
    for &cores in &cores {
        parts.push(scene::with_cores(&machine, cores)?);
    }
    let seeds = flags.seeds as usize;
    let per_lock = parts.len() * seeds;
    let tasks = |part: &Machine| flags.tasks.map_or(part.cpus(), |tasks| tasks as usize);
    let load = RecordedLoad::of(others_percent, delayed_percent);
    let why: Vec<Option<String>> = parts
        .iter()
        .map(|part| {
            let loaded = load == RecordedLoad::Much;
            let loaded = loaded.then(|| load_words(others_percent.unwrap_or_default()));
            loaded.or_else(|| not_predictable(&unrepresented, tasks(part).min(part.cpus())))
        })
        .collect();
    let figures = simulate(locks.len() * per_lock, |job| {
        let (lock, part) = (locks[job / per_lock].0, &parts[job % per_lock / seeds]);
        let tasks = tasks(part);
        let seed = flags.seed + (job % seeds) as u64;
        run_simulation(part, lock, &workload, tasks, RunSettings { seed, ..RunSettings::default() })
    })?;
    let points: Vec<WhatifPoint> = figures
        .chunks(seeds)
        .enumerate()
        .map(|(at, runs)| {
            let part = at % parts.len();
            let predicted = flags.anyway || why[part].is_none();
            WhatifPoint {
                lock: locks[at / parts.len()].1,
                cores: cores[part],
                not_predictable: why[part].clone(),
                figures: predicted.then(|| figures_of(runs)),
            }
        })
        .collect();
    let knees: Vec<WhatifKnee> = points
        .chunks(parts.len())
        .zip(figures.chunks(per_lock))
        .map(|(points, runs)| knee_of(points, runs, seeds))
        .collect();
    let seeds_text =
        if seeds == 1 { "one seed".into() } else { format!("medians of {seeds} seeds") };
    let mut text = format!("{} on {}, {seeds_text}\n\n", workload.name, machine.name);
    text += &table(&points);
    let first = why.iter().position(Option::is_some);
    for knee in &knees {
        let _ = writeln!(text, "\n{}: {}", knee.lock, verdict(knee, first.map(|at| cores[at])));
    }
    if let Some(at) = first {
        let (cores, why) = (cores[at], why[at].as_deref().unwrap_or_default());
        let _ = writeln!(text, "\nnot predictable from {cores} cores on: {why}");
    }
    if load == RecordedLoad::Some {
        let words = load_words(others_percent.unwrap_or_default());
        let _ = writeln!(text, "\nless certain: {words}");
    }
    if !unrepresented.is_empty() {
        text += "\nNot represented:\n";
        for one in &unrepresented {
            let _ = writeln!(text, "  {}", one.words());
        }
    }
    text += "\nA job is one acquisition of the busiest lock and what lies between two of them. \
             Spinning locks under saturation are predicted by direction only.\n";
    text += &notes(
        points.iter().flat_map(|point| &point.figures).any(|figures| figures.seeds_disagree),
        points.iter().flat_map(|point| &point.figures).any(|figures| !figures.longest_wait_ended),
    );
    let lines: Vec<Curve> = points
        .chunks(parts.len())
        .map(|chunk| Curve {
            name: chunk[0].lock.to_owned(),
            points: chunk
                .iter()
                .filter_map(|p| Some((p.cores as f64, p.figures.as_ref()?.jobs_per_second)))
                .collect(),
        })
        .collect();
    flags.files.write_curves((&workload.name, &machine.name), &lines, &text)?;
    if flags.json {
        let report = WhatifReport {
            machine: &machine.name,
            seeds: flags.seeds,
            points,
            knees,
            unrepresented,
            others_percent,
            delayed_percent,
        };
        return output::print_json(&report);
    }
    output::print(&text)
}

/// Says how busy others kept the machine, and what to do about it.
fn load_words(percent: f64) -> String {
    format!(
        "others used {percent:.1} % of the processors while it was recorded, so threads that waited \
         for one seem to compute, or to hold a lock; record it with nothing else to do"
    )
}

fn table(points: &[WhatifPoint]) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "cores",
        "jobs a second",
        "range",
        "processors",
        "longest wait",
        "not ended",
        "waited for most",
    ]);
    for point in points {
        let (lock, cores) = (point.lock.to_owned(), point.cores.to_string());
        let Some(point) = &point.figures else {
            let none = std::iter::repeat_n(String::new(), 5);
            table.row([lock, cores, "not predictable".into()].into_iter().chain(none));
            continue;
        };
        let mark = if point.seeds_disagree { MARK } else { "" };
        let longest = LongestWait { ns: point.longest_wait_ns, ended: point.longest_wait_ended };
        table.row([
            lock,
            cores,
            rate(point.jobs_per_second),
            format!("{} to {}{mark}", rate(point.lowest), rate(point.highest)),
            format!("{:.1} %", point.processors_used_percent),
            longest.text(),
            point.still_waiting.to_string(),
            point.worst.as_ref().map_or(String::new(), |name| {
                format!("{name} (held {:.0} % of the time)", point.worst_busy_percent)
            }),
        ]);
    }
    table.render()
}

/// A step that adds less than this share of what it could has stopped to scale.
const SCALES: f64 = 0.25;

/// Returns the place of the first number of cores, of those given in rising order with the jobs a
/// second of each, beyond which more of them no longer scale.
fn knee(curve: &[(usize, f64)]) -> Option<usize> {
    curve.windows(2).position(|pair| {
        let more = pair[1].0 as f64 / pair[0].0 as f64 - 1.0;
        let gain = pair[1].1 / pair[0].1.max(1.0) - 1.0;
        gain < SCALES * more
    })
}

/// Finds where a lock stops to scale: by its medians, and with each seed. `runs`: for each number
/// of cores all seeds in turn.
fn knee_of(points: &[WhatifPoint], runs: &[RunFigures], seeds: usize) -> WhatifKnee {
    // What cannot be predicted begins somewhere and goes on to the last.
    let (lock, all) = (points[0].lock, points);
    let known = all.iter().take_while(|point| point.figures.is_some()).count();
    let points = &all[..known];
    let medians: Vec<(usize, f64)> = points
        .iter()
        .filter_map(|point| Some((point.cores, point.figures.as_ref()?.jobs_per_second)))
        .collect();
    let found = knee(&medians);
    let each: Vec<usize> = (0..seeds)
        .filter_map(|seed| {
            let jobs = runs.iter().skip(seed).step_by(seeds).map(|figures| figures.jobs);
            knee(&points.iter().map(|point| point.cores).zip(jobs).collect::<Vec<_>>())
        })
        .map(|at| points[at].cores)
        .collect();
    WhatifKnee {
        lock,
        cores: found.map(|at| points[at].cores),
        lowest: each.iter().min().copied(),
        // Of a seed that scales to all there is no number, and none is higher.
        highest: if each.len() == seeds { each.iter().max().copied() } else { None },
        by: found.and_then(|at| points[at + 1].figures.as_ref()?.worst.clone()),
    }
}

/// Says where a lock stops to scale; `unknown`: from how many cores on nothing can be predicted.
fn verdict(knee: &WhatifKnee, unknown: Option<usize>) -> String {
    let all = unknown.map_or("all cores".to_owned(), |cores| format!("below {cores} cores"));
    let words = |cores: Option<usize>| cores.map_or(all.clone(), |cores| format!("{cores} cores"));
    let range = if (knee.lowest, knee.highest) == (knee.cores, knee.cores) {
        String::new()
    } else {
        let low = knee.lowest.map_or(all.clone(), |cores| cores.to_string());
        format!("; {low} to {} by seed", words(knee.highest))
    };
    let by = knee.by.as_ref().map_or(String::new(), |name| format!(", by {name}"));
    match knee.cores {
        None if unknown.is_some() => format!("not predictable{range}"),
        None => format!("scales to all cores{range}"),
        Some(cores) => format!("stops to scale at {cores} cores{by}{range}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_more_cores_add_less_than_a_quarter_of_what_they_could() {
        assert_eq!(knee(&[(1, 100.0), (2, 200.0), (4, 390.0), (8, 400.0)]), Some(2));
        assert_eq!(knee(&[(1, 100.0), (2, 130.0), (4, 170.0)]), None);
        assert_eq!(knee(&[(1, 100.0), (2, 90.0), (4, 170.0)]), Some(0));
        assert_eq!(knee(&[(4, 100.0)]), None);
    }

    #[test]
    fn a_verdict_names_the_range_where_seeds_differ() {
        let knee = |cores, lowest, highest, by: Option<&str>| WhatifKnee {
            lock: "present",
            cores,
            lowest,
            highest,
            by: by.map(str::to_owned),
        };
        let said = |knee| verdict(&knee, None);
        assert_eq!(said(knee(None, None, None, None)), "scales to all cores");
        assert_eq!(
            said(knee(Some(8), Some(8), Some(8), Some("a"))),
            "stops to scale at 8 cores, by a"
        );
        assert_eq!(
            said(knee(Some(8), Some(4), None, None)),
            "stops to scale at 8 cores; 4 to all cores by seed"
        );
        assert_eq!(
            said(knee(None, Some(4), None, None)),
            "scales to all cores; 4 to all cores by seed"
        );
        assert_eq!(verdict(&knee(None, None, None, None), Some(4)), "not predictable");
        let known = knee(Some(2), Some(2), Some(2), None);
        assert_eq!(verdict(&known, Some(4)), "stops to scale at 2 cores");
    }
}
