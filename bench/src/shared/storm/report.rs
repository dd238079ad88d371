//! What came of storms.

use super::mix::Mix;
use super::tally::StormLockKind;
use lockstead_render::machine::MachineFacts;
use serde::Serialize;

/// What came of all storms.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StormReport {
    /// All of them together.
    #[serde(flatten)]
    pub total: StormCounts,
    /// One object for each combination.
    pub rounds: Vec<StormRound>,
    /// The combinations that are not to be had here.
    pub skipped: Vec<Skipped>,
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
}

impl StormReport {
    pub(super) fn new(rounds: Vec<StormRound>, skipped: Vec<Skipped>) -> Self {
        let total = StormCounts::sum(rounds.iter().map(|round| &round.counts));
        StormReport { total, rounds, skipped, machine: MachineFacts::here() }
    }

    /// Tells whether the locks did what they promise, in all of them.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.rounds.iter().all(|round| round.counts.passed() && round.broken.is_none())
    }
}

/// What came of one combination: its counts and its parts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StormRound {
    /// What it was, in the words of the table.
    pub name: String,
    /// The counts of this combination.
    #[serde(flatten)]
    pub counts: StormCounts,
    /// Why it came to an end too early: a lock refused, or a worker ended by itself.
    pub broken: Option<String>,
    /// The parts of the combination.
    #[serde(flatten)]
    pub mix: Mix,
}

impl StormRound {
    pub(super) fn new(mix: Mix, counts: StormCounts, broken: Option<String>) -> Self {
        StormRound { name: mix.to_string(), counts, broken, mix }
    }
}

/// A combination that was left out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// What it would have been.
    pub name: String,
    /// What is in the way.
    pub why: String,
}

/// What came of storms. The counts are those of all kinds of locks together.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StormCounts {
    /// The number of workers that were killed, in whichever way.
    pub kills: u64,
    /// The number of these whose memory was taken before they ended.
    pub reaped: u64,
    /// The number of these that became another program.
    pub execs: u64,
    /// How often a worker was stopped.
    pub stops: u64,
    /// The number of kills in a second.
    pub kills_per_s: f64,
    /// How often a lock told its next owner of a death.
    pub owner_died: u64,
    /// How often it did not, and its invariant did not hold, or somebody else was inside.
    pub torn: u64,
    /// The number of waits beyond 2 seconds, without the time in which somebody was stopped.
    pub stalls: u64,
    /// The longest wait for a lock, in milliseconds, counted in the same way.
    pub longest_wait_ms: f64,
    /// The number of deaths told of beyond what the dead can have held.
    pub unfounded: u64,
    /// The number of slots in which somebody seemed to live when nobody was left, and of waits
    /// beyond 2 seconds for one.
    pub lost: u64,
    /// One object for each kind of lock.
    pub kinds: Vec<KindReport>,
    /// The C library's robust mutexes in the same threads; null without `--beside-robust`.
    pub robust: Option<RobustReport>,
    /// The number of times in which nobody new came, and all had to come to an end.
    pub quiet_phases: u64,
    /// The number of critical sections.
    pub operations: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl StormCounts {
    /// Tells whether the locks did what they promise.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.torn == 0
            && self.stalls == 0
            && self.unfounded == 0
            && self.lost == 0
            && self.robust.as_ref().is_none_or(|robust| robust.torn == 0 && robust.stuck == 0)
    }

    /// Adds up the counts of several storms.
    fn sum<'a>(all: impl Iterator<Item = &'a StormCounts>) -> StormCounts {
        let mut sum = StormCounts::default();
        for one in all {
            sum.kills += one.kills;
            sum.reaped += one.reaped;
            sum.execs += one.execs;
            sum.stops += one.stops;
            sum.owner_died += one.owner_died;
            sum.torn += one.torn;
            sum.stalls += one.stalls;
            sum.longest_wait_ms = sum.longest_wait_ms.max(one.longest_wait_ms);
            sum.unfounded += one.unfounded;
            sum.lost += one.lost;
            sum.quiet_phases += one.quiet_phases;
            sum.operations += one.operations;
            sum.seconds += one.seconds;
            for kind in &one.kinds {
                match sum.kinds.iter_mut().find(|known| known.lock == kind.lock) {
                    Some(known) => known.add(kind),
                    None => sum.kinds.push(kind.clone()),
                }
            }
            if let Some(robust) = &one.robust {
                sum.robust.get_or_insert_default().add(robust);
            }
        }
        sum.kills_per_s = rate(sum.kills, sum.seconds);
        sum
    }
}

/// Returns how many there are in a second; 0 of no time at all.
pub(super) fn rate(kills: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { kills as f64 / seconds } else { 0.0 }
}

/// One kind of lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindReport {
    /// The kind of lock that it is about.
    pub lock: StormLockKind,
    /// How often a lock told its next owner of a death; of a semaphore, that holders had died.
    pub owner_died: u64,
    /// The number of units of dead holders that semaphores told of; null for other kinds.
    pub units_returned: Option<u64>,
    /// How often it did not, and its invariant did not hold, or somebody else was inside.
    pub torn: u64,
    /// The number of deaths told of beyond what the dead can have held.
    pub unfounded: u64,
    /// The number of waits beyond 2 seconds, without the time in which somebody was stopped.
    pub stalls: u64,
    /// The longest wait for a lock, in milliseconds, counted in the same way.
    pub longest_wait_ms: f64,
    /// The number of critical sections.
    pub operations: u64,
}

impl KindReport {
    fn add(&mut self, other: &KindReport) {
        self.owner_died += other.owner_died;
        self.units_returned = self.units_returned.zip(other.units_returned).map(|(a, b)| a + b);
        self.torn += other.torn;
        self.unfounded += other.unfounded;
        self.stalls += other.stalls;
        self.longest_wait_ms = self.longest_wait_ms.max(other.longest_wait_ms);
        self.operations += other.operations;
    }
}

/// The robust mutexes of the C library.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RobustReport {
    /// How often one told its next owner of a death.
    pub owner_died: u64,
    /// How often it did not, and its invariant did not hold.
    pub torn: u64,
    /// How often one could not be taken although nobody was left.
    pub stuck: u64,
    /// The number of critical sections.
    pub operations: u64,
}

impl RobustReport {
    fn add(&mut self, other: &RobustReport) {
        self.owner_died += other.owner_died;
        self.torn += other.torn;
        self.stuck += other.stuck;
        self.operations += other.operations;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_that_failed_fails_the_whole() {
        let sound = || StormRound::new(Mix::default(), StormCounts::default(), None);
        let failures: [fn(&mut StormRound); 6] = [
            |round| round.counts.torn = 1,
            |round| round.counts.stalls = 1,
            |round| round.counts.unfounded = 1,
            |round| round.counts.lost = 1,
            |round| {
                round.counts.robust = Some(RobustReport { stuck: 1, ..RobustReport::default() });
            },
            |round| round.broken = Some("a lock refuses".into()),
        ];
        assert!(StormReport::new(vec![sound(), sound()], Vec::new()).passed());
        for (number, fail) in failures.into_iter().enumerate() {
            let mut failed = sound();
            fail(&mut failed);
            let report = StormReport::new(vec![sound(), failed], Vec::new());
            assert!(!report.passed(), "number {number}");
        }
    }

    #[test]
    fn totals_are_the_sums_of_the_rounds() {
        let kind = |lock, torn| KindReport {
            lock,
            owner_died: 2,
            units_returned: (lock == StormLockKind::Semaphore).then_some(3),
            torn,
            unfounded: 0,
            stalls: 1,
            longest_wait_ms: torn as f64,
            operations: 5,
        };
        let round = |kills, seconds, kinds| {
            let counts = StormCounts { kills, seconds, lost: 1, kinds, ..StormCounts::default() };
            StormRound::new(Mix::default(), counts, None)
        };
        let rounds = vec![
            round(100, 1.0, vec![kind(StormLockKind::Mutex, 1), kind(StormLockKind::Semaphore, 2)]),
            round(200, 2.0, vec![kind(StormLockKind::Semaphore, 4)]),
        ];
        let total = StormReport::new(rounds, Vec::new()).total;
        assert_eq!((total.kills, total.lost, total.kills_per_s), (300, 2, 100.0));
        let [mutex, semaphore] = &total.kinds[..] else { panic!("{total:?}") };
        assert_eq!((mutex.torn, mutex.units_returned), (1, None));
        assert_eq!((semaphore.torn, semaphore.units_returned), (6, Some(6)));
        assert_eq!((semaphore.longest_wait_ms, semaphore.operations), (4.0, 10));
    }
}
