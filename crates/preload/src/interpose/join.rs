//! Stands before the functions that join and detach threads.
//!
//! A thread that joins waits for the other one. Afterwards libc may give the
//! same `pthread_t` to a new thread, which is why the record of the thread that
//! was joined or detached says so: then nobody waits for that one any more.

use super::c11::answer;
use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall};
use crate::me::{Me, enter};
use crate::real::{self, REAL, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use crate::thunk::Passage;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::WaitKind;
use lockstead_ledger::thread::state as life;

crate::thunk! {
    pthread_tryjoin_np(2) => try_join;
    pthread_detach(1) => detach;
    thrd_detach(1) => detach_c11;
}

crate::cancellable! {
    pthread_join => join, joined;
    pthread_timedjoin_np => timed_join, joined;
    pthread_clockjoin_np => clock_join, joined;
    thrd_join => join_c11, joined;
}

type ThreadHandle = libc::pthread_t;

/// The states of a thread that has ended.
const ENDED: &[u32] = &[life::ENDED, life::LEAKED];

/// The record after the one that was found last: threads are often joined in
/// the order in which they were made.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The thread that a `pthread_t` stood for at some time: the index of its record plus one, and the
/// record's generation. Index 0: it has none.
#[derive(Clone, Copy)]
struct KnownThread {
    index: usize,
    generation: usize,
}

impl Me {
    fn known(&self, handle: ThreadHandle) -> Option<KnownThread> {
        // Of a thread that runs the handle is certainly its own; an ended one
        // may have been left behind by a program that never joined it.
        let found = self.find(handle, &[life::LIVE]);
        let found = found.or_else(|| self.find(handle, ENDED))?;
        NEXT.store(found.index, Relaxed);
        Some(found)
    }

    fn find(&self, handle: ThreadHandle, states: &[u32]) -> Option<KnownThread> {
        let used = self.ledger.used(LedgerPart::Threads);
        let first = NEXT.load(Relaxed);
        (0..used).map(|i| (first + i) % used).find_map(|index| {
            let record = self.ledger.thread(index)?.record;
            // ord: PRE-10 (acquire): the number of the claim before the rest. Where it is that of the record's next
            // thread already, so is what follows, by the state, and the handle is another one.
            let generation = record.generation.load(Acquire) as usize;
            let is = states.contains(&record.state.load(Acquire)) // ord: PRE-10 (acquire): the handle
                && record.handle.load(Relaxed) == handle
                && !record.is_handle_released();
            is.then_some(KnownThread { index: index + 1, generation })
        })
    }

    fn released(&self, known: KnownThread) {
        let Some(thread) = self.ledger.thread(known.index - 1) else { return };
        thread.record.release_handle(known.generation as u32);
    }
}

/// Returns the thread that `handle` stands for now; asked before the handle can come to
/// stand for another.
fn known(handle: ThreadHandle) -> Option<KnownThread> {
    enter()?.known(handle)
}

fn released(known: Option<KnownThread>) {
    if let Some(known) = known
        && let Some(me) = enter()
    {
        me.released(known);
    }
}

/// Records that the thread has been joined.
fn ended(known: Option<KnownThread>) {
    #[cfg(feature = "check")]
    crate::order::one_thread_less();
    released(known);
}

fn waiting(
    handle: ThreadHandle,
    until: GivenDeadline,
    site: &CallSite,
) -> LockCall<'_, (ObjectKind, u16)> {
    until.call(handle, (ObjectKind::Unknown, 0), WaitKind::JOIN, site)
}

/// Calls `pthread_tryjoin_np`, and records what follows from it.
///
/// # Safety
/// As of that function.
unsafe fn attempt(handle: ThreadHandle, result: *mut *mut c_void) -> c_int {
    let known = known(handle);
    // SAFETY: INTERPOSE-ARGUMENTS: the caller passes on the arguments of the program.
    let answer = unsafe { call::pthread_tryjoin_np()(handle, result) };
    if answer == 0 {
        ended(known);
    }
    answer
}

unsafe extern "C" fn try_join(
    handle: ThreadHandle,
    result: *mut *mut c_void,
    _: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { attempt(handle, result) }
}

/// Has the rules look at a join before it may end.
fn looks(handle: ThreadHandle, site: &CallSite) {
    if cfg!(feature = "check")
        && let Some(me) = enter()
        && me.thread.stack().depth() != 0
        && let Some(known) = me.known(handle)
        && let Some(thread) = me.ledger.thread(known.index - 1)
    {
        rules::joins(&me, thread, site);
    }
}

/// Tries to join; while the thread runs, publishes the wait and has `real` called. All
/// other answers are those of the waiting functions too, and are final: once
/// the thread has been joined its handle is no more.
///
/// With a time that may be refused, which is no `until`, nothing is tried: glibc 2.36 looks at the time only
/// when it waits, 2.43 before it looks at the thread.
///
/// # Safety
/// The passage has the arguments of a joining function, `result` among them.
unsafe fn begin(
    passage: &mut Passage,
    result: *mut *mut c_void,
    until: Option<GivenDeadline>,
    site: &CallSite,
    real: usize,
) -> usize {
    let handle = passage.arguments[0] as ThreadHandle;
    looks(handle, site);
    if until.is_some() {
        // SAFETY: INTERPOSE-ARGUMENTS: the caller passes on the arguments of the program.
        let answer = unsafe { attempt(handle, result) };
        if answer != libc::EBUSY {
            passage.result = answer as isize;
            return 0;
        }
    }
    if let Some(known) = known(handle) {
        passage.notes = [known.index, known.generation, 0];
    }
    record::wait_begins(&waiting(handle, until.unwrap_or(GivenDeadline::PAST), site));
    real
}

unsafe extern "C" fn joined(passage: &mut Passage, site: &CallSite) {
    let [index, generation, _] = passage.notes;
    let answer = passage.result as c_int;
    let call = waiting(passage.arguments[0] as ThreadHandle, GivenDeadline::NEVER, site);
    record::wait_ends(&call, CallOutcome::of_posix(answer));
    if answer == 0 {
        let known = (index != 0).then_some(KnownThread { index, generation });
        // It may not have begun when the join did; it has ended by now.
        ended(known.or_else(|| enter()?.find(passage.arguments[0] as ThreadHandle, ENDED)));
    }
}

unsafe extern "C" fn join(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    passage.notes = [0; 3];
    let result = passage.arguments[1] as *mut *mut c_void;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the passage has the program's arguments.
    unsafe { begin(passage, result, Some(GivenDeadline::NEVER), site, REAL.pthread_join.address()) }
}

unsafe extern "C" fn timed_join(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    passage.notes = [0; 3];
    let [_, result, time, _] = passage.arguments;
    let real = REAL.pthread_timedjoin_np.address();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the passage has the program's arguments, the
    // time among them.
    unsafe {
        let until = GivenDeadline::new(libc::CLOCK_REALTIME, time as *const libc::timespec);
        begin(passage, result as *mut *mut c_void, until, site, real)
    }
}

unsafe extern "C" fn clock_join(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    passage.notes = [0; 3];
    let [_, result, clock, time] = passage.arguments;
    let real = REAL.pthread_clockjoin_np.address();
    let clock = clock as c_int;
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
        // Refused whatever the thread does.
        return real;
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the passage has the program's arguments, the
    // time among them.
    unsafe {
        let until = GivenDeadline::new(clock, time as *const libc::timespec);
        begin(passage, result as *mut *mut c_void, until, site, real)
    }
}

unsafe extern "C" fn join_c11(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    passage.notes = [0; 3];
    let mut result = null_mut();
    let real = REAL.thrd_join.address();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the handle is the program's; the place of the
    // result is ours.
    if unsafe { begin(passage, &raw mut result, Some(GivenDeadline::NEVER), site, real) } != 0 {
        return real;
    }
    if passage.result != 0 {
        passage.result = answer::ERROR as isize;
    } else if passage.arguments[1] != 0 {
        // SAFETY: INTERPOSE-ARGUMENTS: the program passes null, which is excluded, or a place for
        // the result.
        unsafe { (passage.arguments[1] as *mut c_int).write(result as usize as c_int) };
    }
    0
}

unsafe extern "C" fn detach(handle: ThreadHandle, _: &CallSite) -> c_int {
    real::resolve();
    let known = known(handle);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the handle is the program's.
    let answer = unsafe { call::pthread_detach()(handle) };
    if answer == 0 {
        released(known);
    }
    answer
}

unsafe extern "C" fn detach_c11(handle: ThreadHandle, _: &CallSite) -> c_int {
    real::resolve();
    let known = known(handle);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the handle is the program's.
    let answer = unsafe { call::thrd_detach()(handle) };
    if answer == answer::SUCCESS {
        released(known);
    }
    answer
}
