//! Local first: the threads and processes of one host queue at a lock in shared memory, one of them
//! stands in etcd's queue, and what it got is handed on within the host.
//!
//! - **HOST-LEASE** The place in etcd has a lease of its own, which no process of the host owns: whoever
//!   holds the lock renews it, and nobody else does, so that a holder that is stopped loses it.
//! - **HOST-BOUND** A tenure ends after so many turns or so much time, whoever waits here: then the others
//!   have theirs.
//! - **HOST-DEATH** A holder that dies ends the tenure without a release, so that the next owner, of
//!   whichever host, is told, and has a token of etcd's own.

use crate::clock::Moment;
use crate::error::ClusterError;
use crate::hold::{Hold, TURNS};
use crate::locked::Locked;
use crate::mutex::MutexGuard;
use crate::protocol::{LockKeys, Mode, ReleasePlan};
use crate::session::Session;
use crate::threads;
use crate::wait::{Patience, acquire};
use lockstead::shared::{self, Segment, SegmentOptions, Shareable, SharedMutex, SharedMutexGuard};
use lockstead::{CancelToken, Semaphore};
use std::ops::Deref;
use std::os::unix::fs::DirBuilderExt;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a host keeps what it got.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The most turns of a tenure, 1 to 1000.
    pub turns: u32,
    /// The longest time of a tenure: no turn begins after it.
    pub time: Duration,
    /// The folder of what the processes of this host share; private to the user.
    pub folder: PathBuf,
}

impl Default for HostOptions {
    fn default() -> Self {
        // SAFETY: the call takes nothing and cannot fail.
        let user = unsafe { libc::geteuid() };
        HostOptions {
            turns: 200,
            time: Duration::from_millis(500),
            folder: PathBuf::from(format!("/dev/shm/lockstead-cluster-{user}")),
        }
    }
}

/// The longest time for which a lock is kept for a waiter of this host that does not come.
const IDLE: Duration = Duration::from_millis(20);

/// What a host has of the lock; revision 0: nothing.
#[derive(Clone, Copy, Default, Shareable)]
#[repr(C)]
struct Tenure {
    revision: u64,
    lease: i64,
    attempt: u64,
    turn: u64,
    /// When it began and until when it is certain, on the clock of this host.
    began: u64,
    deadline: u64,
    /// 1: a copy of the acquisition may still arrive.
    repeated: u64,
}

/// What the processes of a host share.
#[derive(Shareable)]
#[repr(C)]
struct Host {
    tenure: SharedMutex<Tenure>,
    waiting: AtomicU64,
}

struct Shared {
    session: Session,
    keys: LockKeys,
    segment: Segment<Host>,
    options: HostOptions,
    /// The session of the tenure's lease, as long as that lasts.
    adopted: StdMutex<Option<Session>>,
    /// Has the keeper look; it ends with the last copy.
    bell: Semaphore,
    ended: AtomicBool,
    kept: AtomicU64,
}

/// A [`Mutex`](crate::Mutex) at which a host queues once, for all its threads and processes.
///
/// Within the host it is a [`SharedMutex`]: a hand-over costs no request, and a death is told at once.
/// Between hosts it is fair by tenures. The programs of a host share it if they run as the same user and
/// name the same endpoints, root and lock; not recursive.
#[derive(Clone)]
pub struct HostMutex {
    shared: Arc<Shared>,
    _end: Arc<End>,
}

struct End(Arc<Shared>);

/// The ownership of a [`HostMutex`]; dropped, it hands on or releases.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct HostGuard<'a> {
    guard: Option<MutexGuard>,
    local: Option<SharedMutexGuard<'a, Tenure>>,
    of: &'a HostMutex,
}

/// The outcome of an acquisition at a host.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct HostLocked<'a> {
    /// The lock, which is held.
    pub guard: HostGuard<'a>,
    /// The last owner died, and what it left was called consistent by `repair`.
    pub owner_died: bool,
}

fn local(error: &dyn std::fmt::Display) -> ClusterError {
    ClusterError::Local(error.to_string())
}

/// Returns a name for a file that is the same in all programs: FNV-1a, by Fowler, Noll and Vo.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl HostMutex {
    /// Names a lock, and opens what the processes of this host share for it.
    ///
    /// # Errors
    /// [`ClusterError::Local`]: that cannot be made or opened. [`ClusterError::Options`].
    pub fn new(session: &Session, name: &str, options: HostOptions) -> Result<Self, ClusterError> {
        if !(1..=1000).contains(&options.turns) {
            return Err(ClusterError::Options("a tenure has 1 to 1000 turns".into()));
        }
        let mut folder = std::fs::DirBuilder::new();
        folder
            .recursive(true)
            .mode(0o700)
            .create(&options.folder)
            .map_err(|error| local(&error))?;
        let keys = LockKeys::new(&session.inner.root, name);
        let mut endpoints: Vec<String> =
            session.inner.client.options().endpoints.iter().map(ToString::to_string).collect();
        endpoints.sort();
        let file = format!("{:016x}", hash(&format!("{endpoints:?} {}", keys.queue())));
        let segment = Segment::open_or_create(options.folder.join(file), &SegmentOptions::new());
        let shared = Arc::new(Shared {
            session: session.clone(),
            keys,
            segment: segment.map_err(|error| local(&error))?,
            options,
            adopted: StdMutex::default(),
            bell: Semaphore::new(0),
            ended: AtomicBool::new(false),
            kept: AtomicU64::new(0),
        });
        let keeper = Arc::clone(&shared);
        threads::start("lockstead-keeper", move || keeper.keep()).map_err(|error| local(&error))?;
        let end = Arc::new(End(Arc::clone(&shared)));
        Ok(HostMutex { shared, _end: end })
    }

    /// Acquires the mutex, waiting as long as it takes; `repair` puts in order what a dead owner left.
    ///
    /// # Errors
    /// As [`Mutex::lock`](crate::Mutex::lock); [`ClusterError::Local`], [`ClusterError::NotRecoverable`].
    #[track_caller]
    pub fn lock(&self, repair: impl FnOnce(&MutexGuard)) -> Result<HostLocked<'_>, ClusterError> {
        self.lock_by(Patience::Forever, Location::caller(), repair)
    }

    /// Acquires the mutex, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`]; as [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_timeout(
        &self,
        timeout: Duration,
        repair: impl FnOnce(&MutexGuard),
    ) -> Result<HostLocked<'_>, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.lock_by(patience, Location::caller(), repair)
    }

    /// Acquires the mutex unless `token` is fired while it waits.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_killable(
        &self,
        token: &CancelToken,
        repair: impl FnOnce(&MutexGuard),
    ) -> Result<HostLocked<'_>, ClusterError> {
        self.lock_by(Patience::Cancel(token), Location::caller(), repair)
    }

    fn local(&self, patience: Patience<'_>) -> Result<SharedMutexGuard<'_, Tenure>, ClusterError> {
        let host = self.shared.segment.root();
        let locked = match host.tenure.try_lock() {
            Err(shared::SharedError::Held) if !matches!(patience, Patience::Never) => {
                host.waiting.fetch_add(1, Ordering::SeqCst);
                let locked = match patience {
                    Patience::Forever | Patience::Never => host.tenure.lock(),
                    Patience::Until(until) => host.tenure.lock_until(until),
                    Patience::Interruptible => host.tenure.lock_interruptible(),
                    Patience::Cancel(token) => host.tenure.lock_killable(token),
                    Patience::While { until, goes_on } => loop {
                        let slice = patience.slice();
                        match host.tenure.lock_until(slice) {
                            Err(shared::SharedError::TimedOut) if until != Some(slice) => {}
                            locked => break locked,
                        }
                        if !goes_on() {
                            break Err(shared::SharedError::Cancelled);
                        }
                    },
                };
                host.waiting.fetch_sub(1, Ordering::SeqCst);
                locked
            }
            locked => locked,
        };
        let locked = locked.map_err(|error| match error {
            shared::SharedError::Held => ClusterError::Held,
            shared::SharedError::TimedOut => ClusterError::TimedOut,
            shared::SharedError::Interrupted => ClusterError::Interrupted,
            shared::SharedError::Cancelled => ClusterError::Cancelled,
            error => local(&error),
        })?;
        match locked {
            shared::Locked::Acquired(tenure) => Ok(tenure),
            shared::Locked::OwnerDied(mut tenure) => {
                // HOST-DEATH: the place goes and the mark stays; who is next is told.
                self.shared.end_tenure(&tenure, true);
                *tenure = Tenure::default();
                Ok(tenure.mark_consistent())
            }
            shared::Locked::NotRecoverable => {
                Err(ClusterError::Local("not recoverable; remove its file".into()))
            }
        }
    }

    fn lock_by(
        &self,
        patience: Patience<'_>,
        caller: &Location<'_>,
        repair: impl FnOnce(&MutexGuard),
    ) -> Result<HostLocked<'_>, ClusterError> {
        let mut tenure = self.local(patience)?;
        if let Some(hold) = self.shared.hand_over(&mut tenure, caller) {
            let guard = MutexGuard { hold };
            let guard = HostGuard { guard: Some(guard), local: Some(tenure), of: self };
            return Ok(HostLocked { guard, owner_died: false });
        }
        self.shared.end_tenure(&tenure, false);
        *tenure = Tenure::default();
        let session = self.shared.session.of_the_host()?;
        let got = acquire(&session, &self.shared.keys, Mode::Write, patience, caller, "");
        let got = got.inspect_err(|_| drop(session.end_lease()))?;
        *tenure = Tenure {
            revision: u64::try_from(got.plan.created).unwrap_or(0),
            lease: got.plan.lease,
            attempt: attempt_of(&got.plan.place),
            turn: 0,
            began: Moment::now().nanoseconds(),
            deadline: session.inner.beat.deadline().nanoseconds(),
            repeated: u64::from(got.plan.repeated),
        };
        *self.shared.adopted() = Some(session.clone());
        let guard = MutexGuard { hold: Hold::new(&session, got.plan) };
        let guard = match Locked::new(guard, got.died).recover(repair) {
            Ok(guard) => guard,
            Err(error) => {
                *tenure = Tenure::default();
                return Err(error);
            }
        };
        let guard = HostGuard { guard: Some(guard), local: Some(tenure), of: self };
        Ok(HostLocked { guard, owner_died: got.died })
    }
}

/// Returns the number of the attempt in the name of a place.
fn attempt_of(place: &str) -> u64 {
    place.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Shared {
    fn adopted(&self) -> std::sync::MutexGuard<'_, Option<Session>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self, tenure: &Tenure, caller: &Location<'_>) -> ReleasePlan {
        ReleasePlan {
            keys: self.keys.clone(),
            mode: Mode::Write,
            place: LockKeys::place(Mode::Write, tenure.lease, tenure.attempt),
            lease: tenure.lease,
            created: i64::try_from(tenure.revision).unwrap_or(0),
            who: self.session.who(caller, ""),
            repeated: tenure.repeated != 0,
        }
    }

    /// Returns the session of the tenure's lease, which this process renews from now on.
    fn adopt(&self, tenure: &Tenure) -> Option<Session> {
        let deadline = Moment(tenure.deadline);
        let mut adopted = self.adopted();
        let same = adopted.as_ref().filter(|session| session.lease() == tenure.lease);
        let session = match same {
            Some(session) => session.clone(),
            None => self.session.adopt(tenure.lease, deadline).ok()?,
        };
        session.inner.beat.renewed(deadline);
        session.inner.renews.store(true, Ordering::Release);
        *adopted = Some(session.clone());
        session.check().ok().map(|_| session)
    }

    /// Takes over what another thread of this host has handed on; `None` if there is nothing, or not for
    /// long enough.
    fn hand_over(&self, tenure: &mut Tenure, caller: &Location<'_>) -> Option<Hold> {
        let age = Moment::now().since(Moment(tenure.began));
        let left = Moment(tenure.deadline).remaining();
        let fits = tenure.revision != 0
            && tenure.turn + 1 < u64::from(self.options.turns).min(TURNS)
            && age < self.options.time
            && left >= self.session.inner.span / 3;
        if !fits {
            return None;
        }
        let session = self.adopt(tenure)?;
        tenure.turn += 1;
        let mut hold = Hold::new(&session, self.plan(tenure, caller));
        hold.turn = tenure.turn;
        Some(hold)
    }

    /// Gives back to etcd what the host has, if anything; `died`: as if its owner had died.
    fn end_tenure(&self, tenure: &Tenure, died: bool) {
        if tenure.revision == 0 {
            return;
        }
        let Some(session) = self.adopt(tenure) else { return };
        if died {
            // The lease takes the place along and leaves the mark.
            let _ = session.end_lease();
            return;
        }
        let plan = self.plan(tenure, Location::caller());
        let mut hold = Hold::new(&session, plan);
        // What fails is repeated by the thread of the tenure's session, or ends with the lease.
        if hold.release(false).is_ok() {
            let _ = session.end_lease();
        }
    }

    /// Looks after what was handed on: if nobody of this host takes it, etcd gets it back.
    fn keep(&self) {
        loop {
            self.bell.down();
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            let mut rounds = 0;
            while self.kept.load(Ordering::Acquire) != 0 {
                thread::sleep(IDLE);
                rounds += 1;
                // Somebody is about to take it; but the count of those that wait has the dead in it.
                if rounds < 5 && self.segment.root().waiting.load(Ordering::SeqCst) > 0 {
                    continue;
                }
                match self.segment.root().tenure.try_lock() {
                    Ok(shared::Locked::Acquired(mut tenure)) => {
                        self.kept.store(0, Ordering::Release);
                        self.end_tenure(&tenure, false);
                        *tenure = Tenure::default();
                    }
                    // Somebody has it, and sees to it.
                    Err(shared::SharedError::Held) => self.kept.store(0, Ordering::Release),
                    // Whoever locks next repairs it.
                    Ok(shared::Locked::OwnerDied(tenure)) => {
                        self.kept.store(0, Ordering::Release);
                        self.end_tenure(&tenure, true);
                        let mut tenure = tenure.mark_consistent();
                        *tenure = Tenure::default();
                    }
                    _ => self.kept.store(0, Ordering::Release),
                }
            }
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.bell.up();
    }
}

impl HostGuard<'_> {
    /// Hands the lock on within the host, or releases it, and says whether it was held until then.
    ///
    /// # Errors
    /// As [`MutexGuard::unlock`].
    pub fn unlock(mut self) -> Result<(), ClusterError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ClusterError> {
        let (Some(mut guard), Some(mut tenure)) = (self.guard.take(), self.local.take()) else {
            return Ok(());
        };
        let shared = &self.of.shared;
        let session = guard.hold.session.clone();
        let checked = guard.check();
        let waits = shared.segment.root().waiting.load(Ordering::SeqCst) > 0;
        let age = Moment::now().since(Moment(tenure.began));
        let more = tenure.turn + 1 < u64::from(shared.options.turns) && age < shared.options.time;
        if checked.is_ok() && waits && more {
            guard.hold.over = true;
            tenure.deadline = session.inner.beat.deadline().nanoseconds();
            // HOST-LEASE: whoever takes it over renews it.
            session.inner.renews.store(false, Ordering::Release);
            drop(tenure);
            if shared.kept.swap(1, Ordering::AcqRel) == 0 {
                shared.bell.up();
            }
            return Ok(());
        }
        *tenure = Tenure::default();
        let released = checked.and_then(|_| guard.hold.release(false));
        if released.is_ok() {
            let _ = session.end_lease();
        }
        *shared.adopted() = None;
        released
    }
}

impl Drop for HostGuard<'_> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Deref for HostGuard<'_> {
    type Target = MutexGuard;

    fn deref(&self) -> &MutexGuard {
        self.guard.as_ref().expect("there until the end")
    }
}

impl std::fmt::Debug for HostGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostGuard").field("token", &self.token()).finish_non_exhaustive()
    }
}
