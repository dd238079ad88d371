//! Locks in signal handlers that interrupt the same thread's locking.

mod common;

use common::{Counter, Watchdog, gettid, handle, my_slot, signal};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Threads take this one outside of handlers only.
static OUTER: Counter = Counter::new();
/// Handlers alone take this one; a handler is not interrupted by its own signal.
static INNER: Counter = Counter::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);
static HIGHEST: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The slot that the last handler of this thread found itself in.
    static IN_HANDLER: AtomicU32 = const { AtomicU32::new(0) };
}

extern "C" fn lock_inner(_number: libc::c_int) {
    INNER.add();
    IN_HANDLER.with(|slot| slot.store(my_slot(), Relaxed));
    HANDLED.fetch_add(1, Relaxed);
}

/// Handlers interrupt waiting, spinning, joining and leaving.
#[test]
fn handlers_lock_while_their_thread_locks() {
    let _watchdog = Watchdog::new(60);
    handle(libc::SIGUSR1, 0, lock_inner);
    const WORKERS: usize = 4;
    static TIDS: [AtomicI32; WORKERS] = [const { AtomicI32::new(0) }; WORKERS];
    static STOP: AtomicBool = AtomicBool::new(false);
    let adds: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = TIDS
            .iter()
            .map(|tid| {
                scope.spawn(move || {
                    let mut adds = 0;
                    while !STOP.load(Relaxed) {
                        // A short life, so that handlers also come while the
                        // thread joins and while it ends.
                        adds += std::thread::spawn(move || {
                            tid.store(gettid(), Relaxed);
                            OUTER.add();
                            // A handler in the middle of joining must not have
                            // joined a second time.
                            let inside = IN_HANDLER.with(|slot| slot.load(Relaxed));
                            assert!(inside == 0 || inside == my_slot(), "two slots");
                            (1..50).for_each(|_| OUTER.add());
                            HIGHEST.fetch_max(my_slot(), Relaxed);
                            50
                        })
                        .join()
                        .unwrap();
                    }
                    adds
                })
            })
            .collect();
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            for tid in &TIDS {
                match tid.load(Relaxed) {
                    0 => {}
                    tid => signal(tid, libc::SIGUSR1),
                }
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        STOP.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(OUTER.total(), adds);
    // Handlers of threads that have ended have run to their end.
    assert_eq!(INNER.total(), HANDLED.load(Relaxed));
    assert!(HANDLED.load(Relaxed) > 0, "no handler ran");
    let highest = HIGHEST.load(Relaxed);
    assert!(highest < 2048, "slot {highest}: handlers leave slots behind");
}

static SEEN: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

extern "C" fn note_slot(_number: libc::c_int) {
    SEEN[0].store(my_slot(), Relaxed);
}

/// A thread that joins in a handler is the same participant outside.
#[test]
fn a_handler_joins_for_its_thread() {
    let _watchdog = Watchdog::new(60);
    handle(libc::SIGUSR2, 0, note_slot);
    std::thread::spawn(|| {
        signal(gettid(), libc::SIGUSR2);
        SEEN[1].store(my_slot(), Relaxed);
    })
    .join()
    .unwrap();
    let [inside, outside] = SEEN.each_ref().map(|slot| slot.load(Relaxed));
    assert!(inside != 0 && inside == outside, "{inside} in the handler, {outside} outside");
}
