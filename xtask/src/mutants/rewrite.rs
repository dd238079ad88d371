//! A file with all its mutants behind one switch, and which bytes of it belong to which mutant.
//!
//! Each site becomes a match on the switch, whose first arm is the text as it was. Lines keep
//! their numbers, since tests find orderings by their lines.

use crate::mutants::sites::{Shape, Site, SourceFile};
use std::ops::Range;

/// A range of the written file.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The bytes of the written file.
    pub range: Range<usize>,
    /// The index of the site in its file.
    pub site: usize,
    /// The alternative that is written there, or none for the whole site.
    pub alternative: Option<usize>,
}

/// A file as it is written into the tree.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// The text of the whole file.
    pub text: String,
    /// What belongs to whom.
    pub marks: Vec<Mark>,
}

/// What stands at a site: the numbers of its mutants, for those alternatives that are made.
pub type Numbers = Vec<Vec<Option<u32>>>;

struct Writer<'a> {
    file: &'a SourceFile,
    numbers: &'a Numbers,
    switch: &'a str,
    out: Rewritten,
}

/// Writes `file` with the mutants that have a number; `switch` is the path of the module that has
/// the switch.
#[must_use]
pub fn rewrite(file: &SourceFile, numbers: &Numbers, switch: &str) -> Rewritten {
    let mut writer = Writer { file, numbers, switch, out: Rewritten::default() };
    let made = |&site: &usize| numbers[site].iter().any(Option::is_some);
    let sites: Vec<usize> = (0..file.sites.len()).filter(made).collect();
    writer.range(0..file.text.len(), &sites);
    writer.out
}

/// Writes `file` with one alternative in the place of what was there, and no switch.
#[must_use]
pub fn replace(file: &SourceFile, site: usize, alternative: usize) -> String {
    let at = &file.sites[site];
    let text = &at.alternatives[alternative].text;
    let was = &file.text[at.range.clone()];
    let lines = "\n".repeat(was.matches('\n').count());
    let now = match at.shape {
        Shape::Statement | Shape::Value => format!("{text}{lines}"),
        Shape::Insert => format!("; {text};"),
        Shape::Guard => " if false".into(),
        Shape::Never => format!("false && {was}"),
    };
    format!("{}{now}{}", &file.text[..at.range.start], &file.text[at.range.end..])
}

impl Writer<'_> {
    /// Writes a range of the file, in which `sites` lie.
    fn range(&mut self, range: Range<usize>, sites: &[usize]) {
        let (mut at, mut next) = (range.start, 0);
        while let Some(&site) = sites.get(next) {
            let here = self.file.sites[site].range.clone();
            let mut behind = next + 1;
            while sites.get(behind).is_some_and(|&inner| {
                let inner = &self.file.sites[inner].range;
                inner.start < here.end && inner.end <= here.end
            }) {
                behind += 1;
            }
            self.out.text.push_str(&self.file.text[at..here.start]);
            self.site(site, &sites[next + 1..behind]);
            (at, next) = (here.end, behind);
        }
        self.out.text.push_str(&self.file.text[at..range.end]);
    }

    fn site(&mut self, index: usize, inner: &[usize]) {
        let Site { range, shape, alternatives, .. } = &self.file.sites[index];
        let numbers: Vec<(usize, u32)> = self.numbers[index]
            .iter()
            .enumerate()
            .filter_map(|(alternative, number)| number.map(|number| (alternative, number)))
            .collect();
        let (first, count) = (numbers[0].1, numbers.len());
        let chosen = format!("{}::at({first}, {count})", self.switch);
        let start = self.out.text.len();
        match shape {
            Shape::Statement | Shape::Value => {
                let (open, close, begin, end) = if *shape == Shape::Value {
                    ("(match ", ")", "(", ")")
                } else {
                    ("match ", "", "{", "}")
                };
                self.out.text.push_str(&format!("{open}{chosen} {{ 0 => {begin}"));
                self.range(range.clone(), inner);
                self.out.text.push_str(end);
                for (code, (alternative, _)) in (1..).zip(&numbers) {
                    self.out.text.push_str(&format!(", {code} => "));
                    let from = self.out.text.len();
                    let text = &alternatives[*alternative].text;
                    self.out.text.push_str(&format!("{begin}{text}{end}"));
                    self.mark(from, index, Some(*alternative));
                }
                self.out.text.push_str(&format!(", _ => {}::none() }}{close}", self.switch));
            }
            Shape::Insert => {
                let text = &alternatives[numbers[0].0].text;
                self.out.text.push_str(&format!("; if {chosen} == 1 {{ {text}; }}"));
                self.mark(start, index, Some(numbers[0].0));
            }
            Shape::Guard => {
                self.out.text.push_str(&format!(" if {chosen} == 0"));
                self.mark(start, index, Some(numbers[0].0));
            }
            Shape::Never => {
                self.out.text.push_str(&format!("{chosen} == 0 && "));
                self.mark(start, index, Some(numbers[0].0));
                self.range(range.clone(), inner);
            }
        }
        self.mark(start, index, None);
    }

    fn mark(&mut self, from: usize, site: usize, alternative: Option<usize>) {
        self.out.marks.push(Mark { range: from..self.out.text.len(), site, alternative });
    }
}
