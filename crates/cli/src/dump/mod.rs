//! `lockstead dump PID`: who waits for what in a process, who holds it, and the
//! deadlock if there is one.

mod enders;
mod held;
mod python;
mod text;

pub(crate) use enders::enders;
use text::render;
pub(crate) use text::{all_threads, one_sleeper, one_waiter};

use clap::Args;
use lockstead_inspect::ledger::attach;
use lockstead_inspect::proc::process::{LiveProcess, Unusable};
use lockstead_inspect::snapshot::model::CycleVerdict;
use lockstead_inspect::snapshot::{self, Snapshot};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::io;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead dump 1234
  lockstead dump $(pidof server)
  lockstead dump 1234 --json | jq .cycles
  sudo lockstead dump 1234                    where the process is not yours

Exit status:
  0    shown, no deadlock found
  1    nothing could be shown, or not what threads wait for: that is no answer
  2    wrong usage
  3    shown, and there is a deadlock, or probably one")]
pub(crate) struct Dump {
    /// Number of the process, or of one of its threads
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: u32,
    /// Show threads that neither wait nor hold, all members of groups, and all frames too
    #[arg(long)]
    pub(crate) all: bool,
    /// Never stop a thread: without it, threads that sleep for locks without owners in them may be
    /// stopped for some microseconds to read their registers
    #[arg(long)]
    pub(crate) no_stop: bool,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Looks at the process and prints.
///
/// # Errors
/// As [`Failure`]; a deadlock that was found is one.
pub(crate) fn run(flags: &Dump) -> Result<(), Failure> {
    let cannot = |why| Failure::Run(format!("cannot look at process {}: {why}", flags.pid));
    let process = LiveProcess::open(flags.pid).map_err(cannot)?;
    if process.asked != process.pid {
        output::note(format_args!(
            "{} is a thread of process {} ({}): showing that",
            process.asked, process.pid, process.name
        ));
    }
    let found = take(&process, flags).map_err(cannot)?;
    for limit in found.limits.iter().chain(&found.advice) {
        output::note(limit);
    }
    if flags.json {
        output::print_json(&found)?;
    } else {
        output::print(&render(&found, flags.all))?;
    }
    if found.is_deadlocked() || found.has(CycleVerdict::Probable) {
        return Err(Failure::Deadlock);
    }
    if !found.complete {
        return Err(Failure::Run(format!(
            "whether process {} is deadlocked cannot be told: not all that its threads wait for \
             could be read",
            process.pid
        )));
    }
    Ok(())
}

/// Returns the one place that decides where the facts come from: the ledger, if the process has one
/// that can be had.
fn take(process: &LiveProcess, flags: &Dump) -> Result<Snapshot, Unusable> {
    match attach(process.pid) {
        Ok(Some(ledger)) => snapshot::recorded(process, &ledger, flags.all, !flags.no_stop),
        Ok(None) => snapshot::capture(process, flags.all, !flags.no_stop),
        Err(error) => {
            let mut found = snapshot::capture(process, flags.all, !flags.no_stop)?;
            // Where the maps may not be read, nothing tells whether there is a
            // ledger, and the snapshot says why they may not.
            if error.kind() != io::ErrorKind::PermissionDenied {
                found.limits.insert(
                    0,
                    format!(
                        "the ledger of the process cannot be had ({error}): this is what its \
                         memory shows, and held locks that nobody waits for are not in it"
                    ),
                );
            }
            Ok(found)
        }
    }
}
