//! A mutex at which a host queues once: few requests, real exclusion, deaths.

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{HostMutex, HostOptions, Mutex, Session, SessionOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn session(members: &Members) -> Session {
    let ttl = Duration::from_secs(5);
    let margin = Duration::from_millis(500);
    let client = members.options();
    Session::open(SessionOptions { client, ttl, margin, ..SessionOptions::default() })
        .expect("a session")
}

#[test]
fn a_thousand_hand_overs_within_a_host_make_few_requests_and_tokens_grow() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let folder = std::env::temp_dir().join(format!("lockstead-host-{}", std::process::id()));
    let options = HostOptions {
        folder: folder.clone(),
        time: Duration::from_secs(3),
        ..HostOptions::default()
    };
    // Two sessions, as of two processes: they share what the host has.
    let (one, two) = (session(&members), session(&members));
    let mutexes = [
        HostMutex::new(&one, "m", options.clone()).expect("opened"),
        HostMutex::new(&two, "m", options).expect("opened"),
    ];
    let before = [one.traffic(), two.traffic()];
    let last = AtomicU64::new(0);
    let turns = AtomicU64::new(0);
    thread::scope(|scope| {
        for mutex in mutexes.iter().cycle().take(6) {
            let (last, turns) = (&last, &turns);
            scope.spawn(move || {
                while turns.load(Ordering::Relaxed) < 1_000 {
                    let locked = mutex.lock(|_| ()).expect("acquired");
                    let token = locked.guard.token();
                    locked.guard.check().expect("held");
                    // Alone with it: a swap sees what the owner before has left.
                    let other = last.swap(token, Ordering::Relaxed);
                    assert!(other < token, "{token} after {other}");
                    turns.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    locked.guard.unlock().expect("released");
                }
            });
        }
    });
    let after = [one.traffic(), two.traffic()];
    let sum = |traffic: [lockstead_cluster::Traffic; 2]| {
        traffic.iter().map(|t| t.requests + t.leases + t.watches).sum::<u64>()
    };
    let requests = sum(after) - sum(before);
    println!("{requests} requests for {} turns", turns.load(Ordering::Relaxed));
    assert!(requests < 50, "{requests} requests");
    // It was given back: another host gets it, and nobody died.
    let other = Mutex::new(&one, "m").lock_timeout(Duration::from_secs(30));
    other.expect("acquired").acquired().expect("nobody died").unlock().expect("released");
    drop(mutexes);
    let _ = std::fs::remove_dir_all(folder);
}
