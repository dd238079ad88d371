//! `lockstead dump PID`: who waits for what in a process, who holds it, and the
//! deadlock if there is one.

mod text;

use crate::args;
use crate::failure::Failure;
use crate::output;
use lockstead_inspect::proc::process::Process;
use lockstead_inspect::snapshot::{self, Snapshot};

/// Looks at the process and prints.
///
/// # Errors
/// As [`Failure`]; a deadlock that was found is one.
pub(crate) fn run(flags: &args::Dump) -> Result<(), Failure> {
    let cannot = |why| Failure::Run(format!("cannot look at process {}: {why}", flags.pid));
    let process = Process::open(flags.pid).map_err(cannot)?;
    if process.asked != process.pid {
        output::note(format_args!(
            "{} is a thread of process {} ({}): showing that",
            process.asked, process.pid, process.name
        ));
    }
    let found = take(&process, flags).map_err(cannot)?;
    for limit in &found.limits {
        output::note(limit);
    }
    if flags.json {
        output::print_json(&found)?;
    } else {
        output::print(&text::render(&found, flags.all))?;
    }
    if found.is_deadlocked() { Err(Failure::Deadlock) } else { Ok(()) }
}

/// The one place that decides where the facts come from.
fn take(
    process: &Process,
    flags: &args::Dump,
) -> Result<Snapshot, lockstead_inspect::proc::process::Unusable> {
    snapshot::capture(process, flags.all)
}
