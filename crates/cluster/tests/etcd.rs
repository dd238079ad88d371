//! The locks against a real etcd of one member, which the tests share. Where etcd is not installed they
//! are skipped and say so.

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{
    CancelToken, ClientOptions, ClusterError, Election, Health, Locked, LostBy, Moment, Mutex,
    Patience, RwLock, Semaphore, Session, SessionOptions,
};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The bound of everything that could hang.
const BOUND: Duration = Duration::from_secs(30);

/// Starts etcd, or says that there is none.
fn members() -> Option<Members> {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return None;
    }
    Some(Members::start(1).expect("etcd starts"))
}

fn session(members: &Members) -> Session {
    session_of(members, 5)
}

fn session_of(members: &Members, ttl: u64) -> Session {
    session_by(members.options(), ttl)
}

fn session_by(client: ClientOptions, ttl: u64) -> Session {
    let ttl = Duration::from_secs(ttl);
    let margin = Duration::from_millis(500);
    let options = SessionOptions { client, ttl, margin, ..SessionOptions::default() };
    Session::open(options).expect("a session")
}

/// Returns the guard of a lock that nobody has left in disorder.
macro_rules! acquired {
    ($locked:expr) => {
        $locked.expect("acquired").acquired().expect("nobody died")
    };
}

#[test]
fn a_mutex_excludes_in_order_and_costs_two_requests() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    let (first, second) = (Mutex::new(&one, "a/b"), Mutex::new(&two, "a/b"));

    let before = one.traffic();
    let guard = acquired!(first.lock());
    let token = guard.token();
    guard.check().expect("held");
    assert!(guard.safe_for() > Duration::from_secs(2), "{:?}", guard.safe_for());
    assert_eq!(second.try_lock().err(), Some(ClusterError::Held));
    guard.unlock().expect("released");
    let after = one.traffic();
    assert_eq!(after.requests - before.requests, 2, "an uncontended pair");

    let guard = acquired!(first.lock());
    assert!(guard.token() > token);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let guard = acquired!(second.lock_timeout(BOUND));
            guard.confirm().expect("held");
            guard.token()
        });
        let token = guard.token();
        // Once it has its place, a release makes it the owner.
        while two.traffic().watches == 0 {
            thread::yield_now();
        }
        guard.unlock().expect("released");
        assert!(waiter.join().expect("the waiter") > token);
    });
}

#[test]
fn waits_end_by_time_and_by_a_token() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    let (first, second) = (Mutex::new(&one, "m"), Mutex::new(&two, "m"));
    let guard = acquired!(first.lock());
    let timed = second.lock_timeout(Duration::from_millis(20));
    assert_eq!(timed.err(), Some(ClusterError::TimedOut));
    let stop = CancelToken::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| second.lock_killable(&stop).err());
        stop.cancel();
        assert_eq!(waiter.join().expect("the waiter"), Some(ClusterError::Cancelled));
    });
    guard.unlock().expect("released");
    // Those that gave up have left no place.
    acquired!(second.try_lock()).unlock().expect("released");
}

/// Has SIGUSR1 call a function that does nothing, so that it interrupts what sleeps.
fn handle_a_signal() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeroes are a `sigaction` without flags, SA_RESTART among them, and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, which may be done at any moment; the old action is not asked for.
    let failed = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(failed, 0);
}

/// Says who this thread is, then does its work.
fn named<T>(name: &mpsc::Sender<libc::pid_t>, work: impl FnOnce() -> T) -> T {
    // SAFETY: the call takes nothing and returns a number alone.
    name.send(unsafe { libc::gettid() }).expect("somebody asks");
    work()
}

/// Signals a thread of this process; one that has ended is signalled in vain.
fn signal(thread: libc::pid_t) {
    let process = libc::pid_t::try_from(std::process::id()).expect("a number of a process");
    // SAFETY: the call takes numbers alone, and reaches threads of this process, which handles the signal.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
}

#[test]
fn a_wait_ends_by_a_signal_if_it_was_asked_for_so() {
    let Some(members) = members() else { return };
    handle_a_signal();
    let (one, two) = (session(&members), session(&members));
    let (first, second) = (Mutex::new(&one, "m"), Mutex::new(&two, "m"));
    let guard = acquired!(first.lock());
    let readers = RwLock::new(&two, "m");
    thread::scope(|scope| {
        let (name, names) = mpsc::channel();
        let other = name.clone();
        let (second, readers) = (&second, &readers);
        let mutex = scope.spawn(move || named(&name, || second.lock_interruptible().err()));
        let reads = scope.spawn(move || named(&other, || readers.read_interruptible().err()));
        let names: Vec<_> = names.iter().take(2).collect();
        let deadline = Instant::now() + BOUND;
        // One signal may come before a thread sleeps, or between two sleeps: again, until both have ended.
        while !(mutex.is_finished() && reads.is_finished()) {
            assert!(Instant::now() < deadline, "no signal has ended the wait");
            names.iter().copied().for_each(signal);
            thread::yield_now();
        }
        assert_eq!(mutex.join().expect("a waiter"), Some(ClusterError::Interrupted));
        assert_eq!(reads.join().expect("a waiter"), Some(ClusterError::Interrupted));
    });
    // A signal is no end for whoever has not asked for that, and no place is left behind.
    thread::scope(|scope| {
        let before = two.traffic().watches;
        let (name, names) = mpsc::channel();
        let second = &second;
        let waiter = scope.spawn(move || named(&name, || second.lock_timeout(BOUND)));
        while two.traffic().watches == before {
            thread::yield_now();
        }
        let name = names.recv().expect("its name");
        (0..20).for_each(|_| signal(name));
        guard.unlock().expect("released");
        acquired!(waiter.join().expect("a waiter")).unlock().expect("released");
    });
}

#[test]
fn a_dead_owners_successor_is_told_until_it_calls_things_consistent() {
    let Some(members) = members() else { return };
    let dead = session(&members);
    let guard = acquired!(Mutex::new(&dead, "m").lock());
    let lost = guard.lost();
    dead.clone().close().expect("closed");
    assert_eq!(lost.wait_timeout(BOUND), Some(LostBy::Closed));
    assert_eq!(guard.check(), Err(ClusterError::Lost(LostBy::Closed)));
    assert!(guard.deadline() < Moment::now(), "no moment to come, as it had before");
    // etcd itself refuses what the old owner still sends.
    let late = guard.txn().put("k", "old").commit();
    assert_eq!(late, Err(ClusterError::Lost(LostBy::Closed)));
    assert_eq!(guard.unlock(), Err(ClusterError::Lost(LostBy::Closed)));

    let next = session(&members);
    let mutex = Mutex::new(&next, "m");
    match mutex.lock().expect("acquired") {
        Locked::OwnerDied(guard) => guard.leave_to_the_next().expect("left"),
        other => panic!("{other:?}"),
    }
    let mut repaired = 0;
    let guard = mutex.try_lock().expect("acquired").recover(|_| repaired += 1);
    guard.expect("consistent").unlock().expect("released");
    assert_eq!(repaired, 1);
    acquired!(mutex.lock()).unlock().expect("released");
}

#[test]
fn what_nobody_repairs_is_not_recoverable() {
    let Some(members) = members() else { return };
    let dead = session(&members);
    let guard = acquired!(Mutex::new(&dead, "m").lock());
    dead.close().expect("closed");
    let next = session(&members);
    let mutex = Mutex::new(&next, "m");
    let Locked::OwnerDied(inconsistent) = mutex.lock().expect("acquired") else {
        panic!("nobody died")
    };
    drop(inconsistent);
    assert!(matches!(mutex.lock(), Ok(Locked::NotRecoverable)));
    assert!(matches!(mutex.try_lock(), Ok(Locked::NotRecoverable)));
    drop(guard);
}

#[test]
fn guarded_transactions_read_and_write_while_the_lock_is_held() {
    let Some(members) = members() else { return };
    let one = session(&members);
    let guard = acquired!(Mutex::new(&one, "m").lock());
    let read = guard.txn().put("data/k", "1").get("data/k").get_prefix("data/").commit();
    let read = read.expect("carried out");
    assert_eq!(read.len(), 2);
    assert_eq!(read[0][0].value, b"1");
    assert_eq!(read[0], read[1]);
    let answer = guard.with_deadline(|deadline| deadline.remaining() > Duration::ZERO);
    assert_eq!(answer, Ok(true));
}

#[test]
fn readers_read_together_and_writers_alone_and_in_turn() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    let (first, second) = (RwLock::new(&one, "rw"), RwLock::new(&two, "rw"));
    let a = first.read().expect("reads");
    let b = second.read().expect("reads");
    assert_eq!(second.try_write().err(), Some(ClusterError::Held));
    thread::scope(|scope| {
        let writer = scope.spawn(|| acquired!(second.write_timeout(BOUND)));
        while two.traffic().watches == 0 {
            thread::yield_now();
        }
        // It waits, and nobody overtakes it.
        assert_eq!(first.try_read().err(), Some(ClusterError::Held));
        drop((a, b));
        let writer = writer.join().expect("the writer");
        assert_eq!(first.try_read().err(), Some(ClusterError::Held));
        writer.unlock().expect("released");
    });
    // A writer's death is told to writers, and readers stay out until then.
    let dead = session(&members);
    let guard = acquired!(RwLock::new(&dead, "rw").write());
    dead.close().expect("closed");
    assert_eq!(first.read().err(), Some(ClusterError::Inconsistent));
    assert_eq!(first.try_read().err(), Some(ClusterError::Inconsistent));
    let repaired = second.write().expect("acquired").recover(|_| ()).expect("consistent");
    repaired.unlock().expect("released");
    first.read().expect("reads").unlock().expect("released");
    drop(guard);
}

#[test]
fn permits_are_counted_in_order_and_come_back_with_the_dead() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    let semaphore = |session| Semaphore::new(session, "s", 3).expect("permits");
    let (first, second) = (semaphore(&one), semaphore(&two));
    let a = first.taking(2).expect("two of three").acquire().expect("two");
    let b = second.acquire().expect("one");
    assert_eq!(second.try_acquire().err(), Some(ClusterError::Held));
    let other = Semaphore::new(&two, "s", 4).expect("permits").acquire();
    assert_eq!(other.err(), Some(ClusterError::Permits { theirs: 3 }));
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| second.acquire_timeout(BOUND).map(|permits| permits.unlock())))
            .collect();
        while two.traffic().watches < 3 {
            thread::yield_now();
        }
        drop(b);
        for waiter in waiters {
            assert_eq!(waiter.join().expect("a waiter"), Ok(Ok(())));
        }
    });
    one.close().expect("closed");
    let all = second.taking(3).expect("all").acquire_timeout(BOUND).expect("the dead one's too");
    drop((a, all));
}

#[test]
fn a_leader_says_who_it_is_and_the_next_one_follows() {
    let Some(members) = members() else { return };
    let (one, two) = (session(&members), session(&members));
    let (first, second) = (Election::new(&one, "e"), Election::new(&two, "e"));
    assert_eq!(second.leader(), Ok(None));
    let mut leadership = acquired!(first.campaign("10.0.0.1"));
    leadership.proclaim("10.0.0.2").expect("proclaimed");
    let leader = second.leader().expect("an answer").expect("a leader");
    assert_eq!((leader.says.as_str(), leader.token), ("10.0.0.2", leadership.token()));
    let late = second.campaign_timeout("x", Duration::from_millis(20));
    assert_eq!(late.err(), Some(ClusterError::TimedOut));
    leadership.unlock().expect("resigned");
    acquired!(second.campaign("x")).unlock().expect("resigned");
}

#[test]
fn without_etcd_a_session_says_so_at_once_and_loses_its_guards_at_the_deadline() {
    let Some(mut members) = members() else { return };
    let one = session_of(&members, 3);
    let guard = acquired!(Mutex::new(&one, "m").lock());
    let (sender, changes) = mpsc::channel();
    one.on_change(move |health: Health| sender.send(health).unwrap_or(()));
    let (told, lost) = mpsc::channel();
    guard.on_lost(move |by| told.send(by).unwrap_or(()));
    members.kill(0);
    let silent = changes.recv_timeout(BOUND).expect("told of the silence");
    assert_eq!(silent.lost, None);
    assert!(silent.unreachable_for.is_some() && silent.safe_for > Duration::ZERO, "{silent:?}");
    assert_eq!(lost.recv_timeout(BOUND), Ok(LostBy::Deadline));
    assert_eq!(guard.check(), Err(ClusterError::Lost(LostBy::Deadline)));
    assert_eq!(guard.with_deadline(|_| ()), Err(ClusterError::Lost(LostBy::Deadline)));
    assert_eq!(guard.safe_for(), Duration::ZERO);
}

#[test]
fn a_wait_that_is_cancelled_says_so_also_where_etcd_does_not_answer() {
    let Some(members) = members() else { return };
    let (first, second) = (session_of(&members, 60), session_of(&members, 60));
    let (held, wanted) = (Mutex::new(&first, "silent"), Mutex::new(&second, "silent"));
    let guard = acquired!(held.lock());
    let stop = CancelToken::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wanted.lock_killable(&stop).err());
        let survey = lockstead_cluster::survey::Surveyor::new(members.options(), "lockstead");
        let survey = survey.expect("a client");
        let until = Instant::now() + BOUND;
        while survey.look().expect("an answer").locks.iter().all(|lock| lock.places.len() < 2) {
            assert!(Instant::now() < until, "it never waited");
        }
        members.stop(0, true);
        stop.cancel();
        // The error of its last request, which nobody answers, is not what ended the wait.
        assert_eq!(waiter.join().expect("a thread"), Some(ClusterError::Cancelled));
        members.stop(0, false);
    });
    // The session's thread gives the place up, once that is possible.
    guard.unlock().expect("released");
    acquired!(held.lock_timeout(BOUND)).unlock().expect("released");
}

#[test]
fn what_ends_an_acquisition_ends_its_request_that_nobody_answers() {
    let Some(members) = members() else { return };
    let patience = 60 * BOUND;
    let session = session_by(ClientOptions { patience, ..members.options() }, 600);
    let (mutex, stop) = (Mutex::new(&session, "silent"), CancelToken::new());
    members.stop(0, true);
    let (sender, ends) = mpsc::channel();
    thread::scope(|scope| {
        let waits = ["cancel", "while", "until"];
        for name in waits {
            let (sender, mutex, stop) = (sender.clone(), &mutex, &stop);
            scope.spawn(move || {
                let goes_on = || !stop.is_cancelled();
                let patience = match name {
                    "cancel" => Patience::Cancel(stop),
                    "while" => Patience::While { until: None, goes_on: &goes_on },
                    _ => Patience::Until(Instant::now()),
                };
                sender.send((name, mutex.lock_as(patience, "").err()))
            });
        }
        stop.cancel();
        let ended = waits.map(|_| ends.recv_timeout(BOUND));
        members.stop(0, false);
        for end in ended {
            let (name, error) = end.expect("an end before the request's");
            match name {
                "until" => assert!(matches!(error, Some(ClusterError::Unreachable { .. }))),
                _ => assert_eq!(error, Some(ClusterError::Cancelled), "{name}"),
            }
        }
    });
    // What may have arrived of them is given up.
    acquired!(mutex.lock_timeout(BOUND)).unlock().expect("released");
}
