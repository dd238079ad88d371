//! Stands before `pthread_rwlock_*`.

use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall, Nature};
use crate::me::enter;
use crate::real::{self, LockPointer, REAL, RealFunction, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use crate::thunk::Passage;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};

crate::thunk! {
    pthread_rwlock_init(2) => init;
    pthread_rwlock_destroy(1) => destroy;
    pthread_rwlock_tryrdlock(1) => try_read;
    pthread_rwlock_trywrlock(1) => try_write;
}

crate::cancellable! {
    pthread_rwlock_timedrdlock => timed_read, has_read;
    pthread_rwlock_clockrdlock => clock_read, has_read;
    pthread_rwlock_timedwrlock => timed_write, has_written;
    pthread_rwlock_clockwrlock => clock_write, has_written;
}

crate::waiting_frame! {
    /// Acquires a lock for reading that the fast path does not.
    read => read_begins, has_read
}

crate::waiting_frame! {
    /// Acquires the lock for reading, when the trying form has given the second argument.
    read_tried => read_goes_on, has_read
}

crate::waiting_frame! {
    /// Acquires a lock for writing that the fast path does not.
    write => write_begins, has_written
}

crate::waiting_frame! {
    /// Acquires the lock for writing, when the trying form has given the second argument.
    write_tried => write_goes_on, has_written
}

crate::fast_acquire! {
    pthread_rwlock_rdlock: pthread_rwlock_tryrdlock, READ marked 40 shared 28 nonzero
        => read, read_tried;
    pthread_rwlock_wrlock: pthread_rwlock_trywrlock, NONE marked 40 shared 28 nonzero
        => write, write_tried;
}

crate::fast_release! {
    pthread_rwlock_unlock: pthread_rwlock_unlock as rwlock => unlock;
}

/// A reader-writer lock of the program's. Its static initialisers have fixed
/// the places of these words for good.
#[derive(Clone, Copy)]
struct ProgramRwLock(LockPointer);

impl ProgramRwLock {
    /// The eighth word says whether processes share it.
    const SHARED: usize = 7;
    /// The index of the thirteenth word: who comes first.
    const PREFERENCE: usize = 12;
    /// The one of the three preferences that glibc heeds:
    /// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
    const WRITERS: u32 = 2;

    /// Returns how many read, as its first word says.
    fn readers(self) -> u32 {
        const WRITE_PHASE: u32 = 1;
        const READERS_SHIFT: u32 = 3;
        let word = self.word(0);
        if word & WRITE_PHASE == 0 { word >> READERS_SHIFT } else { 0 }
    }

    fn word(self, index: usize) -> u32 {
        // SAFETY: the program passes a reader-writer lock of 14 words, aligned.
        unsafe { (*self.0.cast::<AtomicU32>().add(index)).load(Relaxed) }
    }
}

impl Nature for ProgramRwLock {
    fn nature(&self) -> (ObjectKind, u16) {
        let mut attributes = attribute::KNOWN;
        if self.word(Self::SHARED) != 0 {
            attributes |= attribute::SHARED;
        }
        if self.word(Self::PREFERENCE) == Self::WRITERS {
            attributes |= attribute::WRITERS_FIRST;
        }
        (ObjectKind::RwLock, attributes)
    }
}

fn waiting(
    lock: LockPointer,
    how: WaitKind,
    until: GivenDeadline,
    site: &CallSite,
) -> LockCall<'_, ProgramRwLock> {
    let mode = if how == WaitKind::READ { Flags::READ } else { Flags::NONE };
    LockCall { mode, ..until.call(lock as u64, ProgramRwLock(lock), how, site) }
}

unsafe extern "C" fn init(lock: LockPointer, attributes: *const c_void, site: &CallSite) -> c_int {
    real::resolve();
    rules::initialises(lock as u64, ObjectKind::RwLock, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_init()(lock, attributes) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.initialised(lock as u64, site, ProgramRwLock(lock));
    }
    answer
}

unsafe extern "C" fn destroy(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    rules::destroys(lock as u64, ObjectKind::RwLock, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_destroy()(lock) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(lock as u64, ObjectKind::RwLock, site);
    }
    answer
}

/// Begins an acquisition. What the trying form refused, the other one gives or refuses in its own way:
/// it also finds out that the caller itself is the writer.
fn begins(
    passage: &mut Passage,
    (how, until): (WaitKind, GivenDeadline),
    tried: c_int,
    site: &CallSite,
    block: usize,
) -> usize {
    let call = waiting(passage.arguments[0] as LockPointer, how, until, site);
    record::acquisition_begins(passage, &call, (tried, CallOutcome::of_posix(tried)), block)
}

unsafe extern "C" fn read_begins(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame. What reading can be had at once, the trying
    // form gives just the same.
    let tried = unsafe { call::pthread_rwlock_tryrdlock()(passage.arguments[0] as LockPointer) };
    passage.arguments[1] = tried as usize;
    // SAFETY: as of this function; the trying form's answer is the second argument now.
    unsafe { read_goes_on(passage, site) }
}

unsafe extern "C" fn read_goes_on(passage: &mut Passage, site: &CallSite) -> usize {
    let tried = passage.arguments[1] as c_int;
    let block = REAL.pthread_rwlock_rdlock.address();
    begins(passage, (WaitKind::READ, GivenDeadline::NEVER), tried, site, block)
}

unsafe extern "C" fn write_begins(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the lock is the program's.
    let tried = unsafe { call::pthread_rwlock_trywrlock()(passage.arguments[0] as LockPointer) };
    passage.arguments[1] = tried as usize;
    // SAFETY: as of this function; the trying form's answer is the second argument now.
    unsafe { write_goes_on(passage, site) }
}

unsafe extern "C" fn write_goes_on(passage: &mut Passage, site: &CallSite) -> usize {
    let tried = passage.arguments[1] as c_int;
    let block = REAL.pthread_rwlock_wrlock.address();
    begins(passage, (WaitKind::WRITE, GivenDeadline::NEVER), tried, site, block)
}

fn ended(passage: &Passage, how: WaitKind, site: &CallSite) {
    let call = waiting(passage.arguments[0] as LockPointer, how, GivenDeadline::NEVER, site);
    record::acquisition_ends(passage, call, CallOutcome::of_posix(passage.result as c_int));
}

unsafe extern "C" fn has_read(passage: &mut Passage, site: &CallSite) {
    ended(passage, WaitKind::READ, site);
}

unsafe extern "C" fn has_written(passage: &mut Passage, site: &CallSite) {
    ended(passage, WaitKind::WRITE, site);
}

unsafe extern "C" fn try_read(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_tryrdlock()(lock) };
    record::tried(
        &waiting(lock, WaitKind::READ, GivenDeadline::NEVER, site),
        CallOutcome::of_posix(answer),
    );
    answer
}

unsafe extern "C" fn try_write(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_trywrlock()(lock) };
    record::tried(
        &waiting(lock, WaitKind::WRITE, GivenDeadline::NEVER, site),
        CallOutcome::of_posix(answer),
    );
    answer
}

unsafe extern "C" fn timed_read(passage: &mut Passage, site: &CallSite) -> usize {
    let block = &REAL.pthread_rwlock_timedrdlock;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the lock and the time are the program's.
    unsafe { timed(passage, WaitKind::READ, libc::CLOCK_REALTIME, 1, site, block) }
}

unsafe extern "C" fn clock_read(passage: &mut Passage, site: &CallSite) -> usize {
    let (clock, block) = (passage.arguments[1] as c_int, &REAL.pthread_rwlock_clockrdlock);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the lock and the time are the program's.
    unsafe { timed(passage, WaitKind::READ, clock, 2, site, block) }
}

unsafe extern "C" fn timed_write(passage: &mut Passage, site: &CallSite) -> usize {
    let block = &REAL.pthread_rwlock_timedwrlock;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the lock and the time are the program's.
    unsafe { timed(passage, WaitKind::WRITE, libc::CLOCK_REALTIME, 1, site, block) }
}

unsafe extern "C" fn clock_write(passage: &mut Passage, site: &CallSite) -> usize {
    let (clock, block) = (passage.arguments[1] as c_int, &REAL.pthread_rwlock_clockwrlock);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the lock and the time are the program's.
    unsafe { timed(passage, WaitKind::WRITE, clock, 2, site, block) }
}

/// Acquires the lock, or gives up at the deadline, which is the argument number `time`.
///
/// # Safety
/// The first argument and the time are the program's.
unsafe fn timed(
    passage: &mut Passage,
    how: WaitKind,
    clock: c_int,
    time: usize,
    site: &CallSite,
    block: &RealFunction,
) -> usize {
    real::resolve();
    let (lock, time) = (passage.arguments[0] as LockPointer, passage.arguments[time]);
    // SAFETY: the caller promises that the time is the program's, or null.
    let until = unsafe { GivenDeadline::new(clock, time as *const libc::timespec) };
    let Some(until) = until else { return record::unrecorded(passage, block.address()) };
    // SAFETY: the caller promises that the lock is the program's; the real function takes the same
    // one.
    let tried = unsafe {
        match how {
            WaitKind::READ => call::pthread_rwlock_tryrdlock()(lock),
            _ => call::pthread_rwlock_trywrlock()(lock),
        }
    };
    begins(passage, (how, until), tried, site, block.address())
}

/// Releases the lock: glibc does not check who unlocks, so that a thread other than the one that
/// acquired may do it.
unsafe extern "C" fn unlock(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    let release = record::release(lock as u64, &ProgramRwLock(lock), site);
    if !release.was_held && !record::is_from_before(lock as u64, ProgramRwLock(lock).readers()) {
        record::release_of_others(lock as u64, site);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_unlock()(lock) };
    release.done(site);
    answer
}
