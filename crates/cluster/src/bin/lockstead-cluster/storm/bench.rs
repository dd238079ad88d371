//! `bench`: requests and times of an uncontended pair, and of a lock that clients hand over.

use crate::common::failed;
use clap::Args;
use lockstead_cluster::member::Members;
use lockstead_cluster::{ClientOptions, Mutex, Session, SessionOptions};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use lockstead_render::table::{TextTable, time};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster bench
  lockstead cluster bench --members 3 --clients 1,16,64,256 --json

Members are started for it, unless --endpoints names some.")]
pub(crate) struct BenchFlags {
    /// Members of etcd that are started
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=7))]
    members: u8,
    /// Use these members in place of new ones
    #[arg(long, value_name = "URL,…")]
    endpoints: Option<String>,
    /// Clients that hand the lock over, each a session of its own
    #[arg(long, value_name = "N,…", default_value = "1,4,16,64,256", value_delimiter = ',')]
    clients: Vec<usize>,
    /// Turns of each measurement, at least one of each client
    #[arg(long, default_value = "200")]
    turns: NonZeroUsize,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    clients: usize,
    turns: usize,
    /// Requests and watches for each turn: an acquisition and its release.
    requests_per_turn: f64,
    watches_per_turn: f64,
    /// The time from one owner to the next.
    median_ns: f64,
    p99_ns: f64,
    worst_ns: f64,
}

pub(crate) fn bench(flags: &BenchFlags) -> Result<(), Failure> {
    let members = match flags.endpoints {
        Some(_) => None,
        None => Some(
            Members::start(usize::from(flags.members))
                .map_err(|error| Failure::Run(error.to_string()))?,
        ),
    };
    let client = match (&flags.endpoints, &members) {
        (Some(endpoints), _) => ClientOptions::of(endpoints).map_err(failed)?,
        (None, Some(members)) => members.options(),
        (None, None) => return Err(Failure::Run("no members".into())),
    };
    let mut rows = Vec::new();
    for clients in &flags.clients {
        if *clients == 0 || *clients > 1024 {
            return Err(Failure::option("--clients <N,…>", clients, "allowed: 1 to 1024"));
        }
        rows.push(
            measure(&client, *clients, flags.turns.get().div_ceil(*clients)).map_err(failed)?,
        );
        output::note(format_args!("{clients} clients: measured"));
    }
    if flags.json {
        return output::print_json(&rows);
    }
    let mut table = TextTable::new(&[
        "clients",
        "turns",
        "requests/turn",
        "watches/turn",
        "median",
        "p99",
        "longest",
    ]);
    for row in &rows {
        table.row([
            row.clients.to_string(),
            row.turns.to_string(),
            format!("{:.2}", row.requests_per_turn),
            format!("{:.2}", row.watches_per_turn),
            time(row.median_ns),
            time(row.p99_ns),
            time(row.worst_ns),
        ]);
    }
    output::print(&table.render())
}

fn measure(
    client: &ClientOptions,
    clients: usize,
    each: usize,
) -> Result<Row, lockstead_cluster::ClusterError> {
    let open = |_| {
        let client = client.clone();
        let ttl = Duration::from_secs(30);
        Session::open(SessionOptions { client, ttl, ..SessionOptions::default() })
    };
    let sessions: Vec<Session> = (0..clients).map(open).collect::<Result<_, _>>()?;
    let sum = |sessions: &[Session]| {
        sessions.iter().map(Session::traffic).fold((0, 0), |(requests, watches), traffic| {
            (requests + traffic.requests, watches + traffic.watches)
        })
    };
    let before = sum(&sessions);
    let ready = Barrier::new(clients);
    let began: Vec<Instant> = thread::scope(|scope| {
        let all: Vec<_> = sessions
            .iter()
            .map(|session| {
                let ready = &ready;
                scope.spawn(move || {
                    let mutex = Mutex::new(session, "bench");
                    ready.wait();
                    let mut owned = Vec::new();
                    for _ in 0..each {
                        let guard = mutex.lock()?.recover(|_| ())?;
                        owned.push(Instant::now());
                        guard.unlock()?;
                    }
                    Ok(owned)
                })
            })
            .collect();
        let all = all.into_iter().map(|thread| thread.join().expect("a client ends"));
        all.collect::<Result<Vec<_>, lockstead_cluster::ClusterError>>()
    })?
    .concat();
    let after = sum(&sessions);
    let turns = clients * each;
    let mut began = began;
    began.sort();
    let mut gaps: Vec<Duration> = began.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort();
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let per_turn = |number: u64| number as f64 / turns as f64;
    #[expect(clippy::cast_precision_loss, reason = "times of some seconds")]
    let ns = |gap: Option<&Duration>| gap.map_or(0.0, |gap| gap.as_nanos() as f64);
    Ok(Row {
        clients,
        turns,
        requests_per_turn: per_turn(after.0 - before.0),
        watches_per_turn: per_turn(after.1 - before.1),
        median_ns: ns(gaps.get(gaps.len() / 2)),
        p99_ns: ns(gaps.get(gaps.len() * 99 / 100)),
        worst_ns: ns(gaps.last()),
    })
}
