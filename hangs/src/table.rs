//! Judgements of many programs, added up.

use crate::judgement::{EVIDENCE, Judgement, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The sums of some programs.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    cases: u32,
    owners: u32,
    right: BTreeMap<String, u32>,
    may_hold: u32,
    not_known: u32,
    wrong: u32,
    verdicts: BTreeMap<Verdict, u32>,
}

impl Sums {
    /// Adds a program.
    pub fn add(&mut self, judgement: &Judgement) {
        self.cases += 1;
        self.owners += judgement.owners();
        for (evidence, count) in &judgement.right {
            *self.right.entry(evidence.clone()).or_default() += count;
        }
        self.may_hold += judgement.may_hold;
        self.not_known += judgement.owners() - judgement.named() - judgement.may_hold;
        self.wrong += u32::try_from(judgement.wrong.len()).unwrap_or(u32::MAX);
        *self.verdicts.entry(judgement.verdict).or_default() += 1;
    }

    /// Adds the sums of others.
    pub fn merge(&mut self, other: &Sums) {
        self.cases += other.cases;
        self.owners += other.owners;
        for (evidence, count) in &other.right {
            *self.right.entry(evidence.clone()).or_default() += count;
        }
        self.may_hold += other.may_hold;
        self.not_known += other.not_known;
        self.wrong += other.wrong;
        for (verdict, count) in &other.verdicts {
            *self.verdicts.entry(*verdict).or_default() += count;
        }
    }

    /// Returns whether something was said that is not so.
    #[must_use]
    pub fn has_wrong(&self) -> bool {
        self.wrong > 0
    }

    /// Returns the cells of its row.
    fn cells(&self) -> Vec<String> {
        let right: u32 = self.right.values().sum();
        let share = if self.owners == 0 {
            "-".to_owned()
        } else {
            format!("{:.1} %", 100.0 * f64::from(right) / f64::from(self.owners))
        };
        let verdict = |verdict| self.verdicts.get(&verdict).copied().unwrap_or_default();
        let mut cells =
            vec![self.cases.to_string(), self.owners.to_string(), right.to_string(), share];
        cells.extend(
            EVIDENCE.map(|name| self.right.get(name).copied().unwrap_or_default().to_string()),
        );
        cells.extend([self.may_hold, self.not_known, self.wrong].map(|count| count.to_string()));
        cells.extend(
            [Verdict::Deadlock, Verdict::Probable, Verdict::Missed].map(|v| verdict(v).to_string()),
        );
        cells
    }
}

const HEAD: [&str; 15] = [
    "cases",
    "owners",
    "right",
    "share",
    "word",
    "pad",
    "guard",
    "seen",
    "likely",
    "may hold",
    "not known",
    "WRONG",
    "deadlock",
    "probable",
    "missed",
];

/// Returns a table with a row for each key, whose parts are the first columns, as Markdown.
#[must_use]
pub fn table(first: &[&str], rows: &BTreeMap<Vec<String>, Sums>) -> String {
    let mut all = Sums::default();
    rows.values().for_each(|row| all.merge(row));
    let mut text = String::new();
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    let owned = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
    line([owned(first), owned(&HEAD)].concat());
    let rules = [vec!["---".to_owned(); first.len()], vec!["---:".to_owned(); HEAD.len()]];
    line(rules.concat());
    for (key, row) in rows {
        line([key.clone(), row.cells()].concat());
    }
    let mut total = vec![String::new(); first.len()];
    total[0] = "all".into();
    line([total, all.cells()].concat());
    text
}
