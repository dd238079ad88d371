//! What all guards have in common: a place that is in, and what may be done while it is.

use crate::beat::Lost;
use crate::clock::Moment;
use crate::error::{ClusterError, LostBy};
use crate::protocol::{ReleasePlan, Released};
use crate::session::Session;
use crate::txn::GuardedTxn;
use std::time::Duration;

/// The number of turns that one token of etcd's has: see [`token`](crate::MutexGuard::token).
pub(crate) const TURNS: u64 = 1024;

/// A place that is in.
pub struct Hold {
    pub(crate) session: Session,
    pub(crate) plan: ReleasePlan,
    /// The turn within the host; 0 without local first.
    pub(crate) turn: u64,
    /// It is released already, or handed on.
    pub(crate) over: bool,
}

impl Hold {
    pub(crate) fn new(session: &Session, plan: ReleasePlan) -> Self {
        Hold { session: session.clone(), plan, turn: 0, over: false }
    }

    pub(crate) fn token(&self) -> u64 {
        u64::try_from(self.plan.created).unwrap_or(0) * TURNS + self.turn
    }

    pub(crate) fn check(&self) -> Result<Moment, ClusterError> {
        self.session.check()
    }

    pub(crate) fn confirm(&self) -> Result<Moment, ClusterError> {
        let deadline = self.session.confirm()?;
        let txn = self.plan.guarded(Vec::new());
        if self.session.txn(&txn, &mut false)?.succeeded {
            Ok(deadline)
        } else {
            Err(self.removed())
        }
    }

    /// Returns why the place is not there.
    pub(crate) fn removed(&self) -> ClusterError {
        self.check().err().unwrap_or(ClusterError::Removed)
    }

    pub(crate) fn with_deadline<T>(
        &self,
        work: impl FnOnce(Moment) -> T,
    ) -> Result<T, ClusterError> {
        let deadline = self.check()?;
        let result = work(deadline);
        // Renewed or not: what counts is that the lock was certain all the time.
        match self.check() {
            Ok(_) => Ok(result),
            Err(ClusterError::Lost(LostBy::Deadline)) => Err(ClusterError::Late {
                by: Moment::now().since(self.session.inner.beat.deadline()),
            }),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn lost(&self) -> Lost {
        self.session.lost()
    }

    pub(crate) fn txn(&self) -> GuardedTxn<'_> {
        GuardedTxn::new(self)
    }

    /// Gives the place back; by `give_up` so that nobody gets the lock again.
    pub(crate) fn release(&mut self, give_up: bool) -> Result<(), ClusterError> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        // The lease takes the place along and leaves the mark: the next owner is told. So it is past the
        // deadline, too, since nobody renews it any more. Of a child's lock the parent's thread sees to that.
        self.check()?;
        let txn = if give_up { self.plan.give_up() } else { self.plan.release() };
        let mut repeated = false;
        match self.session.txn(&txn, &mut repeated) {
            Ok(answer) => match self.plan.released(&answer, repeated) {
                Released::Done => Ok(()),
                Released::Gone => Err(self.removed()),
            },
            Err(error) => {
                self.session.clean_up_later(txn);
                Err(error)
            }
        }
    }

    /// Gives the place back and leaves the mark, so that the next owner is told.
    pub(crate) fn leave_marked(&mut self) -> Result<(), ClusterError> {
        self.over = true;
        self.check()?;
        let txn = self.plan.leave_marked();
        match self.session.txn(&txn, &mut false) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.session.clean_up_later(txn);
                Err(error)
            }
        }
    }

    pub(crate) fn mark_consistent(&self) -> Result<(), ClusterError> {
        self.check()?;
        let answer = self.session.txn(&self.plan.mark_consistent(), &mut false)?;
        if answer.succeeded { Ok(()) } else { Err(self.removed()) }
    }

    pub(crate) fn safe_for(&self) -> Duration {
        self.check().map_or(Duration::ZERO, Moment::remaining)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A release that failed is repeated by the session's thread, or the lease ends.
        let _ = self.release(false);
    }
}

/// Gives a type that has a `hold` what all guards have.
macro_rules! guard {
    ($($name:ident),*) => { $(
        impl $name {
            /// Returns the fencing token: a number that grows from each owner of this lock to the next.
            ///
            /// Whatever the lock protects outside of etcd compares it with the greatest that it has seen
            /// and refuses a smaller one. The revision of etcd at which the place in the queue was made,
            /// times 1024, and the turn within the host.
            #[must_use]
            pub fn token(&self) -> u64 {
                self.hold.token()
            }

            /// Returns the moment until which the lock is certain, as it is known now: the session's
            /// thread moves it on. The start of the machine, if the lock is lost.
            #[must_use]
            pub fn deadline(&self) -> $crate::Moment {
                self.hold.check().unwrap_or($crate::Moment(0))
            }

            /// Returns the time until the deadline; zero if the lock is lost.
            #[must_use]
            pub fn safe_for(&self) -> std::time::Duration {
                self.hold.safe_for()
            }

            /// Says whether the lock is still held, by the clock and without a request; called before
            /// each step that must not be done without it.
            ///
            /// # Errors
            /// [`ClusterError::Lost`](crate::ClusterError::Lost).
            pub fn check(&self) -> Result<$crate::Moment, $crate::ClusterError> {
                self.hold.check()
            }

            /// Asks etcd whether the lock is still held. Learns what [`check`](Self::check) cannot: that
            /// somebody has removed it by force.
            ///
            /// # Errors
            /// [`ClusterError::Lost`](crate::ClusterError::Lost),
            /// [`ClusterError::Removed`](crate::ClusterError::Removed); as a request.
            pub fn confirm(&self) -> Result<$crate::Moment, $crate::ClusterError> {
                self.hold.confirm()
            }

            /// Runs `work` with the moment by which it should be done, and says whether the lock was
            /// certain until its end. It is not cut off: it asks the moment itself.
            ///
            /// # Errors
            /// [`ClusterError::Lost`](crate::ClusterError::Lost): not begun.
            /// [`ClusterError::Late`](crate::ClusterError::Late): it ended too late.
            pub fn with_deadline<T>(
                &self,
                work: impl FnOnce($crate::Moment) -> T,
            ) -> Result<T, $crate::ClusterError> {
                self.hold.with_deadline(work)
            }

            /// Returns a future that is ready once the lock is lost.
            #[must_use]
            pub fn lost(&self) -> $crate::Lost {
                self.hold.lost()
            }

            /// Has `call` called once the lock is lost, on a thread of its own.
            pub fn on_lost(&self, call: impl FnOnce($crate::LostBy) + Send + 'static) {
                self.hold.session.inner.beat.call(call);
            }

            /// Begins a transaction of etcd that is carried out only while the lock is held.
            pub fn txn(&self) -> $crate::GuardedTxn<'_> {
                self.hold.txn()
            }

            /// Releases the lock, and says whether it was held until then; dropping the guard releases
            /// without saying.
            ///
            /// # Errors
            /// [`ClusterError::Lost`](crate::ClusterError::Lost),
            /// [`ClusterError::Removed`](crate::ClusterError::Removed); as a request: the session's
            /// thread then repeats the release.
            pub fn unlock(mut self) -> Result<(), $crate::ClusterError> {
                self.hold.release(false)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).field("token", &self.token()).finish_non_exhaustive()
            }
        }
    )* };
}
pub(crate) use guard;
