//! Atomics on loom's.
//!
//! An operation on half a word is one on the whole. Where loom has no such operation it is a
//! compare-exchange with the value that was written last, and again if others came between: what
//! is read is always the newest value, as by every read-modify-write.
//!
//! # Sequential consistency
//! Loom takes a sequentially consistent load for an acquiring one, and such a store for a releasing one. Here
//! they read or replace the newest value, as read-modify-writes do, and so have their places in the one
//! order of all such accesses. (The store continues a release sequence, which it should end.) That is too much
//! where the newest value was written by a weaker access: such a load may overlook that one. Where a
//! search replaces orderings, and may have made a write weaker, it does: each write that is sequentially
//! consistent publishes itself in a second word of the atomic, and a load that finds a weaker write on top
//! acquires that word, then reads any value that loom lets it read.

use crate::config::AccessKind;
use crate::shelf::{Handle, Item};
use crate::world::{FREED, World, world};
use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::Ordering;

type Site = &'static Location<'static>;

/// A value that no scenario writes: a compare-exchange with it fails, and so reads the newest value
/// and writes nothing.
const NOBODYS: u64 = 0xDEAD_BEEF_DEAD_BEEF;

/// Returns the ordering that an access has where the configuration replaces some.
fn ordering(world: &World, site: Site, kind: AccessKind, order: Ordering) -> Ordering {
    match &world.config.orderings {
        Some(replace) => replace(site, kind, order),
        None => order,
    }
}

impl<A> Item<A> {
    /// Notes that the calling thread has just written with this ordering.
    fn wrote(&self, world: &World, order: Ordering) {
        let Some(agreed) = &self.agreed else { return };
        if std::thread::panicking() || world.is_aside() {
            return;
        }
        if order != Ordering::SeqCst {
            // One that is about to publish itself counts as the newest until it has.
            agreed.overwritten.set(agreed.about_to.get() == 0);
            return;
        }
        agreed.overwritten.set(false);
        agreed.about_to.set(agreed.about_to.get() + 1);
        world.visible(|| agreed.writes.fetch_add(1, Ordering::Release));
        agreed.about_to.set(agreed.about_to.get() - 1);
    }

    /// Tells whether a load of this ordering reads the newest value. Otherwise it may read an older one,
    /// and has learnt of all sequentially consistent writes if it is one of their kind.
    fn reads_newest(&self, world: &World, order: Ordering) -> bool {
        let newest = order == Ordering::SeqCst;
        let agreed = self.agreed.as_ref().filter(|agreed| newest && agreed.overwritten.get());
        let Some(agreed) = agreed else { return newest };
        if !std::thread::panicking() && !world.is_aside() {
            world.visible(|| agreed.writes.fetch_add(0, Ordering::Acquire));
        }
        false
    }

    /// Does `real` to loom's atomic, as an access that a thread of the scenario makes to its
    /// memory; a participant may end before one that writes. While a failed execution is taken down,
    /// when loom can do nothing any more, and in what a scenario notes for its own checks, does
    /// `plain` to the value instead.
    fn access<R>(
        &self,
        world: &World,
        writes: bool,
        real: impl FnOnce(&A) -> R,
        plain: impl FnOnce(&Cell<u64>) -> R,
    ) -> R {
        if std::thread::panicking() || world.is_aside() {
            return plain(&self.newest);
        }
        world.signal_may_come();
        if writes {
            world.may_end();
        }
        crate::section::learn(world);
        // Before the access: a release publishes itself, so whoever acquires it may free the memory.
        crate::world::about_memory(|| self.life.with(|_| ()));
        let result = world.visible(|| real(&self.atomic));
        assert!(!self.freed.get(), "{FREED}");
        result
    }
}

macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident, $value:ident, $shelf:ident, $real:ident) => {
        $(#[$doc])*
        pub struct $name {
            handle: Cell<Handle>,
        }

        impl $name {
            /// The atomic that holds zero.
            #[expect(clippy::declare_interior_mutable_const, reason = "each use is a new one")]
            pub const ZERO: Self = Self { handle: Cell::new(Handle::NEW) };

            /// Returns the number by which wake-ups name the word.
            pub(crate) fn number(&self) -> usize {
                let world = world();
                world.$shelf.item(world.number, &self.handle).0
            }

            /// Reads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let world = world();
                let order = ordering(&world, Location::caller(), AccessKind::Load, order);
                let (_, item) = world.$shelf.item(world.number, &self.handle);
                // That the update publishes nothing makes it a load.
                let newest = item.reads_newest(&world, order);
                let read = |real: &loom::sync::atomic::$real| match (newest, order) {
                    (true, _) => real.fetch_add(0, Ordering::Acquire),
                    (false, Ordering::SeqCst) => real.load(Ordering::Acquire),
                    (false, _) => real.load(order),
                };
                item.access(&world, false, read, |plain| plain.get() as $value)
            }

            /// Writes the value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let world = world();
                let order = ordering(&world, Location::caller(), AccessKind::Store, order);
                let (_, item) = world.$shelf.item(world.number, &self.handle);
                let write = |real: &loom::sync::atomic::$real| match order {
                    Ordering::SeqCst => _ = real.swap(value, Ordering::Release),
                    _ => real.store(value, order),
                };
                item.access(&world, true, write, |_| ());
                item.newest.set(value.into());
                world.changed();
                item.wrote(&world, order);
            }

            /// Writes the value and returns the one before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |real, order| real.swap(value, order), |_| value)
            }

            /// Adds, wrapping, and returns the value before.
            #[track_caller]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let plain = |old: $value| old.wrapping_add(value);
                self.update(order, |real, order| real.fetch_add(value, order), plain)
            }

            /// Subtracts, wrapping, and returns the value before.
            #[track_caller]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                let plain = |old: $value| old.wrapping_sub(value);
                self.update(order, |real, order| real.fetch_sub(value, order), plain)
            }

            /// Sets bits and returns the value before.
            #[track_caller]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |real, order| real.fetch_or(value, order), |old| old | value)
            }

            /// Keeps bits and returns the value before.
            #[track_caller]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |real, order| real.fetch_and(value, order), |old| old & value)
            }

            #[track_caller]
            fn update(
                &self,
                order: Ordering,
                real: impl FnOnce(&loom::sync::atomic::$real, Ordering) -> $value,
                change: impl Fn($value) -> $value,
            ) -> $value {
                let world = world();
                let order = ordering(&world, Location::caller(), AccessKind::Update, order);
                let (_, item) = world.$shelf.item(world.number, &self.handle);
                let read = |plain: &Cell<u64>| plain.get() as $value;
                let old = item.access(&world, true, |a| real(a, order), read);
                item.newest.set(change(old).into());
                world.changed();
                item.wrote(&world, order);
                old
            }

            /// Replaces `current` by `new`.
            ///
            /// # Errors
            /// The value found, when it was not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let world = world();
                let site = Location::caller();
                let success = ordering(&world, site, AccessKind::Exchange, success);
                let failure = ordering(&world, site, AccessKind::FailedExchange, failure);
                let (_, item) = world.$shelf.item(world.number, &self.handle);
                let result = item.access(
                    &world,
                    true,
                    |real| real.compare_exchange(current, new, success, failure),
                    |plain| match plain.get() as $value {
                        found if found == current => Ok(found),
                        found => Err(found),
                    },
                );
                if result.is_ok() {
                    item.newest.set(new.into());
                    world.changed();
                    item.wrote(&world, success);
                }
                result
            }

            /// Looks at the newest value, in a step that has an order to every other access and
            /// publishes nothing. The machine does it, not the thread: also to memory that is gone.
            pub(crate) fn peek(world: &World, number: usize) -> $value {
                let item = world.$shelf.at(number);
                let nobodys = NOBODYS as $value;
                let found = world.visible(|| {
                    let (all, none) = (Ordering::Relaxed, Ordering::Relaxed);
                    item.atomic.compare_exchange(nobodys, nobodys, all, none)
                });
                found.expect_err("nobody writes that")
            }

            pub(crate) fn is_freed(world: &World, number: usize) -> bool {
                world.$shelf.at(number).freed.get()
            }
        }
    };
}

atomic!(
    /// A 32-bit atomic. Usable only inside a scenario.
    U32, u32, narrow, AtomicU32
);
atomic!(
    /// A 64-bit atomic. Usable only inside a scenario.
    U64, u64, words, AtomicU64
);

const LOW: u64 = u32::MAX as u64;

impl U64 {
    /// Replaces the low half of the word with this number by `value`, as the machine does when a
    /// participant ends: what that one did is published.
    pub(crate) fn mark_low(world: &World, number: usize, value: u32) {
        let item = world.words.at(number);
        let mut seen = item.newest.get();
        loop {
            let marked = seen & !LOW | u64::from(value);
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let result =
                world.visible(|| item.atomic.compare_exchange(seen, marked, success, failure));
            match result {
                Ok(_) => {
                    item.newest.set(marked);
                    return world.changed();
                }
                Err(found) => seen = found,
            }
        }
    }
}

impl U64 {
    /// Replaces the low half, if it is `current`, by `new`. Returns whether it did.
    #[track_caller]
    pub(crate) fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
        let world = world();
        let site = Location::caller();
        let success = ordering(&world, site, AccessKind::Exchange, order);
        let failure = ordering(&world, site, AccessKind::FailedExchange, Ordering::Relaxed);
        let (_, item) = world.words.item(world.number, &self.handle);
        loop {
            let guess = item.newest.get();
            let guess = if guess & LOW == u64::from(current) { guess } else { NOBODYS };
            let written = guess & !LOW | u64::from(new);
            let result = item.access(
                &world,
                true,
                |real| real.compare_exchange(guess, written, success, failure),
                |_| Ok(guess),
            );
            match result {
                Ok(_) => {
                    item.newest.set(written);
                    world.changed();
                    item.wrote(&world, success);
                    return true;
                }
                Err(found) if found & LOW != u64::from(current) => return false,
                Err(found) => item.newest.set(found),
            }
        }
    }

    /// Erases the low half if it is no more than `most`, and returns whether it did: by a look and
    /// a store between which others may write, as in a section that the kernel restarts, or if so
    /// configured in one exchange, of the number that the thread has as a participant.
    #[track_caller]
    pub(crate) fn erase_low(&self, most: u32, order: Ordering) -> bool {
        let world = world();
        if !world.config.sections || std::thread::panicking() {
            return self.compare_exchange_low(world.me() as u32 + 1, 0, order);
        }
        crate::section::begin(&world);
        let seen = self.load(Ordering::Relaxed) as u32;
        if seen > most || !crate::section::commits(&world) {
            return false;
        }
        self.fetch_and(!LOW, order);
        crate::section::end(&world);
        true
    }
}

/// Declares the memory of `object` as freed: from here on any access to an atomic or plain field in
/// it is a failure, and so is one before that has no order to it. Waking its address is not.
pub fn freed<T>(object: &T) {
    let world = world();
    let start = std::ptr::from_ref(object).addr();
    let memory = start..start + size_of::<T>();
    crate::world::about_memory(|| {
        world.words.within(&memory, free);
        world.narrow.within(&memory, free);
        world.fields.within(&memory, free);
    });
}

fn free<A>(item: &Item<A>) {
    item.life.with_mut(|_| ());
    item.freed.set(true);
}
