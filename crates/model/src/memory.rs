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
//! - A read-modify-write that succeeds reads the newest store. It passes on
//!   the view of the store it read (release sequences of C++20). A
//!   compare-exchange that fails is a load: it may read an older store, if that
//!   differs from the expected value.
//! - Fences: a release fence lends its view to later relaxed stores, an acquire
//!   fence adopts the views that earlier relaxed loads saw.
//! - `SeqCst`: every such access and fence also exchanges views with one global
//!   view. That is at least as strong as C++ demands; it is stronger where
//!   accesses of both kinds meet on one location.
//! - Of several readable stores of equal value the older ones are offered only
//!   where a newer one does not merely add knowledge: a thread that knows less
//!   can do everything that one that knows more can.
//!
//! # What it does not show
//! A store goes to the end of the modification order and its value is known
//! when it executes. So a load never reads a store that comes later in the
//! schedule (load buffering), and two stores are never ordered against the
//! order in which they were executed (the weak outcome of 2+2W).

use crate::fingerprint::mix;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Most threads of a model, and the one that sets it up.
pub(crate) const MAX_THREADS: usize = 8;

/// Most locations that an execution touches.
pub(crate) const MAX_LOCATIONS: usize = 96;

/// What somebody knows.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Steps of each thread that happened before.
    pub(crate) clock: [u16; MAX_THREADS],
    /// Index of the oldest readable store, by location.
    floor: [u16; MAX_LOCATIONS],
}

impl View {
    const NEW: View = View { clock: [0; MAX_THREADS], floor: [0; MAX_LOCATIONS] };

    fn raise(&mut self, location: usize, to: u16) {
        let floor = &mut self.floor[location];
        *floor = to.max(*floor);
    }

    pub(crate) fn join(&mut self, other: &View) {
        for (mine, theirs) in self.clock.iter_mut().zip(&other.clock) {
            *mine = (*mine).max(*theirs);
        }
        for (mine, theirs) in self.floor.iter_mut().zip(&other.floor) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether `other` knows everything that this one knows.
    fn within(&self, other: &View) -> bool {
        self.clock.iter().zip(&other.clock).all(|(a, b)| a <= b)
            && self.floor.iter().zip(&other.floor).all(|(a, b)| a <= b)
    }
}

struct Store {
    value: u64,
    /// Names the store by what its writer had seen.
    id: u64,
    view: Option<Rc<View>>,
}

/// Who has touched a location in this execution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touched {
    Nobody,
    By(usize),
    Shared,
}

pub(crate) struct Location {
    /// The same in every execution (see `space.rs`).
    pub(crate) key: u64,
    pub(crate) touched: Touched,
    stores: Vec<Store>,
    hash: u64,
}

struct Mind {
    now: View,
    /// What an acquire fence would add.
    seen: View,
    /// What a relaxed store passes on: the view at the last release fence.
    lent: Option<Rc<View>>,
}

impl Mind {
    const NEW: Mind = Mind { now: View::NEW, seen: View::NEW, lent: None };
}

/// All locations and what everybody knows of them.
pub(crate) struct Memory {
    /// The first `live` are in use; the others keep their allocations.
    locations: Vec<Location>,
    live: usize,
    minds: Vec<Mind>,
    fence: View,
    fence_hash: u64,
    /// The sum of all locations' hashes.
    pub(crate) hash: u64,
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory {
            locations: Vec::new(),
            live: 0,
            minds: Vec::new(),
            fence: View::NEW,
            fence_hash: 0,
            hash: 0,
        }
    }

    pub(crate) fn reset(&mut self, threads: usize) {
        self.live = 0;
        self.minds.clear();
        self.minds.resize_with(threads, || Mind::NEW);
        self.fence = View::NEW;
        self.fence_hash = 0;
        self.hash = 0;
    }

    /// A new location that holds zero, and that everybody knows; `None` if
    /// there are too many.
    pub(crate) fn register(&mut self, key: u64) -> Option<usize> {
        let index = self.live;
        if index == MAX_LOCATIONS {
            return None;
        }
        if index == self.locations.len() {
            let (touched, stores) = (Touched::Nobody, Vec::new());
            self.locations.push(Location { key, touched, stores, hash: 0 });
        }
        let location = &mut self.locations[index];
        location.key = key;
        location.touched = Touched::Nobody;
        location.stores.clear();
        location.stores.push(Store { value: 0, id: 0, view: None });
        location.hash = 0;
        self.live += 1;
        Some(index)
    }

    pub(crate) fn location(&mut self, location: usize) -> &mut Location {
        &mut self.locations[location]
    }

    /// The newest value.
    pub(crate) fn newest(&self, location: usize) -> u64 {
        self.locations[location].stores.last().expect("a location has a store").value
    }

    pub(crate) fn value(&self, location: usize, index: u16) -> u64 {
        self.locations[location].stores[index as usize].value
    }

    pub(crate) fn last_index(&self, location: usize) -> u16 {
        self.locations[location].stores.len() as u16 - 1
    }

    pub(crate) fn view(&mut self, thread: usize) -> &mut View {
        &mut self.minds[thread].now
    }

    /// Everything `thread` does comes before everything `other` will do.
    pub(crate) fn happens_before(&mut self, thread: usize, other: usize) {
        let view = self.minds[thread].now.clone();
        self.minds[other].now.join(&view);
    }

    /// Nobody may read anything but the newest stores.
    pub(crate) fn catch_up(&mut self) {
        for mind in &mut self.minds {
            for location in 0..self.live {
                mind.now.raise(location, self.locations[location].stores.len() as u16 - 1);
            }
        }
    }

    /// The stores before the newest one that `thread` may read and whose value
    /// satisfies `wanted`, newest first.
    pub(crate) fn stale(
        &self,
        thread: usize,
        location: usize,
        newest_too: bool,
        wanted: impl Fn(u64) -> bool,
        into: &mut Vec<u16>,
    ) {
        into.clear();
        let stores = &self.locations[location].stores;
        let floor = self.minds[thread].now.floor[location] as usize;
        let last = stores.len() - 1;
        if newest_too {
            into.push(last as u16);
        }
        for index in (floor..last).rev() {
            let store = &stores[index];
            if !wanted(store.value) {
                continue;
            }
            // An older store that tells less replaces a newer equal one.
            let replaces = into.iter().position(|&newer| {
                let newer = &stores[newer as usize];
                newer.value == store.value
                    && match (&store.view, &newer.view) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some(a), Some(b)) => a.within(b),
                    }
            });
            match replaces {
                Some(at) => into[at] = index as u16,
                None => into.push(index as u16),
            }
        }
    }

    /// `thread` reads the store with `index`; returns its value and name.
    pub(crate) fn read(
        &mut self,
        thread: usize,
        location: usize,
        index: u16,
        order: Ordering,
    ) -> (u64, u64) {
        let store = &self.locations[location].stores[index as usize];
        let mind = &mut self.minds[thread];
        mind.now.raise(location, index);
        if let Some(view) = &store.view {
            if acquires(order) {
                mind.now.join(view);
            } else {
                mind.seen.join(view);
            }
        }
        (store.value, store.id)
    }

    /// `thread` appends a store named `id`; `extends` when it is the write of a
    /// read-modify-write.
    pub(crate) fn write(
        &mut self,
        thread: usize,
        location: usize,
        value: u64,
        order: Ordering,
        id: u64,
        extends: bool,
    ) {
        let index = self.locations[location].stores.len() as u16;
        let mind = &mut self.minds[thread];
        mind.now.raise(location, index);
        let mine =
            if releases(order) { Some(Rc::new(mind.now.clone())) } else { mind.lent.clone() };
        let location = &mut self.locations[location];
        let inherited =
            if extends { location.stores.last().and_then(|s| s.view.clone()) } else { None };
        let view = match (mine, inherited) {
            (Some(mine), Some(inherited)) => {
                let mut both = Rc::unwrap_or_clone(mine);
                both.join(&inherited);
                Some(Rc::new(both))
            }
            (mine, inherited) => mine.or(inherited),
        };
        location.stores.push(Store { value, id, view });
        self.hash = self.hash.wrapping_sub(location.hash);
        location.hash = mix(location.key, mix(location.hash, id));
        self.hash = self.hash.wrapping_add(location.hash);
    }

    /// A fence of `thread`. A sequentially consistent one returns a word that
    /// stands for what it learnt; `seen` stands for all the thread knows.
    pub(crate) fn fence(&mut self, thread: usize, order: Ordering, seen: u64) -> u64 {
        let mind = &mut self.minds[thread];
        if acquires(order) {
            mind.now.join(&mind.seen);
        }
        if order == Ordering::SeqCst {
            mind.now.join(&self.fence);
            self.fence = mind.now.clone();
            self.fence_hash = mix(self.fence_hash, seen);
        }
        if releases(order) {
            mind.lent = Some(Rc::new(mind.now.clone()));
        }
        if order == Ordering::SeqCst { self.fence_hash } else { 0 }
    }

    /// Stands for the global view.
    pub(crate) fn fence_hash(&self) -> u64 {
        self.fence_hash
    }
}
