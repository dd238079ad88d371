//! The locks under test: the core's mutex and tuned semaphore with any ingredient
//! left out, and the semaphore of 2005.

use super::ingredients::{Ingredient, Without, lacks};
use super::machines::{Cold, Herd, Locked, Nameless};
use crate::clock::Ticks;
use crate::contended::slices::{self, Load, Waits};
use crate::harness::{Slice, Window};
use crate::locks::BenchLock;
use crate::{Error, LockName, Session, uncontended};
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::{ClassicSemaphore, Off, Platform, RawMutex, TunedSemaphore};
use lockstead_linux::Linux;
use lockstead_linux::owner::{self, Oracle};
use serde::Serialize;

/// What is taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lock {
    /// The mutex: names its owner.
    Mutex,
    /// The semaphore with the mutex's tricks, with one permit.
    Semaphore,
    /// The kernel's semaphore of 2005, with one permit.
    Semaphore2005,
}

impl Lock {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Lock::Mutex => "mutex",
            Lock::Semaphore => "semaphore",
            Lock::Semaphore2005 => "semaphore of 2005",
        }
    }

    const fn bench_name(self) -> LockName {
        match self {
            Lock::Mutex => LockName::Lockstead,
            Lock::Semaphore => LockName::SemaphoreTuned,
            Lock::Semaphore2005 => LockName::SemaphoreClassic,
        }
    }
}

/// The mutex without the ingredients in `LACKS`, on the machine `P`, which lacks those
/// that are the machine's.
struct Mutex<P: Platform, const LACKS: u32>(RawMutex<P, Off, Without<LACKS>>);

impl<P: Platform, const LACKS: u32> Mutex<P, LACKS> {
    #[inline(always)]
    fn lock(&self) {
        let locked = self.0.lock(Location::caller());
        locked.expect("a measuring loop takes a lock that it does not hold");
    }

    #[inline(always)]
    fn unlock(&self) {
        // SAFETY: called by `with` alone, by the thread that has locked it.
        unsafe { self.0.unlock() };
    }

    #[inline(never)]
    fn call_lock(&self) {
        self.lock();
    }

    #[inline(never)]
    fn call_unlock(&self) {
        self.unlock();
    }
}

impl<P: Platform, const LACKS: u32> BenchLock for Mutex<P, LACKS>
where
    RawMutex<P, Off, Without<LACKS>>: Send + Sync,
{
    fn new() -> Self {
        Self(RawMutex::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let called = const { lacks(LACKS, Ingredient::Inline) };
        if called {
            self.call_lock();
        } else {
            self.lock();
        }
        let result = section();
        if called {
            self.call_unlock();
        } else {
            self.unlock();
        }
        result
    }
}

/// A semaphore with one permit, without the ingredients in `LACKS`.
macro_rules! semaphore {
    ($(#[$doc:meta])* $name:ident($semaphore:ty)) => {
        $(#[$doc])*
        struct $name<P: Platform, const LACKS: u32>($semaphore);

        impl<P: Platform, const LACKS: u32> $name<P, LACKS> {
            #[inline(always)]
            fn up(&self) {
                self.0.up().expect("a measuring loop gives back the one permit it took");
            }

            #[inline(never)]
            fn call_down(&self) {
                self.0.down(Location::caller());
            }

            #[inline(never)]
            fn call_up(&self) {
                self.up();
            }
        }

        impl<P: Platform, const LACKS: u32> BenchLock for $name<P, LACKS>
        where
            $semaphore: Send + Sync,
        {
            fn new() -> Self {
                Self(<$semaphore>::new(1).expect("one permit is possible"))
            }

            #[inline(always)]
            fn with<R>(&self, section: impl FnOnce() -> R) -> R {
                let called = const { lacks(LACKS, Ingredient::Inline) };
                if called {
                    self.call_down();
                } else {
                    self.0.down(Location::caller());
                }
                let result = section();
                if called {
                    self.call_up();
                } else {
                    self.up();
                }
                result
            }
        }
    };
}

semaphore!(
    /// The tuned semaphore.
    Semaphore(TunedSemaphore<P, Off, Without<LACKS>>)
);
semaphore!(
    /// The semaphore of 2005, of which only the call can be left out.
    Classic(ClassicSemaphore<P>)
);

/// The tuned semaphore with one thing more: who has its permit is written beside it.
/// What the others may do with it, and spinning, stay as they are.
struct Owned {
    semaphore: Semaphore<Linux, 0>,
    owner: AtomicU32,
}

/// [`Owned`] in tables.
pub(crate) const OWNED: &str = "semaphore with owner";

/// Bytes of [`Owned`].
pub(super) const OWNED_BYTES: usize = size_of::<Owned>();

impl BenchLock for Owned {
    fn new() -> Self {
        Owned { semaphore: Semaphore::new(), owner: AtomicU32::new(0) }
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.semaphore.with(|| {
            self.owner.store(Linux::me_or_zero(), Ordering::Relaxed);
            let result = section();
            self.owner.store(0, Ordering::Relaxed);
            result
        })
    }
}

/// What a slice that times waits gives.
type Timed = Result<(Window, Waits), Error>;

/// One lock in one make.
pub(crate) struct Subject {
    pub(crate) lock: Lock,
    /// What it lacks; everything is there if `None`.
    pub(crate) without: Option<Ingredient>,
    throughput: fn(&Slice, Load, &Session<'_>) -> Result<Window, Error>,
    waits: fn(&Slice, Load, Ticks, &Session<'_>) -> Timed,
}

impl Subject {
    fn new<L: BenchLock>(lock: Lock, without: Option<Ingredient>) -> Self {
        Self { lock, without, throughput: slices::throughput::<L>, waits: slices::waits::<L> }
    }

    /// Its name in progress and tables.
    pub(crate) fn name(&self) -> String {
        label(self.lock, self.without)
    }

    /// Counts sections for a slice, then times waits for half of one.
    pub(crate) fn measure(
        &self,
        slice: &mut Slice,
        load: Load,
        clock: Ticks,
        session: &Session<'_>,
    ) -> Result<(Window, Waits), Error> {
        let _oracle = (self.without == Some(Ingredient::OwnerRunning)).then(Unasked::begin);
        slice.lock = self.lock.bench_name();
        let counted = (self.throughput)(slice, load, session)?;
        let (_, waits) = (self.waits)(slice, load, clock, session)?;
        Ok((counted, waits))
    }
}

/// What a lock without an ingredient is called.
#[must_use]
pub fn label(lock: Lock, without: Option<Ingredient>) -> String {
    match without {
        None => lock.name().to_owned(),
        Some(choice) if choice.is_choice() => format!("{} with {}", lock.name(), choice.name()),
        Some(ingredient) => format!("{} without {}", lock.name(), ingredient.name()),
    }
}

/// While this lives no spinner asks whether an owner runs.
struct Unasked(Oracle);

impl Unasked {
    fn begin() -> Self {
        let before = owner::oracle();
        owner::set_oracle(Oracle::Nobody);
        Self(before)
    }
}

impl Drop for Unasked {
    fn drop(&mut self) {
        owner::set_oracle(self.0);
    }
}

/// The mutex whole, and without each of [`Ingredient::MUTEX`].
pub(crate) fn mutexes() -> Vec<Subject> {
    const BESIDE: u32 = Ingredient::Beside.bit();
    const SPACED: u32 = Ingredient::SpacedLooks.bit();
    const PREEMPTION: u32 = Ingredient::Preemption.bit();
    const BOUND: u32 = Ingredient::ShortBound.bit();
    let mutex = |subject: &Subject| subject.lock == Lock::Mutex;
    let mut subjects: Vec<Subject> = all().into_iter().filter(mutex).collect();
    subjects.extend([
        Subject::new::<Mutex<Linux, BESIDE>>(Lock::Mutex, Some(Ingredient::Beside)),
        Subject::new::<Mutex<Linux, SPACED>>(Lock::Mutex, Some(Ingredient::SpacedLooks)),
        Subject::new::<Mutex<Linux, PREEMPTION>>(Lock::Mutex, Some(Ingredient::Preemption)),
        Subject::new::<Mutex<Linux, BOUND>>(Lock::Mutex, Some(Ingredient::ShortBound)),
        Subject::new::<Mutex<Locked, 0>>(Lock::Mutex, Some(Ingredient::OneAtomic)),
        Subject::new::<Mutex<Cold, 0>>(Lock::Mutex, Some(Ingredient::Heat)),
    ]);
    subjects
}

/// All subjects, each whole lock before its parts.
pub(crate) fn all() -> Vec<Subject> {
    let mut subjects = Vec::new();
    macro_rules! makes {
        ($lock:expr, $type:ident: $($ingredient:ident),*) => {
            subjects.push(Subject::new::<$type<Linux, 0>>($lock, None));
            $(subjects.push(Subject::new::<$type<Linux, { Ingredient::$ingredient.bit() }>>(
                $lock,
                Some(Ingredient::$ingredient),
            ));)*
            subjects.push(Subject::new::<$type<Herd, 0>>($lock, Some(Ingredient::OneWake)));
        };
    }
    makes!(Lock::Mutex, Mutex:
        Inline, Spinning, Queue, ReadFirst, OwnerRunning, Handoff, WakeUps, Naps);
    // A semaphore has no owner who could be seen to run, or to have come back.
    makes!(Lock::Semaphore, Semaphore: Inline, Spinning, Queue, ReadFirst, Handoff, WakeUps);
    // Who wakes whom is what it is made of: each sleeper is woken by name.
    subjects.push(Subject::new::<Classic<Linux, 0>>(Lock::Semaphore2005, None));
    subjects
}

/// The subjects of the pair that nobody disputes, where only the fast path counts.
pub(crate) fn pairs() -> Vec<(String, uncontended::Subject)> {
    const CALLED: u32 = Ingredient::Inline.bit();
    fn pair<L: BenchLock>(
        lock: Lock,
        without: Option<Ingredient>,
    ) -> (String, uncontended::Subject) {
        (label(lock, without), uncontended::Subject::new::<L>(lock.name()))
    }
    vec![
        pair::<Mutex<Linux, 0>>(Lock::Mutex, None),
        pair::<Mutex<Linux, CALLED>>(Lock::Mutex, Some(Ingredient::Inline)),
        pair::<Mutex<Nameless, 0>>(Lock::Mutex, Some(Ingredient::Owner)),
        pair::<Semaphore<Linux, 0>>(Lock::Semaphore, None),
        pair::<Semaphore<Linux, CALLED>>(Lock::Semaphore, Some(Ingredient::Inline)),
        (OWNED.to_owned(), uncontended::Subject::new::<Owned>(OWNED)),
        pair::<Classic<Linux, 0>>(Lock::Semaphore2005, None),
        pair::<Classic<Linux, CALLED>>(Lock::Semaphore2005, Some(Ingredient::Inline)),
    ]
}
