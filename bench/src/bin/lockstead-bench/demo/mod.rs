//! `lockstead demo`: deadlocks in three languages, a hung program, and what the announcement of
//! 2005 showed, on this machine, in under a minute.

mod containers;
mod programs;

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output::{self, print};
use crate::table::{self, TextTable};
use clap::{Args, ValueEnum};
use lockstead_bench::published::{size_2005, vfs_2005};
use lockstead_bench::{LockName, uncontended, vfs};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead demo
  lockstead demo --seconds 10 --dir /tmp      longer, on the file system of /tmp
  lockstead demo container-kill               the part with the killed containers alone")]
pub(crate) struct Demo {
    /// One part alone [default: all parts]
    #[arg(value_name = "PART")]
    pub(crate) part: Option<DemoPart>,
    /// Seconds of measuring for each lock of the announcement's table
    #[arg(long, default_value = "4", value_name = "SECONDS", value_parser = crate::values::seconds)]
    pub(crate) seconds: Duration,
    /// The folder in which files are created and removed [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// A part of the demonstration that can be shown by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoPart {
    /// Two containers share a lock; a waiter is killed, then a process with 100,000 locks
    ContainerKill,
}

const LOCKS: [LockName; 5] = [
    LockName::Lockstead,
    LockName::SemaphoreTuned,
    LockName::SemaphoreClassic,
    LockName::Std,
    LockName::Pthread,
];

/// Measures and prints part by part.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Demo) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::WITH_FILES)?;
    if flags.part == Some(DemoPart::ContainerKill) {
        return containers::show(&interrupt);
    }
    let mut options = vfs::VfsOptions {
        locks: LOCKS.to_vec(),
        time: flags.seconds,
        ..vfs::VfsOptions::default()
    };
    if flags.dir.is_some() {
        options.dir.clone_from(&flags.dir);
    }
    vfs::check(&options)?;
    // Interrupted, a program or the compiler fails in a way of its own.
    programs::show(&interrupt).map_err(|failure| {
        if interrupt.flag().load(Relaxed) { Failure::Interrupted } else { failure }
    })?;
    let folder = options.dir.clone().unwrap_or_default();
    output::note(format_args!(
        "measuring {} locks for {} seconds each, with temporary files in {}",
        LOCKS.len(),
        flags.seconds.as_secs_f64(),
        folder.display()
    ));
    let report = crate::vfs::measure(&options, &interrupt)?;
    print(&format!(
        "5. creat + unlink + close by {} tasks at once, in {}\n\n{}{}\n{}\n{}\n",
        report.tasks,
        folder.display(),
        crate::vfs::announce(&report),
        crate::vfs::comparison(&report),
        crate::vfs::published(&vfs_2005()),
        verdict(&report),
    ))?;

    let options = uncontended::UncontendedOptions { locks: LOCKS.to_vec(), ..Default::default() };
    let pair = crate::uncontended::measure(&options, &interrupt)?;
    print(&format!(
        "6. lock + unlock that nobody disputes\n\n{}\n\
         The limit is what two atomic instructions cost on this processor: one to take a lock,\n\
         one to release it and learn in the same step whether anybody sleeps.\n\n",
        crate::uncontended::render(&pair, LockName::Std.name())
    ))?;
    print(&format!("7. size of a lock\n\n{}\n8. ", sizes(&pair)))?;
    containers::show(&interrupt)
}

/// Returns what the first table shows, in words that its figures choose.
fn verdict(report: &vfs::VfsReport) -> String {
    let row = |lock| report.row(lock).expect("every lock asked for has a row");
    let (mutex, classic) = (row(LockName::Lockstead), row(LockName::SemaphoreClassic));
    let tuned = row(LockName::SemaphoreTuned);
    let ratio = table::ratio;
    format!(
        "The tasks share one directory, and the lock of each row guards it. A classic semaphore\n\
         sends every task that must wait to sleep; lockstead's mutex lets it spin for a moment, so\n\
         that the lock passes on without a trip through the scheduler. Against the classic\n\
         semaphore the mutex did {} the loops per second here, and {} per CPU-second. The\n\
         semaphore with the same tricks did {} and {}; what it lacks is an owner to look at.\n",
        ratio(mutex.loops_per_s, classic.loops_per_s),
        ratio(mutex.loops_per_cpu_s, classic.loops_per_cpu_s),
        ratio(tuned.loops_per_s, classic.loops_per_s),
        ratio(tuned.loops_per_cpu_s, classic.loops_per_cpu_s),
    )
}

fn sizes(pair: &uncontended::UncontendedReport) -> String {
    let mut table = TextTable::new(&["lock", "bytes"]);
    for row in &pair.results {
        table.row([row.lock.to_string(), row.bytes.to_string()]);
    }
    for size in size_2005().iter().filter(|size| size.what.starts_with("struct bytes")) {
        table.row(["kernel's mutex, 2005, 32 bits".into(), size.mutex.to_string()]);
        table.row(["kernel's semaphore, 2005, 32 bits".into(), size.semaphore.to_string()]);
    }
    table.render()
}
