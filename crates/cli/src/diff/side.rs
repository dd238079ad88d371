//! The runs of one side: of each lock the waiting in each run.

use super::recorded::{RecordedProcess, RecordedRun};
use super::verdict::ValueBounds;
use crate::recorded;
use lockstead_inspect::report::family::lasting_family;
use lockstead_render::failure::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A program and one of its locks, or all locks of one name.
pub(super) type LockKey = (String, String);

/// Runs that are taken for alike.
#[derive(Debug)]
pub(super) struct Side {
    /// The files of the reports.
    pub(super) files: Vec<String>,
    /// How long each run took.
    pub(super) wall: Vec<ValueBounds>,
    /// The processor time of each run; none where one does not know it.
    pub(super) cpu: Option<Vec<ValueBounds>>,
    /// The processors and their number, of all runs.
    pub(super) machines: BTreeSet<(String, u64)>,
    /// The programs of each run.
    runs: Vec<BTreeMap<String, ProgramFigures>>,
}

/// What all processes of one program came to in one run.
#[derive(Debug, Default)]
struct ProgramFigures {
    thread_ns: u64,
    waited_ns: u64,
    /// How long the locks were waited for that are not listed.
    unlisted_ns: u64,
    /// Whether locks that are not listed were acquired.
    has_unlisted: bool,
    locks: BTreeMap<String, LockFigures>,
}

/// What a lock came to in one run.
#[derive(Clone, Debug, Default)]
struct LockFigures {
    waited_ns: u64,
    acquisitions: u64,
    /// Its name is that of one lock, or of a group that is listed whole.
    is_whole: bool,
    sites: BTreeMap<String, u64>,
}

impl Side {
    /// Reads the reports of one side.
    ///
    /// # Errors
    /// One cannot be read, or is none.
    pub(super) fn read(files: &[PathBuf]) -> Result<Side, Failure> {
        let runs = files.iter().map(|file| recorded::read(file, "lockstead run"));
        let runs: Vec<RecordedRun> = runs.collect::<Result<_, _>>()?;
        Ok(Side::of(files.iter().map(|file| file.display().to_string()).collect(), &runs))
    }

    /// Takes the figures out of reports.
    pub(super) fn of(files: Vec<String>, runs: &[RecordedRun]) -> Side {
        let knows_cpu = runs.iter().all(|run| run.cpu_ns != 0);
        let each = |what: fn(&RecordedRun) -> u64| {
            runs.iter().map(|run| ValueBounds::exactly(what(run))).collect::<Vec<_>>()
        };
        let machine =
            |run: &RecordedRun| (run.machine.cpu.clone().unwrap_or_default(), run.processors);
        Side {
            files,
            wall: each(|run| run.wall_ns),
            cpu: knows_cpu.then(|| each(|run| run.cpu_ns)),
            machines: runs.iter().map(machine).collect(),
            runs: runs.iter().map(programs).collect(),
        }
    }

    /// Returns the names of all programs.
    pub(super) fn programs(&self) -> impl Iterator<Item = &String> {
        self.runs.iter().flat_map(BTreeMap::keys)
    }

    /// Returns all locks that one of the reports lists.
    pub(super) fn locks(&self) -> impl Iterator<Item = LockKey> + '_ {
        let of_run = |(program, figures): (&String, &ProgramFigures)| {
            let program = program.clone();
            let names: Vec<String> = figures.locks.keys().cloned().collect();
            names.into_iter().map(move |name| (program.clone(), name))
        };
        self.runs.iter().flatten().flat_map(of_run)
    }

    /// Returns how long the threads of a program waited for locks, in each run.
    pub(super) fn waited(&self, program: &str) -> Vec<ValueBounds> {
        let waited = |run: &BTreeMap<String, ProgramFigures>| {
            ValueBounds::exactly(run.get(program).map_or(0, |figures| figures.waited_ns))
        };
        self.runs.iter().map(waited).collect()
    }

    /// Returns how long the threads of a program lived, in the run in the middle.
    pub(super) fn lived(&self, program: &str) -> f64 {
        let lived = |run: &BTreeMap<String, ProgramFigures>| {
            run.get(program).map_or(0, |figures| figures.thread_ns)
        };
        median(self.runs.iter().map(lived))
    }

    /// Returns how long a lock was waited for, in each run.
    pub(super) fn waited_for(&self, (program, name): &LockKey) -> Vec<ValueBounds> {
        let waited = |run: &BTreeMap<String, ProgramFigures>| {
            let Some(program) = run.get(program) else { return ValueBounds::default() };
            match program.locks.get(name) {
                // Others of that name may be among those that are not listed.
                Some(lock) => {
                    let most = lock.waited_ns.saturating_add(program.unlisted_ns);
                    ValueBounds { least: lock.waited_ns, most }
                }
                None => ValueBounds { least: 0, most: program.unlisted_ns },
            }
        };
        self.runs.iter().map(waited).collect()
    }

    /// Returns how often a lock was acquired, in the middle of the runs that know it. A report lists no
    /// locks that nobody waited for, which may be the lock, or others of an array that it is one of.
    pub(super) fn acquired(&self, (program, name): &LockKey) -> Option<f64> {
        let acquired = |run: &BTreeMap<String, ProgramFigures>| {
            let Some(program) = run.get(program) else { return Some(0) };
            let lock = program.locks.get(name);
            let is_known = !program.has_unlisted || lock.is_some_and(|lock| lock.is_whole);
            is_known.then(|| lock.map_or(0, |lock| lock.acquisitions))
        };
        let known: Vec<u64> = self.runs.iter().filter_map(acquired).collect();
        (!known.is_empty()).then(|| median(known.into_iter()))
    }

    /// Returns the places at which a lock was waited for.
    pub(super) fn places(&self, (program, name): &LockKey) -> BTreeSet<&String> {
        let locks = self.runs.iter().filter_map(|run| run.get(program)?.locks.get(name));
        locks.flat_map(|lock| lock.sites.keys()).collect()
    }

    /// Returns how long a lock was waited for at a place, in each run.
    pub(super) fn waited_at(&self, (program, name): &LockKey, place: &str) -> Vec<u64> {
        let waited = |run: &BTreeMap<String, ProgramFigures>| {
            let lock = run.get(program).and_then(|program| program.locks.get(name));
            lock.and_then(|lock| lock.sites.get(place)).copied().unwrap_or_default()
        };
        self.runs.iter().map(waited).collect()
    }
}

/// Returns what the programs of a run came to.
fn programs(run: &RecordedRun) -> BTreeMap<String, ProgramFigures> {
    let mut programs: BTreeMap<String, ProgramFigures> = BTreeMap::new();
    for process in &run.processes {
        let program = programs.entry(called(process)).or_default();
        program.thread_ns += process.waiting.thread_ns;
        program.waited_ns += process.waiting.waited_ns;
        // Those of a group count with it, whether they are listed or not.
        let grouped = process.groups.iter().fold(0, |sum: u64, lock| sum + lock.wait.total_ns);
        let (of_groups, alone): (Vec<_>, Vec<_>) =
            process.locks.iter().partition(|lock| lock.group.is_some());
        let listed = of_groups.iter().fold(0, |sum: u64, lock| sum + lock.wait.total_ns);
        let unlisted = process.more.waited_ns.saturating_sub(grouped.saturating_sub(listed));
        program.unlisted_ns += unlisted;
        let grouped = process.groups.iter().fold(0, |sum: u64, lock| sum + lock.acquisitions);
        let listed = of_groups.iter().fold(0, |sum: u64, lock| sum + lock.acquisitions);
        program.has_unlisted |= process.more.acquisitions > grouped.saturating_sub(listed);
        let groups = process.groups.len();
        for (at, lock) in process.groups.iter().chain(alone).enumerate() {
            let name = lasting_family(&lock.name);
            let is_whole = at < groups || name == lock.name;
            let figures = program.locks.entry(name).or_default();
            figures.is_whole |= is_whole;
            figures.waited_ns += lock.wait.total_ns;
            figures.acquisitions += lock.acquisitions;
            for site in &lock.waited_at {
                // Its line may be another one afterwards.
                let place = site.function.as_ref().unwrap_or(&site.site);
                *figures.sites.entry(place.clone()).or_default() += site.total_ns;
            }
        }
    }
    programs
}

/// Returns what a process is called: the name of its file.
fn called(process: &RecordedProcess) -> String {
    let name = process.exe.as_deref().and_then(|exe| exe.rsplit('/').next());
    name.unwrap_or("a process").to_owned()
}

/// Returns the value in the middle, or between the two there; 0 of none.
pub(super) fn median(values: impl Iterator<Item = u64>) -> f64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle] as f64,
        _ => (values[middle - 1] as f64 + values[middle] as f64) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns how often the one lock that reports list was acquired, of runs in which others were
    /// acquired so often.
    fn acquired(name: &str, asked: &str, of_others: &[u64]) -> Option<f64> {
        let run = |others: &u64| {
            let lock = json!({
                "name": name, "acquisitions": 12, "waited_at": [], "wait": { "total_ns": 9 },
            });
            let run = json!({
                "wall_ns": 1, "cpu_ns": 1, "processors": 2, "machine": { "cpu": "A" },
                "processes": [{
                    "exe": "/bin/srv",
                    "waiting": { "thread_ns": 1, "waited_ns": 9 },
                    "more": { "waited_ns": 0, "acquisitions": others },
                    "locks": [lock],
                }],
            });
            serde_json::from_value::<RecordedRun>(run).expect("all that is read")
        };
        let runs: Vec<RecordedRun> = of_others.iter().map(run).collect();
        Side::of(Vec::new(), &runs).acquired(&("srv".into(), asked.into()))
    }

    #[test]
    fn acquisitions_are_told_only_where_a_report_lists_them_all() {
        assert_eq!(acquired("hot", "hot", &[500]), Some(12.0));
        assert_eq!(acquired("items[17]", "items[*]", &[0]), Some(12.0));
        // Others of the array may be among those that are not listed, or the lock itself.
        assert_eq!(acquired("items[17]", "items[*]", &[500]), None);
        assert_eq!(acquired("hot", "cold", &[500]), None);
        assert_eq!(acquired("hot", "cold", &[0]), Some(0.0));
        assert_eq!(acquired("items[17]", "items[*]", &[500, 0]), Some(12.0), "one knows it");
    }

    #[test]
    fn the_middle_is_between_two() {
        assert_eq!(
            [&[][..], &[3], &[1, 2], &[9, 1, 5]].map(|v| median(v.iter().copied())),
            [0.0, 3.0, 1.5, 5.0]
        );
    }
}
