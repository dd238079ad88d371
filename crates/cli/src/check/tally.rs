//! What all findings of a run came to: the summary at its end.

use lockstead_inspect::check::CheckCounts;
use lockstead_inspect::check::model::{Details, Level};
use lockstead_render::words::{clean, plural};
use lockstead_rules::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The counts that the summary is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckTally {
    /// How many, by level and id of the rule.
    found: BTreeMap<(Level, String), u64>,
    /// The number of those that a suppression fits.
    pub(crate) suppressed: u64,
    /// The number of those of them that the shipped list leaves out, by its reasons.
    pub(crate) shipped: Vec<(String, u64)>,
    /// The number of findings that only `--strict` shows.
    pub(crate) hidden: u64,
    /// The number of those that were counted and no more.
    pub(crate) unprinted: u64,
}

impl CheckTally {
    /// Counts one more finding.
    pub(crate) fn add(&mut self, details: &Details) {
        let Some(level) = details.level else { return };
        let rule = details.rule.clone().unwrap_or_default();
        *self.found.entry((level, rule)).or_default() += 1;
    }

    /// Returns whether anything is in it, inversions without proof aside if not `strict`.
    pub(crate) fn has_findings(&self, strict: bool) -> bool {
        let least = if strict { Level::Order } else { Level::Potential };
        self.found.keys().any(|(level, _)| *level >= least)
    }

    fn count(&self, level: Level) -> u64 {
        self.found.iter().filter(|((of, _), _)| *of == level).map(|(_, count)| count).sum()
    }
}

/// What was looked at, in all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckedTotals {
    /// The number of processes that were checked.
    pub(crate) processes: u64,
    /// The sums over all of them.
    pub(crate) counts: CheckCounts,
    /// What found no room in the processes.
    pub(crate) lost: Lost,
    /// The programs that have locks whose order was not seen, by what these are called.
    pub(crate) unseen: BTreeMap<&'static str, BTreeSet<String>>,
    /// What `--rust` has built as it is, and why, a line each; `None` without it.
    pub(crate) unfit: Option<Vec<String>>,
}

/// What a process could not write down.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// The edges of the order, in the ledger.
    pub(crate) edges: u64,
    /// The violations of rules, in the ledger.
    pub(crate) violations: u64,
    /// What rules are judged by, in the library.
    pub(crate) facts: u64,
}

impl CheckedTotals {
    /// Adds what was read of a process.
    pub(crate) fn add(&mut self, counts: &CheckCounts, lost: Lost) {
        self.processes += 1;
        let sum = &mut self.counts;
        for (to, what) in [
            (&mut sum.locks, counts.locks),
            (&mut sum.edges, counts.edges),
            (&mut sum.violations, counts.violations),
            (&mut sum.lives, counts.lives),
            (&mut sum.graph.locks, counts.graph.locks),
            (&mut sum.graph.edges, counts.graph.edges),
            (&mut sum.graph.classes, counts.graph.classes),
            (&mut sum.graph.uses, counts.graph.uses),
            (&mut sum.graph.searches, counts.graph.searches),
            (&mut self.lost.edges, lost.edges),
            (&mut self.lost.violations, lost.violations),
            (&mut self.lost.facts, lost.facts),
        ] {
            *to = to.saturating_add(what);
        }
    }

    /// Returns what was not looked at, a line each.
    fn losses(&self) -> Vec<String> {
        let graph = &self.counts.graph;
        let limits = lockstead_lockdep::Limits::default();
        let kept = |what: &str, count: u64| format!("{what} (a ledger had room for {count})");
        let beyond = |what: &str, most: u32| format!("{what} beyond {most}");
        [
            (self.lost.edges, kept("pairs of locks", self.counts.edges)),
            (self.lost.violations, kept("violations of rules", self.counts.violations)),
            (self.lost.facts, "uses of locks with signals, conditions or hand-offs".into()),
            (graph.locks, beyond("locks", limits.locks)),
            (graph.edges, beyond("pairs of locks", limits.edges)),
            (graph.classes, beyond("classes of locks", limits.classes)),
            (self.counts.lives, "locks that were made later".into()),
            (graph.uses, "uses of locks around signal handlers".into()),
            (graph.searches, "searches for a cycle that took too long".into()),
        ]
        .into_iter()
        .filter(|(count, _)| *count != 0)
        .map(|(count, what)| format!("not checked: {count} {what}"))
        .collect()
    }
}

/// The most programs that are named beside each other.
const NAMED: usize = 4;

/// Returns which locks were not seen in which programs and what to do about it, a line each.
fn unseen(checked: &CheckedTotals) -> impl Iterator<Item = String> {
    checked.unseen.iter().map(|(family, programs)| {
        let named: Vec<String> = programs.iter().take(NAMED).map(|name| clean(name)).collect();
        let more = match programs.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = checked.unfit.as_ref().and_then(|all| all.iter().find(|l| l.starts_with(family)));
        let way_out = match *family {
            "tokio" => "they belong to tasks, not threads, and are in no order",
            "parking_lot" if checked.unfit.is_some() => why.map_or(
                "they are those that other crates build on parking_lot_core, or have its feature `send_guard`",
                String::as_str,
            ),
            _ => "run `--rust -- cargo ...` to have them seen",
        };
        format!("not seen: locks of {family} in {}{more}: {way_out}", named.join(", "))
    })
}

/// Returns the end of a run with `--check`, a line feed at its end.
pub(crate) fn summary(
    tally: &CheckTally,
    checked: &CheckedTotals,
    strict: bool,
    unused: &[String],
    end: Option<&str>,
) -> String {
    let mut text = String::from("lockstead: check: ");
    let shown = [
        (Level::Deadlock, "deadlock", "deadlocks"),
        (Level::Rule, "broken rule", "broken rules"),
        (Level::Potential, "potential deadlock", "potential deadlocks"),
        (Level::Order, "doubtful finding", "doubtful findings"),
    ];
    let counts: Vec<String> = shown
        .iter()
        .map(|&(level, one, many)| (tally.count(level), one, many))
        .filter(|(count, ..)| *count != 0)
        .map(|(count, one, many)| plural(count, one, many))
        .collect();
    if counts.is_empty() {
        text.push_str("nothing was found");
    } else {
        text.push_str(&counts.join(", "));
    }
    let _ = writeln!(
        text,
        " ({}, {}, {})",
        plural(checked.counts.locks, "lock in an order", "locks in an order"),
        plural(checked.counts.edges, "edge", "edges"),
        plural(checked.processes, "process", "processes"),
    );
    for ((level, rule), count) in tally.found.iter().rev() {
        let rule = rule_words(rule);
        let _ = writeln!(text, "  {count:>5}  {:<9}  {rule}", level.word());
    }
    let mut more = Vec::new();
    let shipped: u64 = tally.shipped.iter().map(|(_, count)| count).sum();
    if tally.suppressed != shipped {
        let count = plural(tally.suppressed - shipped, "finding", "findings");
        more.push(format!("{count} suppressed"));
    }
    more.extend(shipped_lines(&tally.shipped));
    if tally.hidden != 0 && !strict {
        let count = plural(tally.hidden, "doubtful finding", "doubtful findings");
        more.push(format!("{count} that did no harm as seen (--strict shows them)"));
    }
    if tally.unprinted != 0 {
        let count = plural(tally.unprinted, "finding", "findings");
        more.push(format!("{count} not printed, being too many"));
    }
    more.extend(end.map(|end| format!("the program: {end}")));
    more.extend(checked.losses());
    more.extend(unseen(checked));
    more.extend(unused.iter().map(|place| format!("{place}: this suppression fitted nothing")));
    for line in more {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Returns what the shipped list has left out, a line for each reason.
pub(crate) fn shipped_lines(shipped: &[(String, u64)]) -> Vec<String> {
    let line = |(reason, count): &(String, u64)| {
        let count = plural(*count, "finding", "findings");
        format!("suppressed by the shipped list: {count}: {reason}")
    };
    let hint = "--no-shipped-suppressions shows what the shipped list suppresses";
    let hint = (!shipped.is_empty()).then(|| hint.to_owned());
    shipped.iter().map(line).chain(hint).collect()
}

/// Says a rule's id as a reader would.
fn rule_words(id: &str) -> String {
    Rule::from_id(id).map_or_else(|| id.replace('-', " "), |rule| rule.phrase().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(found: &[(Level, &str)]) -> CheckTally {
        let mut tally = CheckTally::default();
        for (level, rule) in found {
            let (level, rule) = (Some(*level), Some((*rule).to_owned()));
            tally.add(&Details { level, rule, ..Details::default() });
        }
        tally
    }

    #[test]
    fn a_summary_has_counts_losses_and_what_was_left_out() {
        let mut all = tally(&[
            (Level::Rule, "recursion"),
            (Level::Potential, "lock-order-inversion"),
            (Level::Potential, "lock-order-inversion"),
            (Level::Deadlock, "deadlock"),
        ]);
        (all.suppressed, all.hidden, all.unprinted) = (3, 3, 1);
        all.shipped = vec![("Runtime: it means to".into(), 1)];
        let mut checked = CheckedTotals::default();
        let mut counts = CheckCounts { locks: 12, edges: 30, ..CheckCounts::default() };
        counts.graph.edges = 5;
        checked.add(&counts, Lost { edges: 7, violations: 0, facts: 2 });
        checked.unseen.insert("parking_lot", BTreeSet::from(["bank".into()]));
        checked.unfit = Some(vec!["parking_lot 0.9 is built as it is".into()]);
        let text = summary(&all, &checked, false, &["f:3".into()], Some("exit status 1"));
        let wanted = "\
lockstead: check: 1 deadlock, 1 broken rule, 2 potential deadlocks (12 locks in an order, 30 edges, 1 process)
      1  DEADLOCK   deadlock
      1  RULE       recursion
      2  POTENTIAL  lock order inversion
  2 findings suppressed
  suppressed by the shipped list: 1 finding: Runtime: it means to
  --no-shipped-suppressions shows what the shipped list suppresses
  3 doubtful findings that did no harm as seen (--strict shows them)
  1 finding not printed, being too many
  the program: exit status 1
  not checked: 7 pairs of locks (a ledger had room for 30)
  not checked: 2 uses of locks with signals, conditions or hand-offs
  not checked: 5 pairs of locks beyond 4194304
  not seen: locks of parking_lot in bank: parking_lot 0.9 is built as it is
  f:3: this suppression fitted nothing
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        let text = summary(&CheckTally::default(), &CheckedTotals::default(), true, &[], None);
        let wanted = "lockstead: check: nothing was found (0 locks in an order, 0 edges, \
                      0 processes)\n";
        assert_eq!(text, wanted);
    }
}
