//! The operations in which processes are killed, and what others do meanwhile.

use crate::Error;
use crate::shared::storm::StormLockKind;
use lockstead::shared::{
    Locked, OnDeath, Segment, SegmentOptions, Shareable, SharedCondvar, SharedError, SharedMutex,
    SharedMutexGuard, SharedRwLock, SharedSemaphore, Taken,
};
use std::sync::atomic::{AtomicU32, Ordering};

/// The memory that victim and waiters share.
#[derive(Shareable)]
#[repr(C)]
pub(super) struct SceneStage {
    mutex: SharedMutex<()>,
    rwlock: SharedRwLock<()>,
    semaphore: SharedSemaphore,
    turn: SharedMutex<SceneTurn>,
    changed: SharedCondvar,
    /// Waiters that have what they waited for.
    inside: AtomicU32,
    /// How far the victim is.
    at: AtomicU32,
}

#[derive(Clone, Copy, Shareable)]
#[repr(C)]
struct SceneTurn {
    /// Each is for one waiter.
    tokens: u64,
}

/// The victim is in the operation.
const BEGUN: u32 = 1;
/// The operation has come to its end.
const ENDED: u32 = 2;

pub(super) fn segment() -> Result<Segment<SceneStage>, Error> {
    // The parent, two waiters, the victim, and the one before it.
    let options = SegmentOptions::new().participants(6);
    let made = Segment::memfd_with("lockstead-steps", &options, |stage: &mut SceneStage| {
        stage.semaphore = SharedSemaphore::new(1, OnDeath::Report);
    });
    made.map_err(|why| Error::Segment { what: "cannot make a segment", why: why.to_string() })
}

impl SceneStage {
    /// Makes all as it was before the first victim, for another one.
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.at.store(0, Ordering::SeqCst);
        locks(self)?;
        writes(self)?;
        acquires(self)?;
        turn(self)?.0.tokens = 0;
        Ok(())
    }

    pub(super) fn has_begun(&self) -> bool {
        self.at.load(Ordering::SeqCst) != 0
    }

    pub(super) fn has_ended(&self) -> bool {
        self.at.load(Ordering::SeqCst) == ENDED
    }

    /// Checks that the waiter is the only one inside.
    fn alone(&self) -> Result<(), Error> {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        // Time for another one to be seen.
        std::thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        match others {
            0 => Ok(()),
            _ => Err(Error::Worker { how: "two waiters have the lock".into() }),
        }
    }
}

/// What the victim says of itself. It is stopped at both.
pub(super) struct Marks<'a>(pub(super) &'a SceneStage);

impl Marks<'_> {
    fn begin(&self) {
        stop();
        self.0.at.store(BEGUN, Ordering::SeqCst);
    }

    fn end(&self) {
        self.0.at.store(ENDED, Ordering::SeqCst);
        stop();
    }
}

fn stop() {
    // SAFETY: stops this process until its parent has it go on.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// What the parent holds until it helps.
pub(super) trait ParentHold {}

impl<T> ParentHold for T {}

type Holding<'a> = Box<dyn ParentHold + 'a>;

/// One operation, with its waiters.
pub(super) struct StepScene {
    pub(super) kind: StormLockKind,
    pub(super) name: &'static str,
    /// What the parent takes before the victim comes.
    pub(super) holds: fn(&SceneStage) -> Result<Holding<'_>, Error>,
    /// What the victim does; the operation lies between the marks.
    pub(super) victim: fn(&SceneStage, &Marks<'_>) -> Result<(), SharedError>,
    /// The victim has what the waiters want when it has come to the end.
    pub(super) keeps: bool,
    /// The waiters come before the operation, and sleep; else they come before the kill.
    pub(super) asleep: bool,
    /// What a waiter does; true if it was told of a death.
    pub(super) waiter: fn(&SceneStage) -> Result<bool, Error>,
    /// What the parent does when the victim sleeps, or is dead.
    pub(super) help: for<'a> fn(&'a SceneStage, Holding<'a>) -> Result<(), Error>,
}

fn refused(error: SharedError) -> Error {
    Error::Worker { how: format!("a lock refuses: {error}") }
}

fn nothing(_: &SceneStage) -> Result<Holding<'_>, Error> {
    Ok(Box::new(()))
}

fn releases<'a>(_: &'a SceneStage, held: Holding<'a>) -> Result<(), Error> {
    drop(held);
    Ok(())
}

fn locks(stage: &SceneStage) -> Result<bool, Error> {
    match stage.mutex.lock().map_err(refused)? {
        Locked::Acquired(_guard) => stage.alone().map(|()| false),
        Locked::OwnerDied(guard) => stage.alone().map(|()| {
            drop(guard.mark_consistent());
            true
        }),
        Locked::NotRecoverable => Err(refused(SharedError::Held)),
    }
}

fn writes(stage: &SceneStage) -> Result<bool, Error> {
    match stage.rwlock.write().map_err(refused)? {
        Locked::Acquired(_guard) => stage.alone().map(|()| false),
        Locked::OwnerDied(guard) => stage.alone().map(|()| {
            drop(guard.mark_consistent());
            true
        }),
        Locked::NotRecoverable => Err(refused(SharedError::Held)),
    }
}

fn acquires(stage: &SceneStage) -> Result<bool, Error> {
    let taken = stage.semaphore.acquire(1).map_err(refused)?;
    stage.alone()?;
    Ok(matches!(taken, Taken::HolderDied { .. }))
}

fn turn(stage: &SceneStage) -> Result<(SharedMutexGuard<'_, SceneTurn>, bool), Error> {
    settled(stage, stage.turn.lock())
}

/// Returns the mutex of the condition, and whether its owner died. An owner that died may not have
/// notified: so all are to look.
fn settled<'a>(
    stage: &SceneStage,
    got: Result<Locked<SharedMutexGuard<'a, SceneTurn>>, SharedError>,
) -> Result<(SharedMutexGuard<'a, SceneTurn>, bool), Error> {
    match got.map_err(refused)? {
        Locked::Acquired(guard) => Ok((guard, false)),
        Locked::OwnerDied(guard) => {
            stage.changed.notify_all();
            Ok((guard.mark_consistent(), true))
        }
        Locked::NotRecoverable => Err(refused(SharedError::Held)),
    }
}

/// Waits for a token, and takes it.
fn takes(stage: &SceneStage) -> Result<bool, Error> {
    let (mut turn, mut told) = turn(stage)?;
    while turn.tokens == 0 {
        let (again, died) = settled(stage, stage.changed.wait(turn))?;
        (turn, told) = (again, told | died);
    }
    turn.tokens -= 1;
    Ok(told)
}

/// Makes two tokens, and notifies two waiters one by one.
fn gives<'a>(stage: &'a SceneStage, _: Holding<'a>) -> Result<(), Error> {
    let (mut turn, _) = turn(stage)?;
    turn.tokens = 2;
    stage.changed.notify_one();
    stage.changed.notify_one();
    Ok(())
}

/// Notifies in the place of a victim that has died with the mutex.
fn mends<'a>(stage: &'a SceneStage, _: Holding<'a>) -> Result<(), Error> {
    turn(stage).map(drop)
}

/// Takes a guard as [`Locked::Acquired`]: in a victim's lock nobody has died.
fn fresh<G>(got: Result<Locked<G>, SharedError>) -> Result<G, SharedError> {
    match got? {
        Locked::Acquired(guard) => Ok(guard),
        _ => Err(SharedError::Held),
    }
}

macro_rules! scene {
    ($kind:ident, $name:literal, $victim:expr, $waiter:ident) => {
        StepScene {
            kind: StormLockKind::$kind,
            name: $name,
            holds: nothing,
            victim: $victim,
            keeps: false,
            asleep: true,
            waiter: $waiter,
            help: releases,
        }
    };
}

/// Declares a scene in which the victim waits for what the parent holds.
macro_rules! contended {
    ($kind:ident, $name:literal, $victim:expr, $waiter:ident, $holds:expr) => {
        StepScene { holds: $holds, ..scene!($kind, $name, $victim, $waiter) }
    };
}

/// Declares a scene in which the lock is free.
macro_rules! free {
    ($kind:ident, $name:literal, $victim:expr, $waiter:ident) => {
        StepScene { asleep: false, keeps: true, ..scene!($kind, $name, $victim, $waiter) }
    };
}

/// Marks the instructions of an operation that acquires something.
macro_rules! gets {
    (|$stage:ident| $get:expr) => {
        |$stage, marks| {
            marks.begin();
            let kept = $get;
            marks.end();
            kept.map(drop)
        }
    };
}

/// Marks the instructions of giving back what an operation acquired.
macro_rules! gives_back {
    (|$stage:ident| $get:expr) => {
        |$stage, marks| {
            let kept = $get?;
            marks.begin();
            drop(kept);
            marks.end();
            Ok(())
        }
    };
}

/// Marks the instructions of notifying a condition with its mutex held, and of giving that back.
macro_rules! notifies {
    (|$stage:ident| $notify:expr) => {
        |$stage, marks| {
            let mut turn = fresh($stage.turn.lock())?;
            turn.tokens = 2;
            marks.begin();
            $notify;
            drop(turn);
            marks.end();
            Ok(())
        }
    };
}

pub(super) static SCENES: [StepScene; 15] = [
    free!(Mutex, "lock", gets!(|stage| stage.mutex.lock()), locks),
    contended!(Mutex, "lock, held", gets!(|stage| stage.mutex.lock()), locks, |stage| {
        Ok(Box::new(fresh(stage.mutex.lock()).map_err(refused)?))
    }),
    scene!(Mutex, "unlock", gives_back!(|stage| fresh(stage.mutex.lock())), locks),
    free!(RwLock, "read", gets!(|stage| stage.rwlock.read()), writes),
    contended!(RwLock, "read, held", gets!(|stage| stage.rwlock.read()), writes, |stage| {
        Ok(Box::new(fresh(stage.rwlock.write()).map_err(refused)?))
    }),
    scene!(RwLock, "unlock, read", gives_back!(|stage| stage.rwlock.read()), writes),
    free!(RwLock, "write", gets!(|stage| stage.rwlock.write()), writes),
    contended!(RwLock, "write, held", gets!(|stage| stage.rwlock.write()), writes, |stage| {
        Ok(Box::new(fresh(stage.rwlock.write()).map_err(refused)?))
    }),
    scene!(RwLock, "unlock, written", gives_back!(|stage| fresh(stage.rwlock.write())), writes),
    free!(Semaphore, "acquire", gets!(|stage| stage.semaphore.acquire(1)), acquires),
    contended!(
        Semaphore,
        "acquire, held",
        gets!(|stage| stage.semaphore.acquire(1)),
        acquires,
        |stage| { Ok(Box::new(stage.semaphore.acquire(1).map_err(refused)?)) }
    ),
    scene!(Semaphore, "release", gives_back!(|stage| stage.semaphore.acquire(1)), acquires),
    StepScene {
        help: gives,
        ..scene!(
            Condvar,
            "wait",
            |stage, marks| {
                let turn = fresh(stage.turn.lock())?;
                marks.begin();
                let turn = fresh(stage.changed.wait(turn))?;
                // The tokens are the others'.
                stage.changed.notify_one();
                drop(turn);
                marks.end();
                Ok(())
            },
            takes
        )
    },
    StepScene {
        help: mends,
        ..scene!(
            Condvar,
            "notify one, twice",
            notifies!(|stage| {
                stage.changed.notify_one();
                stage.changed.notify_one();
            }),
            takes
        )
    },
    StepScene {
        help: mends,
        ..scene!(Condvar, "notify all", notifies!(|stage| stage.changed.notify_all()), takes)
    },
];
