//! The lives of locks: first seen, initialised, destroyed, initialised anew.
//!
//! # Protocol
//! The record of an address is its record for ever, so that a thread may
//! remember it without asking. A life that ends moves its statistics into a
//! grave of its class, so that a report still has them; when a class has
//! [`GRAVES`] of them, the rest share one. A program that makes and destroys
//! locks without end so fills no memory.
//!
//! A program that initialises a lock at an address races with nobody: locks in
//! use are not initialised. If it does so all the same, counts may be
//! attributed to the wrong life; nothing else can happen.

use crate::class::GRAVES;
use crate::ledger::{Ledger, LedgerPart};
use crate::lock::{Extension, LockRecord, ObjectKind, RecordLife, SHARED_WORDS};
use crate::order::SeenEdge;
use crate::publish::{WaitKind, Waiting};
use crate::shares::{Shares, StackShare};
use crate::table::{Inserted, spread};
use core::sync::atomic::Ordering::Relaxed;

/// The end of a stack that stands for its first return address only. The unwinder lets no
/// walk end so.
const PLACE_ALONE: u32 = u32::MAX;

/// What is known of a lock when it is first seen or initialised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Birth {
    /// The address of the lock.
    pub address: u64,
    /// What kind of lock it is.
    pub kind: ObjectKind,
    /// The attributes of the lock, bits of [`attribute`](crate::lock::attribute).
    pub attributes: u16,
    /// Id of the stack of its initialisation; 0 when only its use was seen.
    pub init_stack: u32,
    /// Id of the stack of its first use; 0 when it is being initialised.
    pub first_stack: u32,
    /// The index of the module it lies in plus one; 0 for the heap and stacks.
    pub module: u32,
}

impl<'a> Ledger<'a> {
    /// Returns the index of the record of a lock, if there is one.
    #[inline]
    #[must_use]
    pub fn find_lock(&self, address: u64) -> Option<u32> {
        self.address_table().find(spread(address), |index| self.is_at(index, address))
    }

    /// Returns the index of the record of what a thread waits for, if there is one; of no join.
    #[must_use]
    pub fn lock_of(&self, waiting: &Waiting) -> Option<u32> {
        if waiting.how.kind() != WaitKind::FUTEX {
            return self.find_lock(waiting.target);
        }
        let address = if waiting.companion == 0 { waiting.target } else { waiting.companion };
        let own = self.find_lock(address).filter(|&index| {
            self.lock(index).is_some_and(|lock| lock.shape().0 == ObjectKind::Futex)
        });
        own.or_else(|| self.find_lock(SHARED_WORDS | u64::from(waiting.stack)))
    }

    /// Tells whether a wait that has not ended sleeps on a futex word as threads do that wait for a
    /// lock. `lock` is the index of its record.
    #[must_use]
    pub fn sleeps_for_lock(&self, waiting: &Waiting, lock: u32) -> bool {
        let statistics = || self.existing_extension(self.lock(lock)?);
        waiting.how.kind() == WaitKind::FUTEX
            && statistics().is_some_and(|those| those.handing.counted.load(Relaxed) != 0)
    }

    #[inline]
    fn is_at(&self, index: u32, address: u64) -> bool {
        let lock = self.locks().get(index as usize);
        lock.is_some_and(|lock| lock.address.load(Relaxed) == address)
    }

    /// Returns the record with this index; `None` for 0 and beyond the last.
    #[inline]
    #[must_use]
    pub fn lock(&self, index: u32) -> Option<&'a LockRecord> {
        self.locks().get(index as usize).filter(|_| index != 0)
    }

    /// Notes a use of the lock and returns the index of its record, made if there is none.
    /// Returns `None`, and counts the loss, when there is no room.
    pub fn use_lock(&self, birth: &Birth) -> Option<u32> {
        if let Some(index) = self.find_lock(birth.address) {
            let lock = &self.locks()[index as usize];
            if !matches!(lock.shape().1, RecordLife::Live) {
                self.begin(index, birth);
            } else if birth.first_stack != 0 && lock.first_stack.load(Relaxed) == 0 {
                lock.first_stack.store(birth.first_stack, Relaxed);
            }
            return Some(index);
        }
        let Some(index) = self.claim(LedgerPart::Locks, 1).map(|index| index as u32) else {
            self.header().losses.locks.fetch_add(1, Relaxed);
            return None;
        };
        let lock = &self.locks()[index as usize];
        lock.address.store(birth.address, Relaxed);
        self.begin(index, birth);
        let is = |other| self.is_at(other, birth.address);
        let inserted = self.address_table().insert(spread(birth.address), index, is);
        match inserted {
            Inserted::New => Some(index),
            Inserted::Found(other) => {
                // Another thread saw the lock first; this record stays unused.
                lock.set_shape(ObjectKind::Unknown, RecordLife::Unused, 0);
                Some(other)
            }
            Inserted::Full => {
                lock.set_shape(ObjectKind::Unknown, RecordLife::Unused, 0);
                self.header().losses.locks.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Notes that the lock is being initialised, and returns the index of its record. A life
    /// that was not ended ends.
    pub fn init_lock(&self, birth: &Birth) -> Option<u32> {
        if let Some(index) = self.find_lock(birth.address) {
            self.end_life(index, RecordLife::Destroyed);
            self.begin(index, birth);
            return Some(index);
        }
        self.use_lock(birth)
    }

    /// Notes that the lock has been destroyed.
    pub fn destroy_lock(&self, address: u64) {
        if let Some(index) = self.find_lock(address) {
            self.end_life(index, RecordLife::Destroyed);
        }
    }

    /// Notes that the lock's memory has become something else.
    pub fn lose_lock(&self, index: u32) {
        if (index as usize) < self.locks().len() {
            self.end_life(index, RecordLife::Gone);
        }
    }

    /// Returns the statistics of a lock, made if there are none. Returns `None`, and counts
    /// the loss, when there is no room.
    pub fn extension(&self, index: u32) -> Option<&'a Extension> {
        let lock = self.lock(index)?;
        let found = lock.extension.load(Relaxed);
        if found != 0 {
            return self.extensions().get(found as usize);
        }
        let Some(made) = self.claim(LedgerPart::Extensions, 1) else {
            self.header().losses.extensions.fetch_add(1, Relaxed);
            return None;
        };
        let extensions = self.extensions();
        extensions[made].lock.store(u64::from(index), Relaxed);
        match lock.extension.compare_exchange(0, made as u32, Relaxed, Relaxed) {
            Ok(_) => extensions.get(made),
            // Another thread was first: the one made here stays empty, of no lock.
            Err(other) => {
                extensions[made].lock.store(0, Relaxed);
                self.extensions().get(other as usize)
            }
        }
    }

    /// Returns the statistics of a lock, if there are any.
    #[must_use]
    pub fn existing_extension(&self, lock: &LockRecord) -> Option<&'a Extension> {
        let index = lock.extension.load(Relaxed);
        if index == 0 { None } else { self.extensions().get(index as usize) }
    }

    fn begin(&self, index: u32, birth: &Birth) {
        let lock = &self.locks()[index as usize];
        let class = if birth.init_stack != 0 { birth.init_stack } else { birth.first_stack };
        let serial = self.serial(class);
        lock.generation.fetch_add(1, Relaxed);
        lock.init_stack.store(birth.init_stack, Relaxed);
        lock.first_stack.store(birth.first_stack, Relaxed);
        lock.serial.store(serial, Relaxed);
        lock.module.store(birth.module, Relaxed);
        lock.handed_on.store(0, Relaxed);
        lock.held_before.store(0, Relaxed);
        lock.frame.store(0, Relaxed);
        lock.set_shape(birth.kind, RecordLife::Live, birth.attributes);
    }

    /// Numbers the locks from one place: reports name the place and the number,
    /// not all of the stack that led there.
    fn serial(&self, stack: u32) -> u32 {
        let Some(site) = self.stack(stack).map(|stack| stack.site()) else { return 0 };
        let place = match self.intern_stack(&[site], PLACE_ALONE) {
            0 => stack,
            place => place,
        };
        self.classes()
            .get(place as usize)
            .map_or(0, |place| place.created.fetch_add(1, Relaxed) + 1)
    }

    /// Buries what a life has left, and marks the record as ended so.
    fn end_life(&self, index: u32, so: RecordLife) {
        let lock = &self.locks()[index as usize];
        let (kind, life, attributes) = lock.shape();
        if !matches!(life, RecordLife::Live) {
            return;
        }
        lock.set_shape(kind, so, attributes);
        let generation = lock.generation.fetch_add(1, Relaxed);
        if lock.ordered.swap(0, Relaxed) != 0 {
            self.add_edge(&SeenEdge::end_of(index, generation));
        }
        let acquisitions = lock.acquisitions.swap(0, Relaxed);
        let extension = lock.extension.load(Relaxed);
        if acquisitions == 0 && extension == 0 {
            return;
        }
        let Some(grave) = self.grave(lock, generation) else {
            self.header().losses.locks.fetch_add(1, Relaxed);
            return;
        };
        // Another thread may have made the grave just now, behind the end of the part that this one has read.
        let Some(record) = self.locks().get(grave as usize) else {
            self.header().losses.locks.fetch_add(1, Relaxed);
            return;
        };
        record.buried.fetch_add(1, Relaxed);
        record.acquisitions.fetch_add(acquisitions, Relaxed);
        if extension == 0 {
            return;
        }
        let Some(statistics) = self.extensions().get(extension as usize) else {
            self.header().losses.extensions.fetch_add(1, Relaxed);
            return;
        };
        if record.extension.load(Relaxed) == 0 {
            // The statistics move with their history. Of two lives that end at the same time in a grave that
            // they share, one moves in.
            lock.extension.store(0, Relaxed);
            statistics.lock.store(u64::from(grave), Relaxed);
            if record.extension.compare_exchange(0, extension, Relaxed, Relaxed).is_ok() {
                return;
            }
            statistics.lock.store(u64::from(index), Relaxed);
            lock.extension.store(extension, Relaxed);
        }
        if let Some(of_grave) = self.existing_extension(record) {
            self.absorb(of_grave, statistics);
        }
    }

    /// Makes a record to bury the life of `lock` with this number in, or returns the mass grave of
    /// its class.
    fn grave(&self, lock: &LockRecord, generation: u32) -> Option<u32> {
        let init_stack = lock.init_stack.load(Relaxed);
        let first_stack = lock.first_stack.load(Relaxed);
        let class = if init_stack != 0 { init_stack } else { first_stack };
        let class = self.classes().get(class as usize)?;
        let shared = class.mass_grave.load(Relaxed);
        if shared != 0 {
            return Some(shared);
        }
        let index = self.claim(LedgerPart::Locks, 1)? as u32;
        let mass = class.graves.fetch_add(1, Relaxed) >= GRAVES;
        let grave = &self.locks()[index as usize];
        let (kind, _, attributes) = lock.shape();
        grave.address.store(lock.address.load(Relaxed), Relaxed);
        grave.generation.store(generation, Relaxed);
        grave.init_stack.store(init_stack, Relaxed);
        grave.first_stack.store(first_stack, Relaxed);
        grave.serial.store(lock.serial.load(Relaxed), Relaxed);
        grave.module.store(lock.module.load(Relaxed), Relaxed);
        grave.set_shape(
            kind,
            if mass { RecordLife::MassGrave } else { RecordLife::Grave },
            attributes,
        );
        if mass {
            // Two threads may make one each at once: the later one gets the rest.
            class.mass_grave.store(index, Relaxed);
        }
        Some(index)
    }

    /// Adds all of `from` to `to`; `from` is empty afterwards.
    fn absorb(&self, to: &'a Extension, from: &'a Extension) {
        for (mine, theirs) in [
            (&to.contended, &from.contended),
            (&to.timed_out, &from.timed_out),
            (&to.refused, &from.refused),
            (&to.timed, &from.timed),
            (&to.scaled, &from.scaled),
            (&to.coarse, &from.coarse),
            (&to.coarse_total, &from.coarse_total),
        ] {
            mine.fetch_add(theirs.swap(0, Relaxed), Relaxed);
        }
        to.roles.absorb(&from.roles);
        to.handing.absorb(&from.handing);
        to.wait.absorb(&from.wait);
        to.hold.absorb(&from.hold);
        self.move_shares(&from.waited_at, &to.waited_at);
        self.move_shares(&from.held_at, &to.held_at);
    }

    /// Adds to the share of `stack`, or to that of all others, and returns it. `total` is the
    /// sum of `count` times in nanoseconds.
    pub fn add_share(
        &self,
        shares: &'a Shares,
        stack: u32,
        count: u64,
        total: u64,
    ) -> &'a StackShare {
        // `chunk` asks for the slice each time: a chunk that `more` has claimed just now
        // lies beyond the end that the slice had before.
        let chunk = |index: u32| self.share_chunks().get(index as usize);
        let more = || self.claim(LedgerPart::Shares, 1).map(|index| index as u32);
        let share = shares.of(stack, chunk, more);
        share.add(count, total);
        share
    }

    /// Returns all shares in use. That of all other stacks, whose `stack` is 0, comes last.
    pub fn shares(&self, shares: &'a Shares) -> impl Iterator<Item = &'a StackShare> + use<'a> {
        let chunks = self.share_chunks();
        shares.all(move |index| chunks.get(index as usize))
    }

    /// Adds all of `from` to `to`, and empties it.
    fn move_shares(&self, from: &'a Shares, to: &'a Shares) {
        for share in self.shares(from) {
            let (stack, released) = (share.stack.swap(0, Relaxed), share.released.swap(0, Relaxed));
            let (count, total) = (share.count.swap(0, Relaxed), share.total.swap(0, Relaxed));
            let moved = self.add_share(to, stack, count, total);
            if moved.released.load(Relaxed) == 0 {
                moved.released.store(released, Relaxed);
            }
        }
    }
}
