//! The ways to take several locks without deadlock.

use super::options::MAX_TAKE;
use lockstead_core::RawMutex;
use lockstead_core::ww::{Class, Context, ContextPatience, RawWwMutex, Scheme, WwError};
use lockstead_linux::Linux;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};

/// How often turns were refused, and how many locks they took again for that.
#[derive(Clone, Copy, Default)]
pub(super) struct Refusals {
    pub(super) refusals: u64,
    pub(super) retries: u64,
}

impl Refusals {
    fn refused(&mut self, held: usize) {
        self.refusals += 1;
        self.retries += held as u64;
    }
}

/// Locks, and a way to take several of them.
pub(super) trait LockSet: Send + Sync + 'static {
    /// Takes the wanted locks, all different, and has them in any order when it calls `section`;
    /// then releases them.
    fn turn(&self, wanted: &mut [usize], refusals: &mut Refusals, section: impl FnOnce(&[usize]));
}

/// A lock on lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Line<L>(L);

fn lines<L: Default>(locks: usize) -> Box<[Line<L>]> {
    (0..locks).map(|_| Line::default()).collect()
}

/// Wait/wound mutexes, in a context for each turn.
pub(super) struct Contexts {
    class: Class<Linux>,
    locks: Box<[Line<RawWwMutex<Linux>>]>,
}

impl Contexts {
    pub(super) fn new(scheme: Scheme, locks: usize) -> Self {
        Self { class: Class::new(scheme), locks: lines(locks) }
    }

    fn release(&self, held: &[usize], context: &Context<Linux>) {
        for &lock in held {
            // SAFETY: by PEER-HELD `held` are locks that this thread has taken in this context in its
            // turn, and each is released once.
            unsafe { self.locks[lock].0.unlock(Some(context)) };
        }
    }
}

impl LockSet for Contexts {
    fn turn(&self, wanted: &mut [usize], refusals: &mut Refusals, section: impl FnOnce(&[usize])) {
        let here = Location::caller();
        let context = Context::begin(&self.class).expect("the only context of its thread");
        let mut held = 0;
        while held < wanted.len() {
            match self.locks[wanted[held]].0.lock(&context, here) {
                Ok(()) => held += 1,
                Err(WwError::Deadlock) => {
                    refusals.refused(held);
                    self.release(&wanted[..held], &context);
                    wanted.swap(0, held);
                    let refused = &self.locks[wanted[0]].0;
                    refused
                        .lock_slow(&context, &ContextPatience::ENDLESS, here)
                        .expect("holds nothing");
                    held = 1;
                }
                Err(error) => unreachable!("each lock is wanted once: {error:?}"),
            }
        }
        section(wanted);
        self.release(wanted, &context);
        context.finish();
    }
}

/// A mutex as [`Ordered`] takes it.
pub(super) trait OrderedLock: Default + Send + Sync + 'static {
    /// The proof that it is held, which releases it.
    type Guard<'a>;

    fn acquire(&self) -> Self::Guard<'_>;
}

impl OrderedLock for Mutex<()> {
    type Guard<'a> = MutexGuard<'a, ()>;

    #[inline(always)]
    fn acquire(&self) -> MutexGuard<'_, ()> {
        self.lock().expect("no section panics")
    }
}

/// The proof that this project's mutex is held.
pub(super) struct RawGuard<'a>(&'a RawMutex<Linux>);

impl OrderedLock for RawMutex<Linux> {
    type Guard<'a> = RawGuard<'a>;

    #[inline(always)]
    fn acquire(&self) -> RawGuard<'_> {
        self.lock(Location::caller()).expect("each lock is wanted once");
        RawGuard(self)
    }
}

impl Drop for RawGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: by PEER-HELD the thread that has taken the lock has the guard, and drops it once.
        unsafe { self.0.unlock() };
    }
}

/// Mutexes in the order of their addresses.
pub(super) struct Ordered<L> {
    locks: Box<[Line<L>]>,
}

impl<L: OrderedLock> Ordered<L> {
    pub(super) fn new(locks: usize) -> Self {
        Self { locks: lines(locks) }
    }
}

impl<L: OrderedLock> LockSet for Ordered<L> {
    fn turn(&self, wanted: &mut [usize], _: &mut Refusals, section: impl FnOnce(&[usize])) {
        wanted.sort_unstable();
        let mut held: [Option<L::Guard<'_>>; MAX_TAKE] = [const { None }; MAX_TAKE];
        for (place, &lock) in held.iter_mut().zip(wanted.iter()) {
            *place = Some(self.locks[lock].0.acquire());
        }
        section(wanted);
        held[..wanted.len()].fill_with(|| None);
    }
}

/// The rule of thumb: mutexes of `std`, of which a turn waits for one at a time, with nothing held.
pub(super) struct Trying {
    locks: Box<[Line<Mutex<()>>]>,
}

impl Trying {
    pub(super) fn new(locks: usize) -> Self {
        Self { locks: lines(locks) }
    }
}

impl LockSet for Trying {
    fn turn(&self, wanted: &mut [usize], refusals: &mut Refusals, section: impl FnOnce(&[usize])) {
        let mut guards: [Option<MutexGuard<'_, ()>>; MAX_TAKE] = [const { None }; MAX_TAKE];
        guards[0] = Some(self.locks[wanted[0]].0.acquire());
        let mut held = 1;
        while held < wanted.len() {
            if let Ok(guard) = self.locks[wanted[held]].0.try_lock() {
                guards[held] = Some(guard);
                held += 1;
            } else {
                refusals.refused(held);
                guards[..held].fill_with(|| None);
                wanted.swap(0, held);
                guards[0] = Some(self.locks[wanted[0]].0.acquire());
                held = 1;
            }
        }
        section(wanted);
        guards[..held].fill_with(|| None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a thread want two locks, twice.
    fn takes_both(set: &impl LockSet) {
        let mut refusals = Refusals::default();
        for mut wanted in [[0, 2], [2, 1]] {
            let (mut had, mut before) = (Vec::new(), wanted);
            set.turn(&mut wanted, &mut refusals, |held| had.extend_from_slice(held));
            had.sort_unstable();
            before.sort_unstable();
            assert_eq!(had, before);
        }
        assert_eq!((refusals.refusals, refusals.retries), (0, 0), "nobody else wants them");
    }

    #[test]
    fn a_turn_has_the_locks_that_it_wants() {
        takes_both(&Contexts::new(Scheme::WaitDie, 3));
        takes_both(&Contexts::new(Scheme::WoundWait, 3));
        takes_both(&Ordered::<RawMutex<Linux>>::new(3));
        takes_both(&Ordered::<Mutex<()>>::new(3));
        takes_both(&Trying::new(3));
    }
}
