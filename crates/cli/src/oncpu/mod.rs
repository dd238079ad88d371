//! `lockstead oncpu`: the table of which thread runs where, started and stopped.

mod flags;

pub(crate) use flags::{HELP, OncpuCommand};

use crate::measuring;
use lockstead_linux::oncpu::{RunningTable, layout::FOLDER, status};
use lockstead_oncpu::{OncpuRefusal, start, stop};
use lockstead_render::failure::Failure;
use lockstead_render::machine::{MachineFacts, utc};
use lockstead_render::output;
use serde::Serialize;

/// Starts, stops or shows the table of who runs where.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(what: &OncpuCommand) -> Result<(), Failure> {
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |why: OncpuRefusal| Failure::Run(format!("cannot {doing} the table: {why}"))
    };
    match what {
        OncpuCommand::Start => {
            let running = start().map_err(failed("start"))?;
            output::print(&text(Some(&running)))
        }
        OncpuCommand::Stop => {
            let was = stop().map_err(failed("stop"))?;
            output::print(if was { "stopped; nothing is left of it\n" } else { NONE })
        }
        OncpuCommand::Check(rest) => measuring::start(&["oncpu", "check"], rest),
        OncpuCommand::Status(flags) => {
            let found = status().map_err(OncpuRefusal::from).map_err(failed("read"))?;
            if flags.json {
                output::print_json(&OncpuStatus::new(found.as_ref()))?;
            } else {
                output::print(&text(found.as_ref()))?;
            }
            if found.is_some_and(|running| running.kept) { Ok(()) } else { Err(Failure::Absent) }
        }
    }
}

const NONE: &str = "there is no table: locks ask for processor-time clocks\n";

fn folder() -> std::borrow::Cow<'static, str> {
    FOLDER.to_string_lossy()
}

fn text(found: Option<&RunningTable>) -> String {
    let Some(running) = found else { return NONE.into() };
    let kept = if running.kept { "kept" } else { "there, but nobody keeps it" };
    format!(
        "the table is {kept}: {}, {} processors, {} threads, {} KiB, since {}\n",
        folder(),
        running.processors,
        running.threads,
        running.bytes.div_ceil(1024),
        utc(running.started)
    )
}

/// What `lockstead oncpu status --json` writes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OncpuStatus {
    /// The machine that was asked.
    machine: MachineFacts,
    /// Whether there is a table, and it knows the thread that asks.
    kept: bool,
    /// The path at which the table lies, or would lie.
    path: String,
    /// The number of processors that it has lines for; null, as all below, where there is none.
    processors: Option<u32>,
    /// The number of threads that it has entries for, by the low bits of their numbers.
    threads: Option<u32>,
    /// The bytes that it has in memory.
    bytes: Option<usize>,
    /// The time at which it was started, in UTC, as `2026-01-31T12:00:00Z`.
    started: Option<String>,
}

impl OncpuStatus {
    fn new(found: Option<&RunningTable>) -> Self {
        OncpuStatus {
            machine: MachineFacts::here(),
            kept: found.is_some_and(|running| running.kept),
            path: folder().into_owned(),
            processors: found.map(|running| running.processors),
            threads: found.map(|running| running.threads),
            bytes: found.map(|running| running.bytes),
            started: found.map(|running| utc(running.started)),
        }
    }
}
