//! Every rule of the use of locks that lockstead checks, once.
//!
//! # Role
//! Three validators find the same mistakes: `lockstead run --check`, the crate with its feature
//! `check`, and the C library with `LKS_DEBUG`. Each decides for itself whether a rule is broken;
//! what the rule is called, how bad it is, what it means and what to do about it stands here. Text,
//! JSON, SARIF, `lockstead check --list-rules` and the tables of `docs/validator.md` have it from
//! here, and a test compares the tables.
//!
//! Pure data: no allocation, no dependency, so that the library inside a watched program can use it.
//!
//! # Example
//! ```
//! use lockstead_rules::{By, Level, Rule};
//!
//! let rule = Rule::from_id("unlock-by-another-thread").expect("a rule");
//! assert_eq!(rule.phrase(), "unlock by another thread");
//! assert_eq!(rule.level(), Level::Rule);
//! assert!(rule.is_found_by(By::C) && !rule.is_found_by(By::CRATE));
//! ```

#![no_std]
#![forbid(unsafe_code)]

mod catalogue;

pub use catalogue::Rule;
use core::fmt;

/// How bad a finding is, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Something is not in order, but could not hurt as it was seen.
    Order,
    /// What threads were seen to do can deadlock.
    Potential,
    /// A rule was broken.
    Rule,
    /// A deadlock has happened.
    Deadlock,
}

impl Level {
    /// All levels, the worst last.
    pub const ALL: [Level; 4] = [Level::Order, Level::Potential, Level::Rule, Level::Deadlock];

    /// Returns the word that the first line of a report has.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Level::Order => "ORDER",
            Level::Potential => "POTENTIAL",
            Level::Rule => "RULE",
            Level::Deadlock => "DEADLOCK",
        }
    }

    /// Returns the level with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.word() == word)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The validators that find a rule broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct By(u8);

impl By {
    /// `lockstead run --check`, on unmodified programs.
    pub const RUN: By = By(1);
    /// The crate `lockstead` with the feature `check`.
    pub const CRATE: By = By(2);
    /// The C library, in programs built with `LKS_DEBUG`.
    pub const C: By = By(4);

    /// Returns the validators of both sets.
    #[must_use]
    pub const fn and(self, other: By) -> By {
        By(self.0 | other.0)
    }
}

/// Writes the set as the tables have it: `run, crate, C`.
impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for (validator, name) in [(By::RUN, "run"), (By::CRATE, "crate"), (By::C, "C")] {
            if self.0 & validator.0 != 0 {
                write!(f, "{before}{name}")?;
                before = ", ";
            }
        }
        Ok(())
    }
}

/// How a report of `lockstead run` tells that a rule was broken.
///
/// In these texts `{lock}` stands for the lock, `{second}` for the other lock, `{other}` for the
/// other thread, `{signal}`, `{times}` and `{call}` for what the violation's number means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Story {
    /// What the thread does that breaks the rule.
    pub does: &'static str,
    /// What another thread did before, at the second stack.
    pub before_by_other: &'static str,
    /// What the same thread did before, or one that is not known.
    pub before: &'static str,
    /// The reason why a weak violation may be none.
    pub doubt: &'static str,
}

/// What the catalogue has of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RuleText {
    pub(crate) id: &'static str,
    pub(crate) phrase: &'static str,
    pub(crate) level: Level,
    pub(crate) by: By,
    pub(crate) section: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) remedy: &'static str,
    pub(crate) story: Option<Story>,
}

impl Rule {
    /// Returns the rule with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|&rule| rule as u32 == number)
    }

    /// Returns the rule with this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.id() == id)
    }

    /// Returns all rules that these validators find broken.
    pub fn found_by(by: By) -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().copied().filter(move |rule| rule.is_found_by(by))
    }

    /// Returns what the rule is called in files and suppressions: its phrase with dashes. It never
    /// changes.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.text().id
    }

    /// Returns what the rule is called in the first line of a report.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        self.text().phrase
    }

    /// Returns how bad it is to break the rule.
    #[must_use]
    pub fn level(self) -> Level {
        self.text().level
    }

    /// Returns the validators that find the rule broken.
    #[must_use]
    pub fn by(self) -> By {
        self.text().by
    }

    /// Returns whether one of these validators finds the rule broken.
    #[must_use]
    pub fn is_found_by(self, by: By) -> bool {
        self.text().by.0 & by.0 != 0
    }

    /// Returns the anchor of the section of `docs/validator.md` that has the rule.
    #[must_use]
    pub fn section(self) -> &'static str {
        self.text().section
    }

    /// Returns why it matters that the rule is broken, in a sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.text().meaning
    }

    /// Returns what to do about it, in a sentence.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        self.text().remedy
    }

    /// Returns how a report of `lockstead run` tells the violation. `None` of a rule that the library
    /// inside the program does not decide: deadlocks and orders, and what only the others find.
    #[must_use]
    pub fn story(self) -> Option<&'static Story> {
        self.text().story.as_ref()
    }
}
