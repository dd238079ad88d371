//! The memory model: what a load may read.
//!
//! # State
//! A location is the list of its stores in modification order. A thread has a
//! *view*: for each location the oldest store that it may still read, and for
//! each thread how much of it happened before. A release store carries the
//! view of its writer; an acquire load that reads it adopts that view.
//!
//! # Rules
//! - A load reads any store that its thread's view does not rule out; reading
//!   it rules out everything older (coherence).
//! - A store takes its place in the modification order anywhere behind what its
//!   thread's view rules out; a read-modify-write right behind the store that
//!   it read, and nothing ever comes between the two. It passes on the view of
//!   the store it read (release sequences of C++20). So updates of a location
//!   that is only ever updated read the newest value.
//! - A compare-exchange that fails is a load: it may read an older store, if
//!   that differs from the expected value.
//! - Fences: a release fence lends its view to later relaxed stores, an acquire
//!   fence adopts the views that earlier relaxed loads saw.
//! - `SeqCst`: such operations agree on one global list of what nobody of them
//!   may overlook. A fence exchanges all it knows of locations with it, an access what it knows
//!   of its own location, before what it does there. It is no happening-before.
//! - Of several readable stores of equal value the older ones are offered only
//!   where a newer one does not merely add knowledge: a thread that knows less
//!   can do everything that one that knows more can.
//!
//! # What it does not show
//! A load never reads a store that comes later in the schedule (load
//! buffering). Sequentially consistent operations have the order of the schedule, so that agrees
//! with what was read; C++ also has orders that do not. Accesses of different sizes to one location
//! are not modelled. Otherwise this is exactly C++20 (`tests/models/checker/litmus/checker.cat`).

mod undo;
mod view;

pub(crate) use undo::MemoryMark;
pub(crate) use view::MAX_THREADS;
use view::{MAX_LOCATIONS, MemoryView};

use crate::fingerprint::{FingerprintMap, mix};
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The last accesses to a plain field: the clocks of their threads.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Accesses {
    writer: usize,
    written: u16,
    read: [u16; MAX_THREADS],
}

impl Accesses {
    /// Notes an access of thread `me`, whose view has this clock. Returns false if it races.
    pub(crate) fn note(&mut self, me: usize, clock: &[u16; MAX_THREADS], write: bool) -> bool {
        let after_write = self.written <= clock[self.writer];
        let after_reads = self.read.iter().zip(clock).all(|(read, known)| read <= known);
        if write {
            (self.writer, self.written) = (me, clock[me]);
        } else {
            self.read[me] = clock[me];
        }
        after_write && (!write || after_reads)
    }
}

/// The distance in the modification order that leaves room for others.
const GAP: u32 = 1 << 16;

struct StoreRecord {
    /// Its place in the modification order.
    place: u32,
    /// The write of a read-modify-write: nothing comes between it and the store
    /// before.
    glued: bool,
    value: u64,
    /// Names the store by what its writer had seen.
    id: u64,
    view: Option<Rc<MemoryView>>,
}

/// The threads that have touched a location in this execution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touched {
    Nobody,
    By(usize),
    Shared,
}

struct Location {
    /// The place where it lies (see `space.rs`).
    place: u64,
    /// Its name; different for each variable that lives at a place.
    key: u64,
    /// Whether the execution has used it so far.
    present: bool,
    touched: Touched,
    stores: Vec<StoreRecord>,
    hash: u64,
}

impl Location {
    fn newest(&self) -> &StoreRecord {
        self.stores.last().expect("a location has a store")
    }
}

struct Mind {
    now: MemoryView,
    /// What an acquire fence would add.
    seen: MemoryView,
    /// What a relaxed store passes on: the view at the last release fence.
    lent: Option<Rc<MemoryView>>,
}

impl Clone for Mind {
    fn clone(&self) -> Self {
        Mind { now: self.now.clone(), seen: self.seen.clone(), lent: self.lent.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.now.clone_from(&other.now);
        self.seen.clone_from(&other.seen);
        self.lent.clone_from(&other.lent);
    }
}

impl Mind {
    const NEW: Mind = Mind { now: MemoryView::NEW, seen: MemoryView::NEW, lent: None };
}

/// All locations and what everybody knows of them.
pub(crate) struct ModelMemory {
    /// Each has the same number in all executions since the last `reset`. The first
    /// `live` are in use; the others keep their allocations.
    locations: Vec<Location>,
    live: usize,
    /// Their numbers by their names.
    numbers: FingerprintMap<usize>,
    /// What has changed, since the last `reset`.
    journal: Vec<undo::Change>,
    minds: Vec<Mind>,
    /// Holds the store of each location that no `SeqCst` operation may overlook.
    agreed: MemoryView,
    /// Only the newest stores are kept, and named by their values.
    merged: bool,
    /// The sum of all locations' hashes.
    pub(crate) hash: u64,
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl ModelMemory {
    pub(crate) fn new() -> Self {
        ModelMemory {
            locations: Vec::new(),
            live: 0,
            numbers: FingerprintMap::default(),
            journal: Vec::new(),
            minds: Vec::new(),
            agreed: MemoryView::NEW,
            merged: false,
            hash: 0,
        }
    }

    pub(crate) fn reset(&mut self, threads: usize, merged: bool) {
        self.merged = merged;
        self.live = 0;
        self.numbers.clear();
        self.journal.clear();
        self.minds.clear();
        self.minds.resize_with(threads, || Mind::NEW);
        self.agreed = MemoryView::NEW;
        self.hash = 0;
    }

    /// Returns the location of a new variable at this place, which holds zero, and which
    /// everybody knows; `None` if there are too many.
    pub(crate) fn register(&mut self, place: u64) -> Option<usize> {
        // On a stack several variables may follow each other at one place.
        let lives = self.locations[..self.live].iter().filter(|l| l.present && l.place == place);
        let key = match lives.count() {
            0 => place,
            lives => mix(place, lives as u64 + 1),
        };
        let index = match self.numbers.get(&key) {
            Some(&index) => index,
            None => self.add(place, key)?,
        };
        self.locations[index].present = true;
        self.journal.push(undo::Change::Registered(index as u16));
        Some(index)
    }

    fn add(&mut self, place: u64, key: u64) -> Option<usize> {
        let index = self.live;
        if index == MAX_LOCATIONS {
            return None;
        }
        if index == self.locations.len() {
            let (touched, stores) = (Touched::Nobody, Vec::new());
            let present = false;
            self.locations.push(Location { place, key, present, touched, stores, hash: 0 });
        }
        let location = &mut self.locations[index];
        (location.place, location.key) = (place, key);
        location.touched = Touched::Nobody;
        location.stores.clear();
        let id = mix(0, 9);
        location.stores.push(StoreRecord { place: 0, glued: false, value: 0, id, view: None });
        location.hash = 0;
        self.numbers.insert(key, index);
        self.live += 1;
        Some(index)
    }

    /// Returns the name of a location.
    pub(crate) fn key(&self, location: usize) -> u64 {
        self.locations[location].key
    }

    pub(crate) fn touched(&self, location: usize) -> Touched {
        self.locations[location].touched
    }

    pub(crate) fn touch(&mut self, location: usize, by: Touched) {
        let before = std::mem::replace(&mut self.locations[location].touched, by);
        self.journal.push(undo::Change::Touched(location as u16, before));
    }

    /// Counts a step of `thread`.
    pub(crate) fn step(&mut self, thread: usize) {
        if !self.merged {
            self.minds[thread].now.clock[thread] += 1;
        }
    }

    /// Returns the newest value of a location.
    pub(crate) fn newest(&self, location: usize) -> u64 {
        self.locations[location].newest().value
    }

    pub(crate) fn value(&self, location: usize, index: u16) -> u64 {
        self.locations[location].stores[usize::from(index)].value
    }

    pub(crate) fn last_index(&self, location: usize) -> u16 {
        self.locations[location].stores.len() as u16 - 1
    }

    pub(crate) fn view(&mut self, thread: usize) -> &mut MemoryView {
        &mut self.minds[thread].now
    }

    /// Notes that everything `thread` does comes before everything `other` will do.
    pub(crate) fn happens_before(&mut self, thread: usize, other: usize) {
        let view = self.minds[thread].now.clone();
        self.minds[other].now.join(&view);
    }

    /// Lets nobody read anything but the newest stores.
    pub(crate) fn catch_up(&mut self) {
        for mind in &mut self.minds {
            for (number, location) in self.locations[..self.live].iter().enumerate() {
                mind.now.raise(number, location.newest().place);
            }
        }
    }

    /// Returns the index of the oldest store that `thread` may read by an access of this order.
    pub(crate) fn oldest(&self, thread: usize, location: usize, order: Ordering) -> u16 {
        let stores = &self.locations[location].stores;
        let mut floor = self.minds[thread].now.floor[location];
        if order == Ordering::SeqCst {
            floor = floor.max(self.agreed.floor[location]);
        }
        stores.partition_point(|store| store.place < floor) as u16
    }

    /// Tells whether another store may come right behind the one with `index`.
    pub(crate) fn open(&self, location: usize, index: u16) -> bool {
        let behind = self.locations[location].stores.get(usize::from(index) + 1);
        behind.is_none_or(|store| !store.glued)
    }

    /// Drops from `indices`, which are sorted from the newest to the oldest, each store that is
    /// only read, if it has a value of `loads`, and that an older one of equal value replaces, as
    /// it tells less.
    pub(crate) fn keep_least(
        &self,
        location: usize,
        indices: &mut Vec<u16>,
        loads: impl Fn(u64) -> bool,
    ) {
        let stores = &self.locations[location].stores;
        let mut kept = 0;
        for at in 0..indices.len() {
            let index = indices[at];
            let older = &stores[usize::from(index)];
            let replaced = indices[..kept].iter().position(|&newer| {
                let newer = &stores[usize::from(newer)];
                newer.value == older.value
                    && loads(older.value)
                    && match (&older.view, &newer.view) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some(a), Some(b)) => a.within(b),
                    }
            });
            match replaced {
                Some(newer) => indices[newer] = index,
                None => {
                    indices[kept] = index;
                    kept += 1;
                }
            }
        }
        indices.truncate(kept);
    }

    /// Lets `thread` read the store with `index`; returns its value and name.
    pub(crate) fn read(
        &mut self,
        thread: usize,
        location: usize,
        index: u16,
        order: Ordering,
    ) -> (u64, u64) {
        let store = &self.locations[location].stores[usize::from(index)];
        let mind = &mut self.minds[thread];
        mind.now.raise(location, store.place);
        if order == Ordering::SeqCst {
            self.agreed.raise(location, store.place);
        }
        if let Some(view) = &store.view {
            if acquires(order) {
                mind.now.join(view);
            } else {
                mind.seen.join(view);
            }
        }
        (store.value, store.id)
    }

    /// Lets `thread` put a store named `id` right behind the one with index `behind`; `glued` when
    /// it is the write of a read-modify-write. Returns false if there is no room between two stores
    /// any more.
    #[expect(clippy::too_many_arguments, reason = "a store has that many properties")]
    pub(crate) fn write(
        &mut self,
        thread: usize,
        location: usize,
        behind: u16,
        value: u64,
        order: Ordering,
        id: u64,
        glued: bool,
    ) -> bool {
        if self.merged {
            self.replace(location, value);
            return true;
        }
        let stores = &self.locations[location].stores;
        let at = usize::from(behind) + 1;
        let before = stores[at - 1].place;
        let place = stores.get(at).map_or(before + GAP, |after| before.midpoint(after.place));
        let mind = &mut self.minds[thread];
        mind.now.raise(location, place);
        if order == Ordering::SeqCst {
            self.agreed.raise(location, place);
        }
        let mine =
            if releases(order) { Some(Rc::new(mind.now.clone())) } else { mind.lent.clone() };
        let inherited = if glued { stores[at - 1].view.clone() } else { None };
        let view = match (mine, inherited) {
            (Some(mine), Some(inherited)) => {
                let mut both = Rc::unwrap_or_clone(mine);
                both.join(&inherited);
                Some(Rc::new(both))
            }
            (mine, inherited) => mine.or(inherited),
        };
        let number = location;
        let location = &mut self.locations[number];
        self.journal.push(undo::Change::Inserted(number as u16, at as u16, location.hash));
        location.stores.insert(at, StoreRecord { place, glued, value, id, view });
        self.hash = self.hash.wrapping_sub(location.hash);
        location.hash = if at + 1 == location.stores.len() {
            mix(location.key, mix(location.hash, id))
        } else {
            location.stores[1..].iter().fold(0, |h, s| mix(location.key, mix(h, s.id)))
        };
        self.hash = self.hash.wrapping_add(location.hash);
        place != before
    }

    /// Replaces the only store of a location by one of this value.
    fn replace(&mut self, location: usize, value: u64) {
        let number = location;
        let location = &mut self.locations[number];
        let store = &mut location.stores[0];
        self.journal.push(undo::Change::Replaced(number as u16, store.value, location.hash));
        store.value = value;
        store.id = mix(value, 9);
        self.hash = self.hash.wrapping_sub(location.hash);
        // As one that was never touched.
        location.hash = if value == 0 { 0 } else { mix(location.key, value) };
        self.hash = self.hash.wrapping_add(location.hash);
    }

    /// Notes that all that `thread` has done comes before what others will do, and all that
    /// others have done before what it will do.
    pub(crate) fn meet(&mut self, thread: usize) {
        if self.merged {
            return;
        }
        let mine = self.minds[thread].now.clone();
        for other in 0..self.minds.len() {
            let theirs = self.minds[other].now.clone();
            self.minds[thread].now.join(&theirs);
            self.minds[other].now.join(&mine);
        }
    }

    /// Executes a fence of `thread`. Returns a word that stands for what a sequentially
    /// consistent one learnt.
    pub(crate) fn fence(&mut self, thread: usize, order: Ordering) -> u64 {
        if self.merged {
            return 0;
        }
        let mut learnt = 0;
        let mind = &mut self.minds[thread];
        if acquires(order) {
            mind.now.join(&mind.seen);
        }
        if order == Ordering::SeqCst {
            mind.now.know(&self.agreed);
            self.agreed.know(&mind.now);
            learnt = self.agreed_hash();
        }
        let mind = &mut self.minds[thread];
        if releases(order) {
            mind.lent = Some(Rc::new(mind.now.clone()));
        }
        learnt
    }

    /// Stands for what sequentially consistent operations have agreed on.
    pub(crate) fn agreed_hash(&self) -> u64 {
        let agreed = self.locations[..self.live].iter().zip(&self.agreed.floor);
        let agreed = agreed.filter(|&(location, &floor)| floor > 0 && location.stores.len() > 1);
        agreed.fold(0, |sum, (location, &floor)| {
            let at = location.stores.partition_point(|store| store.place < floor);
            sum.wrapping_add(mix(location.key, location.stores[at].id))
        })
    }
}
