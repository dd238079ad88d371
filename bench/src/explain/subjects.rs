//! The locks under test: the core's mutex and tuned semaphore with any ingredient
//! left out, and the semaphore of 2005.

use super::ingredients::Ingredient;
use super::machines::{Cold, Herd, Locked, Nameless};
use crate::clock::Ticks;
use crate::contended::slices::{self, ThreadLoad, WaitTicks};
use crate::harness::{Slice, SliceWindow};
use crate::locks::BenchLock;
use crate::{Error, LockName, Session, uncontended};
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::policy::{self, Policy, Standard, Without};
use lockstead_core::{ClassicSemaphore, Off, Platform, RawMutex, TunedSemaphore};
use lockstead_linux::Linux;
use lockstead_linux::owner::{self, Oracle};
use serde::Serialize;

/// What is taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ExplainedLock {
    /// The mutex, which names its owner.
    Mutex,
    /// The semaphore with the mutex's tricks, with one permit.
    Semaphore,
    /// The kernel's semaphore of 2005, with one permit.
    Semaphore2005,
}

impl ExplainedLock {
    /// Returns the name that tables show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ExplainedLock::Mutex => "mutex",
            ExplainedLock::Semaphore => "semaphore",
            ExplainedLock::Semaphore2005 => "semaphore of 2005",
        }
    }

    const fn bench_name(self) -> LockName {
        match self {
            ExplainedLock::Mutex => LockName::Lockstead,
            ExplainedLock::Semaphore => LockName::SemaphoreTuned,
            ExplainedLock::Semaphore2005 => LockName::SemaphoreClassic,
        }
    }
}

/// A lock of the core as these measurements take it.
trait LockPair: Send + Sync + 'static {
    fn new() -> Self;
    fn take(&self);
    /// Releases what this thread has taken.
    fn give(&self);
}

impl<P: Platform, Y: Policy> LockPair for RawMutex<P, Off, Y>
where
    RawMutex<P, Off, Y>: Send + Sync,
{
    fn new() -> Self {
        Self::new()
    }

    #[inline(always)]
    fn take(&self) {
        let locked = self.lock(Location::caller());
        locked.expect("a measuring loop takes a lock that it does not hold");
    }

    #[inline(always)]
    fn give(&self) {
        // SAFETY: `BenchLock::with` alone calls this, on the thread that has just locked it.
        unsafe { self.unlock() };
    }
}

/// Implements [`LockPair`] for a semaphore with one permit.
macro_rules! semaphore {
    ($semaphore:ty, $($generics:tt)*) => {
        impl<$($generics)*> LockPair for $semaphore
        where
            $semaphore: Send + Sync,
        {
            fn new() -> Self {
                Self::new(1).expect("one permit is possible")
            }

            #[inline(always)]
            fn take(&self) {
                self.down(Location::caller());
            }

            #[inline(always)]
            fn give(&self) {
                self.up().expect("a measuring loop gives back the one permit it took");
            }
        }
    };
}

semaphore!(TunedSemaphore<P, Off, Y>, P: Platform, Y: Policy);
semaphore!(ClassicSemaphore<P>, P: Platform);

/// A lock whose fast paths are compiled into the caller.
struct Inlined<L>(L);

impl<L: LockPair> BenchLock for Inlined<L> {
    fn new() -> Self {
        Self(L::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.take();
        let result = section();
        self.0.give();
        result
    }
}

/// A lock whose calls are not inlined: each pair is two calls.
struct Called<L>(L);

impl<L: LockPair> Called<L> {
    #[inline(never)]
    fn call_take(&self) {
        self.0.take();
    }

    #[inline(never)]
    fn call_give(&self) {
        self.0.give();
    }
}

impl<L: LockPair> BenchLock for Called<L> {
    fn new() -> Self {
        Self(L::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.call_take();
        let result = section();
        self.call_give();
        result
    }
}

/// The mutex on the machine `P`, by the policy `Y`.
type Mutex<P = Linux, Y = Standard> = RawMutex<P, Off, Y>;
/// The tuned semaphore on the machine `P`, by the policy `Y`.
type Semaphore<P = Linux, Y = Standard> = TunedSemaphore<P, Off, Y>;
/// The semaphore of 2005, of which only the call can be left out.
type Classic = ClassicSemaphore<Linux>;

/// The tuned semaphore with one thing more: who has its permit is written beside it.
/// What the others may do with it, and spinning, stay as they are.
struct OwnedSemaphore {
    semaphore: Inlined<Semaphore>,
    owner: AtomicU32,
}

/// The name of [`OwnedSemaphore`] in tables.
pub(crate) const OWNED: &str = "semaphore with owner";

/// The number of bytes of [`OwnedSemaphore`].
pub(super) const OWNED_BYTES: usize = size_of::<OwnedSemaphore>();

impl BenchLock for OwnedSemaphore {
    fn new() -> Self {
        OwnedSemaphore { semaphore: Inlined::new(), owner: AtomicU32::new(0) }
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
type Timed = Result<(SliceWindow, WaitTicks), Error>;

/// One lock in one make.
pub(crate) struct ExplainSubject {
    pub(crate) lock: ExplainedLock,
    /// The ingredient that it lacks; `None` if it has all.
    pub(crate) without: Option<Ingredient>,
    throughput: fn(&Slice, ThreadLoad, &Session<'_>) -> Result<SliceWindow, Error>,
    waits: fn(&Slice, ThreadLoad, Ticks, &Session<'_>) -> Timed,
}

impl ExplainSubject {
    fn new<L: BenchLock>(lock: ExplainedLock, without: Option<Ingredient>) -> Self {
        Self { lock, without, throughput: slices::throughput::<L>, waits: slices::waits::<L> }
    }

    /// Returns the name that progress and tables show.
    pub(crate) fn name(&self) -> String {
        label(self.lock, self.without)
    }

    /// Counts sections for a slice, then times waits for half of one.
    pub(crate) fn measure(
        &self,
        slice: &mut Slice,
        load: ThreadLoad,
        clock: Ticks,
        session: &Session<'_>,
    ) -> Result<(SliceWindow, WaitTicks), Error> {
        let _oracle = (self.without == Some(Ingredient::OwnerRunning)).then(Unasked::begin);
        slice.lock = self.lock.bench_name().name();
        let counted = (self.throughput)(slice, load, session)?;
        let (_, waits) = (self.waits)(slice, load, clock, session)?;
        Ok((counted, waits))
    }
}

/// Returns what a lock without an ingredient is called.
#[must_use]
pub fn label(lock: ExplainedLock, without: Option<Ingredient>) -> String {
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

/// Returns the mutex whole, and without each of [`Ingredient::MUTEX`].
pub(crate) fn mutexes() -> Vec<ExplainSubject> {
    let mutex = |subject: &ExplainSubject| subject.lock == ExplainedLock::Mutex;
    let mut subjects: Vec<ExplainSubject> = all().into_iter().filter(mutex).collect();
    fn without<L: LockPair>(ingredient: Ingredient) -> ExplainSubject {
        ExplainSubject::new::<Inlined<L>>(ExplainedLock::Mutex, Some(ingredient))
    }
    subjects.extend([
        without::<Mutex<Linux, Without<policy::Beside>>>(Ingredient::Beside),
        without::<Mutex<Linux, Without<policy::SpacedLooks>>>(Ingredient::SpacedLooks),
        without::<Mutex<Linux, Without<policy::Preemption>>>(Ingredient::Preemption),
        without::<Mutex<Linux, BoundOfOneMillisecond>>(Ingredient::ShortBound),
        without::<Mutex<Locked>>(Ingredient::OneAtomic),
        without::<Mutex<Cold>>(Ingredient::SlowUnlocks),
    ]);
    subjects
}

/// Returns all subjects, each whole lock before its parts.
pub(crate) fn all() -> Vec<ExplainSubject> {
    let mut subjects = Vec::new();
    macro_rules! makes {
        ($lock:expr, $type:ident: $($without:ident = $policy:ty),*) => {
            subjects.push(ExplainSubject::new::<Inlined<$type>>($lock, None));
            subjects.push(ExplainSubject::new::<Called<$type>>($lock, Some(Ingredient::Inline)));
            $(subjects.push(ExplainSubject::new::<Inlined<$type<Linux, $policy>>>(
                $lock,
                Some(Ingredient::$without),
            ));)*
            subjects.push(ExplainSubject::new::<Inlined<$type<Herd>>>($lock, Some(Ingredient::OneWake)));
        };
    }
    // The owner is not asked for while the whole mutex is measured: see `ExplainSubject::measure`.
    makes!(ExplainedLock::Mutex, Mutex:
        Spinning = Without<policy::Spinning>,
        Queue = Without<policy::Queue>,
        ReadFirst = Without<policy::ReadFirst>,
        OwnerRunning = Standard,
        Handoff = Without<policy::Bound>,
        WakeUps = Without<policy::Cover>,
        BackOff = Without<policy::BackOff>);
    // A semaphore has no owner who could be seen to run, or to have come back.
    makes!(ExplainedLock::Semaphore, Semaphore:
        Spinning = Without<policy::Spinning>,
        Queue = Without<policy::Queue>,
        ReadFirst = Without<policy::ReadFirst>,
        Handoff = Without<policy::Bound>,
        WakeUps = Without<policy::Cover>);
    // Who wakes whom is what it is made of: each sleeper is woken by name.
    subjects.push(ExplainSubject::new::<Inlined<Classic>>(ExplainedLock::Semaphore2005, None));
    subjects
}

/// Returns the subjects of the pair that nobody disputes, where only the fast path counts.
pub(crate) fn pairs() -> Vec<(String, uncontended::MeasuredLock)> {
    fn pair<L: BenchLock>(
        lock: ExplainedLock,
        without: Option<Ingredient>,
    ) -> (String, uncontended::MeasuredLock) {
        (label(lock, without), uncontended::MeasuredLock::new::<L>(lock.name()))
    }
    vec![
        pair::<Inlined<Mutex>>(ExplainedLock::Mutex, None),
        pair::<Called<Mutex>>(ExplainedLock::Mutex, Some(Ingredient::Inline)),
        pair::<Inlined<Mutex<Nameless>>>(ExplainedLock::Mutex, Some(Ingredient::Owner)),
        pair::<Inlined<Semaphore>>(ExplainedLock::Semaphore, None),
        pair::<Called<Semaphore>>(ExplainedLock::Semaphore, Some(Ingredient::Inline)),
        (OWNED.to_owned(), uncontended::MeasuredLock::new::<OwnedSemaphore>(OWNED)),
        pair::<Inlined<Classic>>(ExplainedLock::Semaphore2005, None),
        pair::<Called<Classic>>(ExplainedLock::Semaphore2005, Some(Ingredient::Inline)),
    ]
}

/// The standard policy with a fixed bound on waiting, however many sleep.
struct BoundOfOneMillisecond;

impl Policy for BoundOfOneMillisecond {
    type Base = Standard;
    const BOUND: u64 = 1_000_000;
    const SHARE: u64 = 0;
}
