//! The flags of `lockstead export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead run --record events -- ./server
  lockstead export events -o trace.json    open it in https://ui.perfetto.dev
  lockstead export events --format folded | flamegraph.pl > waiting.svg
  lockstead export events --format folded --by holder
                                           whose critical sections cost time
  lockstead export events --format speedscope -o waiting.json
  lockstead export events --format pprof -o waiting.pb.gz
                                           for `go tool pprof` and its like
  lockstead export events --format html -o page.html
                                           timeline and flame graphs in a page

Exit status:
  0    written
  1    the file is no recording, is cut off, or cannot be read or written
  2    wrong usage")]
pub(crate) struct ExportFlags {
    /// A recording of `lockstead run --record FILE`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The format in which it is written
    #[arg(long, value_name = "FORMAT", default_value = "chrome")]
    pub(crate) format: ExportFormat,
    /// The threads whose stacks have the time, in folded stacks, for speedscope and for pprof, and at
    /// first in the page's flame graph
    #[arg(long, value_name = "WHO", default_value = "waiter")]
    pub(crate) by: BlameBy,
    /// Count waits for conditions, semaphores, barriers and ends of threads too, in folded stacks, for
    /// speedscope and for pprof, and at first in the page's flame graph; a thread without work spends
    /// its time there
    #[arg(long)]
    pub(crate) idle: bool,
    /// Write to this file and not to standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

/// The formats in which a recording is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Events as JSON for Perfetto and others that read the format of Chrome
    Chrome,
    /// A line for each stack with its nanoseconds, for flamegraph.pl and its like
    Folded,
    /// Stacks as JSON for speedscope
    Speedscope,
    /// Stacks with `contentions` and `delay`, compressed, for pprof
    Pprof,
    /// A page with a timeline and flame graphs, which fetches nothing
    Html,
}

/// The threads whose stacks have the time for which was waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BlameBy {
    /// The threads that waited
    Waiter,
    /// The threads that held the lock meanwhile
    Holder,
}
