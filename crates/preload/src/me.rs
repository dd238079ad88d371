//! Leads to the calling thread's part of the ledger.
//!
//! # Role
//! Every path but the fastest begins with [`enter`], which answers `None` when
//! the call is to be passed through unrecorded, and ends when [`Me`] goes.
//!
//! # State
//! `ThreadRecord::busy`: 0, or [`WORKING`] while a [`Me`] exists, or
//! [`BLOCKED`] while the thread is inside a real call that may block, with its
//! wait published. A signal handler that interrupts a thread that is not at 0
//! passes through unrecorded, which is counted: the interrupted work is not
//! finished, and a published wait promises that the held locks do not change
//! (LEDGER-EPISODE of the ledger's `publish`).
//!
//! A handler may leave a blocked call by `longjmp`, or whatever of ours it has
//! interrupted. The next call then comes from a frame above the one that was
//! left, by which it is told.

use crate::key;
use crate::late;
use crate::names;
use crate::real;
use crate::records;
use crate::site::CallSite;
use crate::state::{self, STATE};
use crate::sys;
use crate::tls::{self, ThreadStage, ThreadWords};
use crate::waiters;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicUsize, compiler_fence};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::Extension;
use lockstead_ledger::roles::{RoleCounts, kind_of};
use lockstead_ledger::thread::{ThreadPart, ThreadRecord, state as life};

/// The value of `busy` of a thread inside the library.
pub const WORKING: u32 = 1;
/// The value of `busy` of a thread in a real call that may block.
pub const BLOCKED: u32 = 2;

/// The end of the first thread's stack, 0 while not known.
static FIRST_STACK: AtomicUsize = AtomicUsize::new(0);

/// The calling thread, while it works in the library.
#[derive(Debug)]
pub struct Me {
    /// The ledger of the process.
    pub ledger: &'static Ledger<'static>,
    /// The thread's part of it.
    pub thread: ThreadPart<'static>,
    /// The value that [`ThreadWords::busy_at`] had before.
    busy_before: usize,
}

impl Drop for Me {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        self.record().busy.store(0, Relaxed);
        // For whoever was about to become busy when a handler came.
        tls::words().busy_at.store(self.busy_before, Relaxed);
    }
}

/// Returns the calling thread, which is then busy; `None` if this call is not recorded.
// Always: handed back through memory, what is in it would be waited for.
#[inline(always)]
#[must_use]
pub fn enter() -> Option<Me> {
    entered(None)
}

/// Returns the calling thread as [`enter`] does, for a call at `site` by which another library may
/// do the rest of a wait that is published already: that one is not counted as lost. Such a call
/// comes from a deeper frame, however little.
#[inline(always)]
#[must_use]
pub fn enter_beneath(site: &CallSite) -> Option<Me> {
    entered(Some(site.stack_pointer() as usize))
}

#[inline(always)]
fn entered(beneath: Option<usize>) -> Option<Me> {
    let ledger = state::ledger()?;
    let words = tls::own()?;
    let base = words.record.load(Relaxed);
    if base.is_null() {
        return first_seen(ledger, words);
    }
    // SAFETY: `adopt` has set the pointer to a record of this process's ledger: a
    // forked child has an empty state page until its handler has cleared the
    // pointer (STATE-OWN-LEDGER, kept by `state`).
    let thread = unsafe { ThreadPart::at(base, STATE.held.load(Relaxed)) };
    if thread.record.busy.load(Relaxed) != 0 && !left_by_longjmp(ledger, thread, words, beneath) {
        let skipped = &thread.record.skipped;
        if beneath.is_none() || thread.record.busy.load(Relaxed) != BLOCKED {
            skipped.store(skipped.load(Relaxed) + 1, Relaxed);
        }
        return None;
    }
    Some(Me::work(ledger, thread))
}

/// Returns the record of the calling thread, whatever that is doing; `None` if it has none yet.
pub fn own_record() -> Option<&'static ThreadRecord> {
    state::ledger()?;
    let base = tls::own()?.record.load(Relaxed);
    // SAFETY: as in `entered` (STATE-OWN-LEDGER, kept by `state`).
    (!base.is_null()).then(|| unsafe { ThreadPart::at(base, STATE.held.load(Relaxed)) }.record)
}

impl Me {
    #[inline(always)]
    pub(crate) fn work(ledger: &'static Ledger<'static>, thread: ThreadPart<'static>) -> Me {
        let words = tls::words();
        let busy_before = words.busy_at.load(Relaxed);
        words.busy_at.store(&raw const thread as usize, Relaxed);
        // A handler in between leaves it as it was.
        thread.record.busy.store(WORKING, Relaxed);
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        Me { ledger, thread, busy_before }
    }

    /// Returns the first page of the thread's part.
    #[inline(always)]
    #[must_use]
    pub fn record(&self) -> &'static ThreadRecord {
        self.thread.record
    }

    /// Returns what threads of this one's kind have done with the lock of these statistics.
    pub fn role<'a>(&self, statistics: &'a Extension) -> &'a RoleCounts {
        statistics.roles.of(kind_of(self.record().start_routine.load(Relaxed)))
    }

    /// Notes that the thread's stack is `[low, high)`, of which all that lies
    /// above the stack pointer is readable.
    pub fn on_stack(&self, low: usize, high: usize) {
        let (record, words) = (self.record(), tls::words());
        record.stack_low.store(low as u64, Relaxed);
        record.stack_high.store(high as u64, Relaxed);
        words.stack_low.store(low, Relaxed);
        words.stack_high.store(high, Relaxed);
        #[cfg(feature = "check")]
        crate::order::places::note_stack(low as u64, high as u64);
    }

    /// Leaves the library for a real call that may block, with the wait
    /// published; [`resume`] comes back.
    pub fn block(self, site: &CallSite) {
        tls::words().busy_at.store(site.stack_pointer() as usize, Relaxed);
        let record = self.record();
        core::mem::forget(self);
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        record.busy.store(BLOCKED, Relaxed);
    }
}

/// Returns to the library after [`Me::block`], for the call at `site`; without one,
/// for the call that blocked. `None` if that call is not what the thread is blocked
/// in (any more): then there is nothing to finish. So it is for a handler's call
/// that interrupted the one that blocked.
#[must_use]
pub fn resume(site: Option<&CallSite>) -> Option<Me> {
    let ledger = state::ledger()?;
    let words = tls::own()?;
    let base = words.record.load(Relaxed);
    if base.is_null() {
        return None;
    }
    // SAFETY: `adopt` has set the pointer to a record of this process's ledger, which stays mapped
    // (STATE-OWN-LEDGER, kept by `state`).
    let thread = unsafe { ThreadPart::at(base, STATE.held.load(Relaxed)) };
    let blocked_at = words.busy_at.load(Relaxed);
    (thread.record.busy.load(Relaxed) == BLOCKED
        && site.is_none_or(|site| site.stack_pointer() as usize == blocked_at))
    .then(|| Me::work(ledger, thread))
}

/// Does `work` for a call by a handler that has interrupted the thread in a real call that may
/// block, after [`enter`] has passed it through. The work must leave the held stack and
/// the published wait as they are, for these promise that they stay.
#[cfg(feature = "check")]
pub fn beside_wait(work: impl FnOnce(&Me)) {
    let (Some(ledger), Some(words)) = (state::ledger(), tls::own()) else { return };
    let base = words.record.load(Relaxed);
    if base.is_null() {
        return;
    }
    // SAFETY: `adopt` has set the pointer to a record of this process's ledger, which stays mapped
    // (STATE-OWN-LEDGER, kept by `state`).
    let thread = unsafe { ThreadPart::at(base, STATE.held.load(Relaxed)) };
    let record = thread.record;
    if record.busy.load(Relaxed) == BLOCKED && record.context.load(Relaxed) != 0 {
        let me = Me::work(ledger, thread);
        work(&me);
        words.busy_at.store(me.busy_before, Relaxed);
        core::mem::forget(me);
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        record.busy.store(BLOCKED, Relaxed);
    }
}

/// The bytes of stack between a call that was interrupted and the first call of the handler: the
/// kernel's frame alone is larger.
const HANDLERS_FRAME: usize = 768;

/// How far above the address that it names the frame of a function may reach.
const WAITING_FRAME: usize = 1024;

/// Notes that the wait that was just published is not over when the call that published it has
/// returned: it lasts as long as the frame that has this address. Calls from that frame and from
/// deeper ones do not show that the wait was left.
pub fn waits_in(frame: usize) {
    let words = tls::words();
    let at = words.busy_at.load(Relaxed).max(frame);
    words.busy_at.store(at + WAITING_FRAME + HANDLERS_FRAME, Relaxed);
}

/// Tells whether the thread is busy no more, though it never came back: then it calls
/// from a frame no deeper than the one that was. (Calls from deeper frames are
/// taken for a handler's until there is a shallower one.) What was left half done
/// stays so: each step of ours leaves the ledger such that others can read it,
/// and so can we. A child that shares the memory and the thread pointer, on a stack
/// of its own, has not left what the thread is in.
#[cold]
fn left_by_longjmp(
    ledger: &'static Ledger<'static>,
    thread: ThreadPart<'static>,
    words: &ThreadWords,
    at: Option<usize>,
) -> bool {
    let record = thread.record;
    let here = at.unwrap_or(&raw const words as usize + HANDLERS_FRAME - 1);
    let left = here >= words.busy_at.load(Relaxed)
        && !on_stack_for_handlers()
        && record.tid.load(Relaxed) == sys::gettid();
    if left {
        waiters::wait_left(ledger, thread);
        record.wait.end();
    }
    left
}

/// Tells whether the thread runs on the stack that it has set aside for its handlers,
/// which may lie anywhere; the kernel's answer.
pub(crate) fn on_stack_for_handlers() -> bool {
    let mut stack = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    let place = &raw mut stack as usize;
    // SAFETY: the kernel writes its answer to a structure on this stack.
    let asked = unsafe { sys::call(libc::SYS_sigaltstack, [0, place, 0, 0, 0, 0]) };
    asked.is_ok() && stack.ss_flags & libc::SS_ONSTACK != 0
}

/// Claims a record for the calling thread, which has none yet.
#[cold]
#[inline(never)]
fn first_seen(ledger: &'static Ledger<'static>, words: &ThreadWords) -> Option<Me> {
    if words.stage.load(Relaxed) != ThreadStage::New as usize {
        return None;
    }
    // Whatever happens now, a handler in between does not come here again.
    words.stage.store(ThreadStage::Silent as usize, Relaxed);
    let Some(thread) = records::claim(ledger) else {
        ledger.header().losses.threads.fetch_add(1, Relaxed);
        return None;
    };
    let me = Me::work(ledger, thread);
    #[cfg(feature = "check")]
    if sys::gettid() != sys::getpid() {
        crate::order::chains::one_unseen_thread_more();
    }
    adopt(&me, words);
    if words.stack_high.load(Relaxed) == 0 && sys::gettid() == sys::getpid() {
        let high = FIRST_STACK.load(Relaxed);
        me.on_stack(high.saturating_sub(first_stack_size()), high);
    }
    if late::is_late() {
        names::note_if_own(me.record());
        if words.stack_high.load(Relaxed) == 0
            && let Some((low, high)) = late::stack()
        {
            me.on_stack(low, high);
        }
    }
    Some(me)
}

/// Makes a claimed record that of the calling thread.
fn adopt(me: &Me, words: &ThreadWords) {
    let record = me.record();
    record.tid.store(sys::gettid(), Relaxed);
    // SAFETY: `start` makes a ledger only after `real::resolve`.
    record.handle.store(unsafe { real::call::pthread_self()() }, Relaxed);
    key::watch_end(core::ptr::from_ref(record) as usize);
    if record.began.load(Relaxed) == 0 {
        record.began.store(sys::now(), Relaxed);
    }
    // ord: PRE-10 (release): the handle, to who joins.
    record.state.store(life::LIVE, Release);
    words.rounds.store(0, Relaxed);
    words.record.store(core::ptr::from_ref(record).cast_mut().cast(), Relaxed);
    words.stage.store(ThreadStage::Recorded as usize, Relaxed);
    #[cfg(feature = "check")]
    me.compute_keys();
}

/// Makes a record that its creator has claimed that of the calling thread, which begins.
///
/// # Safety
/// `record` was claimed with [`records::claim`] for this thread, in this process.
#[must_use]
pub unsafe fn begin_with(ledger: &'static Ledger<'static>, record: *const ThreadRecord) -> Me {
    // SAFETY: the caller promises a record that was claimed for this thread.
    let thread = unsafe { ThreadPart::at(record.cast(), STATE.held.load(Relaxed)) };
    let me = Me::work(ledger, thread);
    let words = tls::words();
    // In one instruction: a handler comes before or after.
    let place = core::ptr::from_ref(thread.record).cast_mut().cast();
    if words.record.compare_exchange(core::ptr::null_mut(), place, Relaxed, Relaxed).is_ok() {
        adopt(&me, words);
        return me;
    }
    // One came before, has used a lock and so made a record: that one stays.
    drop(me);
    // SAFETY: the pointer leads to a record of this process's ledger (STATE-OWN-LEDGER, kept by
    // `state`); no handler leaves the thread's first frames but to come back, so that it is not
    // busy.
    let own = Me::work(ledger, unsafe {
        ThreadPart::at(words.record.load(Relaxed), STATE.held.load(Relaxed))
    });
    own.is_what_was_expected(thread.record);
    own
}

impl Me {
    /// Takes over what the thread's creator has noted in `expected`, which it had claimed; the
    /// thread has a record already.
    fn is_what_was_expected(&self, expected: &ThreadRecord) {
        let record = self.record();
        record.start_routine.store(expected.start_routine.load(Relaxed), Relaxed);
        record.began.store(expected.began.load(Relaxed), Relaxed);
        record.creator.store(expected.creator.load(Relaxed), Relaxed);
        record.creation_stack.store(expected.creation_stack.load(Relaxed), Relaxed);
        records::abandon(expected);
    }
}

/// Ends the recording of the calling thread.
pub fn fall_silent() {
    let Some(me) = enter() else { return };
    let words = tls::words();
    words.stage.store(ThreadStage::Silent as usize, Relaxed);
    words.record.store(core::ptr::null_mut(), Relaxed);
    me.end();
}

impl Me {
    /// Ends the record of the thread, and lets another one have it. That comes last: from there on nothing in
    /// it is this thread's, not even that it is busy.
    pub(crate) fn end(self) {
        let record = self.record();
        let is_spare = self.ends();
        drop(self);
        if is_spare {
            records::ends(record);
        }
    }

    /// Gives what the thread has counted by itself to the locks. Returns whether nothing is left for which
    /// its record has to be kept.
    fn ends(&self) -> bool {
        let record = self.record();
        // Stored before the counts are given to the locks: the rule of joins takes a thread without counts
        // for one that has taken no lock, unless it is ending.
        record.ended.store(sys::now(), Relaxed);
        #[cfg(feature = "check")]
        self.stack_ends();
        self.give_up_all();
        // A handler may have ended the thread while it waited.
        if let Some((_, waiting)) = record.wait.read() {
            self.has_abandoned(&waiting);
        }
        record.wait.end();
        self.gives_up_robust();
        let now = sys::now();
        record.ended.store(now, Relaxed);
        self.leave_life(now);
        self.gives_ring_back();
        let stack = self.thread.stack();
        let holds = (0..stack.depth()).any(|i| stack.entry(i).address() != 0);
        if holds {
            record.state.store(life::LEAKED, Relaxed);
            return false;
        }
        stack.reset();
        self.ledger.header().threads_ended.fetch_add(1, Relaxed);
        true
    }

    /// Notes the name that a thread of this process was given.
    pub fn note_name(&self, handle: u64, name: &[u8]) {
        let own = self.record();
        let is = |record: &ThreadRecord| {
            record.state.load(Relaxed) == life::LIVE && record.handle.load(Relaxed) == handle
        };
        let record = if is(own) {
            Some(own)
        } else {
            self.ledger.threads().map(|thread| thread.record).find(|record| is(record))
        };
        let Some(record) = record else { return };
        let mut bytes = [0; 16];
        let length = name.len().min(15);
        bytes[..length].copy_from_slice(&name[..length]);
        for (word, half) in record.name.iter().zip(bytes.chunks_exact(8)) {
            word.store(half.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)), Relaxed);
        }
    }
}

/// Notes that the first thread's stack ends at `high`, or a little above.
pub fn note_first_stack(high: usize) {
    FIRST_STACK.store(high, Relaxed);
}

/// Returns how far below its end the first thread's stack can reach: nothing else is
/// mapped there.
fn first_stack_size() -> usize {
    const KERNELS_GAP: usize = 128 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let place = &raw mut limit as usize;
    // SAFETY: the kernel writes its answer to a structure on this stack.
    let asked =
        unsafe { sys::call(libc::SYS_prlimit64, [0, libc::RLIMIT_STACK as usize, 0, place, 0, 0]) };
    if asked.is_err() { 0 } else { (limit.rlim_cur as usize).min(KERNELS_GAP) }
}
