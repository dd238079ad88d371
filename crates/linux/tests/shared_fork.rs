//! Children and threads of all kinds: none acts as its parent, and the end of each is
//! noticed.

mod common;
mod segment;

use common::{Watchdog, in_child, in_threads, until};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::SeqCst;
use lockstead_core::robust::{Got, RobustError};
use lockstead_linux::shared;
use segment::{Child, Segment};
use std::sync::Mutex;
use std::time::Duration;

/// The tests of this file fork and handle signals: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const LONG: Duration = Duration::from_secs(20);

fn alone() -> (Watchdog, std::sync::MutexGuard<'static, ()>) {
    (Watchdog::new(60), ALONE.lock().unwrap_or_else(|e| e.into_inner()))
}

/// Tells whether the lock's owner lives, asked by a process of its own.
fn is_held(segment: &Segment, lock: usize) -> bool {
    segment.word(9).store(0, SeqCst);
    let child = Child::new(|| {
        let tried = segment.lock(lock).try_lock(&segment.party());
        segment.word(9).store(1 + u64::from(tried == Err(RobustError::TimedOut)), SeqCst);
    });
    assert_eq!(child.wait(), 0);
    segment.word(9).load(SeqCst) == 2
}

/// Tells whether all holds that must in a child of a thread that is `before` and holds lock 0.
fn is_nobody(segment: &Segment, before: &'static shared::SegmentMember) -> bool {
    shared::member(segment.address()).is_none()
        && shared::me(segment.address()).is_none()
        // Nor by what a guard has kept.
        && before.identity().is_none()
        && before.party().is_none()
        && {
            let party = segment.party();
            segment.lock(0).try_lock(&party) == Err(RobustError::TimedOut)
                && !segment.lock(0).unlock(&party)
                && segment.lock(0).try_lock(&party) == Err(RobustError::TimedOut)
                && segment.lock_within(1, LONG) == Ok(Got::Clean)
        }
}

/// Asserts that lock 0 is this thread's, and lock 1 a dead child's.
fn is_as_before(segment: &Segment) {
    assert!(is_held(segment, 0), "the parent lives");
    assert_eq!(segment.lock_within(1, LONG), Ok(Got::OwnerDied), "the child does not");
    assert!(segment.lock(1).mark_consistent(&segment.party()));
    assert!(segment.unlock(1));
    assert!(segment.unlock(0), "still its own");
}

#[test]
fn a_forked_child_is_somebody_new() {
    let _alone = alone();
    let segment = Segment::new();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    let (mine, member) = (segment.party().me, segment.member());
    in_child("is nobody, and then somebody else", || {
        is_nobody(&segment, member) && segment.party().me != mine
    });
    assert_eq!(shared::me(segment.address()), Some(mine));
    is_as_before(&segment);
}

/// Forks by the bare system call, of which no handler of the libc knows.
fn bare_fork(body: impl FnOnce() -> bool) -> Child {
    // SAFETY: the child runs `body` and ends without returning here.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as libc::pid_t;
    if child == 0 {
        let right = body();
        // SAFETY: the call ends the child at once, and returns to nobody.
        unsafe { libc::syscall(libc::SYS_exit_group, c_int::from(!right)) };
    }
    assert!(child > 0);
    Child(child)
}

#[test]
fn a_child_of_the_bare_system_call_is_somebody_new() {
    let _alone = alone();
    let segment = Segment::new();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    let (mine, member) = (segment.party().me, segment.member());
    let child = bare_fork(|| is_nobody(&segment, member) && segment.party().me != mine);
    assert_eq!(child.wait(), 0, "is nobody, and then somebody else");
    is_as_before(&segment);
}

#[test]
fn children_of_children_are_all_different() {
    let _alone = alone();
    let segment = Segment::new();
    let mine = segment.party().me;
    let child = bare_fork(|| {
        let theirs = segment.party().me;
        let grandchild = bare_fork(|| {
            let new = segment.party().me;
            new != mine && new != theirs && segment.lock_within(2, LONG) == Ok(Got::Clean)
        });
        let right = grandchild.wait() == 0;
        right
            && mine != theirs
            && segment.lock_within(2, LONG) == Ok(Got::OwnerDied)
            && segment.lock(2).mark_consistent(&segment.party())
            && segment.unlock(2)
    });
    assert_eq!(child.wait(), 0);
}

#[test]
fn a_vforked_child_that_ends_or_runs_a_program_takes_nothing_along() {
    let _alone = alone();
    let segment = Segment::new();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    extern "C" fn start(runs: *mut c_void) -> c_int {
        if !runs.is_null() {
            let program = c"/bin/true".as_ptr();
            let arguments = [program, core::ptr::null()];
            // SAFETY: `execv` reads live strings and, at the end, a null.
            unsafe { libc::execv(program, arguments.as_ptr()) };
        }
        0
    }
    let mut stack = vec![0u8; 1 << 16];
    for runs in [null_mut(), stack.as_mut_ptr().cast::<c_void>()] {
        let top = stack.as_mut_ptr_range().end;
        // What `vfork` does, on a stack of its own.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child does nothing but what may be done after vfork; it has left
        // the stack when the call returns.
        let child = unsafe { libc::clone(start, top.cast(), flags, runs) };
        assert!(child > 0);
        assert_eq!(Child(child).wait(), 0);
        assert!(is_held(&segment, 0), "runs a program: {}", !runs.is_null());
    }
    assert!(segment.unlock(0));
}

#[test]
fn who_runs_another_program_has_ended() {
    let _alone = alone();
    let segment = Segment::new();
    let child = Child::new(|| {
        assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
        segment.word(1).store(1, SeqCst);
        let (program, time) = (c"/bin/sleep".as_ptr(), c"30".as_ptr());
        let arguments = [program, time, core::ptr::null()];
        // SAFETY: `execv` reads live strings and, at the end, a null.
        unsafe { libc::execv(program, arguments.as_ptr()) };
    });
    until("the child has the lock", || segment.word(1).load(SeqCst) == 1);
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
    let mut status = 0;
    // SAFETY: the kernel writes `status`, which lives until the call returns.
    let still = unsafe { libc::waitpid(child.0, &mut status, libc::WNOHANG) };
    assert_eq!(still, 0, "the program runs on");
    child.kill_and_wait();
}

#[test]
fn a_thread_that_ends_without_its_libc_knowing_has_ended() {
    let _alone = alone();
    let segment = Segment::new();
    let child = Child::new(|| {
        in_threads(1, &|| {
            in_bare_exit(&segment, 0);
        });
    });
    until("the thread has the lock", || segment.word(1).load(SeqCst) == 1);
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
    child.kill_and_wait();
}

/// Takes a lock and ends the thread by the bare system call.
fn in_bare_exit(segment: &Segment, lock: usize) {
    assert_eq!(segment.lock_within(lock, LONG), Ok(Got::Clean));
    segment.word(1).store(1, SeqCst);
    // SAFETY: ends this thread, which nobody joins before the process is killed.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Returns what the libc offers for threads that it has not made.
fn thread_storage() -> Option<*mut usize> {
    // SAFETY: `dlsym` reads the name, which is a static string.
    let allocate = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_allocate_tls".as_ptr()) };
    if allocate.is_null() {
        return None;
    }
    // SAFETY: glibc's function of this name takes a pointer, which may be null, and
    // returns the thread's control block or null.
    let allocate: extern "C" fn(*mut c_void) -> *mut usize =
        unsafe { core::mem::transmute(allocate) };
    let block = allocate(null_mut());
    if block.is_null() {
        return None;
    }
    // On aarch64 the thread pointer leads behind the libc's part, and the guards are not there.
    #[cfg(target_arch = "x86_64")]
    for (at, own) in [(0, None), (2, None), (5, Some(5)), (6, Some(6))] {
        let value = match own {
            // Its own address, twice.
            None => block.expose_provenance(),
            Some(word) => {
                let value: usize;
                // SAFETY: reads a word of this thread's control block: the guards of
                // the stack and of pointers.
                unsafe {
                    core::arch::asm!("mov {}, fs:[{}]", out(reg) value, in(reg) word * 8usize);
                }
                value
            }
        };
        // SAFETY: the block has a head of more than seven words.
        unsafe { block.add(at).write(value) };
    }
    Some(block)
}

#[test]
fn a_thread_of_the_bare_clone_call_takes_part() {
    let _alone = alone();
    let segment = Segment::new();
    let storage = thread_storage();
    let Some(storage) = storage else {
        eprintln!("skipped: this libc does not make storage for other threads");
        return;
    };
    extern "C" fn start(segment: *mut c_void) -> c_int {
        // SAFETY: the argument is the test's segment, which outlives the thread.
        let segment = unsafe { &*segment.cast::<Segment>() };
        let party = segment.party();
        segment.word(2).store(u64::from(party.me.bits()), SeqCst);
        in_bare_exit(segment, 0);
        0
    }
    let child = Child::new(|| {
        let mine = segment.party().me;
        let stack = vec![0u8; 1 << 20].leak();
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | libc::CLONE_SETTLS;
        let top = stack.as_mut_ptr_range().end;
        let argument = core::ptr::from_ref(&segment).cast_mut().cast();
        // SAFETY: a stack and storage of its own, which are never freed.
        let thread = unsafe {
            libc::clone(start, top.cast(), flags, argument, null_mut::<c_int>(), storage)
        };
        assert!(thread > 0);
        until("the thread has the lock", || segment.word(1).load(SeqCst) == 1);
        assert_ne!(segment.word(2).load(SeqCst), u64::from(mine.bits()));
        assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
        assert_eq!(segment.party().me, mine);
    });
    assert_eq!(child.wait(), 0);
}

#[test]
fn a_child_forked_by_a_handler_during_a_wait_does_not_wait_on() {
    let _alone = alone();
    static FORKED: core::sync::atomic::AtomicI32 = core::sync::atomic::AtomicI32::new(-1);
    extern "C" fn handler(_: c_int) {
        // SAFETY: a signal handler may make the bare system call.
        FORKED.store(
            unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32,
            SeqCst,
        );
    }
    common::handle(libc::SIGUSR1, 0, handler);
    let segment = Segment::new();
    let holder = Child::new(|| {
        assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
        segment.word(1).store(1, SeqCst);
        until("the test is over", || segment.word(1).load(SeqCst) == 2);
    });
    until("the lock is held", || segment.word(1).load(SeqCst) == 1);
    let waiter = Child::new(|| {
        segment.word(2).store(1, SeqCst);
        let ended = segment.lock_within(0, Duration::from_secs(2));
        if FORKED.load(SeqCst) == 0 {
            // The child.
            segment.word(3).store(1 + u64::from(ended == Err(RobustError::Copied)), SeqCst);
            return;
        }
        assert_eq!(ended, Err(RobustError::TimedOut), "the parent waits on");
        let child = Child(FORKED.load(SeqCst));
        assert_eq!(child.wait(), 0);
    });
    until("it is about to wait", || segment.word(2).load(SeqCst) == 1);
    common::until_thread_sleeps(waiter.0);
    // SAFETY: the waiter is our own child, and was not waited for yet.
    unsafe { libc::kill(waiter.0, libc::SIGUSR1) };
    assert_eq!(waiter.wait(), 0);
    assert_eq!(segment.word(3).load(SeqCst), 2, "the child was told that the wait is over");
    segment.word(1).store(2, SeqCst);
    assert_eq!(holder.wait(), 0);
}

#[test]
fn many_threads_join_and_leave_at_once() {
    let _alone = alone();
    // A segment that stays, and one that is detached and attached again meanwhile.
    let stays = Segment::new();
    let comes_and_goes = Mutex::new(Segment::new());
    let address = comes_and_goes.lock().expect("new").address();
    for _ in 0..40 {
        in_threads(8, &|| {
            for _ in 0..20 {
                assert!(matches!(stays.lock_within(0, LONG), Ok(Got::Clean)));
                assert!(stays.unlock(0));
                match shared::join(address) {
                    Ok(member) => assert!(member.identity().is_some()),
                    Err(error) => assert_eq!(error, shared::JoinError::Foreign),
                }
                let mut segment = comes_and_goes.lock().expect("no panic");
                match segment.handle.take().map(shared::detach) {
                    Some(Err((handle, _))) => segment.handle = Some(handle),
                    Some(Ok(())) | None => {
                        let file = segment.file;
                        *segment = Segment::map(file, false);
                    }
                }
            }
        });
    }
}
