//! Workloads in files.

use super::Workload;
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

impl Workload {
    /// Returns a workload that is built in.
    #[must_use]
    pub fn bundled(name: &str) -> Option<Workload> {
        let &(_, text) = BUNDLED.iter().find(|&&(known, _)| known == name)?;
        Some(Workload::parse(name, text).expect("the workloads that are built in are right"))
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
        let moves = workload.compute > 0.0
            || workload.away > 0.0
            || workload.locks.iter().any(|user| user.burst > 0.0);
        place.expect("compute", moves, "more than 0, where nothing else takes time")?;
        Ok(workload)
    }
}
