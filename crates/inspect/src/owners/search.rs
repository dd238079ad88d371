//! Which of the awaited locks one thread holds.
//!
//! # Role
//! Each frame of the thread is asked what an exception from there would release: the guards that
//! are alive. A thread that sleeps on a futex word is then asked what it would do next, were it
//! woken: one that waits for a condition would take the mutex back first, and so does not hold it,
//! although its guard is alive.
//!
//! # What is concluded
//! Of each lock the first that a run does to it counts: what is taken in a run and then released
//! was not held before. What cannot be decided is left to the caller as *may hold*.

use super::event::RunEnd;
use super::lsda::Landing;
use super::moment::{FrameMoment, Returned, ThreadMoment};
use super::native::Native;
use super::overlay::Overlay;
use super::processor::Processor;
use super::run::{DecodedCode, EXCEPTION, KnownCode, Ran, run};
use super::shape::{AwaitedLock, LockShape, Touch};
use super::state::State;
use super::value::Value;
use crate::futexes::FutexRole;
use crate::snapshot::model::HolderEvidence;
use crate::unwind::Registers;
use crate::waits::modes::{HoldMode, WaitMode};
use lockstead_unwind::Register as UnwindRegister;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Frames of a thread that are looked at, from the innermost on.
pub const MOST_FRAMES: usize = 100;

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundHold {
    /// The lock that it holds.
    pub lock: AwaitedLock,
    /// How it holds it.
    pub mode: HoldMode,
    /// What shows that it does.
    pub evidence: HolderEvidence,
    /// The index of the frame that would release it.
    pub frame: usize,
    /// Whether its landing pad would; else the code behind the call.
    pub at_pad: bool,
}

/// What was found of one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadFound {
    /// The locks that it holds.
    pub holds: Vec<FoundHold>,
    /// Locks of which it has a guard that may be an empty one, as that of a thread that waits for
    /// a condition.
    pub may_hold: Vec<AwaitedLock>,
    /// The indices of frames that would catch the exception: what they hold beside is not known.
    pub catches: Vec<usize>,
    /// More might be found if more of its registers were known.
    pub wants_registers: bool,
}

/// What the runs of one look share.
pub struct OwnerSearch<'s> {
    /// What is known of the process's code.
    pub code: &'s dyn KnownCode,
    /// Its code and memory.
    pub decoded: &'s DecodedCode<'s>,
    /// What its functions compare with to see whether their frames were overwritten.
    pub canary: Option<u64>,
    /// The addresses of locks whose guards cannot lose them: of Rust's std, by names.
    pub kept: &'s BTreeSet<u64>,
}

impl OwnerSearch<'_> {
    /// Returns which of these locks the thread holds, by the landing pads of its frames.
    #[must_use]
    pub fn by_pads(&self, onwards: &Onwards<'_>, locks: &[AwaitedLock]) -> ThreadFound {
        let mut found = ThreadFound::default();
        let thread = onwards.thread;
        // Locks that an inner frame would take back: an outer one has a guard without its lock.
        let mut retaken: Vec<AwaitedLock> = Vec::new();
        for (at, frame) in thread.frames.iter().enumerate().take(MOST_FRAMES) {
            let Some(Landing::Pad(pad)) = frame.landing else { continue };
            let ran = self.pad(thread, frame, pad);
            found.wants_registers |= ran.is_for_want_of_registers();
            if ran.end != RunEnd::Resumed {
                found.catches.push(at);
            }
            for &lock in locks {
                let Some(touch) = lock.first_touch(&ran.events) else { continue };
                if touch == Touch::Taken {
                    retaken.push(lock);
                }
                let Some(mode) = touch.mode() else { continue };
                if retaken.contains(&lock) || !lock.gives_back(&ran.events) {
                    continue;
                }
                let known = found.holds.iter().any(|hold| hold.lock == lock);
                if known || found.may_hold.contains(&lock) || !self.is_held_so(&lock, mode) {
                    continue;
                }
                // Of a semaphore others may put units back as well.
                let evidence = match frame.guessed || lock.shape == LockShape::Semaphore {
                    true => HolderEvidence::Likely,
                    false => HolderEvidence::Pad,
                };
                let hold = FoundHold { lock, mode, evidence, frame: at, at_pad: true };
                match judge(thread, &hold, onwards) {
                    Judgement::Holds => found.holds.push(hold),
                    Judgement::Likely => {
                        found.holds.push(FoundHold { evidence: HolderEvidence::Likely, ..hold });
                    }
                    Judgement::DoesNot => {}
                    Judgement::Open { registers } => {
                        found.wants_registers |= registers;
                        found.may_hold.push(lock);
                    }
                }
            }
        }
        found
    }

    /// Returns which of these locks the thread would release if the calls that it is in returned,
    /// where a frame has no pad: the compiler thinks that no exception comes from there, or the
    /// program was compiled without. A range of calls that an exception passes through may have one
    /// in it that throws none, into a library of C: that range says nothing of it.
    #[must_use]
    pub fn by_what_follows(
        &self,
        onwards: &Onwards<'_>,
        locks: &[AwaitedLock],
        catches: &[usize],
    ) -> ThreadFound {
        let mut found = ThreadFound::default();
        let thread = onwards.thread;
        let Some(innermost) = innermost(thread) else { return found };
        let is_mute = |at: usize| is_mute(thread, at) || catches.contains(&at);
        // Locks that the thread would take first, as one of its frames tells.
        let mut taken: Vec<AwaitedLock> = Vec::new();
        // All of them at once, and then each alone, as if what it called had returned anything.
        let each = innermost..thread.frames.len().min(MOST_FRAMES);
        let each = each.map(|at| (at, onwards.of(at)));
        for (begins, ran) in std::iter::once((innermost, onwards.whole())).chain(each) {
            found.wants_registers |= ran.is_for_want_of_registers();
            for &lock in locks {
                let first = first_of_own(thread, &lock, &ran);
                let Some((touch, frame)) = first.map(|(touch, left)| (touch, begins + left)) else {
                    continue;
                };
                let known = found.holds.iter().any(|hold| hold.lock == lock);
                if touch == Touch::Taken && !known {
                    taken.push(lock);
                }
                if known || taken.contains(&lock) || !is_mute(frame) {
                    continue;
                }
                let Some(mode) = touch.mode() else { continue };
                if !lock.gives_back(&ran.events) || !self.is_held_so(&lock, mode) {
                    continue;
                }
                let evidence = HolderEvidence::Likely;
                let hold = FoundHold { lock, mode, evidence, frame, at_pad: false };
                if matches!(judge(thread, &hold, onwards), Judgement::Holds | Judgement::Likely) {
                    found.holds.push(hold);
                }
            }
        }
        found
    }

    /// Tells whether the lock's word may be that of one that is held so.
    fn is_held_so(&self, lock: &AwaitedLock, mode: HoldMode) -> bool {
        let (size, _) = lock.free();
        let word = self.decoded.pages().number(lock.address, size);
        word.is_none_or(|word| lock.allows(mode, word))
    }

    /// Returns, if the thread may wait for a unit of a semaphore, whether it would take one if there
    /// were one; `None` where its registers would have to be known.
    #[must_use]
    pub fn takes_unit(&self, thread: &ThreadMoment) -> Option<bool> {
        let locks = thread.wait.iter().flat_map(|wait| &wait.locks);
        let mut semaphores = locks.filter(|lock| lock.shape == LockShape::Semaphore);
        let (Some(lock), Some(at)) = (semaphores.next(), innermost(thread)) else {
            return Some(false);
        };
        let ran = self.onwards(thread, at, true);
        let takes = lock.takes_unit(&ran.events);
        (takes || !ran.is_for_want_of_registers()).then_some(takes)
    }

    /// Returns whether the thread waits for a lock of the kind of Rust's mutex: names say so, or it
    /// would take the lock if that were free. `None` where its registers would have to be known.
    #[must_use]
    pub fn takes_mutex(&self, thread: &ThreadMoment) -> Option<bool> {
        let Some(wait) = &thread.wait else { return Some(false) };
        let mut mutexes = wait.locks.iter().filter(|lock| lock.shape == LockShape::RustMutex);
        let (Some(lock), Some(at)) = (mutexes.next(), innermost(thread)) else {
            return Some(false);
        };
        if wait.known.is_some() {
            return Some(true);
        }
        let ran = self.onwards(thread, at, true);
        let takes = lock.first_touch(&ran.events) == Some(Touch::Taken);
        (takes || !ran.is_for_want_of_registers()).then_some(takes)
    }

    /// Returns which of these locks the thread would release before it takes them, if one or all of
    /// the calls that it is in returned, and how it would hold them. Of a semaphore each of these runs counts, for several may
    /// put a unit back; of another lock the first one that comes to it. Returns, too, whether more
    /// might be found if more of the thread's registers were known.
    #[must_use]
    pub fn gives_next(
        &self,
        onwards: &Onwards<'_>,
        locks: &[AwaitedLock],
    ) -> (Vec<(AwaitedLock, HoldMode)>, bool) {
        let thread = onwards.thread;
        let Some(innermost) = innermost(thread) else { return (Vec::new(), false) };
        let each = innermost..thread.frames.len().min(MOST_FRAMES);
        let each = each.map(|at| onwards.of(at));
        let runs: Vec<Rc<Ran>> = std::iter::once(onwards.whole()).chain(each).collect();
        let may_retake = thread.wait.as_ref().is_some_and(|wait| wait.may_retake);
        let gives = |lock: &AwaitedLock| {
            let first = runs.iter().filter_map(|ran| first_of_own(thread, lock, ran));
            let mut first = first.map(|(touch, _)| Some((*lock, touch.mode()?)));
            match lock.shape {
                LockShape::Semaphore => first.flatten().next(),
                _ if may_retake => None,
                _ => first.next().flatten(),
            }
        };
        let wants_registers = runs.iter().any(|ran| ran.is_for_want_of_registers());
        (locks.iter().filter_map(gives).collect(), wants_registers)
    }

    fn pad(&self, thread: &ThreadMoment, frame: &FrameMoment, pad: u64) -> Ran {
        let registers = frame.registers.with(UnwindRegister(0), Some(EXCEPTION));
        // The exception is none that the frame catches.
        let registers = registers.with(UnwindRegister(1), Some(0));
        let state = self.state(thread, &registers, pad);
        run(state, self.code, self.decoded, false)
    }

    /// Runs on where the call returns that a frame is in.
    fn onwards(&self, thread: &ThreadMoment, at: usize, leaves: bool) -> Ran {
        let frame = thread.frames.get(at);
        let Some(frame) = frame else { return Ran::nothing() };
        let is_innermost = innermost(thread) == Some(at);
        let returned = if is_innermost { thread.returns } else { Returned::Anything };
        let [first, second] = returned.results();
        let registers = frame.registers.with(UnwindRegister(0), first);
        let registers = registers.with(UnwindRegister(1), second);
        let mut state = self.state(thread, &registers, frame.at.address);
        if let Some(wait) = &thread.wait {
            // What a thread finds that goes on: its word has changed, and the lock is free, or its
            // own where the function that waits has returned.
            let _ = state.memory.write(wait.word, Value::of(0), 4);
            for lock in &wait.locks {
                let (size, number) = match is_innermost {
                    true => lock.free(),
                    false => lock.taken(wait.mode(lock).unwrap_or(WaitMode::Alone)),
                };
                if size != 0 {
                    let _ = state.memory.write(lock.address, Value::of(number), size);
                }
            }
        }
        run(state, self.code, self.decoded, leaves)
    }

    fn state(&self, thread: &ThreadMoment, registers: &Registers, pc: u64) -> State<'_, Native> {
        let memory = Overlay::new(self.decoded.pages());
        let known = |number| registers.get(UnwindRegister(number));
        let mut state = State::new(memory, Native::with(known), pc);
        state.thread_pointer = thread.thread_pointer;
        state.canary = self.canary;
        state
    }
}

/// What a thread would do next: run when it is asked for, and once.
pub struct Onwards<'a> {
    search: &'a OwnerSearch<'a>,
    thread: &'a ThreadMoment,
    whole: OnceCell<Rc<Ran>>,
    each: RefCell<HashMap<usize, Rc<Ran>>>,
}

impl<'a> Onwards<'a> {
    /// Has run nothing yet.
    #[must_use]
    pub fn new(search: &'a OwnerSearch<'a>, thread: &'a ThreadMoment) -> Self {
        Onwards { search, thread, whole: OnceCell::new(), each: RefCell::default() }
    }

    /// Returns what it would do if the call that it sleeps in returned.
    fn whole(&self) -> Rc<Ran> {
        let run = || match innermost(self.thread) {
            Some(at) => self.search.onwards(self.thread, at, true),
            None => Ran::nothing(),
        };
        self.whole.get_or_init(|| Rc::new(run())).clone()
    }

    /// Returns what one of its frames would do if what it called returned.
    fn of(&self, at: usize) -> Rc<Ran> {
        let run = || Rc::new(self.search.onwards(self.thread, at, false));
        self.each.borrow_mut().entry(at).or_insert_with(run).clone()
    }
}

/// Judges a guard of a lock that is alive: a thread that waits for a condition has one without the
/// lock, and so has one that has given the lock back by hand.
fn judge(thread: &ThreadMoment, hold: &FoundHold, onwards: &Onwards<'_>) -> Judgement {
    let ahead = onwards.whole();
    let open = Judgement::Open { registers: ahead.is_for_want_of_registers() };
    if is_own(thread, &hold.lock) {
        let wanted = thread.wait.as_ref().and_then(|wait| match hold.lock.shape {
            LockShape::RustRwLock | LockShape::ParkingRwLock | LockShape::OwnRead => {
                wait.mode(&hold.lock)
            }
            _ => {
                let role = wait.known.map(|known| known.role);
                role.filter(|&role| role == FutexRole::Exclusive).map(|_| WaitMode::Alone)
            }
        });
        // A condition takes a lock back as it was given back.
        let is_other = |wanted: WaitMode| hold.mode.is_shared() && !wanted.is_shared();
        if wanted.is_some_and(|wanted| is_other(wanted) && hold.mode.bars(wanted)) {
            return Judgement::Holds;
        }
        let has_two = first_of_own(thread, &hold.lock, &ahead).is_some();
        return if has_two { Judgement::Holds } else { open };
    }
    let wait = thread.wait.as_ref();
    match hold.lock.first_touch(&ahead.events) {
        Some(Touch::Taken) => return Judgement::DoesNot,
        _ if wait.is_some_and(|wait| wait.may_retake) => return open,
        Some(_) => return Judgement::Holds,
        None => {}
    }
    // The run was left before. Each frame alone comes further.
    let first = innermost(thread).unwrap_or(0);
    let alone = (first..=hold.frame).map(|at| hold.lock.first_touch(&onwards.of(at).events));
    let alone: Vec<Option<Touch>> = alone.collect();
    if alone.contains(&Some(Touch::Taken)) {
        return Judgement::DoesNot;
    }
    let waits_for_lock = wait.is_none_or(|wait| {
        let named = wait.known.is_some() && hold.frame < wait.plainly_named;
        let is_lock = wait.known.is_some_and(|known| known.role.is_lock());
        // One that waits for a unit may wait for a condition.
        let takes = |lock: &AwaitedLock| {
            lock.shape != LockShape::Semaphore
                && lock.first_touch(&ahead.events) == Some(Touch::Taken)
        };
        is_lock || named || wait.is_plain || wait.locks.iter().any(takes)
    });
    match alone.last() {
        _ if !waits_for_lock => open,
        Some(Some(_)) => Judgement::Holds,
        _ if onwards.search.kept.contains(&hold.lock.address) => Judgement::Holds,
        _ => Judgement::Likely,
    }
}

/// Returns what a run does first to a lock, and how many frames it had left before; to one that the
/// thread waits for, only a second release counts, for the first is of what it waits for, and only if
/// the thread has not taken the lock again in between.
fn first_of_own(thread: &ThreadMoment, lock: &AwaitedLock, ran: &Ran) -> Option<(Touch, usize)> {
    let touches = ran.events.iter().zip(&ran.left);
    let mut touches = touches.filter_map(|(event, left)| Some((lock.touch(event)?, *left)));
    if !is_own(thread, lock) {
        return touches.next();
    }
    let mut after_release = touches.skip_while(|(touch, _)| !touch.is_release()).skip(1);
    after_release.next().filter(|(touch, _)| touch.mode().is_some())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Holds,
    /// It has a guard, and nothing tells what it will do with the lock.
    Likely,
    DoesNot,
    Open {
        registers: bool,
    },
}

/// Tells whether no landing pad tells what a frame of the program would release.
fn is_mute(thread: &ThreadMoment, at: usize) -> bool {
    let frame = thread.frames.get(at).filter(|frame| !frame.of_system);
    frame.is_some_and(|frame| match frame.landing {
        None | Some(Landing::Gap) => true,
        Some(Landing::Passes) => {
            let called = at.checked_sub(1).and_then(|at| thread.frames.get(at));
            called.is_some_and(|called| called.of_system)
        }
        Some(Landing::Pad(_)) => false,
    })
}

fn is_own(thread: &ThreadMoment, lock: &AwaitedLock) -> bool {
    let wait = thread.wait.iter().flat_map(|wait| &wait.locks);
    wait.into_iter().any(|own| own.address == lock.address)
}

/// Returns the innermost frame of the program itself: what it called sleeps.
fn innermost(thread: &ThreadMoment) -> Option<usize> {
    thread.frames.iter().position(|frame| !frame.of_system)
}

#[cfg(test)]
mod tests;
