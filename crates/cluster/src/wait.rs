//! How long an acquisition waits, and the loop that carries out what the protocol says.

use crate::error::{ClusterError, LostBy};
use crate::etcd::Watch;
use crate::protocol::{Acquire, LockKeys, Mode, Refusal, ReleasePlan, Step, Who};
use crate::session::Session;
use lockstead::{CancelToken, Semaphore};
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which a wait asks again whether it is to go on.
const SLICE: Duration = Duration::from_millis(100);

/// What ends a wait besides the lock: the argument of [`Mutex::lock_as`](crate::Mutex::lock_as).
#[derive(Clone, Copy)]
pub enum Patience<'a> {
    /// Nothing but the lock ends the wait.
    Forever,
    /// It is not waited at all.
    Never,
    /// The time is over.
    Until(Instant),
    /// A signal handler runs on the thread while it sleeps.
    Interruptible,
    /// The token is fired.
    Cancel(&'a CancelToken),
    /// The time is over, if there is one, or `goes_on` says false. It is asked on the thread that waits, ten
    /// times a second while that sleeps, and once a request has failed at each member: for languages that
    /// run the handlers of signals themselves.
    While {
        /// The end of the wait; `None`: there is none.
        until: Option<Instant>,
        /// Says whether the wait goes on; the acquisition is cancelled else.
        goes_on: &'a dyn Fn() -> bool,
    },
}

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Patience::Forever => f.write_str("Forever"),
            Patience::Never => f.write_str("Never"),
            Patience::Until(until) => f.debug_tuple("Until").field(until).finish(),
            Patience::Interruptible => f.write_str("Interruptible"),
            Patience::Cancel(token) => f.debug_tuple("Cancel").field(token).finish(),
            Patience::While { until, .. } => {
                f.debug_struct("While").field("until", until).finish_non_exhaustive()
            }
        }
    }
}

impl Patience<'_> {
    /// Returns the moment at which a wait asks again whether it is to go on: the end, if that is before.
    pub(crate) fn slice(self) -> Instant {
        let slice = Instant::now() + SLICE;
        match self {
            Patience::While { until: Some(until), .. } => until.min(slice),
            _ => slice,
        }
    }

    /// Returns what has ended the acquisition while a request of it had no answer. That a handler ran on the
    /// thread cannot be told afterwards.
    fn ended(self) -> Option<ClusterError> {
        let over = |until: Instant| Instant::now() >= until;
        match self {
            Patience::Forever | Patience::Never | Patience::Interruptible => None,
            Patience::Until(until) => over(until).then_some(ClusterError::TimedOut),
            Patience::Cancel(token) => token.is_cancelled().then_some(ClusterError::Cancelled),
            Patience::While { goes_on, .. } if !goes_on() => Some(ClusterError::Cancelled),
            Patience::While { until, .. } => {
                until.is_some_and(over).then_some(ClusterError::TimedOut)
            }
        }
    }

    /// Sleeps until the bell rings.
    fn wait(self, bell: &Semaphore) -> Result<(), ClusterError> {
        match self {
            Patience::Forever | Patience::Never => {
                bell.down();
                Ok(())
            }
            Patience::Until(until) => bell.down_until(until).map_err(|_| ClusterError::TimedOut),
            Patience::Interruptible => {
                bell.down_interruptible().map_err(|_| ClusterError::Interrupted)
            }
            Patience::Cancel(token) => {
                bell.down_killable(token).map_err(|_| ClusterError::Cancelled)
            }
            Patience::While { until, goes_on } => loop {
                let slice = self.slice();
                if bell.down_until(slice).is_ok() {
                    return Ok(());
                }
                if until == Some(slice) {
                    return Err(ClusterError::TimedOut);
                }
                if !goes_on() {
                    return Err(ClusterError::Cancelled);
                }
            },
        }
    }
}

/// The place that was acquired.
pub(crate) struct Got {
    pub(crate) plan: ReleasePlan,
    pub(crate) died: bool,
}

/// Acquires a lock: takes a place, waits for its turn, and returns once that is confirmed.
pub(crate) fn acquire(
    session: &Session,
    keys: &LockKeys,
    mode: Mode,
    patience: Patience<'_>,
    caller: &Location<'_>,
    says: &str,
) -> Result<Got, ClusterError> {
    acquire_as(session, keys, mode, patience, session.who(caller, says))
}

/// Does the same for a thread that says itself who it is.
pub(crate) fn acquire_as(
    session: &Session,
    keys: &LockKeys,
    mode: Mode,
    patience: Patience<'_>,
    who: Who,
) -> Result<Got, ClusterError> {
    session.confirm()?;
    let only_try = matches!(patience, Patience::Never);
    let lease = session.lease();
    let attempt = session.attempt();
    let mut acquire = Acquire::new(keys.clone(), mode, lease, attempt, who.clone(), only_try);
    let bell = Arc::new(Semaphore::new(0));
    let mut listens = false;
    let mut given_up = None;
    let mut step = acquire.start();
    loop {
        step = match step {
            Step::Send(txn) => {
                let mut repeated = false;
                // A program is asked once for one end, and may say so only once.
                let ended = RefCell::new(None);
                let goes_on = || {
                    *ended.borrow_mut() = patience.ended();
                    ended.borrow().is_none()
                };
                let answer = match given_up {
                    None => session.txn_while(&txn, &goes_on, &mut repeated),
                    // Who gives up is not to wait for long to be rid of its place.
                    Some(_) => session.txn_once_each(&txn, &mut repeated),
                };
                if repeated {
                    acquire.repeats();
                }
                match answer {
                    Ok(answer) => acquire.answered(&answer),
                    Err(error) => {
                        // Whether the place is there, nobody knows: it is removed as soon as that can be.
                        if let Step::Send(txn) = acquire.give_up() {
                            session.clean_up_later(txn);
                        }
                        // Whoever asked for the end knows why; whose time was over learns what took it.
                        let unanswered = matches!(error, ClusterError::Unreachable { .. });
                        let ended = || match ended.take() {
                            None if unanswered => patience.ended(),
                            known => known,
                        };
                        return Err(match given_up.or_else(ended) {
                            Some(why @ (ClusterError::Cancelled | ClusterError::Interrupted)) => {
                                why
                            }
                            _ => gone_with_lease(session, error),
                        });
                    }
                }
            }
            Step::Wait { keys, from, deletions } => {
                if !listens {
                    session.inner.beat.ring(&bell);
                    listens = true;
                }
                let ring = Arc::clone(&bell);
                let wake = move || ring.up();
                let client = &session.inner.client;
                let watch = Watch::start(client, &keys, from, deletions, wake);
                let waited = match &watch {
                    Ok(_) => patience.wait(&bell),
                    Err(error) => {
                        Err(ClusterError::Local(format!("cannot start a thread: {error}")))
                    }
                };
                drop(watch);
                session.check()?;
                match waited {
                    Ok(()) => acquire.look(),
                    Err(why) => {
                        given_up = Some(why);
                        acquire.give_up()
                    }
                }
            }
            Step::In(entered) => {
                if let Err(error) = session.confirm() {
                    // Nobody gets the lock by this: its place is not to stay.
                    if let Step::Send(txn) = acquire.give_up() {
                        session.clean_up_later(txn);
                    }
                    return Err(gone_with_lease(session, error));
                }
                let plan = ReleasePlan {
                    keys: keys.clone(),
                    mode,
                    place: acquire.place().to_owned(),
                    lease,
                    created: entered.revision,
                    who,
                    repeated: acquire.is_repeated(),
                };
                return Ok(Got { plan, died: entered.died });
            }
            Step::Refused(why) => {
                return Err(match (given_up, why) {
                    (Some(why), _) => why,
                    (None, Refusal::Gone) => gone_with_lease(session, ClusterError::Removed),
                    (None, Refusal::NotRecoverable) => ClusterError::NotRecoverable,
                    (None, Refusal::Inconsistent) => ClusterError::Inconsistent,
                    (None, Refusal::Held) => ClusterError::Held,
                    (None, Refusal::Permits(theirs)) => ClusterError::Permits { theirs },
                });
            }
        };
    }
}

/// Returns how the lease was lost, if etcd says that it has ended, in place of an error that follows.
fn gone_with_lease(session: &Session, error: ClusterError) -> ClusterError {
    let beat = &session.inner.beat;
    match (&error, beat.check()) {
        (_, Err(by)) => ClusterError::Lost(by),
        (ClusterError::Refused { message, .. }, _) if message.contains("lease not found") => {
            ClusterError::Lost(beat.lose(LostBy::Ended))
        }
        (ClusterError::Removed, _)
            if session.inner.client.time_to_live(session.lease()) == Ok(None) =>
        {
            ClusterError::Lost(beat.lose(LostBy::Ended))
        }
        _ => error,
    }
}
