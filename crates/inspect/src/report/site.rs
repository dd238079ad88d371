//! Places of a program in a report.

use crate::stack::Stack;
use serde::Serialize;

/// A place in the program and its part.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportSite {
    /// The place in few words: `cache_get() at cache.c:77`.
    pub site: String,
    /// The name of the function.
    pub function: Option<String>,
    /// The path of the source file.
    pub file: Option<String>,
    /// The number of the line in `file`.
    pub line: Option<u32>,
    /// How often it happened.
    pub count: u64,
    /// How long it took altogether.
    pub total_ns: u64,
    /// `total_ns` over the sum of all places; of `taken_at` and `given_at` the part of the calls.
    pub share_percent: f64,
    /// Whether it stands for all stacks beyond the first 256, and those that found no room.
    pub others: bool,
    /// The program's own function that took the lock there and returned with it.
    pub through: Option<String>,
    /// The stack that led there with the largest part.
    pub stack: Option<Stack>,
    /// The places that called the function of this one, the largest part first; at most 16.
    pub callers: Vec<SiteCaller>,
}

/// A place from which the function of another one was called, and its part.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteCaller {
    /// The place in few words.
    pub site: String,
    /// The name of the function.
    pub function: Option<String>,
    /// The path of the source file.
    pub file: Option<String>,
    /// The number of the line in `file`.
    pub line: Option<u32>,
    /// How often it happened.
    pub count: u64,
    /// How long it took altogether.
    pub total_ns: u64,
    /// Its part of the same whole as that of the place.
    pub share_percent: f64,
    /// Whether it stands for all callers beyond the first 15.
    pub others: bool,
    /// The stack that led there with the largest part.
    pub stack: Option<Stack>,
}
