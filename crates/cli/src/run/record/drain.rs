//! Empties the rings of one process.

use super::super::processes::{Observed, inside};
use super::file::open;
use super::lives::{self, SeenLock};
use crate::clock;
use crate::recording::{
    Chunk, EncodedChunk, PackedEvent, ProcessFacts, ProcessSamples, RecordingFile, ThreadEvents,
    ThreadFacts, UNFINISHED,
};
use lockstead_inspect::report::thread_name;
use lockstead_ledger::events::{Event, EventKind, FOR_LOCK, hold};
use lockstead_ledger::lock::attribute;
use lockstead_ledger::publish::{Flags, WaitKind, Waiting};
use lockstead_ledger::thread::{ThreadPart, ThreadRecord, state};
use lockstead_ledger::{Ledger, LedgerPart};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// A thread whose events were met.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenThread {
    pub(super) facts: ThreadFacts,
    /// The function that it began with.
    pub(super) start: u64,
    /// It is the first one of its process.
    pub(super) is_first: bool,
}

/// A ring, as far as it was emptied.
#[derive(Clone, Copy, Debug, Default)]
struct SeenRing {
    /// The losses that were counted.
    lost: u64,
    /// The thread of the last event, for which losses are counted.
    thread: u32,
}

/// A process whose rings are emptied, and what its events name.
pub(super) struct Drained {
    pub(super) process: Arc<Observed>,
    pub(super) number: u32,
    pub(super) ended: u64,
    rings: Vec<SeenRing>,
    pub(super) threads: BTreeMap<u32, SeenThread>,
    pub(super) locks: HashMap<(u32, u8), SeenLock>,
    pub(super) stacks: BTreeSet<u32>,
    /// Events of threads for which there was no ring.
    pub(super) without_ring: u64,
    events: Vec<Event>,
}

impl Drained {
    /// Takes in a process, the one with this number.
    pub(super) fn new(process: Arc<Observed>, number: u32, file: &Mutex<RecordingFile>) -> Self {
        let began = EncodedChunk::new(&Chunk::Process(ProcessFacts {
            process: number,
            pid: process.pid,
            program: process.program.to_string_lossy().into_owned(),
            began: process.began(),
        }));
        open(file).write(&began);
        Drained {
            process,
            number,
            ended: 0,
            rings: Vec::new(),
            threads: BTreeMap::new(),
            locks: HashMap::new(),
            stacks: BTreeSet::new(),
            without_ring: 0,
            events: Vec::new(),
        }
    }

    /// Tells whether it is this process.
    pub(super) fn is_of(&self, process: &Arc<Observed>) -> bool {
        Arc::ptr_eq(&self.process, process)
    }

    /// Empties the rings, and returns how full the fullest one was, in 64ths.
    pub(super) fn drain(&mut self, file: &Mutex<RecordingFile>) -> usize {
        let process = self.process.clone();
        let ledger = process.ledger.view();
        let count = ledger.used(LedgerPart::Rings);
        if self.rings.len() < count {
            self.rings.resize_with(count, SeenRing::default);
        }
        let mut fullest = 0;
        for (index, ring) in (0..count).map_while(|index| ledger.ring(index)).enumerate() {
            let mut events = std::mem::take(&mut self.events);
            events.clear();
            let mut foreign = 0;
            ring.take(|words| match Event::from_words(words) {
                Some(event) => events.push(event),
                None => foreign += 1,
            });
            fullest = fullest.max(events.len() * 64 / ring.slots.len());
            for some in events.chunk_by(|one, next| one.thread == next.thread) {
                self.rings[index].thread = some[0].thread;
                self.write(&ledger, some, file);
            }
            self.events = events;
            let lost = ring.lost();
            let before = std::mem::replace(&mut self.rings[index].lost, lost);
            // What no thread leaves, but a program that writes where it should not, is lost too.
            let new = lost.wrapping_sub(before).saturating_add(foreign);
            if new != 0 {
                let thread = self.rings[index].thread;
                let lost = &mut self.seen(&ledger, thread).facts.lost;
                *lost = lost.saturating_add(new);
                open(file).lose(new);
            }
        }
        let samples = std::mem::take(&mut *inside(&self.process.samples));
        if !samples.is_empty() {
            for sample in &samples {
                self.meet(&ledger, sample.lock, sample.generation);
            }
            let samples = ProcessSamples { process: self.number, samples };
            open(file).write_events(&EncodedChunk::new(&Chunk::Samples(samples)), 0);
        }
        fullest
    }

    /// Empties the rings of a process of which nothing more is to be seen.
    pub(super) fn finish(&mut self, file: &Mutex<RecordingFile>) {
        self.drain(file);
        let process = self.process.clone();
        let ledger = process.ledger.view();
        self.ended = inside(&process.ended).unwrap_or_else(clock::now);
        for thread in ledger.threads() {
            let serial = thread.record.serial.load(Relaxed);
            let is_live = thread.record.state.load(Relaxed) == state::LIVE;
            if !is_live && thread.record.state.load(Relaxed) != state::LEAKED {
                continue;
            }
            self.seen(&ledger, serial);
            for event in self.held(&ledger, &thread) {
                self.write(&ledger, &[event], file);
            }
            if let Some((_, waiting)) = thread.record.wait.read().filter(|_| is_live) {
                let event = self.unfinished(&ledger, &waiting, serial);
                self.write(&ledger, &[event], file);
            }
        }
        let without_ring = ledger.header().losses.events.load(Relaxed);
        open(file).lose(without_ring);
        self.without_ring = without_ring;
        // What was told later, or changed.
        let threads = ledger.threads().map(|thread| thread.record);
        for record in threads.filter(|record| record.state.load(Relaxed) != state::FREE) {
            if let Some(seen) = self.threads.get_mut(&record.serial.load(Relaxed)) {
                seen.update(record, &ledger);
            }
        }
        lives::look_again(&ledger, &mut self.locks);
    }

    /// Returns the events of a thread's holds that last, by the rules for those that have ended: if
    /// others wait for the lock, or the thread has waited for it.
    fn held(&self, ledger: &Ledger<'_>, thread: &ThreadPart<'_>) -> Vec<Event> {
        let is_live = thread.record.state.load(Relaxed) == state::LIVE;
        let stack = thread.stack();
        let holds = (0..stack.depth()).filter_map(|depth| stack.entry(depth).read());
        let lasting = holds.filter_map(|holding| {
            let lock = ledger.find_lock(holding.address)?;
            let record = ledger.lock(lock)?;
            // A robust mutex whose holder has ended is the next one's.
            let is_left = !is_live && record.shape().2 & attribute::ROBUST != 0;
            if is_left || holding.flags.has(Flags::LENT) {
                return None;
            }
            let waiters = ledger.existing_extension(record).map(|own| own.waiters.load(Relaxed));
            let facts = [
                (holding.flags.has(Flags::READ), hold::READ),
                (holding.started == 0, hold::COARSE),
                (holding.flags.has(Flags::CONTENDED), hold::AFTER_WAIT),
                (waiters.is_some_and(|waiters| waiters != 0), hold::WAITED_FOR),
            ];
            let how = facts.iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit);
            let began = match holding.started {
                0 => ledger.header().time_of(holding.tick),
                started => started,
            };
            Some(Event {
                kind: EventKind::Hold,
                began,
                lasted: self.ended.saturating_sub(began).min(Event::LONGEST),
                how,
                ending: UNFINISHED,
                lock,
                generation: Event::life(record.generation.load(Relaxed)),
                stack: holding.stack,
                thread: thread.record.serial.load(Relaxed),
                tid: 0,
            })
        });
        let told = hold::AFTER_WAIT | hold::WAITED_FOR;
        lasting.filter(|event| event.how & told != 0).collect()
    }

    /// Returns the event of a wait that lasts.
    fn unfinished(&self, ledger: &Ledger<'_>, waiting: &Waiting, thread: u32) -> Event {
        let (lock, generation) = match waiting.how.kind() {
            WaitKind::JOIN => (ledger.thread_of(waiting.target), 0),
            _ => {
                let lock = ledger.lock_of(waiting).unwrap_or(0);
                let record = ledger.lock(lock);
                (lock, record.map_or(0, |record| record.generation.load(Relaxed)))
            }
        };
        let is_for_lock = ledger.sleeps_for_lock(waiting, lock);
        Event {
            kind: EventKind::Wait,
            began: waiting.since,
            lasted: self.ended.saturating_sub(waiting.since).min(Event::LONGEST),
            how: waiting.how.kind().0 as u8 | if is_for_lock { FOR_LOCK } else { 0 },
            ending: UNFINISHED,
            lock,
            generation: Event::life(generation),
            stack: waiting.stack,
            thread,
            tid: 0,
        }
    }

    /// Writes events of one thread.
    fn write(&mut self, ledger: &Ledger<'_>, events: &[Event], file: &Mutex<RecordingFile>) {
        let thread = events[0].thread;
        let from = events[0].began;
        let mut last = from;
        let mut packed = Vec::with_capacity(events.len());
        self.seen(ledger, thread);
        for event in events {
            if event.stack != 0 {
                self.stacks.insert(event.stack);
            }
            if event.kind == EventKind::Thread {
                self.ends(event);
                continue;
            }
            let is_join = event.kind == EventKind::Wait && event.how == WaitKind::JOIN.0 as u8;
            if !is_join {
                self.meet(ledger, event.lock, event.generation);
            } else if event.lock != 0 {
                // Whom it waits for is not always known.
                self.seen(ledger, event.lock);
            }
            let (event, end) = PackedEvent::pack(event, last);
            packed.push(event);
            last = end;
        }
        let count = packed.len() as u64;
        if count != 0 {
            let process = self.number;
            let chunk = Chunk::Events(ThreadEvents { process, thread, from, events: packed });
            let chunk = EncodedChunk::new(&chunk);
            if !open(file).write_events(&chunk, count) {
                self.seen(ledger, thread).facts.cut += count;
            }
        }
    }

    /// Notes a lock of an event, in the life with this generation.
    fn meet(&mut self, ledger: &Ledger<'_>, lock: u32, generation: u8) {
        if let Some(record) = ledger.lock(lock) {
            let seen = || SeenLock::met(ledger, record, generation);
            self.locks.entry((lock, generation)).or_insert_with(seen);
        }
    }

    /// Notes the end of a thread.
    fn ends(&mut self, event: &Event) {
        let seen = self.threads.entry(event.thread).or_default();
        seen.facts.tid = event.tid;
        seen.facts.began = event.began;
        seen.facts.ended = Some(event.began.saturating_add(event.lasted));
        seen.facts.creator = event.lock;
    }

    /// Returns what is known of a thread, which is looked up once.
    fn seen(&mut self, ledger: &Ledger<'_>, thread: u32) -> &mut SeenThread {
        self.threads.entry(thread).or_insert_with(|| {
            let mut seen = SeenThread::default();
            seen.facts.thread = thread;
            let records = ledger.threads().map(|thread| thread.record);
            let mut records = records.filter(|record| record.serial.load(Relaxed) == thread);
            if let Some(record) = records.next() {
                seen.update(record, ledger);
            }
            seen
        })
    }
}

impl SeenThread {
    /// Takes in what its record says.
    fn update(&mut self, record: &ThreadRecord, ledger: &Ledger<'_>) {
        let facts = &mut self.facts;
        facts.tid = record.tid.load(Relaxed);
        facts.began = record.began.load(Relaxed);
        facts.name = thread_name(record).or(facts.name.take());
        let ended = record.ended.load(Relaxed);
        facts.ended = (ended != 0).then_some(ended).or(facts.ended);
        if facts.creator == 0
            && let Some(index) = record.creator.load(Relaxed).checked_sub(1)
        {
            let creator = ledger.thread(index as usize);
            facts.creator = creator.map_or(0, |creator| creator.record.serial.load(Relaxed));
        }
        self.start = record.start_routine.load(Relaxed);
        self.is_first = facts.tid == ledger.header().pid.load(Relaxed);
    }
}
