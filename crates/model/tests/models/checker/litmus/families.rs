//! Families of litmus tests: a cycle of accesses, with all combinations of orderings.
//!
//! # The tables
//! A table of `litmus/families/` has the threads of a cycle, where `.1` and `.2` stand for the
//! orderings of the first and of the second access of a thread, `F` for what is between them.
//! `sides` are what stands for these, for each thread; the combinations of all threads but the
//! last are the rows, those of the last one the columns. A cell is the name of a verdict below the
//! table.
//!
//! | side | first, second | between |
//! |---|---|---|
//! | `r`, `s`, `c` | relaxed; as strong as acquire and release make it; sequentially consistent | (one access) |
//! | `rr`, `rs`, `sr`, `ss`, `rc`, `cr`, `sc`, `cs`, `cc` | so | |
//! | `rFr`, `rCr` | relaxed | a fence that acquires and releases; a sequentially consistent one |

use super::herd;
use super::program::Program;
use super::verdict::Verdict;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A table of a file.
pub(super) struct Family {
    pub(super) name: String,
    threads: Vec<String>,
    sides: Vec<Vec<String>>,
    cells: Vec<String>,
    verdicts: BTreeMap<String, Verdict>,
}

/// Returns the thread with the orderings of a side.
fn filled(thread: &str, side: &str) -> String {
    let orders: Vec<char> = side.chars().filter(|c| c.is_lowercase()).collect();
    let between = match side.chars().find(|c| c.is_uppercase()) {
        Some('F') => "F.ar",
        Some('C') => "F.sc",
        _ => "",
    };
    let step = |step: &str| {
        let (what, which) = match step.split_once('.') {
            None if step == "F" => return between.to_string(),
            None => return step.to_string(),
            Some(both) => both,
        };
        let strong = match what {
            "x" | "y" | "z" | "w" => "acq",
            _ if what.contains('=') => "rel",
            _ => "ar",
        };
        let order = match orders[which.parse::<usize>().expect("first or second") - 1] {
            'r' => "rlx",
            's' => strong,
            _ => "sc",
        };
        format!("{what}.{order}")
    };
    thread.split_whitespace().map(step).collect::<Vec<_>>().join(" ")
}

impl Family {
    fn parse(text: &str) -> Family {
        let mut family = Family {
            name: String::new(),
            threads: Vec::new(),
            sides: Vec::new(),
            cells: Vec::new(),
            verdicts: BTreeMap::new(),
        };
        let mut lines = text.lines();
        for line in lines.by_ref() {
            let Some((first, rest)) = line.split_once(' ') else { break };
            let parts = rest.split('|').map(|part| part.trim().to_string());
            match first {
                "family" => family.name = rest.to_string(),
                "threads" => family.threads = parts.collect(),
                "sides" => {
                    let sides = parts.map(|p| p.split_whitespace().map(String::from).collect());
                    family.sides = sides.collect();
                }
                _ => panic!("{line}"),
            }
        }
        for line in lines {
            if let Some((cells, row)) = line.split_once('|').map(|(row, cells)| (cells, row)) {
                if !row.trim().is_empty() {
                    family.cells.extend(cells.split_whitespace().map(String::from));
                }
            } else if let Some((name, verdict)) = line.split_once(' ') {
                family.verdicts.insert(name.to_string(), Verdict::parse(verdict));
            }
        }
        family
    }

    /// Returns the sides of each test, in the order of the cells.
    fn combinations(&self) -> Vec<Vec<&str>> {
        self.sides.iter().fold(vec![Vec::new()], |before, sides| {
            let longer = before.iter().flat_map(|some: &Vec<&str>| {
                sides.iter().map(|side| some.iter().copied().chain([&**side]).collect())
            });
            longer.collect()
        })
    }

    /// Returns the tests, each with its text.
    pub(super) fn tests(&self) -> Vec<String> {
        let tests = self.combinations().into_iter().map(|sides| {
            let threads = self.threads.iter().zip(sides).map(|(thread, side)| filled(thread, side));
            threads.collect::<Vec<_>>().join(" | ")
        });
        tests.collect()
    }

    /// Returns the verdicts, in the same order.
    ///
    /// # Panics
    /// If one is missing.
    pub(super) fn verdicts(&self) -> Vec<&Verdict> {
        self.cells.iter().map(|cell| &self.verdicts[cell]).collect()
    }

    /// Returns the text of the table with these verdicts in its cells.
    fn with(&self, verdicts: &[Verdict]) -> String {
        let mut names: BTreeMap<&Verdict, String> = BTreeMap::new();
        let mut legend = String::new();
        for verdict in verdicts {
            let number = names.len();
            names.entry(verdict).or_insert_with(|| {
                let name = name(number);
                let _ = writeln!(legend, "{name} {verdict}");
                name
            });
        }
        let sides: Vec<_> = self.sides.iter().map(|sides| sides.join(" ")).collect();
        let mut text = format!(
            "family {}\nthreads {}\nsides {}\n\n",
            self.name,
            self.threads.join(" | "),
            sides.join(" | ")
        );
        let columns = self.sides.last().expect("a thread");
        let combinations = self.combinations();
        let _ = write!(text, "{:12}|", "");
        for column in columns {
            let _ = write!(text, " {column:3}");
        }
        for (row, cells) in combinations
            .iter()
            .zip(verdicts)
            .collect::<Vec<_>>()
            .chunks(columns.len())
            .map(|row| (row[0].0, row))
        {
            let _ = write!(text, "\n{:12}|", row[..row.len() - 1].join(" "));
            for (_, verdict) in cells {
                let _ = write!(text, " {:3}", names[verdict]);
            }
        }
        let tidy: Vec<_> = text.lines().map(str::trim_end).collect();
        format!("{}\n\n{legend}", tidy.join("\n"))
    }
}

/// Returns the name of the verdict that came after so many.
fn name(number: usize) -> String {
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    if number < 26 {
        letter(number).into()
    } else {
        format!("{}{}", letter(number / 26 - 1), letter(number))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/checker/litmus/families")
}

/// Returns all tables, by their files.
pub(super) fn all() -> Vec<(PathBuf, Vec<Family>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .expect("the tables")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    let read = files.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).expect("text");
        let families = text.split("\nfamily ").enumerate();
        let families = families.map(|(n, text)| match n {
            0 => Family::parse(text),
            _ => Family::parse(&format!("family {text}")),
        });
        let families = families.collect();
        (path, families)
    });
    read.collect()
}

/// Asks herd about all tests; writes what it says, or compares.
pub(super) fn ask_herd(write: bool) -> usize {
    let mut asked = 0;
    for (path, families) in all() {
        let texts = families.iter().map(|family| {
            let programs: Vec<_> = family.tests().iter().map(|test| Program::parse(test)).collect();
            asked += programs.len();
            family.with(&herd::verdicts(&programs))
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        if write {
            std::fs::write(&path, text).expect("written");
        } else {
            let known = std::fs::read_to_string(&path).expect("text");
            assert!(text == known, "herd says something else of {}", path.display());
        }
    }
    asked
}
