//! The scenarios of the wait/wound mutex.

use lockstead_core::ww::{
    Class, Context, ContextPatience, RawWwMutex, Scheme, WwError, look_again,
};
use lockstead_core::{LockError, Nanos, Platform, Policy, Slot, WaitBounds};
use lockstead_model::{Cell, Model, Scenario, freed};
use std::panic::Location;

/// The patience of a context that gives up.
const IN_TIME: ContextPatience =
    ContextPatience { deadline: Some(Nanos(100)), interruptible: false };

/// Three locks of a class and what each guards.
pub(super) struct Two<Y: Policy> {
    pub(super) class: Class<Model>,
    pub(super) locks: [RawWwMutex<Model, Y>; 3],
    pub(super) counts: [Cell<u32>; 3],
}

impl<Y: Policy> Two<Y> {
    pub(super) fn new(scheme: Scheme) -> Self {
        Two {
            class: Class::new(scheme),
            locks: [const { RawWwMutex::new() }; 3],
            counts: [Cell::new(0), Cell::new(0), Cell::new(0)],
        }
    }

    /// Takes a lock in a context that holds nothing.
    pub(super) fn take(&self, which: usize, context: &Context<Model>) {
        let taken =
            self.locks[which].lock_slow(context, &ContextPatience::ENDLESS, Location::caller());
        assert_eq!(taken, Ok(()), "holds nothing");
    }

    pub(super) fn leave(&self, which: usize, context: &Context<Model>) {
        // SAFETY: every caller has taken it in this context.
        unsafe { self.locks[which].unlock(Some(context)) };
    }

    pub(super) fn add(&self, which: usize) {
        self.counts[which].set(self.counts[which].get() + 1);
    }

    /// Takes two locks in this order, backing off as often as it must.
    pub(super) fn add_to_both(&self, first: usize, second: usize) {
        let context = Context::begin(&self.class).expect("room");
        self.take_all(&context, &[first, second]);
        assert_eq!(context.acquired(), 0);
        context.finish();
    }

    /// Takes one lock or two in this order, backing off as often as it must.
    fn take_all(&self, context: &Context<Model>, wanted: &[usize]) {
        let [mut a, mut b] = [wanted[0], wanted[wanted.len() - 1]];
        self.take(a, context);
        while a != b
            && let Err(error) = self.locks[b].lock(context, Location::caller())
        {
            assert_eq!(error, WwError::Deadlock);
            self.leave(a, context);
            self.take(b, context);
            [a, b] = [b, a];
        }
        self.add(a);
        if a != b {
            self.add(b);
        }
        self.leave(a, context);
        if a != b {
            self.leave(b, context);
        }
    }

    /// Takes one lock, unless it gives up.
    pub(super) fn add_to_one(&self, patience: ContextPatience) {
        let context = Context::begin(&self.class).expect("room");
        match self.locks[0].lock_how(&context, &patience, Location::caller()) {
            Ok(()) => {
                self.add(0);
                self.leave(0, &context);
            }
            Err(error) => assert_eq!(error, WwError::Lock(LockError::TimedOut)),
        }
        context.finish();
    }

    /// Takes one lock in a context, and makes way to others while it holds it.
    pub(super) fn hold(&self) {
        let context = Context::begin(&self.class).expect("room");
        self.take(0, &context);
        Model::relax();
        self.add(0);
        self.leave(0, &context);
        context.finish();
    }

    /// Takes one lock without a context, by trying until it is free.
    pub(super) fn try_alone(&self, which: usize) {
        while !self.locks[which].try_lock(None, Location::caller()) {
            Model::relax();
        }
        self.add(which);
        // SAFETY: this thread has taken it above, without a context.
        unsafe { self.locks[which].unlock(None) };
    }

    /// Takes one lock without a context.
    pub(super) fn add_alone(&self, which: usize) {
        let taken = self.locks[which].lock_alone(&WaitBounds::FOREVER, Location::caller());
        assert_eq!(taken, Ok(()));
        self.add(which);
        // SAFETY: every caller has taken it without a context.
        unsafe { self.locks[which].unlock(None) };
    }

    /// Takes one lock in a context, which a thread may have ended with.
    pub(super) fn add_unless_lost(&self, which: usize) {
        let context = Context::begin(&self.class).expect("room");
        let lock = &self.locks[which];
        match lock.lock_slow(&context, &ContextPatience::ENDLESS, Location::caller()) {
            Ok(()) => {
                self.add(which);
                self.leave(which, &context);
            }
            Err(error) => assert_eq!(error, WwError::Lock(LockError::OwnerLost)),
        }
        context.finish();
    }

    /// Takes two locks in a context; a thread may have ended with the second.
    pub(super) fn add_to_both_unless_lost(&self, first: usize, second: usize) {
        let context = Context::begin(&self.class).expect("room");
        self.take(first, &context);
        match self.locks[second].lock(&context, Location::caller()) {
            Ok(()) => self.leave(second, &context),
            Err(WwError::Deadlock | WwError::Lock(LockError::OwnerLost)) => {}
            Err(error) => panic!("{error:?}"),
        }
        self.leave(first, &context);
        context.finish();
    }

    /// Takes one lock without a context, which a thread may have ended with.
    pub(super) fn add_alone_unless_lost(&self, which: usize) {
        match self.locks[which].lock_alone(&WaitBounds::FOREVER, Location::caller()) {
            Ok(()) => {
                self.add(which);
                // SAFETY: this thread has taken it just now, without a context.
                unsafe { self.locks[which].unlock(None) };
            }
            Err(error) => assert_eq!(error, LockError::OwnerLost),
        }
    }

    /// Ends with the first lock, taken in a context or without one.
    pub(super) fn end_with_it(&self, alone: bool) {
        if alone {
            let taken = self.locks[0].lock_alone(&WaitBounds::FOREVER, Location::caller());
            assert_eq!(taken, Ok(()));
        } else {
            let context = Context::begin(&self.class).expect("room");
            self.take(0, &context);
        }
        self.add(0);
        assert!(Model::participant(Model::me()).vacate(), "locks name it");
        self.tell_all();
    }

    /// Has the contexts of all threads look again, as the platform does when one has ended.
    pub(super) fn tell_all(&self) {
        for number in 1..=4 {
            look_again::<Model>(Slot::new(number).expect("not zero"));
        }
    }

    pub(super) fn added(&self, counts: [u32; 3]) {
        for (count, expected) in self.counts.iter().zip(counts) {
            assert_eq!(count.get(), expected);
        }
        assert!(self.locks.iter().all(|lock| !lock.is_locked()));
    }
}

/// Makes the scenario in which two contexts want two locks in opposite order.
pub(super) fn opposite<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| two.add_to_both(0, 1))
        .thread(|two| two.add_to_both(1, 0))
        .after(|two| two.added([2, 2, 0]))
}

/// Makes the scenario in which each of three contexts wants two of three locks.
pub(super) fn cycle<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| two.add_to_both(0, 1))
        .thread(|two| two.add_to_both(1, 2))
        .thread(|two| two.add_to_both(2, 0))
        .after(|two| two.added([2, 2, 2]))
}

/// Makes the scenario of two in opposite order, and a third that wants the same.
pub(super) fn crowd<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .threads(2, |two| two.add_to_both(0, 1))
        .thread(|two| two.add_to_both(1, 0))
        .after(|two| two.added([3, 3, 0]))
}

/// Makes the scenario of two in opposite order, and a thread that takes one lock without a context.
pub(super) fn beside_one_alone<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| two.add_to_both(0, 1))
        .thread(|two| two.add_to_both(1, 0))
        .thread(|two| two.add_alone(1))
        .after(|two| two.added([2, 3, 0]))
}

/// Makes the scenario of two in opposite order, and one that gives up.
pub(super) fn with_a_timed_one<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| two.add_to_both(0, 1))
        .thread(|two| two.add_to_both(1, 0))
        .thread(|two| {
            let context = Context::begin(&two.class).expect("room");
            match two.locks[0].lock_how(&context, &IN_TIME, Location::caller()) {
                Ok(()) => two.leave(0, &context),
                Err(error) => assert_eq!(error, WwError::Lock(LockError::TimedOut)),
            }
            context.finish();
        })
        .after(|two| two.added([2, 2, 0]))
}

/// Makes the scenario in which four contexts want one lock: two may sleep behind a first.
pub(super) fn queue<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .threads(4, |two| two.add_to_one(ContextPatience::ENDLESS))
        .after(|two| two.added([4, 0, 0]))
}

/// Makes the same scenario, of which two give up: where the time of one is over, the other is late
/// when it is woken.
pub(super) fn queue_with_timed_ones<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .threads(2, |two| two.add_to_one(ContextPatience::ENDLESS))
        .threads(2, |two| {
            two.add_to_one(IN_TIME);
        })
        .after(|two| assert!(two.locks.iter().all(|lock| !lock.is_locked())))
}

/// Makes the scenario in which whoever takes the lock last frees it.
pub(super) fn last_frees<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme)).threads(2, |two| {
        let context = Context::begin(&two.class).expect("room");
        two.take(0, &context);
        two.add(0);
        let last = two.counts[0].get() == 2;
        two.leave(0, &context);
        context.finish();
        if last {
            freed(two);
        }
    })
}

/// Makes the scenario in which an older context comes late: it begins before others queue, and asks
/// for the lock when one of them waits and another sleeps behind that.
pub(super) fn late_older_one<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| {
            let context = Context::begin(&two.class).expect("room");
            Model::relax();
            two.take(0, &context);
            two.add(0);
            two.leave(0, &context);
            context.finish();
        })
        .threads(2, |two| two.add_to_one(ContextPatience::ENDLESS))
        .thread(Two::hold)
        .after(|two| two.added([4, 0, 0]))
}

/// Makes the scenario in which a context that holds one lock wants another, for which an older one
/// waits, and a younger one that holds nothing: of these two, that one may be woken first. The
/// youngest but one takes the lock then, and wants the other as well.
pub(super) fn woken_before_an_older<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    let late = |two: &Two<Y>, wanted: &[usize]| {
        let context = Context::begin(&two.class).expect("room");
        Model::relax();
        two.take_all(&context, wanted);
        context.finish();
    };
    Scenario::new(move || Two::new(scheme))
        .thread(move |two| late(two, &[0]))
        .thread(move |two| late(two, &[1, 0]))
        .thread(|two| {
            let context = Context::begin(&two.class).expect("room");
            two.take(0, &context);
            Model::relax();
            two.leave(0, &context);
            two.take_all(&context, &[0, 1]);
            context.finish();
        })
        .thread(|two| two.add_to_one(ContextPatience::ENDLESS))
        .after(|two| two.added([4, 2, 0]))
}

/// Makes the scenario in which a newcomer asks for a lock that was fought over: it has held the
/// lock before, another thread (`between`) waited for it then, and an older context that holds what
/// the newcomer wants next waits for it now.
pub(super) fn newcomer<Y: Policy>(
    scheme: Scheme,
    between: impl Fn(&Two<Y>) + 'static,
) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| {
            two.hold();
            Model::relax();
            two.add_to_both(0, 1);
        })
        .thread(|two| two.add_to_both(1, 0))
        .thread(between)
        .after(|two| two.added([4, 2, 0]))
}

/// Makes the scenario in which a context tries one lock and then wants the other.
pub(super) fn trier<Y: Policy>(scheme: Scheme) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(|two| two.add_alone(0))
        .thread(|two| two.add_to_both(1, 0))
        .thread(|two| {
            let context = Context::begin(&two.class).expect("room");
            if two.locks[0].try_lock(Some(&context), Location::caller()) {
                if two.locks[1].lock(&context, Location::caller()).is_ok() {
                    two.leave(1, &context);
                }
                two.leave(0, &context);
            }
            context.finish();
        })
        .after(|two| assert!(two.locks.iter().all(|lock| !lock.is_locked())))
}

/// Makes the scenario in which a context waits for a lock, gives up perhaps, and then its thread
/// takes the lock without a context, as `take` says. No context waits any more, and the lock says
/// so.
pub(super) fn context_is_gone<Y: Policy>(take: impl Fn(&Two<Y>) + 'static) -> Scenario<Two<Y>> {
    Scenario::new(|| Two::new(Scheme::WoundWait))
        .thread(|two| two.add_alone(0))
        .thread(move |two| {
            two.add_to_one(IN_TIME);
            take(two);
        })
        .after(|two: &Two<Y>| {
            assert!(!format!("{:?}", two.locks[0]).contains("contexts"));
            assert!(!two.locks[0].is_locked());
        })
}

/// Makes the scenario in which a thread ends with a lock, taken in a context or without one, for which
/// these ask.
pub(super) fn ended<Y: Policy>(
    scheme: Scheme,
    alone: bool,
    asks: impl Fn(&Two<Y>) + 'static,
) -> Scenario<Two<Y>> {
    Scenario::new(move || Two::new(scheme))
        .thread(move |two| two.end_with_it(alone))
        .thread(asks)
        .after(|two: &Two<Y>| {
            assert_eq!(two.locks.each_ref().map(RawWwMutex::is_locked), [true, false, false]);
        })
}
