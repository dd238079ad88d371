//! Who was woken and has the lock defers the wake-up of the next one: what the thread's robust
//! list says is pending then, and what becomes of it.

mod common;
mod segment;

use common::{Watchdog, until};
use core::ptr::null_mut;
use lockstead_core::Platform;
use lockstead_core::robust::word::WAITERS;
use lockstead_linux::Linux;
use lockstead_linux::shared;
use segment::{Child, Segment};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// The doorbell is the first word of the tests' segments.
const DOORBELL: usize = 0;

const LONG: Duration = Duration::from_secs(20);

/// Each test has two threads that wait for each other: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    next: usize,
    offset: isize,
    pending: usize,
}

fn head() -> *mut Head {
    let (mut head, mut size) = (null_mut::<Head>(), 0usize);
    // SAFETY: the kernel writes `head` and `size`, which live until the call returns.
    let result =
        unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut size) };
    assert!(result == 0 && !head.is_null(), "a robust list");
    head
}

/// Returns where in the segment the word lies that the calling thread has named; `None`: nowhere in
/// it.
fn named(segment: &Segment) -> Option<usize> {
    // SAFETY: the head of this thread, which changes it only in calls of its own.
    let head = unsafe { head().read_volatile() };
    let word = head.pending.wrapping_add_signed(head.offset).wrapping_sub(segment.address());
    (head.pending != 0 && word < 1 << 20).then_some(word)
}

/// Takes lock 0 while another thread has it, and releases it. Tells whether that left the mark of
/// waiters there.
fn contend(segment: &Segment) -> bool {
    let (stage, waiter) = (AtomicU32::new(0), common::gettid());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = segment.lock_within(0, LONG).expect("taken");
            stage.store(1, SeqCst);
            until("somebody waits", || segment.lock(0).peek() & WAITERS != 0);
            common::until_thread_sleeps(waiter);
            assert!(segment.unlock(0));
            shared::leave(segment.handle()).expect("nothing held");
        });
        until("the lock is taken", || stage.load(SeqCst) == 1);
        let _ = segment.lock_within(0, LONG).expect("taken");
        let marked = segment.lock(0).peek() & WAITERS != 0;
        assert!(segment.unlock(0));
        marked
    })
}

/// Contends until the thread has deferred a wake-up.
fn defer_wake(segment: &Segment) {
    until("a woken owner leaves the mark", || contend(segment));
    assert_eq!(named(segment), Some(DOORBELL), "the doorbell stays named");
}

fn in_thread(body: impl FnOnce() + Send) {
    let _watchdog = Watchdog::new(120);
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    std::thread::scope(|scope| scope.spawn(body).join().expect("the thread is right"));
}

/// Locks and unlocks a robust mutex of the libc.
fn use_libcs() {
    // SAFETY: the mutex is this test's own, and is initialised before it is used.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
        let mut mutex: libc::pthread_mutex_t = core::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        assert_eq!(libc::pthread_mutex_init(&mut mutex, &attributes), 0);
        assert_eq!(libc::pthread_mutex_lock(&mut mutex), 0);
        assert_eq!(libc::pthread_mutex_unlock(&mut mutex), 0);
    }
}

#[test]
fn who_was_woken_names_the_doorbell_until_it_leaves() {
    in_thread(|| {
        for exclusive in [false, true] {
            let segment = Segment::with(exclusive);
            defer_wake(&segment);
            assert_eq!(shared::leave(segment.handle()), Ok(()));
            assert_eq!(named(&segment), None, "nothing is named after leaving");
        }
    });
}

#[test]
fn who_uses_the_libcs_robust_mutexes_passes_on_at_once() {
    in_thread(|| {
        let segment = Segment::new();
        defer_wake(&segment);
        use_libcs();
        assert_eq!(named(&segment), None, "the libc leaves nothing pending");
        for _ in 0..20 {
            assert!(!contend(&segment), "it defers the wake-up although the libc undoes it");
        }
    });
}

/// A signal handler may come in the middle of the libc's operation.
#[test]
fn what_the_libc_has_pending_is_given_back() {
    in_thread(|| {
        let segment = Segment::new();
        segment.party();
        // As if in the middle of the libc's operation: of a mutex that nobody has.
        let mutex = Box::new([0u64; 8]);
        // SAFETY: the head of this thread; what is pending names an unowned word.
        let pending = unsafe { &raw mut (*head()).pending };
        let theirs = (&raw const mutex[4]).addr();
        // SAFETY: the pointer leads into this thread's head, which nobody else writes meanwhile.
        unsafe { pending.write_volatile(theirs) };
        contend(&segment);
        // SAFETY: the pointer leads into this thread's head, which nobody else writes meanwhile.
        assert_eq!(unsafe { pending.read_volatile() }, theirs, "it is the libc's still");
        // SAFETY: the pointer leads into this thread's head, which nobody else writes meanwhile.
        unsafe { pending.write_volatile(0) };
    });
}

#[test]
fn a_forked_child_names_nothing_in_what_it_unmaps() {
    in_thread(|| {
        let mut segment = Segment::new();
        defer_wake(&segment);
        let handle = segment.handle.take().expect("attached");
        let status = Child::new(|| {
            assert_eq!(named(&segment), Some(DOORBELL), "inherited");
            shared::detach(handle).map_err(|(_, busy)| busy).expect("detached");
            assert_eq!(named(&segment), None);
            assert!(Linux::now().0 > 0);
        })
        .wait();
        assert_eq!(status, 0);
    });
}
