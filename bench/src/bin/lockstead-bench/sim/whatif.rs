//! `lockstead sim whatif`: a recorded program on another machine.

use super::advice::{self, Advice};
use super::anchor::{self, Anchor};
use super::draws::{LongestWait, MARK, notes};
use super::flags::{MachineChanges, TaskNumber, Whatif};
use super::knee::{WhatifKnee, knee_of, verdict};
use super::picture::Curve;
use super::prediction::{WhatifPoint, figures_of, load_words, reason};
use super::profile::{Profile, TokensOf};
use super::represent::{RecordedLoad, Unrepresented};
use super::simulate::simulate;
use super::usl::{self, ScalingLaw};
use super::{files, gate, measure, profile, scene};
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::table::{TextTable, rate};
use lockstead_sim::{Machine, RunSettings, Workload, run as run_simulation};
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
    /// The universal scalability law that fits each lock's points best, as far as three are
    /// predicted.
    laws: Vec<ScalingLaw>,
    /// What would help on all cores that were simulated, the largest gain there first; empty with
    /// `--no-advice`, and where nothing is predicted.
    advice: Vec<Advice>,
    /// The recorded run itself beside its simulation; null if the report does not tell of kinds of
    /// threads.
    recorded: Option<Anchor>,
    /// What a job is, in words.
    job: &'a str,
    /// Conditions and semaphores that are simulated as queues.
    represented: &'a [TokensOf],
    /// What of the program is simulated as something else: what had at least 1 % of its threads'
    /// time.
    unrepresented: &'a [Unrepresented],
    /// The share of the processors that others used while the program was recorded; null if unknown.
    /// Above 20 nothing is predicted.
    others_percent: Option<f64>,
    /// The share of the time that its threads wanted a processor for which they had none; null if
    /// unknown. Below 2 others were in nobody's way.
    delayed_percent: Option<f64>,
}

/// Simulates what the flags ask for, and prints the figures.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Whatif) -> Result<(), Failure> {
    flags.files.check()?;
    let also = flags.also.as_deref().map(scene::machine).transpose()?;
    let machine = flags.machine()?;
    let locks =
        flags.lock.iter().map(|name| scene::compared(name)).collect::<Result<Vec<_>, _>>()?;
    let mut profile = profile::read(&flags.profile)?;
    let anchor = anchor::calibrate(&mut profile, &machine, flags)?;
    if let Some(file) = &flags.workload {
        files::save(file, &profile.workload.text())?;
    }
    if let Some(base) = &flags.gate {
        return gate::run(flags, &machine, base, (&profile, anchor.as_ref()));
    }
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
    let load = RecordedLoad::of(profile.others_percent, profile.delayed_percent);
    let why: Vec<Option<String>> = parts
        .iter()
        .map(|part| {
            let running = flags.tasks(&profile.workload, part).min(part.cpus());
            reason(&profile, running).or_else(|| anchor.as_ref()?.not_predictable())
        })
        .collect();
    let figures = simulate(locks.len() * per_lock, |job| {
        let (lock, part) = (locks[job / per_lock].0, &parts[job % per_lock / seeds]);
        let tasks = flags.tasks(&profile.workload, part);
        let seed = flags.seed + (job % seeds) as u64;
        let how = RunSettings { seed, ..RunSettings::default() };
        run_simulation(part, lock, &profile.workload, tasks, how)
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
    let laws: Vec<ScalingLaw> = points.chunks(parts.len()).filter_map(usl::fit).collect();
    let advice = match (&why[parts.len() - 1], flags.no_advice) {
        (Some(_), _) if !flags.anyway => Vec::new(),
        (_, true) => Vec::new(),
        _ => {
            let most = &parts[parts.len() - 1];
            advice::rank(flags, &profile, &machine, most, also.as_ref(), &locks)?
        }
    };
    let first = why.iter().position(Option::is_some);
    let report = WhatifReport {
        machine: &machine.name,
        seeds: flags.seeds,
        points,
        knees,
        laws,
        advice,
        recorded: anchor,
        job: &profile.job,
        represented: &profile.represented,
        unrepresented: &profile.unrepresented,
        others_percent: profile.others_percent,
        delayed_percent: profile.delayed_percent,
    };
    let why = first.map(|at| (cores[at], why[at].as_deref().unwrap_or_default()));
    let text = text(&report, &profile, load, why);
    let lines: Vec<Curve> = report
        .points
        .chunks(parts.len())
        .map(|chunk| Curve {
            name: chunk[0].lock.to_owned(),
            points: chunk
                .iter()
                .filter_map(|p| Some((p.cores as f64, p.figures.as_ref()?.jobs_per_second)))
                .collect(),
        })
        .chain(report.laws.first().map(|law| law.curve(&cores)))
        .collect();
    flags.files.write_curves((&profile.workload.name, &machine.name), &lines, &text)?;
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&text)
}

impl Whatif {
    /// Returns the machine that the flags name, or the one that this runs on.
    fn machine(&self) -> Result<Machine, Failure> {
        let MachineChanges { no_threads, set } = &self.changes;
        let machine = match &self.machine {
            Some(name) => scene::machine(name)?,
            None => {
                let interrupt = Interrupt::install(interrupt::BRIEF)?;
                measure::here(&interrupt, &mut Progress::new())?
            }
        };
        scene::changed(machine, *no_threads, set)
    }

    /// Returns how many tasks run on a part of the machine.
    pub(super) fn tasks(&self, workload: &Workload, part: &Machine) -> usize {
        match self.tasks {
            Some(TaskNumber::Recorded) => workload.own_tasks(),
            Some(TaskNumber::Number(tasks)) => tasks,
            None if workload.classes.is_empty() => part.cpus(),
            None => part.cpus().max(workload.own_tasks()),
        }
    }
}

fn text(
    report: &WhatifReport<'_>,
    profile: &Profile,
    load: RecordedLoad,
    why: Option<(usize, &str)>,
) -> String {
    let seeds = report.seeds;
    let seeds_text =
        if seeds == 1 { "one seed".into() } else { format!("medians of {seeds} seeds") };
    let mut text = format!("{} on {}, {seeds_text}\n\n", profile.workload.name, report.machine);
    text += &table(&report.points);
    for knee in &report.knees {
        let _ = writeln!(text, "\n{}: {}", knee.lock, verdict(knee, why.map(|(cores, _)| cores)));
    }
    if let Some(anchor) = &report.recorded {
        let _ = writeln!(text, "\n{}", anchor.words());
    }
    if let Some((cores, why)) = why {
        let _ = writeln!(text, "\nnot predictable from {cores} cores on: {why}");
    }
    if load == RecordedLoad::Some {
        let words = load_words(report.others_percent.unwrap_or_default());
        let _ = writeln!(text, "\nless certain: {words}");
    }
    text += &advice::render(&report.advice);
    for law in &report.laws {
        let _ = writeln!(text, "\n{}", law.words());
    }
    if !report.represented.is_empty() {
        text += "\nSimulated as queues, of which each job takes and gives:\n";
        for one in report.represented {
            let _ = writeln!(text, "  `{}`: {} gives, {} waits", one.name, one.gives, one.takes);
        }
    }
    if !report.unrepresented.is_empty() {
        text += "\nNot represented:\n";
        for one in report.unrepresented {
            let _ = writeln!(text, "  {}", one.words());
        }
    }
    let _ = writeln!(
        text,
        "\nA job is {}. Spinning locks under saturation are predicted by direction only.",
        report.job
    );
    let figures = || report.points.iter().flat_map(|point| &point.figures);
    text += &notes(
        figures().any(|figures| figures.seeds_disagree),
        figures().any(|figures| !figures.longest_wait_ended),
    );
    text
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
