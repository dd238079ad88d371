//! What a litmus test may show, under three models.

use std::collections::BTreeSet;
use std::fmt;

/// The outcomes of a test under one model; `None` if it has a data race.
pub(super) type Outcomes = Option<BTreeSet<String>>;

/// The models that have decided the tests: the file for herd, and its part of a [`Verdict`].
pub(super) const MODELS: [&str; 3] = ["checker.cat", "cxx20.cat", "rc11.cat"];

/// The outcomes of a test under each of [`MODELS`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Verdict(pub(super) [Outcomes; 3]);

impl Verdict {
    pub(super) fn of_checker(&self) -> &Outcomes {
        &self.0[0]
    }

    pub(super) fn of_rc11(&self) -> &Outcomes {
        &self.0[2]
    }

    /// Returns the verdict that these words say; see its text form.
    ///
    /// # Panics
    /// If they say none.
    pub(super) fn parse(text: &str) -> Verdict {
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        if first.trim() == "race" {
            return Verdict([None, None, None]);
        }
        let set = |words: &str| words.split_whitespace().map(String::from).collect();
        let checker: BTreeSet<String> = set(first);
        let (mut cxx20, mut rc11) = (checker.clone(), None);
        for part in parts {
            match part.trim().split_once(' ') {
                Some(("c++20+", more)) => cxx20.extend::<BTreeSet<String>>(set(more)),
                Some(("rc11+", more)) => {
                    rc11.get_or_insert(cxx20.clone()).extend::<BTreeSet<String>>(set(more));
                }
                Some(("rc11-", less)) => {
                    let less: BTreeSet<String> = set(less);
                    rc11.get_or_insert(cxx20.clone()).retain(|outcome| !less.contains(outcome));
                }
                _ => panic!("no verdict: {text}"),
            }
        }
        let rc11 = rc11.unwrap_or(cxx20.clone());
        Verdict([Some(checker), Some(cxx20), Some(rc11)])
    }
}

impl fmt::Display for Verdict {
    /// Writes the outcomes that the checker finds, then those that C++20 has beside them
    /// (`c++20+`), then what RC11 has beside those, or lacks of them (`rc11+`, `rc11-`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [Some(checker), Some(cxx20), Some(rc11)] = &self.0 else {
            assert_eq!(self.0, [None, None, None], "a race under one model only");
            return f.write_str("race");
        };
        assert!(checker.is_subset(cxx20), "{checker:?} {cxx20:?}");
        f.write_str(&checker.iter().map(String::as_str).collect::<Vec<_>>().join(" "))?;
        let differences =
            [("c++20+", cxx20 - checker), ("rc11+", rc11 - cxx20), ("rc11-", cxx20 - rc11)];
        for (name, outcomes) in differences {
            if !outcomes.is_empty() {
                let outcomes: Vec<_> = outcomes.into_iter().collect();
                write!(f, ", {name} {}", outcomes.join(" "))?;
            }
        }
        Ok(())
    }
}
