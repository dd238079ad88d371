//! What the report says of the holders of a lock.

use crate::stack::Stack;
use serde::Serialize;

/// What the holder of a lock did while others waited for it, as far as looks met it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderReport {
    /// How many looks met somebody waiting for the lock.
    pub looks: u64,
    /// How long threads waited, an estimate: each look stands for the time since the one before.
    pub seen_ns: u64,
    /// Whether there were enough looks to say anything: as good as 30 of equal weight.
    pub enough: bool,
    /// How far the parts may be off, in hundredths of the waiting, in 95 of 100 cases; null without
    /// a look.
    pub margin_percent: Option<f64>,
    /// How many threads waited for the lock at a look, on average.
    pub waiters: f64,
    /// The parts of the waiting.
    pub split: HolderSplit,
    /// What holders did and where, the largest part first; at most 16.
    pub places: Vec<HolderPlace>,
    /// How many more there were.
    pub more: u64,
    /// The parts for each place at which threads waited, the one that was looked at most first; at
    /// most 16.
    pub waited_at: Vec<SplitSite>,
}

/// The parts of waiting, by what kept it from ending. They add up to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderSplit {
    /// The holder was on a processor.
    pub running_percent: f64,
    /// The holder was ready to run, and had no processor.
    pub ready_percent: f64,
    /// The holder slept in a system call, or was stopped.
    pub asleep_percent: f64,
    /// The holder waited itself, for another lock or for what else the ledger has.
    pub waiting_percent: f64,
    /// The lock was free, or the waiter's already, and the waiter not yet awake.
    pub free_percent: f64,
    /// Somebody held it, and nothing told who or what that thread did.
    pub unknown_percent: f64,
}

/// What a holder did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HolderDoing {
    /// It was on a processor.
    #[default]
    Running,
    /// It was ready to run, and had no processor.
    Ready,
    /// It slept in a system call.
    Asleep,
    /// It waited itself for something.
    Waiting,
    /// It was stopped by a signal or a debugger.
    Stopped,
}

/// What a holder did while others waited, and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderPlace {
    /// What the holder did.
    pub doing: HolderDoing,
    /// The system call that it slept in: `fsync`; its number if the name is not known.
    pub call: Option<String>,
    /// What it waited for itself: the name of a lock, or `the end of a thread`.
    pub lock: Option<String>,
    /// The place in few words, if it is known.
    pub site: Option<String>,
    /// The name of the function.
    pub function: Option<String>,
    /// The path of the source file.
    pub file: Option<String>,
    /// The number of the line in `file`.
    pub line: Option<u32>,
    /// Whether the place is that of its acquisition, for where it was just then is not known: of a
    /// thread that does not sleep, or whose stack could not be walked.
    pub acquired: bool,
    /// How long threads waited meanwhile, an estimate.
    pub seen_ns: u64,
    /// How many waits looks met so.
    pub looks: u64,
    /// Its part in the waiting for the lock.
    pub share_percent: f64,
    /// The stack, of the largest part.
    pub stack: Option<Stack>,
}

/// The parts of the waiting at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitSite {
    /// The place in few words, as in `waited_at` of the lock.
    pub site: String,
    /// How many looks met somebody waiting there.
    pub looks: u64,
    /// How far the parts may be off, in hundredths of the waiting, in 95 of 100 cases.
    pub margin_percent: f64,
    /// The parts of the waiting.
    pub split: HolderSplit,
}
