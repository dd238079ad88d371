//! The events of a recording in the order in which the page draws them.
//!
//! # Order
//! A row is a thread, a lane is one sort of its events. Events lie by row, then by lane, then by
//! time, so that the page needs no more than the number of events of each lane to find those of a
//! moment by binary search.

use super::super::labels::{self, Labels, is_for_lock, is_join, way};
use super::super::wakers::Wakers;
use super::columns::PageColumn;
use super::frames::PageFrames;
use crate::recording::{HolderDoing, RecordedProcess, Recording};
use lockstead_ledger::events::{Event, EventKind};
use lockstead_render::words::clean;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The lanes of a row.
pub(super) const LANES: usize = 4;

/// A process, as the page has it.
#[derive(Debug, Serialize)]
pub(super) struct PageProcess {
    /// The file that it runs.
    pub(super) program: String,
    /// The kernel's number of it.
    pub(super) pid: u32,
}

/// A thread, as the page has it.
#[derive(Debug, Serialize)]
pub(super) struct PageRow {
    /// The place of its process.
    pub(super) process: usize,
    /// What it is called.
    pub(super) name: String,
    /// The kernel's number of it; 0: not known.
    pub(super) tid: u32,
    /// The time at which it began, from the beginning of the run in nanoseconds, as are all times.
    pub(super) began: u64,
    /// The time at which it ended, or its process.
    pub(super) ended: u64,
    /// The number of its events in each lane.
    pub(super) lanes: [usize; LANES],
    /// The number of looks at it while it held a lock that others waited for.
    pub(super) samples: usize,
}

/// What is waited for, as the page has it.
#[derive(Debug, Serialize)]
pub(super) struct PageThing {
    /// The place of its process.
    pub(super) process: usize,
    /// What it is called.
    pub(super) name: String,
    /// What it is: `recursive mutex`.
    pub(super) kind: String,
}

/// All that is drawn, and what it is called.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The processes in the order in which they began.
    pub(super) processes: Vec<PageProcess>,
    /// The threads, those of a process together.
    pub(super) rows: Vec<PageRow>,
    /// What events are about.
    pub(super) things: Vec<PageThing>,
    /// The stacks: places in the list of frames, innermost first. The first one has none.
    pub(super) stacks: Vec<Vec<usize>>,
    /// The events of all lanes, by row, lane and time.
    pub(super) events: Vec<PageEvent>,
    /// The looks at holders, by row and time.
    pub(super) samples: Vec<PageSample>,
    /// What looks have met: its class, and in words.
    pub(super) doings: Vec<(&'static str, String)>,
    /// The ways of waiting that there were.
    pub(super) ways: Vec<&'static str>,
    /// The end of all.
    pub(super) ended: u64,
}

/// An event, with the page's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageEvent {
    /// The place of its thread.
    pub(super) row: usize,
    /// The lane in which it is drawn.
    pub(super) lane: Lane,
    pub(super) began: u64,
    pub(super) lasted: u64,
    /// The place of what it is about.
    pub(super) thing: usize,
    stack: usize,
    /// The place of the way of a wait, or the facts of a hold.
    how: u8,
    ending: u8,
    /// 0: nobody is known to have ended it. Up to the number of events: one more than the place of
    /// the event that did; above that, one more than the place of the thread whose end it was.
    waker: usize,
}

/// A look at a holder, with the page's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageSample {
    row: usize,
    at: u64,
    thing: Option<usize>,
    doing: usize,
}

/// A sort of events of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// A wait for a lock.
    Wait,
    /// A wait for something to happen.
    Idle,
    /// A hold of a lock.
    Hold,
    /// A call that wakes.
    Wake,
}

/// Returns the lane of an event.
fn lane(event: &Event) -> Lane {
    match event.kind {
        EventKind::Wait if is_for_lock(event) => Lane::Wait,
        EventKind::Wait => Lane::Idle,
        EventKind::Hold => Lane::Hold,
        EventKind::Wake | EventKind::Thread => Lane::Wake,
    }
}

impl Timeline {
    /// Takes in a recording. `frame` returns the place of a frame in the page's list.
    pub(super) fn of(recording: &Recording, frames: &mut PageFrames) -> Timeline {
        let mut timeline = Timeline { stacks: vec![Vec::new()], ..Timeline::default() };
        for process in &recording.processes {
            timeline.process(process, recording.run.began, frames);
        }
        timeline
    }

    fn process(&mut self, process: &RecordedProcess, zero: u64, frames: &mut PageFrames) {
        let labels = Labels::of(process);
        let place = self.processes.len();
        let program = clean(&process.facts.program);
        self.processes.push(PageProcess { program, pid: process.facts.pid });
        self.ended = self.ended.max(process.names.ended.saturating_sub(zero));
        let rows = self.rows_of(process, place, zero, &labels);
        let mut numbers = Numbers { things: HashMap::new(), stacks: HashMap::new() };
        let first = self.events.len();
        let mut of_events: Vec<(PageEvent, usize)> = process
            .events
            .iter()
            .enumerate()
            .map(|(number, event)| {
                let thing = numbers.thing(self, event, place, &labels);
                let stack = numbers.stack(self, event.stack, &labels, frames);
                let packed = PageEvent {
                    row: rows.threads[&event.thread],
                    lane: lane(event),
                    began: event.began.saturating_sub(zero),
                    lasted: event.lasted,
                    thing,
                    stack,
                    how: self.how(event),
                    ending: event.ending,
                    waker: 0,
                };
                (packed, number)
            })
            .collect();
        of_events.sort_by_key(|(event, _)| (event.row, event.lane, event.began));
        // Where the events of the recording are now, for those who woke.
        let mut places = vec![0; process.events.len()];
        for (at, &(event, number)) in of_events.iter().enumerate() {
            places[number] = first + at;
            self.rows[event.row].lanes[event.lane as usize] += 1;
            self.ended = self.ended.max(event.began.saturating_add(event.lasted));
            self.events.push(event);
        }
        debug_assert!(self.events.len() < ENDED, "a ledger has no more events");
        let wakers = Wakers::of(process);
        for (number, event) in process.events.iter().enumerate() {
            let Some(waking) = wakers.waker(event) else { continue };
            self.events[places[number]].waker = match waking.event {
                Some(event) => places[event] + 1,
                None => rows.threads.get(&waking.thread).map_or(0, |row| ENDED + row),
            };
        }
        for sample in &process.samples {
            let thing = numbers.things.get(&(false, sample.lock, sample.generation)).copied();
            let doing = self.doing(sample.doing);
            let row = rows.tids[&sample.tid];
            self.rows[row].samples += 1;
            let at = sample.at.saturating_sub(zero);
            self.samples.push(PageSample { row, at, thing, doing });
        }
        self.samples.sort_by_key(|sample| (sample.row, sample.at));
    }

    /// Makes a row for each thread of a process, also for those of which the recording has no name.
    fn rows_of(
        &mut self,
        process: &RecordedProcess,
        place: usize,
        zero: u64,
        labels: &Labels<'_>,
    ) -> Rows {
        let end = process.names.ended;
        let mut threads: BTreeMap<u32, (u32, u64, u64)> = BTreeMap::new();
        for facts in &process.names.threads {
            let ended = facts.ended.unwrap_or(end).max(facts.began);
            threads.insert(facts.thread, (facts.tid, facts.began, ended));
        }
        for event in &process.events {
            let ended = event.began.saturating_add(event.lasted);
            let known = threads.entry(event.thread).or_insert((0, event.began, end.max(ended)));
            known.1 = known.1.min(event.began);
            known.2 = known.2.max(ended);
        }
        let mut rows = Rows { threads: HashMap::new(), tids: HashMap::new() };
        for (thread, (tid, began, ended)) in threads {
            rows.threads.insert(thread, self.rows.len());
            if tid != 0 {
                rows.tids.insert(tid, self.rows.len());
            }
            let (began, ended) = (began.saturating_sub(zero), ended.saturating_sub(zero));
            self.row(place, clean(&labels.thread(thread)), tid, (began, ended));
        }
        for sample in &process.samples {
            rows.tids.entry(sample.tid).or_insert_with(|| {
                let life = (process.facts.began.saturating_sub(zero), end.saturating_sub(zero));
                self.row(place, format!("thread with tid {}", sample.tid), sample.tid, life);
                self.rows.len() - 1
            });
        }
        rows
    }

    fn row(&mut self, process: usize, name: String, tid: u32, (began, ended): (u64, u64)) {
        self.ended = self.ended.max(ended);
        let lanes = [0; LANES];
        self.rows.push(PageRow { process, name, tid, began, ended, lanes, samples: 0 });
    }

    /// Returns the place of the way of a wait, or the facts of a hold.
    fn how(&mut self, event: &Event) -> u8 {
        if event.kind != EventKind::Wait {
            return event.how;
        }
        let place = place_of(&mut self.ways, way(event));
        u8::try_from(place).expect("there are ten ways")
    }

    /// Returns the place of what a look has met.
    fn doing(&mut self, doing: HolderDoing) -> usize {
        let mark = match doing {
            HolderDoing::Runs => "runs",
            HolderDoing::LacksProcessor => "lacks",
            HolderDoing::Sleeps(_) => "sleeps",
            HolderDoing::Waits => "waits",
            HolderDoing::Stopped => "stopped",
        };
        let met = (mark, labels::doing(doing));
        place_of(&mut self.doings, met)
    }

    /// Returns the columns of the page.
    pub(super) fn columns(&self) -> Vec<PageColumn> {
        let event = |name, number: fn(&PageEvent) -> u64| {
            PageColumn::of(name, &self.events.iter().map(number).collect::<Vec<_>>())
        };
        let sample = |name, number: fn(&PageSample) -> u64| {
            PageColumn::of(name, &self.samples.iter().map(number).collect::<Vec<_>>())
        };
        let ends = self.events.len();
        let wakers = self.events.iter().map(|event| match event.waker {
            row @ ENDED.. => (row - ENDED + ends + 1) as u64,
            event => event as u64,
        });
        vec![
            event("began", |event| event.began),
            event("lasted", |event| event.lasted),
            event("thing", |event| event.thing as u64),
            event("stack", |event| event.stack as u64),
            event("how", |event| event.how.into()),
            event("ending", |event| event.ending.into()),
            PageColumn::of("waker", &wakers.collect::<Vec<_>>()),
            sample("sample-at", |sample| sample.at),
            sample("sample-thing", |sample| sample.thing.map_or(0, |thing| thing as u64 + 1)),
            sample("sample-doing", |sample| sample.doing as u64),
        ]
    }
}

/// Returns the place of one of a few different values.
fn place_of<T: PartialEq>(among: &mut Vec<T>, value: T) -> usize {
    match among.iter().position(|known| *known == value) {
        Some(place) => place,
        None => {
            among.push(value);
            among.len() - 1
        }
    }
}

/// What the numbers of threads that ended waits by their end are above those of events, until the
/// number of events is known.
const ENDED: usize = 1 << 60;

/// The rows of one process, by the number of the thread and by the kernel's.
struct Rows {
    threads: HashMap<u32, usize>,
    tids: HashMap<u32, usize>,
}

/// The places of what one process has numbers for.
struct Numbers {
    /// What is waited for, by whether it is the end of a thread, index and generation.
    things: HashMap<(bool, u32, u8), usize>,
    stacks: HashMap<u32, usize>,
}

impl Numbers {
    fn thing(
        &mut self,
        page: &mut Timeline,
        event: &Event,
        process: usize,
        labels: &Labels<'_>,
    ) -> usize {
        let generation = if is_join(event) { 0 } else { event.generation };
        *self.things.entry((is_join(event), event.lock, generation)).or_insert_with(|| {
            let kind = match labels.kind(event) {
                Some(known) => clean(&known.kind),
                None if is_join(event) => "end of a thread".into(),
                None => String::new(),
            };
            page.things.push(PageThing { process, name: clean(&labels.lock(event)), kind });
            page.things.len() - 1
        })
    }

    fn stack(
        &mut self,
        page: &mut Timeline,
        stack: u32,
        labels: &Labels<'_>,
        frames: &mut PageFrames,
    ) -> usize {
        *self.stacks.entry(stack).or_insert_with(|| {
            let of_stack = labels.stack(stack);
            if of_stack.is_empty() {
                return 0;
            }
            page.stacks.push(of_stack.iter().map(|frame| frames.place(frame)).collect());
            page.stacks.len() - 1
        })
    }
}
