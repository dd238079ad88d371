//! What would help: each of the worst locks changed in the ways in which one can change it.

use super::draws::Draws;
use super::flags::Whatif;
use super::profile::Profile;
use super::scene::PRESENT;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::table::TextTable;
use lockstead_sim::{
    Machine, RunFigures, RunSettings, SimLockName, UseKind, Workload, run as run_simulation,
};
use serde::Serialize;
use std::cmp::Reverse;

/// A change, and what it would gain.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Advice {
    /// The lock of the program that is changed; null if it is all mutexes.
    lock: Option<String>,
    /// The change, in words.
    change: String,
    /// The gain on each part of the machine, and on the whole of that of `--also`.
    gains: Vec<AdviceGain>,
    /// The place in `gains` that says where this stands among the others.
    #[serde(skip)]
    ranked_by: usize,
}

/// What a change would gain on so many cores.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct AdviceGain {
    /// The name of the machine: the one that is simulated, or that of `--also`.
    machine: String,
    /// The number of cores.
    cores: usize,
    /// The median over the seeds, each beside the same seed without the change, in per cent of the
    /// throughput.
    gain_percent: f64,
    /// `gain_percent` of the lowest seed.
    lowest: f64,
    /// `gain_percent` of the highest seed.
    highest: f64,
}

/// The locks that are changed; chosen.
const WORST: usize = 3;
/// The parts into which a lock is split; chosen.
const SHARDS: usize = 8;
/// The share of a mutex's sections that still write once it is a reader-writer lock; chosen. No
/// report can tell what a section only reads.
const WRITES: f64 = 0.1;

struct Change {
    lock: Option<String>,
    words: String,
    workload: Workload,
    mutex: SimLockName,
}

/// Simulates the changes on as many cores as the program was recorded on, and on all that are asked
/// for, and returns them by what they gain there. `also`: another machine to simulate them on.
///
/// # Errors
/// As [`Failure`].
pub(super) fn rank(
    flags: &Whatif,
    profile: &Profile,
    machine: &Machine,
    most: &Machine,
    also: Option<&Machine>,
    compared: &[(SimLockName, &'static str)],
) -> Result<Vec<Advice>, Failure> {
    let recorded = profile.recorded.and_then(|run| machine.with_cores(run.processors).ok());
    let recorded = recorded.filter(|part| part.cores() < most.cores());
    let ranked_by = usize::from(recorded.is_some());
    let parts: Vec<&Machine> = recorded.iter().chain([most]).chain(also).collect();
    let seeds = flags.seeds as usize;
    let run = |part: &Machine, workload: &Workload, mutex: SimLockName, seed: usize| {
        let how = RunSettings { seed: flags.seed + seed as u64, ..RunSettings::default() };
        run_simulation(part, mutex, workload, flags.tasks(workload, part), how)
    };
    let base = simulate(parts.len() * seeds, |job| {
        run(parts[job / seeds], &profile.workload, SimLockName::Futex, job % seeds)
    })?;
    let on_most = &base[ranked_by * seeds..(ranked_by + 1) * seeds];
    let changes = changes(&profile.workload, &worst(on_most, &profile.workload), compared);
    let each = parts.len() * seeds;
    let runs = simulate(changes.len() * each, |job| {
        let (change, part) = (&changes[job / each], parts[job % each / seeds]);
        run(part, &change.workload, change.mutex, job % seeds)
    })?;
    let mut advice: Vec<Advice> = changes
        .iter()
        .zip(runs.chunks(each))
        .map(|(change, runs)| Advice {
            lock: change.lock.clone(),
            change: change.words.clone(),
            gains: parts
                .iter()
                .enumerate()
                .map(|(at, part)| {
                    let these = at * seeds..(at + 1) * seeds;
                    gain(part, &base[these.clone()], &runs[these])
                })
                .collect(),
            ranked_by,
        })
        .collect();
    advice.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
    Ok(advice)
}

impl Advice {
    fn gain(&self) -> f64 {
        self.gains.get(self.ranked_by).map_or(0.0, |gain| gain.gain_percent)
    }
}

fn gain(part: &Machine, base: &[RunFigures], changed: &[RunFigures]) -> AdviceGain {
    let mut each: Vec<f64> = base
        .iter()
        .zip(changed)
        .map(|(base, changed)| (changed.jobs / base.jobs.max(1e-9) - 1.0) * 100.0)
        .collect();
    each.sort_by(f64::total_cmp);
    let rounded = |gain: f64| (gain * 10.0).round() / 10.0;
    AdviceGain {
        machine: part.name.clone(),
        cores: part.cores(),
        gain_percent: rounded(each[each.len() / 2]),
        lowest: rounded(each[0]),
        highest: rounded(each[each.len() - 1]),
    }
}

/// Returns the locks of the workload that were waited for most, by place; of several of a kind the
/// sum.
fn worst(runs: &[RunFigures], workload: &Workload) -> Vec<usize> {
    let figures = Draws::new(runs).median();
    let mut waits = Vec::new();
    let mut first = 0;
    for lock in &workload.locks {
        let these = &figures.locks[first..first + lock.many];
        waits.push(these.iter().map(|lock| lock.wait).sum::<u64>());
        first += lock.many;
    }
    let mut order: Vec<usize> = (0..waits.len()).filter(|&at| waits[at] > 0).collect();
    order.sort_by_key(|&at| Reverse(waits[at]));
    order.truncate(WORST);
    order
}

fn changes(
    workload: &Workload,
    worst: &[usize],
    compared: &[(SimLockName, &'static str)],
) -> Vec<Change> {
    let mut all = Vec::new();
    for &at in worst {
        let name = &workload.locks[at].name;
        let mut add = |words: &str, change: &dyn Fn(&mut Workload)| {
            let mut changed = workload.clone();
            change(&mut changed);
            all.push(Change {
                lock: Some(name.clone()),
                words: words.to_owned(),
                workload: changed,
                mutex: SimLockName::Futex,
            });
        };
        add("its section halved", &|workload| scale(workload, at, 0.5));
        add(&format!("split in {SHARDS}"), &|workload| {
            workload.locks[at].many = (workload.locks[at].many * SHARDS).min(256);
        });
        add("its section taken outside", &|workload| take_outside(workload, at));
        if workload.locks[at].kind == UseKind::Mutex {
            add("a reader-writer lock, if nine in ten only read", &|workload| {
                let name = workload.locks[at].name.clone();
                workload.locks[at].kind = UseKind::Shared;
                workload.locks[at].writes = WRITES;
                let uses = workload.classes.iter_mut().flat_map(|class| &mut class.uses);
                uses.filter(|used| used.lock == name).for_each(|used| used.writes = WRITES);
            });
        }
    }
    let others = compared.iter().filter(|&&(_, name)| name != PRESENT);
    all.extend(others.map(|&(mutex, name)| Change {
        lock: None,
        words: format!("all mutexes replaced by {name}"),
        workload: workload.clone(),
        mutex,
    }));
    all
}

impl AdviceGain {
    /// Says where this is gained, in a report on the machine `here`.
    fn place(&self, here: &str) -> String {
        let machine = if self.machine == here { "" } else { &self.machine };
        format!("on {} cores {machine}", self.cores).trim_end().to_owned()
    }
}

/// Makes the sections of a lock so much shorter.
fn scale(workload: &mut Workload, at: usize, factor: f64) {
    let name = workload.locks[at].name.clone();
    let shorten = |section: &mut f64, write: &mut Option<f64>| {
        *section *= factor;
        *write = write.map(|write| write * factor);
    };
    let lock = &mut workload.locks[at];
    shorten(&mut lock.section, &mut lock.write_section);
    for used in workload.classes.iter_mut().flat_map(|class| &mut class.uses) {
        if used.lock == name {
            shorten(&mut used.section, &mut used.write_section);
        }
    }
}

/// Has what is done in the sections of a lock done before: the lock stays, with nothing in it.
fn take_outside(workload: &mut Workload, at: usize) {
    let name = workload.locks[at].name.clone();
    if workload.classes.is_empty() {
        let lock = &workload.locks[at];
        workload.compute += lock.burst * lock.section;
    }
    for class in &mut workload.classes {
        for used in class.uses.iter().filter(|used| used.lock == name) {
            let write = used.write_section.unwrap_or(used.section);
            let mean = used.writes * write + (1.0 - used.writes) * used.section;
            class.compute += used.burst * mean;
        }
    }
    scale(workload, at, 0.0);
}

/// The rows that are shown.
const SHOWN: usize = 8;

/// Writes the best of them as a table; nothing if there are none.
pub(super) fn render(advice: &[Advice]) -> String {
    let Some(first) = advice.first() else { return String::new() };
    let heads: Vec<String> =
        first.gains.iter().map(|gain| gain.place(&first.gains[0].machine)).collect();
    let heads = heads.iter().flat_map(|head| [head.as_str(), "range"]);
    let mut table =
        TextTable::new(&["what would help", "lock"].into_iter().chain(heads).collect::<Vec<_>>());
    for one in advice.iter().take(SHOWN) {
        let gains = one.gains.iter().flat_map(|gain| {
            [
                format!("{:+.1} %", gain.gain_percent),
                format!("{:+.1} to {:+.1}", gain.lowest, gain.highest),
            ]
        });
        let lock = one.lock.clone().unwrap_or_else(|| "all".into());
        table.row([one.change.clone(), lock].into_iter().chain(gains));
    }
    let mut text = format!("\n{}", table.render());
    if advice.len() > SHOWN {
        text += &format!("and {} more that help less (--json)\n", advice.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        let text = "name = \"x\"\nabout = \"\"\ntasks = 4\ncompute = 10.0\nwarm_up = 1.0\nlength = 5.0\n\
            [[locks]]\nname = \"hot\"\nburst = 2.0\nsection = 3.0\n\
            [[locks]]\nname = \"cold\"\nburst = 0.1\nsection = 0.1\n";
        Workload::parse("x", text).expect("a workload")
    }

    #[test]
    fn work_that_is_taken_outside_is_still_done() {
        let mut changed = workload();
        take_outside(&mut changed, 0);
        assert_eq!((changed.compute, changed.locks[0].section), (16.0, 0.0));
        assert_eq!(changed.locks[1].section, 0.1);
        scale(&mut changed, 1, 0.5);
        assert_eq!(changed.locks[1].section, 0.05);
    }

    #[test]
    fn a_gain_is_that_of_each_seed_beside_itself() {
        let machine = Machine::bundled("vm-2").expect("it is built in");
        let run = |seed| {
            let how = RunSettings { seed, ..RunSettings::default() };
            run_simulation(&machine, SimLockName::Futex, &workload(), 4, how)
        };
        let runs = [run(1), run(2)];
        let same = gain(&machine, &runs, &runs);
        assert_eq!(
            (same.place("vm-2"), same.place("x")),
            ("on 2 cores".into(), "on 2 cores vm-2".into())
        );
        assert_eq!((same.gain_percent, same.lowest, same.highest), (0.0, 0.0, 0.0));
        let mut twice = runs.clone();
        twice[1].jobs *= 2.0;
        assert_eq!(gain(&machine, &runs, &twice).highest, 100.0);
        let all = changes(&workload(), &[0], &[(SimLockName::SpinQueue, "spin-queue")]);
        assert_eq!(all.len(), 5);
        assert_eq!(all[1].workload.locks[0].many, SHARDS);
    }
}
