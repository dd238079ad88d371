//! `storm` and `bench`: faults while clients use locks, and what locks cost.

mod bench;
mod judge;
mod network;
mod plan;
mod relay;
mod report;
mod request;
mod worker;
mod world;

pub(crate) use bench::{BenchFlags, bench};

use clap::Args;
use judge::Judge;
use lockstead_cluster::member::Members;
use lockstead_cluster::{Mutex, Session, SessionOptions};
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::{BRIEF, Interrupt};
use lockstead_render::output;
use network::Network;
use plan::Plan;
use report::Report;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use worker::Broken;
use world::{Client, Lock, World};

/// The pause between two looks at what is due.
const TICK: Duration = Duration::from_millis(20);

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster storm --seconds 60
  lockstead cluster storm --seed 7 --seconds 240 --locks 8 --clients 32 --namespaces --clocks

Faults wait for their moment: a client is stopped, killed or cut off, or its request lost, late or
repeated, or a member hurt, while that client holds the lock, is about to write, gives it back,
claims it or asks for it. The same seed gives each lock the same faults in the same order. Clients
and members are processes on addresses of this machine alone. Exit status 1 if anything that must
hold did not.")]
pub(crate) struct StormFlags {
    /// Seed of the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds during which faults happen
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = lockstead_render::values::seconds)]
    seconds: Duration,
    /// End before, once the locks have changed hands so often
    #[arg(long, value_name = "NUMBER")]
    changes: Option<u64>,
    /// Number of members of etcd
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=7))]
    members: u8,
    /// Clients, each a process
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=512))]
    clients: u16,
    /// Locks among which the clients are divided, so that one waits for a lease while others go on
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    locks: u16,
    /// Seconds of a lease
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(3..=60))]
    ttl: u64,
    /// Turns of a lock between two faults at it, as a mean
    #[arg(long, value_name = "TURNS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    every: u64,
    /// Put each member and client into a network namespace, and cut links between them; where tc and
    /// iptables are there, links are slow at times and lose packets by chance, too; needs the program ip,
    /// and root or user namespaces
    #[arg(long)]
    namespaces: bool,
    /// Give each client a boot-time clock of its own, ahead by days; needs root, or --namespaces
    #[arg(long)]
    clocks: bool,
    /// Break a part of the evidence, so that the storm has to find it: a register that accepts every
    /// token, or owners that do not look at their deadline
    #[arg(long, value_name = "PART", value_enum)]
    broken: Option<Broken>,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    json: bool,
    /// Be a client (used by the command itself)
    #[arg(long, hide = true)]
    worker: Option<String>,
    /// The lock of that client
    #[arg(long, hide = true, default_value = "storm/0")]
    lock: String,
}

fn failed(what: &str, error: impl Display) -> Failure {
    Failure::Run(format!("{what}: {error}"))
}

pub(crate) fn run(flags: &StormFlags) -> Result<(), Failure> {
    if let Some(endpoints) = &flags.worker {
        return worker::work(endpoints, flags.ttl, &flags.lock, flags.broken);
    }
    let number = usize::from(flags.members);
    let clients = usize::from(flags.clients);
    // First of all, while there is one thread.
    let network = match flags.namespaces {
        true => Some(Network::new(number, clients).map_err(|error| {
            Failure::Run(format!(
                "cannot make network namespaces ({error}); --namespaces needs the program ip (Debian: \
                 iproute2), and root or a system that permits user namespaces"
            ))
        })?),
        false => None,
    };
    let interrupt = Interrupt::install(BRIEF)?;
    let (network, members) = match network {
        Some((network, sites)) => (Some(network), Members::start_at(sites, &[], false)),
        None => (None, Members::start(number)),
    };
    let members = members.map_err(|error| Failure::Run(error.to_string()))?;
    members.wait(Duration::from_secs(30)).map_err(crate::common::failed)?;
    let slow = network.as_ref().map(|network| network.can_be_slow);
    let world = Arc::new(World::new(
        members,
        network,
        (0..clients).map(|client| of(flags, client)).collect(),
        (0..u64::from(flags.locks)).map(|lock| lock_of(flags, lock)).collect(),
        flags.ttl,
        flags.broken,
    ));
    let began = Instant::now();
    let why = if flags.clocks {
        "cannot start a client with a clock of its own; --clocks needs time namespaces (Linux 5.6), and root \
         or, with --namespaces, a system that permits user namespaces"
    } else {
        "cannot start a client"
    };
    world.start().map_err(|error| failed(why, error))?;
    let looks = Arc::clone(&world);
    thread::spawn(move || looks.look_for_leaders());
    let cannot_heal = |error: io::Error| failed("cannot start again what a fault has ended", error);
    let (mut told, mut looked) = (began, began);
    let enough = |world: &World| match flags.broken {
        // One finding is enough to know that it is found.
        Some(_) => !world.found(true).wrong.is_empty(),
        None => flags.changes.is_some_and(|n| world.found(false).owners >= n),
    };
    while began.elapsed() < flags.seconds && !interrupt.flag().load(Ordering::Relaxed) {
        thread::sleep(TICK);
        world.heal(false).map_err(cannot_heal)?;
        if let Some(client) = world.without_clock() {
            return Err(Failure::Run(format!(
                "client {client} runs by the machine's boot-time clock, and not by the one {} days ahead \
                 that it was started with: no time namespace was made for it, so --clocks would be no \
                 evidence; run without --clocks",
                world.clients[client].days_ahead()
            )));
        }
        if looked.elapsed() > Duration::from_millis(300) {
            looked = Instant::now();
            if enough(&world) {
                break;
            }
        }
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            let left = flags.seconds.saturating_sub(began.elapsed()).as_secs();
            output::note(format_args!("{left} s left: {}", world.found(false).progress()));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    world.calm().map_err(cannot_heal)?;
    world.members().wait(Duration::from_secs(30)).map_err(crate::common::failed)?;
    let served = settle(&world, flags.ttl);
    world.end();
    let ended = ends(&world, flags.ttl);
    world.kill_clients();
    let left = left_behind(&world.members(), flags.ttl)?;
    let report = Report {
        seed: flags.seed,
        seconds,
        members: number,
        clients,
        locks: usize::from(flags.locks),
        namespaces: flags.namespaces,
        slow_links: slow.unwrap_or(false),
        lossy_links: world.lossy_network().is_some(),
        // What was found is not thrown away for a count.
        packets_lost: world.lossy_network().and_then(|network| network.lost().ok()),
        clocks: flags.clocks,
        served,
        ended,
        left,
        found: world.found(true),
        faults: world.hits(),
    };
    report.print(flags.json)
}

/// Returns a client as it is before its start.
fn of(flags: &StormFlags, client: usize) -> Client {
    let days = u64::try_from(client).unwrap_or(0) * 11 + 1;
    Client::of(
        client % usize::from(flags.locks),
        if flags.clocks { days * 24 * 60 * 60 } else { 0 },
    )
}

fn lock_of(flags: &StormFlags, lock: u64) -> Lock {
    let ttl = Duration::from_secs(flags.ttl);
    let seed = flags.seed.wrapping_mul(1_000).wrapping_add(lock);
    let plan = Plan::new(seed, ttl, flags.every, flags.namespaces);
    Lock::new(Judge::new(flags.broken != Some(Broken::Register)), plan)
}

/// Waits until each client has had its lock once more; returns how many have.
fn settle(world: &World, ttl: u64) -> usize {
    let until = Instant::now() + Duration::from_secs(10 * ttl);
    let before: Vec<u64> = world.clients.iter().map(Client::turns).collect();
    loop {
        let served = world.clients.iter().zip(&before);
        let served = served.filter(|(client, before)| client.turns() > **before).count();
        if served == world.clients.len() || Instant::now() > until {
            return served;
        }
        thread::sleep(TICK);
    }
}

/// Waits until the clients have ended in good order; returns how many have.
fn ends(world: &World, ttl: u64) -> usize {
    let until = Instant::now() + Duration::from_secs(10 * ttl);
    loop {
        let ended = world.clients.iter().filter(|client| client.ended()).count();
        if ended == world.clients.len() || Instant::now() > until {
            return ended;
        }
        thread::sleep(TICK);
    }
}

/// Returns the keys that are there after all sessions have ended.
fn left_behind(members: &Members, ttl: u64) -> Result<Vec<String>, Failure> {
    // In a folder of its own, so that what this looks by is not what it looks for.
    let client = members.options();
    let options = SessionOptions { client, root: "judge".into(), ..SessionOptions::default() };
    let session = Session::open(options).map_err(crate::common::failed)?;
    let locked = Mutex::new(&session, "judge").lock().and_then(|locked| locked.recover(|_| ()));
    let guard = locked.map_err(crate::common::failed)?;
    let until = Instant::now() + Duration::from_secs(3 * ttl + 10);
    loop {
        let found = guard.txn().get_prefix("lockstead/").commit().map_err(crate::common::failed)?;
        let left: Vec<String> = found.concat().into_iter().map(|pair| pair.key).collect();
        if left.is_empty() || Instant::now() > until {
            return Ok(left);
        }
        thread::sleep(Duration::from_millis(200));
    }
}
