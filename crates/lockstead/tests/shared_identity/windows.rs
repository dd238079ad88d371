//! Processes that are stopped between two steps, for as long as it takes: by a debugger, a
//! freezer, a busy machine.
//!
//! They are met by standing in for functions of the libc, which this program defines itself: who
//! calls one of them at the chosen step waits there. What is chosen is chosen in a forked child.

use crate::support::{Child, LONG, Named, Root, UNTOLD};
use lockstead::shared::{Segment, SharedError};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32};
use std::time::Instant;

/// Stopped: has a slot, and has not said who it is.
const TAKEN: u32 = 1001;
/// Stopped: about to ask how a process's byte is locked.
const ASKS: u32 = 1002;
/// Stopped: has been told.
const TOLD: u32 = 1003;
/// The stage from which on a stopped one goes on: its own, and so many.
const ON: u32 = 1000;

/// The place of the stage of the test; null: nobody is stopped.
static STAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// 1: to be stopped when it has a slot.
static STOPS_TAKEN: AtomicU32 = AtomicU32::new(0);
/// The byte about which it is stopped when it asks; 0: none.
static STOPS_ASKING: AtomicI64 = AtomicI64::new(0);

fn stop(stage: u32) {
    // SAFETY: `stopping` has set the word, which outlives the child that calls this.
    let word = unsafe { &*STAGE.load(SeqCst) };
    word.store(stage, SeqCst);
    let end = Instant::now() + LONG;
    while word.load(SeqCst) != stage + ON {
        assert!(Instant::now() < end, "it is left where it is stopped");
        std::thread::yield_now();
    }
}

/// Has the stage told at this word, which outlives the calling child.
fn stopping(stage: &AtomicU32) {
    STAGE.store(core::ptr::from_ref(stage).cast_mut(), SeqCst);
}

/// Stands before the libc's function of this name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> i32 {
    if clock == libc::CLOCK_REALTIME && STOPS_TAKEN.swap(0, SeqCst) == 1 {
        stop(TAKEN);
    }
    // SAFETY: the arguments are passed on unchanged: the caller keeps what the kernel demands.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as i32 }
}

/// Stands before the libc's function of this name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(number: i64, a: i64, b: i64, c: i64, d: i64, e: i64, f: i64) -> i64 {
    let is_question = number == libc::SYS_fcntl && b == i64::from(libc::F_OFD_GETLK);
    let stops = is_question && {
        // SAFETY: `fcntl` with `F_OFD_GETLK` is given a live `flock`; the caller keeps it.
        let range = unsafe { &*core::ptr::with_exposed_provenance::<libc::flock>(c as usize) };
        let byte = STOPS_ASKING.load(SeqCst);
        byte != 0 && byte == range.l_start && STOPS_ASKING.swap(0, SeqCst) == byte
    };
    if stops {
        stop(ASKS);
    }
    let result: i64;
    // SAFETY: the arguments are passed on unchanged: the caller keeps what the kernel demands.
    unsafe {
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
        );
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    if stops {
        stop(TOLD);
    }
    if (-4095..0).contains(&result) {
        // SAFETY: `errno` is the calling thread's own, and lives as long as it.
        unsafe { *libc::__errno_location() = -result as i32 };
        return -1;
    }
    result
}

/// The counter from which numbers of processes are drawn. Set back, it stands where it would
/// after all numbers were drawn.
struct Counter(std::fs::File, u64);

impl Counter {
    fn of(named: &Named) -> Counter {
        let file = OpenOptions::new().read(true).write(true).open(&named.path).expect("the file");
        Counter(file, named.segment.header().slots_at + 76)
    }

    fn get(&self) -> u32 {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, self.1).expect("the counter");
        u32::from_ne_bytes(bytes)
    }

    fn set(&self, to: u32) {
        self.0.write_all_at(&to.to_ne_bytes(), self.1).expect("the counter");
    }
}

/// Whoever leaves takes its note along: the process named there is not that of the next one.
#[test]
fn who_has_a_slot_and_has_not_said_who_it_is_is_not_taken_for_who_left() {
    let named = Named::new("noted");
    let (path, root) = (&named.path, named.segment.root());
    let counter = Counter::of(&named);
    let drawn = counter.get();
    Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        drop(segment.root().mutex.lock().expect("a slot"));
        segment.leave().expect("it holds nothing");
    })
    .ends();
    counter.set(drawn);
    let owner = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        stopping(&root.stage);
        STOPS_TAKEN.store(1, SeqCst);
        segment.root().keep(1);
    });
    root.await_stage(TAKEN);
    // Who opens asks about everybody.
    Child::new(|| drop(Segment::<Root>::open(path).expect("a segment"))).ends();
    root.stage.store(TAKEN + ON, SeqCst);
    root.await_stage(1);
    assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
    owner.kill();
    assert!(root.told());
}

/// The answer is about who left meanwhile. Somebody with the same numbers has come since.
#[test]
fn an_answer_that_comes_late_declares_nobody_dead_who_came_since() {
    let named = Named::new("asked");
    let (path, root) = (&named.path, named.segment.root());
    let counter = Counter::of(&named);
    let drawn = counter.get();
    let first = Child::first_of_namespace(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        drop(segment.root().mutex.lock().expect("a slot"));
        root.stage.store(1, SeqCst);
        root.await_stage(2);
        segment.leave().expect("it holds nothing");
    });
    let Some(first) = first else { return println!("skipped: no PID namespaces here") };
    root.await_stage(1);
    let asker = Child::new(|| {
        stopping(&root.stage);
        STOPS_ASKING.store((1 << 40) + 1 + i64::from(drawn), SeqCst);
        let segment = Segment::<Root>::open(path).expect("a segment");
        let held = segment.root().mutex.try_lock().map(drop) == Err(SharedError::Held);
        root.stage.store(if held { 4 } else { 5 }, SeqCst);
        root.await_stage(6);
    });
    root.await_stage(ASKS);
    root.stage.store(2, SeqCst);
    first.ends();
    root.stage.store(ASKS + ON, SeqCst);
    root.await_stage(TOLD);
    counter.set(drawn);
    let owner = Child::first_of_namespace(|| {
        Segment::<Root>::open(path).expect("a segment").root().keep(3);
    });
    root.await_stage(3);
    root.stage.store(TOLD + ON, SeqCst);
    root.await_stage(4);
    root.stage.store(6, SeqCst);
    asker.ends();
    owner.expect("as before").kill();
    assert!(root.told());
}

/// What a dead reader had claimed is not the newcomer's for a moment.
#[test]
fn a_writer_does_not_wait_for_who_comes_to_a_dead_readers_slot_and_is_stopped() {
    let named = Named::new("claimed");
    let (path, root) = (&named.path, named.segment.root());
    let reader = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        core::mem::forget(segment.root().rate.read().expect("a slot"));
        root.stage.store(1, SeqCst);
        loop {
            std::thread::park();
        }
    });
    root.await_stage(1);
    reader.kill();
    let newcomer = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        stopping(&root.stage);
        STOPS_TAKEN.store(1, SeqCst);
        segment.participate().expect("a slot");
    });
    root.await_stage(TAKEN);
    assert!(root.rate.write_timeout(UNTOLD).is_ok());
    root.stage.store(TAKEN + ON, SeqCst);
    newcomer.ends();
}

/// 1: the next thread that forks waits in the middle of that, and says so by 2, until 3.
static IN_FORK: AtomicU32 = AtomicU32::new(0);

extern "C" fn wait_in_fork() {
    if IN_FORK.compare_exchange(1, 2, SeqCst, SeqCst).is_ok() {
        let end = Instant::now() + LONG;
        while IN_FORK.load(SeqCst) != 3 && Instant::now() < end {
            std::thread::yield_now();
        }
    }
}

/// The registration of a handler before the library registers its own: so this one is called after
/// them, when a fork has what keeps descriptions out.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = {
    extern "C" fn register() {
        // SAFETY: the function lives as long as the program.
        unsafe { libc::pthread_atfork(Some(wait_in_fork), None, None) };
    }
    register
};

/// What keeps forks and open descriptions apart is not inherited by a child that no handler
/// knows of.
#[test]
fn a_child_of_the_bare_call_joins_though_another_thread_was_forking() {
    let named = Named::new("bare");
    let root = named.segment.root();
    std::thread::scope(|s| {
        IN_FORK.store(1, SeqCst);
        let forks = s.spawn(|| Child::new(|| ()).ends());
        let end = Instant::now() + LONG;
        while IN_FORK.load(SeqCst) != 2 {
            assert!(Instant::now() < end, "nobody forks");
            std::thread::yield_now();
        }
        let child = Child::bare(|| drop(root.mutex.lock().expect("a slot")));
        child.ends();
        IN_FORK.store(3, SeqCst);
        forks.join().expect("it forks");
    });
}

extern "C" fn nothing(_: libc::c_int) {}

/// Runs a waiter that is woken again and again, each time before it has slept for a second.
#[test]
fn who_is_interrupted_all_the_time_learns_of_an_untold_death_too() {
    let named = Named::new("interrupted");
    let (path, root) = (&named.path, named.segment.root());
    let owner = Child::new(|| {
        Segment::<Root>::open(path).expect("a segment").root().keep_untold(1);
    });
    root.await_stage(1);
    let wait = |how: &'static str, interruptible: bool| {
        Child::new(move || {
            let every = libc::timeval { tv_sec: 0, tv_usec: 300_000 };
            let timer = libc::itimerval { it_interval: every, it_value: every };
            // SAFETY: a handler that does nothing; a timer of the child's own.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
                assert_eq!(libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut()), 0);
                assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, core::ptr::null_mut()), 0);
            }
            root.stage.fetch_add(1, SeqCst);
            let end = Instant::now() + UNTOLD;
            let got = loop {
                let got = match interruptible {
                    true => root.mutex.lock_interruptible(),
                    false => root.mutex.lock_timeout(UNTOLD),
                };
                let got = got.map(|locked| drop(locked.recover(|_| ())));
                if got != Err(SharedError::Interrupted) || Instant::now() > end {
                    break got;
                }
            };
            assert_eq!(got, Ok(()), "{how}");
        })
    };
    let waiters = [wait("interruptible", true), wait("not interruptible", false)];
    root.await_stage(3);
    owner.kill();
    waiters.into_iter().for_each(Child::ends);
}

/// Tries for the lock of a living one and for that of a dead one, in turn.
#[test]
fn who_only_tries_asks_about_all_owners() {
    let named = Named::new("polled");
    let (path, root) = (&named.path, named.segment.root());
    let living = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        core::mem::forget(segment.root().rate.write().expect("a slot"));
        root.stage.store(1, SeqCst);
        loop {
            std::thread::park();
        }
    });
    root.await_stage(1);
    let dead = Child::new(|| {
        Segment::<Root>::open(path).expect("a segment").root().keep_untold(2);
    });
    root.await_stage(2);
    assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
    dead.kill();
    let end = Instant::now() + UNTOLD;
    while root.mutex.try_lock().map(drop) == Err(SharedError::Held) {
        assert!(Instant::now() < end, "it never learns of the death");
        assert_eq!(root.rate.try_read().map(drop), Err(SharedError::Held));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    living.kill();
}
