//! The second source on who has ended: between PID namespaces, and asked all the time
//! about threads that come and go; and where the kernel has lost a thread's list.

mod common;
mod segment;

use common::{Watchdog, in_threads, until};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use lockstead_core::Atomic64;
use lockstead_core::robust::{Got, Life, RobustError, RobustMachine};
use lockstead_linux::Linux;
use lockstead_linux::shared;
use segment::{Child, SLOTS, Segment, hold, lose_list};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

/// Starts a child that is number 1 of a PID namespace of its own. Returns `None` where that is not
/// allowed. By the libc's `fork`, since the child allocates.
fn first_of_namespace(body: impl FnOnce()) -> Option<Child> {
    let own = std::fs::File::open("/proc/thread-self/ns/pid").ok()?;
    // SAFETY: the call takes flags only: in which namespace the next children of this thread are.
    if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
        return None;
    }
    let child = Child::new(body);
    // SAFETY: `own` keeps the descriptor open; `setns` touches no memory.
    assert_eq!(unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWPID) }, 0, "back again");
    Some(child)
}

fn has_ended(segment: &Segment, slot: u32) -> bool {
    Linux::has_ended(segment.handle().attached(), slot, segment.record(slot).current())
}

#[test]
fn who_has_the_same_number_in_another_namespace_is_somebody_else() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    for lost in [false, true] {
        let (holds, waits) = (segment.word(1), segment.word(2));
        holds.store(0, SeqCst);
        waits.store(0, SeqCst);
        let holder = first_of_namespace(|| {
            assert_eq!(common::gettid(), 1);
            assert!(segment.lock_within(0, LONG).is_ok());
            if lost {
                lose_list();
            }
            holds.store(1, SeqCst);
            until("killed", || false);
        });
        let Some(holder) = holder else {
            eprintln!("skipped: no PID namespaces here");
            return;
        };
        until("the holder has the lock", || holds.load(SeqCst) == 1);
        let waiter = first_of_namespace(|| {
            assert_eq!(common::gettid(), 1);
            segment.party();
            waits.store(1, SeqCst);
            let _ = segment.lock_within(0, LONG);
        });
        let waiter = waiter.expect("as before");
        until("the waiter is about to wait", || waits.load(SeqCst) == 1);
        common::until_thread_sleeps(waiter.0);
        waiter.kill_and_wait();
        // Long enough to be asked for, where its list is lost.
        let patience = Duration::from_millis(if lost { 2500 } else { 100 });
        assert_eq!(segment.lock_within(0, patience), Err(RobustError::TimedOut));
        holder.kill_and_wait();
        // Who only tries asks as well, where the list is lost.
        assert_eq!(segment.lock(0).try_lock(&segment.party()), Ok(Got::OwnerDied));
        assert!(segment.lock(0).mark_consistent(&segment.party()));
        assert!(segment.lock(0).unlock(&segment.party()));
    }
}

#[test]
fn nobody_that_comes_and_goes_is_found_to_have_ended() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    let end = Instant::now() + Duration::from_secs(2);
    let come_and_go = || {
        while Instant::now() < end {
            let party = segment.party();
            let record = party.record().expect("a slot");
            for _ in 0..3 {
                let life = Life(record.life.load(Relaxed));
                assert!(life.is_alive(), "declared dead");
                assert_eq!(life.generation(), party.me.generation());
                std::thread::yield_now();
            }
            assert_eq!(shared::leave(segment.handle()), Ok(()));
            segment.word(1).fetch_add(1, Relaxed);
        }
    };
    // In the same process, in other ones, and in some that end without leaving.
    let members: Vec<_> = (0..2).map(|_| Child::new(|| in_threads(2, &come_and_go))).collect();
    let asker = Child::new(|| {
        segment.party();
        while Instant::now() < end {
            for slot in 1..SLOTS as u32 {
                if has_ended(&segment, slot) {
                    segment.word(2).fetch_add(1, Relaxed);
                }
            }
            segment.word(3).fetch_add(1, Relaxed);
        }
    });
    let mut lost = 0;
    while Instant::now() < end {
        if lost > segment.word(2).load(Relaxed) + 20 {
            // Not more than there are slots for.
            std::thread::yield_now();
            continue;
        }
        let child = Child::new(|| {
            segment.party();
            lose_list();
        });
        assert_eq!(child.wait(), 0);
        lost += 1;
        in_threads(1, &|| {
            segment.party();
        });
    }
    for member in members {
        assert_eq!(member.wait(), 0);
    }
    assert_eq!(asker.wait(), 0);
    // All that ended unnoticed are found in the end; most were by who came after them.
    let me = segment.party().me.slot();
    let last = (1..SLOTS as u32).filter(|&slot| has_ended(&segment, slot)).count() as u64;
    let living = |slot: &u32| segment.record(*slot).current().is_alive();
    assert_eq!((1..SLOTS as u32).filter(living).collect::<Vec<_>>(), [me]);
    let found = last + segment.word(2).load(Relaxed);
    let comings = segment.word(1).load(Relaxed);
    println!("{comings} comings and goings, {lost} lost, {found} of them found by asking");
    assert!(found <= lost);
    assert!(comings > 0);
}

#[test]
fn slots_of_those_that_ended_unnoticed_are_found_when_there_are_no_others() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    for round in 0..2 {
        for number in 1..SLOTS {
            let child = Child::new(|| {
                segment.party();
                lose_list();
            });
            assert_eq!(child.wait(), 0, "round {round}, slot {number}");
        }
    }
    assert!(shared::join(segment.address()).is_ok());
}

#[test]
fn a_process_whose_list_is_lost_is_found_to_have_ended() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    let child = Child::new(|| {
        hold(&segment);
        lose_list();
        segment.word(1).store(2, SeqCst);
        until("killed", || false);
    });
    until("the child has the lock", || segment.word(1).load(SeqCst) == 2);
    child.kill_and_wait();
    assert!(segment.record(1).current().is_alive(), "the kernel has not told");
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
}

/// Ends a thread as one of a program that sets a list of its own: the thread tells of its end
/// itself.
#[test]
fn a_thread_whose_list_is_lost_tells_of_its_own_end() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    let child = Child::new(|| {
        in_threads(1, &|| {
            hold(&segment);
            lose_list();
        });
        segment.word(1).store(2, SeqCst);
        until("killed", || false);
    });
    until("the thread has ended", || segment.word(1).load(SeqCst) == 2);
    assert!(!segment.record(1).current().is_alive(), "it has told");
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
    child.kill_and_wait();
}

/// Does as `in_threads(1, …)`, but the thread ends by the bare system call, without its
/// destructors.
fn in_thread_that_exits<F: Fn() + Sync>(what: &F) {
    extern "C" fn begin<F: Fn()>(what: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: what is given below, which lives until the thread has been joined.
        unsafe { (*what.cast::<F>())() };
        // SAFETY: the call ends this thread, which has nothing to drop.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        core::ptr::null_mut()
    }
    let mut thread = 0;
    let given = core::ptr::from_ref(what).cast_mut().cast();
    // SAFETY: a function of the right type, and what it takes; joined once.
    unsafe {
        let started = libc::pthread_create(&mut thread, core::ptr::null(), begin::<F>, given);
        assert_eq!(started, 0);
        assert_eq!(libc::pthread_join(thread, core::ptr::null_mut()), 0);
    }
}

#[test]
fn a_thread_whose_list_is_lost_is_found_to_have_ended_while_its_process_lives() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    let child = Child::new(|| {
        in_thread_that_exits(&|| {
            hold(&segment);
            lose_list();
        });
        segment.word(1).store(2, SeqCst);
        until("killed", || false);
    });
    until("the thread has ended", || segment.word(1).load(SeqCst) == 2);
    assert!(segment.record(1).current().is_alive(), "the kernel has not told");
    // A thread that only tries asks as well.
    assert_eq!(segment.lock(0).try_lock(&segment.party()), Ok(Got::OwnerDied));
    child.kill_and_wait();
}

/// In this namespace nobody can ask about a thread there, while its process goes on.
#[test]
fn a_thread_that_ended_unnoticed_in_another_namespace_is_noticed_by_those_of_its_process() {
    let _watchdog = Watchdog::new(60);
    let segment = Segment::new();
    assert_eq!(segment.lock_within(1, LONG), Ok(Got::Clean));
    let process = first_of_namespace(|| {
        in_threads(1, &|| {
            assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
            lose_list();
            // SAFETY: the call ends this thread, which nobody else refers to.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        });
        segment.word(1).store(2, SeqCst);
        // Somebody that waits, for another lock.
        let _ = segment.lock_within(1, LONG);
    });
    let Some(process) = process else { return println!("skipped: no PID namespaces here") };
    until("the thread has ended", || segment.word(1).load(SeqCst) == 2);
    assert_eq!(segment.lock_within(0, LONG / 2), Ok(Got::OwnerDied));
    process.kill_and_wait();
}
