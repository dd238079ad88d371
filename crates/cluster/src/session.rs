//! A session: one lease, kept alive by a thread of its own, and all that is acquired by it.

use crate::beat::{Beat, Lost, span};
use crate::clock::Moment;
use crate::error::{ClusterError, LostBy};
use crate::etcd::wire::{Answer, Txn};
use crate::etcd::{Client, ClientOptions, Traffic};
use crate::protocol::{ROOT, Who};
use crate::threads;
use lockstead::Semaphore;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The shortest lease: below it, the election of a leader of etcd's ends it.
const SHORTEST: Duration = Duration::from_secs(2);

/// What a session is like.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Where etcd is and who asks.
    pub client: ClientOptions,
    /// The length of the lease in whole seconds, 2 or more: so long at least after the death of a holder
    /// the others wait.
    pub ttl: Duration,
    /// The time by which a session calls its lease lost before etcd may: the election timeout of the
    /// members, 1 s unless they were started with another one. For so long a leader that the others have
    /// left may still say that it has renewed a lease.
    pub margin: Duration,
    /// The folder of the locks' keys in etcd.
    pub root: String,
    /// The name of this host, for people.
    pub host: String,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            client: ClientOptions::default(),
            ttl: Duration::from_secs(10),
            margin: Duration::from_secs(1),
            root: ROOT.into(),
            host: host(),
        }
    }
}

/// Returns the name of this host, as its kernel has it.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The variable by which `lockstead cluster lock` tells its command of its lease.
pub const UNDER: &str = "LOCKSTEAD_LEASE";

/// Returns the lease of the lock that this program is a command under; 0: of none.
fn under() -> i64 {
    std::env::var(UNDER).ok().and_then(|lease| lease.parse().ok()).unwrap_or(0)
}

/// What is known of a session's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// The time for which what the session holds is still its own.
    pub safe_for: Duration,
    /// The time for which no endpoint has answered; `None` if one does.
    pub unreachable_for: Option<Duration>,
    /// How the lease was lost, if it was.
    pub lost: Option<LostBy>,
}

pub(crate) struct Inner {
    pub(crate) client: Arc<Client>,
    pub(crate) lease: i64,
    pub(crate) beat: Arc<Beat>,
    pub(crate) root: String,
    pub(crate) span: Duration,
    /// Whether this process renews the lease: of a host's tenure, only who holds does.
    pub(crate) renews: AtomicBool,
    ttl: Duration,
    host: String,
    program: String,
    under: i64,
    attempts: AtomicU64,
    /// Ends the heart, or has it beat at once.
    bell: Arc<Semaphore>,
    /// Transactions that clean up and found no endpoint.
    left: Mutex<VecDeque<Txn>>,
    reports: Mutex<Vec<Report>>,
}

/// A function that is told of the state of a lease.
type Report = Box<dyn Fn(Health) + Send>;

/// A lease of etcd and a thread that renews it. Copies are the same session.
///
/// Locks are held by a session: when it ends, or loses its lease, all of them are lost. A program has
/// one, or one for each part that may fail by itself.
///
/// ```no_run
/// use lockstead_cluster::{ClientOptions, Mutex, Session, SessionOptions};
///
/// let client = ClientOptions::of("http://10.0.0.1:2379,http://10.0.0.2:2379")?;
/// let session = Session::open(SessionOptions { client, ..SessionOptions::default() })?;
/// let mutex = Mutex::new(&session, "reports/daily");
/// let guard = mutex.lock()?.recover(|_| { /* put in order what a dead owner left */ })?;
/// guard.check()?;
/// println!("token {}, until {:?}", guard.token(), guard.deadline());
/// guard.unlock()?;
/// # Ok::<(), lockstead_cluster::ClusterError>(())
/// ```
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
    /// Ends the session with the last copy.
    _end: Arc<End>,
}

struct End {
    of: Weak<Inner>,
    /// The lease ends with the session; another one's is only left alone.
    revokes: bool,
}

impl Session {
    /// Makes a lease and starts the thread that renews it.
    ///
    /// # Errors
    /// [`ClusterError::Options`], [`ClusterError::Unreachable`], [`ClusterError::Refused`].
    pub fn open(options: SessionOptions) -> Result<Session, ClusterError> {
        let SessionOptions { mut client, ttl, margin, root, host } = options;
        let wrong = |text: &str| Err(ClusterError::Options(text.into()));
        if ttl < SHORTEST || ttl.subsec_nanos() != 0 {
            return wrong("a lease has whole seconds, 2 or more");
        }
        let span = span(ttl, margin);
        if span < ttl / 5 {
            return wrong(
                "the margin leaves less than a fifth of the lease; make the lease longer",
            );
        }
        if root.is_empty() || root.starts_with('/') || root.ends_with('/') {
            return wrong("the folder of the locks is a path without a slash at its ends");
        }
        // Several members are to be asked before the deadline comes.
        client.attempt = client.attempt.min(span / 4);
        let client = Arc::new(Client::new(client)?);
        let sent = Moment::now();
        let lease = client.grant(ttl)?;
        let program = std::env::args_os().next().unwrap_or_default();
        let program = std::path::Path::new(&program).file_name().unwrap_or_default();
        let inner = Inner {
            client,
            lease,
            beat: Arc::new(Beat::new(sent.after(span))),
            root,
            span,
            renews: AtomicBool::new(true),
            ttl,
            host,
            program: program.to_string_lossy().into_owned(),
            under: under(),
            attempts: AtomicU64::new(1),
            bell: Arc::new(Semaphore::new(0)),
            left: Mutex::default(),
            reports: Mutex::default(),
        };
        Session::start(inner, true)
    }

    /// Starts the thread that renews the lease.
    fn start(inner: Inner, revokes: bool) -> Result<Session, ClusterError> {
        let inner = Arc::new(inner);
        let heart = Arc::clone(&inner);
        threads::start("lockstead-heart", move || heart.keep())
            .map_err(|error| ClusterError::Local(format!("cannot start a thread: {error}")))?;
        let end = Arc::new(End { of: Arc::downgrade(&inner), revokes });
        Ok(Session { inner, _end: end })
    }

    /// Makes a session with a lease of its own that outlives it: for a host, whose processes hand it on.
    pub(crate) fn of_the_host(&self) -> Result<Session, ClusterError> {
        let sent = Moment::now();
        let lease = self.inner.client.grant(self.inner.ttl)?;
        self.adopt(lease, sent.after(self.inner.span))
    }

    /// Makes a session of a lease that another process of this host has made, certain until `deadline`.
    pub(crate) fn adopt(&self, lease: i64, deadline: Moment) -> Result<Session, ClusterError> {
        let inner = Inner {
            client: Arc::clone(&self.inner.client),
            lease,
            beat: Arc::new(Beat::new(deadline)),
            root: self.inner.root.clone(),
            span: self.inner.span,
            renews: AtomicBool::new(true),
            ttl: self.inner.ttl,
            host: self.inner.host.clone(),
            program: self.inner.program.clone(),
            under: self.inner.under,
            attempts: AtomicU64::new(1),
            bell: Arc::new(Semaphore::new(0)),
            left: Mutex::default(),
            reports: Mutex::default(),
        };
        Session::start(inner, false)
    }

    /// Ends the lease, whoever made it.
    pub(crate) fn end_lease(&self) -> Result<(), ClusterError> {
        self.inner.end(true)
    }

    /// Returns the number of the lease, as etcd has it.
    #[must_use]
    pub fn lease(&self) -> i64 {
        self.inner.lease
    }

    /// Returns what was sent to etcd so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.inner.client.traffic()
    }

    /// Returns what is known of the lease now.
    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.health()
    }

    /// Has `report` called, on the session's own thread, as soon as no endpoint answers, when one does
    /// again, and when the lease is lost. It must not wait for a lock of this session.
    pub fn on_change(&self, report: impl Fn(Health) + Send + 'static) {
        self.inner.reports.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(report));
    }

    /// Returns a future that is ready once the lease is lost.
    #[must_use]
    pub fn lost(&self) -> Lost {
        Lost { beat: Arc::clone(&self.inner.beat) }
    }

    /// Says whether the lease is held, and until when that is certain.
    ///
    /// # Errors
    /// [`ClusterError::Lost`].
    pub fn check(&self) -> Result<Moment, ClusterError> {
        self.inner.beat.check().map_err(ClusterError::Lost)
    }

    /// Ends the session: whatever it holds is lost, and whoever takes that learns that its owner died.
    /// The last copy that is dropped does the same.
    ///
    /// # Errors
    /// [`ClusterError::Unreachable`]: the lease ends by itself then.
    pub fn close(self) -> Result<(), ClusterError> {
        self.inner.end(true)
    }

    /// Returns a number that no other attempt of this session has.
    pub(crate) fn attempt(&self) -> u64 {
        self.inner.attempts.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn who(&self, caller: &Location<'_>, says: &str) -> Who {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // SAFETY: the call takes nothing and cannot fail.
        let tid = unsafe { libc::gettid() };
        Who {
            host: self.inner.host.clone(),
            pid: std::process::id(),
            tid: u32::try_from(tid).unwrap_or(0),
            thread: thread::current().name().unwrap_or_default().to_owned(),
            program: self.inner.program.clone(),
            under: self.inner.under,
            place: format!("{}:{}", caller.file(), caller.line()),
            since: since.map_or(0, |since| since.as_secs()),
            says: says.to_owned(),
            is_in: false,
        }
    }

    pub(crate) fn txn(&self, txn: &Txn, repeated: &mut bool) -> Result<Answer, ClusterError> {
        self.txn_while(txn, &|| true, repeated)
    }

    /// Does the same as long as `goes_on` says true once each member was asked.
    pub(crate) fn txn_while(
        &self,
        txn: &Txn,
        goes_on: &dyn Fn() -> bool,
        repeated: &mut bool,
    ) -> Result<Answer, ClusterError> {
        // A child would speak on its parent's connections, and in its name.
        if let Err(by @ LostBy::Forked) = self.inner.beat.check() {
            return Err(ClusterError::Lost(by));
        }
        let client = &self.inner.client;
        client.txn_while(txn, client.until(), goes_on, repeated)
    }

    /// Does the same, for no longer than each endpoint takes that does not answer.
    pub(crate) fn txn_once_each(
        &self,
        txn: &Txn,
        repeated: &mut bool,
    ) -> Result<Answer, ClusterError> {
        self.check()?;
        let client = &self.inner.client;
        client.txn_while(txn, Instant::now() + client.round(), &|| true, repeated)
    }

    /// Has the heart carry out what cleans up, as soon as an endpoint answers again: others may wait behind
    /// a place that nobody wants any more.
    pub(crate) fn clean_up_later(&self, txn: Txn) {
        self.inner.left().push_back(txn);
        self.inner.bell.up();
    }

    /// Returns the deadline, after having renewed the lease if little of it is left.
    pub(crate) fn confirm(&self) -> Result<Moment, ClusterError> {
        let deadline = self.check()?;
        if deadline.remaining() >= self.inner.span / 3 {
            return Ok(deadline);
        }
        self.inner.renew(Instant::now() + deadline.remaining())?;
        self.check()
    }
}

impl Inner {
    fn health(&self) -> Health {
        let lost = self.beat.check().err();
        Health {
            safe_for: if lost.is_some() {
                Duration::ZERO
            } else {
                self.beat.deadline().remaining()
            },
            unreachable_for: self.beat.silent_since().map(|since| Moment::now().since(since)),
            lost,
        }
    }

    fn report(&self) {
        let health = self.health();
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.iter().for_each(|report| report(health));
    }

    fn renew(&self, until: Instant) -> Result<(), ClusterError> {
        let sent = Moment::now();
        if self.client.renew(self.lease, until)? {
            self.beat.renewed(sent.after(self.span));
            Ok(())
        } else {
            Err(ClusterError::Lost(self.beat.lose(LostBy::Ended)))
        }
    }

    /// Renews the lease again and again, until it is lost or the session ends. Waits for nothing but the
    /// endpoints, and shares no lock with the program's functions but for the length of a copy.
    fn keep(&self) {
        let round = self.client.round();
        loop {
            let pause = match self.beat.silent_since() {
                Some(_) => round / 4,
                // What could not be cleaned up: etcd answers, but not this.
                None if !self.left().is_empty() => round.min(self.span / 3),
                None => self.span / 3,
            };
            let pause = pause.min(self.beat.deadline().remaining());
            let _ = self.bell.down_timeout(pause);
            // One look is enough for all that have rung.
            while self.bell.try_down() {}
            let Ok(deadline) = self.beat.check() else { break };
            if !self.renews.load(Ordering::Acquire) {
                continue;
            }
            let was_silent = self.beat.silent_since().is_some();
            // One round for each look, so that silence is told while there is time left.
            let sent = Moment::now();
            let left = round.min(deadline.since(sent));
            match self.renew(Instant::now() + left) {
                Ok(()) => {
                    if was_silent {
                        self.report();
                    }
                    self.clean_up();
                }
                Err(ClusterError::Lost(_)) => break,
                Err(_) => {
                    if self.beat.unreachable() {
                        self.report();
                    }
                }
            }
        }
        self.report();
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<Txn>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out what was left, the oldest first, in a part of the time that the lease has: the next renewal
    /// waits behind it. What etcd refuses goes with the lease.
    fn clean_up(&self) {
        let time = self.client.round().min(self.beat.deadline().remaining() / 3);
        let until = Instant::now() + time;
        while Instant::now() < until {
            let Some(txn) = self.left().pop_front() else { return };
            match self.client.txn_while(&txn, until, &|| true, &mut false) {
                Ok(_) | Err(ClusterError::Refused { .. }) => {}
                Err(_) => {
                    self.left().push_front(txn);
                    return;
                }
            }
        }
    }

    fn end(&self, revokes: bool) -> Result<(), ClusterError> {
        // Of a fork the parent's goes on.
        if let Err(LostBy::Forked | LostBy::Closed) = self.beat.check() {
            return Ok(());
        }
        self.beat.lose(LostBy::Closed);
        self.bell.up();
        if !revokes {
            return Ok(());
        }
        // Where no endpoint has answered a moment ago, the end is not to wait for one for long.
        let silent = !self.left().is_empty() || self.beat.silent_since().is_some();
        let options = self.client.options();
        let time =
            if silent { self.client.round().min(options.patience) } else { options.patience };
        self.client.revoke_until(self.lease, Instant::now() + time)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(inner) = self.of.upgrade() {
            // Where no endpoint answers the lease ends by itself.
            let _ = inner.end(self.revokes);
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("lease", &self.inner.lease).finish_non_exhaustive()
    }
}
