//! The holders of locks that do not name them, for a snapshot.
//!
//! # Role
//! Brings together what [`owners`](crate::owners) needs: the frames of all threads, the locks that
//! somebody waits for and that name no holder, the code. What it finds goes into a snapshot like
//! an owner that stood in the lock, with what shows it.
//!
//! # Cost
//! Only where a lock without an owner is waited for. Then all threads are walked once, and a few
//! hundred instructions are emulated for each frame that has something to clean up.

use super::capture::Looking;
use super::confirmed::GuardNames;
use super::holders::{FoundHolder, OwnersFound, enter_seen};
use super::model::{HolderEvidence, LockHolder};
use super::recognise::{FoundWait, KnownWait};
use super::seen::{self, SeenAcquisition, SeenAcquisitions};
use crate::futexes;
use crate::glibc::others::Ownerless;
use crate::maps::Backing;
use crate::memory::ReadableMemory;
use crate::owners::abseil;
use crate::owners::awaited;
use crate::owners::code::{KnownNames, ProgramCode, is_system};
use crate::owners::moment::{FrameMoment, Returned, ThreadMoment, WaitMoment, plainly_named};
use crate::owners::overlay::ReadPages;
use crate::owners::run::DecodedCode;
use crate::owners::search::{FoundHold, MOST_FRAMES, Onwards, OwnerSearch};
use crate::owners::shape::{AwaitedLock, LockShape};
use crate::owners::stack::may_hold as stack_scan;
use crate::proc::shown::shown_as;
use crate::proc::task::{self, TaskDoing, TaskMoment};
use crate::slots::OwnKind;
use crate::stack::{CodeAddress, Frame, Stack, StackEnd};
use crate::still::{self, SleepingRegisters};
use crate::symbols;
use crate::unwind::Registers;
use crate::waits::modes::HoldMode;
use lockstead_ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet};

/// Instructions that all runs of one search may emulate: some tenths of a second.
const MOST_STEPS: u64 = 2_000_000;
/// Instructions that all searches in one process may emulate.
const MOST_STEPS_ALL: u64 = 8_000_000;

/// What is kept for several looks at the holders of one process.
#[derive(Default)]
pub(super) struct OwnersKept {
    names: KnownNames,
    canary: Option<u64>,
    /// The variables that are guards.
    pub(super) guards: GuardNames,
    /// Instructions that were emulated in this process.
    steps: u64,
    /// The registers of threads that were held for a moment.
    held: BTreeMap<u32, SleepingRegisters>,
}

impl Looking {
    /// Looks for the holders of those locks that threads are known to wait for and that name no
    /// holder.
    pub(super) fn find_owners(&mut self) {
        let waited: Vec<AwaitedLock> = self.awaited(|_| true);
        if waited.is_empty() || self.code.is_none() {
            return;
        }
        // Whether a sleep is for a condition, its functions tell best.
        let sleepers: Vec<TaskMoment> = self
            .tasks
            .iter()
            .filter(|task| task.futex().is_some() && !self.stacks.contains_key(&task.tid))
            .cloned()
            .collect();
        self.read_stacks(sleepers.iter());
        self.kept.canary = canary(self.pid, &self.memory);
        let all: Vec<u32> = self.tasks.iter().map(|task| task.tid).collect();
        let (found, wanting) = self.search_owners(&all, &waited);
        self.owners = found;
        if wanting.is_empty() || self.owners.are_sure(&self.waits) {
            return;
        }
        if !self.may_stop {
            self.limits.push(
                "the holders of some locks cannot be told without the registers of threads, which \
                 would have to be stopped for some microseconds for that"
                    .into(),
            );
            return;
        }
        let wanted = |tid: u32| wanting.contains(&tid) && !self.owners.has_seen(tid);
        let calls = self.tasks.iter().filter(|task| wanted(task.tid));
        let calls = calls.filter_map(|task| match task.doing {
            TaskDoing::Call(call) => Some((task.tid, call)),
            _ => None,
        });
        self.kept.held = still::of_sleepers(self.pid, calls.collect()).into_iter().collect();
        if self.kept.held.is_empty() {
            return;
        }
        // Frames that were searched for may turn out to be others, and then have no names yet.
        let is_searched = |stack: &Stack| {
            let is_cut = matches!(stack.end, StackEnd::UnknownRegister { .. });
            is_cut || stack.frames.iter().any(|frame| frame.found)
        };
        let is_held = |task: &TaskMoment| matches!(self.registers(task), Some((_, Some(_))));
        let searched =
            self.tasks.iter().filter(|task| self.stacks.get(&task.tid).is_some_and(is_searched));
        let searched: Vec<TaskMoment> = searched.filter(|task| is_held(task)).cloned().collect();
        self.read_stacks(searched.iter());
        // What a thread waits for was told by its frames.
        for task in &searched {
            if let Some(wait) = self.waits.get(&task.tid).map(|known| known.wait) {
                let known = self.known(task, wait);
                self.waits.insert(task.tid, known);
            }
        }
        let waited = self.awaited(|_| true);
        self.owners = self.search_owners(&all, &waited).0;
    }

    /// Returns the registers of a thread that sleeps, as far as they are known; also what was read while it
    /// was held, if it was and still is in the same sleep.
    pub(super) fn registers(
        &self,
        task: &TaskMoment,
    ) -> Option<(Registers, Option<SleepingRegisters>)> {
        let (sp, pc) = task.doing.registers()?;
        let held = self.kept.held.get(&task.tid).copied();
        // The number of switches last: a thread that was woken and runs has the same one.
        let held = held.filter(|held| {
            self.stays(task.tid) && task::switches(self.pid, task.tid) == Some(held.switches)
        });
        Some((held.map_or_else(|| Registers::new(pc, sp), |held| held.registers), held))
    }

    /// Returns the locks without a named holder that some of the threads wait for.
    fn awaited(&self, which: impl Fn(u32) -> bool) -> Vec<AwaitedLock> {
        let waits = self.waits.iter().filter(|(tid, _)| which(**tid));
        let all: BTreeSet<AwaitedLock> =
            waits.flat_map(|(_, known)| known.awaited.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Looks again for the holders among some threads of the locks that these wait for.
    pub(super) fn search_owners_again(&mut self, tids: &[u32]) -> OwnersFound {
        let waited = self.awaited(|tid| tids.contains(&tid));
        match waited.is_empty() {
            true => OwnersFound::default(),
            false => self.search_owners(tids, &waited).0,
        }
    }

    /// Returns the holders, and the threads of which more might be known by their registers.
    fn search_owners(
        &mut self,
        tids: &[u32],
        locks: &[AwaitedLock],
    ) -> (OwnersFound, BTreeSet<u32>) {
        let threads: Vec<ThreadMoment> = tids.iter().filter_map(|&tid| self.moment(tid)).collect();
        let (mut found, mut wanting) = (OwnersFound::default(), BTreeSet::new());
        let mut catches = Vec::new();
        let Some((unwinder, _)) = &mut self.code else { return (found, wanting) };
        let pages = ReadPages::new(&self.memory);
        let code = ProgramCode::new(unwinder.modules_mut(), &pages, &self.kept.names);
        let steps = MOST_STEPS.min(MOST_STEPS_ALL.saturating_sub(self.kept.steps));
        let decoded = DecodedCode::new(&pages, steps);
        let waits = threads.iter().filter_map(|thread| thread.wait.as_ref());
        let of_std =
            waits.filter(|wait| wait.known.is_some_and(|known| known.family == "Rust std"));
        let kept = of_std.flat_map(|wait| &wait.locks).map(|lock| lock.address).collect();
        let canary = self.kept.canary;
        let search = OwnerSearch { code: &code, decoded: &decoded, canary, kept: &kept };
        let (mut semaphores, mut open) = (BTreeSet::new(), BTreeSet::new());
        let mut mutexes = BTreeSet::new();
        for thread in &threads {
            let word = thread.wait.as_ref().map(|wait| wait.word);
            match search.takes_mutex(thread) {
                Some(true) => mutexes.extend(word),
                Some(false) => {}
                None => {
                    wanting.insert(thread.tid);
                    open.extend(word);
                }
            }
            match search.takes_unit(thread) {
                Some(true) => semaphores.extend(word),
                Some(false) => {}
                None => {
                    wanting.insert(thread.tid);
                    open.extend(word);
                }
            }
        }
        // Memory alone makes many a word look like a semaphore or a mutex: its sleepers say if it is.
        let used = |lock: &AwaitedLock| match lock.shape {
            LockShape::Semaphore => semaphores.contains(&lock.address),
            LockShape::RustMutex => mutexes.contains(&lock.address) || open.contains(&lock.address),
            _ => true,
        };
        let as_known = |hold: FoundHold| match hold.lock.shape {
            LockShape::RustMutex if !mutexes.contains(&hold.lock.address) => {
                FoundHold { evidence: HolderEvidence::Likely, ..hold }
            }
            _ => hold,
        };
        // Of those that are not known to be semaphores it is only asked which registers are wanted.
        let asked = locks.iter().filter(|lock| used(lock) || open.contains(&lock.address));
        let asked: Vec<AwaitedLock> = asked.copied().collect();
        let onwards = |thread| (thread, Onwards::new(&search, thread));
        let each: Vec<(&ThreadMoment, Onwards<'_>)> = threads.iter().map(onwards).collect();
        for (thread, onwards) in &each {
            let of_thread = search.by_pads(onwards, &asked);
            if of_thread.wants_registers || thread.is_partly_guessed() {
                wanting.insert(thread.tid);
            }
            catches.push(of_thread.catches);
            let holds = of_thread.holds.into_iter().map(as_known).collect();
            found.enter(thread, holds, of_thread.may_hold, used);
        }
        found.sift();
        let is_open = |lock: &&AwaitedLock| {
            lock.shape == LockShape::Semaphore || !found.is_known(lock.address)
        };
        let open: Vec<AwaitedLock> = asked.iter().filter(is_open).copied().collect();
        if !open.is_empty() {
            for ((thread, onwards), catches) in each.iter().zip(&catches) {
                let of_thread = search.by_what_follows(onwards, &open, catches);
                if of_thread.wants_registers {
                    wanting.insert(thread.tid);
                }
                found.enter(thread, of_thread.holds, of_thread.may_hold, used);
            }
            found.sift();
        }
        found.ask_others(&each, &search);
        wanting.extend(&found.unasked);
        self.kept.steps += steps - decoded.left();
        if decoded.is_exhausted() {
            let limit = "the holders of some locks were not looked for: the code of too many \
                         frames would have had to be followed";
            if !self.limits.iter().any(|known| known == limit) {
                self.limits.push(limit.into());
            }
        }
        self.add_seen(&mut found, &threads, locks);
        for lock in unconfirmed(locks, &found) {
            let holders = threads.iter().filter(|thread| stack_scan(thread, lock, &self.memory));
            let threads: BTreeSet<u32> = holders.map(|thread| thread.tid).collect();
            if !threads.is_empty() {
                found.may_hold.entry(lock.address).or_default().extend(threads);
            }
        }
        if let Some((_, symbolizer)) = &mut self.code {
            self.kept.guards.confirm(&mut found, symbolizer, &self.memory);
        }
        (found, wanting)
    }

    /// Returns the frames of a thread that sleeps, and what it waits for.
    fn moment(&mut self, tid: u32) -> Option<ThreadMoment> {
        let at = self.tasks.binary_search_by_key(&tid, |task| task.tid).ok()?;
        let task = self.tasks.get(at)?.clone();
        let (registers, held) = self.registers(&task)?;
        let wait = task.futex().map(|wait| {
            let stack = self.stacks.get(&tid);
            let known = awaited::telling(stack.and_then(futexes::of_stack));
            let waits = self.waits.get(&tid);
            let found = waits.map(|known| &known.found);
            let mut locks = match waits {
                Some(waits) => waits.awaited.clone(),
                None => awaited::candidates(&wait, known, &self.memory),
            };
            if let Some(FoundWait::Own(lock)) = found
                && lock.readers == 0
                && lock.kind != OwnKind::Once
            {
                let shape = LockShape::Own;
                locks.push(AwaitedLock { address: lock.address, shape });
            }
            let modes = locks.iter().filter_map(|lock| {
                Some((*lock, awaited::wait_mode(&wait, known, lock, &self.memory)?))
            });
            WaitMoment {
                word: wait.address,
                known,
                modes: modes.collect(),
                is_plain: wait.expected == RUST_PARKED
                    || known.is_none() && awaited::is_lock_by_memory(&locks, &self.memory)
                    || found.is_some_and(is_plain)
                    || self.plain.contains(&tid),
                may_retake: known
                    .is_some_and(|known| known.family == "abseil" && !known.role.is_lock())
                    && locks.is_empty(),
                plainly_named: 0,
                locks,
            }
        });
        let (unwinder, _) = self.code.as_mut()?;
        let walk = unwinder.unwind(&self.memory, registers);
        let (mut frames, mut guessed) = (Vec::new(), false);
        for (&at, &registers) in walk.frames.iter().zip(&walk.registers).take(MOST_FRAMES) {
            guessed |= at.found;
            let mapping = unwinder.modules().maps().find(at.lookup());
            let of_abseil = self.stacks.get(&tid).is_some_and(|stack| is_abseil(stack, at));
            let of_system = of_abseil
                || mapping.is_none_or(|mapping| match &mapping.backing {
                    Backing::File { path, .. } => is_system(path),
                    Backing::Special(_) | Backing::Anonymous => true,
                });
            let landing = match of_system {
                true => None,
                false => unwinder.landing(&self.memory, at),
            };
            frames.push(FrameMoment { at, registers, landing, of_system, guessed });
        }
        let wait = wait.map(|wait| match self.stacks.get(&tid) {
            Some(stack) => WaitMoment { plainly_named: plainly_named(stack, &frames), ..wait },
            None => wait,
        });
        let is_cut = matches!(walk.end, StackEnd::UnknownRegister { .. });
        let thread_pointer = held.map(|held| held.thread_pointer);
        let returns = match wait.is_some() || task.doing.is_sleep() {
            true => Returned::from_sleep(self.stacks.get(&tid), &frames),
            false => Returned::Anything,
        };
        Some(ThreadMoment { tid, frames, wait, thread_pointer, is_cut, returns })
    }

    /// Returns the lock that a wait is for, if it names no holder and is known nevertheless: by the
    /// functions on the stack, or since somebody was found to hold it.
    pub(super) fn awaited_lock(&self, known: &KnownWait) -> Option<AwaitedLock> {
        let confirmed = |lock: &&AwaitedLock| {
            let holders = self.owners.holders.get(&lock.address);
            holders.is_some_and(|holders| holders.iter().any(|found| found.hold.lock == **lock))
        };
        let by_name = known.known.and_then(|_| known.awaited.first());
        known.awaited.iter().find(confirmed).or(by_name).copied()
    }

    /// Reads from the ledger which threads have slept on the words of mutexes that are waited for.
    pub(super) fn read_seen(&mut self, ledger: &Ledger<'_>) {
        let locks = self.waits.values().flat_map(|known| &known.awaited);
        let mutexes = locks.filter(|lock| lock.shape == LockShape::RustMutex);
        let words: Vec<u64> = mutexes.map(|lock| lock.address).collect();
        if let Some((_, symbolizer)) = &mut self.code {
            let process = (self.pid, &self.numbers);
            self.seen = SeenAcquisitions::read(ledger, process, &words, symbolizer);
        }
    }

    /// Returns the thread that was seen to acquire a lock, and does not wait for it.
    pub(super) fn seen_holder(&self, lock: u64) -> Option<&SeenAcquisition> {
        let seen = self.seen.holder(lock, self.pid, &self.memory)?;
        let waits = self.waits.get(&seen.thread).is_some_and(|known| {
            known.wait.address == lock || known.awaited.iter().any(|own| own.address == lock)
        });
        (!waits).then_some(seen)
    }

    /// Adds to the holders that were found those whom the ledger saw acquire the locks. Where
    /// another thread was found, neither is named.
    fn add_seen(&self, found: &mut OwnersFound, threads: &[ThreadMoment], locks: &[AwaitedLock]) {
        for &lock in locks.iter().filter(|lock| lock.shape == LockShape::RustMutex) {
            let Some(seen) = self.seen_holder(lock.address) else { continue };
            let thread = threads.iter().find(|thread| thread.tid == seen.thread);
            let frames = thread.map_or(&[][..], |thread| &thread.frames);
            // In a signal handler it may be on its way to the lock.
            let in_handler = frames.iter().skip(1).any(|frame| !frame.at.returns);
            if let Some(frame) = frames.first().filter(|_| !in_handler) {
                enter_seen(found, lock, (seen.thread, frame.at), seen.by_name);
            }
        }
    }

    /// Returns the holders of a lock as a report shows them.
    pub(super) fn holders_of(&mut self, address: u64) -> Vec<LockHolder> {
        let found = self.owners.holders.get(&address).cloned().unwrap_or_default();
        found.iter().map(|found| self.holder(found)).collect()
    }

    fn holder(&mut self, found: &FoundHolder) -> LockHolder {
        let place = self.place_of(found.at);
        let unlock = if found.is_giver() { "release" } else { "unlock" };
        let rests_on = match found.hold.evidence {
            _ if found.is_seen => seen::RESTS_ON.into(),
            _ if !found.hold.at_pad => {
                format!("{place} would {unlock} it after this call")
            }
            _ => format!("the landing pad of {place} would {unlock} it"),
        };
        let rests_on = match found.hold.mode {
            HoldMode::Upgradable => format!("{rests_on}, an upgradable read"),
            HoldMode::Alone | HoldMode::Shared => rests_on,
        };
        let rests_on = match &found.variable {
            Some(variable) => format!("{rests_on}; its guard is {variable}"),
            None => rests_on,
        };
        LockHolder {
            shared: found.hold.mode.is_shared(),
            evidence: found.hold.evidence,
            rests_on: Some(rests_on),
            guard: found.variable.clone(),
            ..LockHolder::alone(found.thread)
        }
    }

    /// Returns the function whose code a frame is in, or the place in its file. Of functions that were inlined
    /// there the outermost that is the program's own: which of them has the guard is not known.
    fn place_of(&mut self, at: CodeAddress) -> String {
        let Some((_, symbolizer)) = &mut self.code else { return format!("{:#x}", at.address) };
        symbolizer.prepare([at]);
        let stack = symbolizer.stack(&[at], StackEnd::Bottom);
        let frames = symbols::program_frames(&stack);
        let is_own = |frame: &&&Frame| {
            let name = frame.function.as_deref().unwrap_or_default();
            !["std::", "core::", "<std::", "<core::"].iter().any(|of| name.starts_with(of))
        };
        let frame = frames.iter().rev().find(is_own).or(frames.last()).copied();
        frame.map_or_else(
            || format!("{:#x}", at.address),
            |frame| frame.called().unwrap_or_else(|| frame.site()),
        )
    }
}

/// Returns the locks of which no holder was found, and none of a lock that the same waiter may
/// wait for instead.
fn unconfirmed(locks: &[AwaitedLock], found: &OwnersFound) -> Vec<AwaitedLock> {
    locks.iter().filter(|lock| !found.is_known(lock.address)).copied().collect()
}

/// The value of the word on which Rust's std parks a thread; no counter of wake-ups gets there.
const RUST_PARKED: u32 = u32::MAX;

/// Tells whether a wait is known to be for something else than a condition.
fn is_plain(found: &FoundWait) -> bool {
    match found {
        FoundWait::Mutex(_)
        | FoundWait::Stream(_)
        | FoundWait::RwLock(_)
        | FoundWait::Join(_)
        | FoundWait::Own(_) => true,
        FoundWait::Ownerless(object) => !matches!(object, Ownerless::Condition { .. }),
        FoundWait::Refused | FoundWait::Unknown { .. } => false,
    }
}

/// Tells whether a frame is one of abseil's own functions: what they do is known by their names.
fn is_abseil(stack: &Stack, at: CodeAddress) -> bool {
    let mut shown = stack.frames.iter().filter(|shown| shown.address == at.address);
    let function = shown.next_back().and_then(|shown| shown.function.as_deref());
    function.is_some_and(|name| ["absl::", "AbslInternal"].iter().any(|of| name.starts_with(of)))
}

/// Returns what the functions of a process compare with to see whether their frames were
/// overwritten: glibc makes it of bytes that the kernel leaves at the start.
fn canary(pid: u32, memory: &dyn ReadableMemory) -> Option<u64> {
    const AT_RANDOM: u64 = 25;
    let bytes = std::fs::read(format!("/proc/{}/auxv", shown_as(pid))).ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    let mut pairs = words
        .chunks_exact(2)
        .map(|pair| (u64::from_ne_bytes(pair[0]), u64::from_ne_bytes(pair[1])));
    let (_, address) = pairs.find(|(key, _)| *key == AT_RANDOM)?;
    Some(memory.read_u64(address)? & !0xff)
}

/// Returns the locks without a named holder that a wait may be for; `sp` is the stack pointer.
pub(super) fn awaited_by(
    known: &FoundWait,
    wait: &crate::proc::futex::FutexWait,
    use_: Option<&'static futexes::FutexUse>,
    sp: Option<u64>,
    memory: &dyn ReadableMemory,
) -> Vec<AwaitedLock> {
    let of_abseil = use_.is_some_and(|known| known.family == "abseil");
    match known {
        FoundWait::Unknown { .. } if of_abseil => {
            let mutex = sp.and_then(|sp| abseil::awaited_mutex(wait.address, sp, memory));
            let locked = |address| AwaitedLock { address, shape: LockShape::Called };
            mutex.map(locked).into_iter().collect()
        }
        FoundWait::Unknown { .. } => awaited::candidates(wait, use_, memory),
        FoundWait::RwLock(lock) if lock.writer.is_none() && lock.readers != 0 => {
            vec![AwaitedLock { address: lock.address, shape: LockShape::CalledShared }]
        }
        FoundWait::Own(lock) if lock.readers != 0 => {
            vec![AwaitedLock { address: lock.address, shape: LockShape::OwnRead }]
        }
        _ => Vec::new(),
    }
}
