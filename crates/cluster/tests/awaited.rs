//! Locks that are awaited on tokio. Where etcd is not installed, skipped.

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{ClusterError, LostBy, Mutex, RwLock, Semaphore, Session, SessionOptions};
use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

/// The bound of everything that could hang.
const BOUND: Duration = Duration::from_secs(30);

fn members() -> Option<Members> {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return None;
    }
    Some(Members::start(1).expect("etcd starts"))
}

fn session(members: &Members) -> Session {
    let (client, ttl) = (members.options(), Duration::from_secs(5));
    Session::open(SessionOptions { client, ttl, ..SessionOptions::default() }).expect("a session")
}

/// Runs a future on tokio, for a bounded time.
fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let bounded = async { tokio::time::timeout(BOUND, work).await.expect("it ends") };
    runtime.expect("a runtime").block_on(bounded)
}

#[test]
fn locks_are_awaited_on_one_thread_and_released_so() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    run(async {
        let mutex = Mutex::new(&one, "m");
        let guard = mutex.lock_async().await.expect("acquired").acquired().expect("nobody died");
        let token = guard.token();
        let next = tokio::task::spawn(Mutex::new(&two, "m").lock_async());
        // The other one waits on a thread of its own, so that this one goes on.
        while two.traffic().watches == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!next.is_finished());
        guard.unlock_async().await.expect("released");
        let guard = next.await.expect("a task").expect("acquired").acquired().expect("held");
        assert!(guard.token() > token);
        guard.unlock_async().await.expect("released");

        let lock = RwLock::new(&one, "rw");
        let (a, b) = (lock.read_async().await, lock.read_async().await);
        assert_eq!(lock.try_write().err(), Some(ClusterError::Held));
        a.expect("reads").unlock_async().await.expect("released");
        b.expect("reads").unlock_async().await.expect("released");
        let writer = lock.write_async().await.expect("acquired").acquired().expect("held");
        writer.unlock_async().await.expect("released");
        let permits = Semaphore::new(&one, "s", 1).expect("permits").acquire_async().await;
        permits.expect("one").unlock_async().await.expect("released");
    });
}

#[test]
fn a_future_that_is_dropped_leaves_no_place_behind() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    run(async {
        let held = Mutex::new(&one, "m").lock_async().await.expect("acquired");
        let waits = Mutex::new(&two, "m").lock_async();
        let given_up = tokio::time::timeout(Duration::from_millis(50), waits).await;
        assert!(given_up.is_err());
        drop(held);
    });
    let survey = lockstead_cluster::survey::Surveyor::new(members.options(), "lockstead");
    let survey = survey.expect("a client");
    let until = Instant::now() + BOUND;
    while survey.look().expect("an answer").locks.iter().any(|lock| !lock.places.is_empty()) {
        assert!(Instant::now() < until, "a place is left behind");
        thread::yield_now();
    }
}

#[test]
fn the_loss_of_a_lock_is_awaited() {
    let Some(members) = members() else { return };
    let one = session(&members);
    run(async {
        let guard = Mutex::new(&one, "m").lock_async().await.expect("acquired");
        let guard = guard.acquired().expect("held");
        let lost = tokio::task::spawn(guard.lost());
        tokio::task::yield_now().await;
        one.clone().close().expect("closed");
        assert_eq!(lost.await.expect("a task"), LostBy::Closed);
        assert_eq!(guard.check(), Err(ClusterError::Lost(LostBy::Closed)));
    });
}
