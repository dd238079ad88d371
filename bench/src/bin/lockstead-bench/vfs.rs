//! `lockstead bench vfs`: the announcement's benchmark, in its form.

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use crate::values::{self, LocksFlag};
use clap::Args;
use lockstead_bench::LockName;
use lockstead_bench::published::{Vfs2005, vfs_2005};
use lockstead_bench::vfs::{self, VfsOptions, VfsReport, VfsRow};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench vfs
  lockstead bench vfs --tasks 4 --seconds 2 --locks lockstead,std,semaphore-classic
  lockstead bench vfs --dir /dev/shm --json > vfs.json
  lockstead bench vfs --memory                the shared directory only, no system calls")]
pub(crate) struct VfsFlags {
    /// Tasks at the same time, 1 to 1024
    #[arg(long, default_value = "16", value_name = "N", value_parser = values::tasks)]
    pub(crate) tasks: usize,
    /// Seconds of measuring for each lock
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Duration,
    /// The folder in which files are created and removed [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Leave out the system calls: work on the shared directory in memory only
    #[arg(long, conflicts_with = "dir")]
    pub(crate) memory: bool,
    #[command(flatten)]
    pub(crate) locks: LocksFlag,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// A spread that a quiet machine does not show.
const DISTURBED: f64 = 0.3;

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &VfsFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::WITH_FILES)?;
    let mut options =
        VfsOptions { tasks: flags.tasks, time: flags.seconds, ..VfsOptions::default() };
    if let Some(locks) = &flags.locks.locks {
        options.locks.clone_from(&locks.0);
    }
    if flags.memory {
        options.dir = None;
    } else if flags.dir.is_some() {
        options.dir.clone_from(&flags.dir);
    }
    let report = measure(&options, &interrupt)?;
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&format!(
        "{}{}\n{}",
        announce(&report),
        comparison(&report),
        published(&vfs_2005())
    ))
}

/// Measures with a progress bar.
pub(crate) fn measure(options: &VfsOptions, interrupt: &Interrupt) -> Result<VfsReport, Failure> {
    let report = measured(interrupt, |session| vfs::measure(options, session))?;
    output::warn_about(&report.machine);
    Ok(report)
}

/// Shows the announcement's form, three locks beside each other.
pub(crate) fn announce(report: &VfsReport) -> String {
    const WIDTH: usize = 30;
    let block = |row: &VfsRow| {
        [
            format!("{}:", row.lock),
            String::new(),
            format!("{} CPUs, running {} tasks.", report.machine.processors, report.tasks),
            "checking VFS performance.".into(),
            format!("avg loops/sec:   {:8.0}", row.loops_per_s),
            format!("CPU utilization: {:7.0}%", row.cpu_percent),
            String::new(),
        ]
    };
    let mut text = String::new();
    for beside in report.results.chunks(3) {
        let blocks: Vec<_> = beside.iter().map(block).collect();
        for line in 0..blocks[0].len() {
            let cells = blocks.iter().map(|block| format!("{:WIDTH$}", block[line]));
            let line = format!("  {}", cells.collect::<String>());
            text += &format!("{}\n", line.trim_end());
        }
    }
    text
}

/// Returns the table with the ratios to the classic semaphore.
pub(crate) fn comparison(report: &VfsReport) -> String {
    let classic = report.row(LockName::SemaphoreClassic);
    let mut table = TextTable::new(&[
        "this machine",
        "loops/s",
        "±",
        "CPU",
        "loops per\nCPU-second",
        "loops/s to\nclassic",
        "per CPU-s to\nclassic",
        "Jain",
    ]);
    for row in &report.results {
        let to = |figure: fn(&VfsRow) -> f64| {
            classic.map_or("-".into(), |classic| table::ratio(figure(row), figure(classic)))
        };
        let spread = spread(row);
        table.row([
            row.lock.to_string(),
            table::count(row.loops_per_s),
            if spread.is_finite() { format!("{:.0}%", spread * 100.0) } else { "-".into() },
            format!("{:.0}%", row.cpu_percent),
            table::count(row.loops_per_cpu_s),
            to(|row| row.loops_per_s),
            to(|row| row.loops_per_cpu_s),
            format!("{:.2}", row.jain),
        ]);
    }
    let mut text = table.render();
    if classic.is_none() {
        text += "\n  For the ratios of the announcement, add semaphore-classic to --locks.\n";
    }
    if report.results.iter().any(|row| spread(row) > DISTURBED) {
        text += &format!(
            "\n  A ± above {:.0}% tells of other work on the machine: repeat it when that is done.\n",
            DISTURBED * 100.0
        );
    }
    text
}

/// Returns half the distance of the slowest slice from the fastest, relative to the
/// median.
fn spread(row: &VfsRow) -> f64 {
    (row.loops_per_s_max - row.loops_per_s_min) / 2.0 / row.loops_per_s
}

/// Shows the announcement's own rows, each mutex with its ratios to the semaphore
/// above it.
pub(crate) fn published(rows: &[Vfs2005]) -> String {
    let mut table = TextTable::new(&[
        "published in 2005",
        "loops/s",
        "CPU",
        "loops/s per\n1% of CPU",
        "loops/s to\nsemaphore",
        "per CPU to\nsemaphore",
    ]);
    for row in rows {
        let semaphore = rows.iter().find(|r| r.machine == row.machine && r.lock == "semaphore");
        let to = |figure: fn(&Vfs2005) -> f64| {
            semaphore.map_or("-".into(), |other| table::ratio(figure(row), figure(other)))
        };
        table.row([
            format!("{}, {}", row.machine, row.lock),
            table::count(row.loops_per_sec),
            format!("{:.0}%", row.cpu_percent),
            table::count(efficiency(row)),
            to(|row| row.loops_per_sec),
            to(efficiency),
        ]);
    }
    table.render() + "\n  The announcement gives these ratios as 2.4x and 6.9x, 1.41x and 4.1x.\n"
}

/// Returns the loops per second for each per cent of processor time: what the announcement calls
/// efficiency. In ratios it is the same as loops per CPU-second.
pub(crate) fn efficiency(row: &Vfs2005) -> f64 {
    row.loops_per_sec / row.cpu_percent
}
