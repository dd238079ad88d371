//! The lock word with priority inheritance: states that the kernel alone brings about,
//! and kernels and filters that do not play along.

mod common;

use common::{Watchdog, in_child, in_threads, until};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lockstead_core::{Platform, WaitBounds};
use lockstead_linux::pi::{PiError, PiWord, inherits, refuse_lock_pi2};
use lockstead_linux::{Cell, Linux};
use std::time::{Duration, Instant};

/// The bit of the word that says that the owner died.
const DIED: u64 = 1 << 30;
/// The bit of the word that says that the lock is lost.
const LOST: u64 = 1 << 63;

fn tid() -> u64 {
    // SAFETY: the call takes no argument and cannot fail.
    u64::try_from(unsafe { libc::gettid() }).expect("a number")
}

fn lock(word: &PiWord, how: &WaitBounds<'_, Linux>) -> Result<(), PiError> {
    if word.lock_fast() { Ok(()) } else { word.lock_slow(how) }
}

fn try_lock(word: &PiWord) -> bool {
    word.lock_fast() || word.try_lock_slow()
}

fn within(time: Duration) -> WaitBounds<'static, Linux> {
    let nanos = u64::try_from(time.as_nanos()).expect("a short time");
    WaitBounds { deadline: Some(Linux::now().after(nanos)), ..WaitBounds::FOREVER }
}

/// A number that the lock alone keeps right.
struct Counter {
    word: PiWord,
    value: lockstead_linux::Cell<u64>,
}

impl Counter {
    const fn new() -> Self {
        Counter { word: PiWord::new(), value: Cell::new_const(0) }
    }

    fn add(&self, how: &WaitBounds<'_, Linux>) {
        use lockstead_core::Plain;
        lock(&self.word, how).expect("no reason to fail");
        // SAFETY: this thread holds the lock, which keeps all others out.
        self.value.with_mut(|value| unsafe { value.write_volatile(value.read_volatile() + 1) });
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { self.word.unlock() };
    }

    fn total(&self) -> u64 {
        use lockstead_core::Plain;
        // SAFETY: the threads that add have been joined.
        self.value.with(|value| unsafe { value.read() })
    }
}

/// Has threads take turns. Returns once the lock was seen to have waiters, and they have ended.
fn compete(counter: &Counter) {
    in_threads(4, &|| {
        for _ in 0..2_000 {
            counter.add(&WaitBounds::FOREVER);
        }
    });
    assert_eq!(counter.total(), 8_000);
    assert!(!counter.word.is_locked());
}

#[test]
fn the_word_holds_the_owner_and_nothing_else() {
    let word = PiWord::new();
    lock(&word, &WaitBounds::FOREVER).expect("free");
    assert_eq!(word.peek(), tid());
    assert!(word.is_mine() && word.owner().is_some_and(|owner| owner.is_current()));
    // SAFETY: this thread has taken the lock above, and only the holder releases it.
    unsafe { word.unlock() };
    assert_eq!((word.peek(), word.owner()), (0, None));
}

#[test]
fn threads_exclude_each_other() {
    let _watchdog = Watchdog::new(120);
    compete(&Counter::new());
}

#[test]
fn a_lock_that_the_kernel_hands_over_for_the_dead_is_lost() {
    // As the kernel leaves it where nobody waited: nobody's, and marked.
    let word = PiWord::with_word(DIED);
    assert!(!try_lock(&word));
    assert!(word.is_lost() && !word.is_locked(), "{word:?}");
    let word = PiWord::with_word(DIED);
    assert_eq!(lock(&word, &WaitBounds::FOREVER), Err(PiError::OwnerLost));
    assert!(word.is_lost() && !word.is_locked(), "{word:?}");
    assert_eq!(lock(&word, &WaitBounds::FOREVER), Err(PiError::OwnerLost));
    assert!(!try_lock(&word));
}

#[test]
fn an_owner_that_is_no_thread_is_lost() {
    // Above the largest number that Linux gives.
    let word = PiWord::with_word(0x3fff_fff0);
    assert!(!try_lock(&word));
    assert!(word.owner().is_some_and(|owner| owner.is_lost()));
    assert_eq!(lock(&word, &within(Duration::from_secs(60))), Err(PiError::OwnerLost));
    assert!(word.is_lost());
}

#[test]
fn a_lost_lock_stays_lost_whatever_its_low_half() {
    let word = PiWord::with_word(LOST);
    assert!(!try_lock(&word));
    assert_eq!(lock(&word, &WaitBounds::FOREVER), Err(PiError::OwnerLost));
    assert_eq!(word.peek(), LOST);
}

/// The owner that ended is found out by those who wait for it, one after another.
#[test]
fn all_who_wait_for_a_thread_that_ends_are_told() {
    let _watchdog = Watchdog::new(60);
    let word = PiWord::new();
    let (taken, ends, told) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|s| {
        s.spawn(|| {
            lock(&word, &WaitBounds::FOREVER).expect("free");
            taken.store(true, Relaxed);
            until("the owner may end", || ends.load(Relaxed));
        });
        until("the lock is taken", || taken.load(Relaxed));
        for _ in 0..3 {
            s.spawn(|| {
                assert_eq!(lock(&word, &WaitBounds::FOREVER), Err(PiError::OwnerLost));
                told.fetch_add(1, Relaxed);
            });
        }
        // This is the bit that the kernel sets for waiters.
        until("somebody waits", || word.peek() & 1 << 31 != 0);
        ends.store(true, Relaxed);
    });
    assert_eq!(told.load(Relaxed), 3);
    assert_eq!(word.peek(), LOST);
}

/// Makes its attempts one after another, for the switch is the process's.
#[test]
fn without_the_newer_call_time_outs_go_by_the_wall_clock() {
    let _watchdog = Watchdog::new(60);
    refuse_lock_pi2(true);
    let word = PiWord::new();
    let (taken, ends) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|s| {
        s.spawn(|| {
            lock(&word, &WaitBounds::FOREVER).expect("free");
            taken.store(true, Relaxed);
            until("the owner may release", || ends.load(Relaxed));
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { word.unlock() };
        });
        until("the lock is taken", || taken.load(Relaxed));
        let begin = Instant::now();
        // Longer than one wait by the wall clock.
        let time = Duration::from_millis(1100);
        assert_eq!(lock(&word, &within(time)), Err(PiError::TimedOut));
        assert!(begin.elapsed() >= time, "too early: {:?}", begin.elapsed());
        ends.store(true, Relaxed);
        assert_eq!(lock(&word, &within(Duration::from_secs(60))), Ok(()));
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { word.unlock() };
    });
    refuse_lock_pi2(false);
}

/// Has the kernel answer every futex call with priority inheritance by `errno`, for this thread and
/// those that it starts. Returns false where filters are not allowed.
fn filter(errno: i32) -> bool {
    const COMMAND: u32 = 0x7f;
    let statement = |code: u32, k: u32, (jt, jf): (u8, u8)| libc::sock_filter {
        code: u16::try_from(code).expect("small"),
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let number = u32::try_from(libc::SYS_futex).expect("small");
    let refuse = libc::SECCOMP_RET_ERRNO | u32::try_from(errno).expect("positive");
    // The low half of the second argument, on a little-endian machine.
    let operation = 24;
    let mut program = [
        statement(load, 0, (0, 0)),
        statement(equal, number, (0, 6)),
        statement(load, operation, (0, 0)),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, COMMAND, (0, 0)),
        statement(equal, 6, (4, 0)),
        statement(equal, 7, (3, 0)),
        statement(equal, 8, (2, 0)),
        statement(equal, 13, (1, 0)),
        statement(give, libc::SECCOMP_RET_ALLOW, (0, 0)),
        statement(give, refuse, (0, 0)),
    ];
    let filter = libc::sock_fprog { len: 10, filter: program.as_mut_ptr() };
    // SAFETY: the filter is live; it concerns this process only.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    }
}

#[cfg(target_endian = "little")]
#[test]
fn where_the_calls_are_refused_the_locks_exclude_even_so() {
    for errno in [libc::ENOSYS, libc::EPERM] {
        in_child("locks under a filter", || {
            if !filter(errno) {
                eprintln!("skipped: filters of system calls are not allowed here");
                return true;
            }
            if inherits() {
                return false;
            }
            compete(&Counter::new());
            // And with a deadline, and an owner that is no thread.
            let word = PiWord::new();
            let taken = AtomicBool::new(false);
            let timed = AtomicBool::new(false);
            in_threads(2, &|| {
                if !taken.swap(true, Relaxed) {
                    lock(&word, &WaitBounds::FOREVER).expect("free");
                    until("the other one gave up", || timed.load(Relaxed));
                    // Ends without a release.
                    return;
                }
                until("the lock is taken", || word.is_locked());
                let begin = Instant::now();
                let time = Duration::from_millis(5);
                assert_eq!(lock(&word, &within(time)), Err(PiError::TimedOut));
                assert!(begin.elapsed() >= time);
                timed.store(true, Relaxed);
                assert_eq!(lock(&word, &WaitBounds::FOREVER), Err(PiError::OwnerLost));
            });
            word.is_lost()
        });
    }
}

#[test]
fn a_child_keeps_its_locks_and_does_not_wait_for_its_parents_threads() {
    let _watchdog = Watchdog::new(60);
    let (mine, free, theirs) = (PiWord::new(), PiWord::new(), PiWord::new());
    lock(&mine, &WaitBounds::FOREVER).expect("free");
    let (taken, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|s| {
        s.spawn(|| {
            lock(&theirs, &WaitBounds::FOREVER).expect("free");
            taken.store(true, Relaxed);
            until("the child has ended", || over.load(Relaxed));
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { theirs.unlock() };
        });
        until("the lock is taken", || taken.load(Relaxed));
        let parent = tid();
        in_child("locks after fork", || {
            let mut right = mine.is_mine() && tid() != parent;
            right &= lock(&mine, &WaitBounds::FOREVER) == Err(PiError::Recursive);
            right &= lock(&theirs, &WaitBounds::FOREVER) == Err(PiError::OwnerLost);
            right &= theirs.owner().is_some_and(|owner| owner.is_lost()) && !try_lock(&theirs);
            // Twice: the first time the lock joins the new generation.
            for _ in 0..2 {
                right &= lock(&free, &WaitBounds::FOREVER).is_ok() && free.is_mine();
                // SAFETY: this thread has taken the lock above, and only the holder releases it.
                unsafe { free.unlock() };
            }
            // SAFETY: this thread has taken the lock before the fork.
            unsafe { mine.unlock() };
            right &= !mine.is_locked() && try_lock(&mine);
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { mine.unlock() };
            // And among the child's own threads.
            let counter = Counter::new();
            compete(&counter);
            right
        });
        over.store(true, Relaxed);
    });
    assert!(mine.is_mine());
    // SAFETY: this thread has taken the lock above; the child had a copy.
    unsafe { mine.unlock() };
    assert_eq!([mine.peek(), free.peek(), theirs.peek()], [0; 3]);
}
