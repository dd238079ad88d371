//! Which findings are news, which are shown, and which only count.

use super::tally::CheckTally;
use lockstead_inspect::check::model::{Details, Level};
use lockstead_inspect::check::suppress::Suppressions;
use std::collections::HashMap;

/// The most findings that are printed; a program that has more of them is not read.
const PRINTED: u64 = 200;
/// The most findings that are kept for the files.
const KEPT: u64 = 10_000;

/// What to do with a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingVerdict {
    /// Print it and keep it.
    Print,
    /// Keep it for the files.
    Keep,
    /// It is no news, or is not wanted.
    Drop,
}

/// Decides what becomes of a finding, once for each cause.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    strict: bool,
    suppressions: Suppressions,
    /// The worst level at which a cause was reported.
    seen: HashMap<String, Level>,
    kept: u64,
    pub(crate) tally: CheckTally,
}

impl Judge {
    /// Creates a judge that leaves out suppressed findings and, unless `strict`, inversions without
    /// proof.
    pub(crate) fn new(strict: bool, suppressions: Suppressions) -> Self {
        Judge { strict, suppressions, ..Judge::default() }
    }

    /// Returns whether such an inversion is not even looked at; then it has been counted.
    pub(crate) fn hides(&mut self, level: Level) -> bool {
        let hidden = level == Level::Order && !self.strict;
        self.tally.hidden += u64::from(hidden);
        hidden
    }

    /// Notes a cause that has been reported by other words.
    pub(crate) fn is_covered(&mut self, details: &Details) {
        if let (Some(cause), Some(level)) = (&details.cause, details.level) {
            self.seen.insert(cause.clone(), level);
        }
    }

    /// Decides on a finding with this text.
    pub(crate) fn judge(&mut self, details: &mut Details, text: &str) -> FindingVerdict {
        let Some(level) = details.level else { return FindingVerdict::Print };
        if let Some(cause) = &details.cause {
            if self.seen.get(cause).is_some_and(|&before| before >= level) {
                return FindingVerdict::Drop;
            }
            self.seen.insert(cause.clone(), level);
        }
        self.kept += 1;
        if level != Level::Deadlock {
            details.suppressed = self.suppressions.fit(details, text);
        }
        if details.suppressed.is_some() {
            self.tally.suppressed += 1;
            self.tally.shipped = self.suppressions.shipped();
            return if self.kept <= KEPT { FindingVerdict::Keep } else { FindingVerdict::Drop };
        }
        self.tally.add(details);
        match self.kept {
            _ if level == Level::Deadlock => FindingVerdict::Print,
            0..=PRINTED => FindingVerdict::Print,
            _ => {
                self.tally.unprinted += 1;
                if self.kept <= KEPT { FindingVerdict::Keep } else { FindingVerdict::Drop }
            }
        }
    }

    /// Returns where the suppressions stand that fitted nothing.
    pub(crate) fn unused(&self) -> Vec<String> {
        self.suppressions.unused().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(level: Level, cause: &str) -> Details {
        Details {
            level: Some(level),
            rule: Some("recursion".into()),
            cause: Some(cause.into()),
            ..Details::default()
        }
    }

    #[test]
    fn a_cause_is_reported_once_and_again_when_it_is_worse() {
        let mut judge = Judge::new(true, Suppressions::default());
        let mut say = |level, cause| judge.judge(&mut finding(level, cause), "");
        assert_eq!(say(Level::Order, "a"), FindingVerdict::Print);
        assert_eq!(say(Level::Order, "a"), FindingVerdict::Drop);
        assert_eq!(say(Level::Potential, "a"), FindingVerdict::Print);
        assert_eq!(say(Level::Order, "a"), FindingVerdict::Drop);
        assert_eq!(say(Level::Order, "b"), FindingVerdict::Print);
    }

    #[test]
    fn what_is_suppressed_is_kept_and_does_not_count() {
        let mut suppressions = Suppressions::default();
        suppressions.add("f", "[[suppress]]\nrule = 'recursion'\n").unwrap();
        let mut judge = Judge::new(false, suppressions);
        let mut details = finding(Level::Rule, "a");
        assert_eq!(judge.judge(&mut details, ""), FindingVerdict::Keep);
        assert_eq!(details.suppressed.as_deref(), Some("f:1"));
        assert!(!judge.tally.has_findings(true));
        assert_eq!(judge.tally.suppressed, 1);
        assert!(judge.unused().is_empty());
    }

    #[test]
    fn a_flood_is_counted_and_not_printed() {
        let mut judge = Judge::new(false, Suppressions::default());
        let all: Vec<_> = (0..=KEPT)
            .map(|at| judge.judge(&mut finding(Level::Rule, &at.to_string()), ""))
            .collect();
        let of = |verdict| all.iter().filter(|&&one| one == verdict).count() as u64;
        assert_eq!((of(FindingVerdict::Print), of(FindingVerdict::Drop)), (PRINTED, 1));
        assert_eq!(judge.tally.unprinted, KEPT + 1 - PRINTED);
        assert_eq!(judge.judge(&mut finding(Level::Deadlock, "d"), ""), FindingVerdict::Print);
    }

    #[test]
    fn what_cannot_deadlock_is_found_only_if_that_is_wanted() {
        let mut judge = Judge::new(false, Suppressions::default());
        assert!(judge.hides(Level::Order) && !judge.hides(Level::Potential));
        assert_eq!(judge.tally.hidden, 1);
        judge.judge(&mut finding(Level::Order, "a"), "");
        assert!(!judge.tally.has_findings(false) && judge.tally.has_findings(true));
    }
}
