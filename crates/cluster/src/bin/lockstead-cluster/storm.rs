//! `storm` and `bench`: faults while clients use a lock, and what locks cost.

mod bench;
mod judge;
mod worker;

pub(crate) use bench::{BenchFlags, bench};

use clap::Args;
use judge::Judge;
use lockstead_cluster::member::Members;
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::{BRIEF, Interrupt};
use lockstead_render::output;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use worker::Worker;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster storm --seconds 60
  lockstead cluster storm --seed 7 --seconds 300 --clients 16 --members 3

The same seed gives the same order of faults; what meets what depends on the machine. Clients are
processes of this program. Exit status 1 if anything that must hold did not.")]
pub(crate) struct StormFlags {
    /// Seed of the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds during which faults happen
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = lockstead_render::values::seconds)]
    seconds: Duration,
    /// Number of members of etcd
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=7))]
    members: u8,
    /// Clients, each a process
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=512))]
    clients: u16,
    /// Seconds of a lease
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(3..=60))]
    ttl: u64,
    /// Milliseconds between two faults
    #[arg(long, value_name = "MS", default_value_t = 400)]
    every: u64,
    /// Be a client (used by the command itself)
    #[arg(long, hide = true)]
    worker: Option<String>,
}

/// What the storm does next; by chance, but in the same order for the same seed.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillMember,
    KillLeader,
    StopMember,
    StopLeader,
    StopClient { seconds: u64 },
    KillClient,
}

fn next_fault(rng: &mut fastrand::Rng, ttl: u64) -> Fault {
    match rng.u32(..100) {
        0..3 => Fault::KillMember,
        3..6 => Fault::KillLeader,
        6..9 => Fault::StopMember,
        9..12 => Fault::StopLeader,
        12..55 => Fault::StopClient { seconds: rng.u64(1..=2 * ttl) },
        _ => Fault::KillClient,
    }
}

pub(crate) fn run(flags: &StormFlags) -> Result<(), Failure> {
    if let Some(endpoints) = &flags.worker {
        return worker::work(endpoints, flags.ttl);
    }
    let interrupt = Interrupt::install(BRIEF)?;
    let mut members = Members::start(usize::from(flags.members))
        .map_err(|error| Failure::Run(error.to_string()))?;
    let mut rng = fastrand::Rng::with_seed(flags.seed);
    let judge = Judge::default();
    let start = |_| Worker::start(&members.endpoints(), flags.ttl, &judge);
    let mut workers: Vec<Worker> = (0..flags.clients).map(start).collect::<Result<_, Failure>>()?;
    let endpoints = members.endpoints();
    // Faults that end by themselves: when, and what goes on.
    let mut due: Vec<(Instant, Due)> = Vec::new();
    let mut faults = 0_u64;
    let end = Instant::now() + flags.seconds;
    let mut told = Instant::now();
    while Instant::now() < end && !interrupt.flag().load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(flags.every));
        heal(&mut due, &mut members, &mut workers, false)?;
        // One member at a time: of three, the majority stays.
        let whole = due.iter().all(|(_, due)| matches!(due, Due::Client(_)));
        let fault = next_fault(&mut rng, flags.ttl);
        let which = rng.usize(..members.number());
        let client = rng.usize(..workers.len());
        let back = Instant::now() + Duration::from_millis(rng.u64(500..4_000));
        faults += 1;
        match fault {
            Fault::KillMember if whole => {
                members.kill(which);
                due.push((back, Due::Start(which)));
            }
            Fault::KillLeader if whole => {
                let leader = members.leader().unwrap_or(which);
                members.kill(leader);
                due.push((back, Due::Start(leader)));
            }
            Fault::StopMember if whole => {
                members.stop(which, true);
                due.push((back, Due::Continue(which)));
            }
            Fault::StopLeader if whole => {
                let leader = members.leader().unwrap_or(which);
                members.stop(leader, true);
                due.push((back, Due::Continue(leader)));
            }
            Fault::StopClient { seconds } => {
                workers[client].stop(true);
                due.push((Instant::now() + Duration::from_secs(seconds), Due::Client(client)));
            }
            Fault::KillClient => {
                workers[client] = Worker::start(&endpoints, flags.ttl, &judge)?;
            }
            _ => faults -= 1,
        }
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            let left = end.saturating_duration_since(told).as_secs();
            output::note(format_args!("{left} s left: {}", judge.summary()));
        }
    }
    heal(&mut due, &mut members, &mut workers, true)?;
    members.wait(Duration::from_secs(30)).map_err(crate::common::failed)?;
    let served = settle(&judge, &mut workers, flags.ttl);
    drop(workers);
    let left = left_behind(&members, flags.ttl)?;
    judge.report(flags.seed, faults, served, &left)
}

enum Due {
    Start(usize),
    Continue(usize),
    Client(usize),
}

/// Ends the faults whose time has come, or all.
fn heal(
    due: &mut Vec<(Instant, Due)>,
    members: &mut Members,
    workers: &mut [Worker],
    all: bool,
) -> Result<(), Failure> {
    let now = Instant::now();
    let (over, left): (Vec<_>, Vec<_>) =
        std::mem::take(due).into_iter().partition(|(at, _)| all || *at <= now);
    *due = left;
    for (_, what) in over {
        match what {
            Due::Start(member) => members
                .start_member(member)
                .map_err(|error| Failure::Run(format!("cannot start a member again: {error}")))?,
            Due::Continue(member) => members.stop(member, false),
            Due::Client(client) => workers[client].stop(false),
        }
    }
    Ok(())
}

/// Waits until each client that is left has had the lock once more; says how many have.
fn settle(judge: &Judge, workers: &mut [Worker], ttl: u64) -> (usize, usize) {
    let until = Instant::now() + Duration::from_secs(10 * ttl);
    let before: Vec<u64> = workers.iter().map(|worker| judge.turns(worker.pid())).collect();
    loop {
        let served = workers.iter().zip(&before);
        let served = served.filter(|(worker, before)| judge.turns(worker.pid()) > **before).count();
        if served == workers.len() || Instant::now() > until {
            return (served, workers.len());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the keys that are there after all sessions have ended.
fn left_behind(members: &Members, ttl: u64) -> Result<Vec<String>, Failure> {
    let survey = lockstead_cluster::survey::Surveyor::new(members.options(), "lockstead");
    let survey = survey.map_err(crate::common::failed)?;
    let until = Instant::now() + Duration::from_secs(3 * ttl + 10);
    loop {
        let found = survey.look().map_err(crate::common::failed)?;
        let places = found.locks.iter().flat_map(|lock| &lock.places);
        let left: Vec<String> =
            places.map(|place| format!("a place of process {}", place.thread.pid)).collect();
        if left.is_empty() || Instant::now() > until {
            return Ok(left);
        }
        thread::sleep(Duration::from_millis(200));
    }
}
