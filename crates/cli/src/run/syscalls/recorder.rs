//! Writes down what threads wait for that call the kernel by themselves.
//!
//! # Role
//! Does for a process without the library what the library does: it publishes waits, and adds
//! their times to the statistics, in a ledger of its own.
//!
//! # When a wait ends
//! The kernel tells of a call before it is made and not of its end. A wait has ended
//! 1. when another thread wakes the word: the one that has waited longest, as in the kernel;
//! 2. when its thread makes another futex call, at the latest;
//! 3. when the thread is found elsewhere twice, which is looked at every few milliseconds, less
//!    often the longer it lasts. It then counts up to when it was last found in the call.
//!
//! A call that finds another value in the word than it compares with does not wait: the word is
//! read before the call is let go. A thread that makes the call of its wait again, from the same
//! place and with nobody having woken it, goes on with that wait: a signal or a debugger has
//! interrupted it, or lockstead itself, for a look at its registers.
//!
//! # Stacks
//! A thread that is told of stands still. Its stack is walked once for each place in the code and
//! on the stack that it calls from; the next time these two say that it is the same one.

use super::own_ledger::{OwnLedger, hello};
use super::words::{self, WordOwner};
use crate::run::elf;
use lockstead_inspect::memory::{ProcessMemory, ReadableMemory};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::proc::futex::{FutexWait, FutexWaitKind, FutexWake, WaitLimit};
use lockstead_inspect::proc::status::StatusFile;
use lockstead_inspect::proc::task::{self, SleepingCall, TaskDoing};
use lockstead_inspect::stack::StackEnd;
use lockstead_inspect::unwind::{Registers, Unwinder};
use lockstead_ledger::Birth;
use lockstead_ledger::hello::Hello;
use lockstead_ledger::lock::{FUTEX_WORDS, ObjectKind, SHARED_WORDS, attribute};
use lockstead_ledger::publish::{WaitKind, Waiting};
use lockstead_ledger::stacks::DEEPEST;
use lockstead_ledger::thread::state;
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::Relaxed;

/// The time between two looks at a wait, at first.
const SOON: u64 = 8_000_000;
/// The longest time between two looks at a wait.
const LATER: u64 = 500_000_000;
/// The time between two looks for threads that have ended.
const SWEEP: u64 = 1_000_000_000;
/// How long a process counts as running the program that it ran.
const FRESH: u64 = 10_000_000;
/// The most waits that are looked at in one go: threads wait for an answer meanwhile.
const PORTION: usize = 64;
/// How often a thread that does not stand still yet is looked at.
const MOST_TRIES: usize = 1000;
/// The name by which a mapped library of lockstead is known.
const LIBRARY: &[u8] = b"/liblockstead_";

/// A process that has begun to be recorded.
pub(crate) struct NewProcess {
    /// What the library would have said of it.
    pub(crate) hello: Hello,
    /// The file of its ledger.
    pub(crate) file: OwnedFd,
    /// The effective user that it runs as.
    pub(crate) user: u32,
}

/// A wait that lasts, as far as is known.
struct Pending {
    address: u64,
    /// The index of the word's record; 0: none.
    lock: u32,
    /// It counts as one for a lock until names say better.
    is_for_lock: bool,
    /// The arguments of its call.
    arguments: [u64; 6],
    /// The stack pointer and the program counter of the call.
    from: (u64, u64),
    since: u64,
    /// When the thread was last found in it.
    seen: u64,
    stack: u32,
    next: u64,
    pause: u64,
    /// It was not in the call at the last look.
    missed: bool,
}

struct RecordedThread {
    index: usize,
    pending: Option<Pending>,
}

/// Which program a process runs.
type Image = (u64, u64);

struct RecordedProcess {
    pid: u32,
    ledger: OwnLedger,
    memory: ProcessMemory,
    unwinder: Option<Unwinder>,
    threads: HashMap<u32, RecordedThread>,
    /// The number of threads that wait.
    pending: usize,
    /// The number of words that have records.
    records: u32,
    /// The threads that wait for a word, the longest first; and when it was last woken.
    words: HashMap<u64, (VecDeque<u32>, u64)>,
    /// The stacks by stack pointer and program counter.
    stacks: HashMap<(u64, u64), u32>,
}

/// A process that has the filter.
struct KnownProcess {
    image: Image,
    /// When it was last seen to run that program.
    checked: u64,
    /// None: the library is in it.
    recorded: Option<RecordedProcess>,
}

/// Writes down the waits of all processes that have the filter.
#[derive(Default)]
pub(super) struct Recorder {
    /// The processes that have the filter, by their numbers.
    processes: HashMap<u32, KnownProcess>,
    /// The processes of threads.
    owners: HashMap<u32, u32>,
    new: Vec<NewProcess>,
    swept: u64,
}

impl Recorder {
    /// Takes what has begun to be recorded.
    pub(super) fn take_new(&mut self) -> Vec<NewProcess> {
        std::mem::take(&mut self.new)
    }

    /// Returns whether any thread waits, as far as is known.
    pub(super) fn has_pending(&self) -> bool {
        let mut recorded = self.processes.values().filter_map(|known| known.recorded.as_ref());
        recorded.any(|process| process.pending != 0)
    }

    /// Begins with a process that has not called yet.
    pub(super) fn begin(&mut self, pid: u32, now: u64) {
        self.process(pid, now);
    }

    /// Takes in that a thread is about to make a call.
    pub(super) fn call(&mut self, tid: u32, number: i64, arguments: [u64; 6], now: u64) {
        let Some(pid) = self.owner(tid) else { return };
        let Some(process) = self.process(pid, now) else { return };
        let call = SleepingCall { number, arguments, sp: 0, pc: 0 };
        let wait = FutexWait::decode(&call);
        let sleeps = wait.filter(|wait| process.would_sleep(wait));
        if sleeps.is_some() && process.goes_on(tid, arguments, now) {
            return;
        }
        process.ends_at_the_latest(tid, now);
        if let Some(wait) = sleeps {
            process.begins(tid, &call, &wait, now);
        } else if let Some(wake) = FutexWake::decode(&call) {
            process.wakes(tid, wake.address, wake.count, now);
        }
    }

    /// Looks at waits that last, and for threads that have ended.
    pub(super) fn look(&mut self, now: u64) {
        self.recorded().for_each(|process| process.look(now));
        if now.saturating_sub(self.swept) >= SWEEP {
            self.swept = now;
            self.sweep(now);
        }
    }

    /// Ends all waits where they were last seen.
    pub(super) fn finish(&mut self) {
        for process in self.recorded() {
            let tids: Vec<u32> = process.threads.keys().copied().collect();
            tids.into_iter().for_each(|tid| process.ends_as_seen(tid));
        }
    }

    fn sweep(&mut self, now: u64) {
        let is_there =
            |pid: u32, tid: u32| fs::exists(format!("/proc/{pid}/task/{tid}")).unwrap_or(false);
        self.owners.retain(|&tid, &mut pid| is_there(pid, tid));
        for process in self.recorded() {
            let gone = process.threads.keys().copied().filter(|&tid| !is_there(process.pid, tid));
            for tid in gone.collect::<Vec<_>>() {
                process.thread_ended(tid, now);
            }
        }
        self.processes.retain(|&pid, _| is_there(pid, pid));
    }

    fn recorded(&mut self) -> impl Iterator<Item = &mut RecordedProcess> {
        self.processes.values_mut().filter_map(|known| known.recorded.as_mut())
    }

    /// Returns the process of a thread.
    fn owner(&mut self, tid: u32) -> Option<u32> {
        if let Some(&pid) = self.owners.get(&tid) {
            return Some(pid);
        }
        let status = StatusFile::read(&format!("/proc/{tid}/status")).ok()?;
        let pid = u32::try_from(status.number("Tgid")?).ok()?;
        self.owners.insert(tid, pid);
        Some(pid)
    }

    /// Returns the process, if it is one to be recorded: without the library.
    fn process(&mut self, pid: u32, now: u64) -> Option<&mut RecordedProcess> {
        // By `exec` it becomes another one.
        let is_fresh = |known: &KnownProcess| now.saturating_sub(known.checked) < FRESH;
        if !self.processes.get(&pid).is_some_and(is_fresh) {
            let file = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
            let image = (file.dev(), file.ino());
            match self.processes.get_mut(&pid).filter(|known| known.image == image) {
                Some(known) => known.checked = now,
                None => {
                    let recorded = if has_library(pid) { None } else { self.record(pid, now) };
                    self.processes.insert(pid, KnownProcess { image, checked: now, recorded });
                }
            }
        }
        self.processes.get_mut(&pid)?.recorded.as_mut()
    }

    fn record(&mut self, pid: u32, now: u64) -> Option<RecordedProcess> {
        let status = StatusFile::read(&format!("/proc/{pid}/status")).ok()?;
        let parent = u32::try_from(status.number("PPid")?).ok()?;
        let user = status.text("Uid")?.split_whitespace().nth(1)?.parse().ok()?;
        let (ledger, file) = OwnLedger::new(pid, now).ok()?;
        self.new.push(NewProcess { hello: hello(pid, parent, now), file, user });
        Some(RecordedProcess {
            pid,
            ledger,
            memory: ProcessMemory::new(pid),
            unwinder: Modules::of(pid).ok().map(Unwinder::new),
            threads: HashMap::new(),
            pending: 0,
            records: 0,
            words: HashMap::new(),
            stacks: HashMap::new(),
        })
    }
}

/// Tells whether the library is in a process: mapped, and by a loader that starts it. That of
/// another C library maps it, finds that it cannot, and goes on.
fn has_library(pid: u32) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.windows(LIBRARY.len()).any(|part| part == LIBRARY)
        && File::open(format!("/proc/{pid}/exe")).is_ok_and(|program| elf::is_for_glibc(&program))
}

impl RecordedProcess {
    /// Tells whether a wait finds the value in the word that it compares with, if it compares.
    fn would_sleep(&self, wait: &FutexWait) -> bool {
        let compares =
            matches!(wait.operation, FutexWaitKind::Wait { .. } | FutexWaitKind::RequeuePi);
        let mut word = [0; 4];
        let read = self.memory.read(wait.address, &mut word).ok();
        !compares || read != Some(4) || u32::from_ne_bytes(word) == wait.expected
    }

    /// Tells whether the thread makes the call of its wait again and has not been woken; the wait
    /// goes on then.
    fn goes_on(&mut self, tid: u32, arguments: [u64; 6], now: u64) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        let Some(pending) = &mut thread.pending else { return false };
        let woken = self.words.get(&pending.address).map_or(0, |(_, woken)| *woken);
        let again = pending.arguments == arguments
            && woken <= pending.since
            && place(self.pid, tid) == Some(pending.from);
        if again {
            (pending.seen, pending.missed) = (now, false);
        }
        again
    }

    fn begins(&mut self, tid: u32, call: &SleepingCall, wait: &FutexWait, now: u64) {
        let Some(index) = self.thread(tid, now) else { return };
        let from = place(self.pid, tid).unwrap_or_default();
        let stack = self.stack(from);
        let owner = WordOwner::of(call, wait, &self.memory);
        let lock = self.word(owner.address, owner.attributes, stack);
        let ledger = self.ledger.view();
        let Some(part) = ledger.thread(index) else { return };
        let is_for_lock = match wait.operation {
            FutexWaitKind::Wait { .. } => owner.is_mutex,
            FutexWaitKind::LockPi | FutexWaitKind::RequeuePi => true,
            FutexWaitKind::Several { .. } => false,
        };
        let how = match wait.limit {
            WaitLimit::None => WaitKind::FUTEX,
            WaitLimit::At { realtime: true, .. } => WaitKind::FUTEX.timed_realtime(),
            WaitLimit::At { .. } | WaitLimit::After { .. } => WaitKind::FUTEX.timed(),
        };
        ledger.header().push_clock(now);
        let (target, since) = (wait.address, now);
        let companion = if owner.attributes & attribute::BESIDE != 0 { owner.address } else { 0 };
        let waiting = Waiting { how, stack, target, since, deadline: 0, companion };
        part.record.wait.begin(&waiting);
        let pending = Pending {
            address: target,
            lock,
            is_for_lock,
            arguments: call.arguments,
            from,
            since,
            seen: since,
            stack,
            next: now + SOON,
            pause: SOON,
            missed: false,
        };
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.pending = Some(pending);
            self.pending += 1;
            self.words.entry(target).or_default().0.push_back(tid);
        }
    }

    fn wakes(&mut self, tid: u32, address: u64, count: u64, now: u64) {
        // Nobody has waited for it.
        let Some((_, woken)) = self.words.get_mut(&address) else { return };
        *woken = now;
        if let Some(lock) = self.record_of(address) {
            let stack = self.stack(place(self.pid, tid).unwrap_or_default());
            let ledger = self.ledger.view();
            let statistics = ledger.extension(lock);
            statistics.map(|statistics| ledger.add_share(&statistics.held_at, stack, 1, 0));
        }
        for _ in 0..count {
            let first = self.words.get(&address).and_then(|(waiters, _)| waiters.front().copied());
            let Some(tid) = first else { return };
            self.ends(tid, now);
        }
    }

    /// Ends a wait of which the thread has come back: it was woken since it began, or has ended
    /// otherwise.
    fn ends_at_the_latest(&mut self, tid: u32, now: u64) {
        let pending = self.threads.get(&tid).and_then(|thread| thread.pending.as_ref());
        let Some(pending) = pending else { return };
        let woken = self.words.get(&pending.address).map_or(0, |(_, woken)| *woken);
        let at = if woken > pending.since { woken } else { pending.seen };
        self.ends(tid, at.min(now));
    }

    fn ends_as_seen(&mut self, tid: u32) {
        let pending = self.threads.get(&tid).and_then(|thread| thread.pending.as_ref());
        if let Some(seen) = pending.map(|pending| pending.seen) {
            self.ends(tid, seen);
        }
    }

    fn ends(&mut self, tid: u32, at: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(pending) = thread.pending.take() else { return };
        self.pending -= 1;
        if let Some((waiters, _)) = self.words.get_mut(&pending.address) {
            waiters.retain(|&waiter| waiter != tid);
        }
        let ledger = self.ledger.view();
        let Some(part) = ledger.thread(thread.index) else { return };
        part.record.wait.end();
        let waited = at.saturating_sub(pending.since);
        let record = part.record;
        let total = if pending.is_for_lock { &record.waited } else { &record.idled };
        total.store(total.load(Relaxed) + waited, Relaxed);
        let Some(statistics) = ledger.extension(pending.lock) else { return };
        statistics.contended.fetch_add(1, Relaxed);
        if pending.is_for_lock {
            statistics.handing.counted.fetch_add(waited, Relaxed);
        }
        statistics.wait.add(waited, 1, pending.stack);
        ledger.add_share(&statistics.waited_at, pending.stack, 1, waited);
    }

    /// Returns the record of a word that a thread wakes.
    fn record_of(&self, word: u64) -> Option<u32> {
        let ledger = self.ledger.view();
        ledger.find_lock(word).or_else(|| {
            let mutex = ledger.find_lock(word.checked_sub(words::MUSL_WORD)?)?;
            let attributes = ledger.lock(mutex)?.shape().2;
            (attributes & attribute::C_LIBRARY != 0).then_some(mutex)
        })
    }

    /// Returns the index of a lock's or word's record, made if there is none; 0 where the ledger is
    /// full.
    fn word(&mut self, address: u64, attributes: u16, stack: u32) -> u32 {
        let ledger = self.ledger.view();
        if let Some(known) = ledger.find_lock(address) {
            return known;
        }
        let is_full = self.records >= FUTEX_WORDS;
        let address = if is_full { SHARED_WORDS | u64::from(stack) } else { address };
        self.records += 1;
        let birth = Birth {
            address,
            kind: ObjectKind::Futex,
            attributes,
            init_stack: 0,
            first_stack: stack,
            module: 0,
        };
        ledger.use_lock(&birth).unwrap_or(0)
    }

    fn thread_ended(&mut self, tid: u32, now: u64) {
        self.ends_as_seen(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        if let Some(part) = self.ledger.view().thread(thread.index) {
            part.record.ended.store(now, Relaxed);
            part.record.state.store(state::ENDED, Relaxed);
        }
    }

    fn look(&mut self, now: u64) {
        let due = self.threads.iter().filter_map(|(&tid, thread)| {
            let pending = thread.pending.as_ref().filter(|pending| pending.next <= now)?;
            Some((tid, pending.address))
        });
        for (tid, address) in due.take(PORTION).collect::<Vec<_>>() {
            let doing = task::doing(self.pid, tid);
            let is_in = matches!(doing, Ok(TaskDoing::Call(call))
                if FutexWait::decode(&call).is_some_and(|wait| wait.address == address));
            let Some(pending) = self.threads.get_mut(&tid).and_then(|t| t.pending.as_mut()) else {
                continue;
            };
            if is_in {
                pending.missed = false;
                pending.seen = now;
                pending.pause = (pending.pause * 2).min(LATER);
                pending.next = now + pending.pause;
            } else if !pending.missed {
                // It may be in the handler of a signal, and make its call again.
                (pending.missed, pending.next) = (true, now + SOON);
            } else {
                self.ends_as_seen(tid);
            }
        }
    }

    /// Returns the index of the thread's record, which is made if there is none.
    fn thread(&mut self, tid: u32, now: u64) -> Option<usize> {
        if let Some(known) = self.threads.get(&tid) {
            return Some(known.index);
        }
        let index = self.ledger.begin_thread(self.pid, tid, now)?;
        self.threads.insert(tid, RecordedThread { index, pending: None });
        Some(index)
    }

    /// Returns the stack of a thread that stands still, by its stack pointer and program counter; 0
    /// if it cannot be seen.
    fn stack(&mut self, (sp, pc): (u64, u64)) -> u32 {
        if (sp, pc) == (0, 0) {
            return 0;
        }
        if let Some(&known) = self.stacks.get(&(sp, pc)) {
            return known;
        }
        let Some(unwinder) = &mut self.unwinder else { return 0 };
        let walk = unwinder.unwind(&self.memory, Registers::new(pc, sp));
        let returns: Vec<u64> = walk.frames.iter().map(|frame| frame.address).collect();
        // The numbers that the library has for them.
        let end = match walk.end {
            _ if returns.len() > DEEPEST => 1,
            StackEnd::Bottom => 0,
            StackEnd::Limit { .. } => 1,
            StackEnd::Unreadable { .. } => 3,
            _ => 2,
        };
        let stack = self.ledger.view().intern_stack(&returns, end);
        self.stacks.insert((sp, pc), stack);
        stack
    }
}

/// Returns the stack pointer and the program counter of a thread that is told of. It may still be on
/// its way to where it stands still.
fn place(pid: u32, tid: u32) -> Option<(u64, u64)> {
    for _ in 0..MOST_TRIES {
        match task::doing(pid, tid) {
            Ok(TaskDoing::Call(SleepingCall { sp, pc, .. })) => return Some((sp, pc)),
            Ok(TaskDoing::Running) => std::thread::yield_now(),
            _ => break,
        }
    }
    None
}
