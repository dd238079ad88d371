//! Workloads in files.

use super::class::{ClassUse, WorkClass, WorkStep};
use super::model::Workload;
use crate::file::{FileError, FileReader, parse};

/// The workloads that are built in: name and file.
pub const BUNDLED: [(&str, &str); 9] = [
    ("alltests", include_str!("../../workloads/alltests.toml")),
    ("five-sec", include_str!("../../workloads/five-sec.toml")),
    ("fserver", include_str!("../../workloads/fserver.toml")),
    ("high-systime", include_str!("../../workloads/high-systime.toml")),
    ("new-fserver", include_str!("../../workloads/new-fserver.toml")),
    ("shared", include_str!("../../workloads/shared.toml")),
    ("short", include_str!("../../workloads/short.toml")),
    ("storm", include_str!("../../workloads/storm.toml")),
    ("test-mutex-v", include_str!("../../workloads/test-mutex-v.toml")),
];

/// The most tasks, and the most locks.
const MOST_TASKS: usize = 16_384;
const MOST_LOCKS: usize = 4096;
/// The most tokens of one step.
const MOST_TOKENS: u32 = 100_000;

impl Workload {
    /// Returns a workload that is built in.
    #[must_use]
    pub fn bundled(name: &str) -> Option<Workload> {
        let &(_, text) = BUNDLED.iter().find(|&&(known, _)| known == name)?;
        Some(Workload::parse(name, text).expect("the workloads that are built in are right"))
    }

    /// Returns the workload as the text of a file.
    ///
    /// # Panics
    /// Never: a workload consists of what a file can hold.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string(self).expect("a workload can be written")
    }

    /// Returns the workload in `text`, the content of `file`.
    ///
    /// # Errors
    /// What is wrong, where, and what was expected.
    pub fn parse(file: &str, text: &str) -> Result<Workload, FileError> {
        let workload: Workload = parse(file, text)?;
        let place = FileReader { file, text };
        let fine = |value: f64| (0.0..=1e9).contains(&value);
        let time = "a time from 0 to 1000000000";
        place.expect(
            "tasks",
            (1..=MOST_TASKS).contains(&workload.tasks),
            "a number from 1 to 16384",
        )?;
        place.expect("rounds", workload.rounds >= 1, "a number from 1")?;
        place.expect(
            "variation",
            (0.0..=1.0).contains(&workload.variation),
            "a share from 0 to 1",
        )?;
        place.expect("compute", fine(workload.compute), time)?;
        place.expect("away", fine(workload.away), time)?;
        place.expect("warm_up", fine(workload.warm_up), time)?;
        place.expect("length", fine(workload.length) && workload.length > 0.0, "a time above 0")?;
        let many = workload.locks.iter().map(|user| user.many);
        let locks = many.fold(0, usize::saturating_add);
        place.expect("many", locks <= MOST_LOCKS, "at most 4096 locks in all")?;
        for (number, user) in workload.locks.iter().enumerate() {
            let within = |key: &str, holds: bool, what: &str| {
                place.expect_in(("locks", number), key, holds, what)
            };
            within("many", user.many >= 1, "a number from 1")?;
            within("burst", fine(user.burst), "a number of acquisitions")?;
            within("section", fine(user.section), time)?;
            within("write_section", user.write_section.is_none_or(fine), time)?;
            within("gap", fine(user.gap), time)?;
            within("lines", user.lines <= 64, "at most 64 lines")?;
            within("writes", (0.0..=1.0).contains(&user.writes), "a share from 0 to 1")?;
        }
        for (number, class) in workload.classes.iter().enumerate() {
            let within = |key: &str, holds: bool, what: &str| {
                place.expect_in(("classes", number), key, holds, what)
            };
            within("tasks", (1..=MOST_TASKS).contains(&class.tasks), "a number from 1 to 16384")?;
            within("compute", fine(class.compute), time)?;
            within("away", fine(class.away), time)?;
            let known = |name: &String| workload.tokens.iter().any(|tokens| tokens.name == *name);
            let steps = |steps: &[WorkStep]| {
                steps.iter().all(|step| known(&step.of) && (1..=MOST_TOKENS).contains(&step.many))
            };
            within("takes", steps(&class.takes), "tokens of the workload, 1 to 100000 of them")?;
            within("gives", steps(&class.gives), "tokens of the workload, 1 to 100000 of them")?;
            within("meets", class.meets.iter().all(known), "barriers of the workload")?;
            let used = |used: &ClassUse| {
                let times = [used.burst, used.section, used.write_section.unwrap_or(0.0)];
                workload.locks.iter().any(|lock| lock.name == used.lock)
                    && times.into_iter().all(fine)
                    && (0.0..=1.0).contains(&used.writes)
            };
            let uses = "locks of the workload, times from 0 and shares from 0 to 1";
            within("lock", class.uses.iter().all(used), uses)?;
        }
        if !workload.classes.is_empty() {
            let counted = workload.classes.iter().any(|class| class.counts);
            place.expect("counts", counted, "a class whose jobs are counted")?;
            let still = |class: &WorkClass| {
                let idle = class.takes.is_empty() && class.meets.is_empty() && class.away <= 0.0;
                idle && class.compute <= 0.0 && class.uses.iter().all(|used| used.burst <= 0.0)
            };
            let moves = !workload.classes.iter().any(still);
            return place
                .expect("classes", moves, "time that each of them takes")
                .map(|()| workload);
        }
        let moves = workload.compute > 0.0
            || workload.away > 0.0
            || workload.locks.iter().any(|user| user.burst > 0.0);
        place.expect("compute", moves, "more than 0, where nothing else takes time")?;
        Ok(workload)
    }
}
