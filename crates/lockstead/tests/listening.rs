//! What locks tell whoever listens: this program has the table that the library of `lockstead run`
//! would have.

use lockstead::{Condvar, NamedMutex, RwLock, Semaphore};
use lockstead_linux::told::{CHECKS, Listener, ToldLock, ending, flag, kind, way};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// An event: which function was called, for what kind of lock, with which flags, in which way or
/// with which ending.
type Told = (&'static str, u32, u32, u32);

static EVENTS: Mutex<Vec<Told>> = Mutex::new(Vec::new());
static BEGUN: AtomicU32 = AtomicU32::new(0);

fn add(what: &'static str, lock: &ToldLock, how: u32) {
    EVENTS.lock().expect("whole").push((what, lock.kind, lock.flags, how));
}

unsafe extern "C" fn begins(
    lock: &ToldLock,
    how: u32,
    deadline: u64,
    companion: u64,
    frame: usize,
) -> u32 {
    assert_eq!(companion, 0);
    // It lies above what is deeper on the stack, as this is.
    assert!(frame > (&raw const companion).addr());
    add(if deadline == 0 { "begins" } else { "begins, timed" }, lock, how);
    BEGUN.fetch_add(1, Ordering::Release);
    1
}

unsafe extern "C" fn ends(lock: &ToldLock, _way: u32, ended: u32) {
    add("ends", lock, ended);
}

unsafe extern "C" fn acquired(lock: &ToldLock, how: u32) {
    add("acquired", lock, how);
}

unsafe extern "C" fn releases(lock: &ToldLock) {
    add("releases", lock, 0);
}

unsafe extern "C" fn dies(_address: u64) {}

macro_rules! any {
    ($function:expr, $kind:ty) => {
        core::mem::transmute::<$kind, unsafe extern "C" fn()>($function)
    };
}

/// The table by the name under which locks look for it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is C's")]
// SAFETY: the functions are of the kinds that the table has, in their order.
pub static lockstead_listener_1: Listener = unsafe {
    Listener::of(
        CHECKS,
        [
            any!(begins, unsafe extern "C" fn(&ToldLock, u32, u64, u64, usize) -> u32),
            any!(ends, unsafe extern "C" fn(&ToldLock, u32, u32)),
            any!(acquired, unsafe extern "C" fn(&ToldLock, u32)),
            any!(releases, unsafe extern "C" fn(&ToldLock)),
            any!(dies, unsafe extern "C" fn(u64)),
        ],
    )
};

/// Returns what was told meanwhile of waits, and of acquisitions and releases.
fn told(work: impl FnOnce()) -> (Vec<Told>, Vec<Told>) {
    EVENTS.lock().expect("whole").clear();
    work();
    let is_wait = |told: &Told| told.0.starts_with("begins") || told.0 == "ends";
    EVENTS.lock().expect("whole").iter().copied().partition(is_wait)
}

/// Does `hold` until another thread, which does `wait`, has begun to wait.
fn contend<G>(hold: impl FnOnce() -> G, wait: impl FnOnce() + Send) {
    let begun = BEGUN.load(Ordering::Acquire);
    let held = hold();
    thread::scope(|scope| {
        scope.spawn(wait);
        while BEGUN.load(Ordering::Acquire) == begun {
            thread::yield_now();
        }
        drop(held);
    });
}

static NAMED: NamedMutex<u32> = NamedMutex::named("named", 0);
static ROUTES: RwLock<u32> = RwLock::new(0);
static PERMITS: Semaphore = Semaphore::new(0);
static COME: Condvar = Condvar::new();
/// What a reader-writer lock of lockstead's is.
const RW: u32 = flag::SLOT | flag::WRITERS_FIRST;

/// One test, for what is told is told to the whole program.
#[test]
fn each_wait_is_told_once_with_its_end() {
    let (mutex, rwlock) = (kind::MUTEX, kind::RWLOCK);
    let (waits, others) = told(|| contend(|| NAMED.lock(), || drop(NAMED.lock())));
    let granted = ("ends", mutex, flag::SLOT, ending::GRANTED);
    assert_eq!(waits, [("begins", mutex, flag::SLOT, way::ALONE), granted]);
    followed(&others, mutex, flag::SLOT, 2);

    let (waits, _) = told(|| contend(|| ROUTES.read(), || drop(ROUTES.write())));
    assert_eq!(waits, [("begins", rwlock, RW, way::ALONE), ("ends", rwlock, RW, ending::GRANTED)]);
    let (waits, others) = told(|| contend(|| ROUTES.write(), || drop(ROUTES.read())));
    assert_eq!(waits, [("begins", rwlock, RW, way::READ), ("ends", rwlock, RW, ending::GRANTED)]);
    followed(&others, rwlock, RW, 2);

    // Nothing is told of what needs no wait, but where it is checked.
    let (waits, others) = told(|| drop((NAMED.lock(), ROUTES.read(), ROUTES.try_read())));
    assert_eq!(waits, []);
    assert_eq!(others.is_empty(), !cfg!(feature = "check"), "{others:?}");

    let late = || {
        assert!(PERMITS.down_timeout(Duration::from_millis(1)).is_err());
        let mut guard = NAMED.lock();
        let _ = COME.wait_timeout(&mut guard, Duration::from_millis(1));
    };
    let (waits, _) = told(late);
    let timed =
        |kind| [("begins, timed", kind, 0, way::ALONE), ("ends", kind, 0, ending::TIMED_OUT)];
    assert_eq!(waits, [timed(kind::SEMAPHORE), timed(kind::CONDITION)].concat());
    #[cfg(feature = "check")]
    assert_eq!(lockstead::check::findings(), [], "the validator in here rests");
}

/// Asserts that so many acquisitions were told, and as many releases, if the locks are checked.
fn followed(told: &[Told], kind: u32, flags: u32, count: usize) {
    let expected = if cfg!(feature = "check") { count } else { 0 };
    for what in ["acquired", "releases"] {
        let of = |told: &&Told| told.0 == what && told.1 == kind;
        let found: Vec<&Told> = told.iter().filter(of).collect();
        assert_eq!(found.len(), expected, "{told:?}");
        assert!(found.iter().all(|told| told.2 == flags | flag::FOLLOWED), "{told:?}");
    }
}
