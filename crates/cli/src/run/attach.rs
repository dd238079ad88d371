//! `lockstead attach`: watches the locks of a process that runs already.

use super::attached::AttachedRun;
use super::flags::{OnDeadlock, WatchPatience, patience, time};
use super::metrics::{self, Metrics, MetricsFlags};
use super::options::SupervisorOptions;
use super::outcome::RunOutcome;
use super::processes::Observed;
use super::signals::CommandSignals;
use super::sources::EventSources;
use super::supervise;
use crate::attach::{self, AttachRefusal, Remains};
use crate::check::Judge;
use crate::report::{self, Here, ReportFlags};
use clap::Args;
use lockstead_inspect::ledger::Listener;
use lockstead_inspect::ledger::passing::SocketPeer;
use lockstead_inspect::proc::process::LiveProcess;
use lockstead_inspect::report::{RunFacts, assemble};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long threads have to come out of what a command has left.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead attach 1234              until Ctrl-C, then the report
  lockstead attach 1234 --for 30s    for half a minute
  lockstead attach 1234 --watch 1s --html locks.html
  lockstead attach --detach 1234     take out what a killed command has left

The process loads a library and its calls of lock functions are led to that. On leaving,
all is put back as it was, and the library is unloaded. The process is not restarted, and
all its threads stand still together for some milliseconds at the beginning and the end.

Exit status:
  0    attached and left again, and nothing was left behind
  1    left, but the library is still loaded: the message says why, --detach takes it out
  2    wrong usage
  125  the process was not attached to: the message says why, and what to do")]
pub(crate) struct AttachFlags {
    /// The process, or one of its threads, by its number
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,
    /// Leave the process after this time (500ms, 30s, 5m); on Ctrl-C or when it ends, otherwise
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) span: Option<Duration>,
    /// Stay until Ctrl-C or SIGTERM, or until the process ends, as without --for
    #[arg(long, conflicts_with = "span")]
    pub(crate) until_detach: bool,
    /// Report a wait for a lock that lasts this long (500ms, 5s, 2m; off), and again each time it
    /// has doubled
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = patience)]
    pub(crate) watch: WatchPatience,
    /// Take out what an attach has left in the process whose command was killed
    #[arg(long, conflicts_with_all = ["span", "until_detach"])]
    pub(crate) detach: bool,
    /// Is refused, with what to do instead
    #[arg(long, hide = true, value_name = "FILE", value_parser = no_recording)]
    pub(crate) record: Option<PathBuf>,
    /// Is refused, with what to do instead
    #[arg(long, hide = true)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
    #[command(flatten)]
    pub(crate) report: ReportFlags,
}

/// Refuses to record: what the threads began before is not known.
fn no_recording(_: &str) -> Result<PathBuf, String> {
    Err("a process that runs already is not recorded; start it by \
         `lockstead run --record FILE -- PROGRAM`"
        .into())
}

/// Attaches to a process, watches it, leaves it and reports.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn attach(flags: &AttachFlags) -> Result<(), Failure> {
    flags.report.check()?;
    if flags.check {
        return Err(Failure::Usage(
            "--check: a process that runs already is not checked, for the checks need all that its \
             locks and threads did before; start it by `lockstead run --check -- PROGRAM`"
                .into(),
        ));
    }
    let process = LiveProcess::open(flags.pid).map_err(|why| Failure::Refused {
        status: super::REFUSED,
        text: format!("process {}: {why}", flags.pid),
    })?;
    let refused = |AttachRefusal { why, instead, .. }| Failure::Refused {
        status: super::REFUSED,
        text: format!(
            "cannot attach to {} (pid {}): {why}\n  Instead: {instead}",
            process.name, process.pid
        ),
    };
    let failed = |what: &str, error: io::Error| Failure::Refused {
        status: super::REFUSED,
        text: format!("{what}: {error}"),
    };
    if flags.detach {
        let was_there = attach::clean(&process, PATIENCE).map_err(refused)?;
        output::note(format_args!(
            "lockstead: {} in {} (pid {})",
            if was_there { "took out what was left" } else { "nothing was left" },
            process.name,
            process.pid
        ));
        return Ok(());
    }
    super::origin::raise_descriptors();
    let listener = Listener::new().map_err(|error| failed("cannot listen", error))?;
    let metrics = metrics::prepare(&flags.metrics)?;
    let judge = Judge::default();
    let here = Here::now();
    // From here on a signal has the process left.
    let signals = CommandSignals::block().map_err(|error| failed("cannot read signals", error))?;
    let (attached, file, hello) = attach::attach(&process, listener.token()).map_err(refused)?;
    output::note(format_args!(
        "lockstead: attached to {} (pid {}): {} words lead to the library; one thread loaded it \
         in {}, then all stood still for {}",
        process.name,
        process.pid,
        attached.words(),
        milliseconds(attached.borrowed),
        milliseconds(attached.stood),
    ));
    let peer = SocketPeer { pid: process.pid, user: 0 };
    let observed = match Observed::new(&hello, file.into(), peer) {
        Ok(observed) => observed,
        Err(error) => {
            let remains = attached.detach(PATIENCE).err().map(|Remains { why }| why);
            return Err(failed(remains.as_deref().unwrap_or("its ledger cannot be read"), error));
        }
    };
    let until = flags.span.map(|span| Instant::now() + span);
    let options = SupervisorOptions {
        on_deadlock: OnDeadlock::Continue,
        watch: flags.watch.0,
        hang: None,
        wait_all: false,
        check: false,
        order: false,
        semaphores: false,
        report: flags.report.is_wanted().then(|| flags.report.options()),
    };
    let attached = Some(AttachedRun::new(attached, observed, until));
    let metrics = metrics.map(Metrics::start);
    let sources = EventSources { listener, signals, syscalls: None, attached, metrics };
    let outcome = supervise::supervise(0, &options, sources, (judge, None), None);
    say(flags, &here, &process, outcome)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Returns the report, and says how the process was left.
fn say(
    flags: &AttachFlags,
    here: &Here,
    process: &LiveProcess,
    mut outcome: RunOutcome,
) -> Result<(), Failure> {
    let accounts = outcome.accounts;
    for process in &accounts.damaged {
        output::note(format_args!(
            "lockstead: {process} has written over its ledger: the report lacks what it recorded \
             after that"
        ));
    }
    let left = outcome.left.unwrap_or(Ok(Duration::ZERO));
    if let Ok(stood) = &left {
        output::note(format_args!(
            "lockstead: left {} (pid {}); all threads stood still together for at most {}",
            process.name,
            process.pid,
            milliseconds(*stood)
        ));
    }
    let whole = RunFacts {
        command: process.command.clone(),
        wall_ns: u64::try_from(outcome.took.as_nanos()).unwrap_or(u64::MAX),
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        cpu_ns: outcome.cpu_ns,
        others_ns: outcome.others_ns,
        silent_processes: accounts.silent,
        checked: false,
        findings: std::mem::take(&mut outcome.reports.findings),
        semaphores: None,
        glimpses: outcome.glimpses,
    };
    let report = assemble(accounts.processes, whole, &flags.report.options());
    report::finish(&report, here, &flags.report)?;
    left.map(drop).map_err(|Remains { why }| {
        let LiveProcess { name, pid, .. } = process;
        Failure::Run(format!(
            "{name} (pid {pid}): {why}; `lockstead attach --detach {pid}` takes it out later"
        ))
    })
}
