//! Places of a program in a report.

use crate::stack::Stack;
use serde::Serialize;

/// A place in the program and its part.
#[derive(Clone, Debug, Serialize)]
pub struct Site {
    /// The place in few words: `cache_get() at cache.c:77`.
    pub site: String,
    /// Name of the function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// How often.
    pub count: u64,
    /// How long altogether.
    pub total_ns: u64,
    /// `total_ns` over the sum of all places.
    pub share_percent: f64,
    /// Stands for all stacks for which there was no room.
    pub others: bool,
    /// The function called there that took the lock, where that is one of the program's
    /// own which returns with it.
    pub through: Option<String>,
    /// The stack that had the largest part.
    pub stack: Option<Stack>,
    /// Who called the function of the place, the largest part first.
    pub callers: Vec<Caller>,
}

/// A place from which the function of another one was called, and its part.
#[derive(Clone, Debug, Serialize)]
pub struct Caller {
    /// The place in few words.
    pub site: String,
    /// Name of the function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// How often.
    pub count: u64,
    /// How long altogether.
    pub total_ns: u64,
    /// Its part in all that happened at all places.
    pub share_percent: f64,
    /// Stands for all callers beyond the largest.
    pub others: bool,
    /// The stack that had the largest part.
    pub stack: Option<Stack>,
}
