//! `lockstead cluster demo`: a member of etcd is started, and one thing after another shown on it.

use crate::common::failed;
use clap::Args;
use lockstead_cluster::member::Members;
use lockstead_cluster::survey::Surveyor;
use lockstead_cluster::{ClusterError, Locked, Mutex, Session, SessionOptions};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster demo

Needs the program etcd in PATH (Debian and Ubuntu: apt-get install etcd-server), listens on the
loopback interface alone, and leaves nothing behind.")]
pub(crate) struct DemoFlags {}

fn print(text: impl std::fmt::Display) -> Result<(), Failure> {
    output::print(&format!("{text}\n"))
}

pub(crate) fn run(_: &DemoFlags) -> Result<(), Failure> {
    let started = Instant::now();
    let members = Members::start(1).map_err(|error| Failure::Run(error.to_string()))?;
    print(format_args!(
        "One member of etcd at {}, after {:.1?}.",
        members.endpoints(),
        started.elapsed()
    ))?;
    let session = |ttl| {
        let client = members.options();
        let ttl = Duration::from_secs(ttl);
        let margin = Duration::from_millis(500);
        Session::open(SessionOptions { client, ttl, margin, ..SessionOptions::default() })
            .map_err(failed)
    };
    let (one, two) = (session(3)?, session(3)?);

    let mutex = Mutex::new(&one, "demo");
    let guard = taken(mutex.lock())?;
    print(format_args!(
        "\n1. A session takes the lock: token {}, certain for {:.1?}, renewed until it is released.",
        guard.token(),
        guard.safe_for()
    ))?;
    let before = one.traffic();
    guard.unlock().map_err(failed)?;
    taken(mutex.lock())?.unlock().map_err(failed)?;
    let after = one.traffic();
    let pair = after.requests - before.requests - 1;
    print(format_args!("   An uncontended pair costs {pair} requests."))?;

    print("\n2. Two threads take two locks in opposite orders, each in a session of its own.")?;
    let surveyor = Surveyor::new(members.options(), "lockstead").map_err(failed)?;
    let both_hold = &Barrier::new(2);
    let deadlock = thread::scope(|scope| {
        let cross = move |session: &Session, first: &'static str, second: &'static str| {
            let held = Mutex::new(session, first).lock();
            both_hold.wait();
            let got = Mutex::new(session, second).lock_timeout(Duration::from_secs(10));
            drop(held);
            got.map(|_| ())
        };
        let (one, two) = (one.clone(), two.clone());
        scope.spawn(move || cross(&one, "demo/a", "demo/b"));
        scope.spawn(move || cross(&two, "demo/b", "demo/a"));
        let until = Instant::now() + Duration::from_secs(8);
        loop {
            let survey = surveyor.look()?;
            if !survey.cycles.is_empty() {
                // Whose session ends is up to an administrator; here the first lock's holder.
                surveyor.release_by_force("demo/a")?;
                return Ok(Some(survey));
            }
            if Instant::now() > until {
                return Ok(None);
            }
        }
    });
    match deadlock.map_err(failed)? {
        Some(survey) => {
            for edge in &survey.cycles[0] {
                print(format_args!(
                    "   thread {} holds what thread {} waits for: {}",
                    edge.holder.tid, edge.waiter.tid, edge.lock
                ))?;
            }
            print("   `lockstead cluster dump` shows that; one of them was released by force.")?;
        }
        None => {
            return Err(Failure::Run("two threads that wait for each other were not seen".into()));
        }
    }

    print("\n3. A holder's lease ends without a release; the next one is told.")?;
    let dead = session(2)?;
    let held = taken(Mutex::new(&dead, "demo").lock())?;
    dead.close().map_err(failed)?;
    let next = session(3)?;
    let before = Instant::now();
    match Mutex::new(&next, "demo").lock().map_err(failed)? {
        Locked::OwnerDied(inconsistent) => {
            print(format_args!(
                "   OwnerDied, after {:.1?}; it repairs, and goes on.",
                before.elapsed()
            ))?;
            inconsistent.mark_consistent().map_err(failed)?.unlock().map_err(failed)?;
        }
        other => return Err(Failure::Run(format!("nobody was told: {other:?}"))),
    }
    match held.check() {
        Err(error) => print(format_args!("   The old guard says: {error}."))?,
        Ok(_) => return Err(Failure::Run("the old guard does not know of its loss".into())),
    }
    match held.txn().put("demo/data", "old").commit() {
        Err(ClusterError::Lost(_) | ClusterError::Removed) => {
            print("   Its transaction is refused by etcd.")?;
        }
        other => return Err(Failure::Run(format!("an old owner's write: {other:?}"))),
    }
    print("\ndocs/cluster.md says what holds when, and what does not.")
}

fn taken(
    locked: Result<Locked<lockstead_cluster::MutexGuard>, ClusterError>,
) -> Result<lockstead_cluster::MutexGuard, Failure> {
    locked.and_then(|locked| locked.recover(|_| ())).map_err(failed)
}
