//! The row of a lock in the report.

use super::cost::Disputed;
use super::trials::AfterKill;
use serde::Serialize;

/// The figures of one lock. `null` is what was not tried, or does not apply.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RivalRow {
    /// The name of the lock, as in the table.
    pub lock: &'static str,
    /// The version of the library that it comes from, if that is not the C library.
    pub version: Option<String>,
    /// Taking it and giving it back when nobody else wants it, in nanoseconds: the median of the
    /// rounds.
    pub pair_ns: f64,
    /// The ratio of that to lockstead's mutex, in the same rounds; of Python's lock, which was not
    /// measured in turn, by the medians.
    pub ratio: f64,
    /// Taking a share of it and giving that back: the median of the rounds.
    pub share_pair_ns: Option<f64>,
    /// What two processes did that both want it: the medians of the rounds, and the longest wait of
    /// all.
    pub disputed: Option<Disputed>,
    /// What a waiter gets when the holder is killed.
    pub after_kill: AfterKill,
    /// The time from the kill until the waiter has that, in milliseconds: the median of nine.
    pub known_ms: Option<f64>,
    /// What a waiter gets when the holder is killed, and a forked child of it lives on.
    pub after_kill_with_child: Option<AfterKill>,
    /// What one that wants it alone gets when one is killed that shares it.
    pub after_reader_kill: Option<AfterKill>,
    /// Whether two threads of a process, each of which has opened it, exclude each other.
    pub excludes_threads: Option<bool>,
    /// Whether it is still held when its holder has opened its file once more, and closed that.
    pub survives_close: Option<bool>,
    /// Whether it is still held when a forked child of the holder has unlocked it.
    pub survives_child: Option<bool>,
    /// Whether it is still held when a waiter is killed, and holder and waiter are process 1 of
    /// containers.
    pub survives_waiter: Option<bool>,
}

impl RivalRow {
    pub(super) fn new(lock: &'static str, pair_ns: f64, ratio: f64) -> Self {
        RivalRow {
            lock,
            version: None,
            pair_ns,
            ratio,
            share_pair_ns: None,
            disputed: None,
            after_kill: AfterKill::Stuck,
            known_ms: None,
            after_kill_with_child: None,
            after_reader_kill: None,
            excludes_threads: None,
            survives_close: None,
            survives_child: None,
            survives_waiter: None,
        }
    }
}
