//! What several seeds make of one simulation: near a collapse each one draws another figure.

use crate::table::time;
use lockstead_sim::RunFigures;

/// Seeds disagree if the highest and the lowest are further apart than this share of the median.
///
/// A system with two states shows one or the other by seed, and the two differ by more: where the
/// 2013 mutex collapses, by a factor of three and more. Seeds of a system with one state differ by
/// some per cent.
pub(super) const DISAGREE: f64 = 0.25;

/// What stands behind a figure whose seeds disagree.
pub(super) const MARK: &str = " ~";

/// Tells whether figures disagree.
pub(super) fn disagree(lowest: f64, median: f64, highest: f64) -> bool {
    highest - lowest > DISAGREE * median
}

/// The figures of one simulation with several seeds.
pub(super) struct Draws<'a> {
    /// The runs by their throughput, the lowest first.
    sorted: Vec<&'a RunFigures>,
}

impl<'a> Draws<'a> {
    /// Makes it of at least one run.
    pub(super) fn new(runs: &'a [RunFigures]) -> Self {
        let mut sorted: Vec<&RunFigures> = runs.iter().collect();
        sorted.sort_by(|one, other| one.jobs.total_cmp(&other.jobs));
        Draws { sorted }
    }

    /// Returns the run whose throughput is the median.
    pub(super) fn median(&self) -> &'a RunFigures {
        self.sorted[self.sorted.len() / 2]
    }

    /// Returns the lowest throughput.
    pub(super) fn lowest(&self) -> f64 {
        self.sorted[0].jobs
    }

    /// Returns the highest throughput.
    pub(super) fn highest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1].jobs
    }

    /// Tells whether the seeds disagree on the throughput.
    pub(super) fn disagree(&self) -> bool {
        disagree(self.lowest(), self.median().jobs, self.highest())
    }

    /// Returns the longest wait of any seed.
    pub(super) fn longest(&self) -> LongestWait {
        let all = self.sorted.iter().map(|run| LongestWait::of(run));
        all.max_by_key(|wait| wait.ns).unwrap_or(LongestWait { ns: 0, ended: true })
    }

    /// Returns the most tasks that still waited when the simulation of a seed ended.
    pub(super) fn waiting(&self) -> u64 {
        self.sorted.iter().map(|run| run.waiting()).max().unwrap_or(0)
    }
}

/// The longest wait for any lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LongestWait {
    /// Its length in nanoseconds, so far.
    pub(super) ns: u64,
    /// Whether it had ended when the simulation did.
    pub(super) ended: bool,
}

impl LongestWait {
    /// Returns that of one run.
    pub(super) fn of(run: &RunFigures) -> Self {
        LongestWait { ns: (run.longest() * 1e9).round() as u64, ended: run.longest_ended() }
    }

    /// Writes it for people, with a plus if it had not ended.
    pub(super) fn text(self) -> String {
        let plus = if self.ended { "" } else { "+" };
        format!("{}{plus}", time(self.ns as f64))
    }
}

/// Returns what has to be said below a table: what its marks mean, if there are any.
pub(super) fn notes(disagree: bool, unended: bool) -> String {
    let mut text = String::new();
    if disagree {
        text += &format!(
            "~: the seeds differ by more than {:.0} % of their median. The system has more than \
             one state there, or is near a collapse: believe the range, and try more seeds.\n",
            DISAGREE * 100.0
        );
    }
    if unended {
        text += "+: that wait had not ended when the simulation did; it is at least so long.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_disagree_by_more_than_a_quarter_of_the_median() {
        assert!(!disagree(90.0, 100.0, 114.0));
        assert!(disagree(90.0, 100.0, 116.0));
        assert!(!disagree(0.0, 0.0, 0.0));
    }

    #[test]
    fn marks_are_explained_where_they_stand() {
        assert_eq!(notes(false, false), "");
        assert!(notes(true, false).starts_with("~: ") && !notes(true, false).contains("+: "));
        assert!(notes(true, true).contains("\n+: "));
        assert_eq!(LongestWait { ns: 2_000_000, ended: false }.text(), "2.00 ms+");
    }
}
