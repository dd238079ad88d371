//! How the whole of a row is spread among its locks, as data.

use crate::report::family::distinction;
use serde::Serialize;
use std::borrow::Cow;

/// What is spread among the locks of a row: what the row is listed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SpreadOf {
    /// The time of waiting.
    #[default]
    Waiting,
    /// The time of holding.
    Holding,
    /// The number of acquisitions.
    Acquisitions,
    /// The number of contended acquisitions.
    Contended,
}

/// How the whole of a row is spread among its locks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockSpread {
    /// What is spread: what the report is sorted by, `waiting` for the longest wait and by name.
    pub of: SpreadOf,
    /// The fewest of the locks that have 80 % of it together.
    pub most: u64,
    /// The part that these have.
    pub most_percent: f64,
    /// Whether these are half of the locks or more.
    pub even: bool,
    /// The worst of the locks, at most 16.
    pub worst: Vec<SpreadLock>,
}

/// One lock of a row, or destroyed ones that share a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpreadLock {
    /// The name of the lock.
    pub name: String,
    /// The address of the lock; null of several.
    pub address: Option<u64>,
    /// How many locks share the record.
    pub locks: u64,
    /// Its part of what is spread.
    pub share_percent: f64,
    /// How long it was waited for.
    pub waited_ns: u64,
    /// How long the longest wait was.
    pub max_wait_ns: u64,
    /// How often it was acquired.
    pub acquisitions: u64,
    /// How often it was found taken and waited for with success.
    pub contended: u64,
}

impl SpreadLock {
    /// Returns what tells it from the others of the row: `[17]`, `#3`.
    #[must_use]
    pub fn told(&self) -> Cow<'_, str> {
        if self.locks > 1 {
            return format!("{} destroyed ones", self.locks).into();
        }
        match (distinction(&self.name), self.address) {
            (Some(told), _) => told,
            // Names that a program gives may be the same.
            (None, Some(address)) => format!("{address:#x}").into(),
            (None, None) => self.name.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_told_by_what_its_name_adds() {
        let named = |name: &str, address, locks| SpreadLock {
            name: name.into(),
            address,
            locks,
            ..SpreadLock::default()
        };
        for (lock, told) in [
            (named("cache_lock[17]", Some(1), 1), "[17]"),
            (named("mutex from f(), #3", Some(1), 1), "#3"),
            (named("shards", Some(0x7f00), 1), "0x7f00"),
            (named("mutexes from f()", None, 600), "600 destroyed ones"),
            (named("shards", None, 1), "shards"),
        ] {
            assert_eq!(lock.told(), told);
        }
    }
}
