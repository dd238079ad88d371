//! `dump`, `ls` and `release`: the graph over all hosts, the list, and the axe.

use crate::common::{EtcdFlags, failed};
use crate::local;
use clap::Args;
use lockstead_cluster::survey::{Edge, LockState, Place, Survey, Surveyor, ThreadName};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use lockstead_render::table::TextTable;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster dump
  lockstead cluster dump --json | jq .cycles
  lockstead cluster dump --local --json > here.json; lockstead cluster dump --with here.json

Exit status:
  0    shown, no deadlock found
  1    etcd cannot be asked
  2    wrong usage
  3    shown, and there is a deadlock")]
pub(crate) struct DumpFlags {
    #[command(flatten)]
    etcd: EtcdFlags,
    /// Look into the processes of this host, too, by `lockstead dump`: for cycles through locks of
    /// theirs
    #[arg(long)]
    local: bool,
    /// Add what `dump --local --json` found on other hosts
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster ls
  lockstead cluster ls --json | jq '.[].name'")]
pub(crate) struct LsFlags {
    #[command(flatten)]
    etcd: EtcdFlags,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster release nightly            shows whom it would take the lock from
  lockstead cluster release nightly --force

The holder goes on until it looks: up to a third of its lease, or longer if it is stopped. What it
writes meanwhile is refused only where tokens are checked. All that its session holds is lost.

Exit status:
  0    taken, or freed of what a dead owner left
  1    etcd cannot be asked
  2    wrong usage, or --force is not there: whom it would be taken from was shown
  3    nobody has a lock of this name, and no dead owner left one")]
pub(crate) struct ReleaseFlags {
    #[command(flatten)]
    etcd: EtcdFlags,
    /// Take it, in place of showing from whom
    #[arg(long)]
    force: bool,
    /// Name of the lock
    name: String,
}

fn surveyor(etcd: &EtcdFlags) -> Result<Surveyor, Failure> {
    Surveyor::new(etcd.client()?, &etcd.root).map_err(failed)
}

/// Looks at all locks.
pub(crate) fn look(etcd: &EtcdFlags) -> Result<Survey, Failure> {
    surveyor(etcd)?.look().map_err(failed)
}

pub(crate) fn run(flags: &DumpFlags) -> Result<(), Failure> {
    let mut survey = look(&flags.etcd)?;
    let mut found: Vec<Edge> = Vec::new();
    if flags.local {
        found.extend(local::edges(&survey)?);
    }
    for file in &flags.with {
        found.extend(local::read(file)?);
    }
    survey.add_local(found);
    if flags.json {
        output::print_json(&survey)?;
    } else {
        output::print(&text(&survey))?;
    }
    if survey.cycles.is_empty() { Ok(()) } else { Err(Failure::Deadlock) }
}

pub(crate) fn list(flags: &LsFlags) -> Result<(), Failure> {
    let survey = look(&flags.etcd)?;
    if flags.json { output::print_json(&survey.locks) } else { output::print(&table(&survey)) }
}

pub(crate) fn release(flags: &ReleaseFlags) -> Result<(), Failure> {
    let surveyor = surveyor(&flags.etcd)?;
    let survey = surveyor.look().map_err(failed)?;
    let Some(lock) = survey.locks.iter().find(|lock| lock.name == flags.name) else {
        output::note(format_args!("nobody has {}", flags.name));
        return Err(Failure::Absent);
    };
    let holders: Vec<&Place> = lock.places.iter().filter(|place| place.holds).collect();
    let what: Vec<String> = holders.iter().map(|holder| who(holder)).collect();
    if !flags.force {
        let from = if what.is_empty() {
            "nobody holds it; it would be freed of what a dead owner left".to_owned()
        } else {
            format!(
                "it would be taken from {}, with all that this session holds",
                what.join(" and ")
            )
        };
        return Err(Failure::Usage(format!("{from}; say --force to do it")));
    }
    let taken = surveyor.release_by_force(&flags.name).map_err(failed)?;
    if taken.is_empty() {
        output::note(format_args!("{} was freed of what a dead owner left", flags.name));
    }
    for place in taken {
        output::note(format_args!(
            "warning: taken from {}, which goes on until it looks; what it writes where no token is \
             checked may meet the next owner's",
            who(&place)
        ));
    }
    Ok(())
}

fn thread(name: &ThreadName) -> String {
    format!("{} process {} thread {}", name.host, name.pid, name.tid)
}

fn who(place: &Place) -> String {
    let mut text = thread(&place.thread);
    if !place.thread_name.is_empty() {
        let _ = write!(text, " ({})", place.thread_name);
    }
    let _ = write!(text, " of {} at {}", place.program, place.place);
    text
}

/// Returns the time since then, by this host's clock: the other one's may differ.
pub(crate) fn ago(since: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    humantime::format_duration(Duration::from_secs(now.as_secs().saturating_sub(since))).to_string()
}

fn state(lock: &LockState) -> &'static str {
    match (lock.not_recoverable, lock.owner_died) {
        (true, _) => "not recoverable",
        (_, true) => "an owner died",
        _ => "",
    }
}

pub(crate) fn table(survey: &Survey) -> String {
    let mut table = TextTable::new(&["lock", "holders", "waiters", "longest", "held by", "state"]);
    for lock in &survey.locks {
        let holders = lock.places.iter().filter(|place| place.holds);
        let first = holders.clone().next();
        let waiting = lock.places.iter().filter(|place| !place.holds);
        table.row([
            lock.name.clone(),
            holders.count().to_string(),
            waiting.clone().count().to_string(),
            waiting.map(|place| place.since).min().map(ago).unwrap_or_default(),
            first.map(|place| thread(&place.thread)).unwrap_or_default(),
            state(lock).to_owned(),
        ]);
    }
    table.render()
}

fn text(survey: &Survey) -> String {
    let mut text = String::new();
    for lock in &survey.locks {
        let _ = writeln!(text, "{}", format!("{}  {}", lock.name, state(lock)).trim_end());
        for place in &lock.places {
            let verb = if place.holds { "held" } else { "waited for" };
            let _ = writeln!(
                text,
                "  {verb} ({}) by {}, {}, token {}",
                place.mode,
                who(place),
                ago(place.since),
                place.token
            );
        }
    }
    if survey.locks.is_empty() {
        text += "nobody has or waits for a lock\n";
    }
    for cycle in &survey.cycles {
        let _ = writeln!(text, "\nDEADLOCK: {} threads wait for each other", cycle.len());
        for edge in cycle {
            if edge.command {
                let (waiter, inner) = (thread(&edge.waiter), thread(&edge.holder));
                let _ = writeln!(
                    text,
                    "  {waiter} has {} until its command ends, in which {inner} runs: {}",
                    edge.lock, edge.place
                );
                continue;
            }
            let kind = if edge.local { "the local lock" } else { "the lock" };
            let _ = writeln!(
                text,
                "  {} waits for {kind} {} of {}{}",
                thread(&edge.waiter),
                edge.lock,
                thread(&edge.holder),
                if edge.place.is_empty() { String::new() } else { format!(", at {}", edge.place) },
            );
        }
    }
    text
}
