//! `lockstead run`: starts a program with the library under it, watches its
//! locks, and says at the end what it saw.
//!
//! # Role
//! The command stays the parent of the program and is otherwise not there: the
//! program has the descriptors, the terminal, the environment and the signals
//! that it would have had, and its status becomes the command's. All that is
//! printed goes to standard error.
//!
//! # When things end
//! - The run ends with the program that was started, as it would in a shell;
//!   those that it left behind are reported as far as they got. `--wait-all`
//!   waits for them.
//! - If the command is killed, the program goes on: the library writes into
//!   memory that is its own, and nobody is waited for. It gets no signal, for
//!   none was asked for.

mod accountant;
mod across;
mod attach;
mod attached;
mod belongs;
mod blocked_text;
mod checked;
mod checks;
mod deadlock_text;
mod delays;
mod earlier;
mod elf;
mod flags;
mod futexes;
mod glance;
mod hang;
mod holders;
mod lasting;
mod launch;
mod left_behind;
mod load;
mod metrics;
mod options;
mod origin;
mod outcome;
mod pace;
mod processes;
mod program;
mod python;
mod record;
mod reporter;
mod rust;
mod scene;
mod segments;
mod signals;
mod sources;
mod standstill_text;
mod supervise;
mod syscalls;
mod unseen;
mod watch;

use crate::check::{Judge, summary, write_sarif};
use crate::preload_image::{self, PreloadImage};
use crate::report::{self, Here};
use launch::{Program, StartFailure};
use lockstead_inspect::ledger::Listener;
use lockstead_inspect::report::{RunFacts, assemble, semaphores};
use lockstead_ledger::hello::{Settings, VARIABLE};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use metrics::Metrics;
use options::SupervisorOptions;
use outcome::RunOutcome;
use program::{NOT_EXECUTABLE, NOT_FOUND, REFUSED, StartRefusal, WatchedBy};
use record::Recorder;
use rust::RustBuild;
use signals::{CommandSignals, ProgramEnd};
use sources::EventSources;
use std::io;
use syscalls::Syscalls;
use syscalls::filter::TellingSockets;

pub(crate) use attach::{AttachFlags, attach};
pub(crate) use flags::RunFlags;

/// The status of a run whose program was ended because of a deadlock, or in which
/// the checks found something.
const FOUND: u8 = 3;
/// Said before the kernel's own reason.
const FILTER_REFUSED: &str = "--syscalls needs a seccomp filter that tells of calls (Linux 5.5; \
                              a container may forbid it, and a process has one at most)";
/// What a shell adds to the number of the signal that ended a program.
const BY_SIGNAL: u8 = 128;

/// Runs the program and reports. Returns only if the program's own status is 0.
///
/// # Errors
/// As [`Failure`]; the program's status is one of them.
pub(crate) fn run(flags: &RunFlags) -> Result<(), Failure> {
    flags.report.check()?;
    flags.check.check(&flags.report)?;
    let judge = Judge::new(flags.check.strict, flags.check.suppressed()?);
    let refused = |StartRefusal { status, text }| Failure::Refused { status, text };
    let failed = |what: &str, error: io::Error| Failure::Refused {
        status: REFUSED,
        text: format!("{what}: {error}"),
    };
    let (file, by) = program::find(&flags.program[0], std::env::var_os("PATH").as_deref())
        .and_then(|file| program::check(&file, flags.syscalls).map(|by| (file, by)))
        .map_err(refused)?;
    origin::raise_descriptors();
    let mut listener = Listener::new().map_err(|error| failed("cannot listen", error))?;
    let image = PreloadImage::install(flags.check.check || flags.semaphores)
        .map_err(|text| Failure::Refused { status: REFUSED, text })?;
    // Without it all but programs in other network namespaces are watched.
    let _ = image.directory().map(|directory| listener.listen_in(directory));
    let settings = Settings {
        token: listener.token().as_bytes(),
        follow: !flags.no_follow,
        sleepy: flags.check.sleepy,
        semaphores: flags.semaphores,
        told: flags.syscalls,
        record: flags.record.file.is_some(),
    };
    let rust = if flags.rust { rust::prepare() } else { Ok(RustBuild::default()) };
    let rust = rust.map_err(|why| Failure::Refused {
        status: REFUSED,
        text: format!("no std whose locks are seen: {why}"),
    })?;
    let preload = preload_image::ld_preload(&image, std::env::var_os("LD_PRELOAD").as_deref());
    let telling = flags.syscalls.then(TellingSockets::new).transpose();
    let telling = telling.map_err(|error| failed("cannot listen", error))?;
    let program = Program {
        file: &file,
        arguments: &flags.program,
        environment: launch::environment(
            &[
                vec![
                    ("LD_PRELOAD", preload),
                    (VARIABLE, settings.to_string().into()),
                    (
                        launch::SANITIZER,
                        launch::sanitizer_options(std::env::var_os(launch::SANITIZER)),
                    ),
                ],
                rust.environment.clone(),
            ]
            .concat(),
        ),
    };
    let copy = flags.check.open_report_file()?;
    let metrics = metrics::prepare(&flags.metrics)?;
    let recording = record::begin(&flags.record, &flags.program)?;
    let here = Here::now();
    let signals = CommandSignals::block().map_err(|error| failed("cannot read signals", error))?;
    let started = launch::start(&program, signals.before(), telling);
    let (child, told) = started.map_err(|failure| match failure {
        StartFailure::Exec(error) => {
            let status =
                if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            Failure::Refused { status, text: format!("{}: {error}", file.display()) }
        }
        StartFailure::Filter(error) => failed(FILTER_REFUSED, error),
    })?;
    let first = (by == WatchedBy::Syscalls).then_some(child.unsigned_abs());
    let syscalls = told.map(|told| Syscalls::start(told, first)).transpose();
    let syscalls = syscalls.map_err(|error| failed("--syscalls", error))?;
    // Not before: a process that starts another one has one thread.
    let recorder = recording.map(Recorder::start);
    let options = SupervisorOptions {
        on_deadlock: flags.on_deadlock,
        watch: flags.watch.0,
        hang: flags.hang(),
        // Of those that are left out none is waited for.
        wait_all: flags.wait_all && !flags.no_follow,
        check: flags.check.check,
        order: flags.report.json.is_some() || flags.report.html.is_some(),
        semaphores: flags.semaphores,
        report: flags.report.is_wanted().then(|| flags.report.options()),
    };
    let metrics = metrics.map(Metrics::start);
    let sources = EventSources { listener, signals, syscalls, attached: None, metrics };
    let outcome = supervise::supervise(child, &options, sources, (judge, copy), recorder);
    let ended_program = outcome.reports.ended_program;
    let (end, hung) = (outcome.end, outcome.hung);
    let found = flags.check.check && outcome.reports.judge.tally.has_findings(flags.check.strict);
    let reported = say(flags, &here, outcome, &rust);
    drop(image);
    reported?;
    match end {
        _ if ended_program => Err(Failure::Program(FOUND)),
        // Of a run that was cut off, what else was found is less than all there is.
        _ if hung => Err(Failure::Program(hang::HUNG)),
        _ if found => Err(Failure::Program(FOUND)),
        ProgramEnd::Exited(0) | ProgramEnd::Left => Ok(()),
        ProgramEnd::Exited(status) => {
            Err(Failure::Program(u8::try_from(status).unwrap_or(u8::MAX)))
        }
        ProgramEnd::Killed(signal) => {
            signals::end_by(signal);
            // A signal that does not end this process after all.
            let number = u8::try_from(signal).unwrap_or(0);
            Err(Failure::Program(BY_SIGNAL.saturating_add(number)))
        }
    }
}

/// Returns the exit report, and what else is to be said at the end.
fn say(
    flags: &RunFlags,
    here: &Here,
    mut outcome: RunOutcome,
    rust: &RustBuild,
) -> Result<(), Failure> {
    for loss in &outcome.losses {
        output::note(format_args!("lockstead: not watched: {loss}"));
    }
    if outcome.recurrences != 0 {
        output::note(format_args!(
            "lockstead: cycles that end by time-out closed again {} more times",
            outcome.recurrences
        ));
    }
    let accounts = outcome.accounts;
    for process in &accounts.damaged {
        output::note(format_args!(
            "lockstead: {process} has written over its ledger: the report lacks what it recorded \
             after that"
        ));
    }
    if accounts.count == 0 && outcome.losses.is_empty() {
        output::note(
            "lockstead: nothing was recorded: the library did not start in the program, or the \
             program ended before it",
        );
    }
    let whole = RunFacts {
        command: flags.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        wall_ns: u64::try_from(outcome.took.as_nanos()).unwrap_or(u64::MAX),
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        cpu_ns: outcome.cpu_ns,
        others_ns: outcome.others_ns,
        silent_processes: accounts.silent,
        checked: flags.check.check,
        findings: std::mem::take(&mut outcome.reports.findings),
        semaphores: flags.semaphores.then(|| semaphores::merge(accounts.semaphores)),
        glimpses: outcome.glimpses,
    };
    let recorded = match outcome.recording {
        Some(Ok(text)) => {
            output::note(format_args!("lockstead: {text}"));
            Ok(())
        }
        Some(Err(why)) => Err(Failure::Run(why)),
        None => Ok(()),
    };
    let report = assemble(accounts.processes, whole, &flags.report.options());
    let written = report::finish(&report, here, &flags.report);
    let sarif = flags.check.sarif.as_deref();
    let logged = sarif.map_or(Ok(()), |file| {
        write_sarif(file, &report.findings.iter().map(Into::into).collect::<Vec<_>>())
    });
    if let Some(mut checked) = outcome.checked {
        checked.unfit = flags.rust.then(|| rust.unfit());
        let judge = outcome.reports.judge;
        let found = judge.tally.has_findings(flags.check.strict);
        let end = (found && outcome.end != ProgramEnd::Exited(0)).then(|| outcome.end.words());
        let text =
            summary(&judge.tally, &checked, flags.check.strict, &judge.unused(), end.as_deref());
        output::note(text.trim_end());
        flags.check.append(&text)?;
    }
    written.and(logged).and(recorded)
}
