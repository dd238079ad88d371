//! The life of a session's lease, as this process may rely on it.
//!
//! - **BEAT-SENT** The deadline is counted from the moment at which the renewal was *sent*: etcd counts
//!   from a later one.
//! - **BEAT-MARGIN** It lies before the end of the lease by a fiftieth of it, for clocks that run at
//!   different rates, and by the margin, for which a leader that the others have left may still renew.
//! - **BEAT-FINAL** A lease that was lost once stays lost, also if etcd renews it afterwards.

use crate::clock::Moment;
use crate::error::LostBy;
use crate::threads;
use lockstead::Semaphore;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What hears of the loss.
#[derive(Default)]
struct Listeners {
    bells: Vec<Weak<Semaphore>>,
    wakers: Vec<Waker>,
    calls: Vec<Box<dyn FnOnce(LostBy) + Send>>,
}

/// The state of the lease.
pub(crate) struct Beat {
    deadline: AtomicU64,
    /// 0, or how it was lost.
    lost: AtomicU8,
    /// The moment since which no endpoint answers; 0: one does.
    silent: AtomicU64,
    pid: u32,
    listeners: Mutex<Listeners>,
}

const KINDS: [LostBy; 4] = [LostBy::Deadline, LostBy::Ended, LostBy::Closed, LostBy::Forked];

/// Returns the time after its sending for which a renewal of a lease of this length counts.
pub(crate) fn span(ttl: Duration, margin: Duration) -> Duration {
    (ttl - ttl / 50).saturating_sub(margin)
}

impl Beat {
    pub(crate) fn new(deadline: Moment) -> Self {
        Beat {
            deadline: AtomicU64::new(deadline.nanoseconds()),
            lost: AtomicU8::new(0),
            silent: AtomicU64::new(0),
            pid: std::process::id(),
            listeners: Mutex::default(),
        }
    }

    pub(crate) fn deadline(&self) -> Moment {
        Moment(self.deadline.load(Ordering::Acquire))
    }

    /// Moves the deadline on after a renewal.
    pub(crate) fn renewed(&self, deadline: Moment) {
        self.deadline.fetch_max(deadline.nanoseconds(), Ordering::AcqRel);
        self.silent.store(0, Ordering::Release);
    }

    /// Notes that no endpoint answers; true the first time.
    pub(crate) fn unreachable(&self) -> bool {
        let now = Moment::now().nanoseconds();
        self.silent.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Returns the moment since which no endpoint answers.
    pub(crate) fn silent_since(&self) -> Option<Moment> {
        let since = self.silent.load(Ordering::Acquire);
        (since != 0).then_some(Moment(since))
    }

    /// Says how the lease was lost, or that it is held until the deadline.
    pub(crate) fn check(&self) -> Result<Moment, LostBy> {
        if self.pid != std::process::id() {
            return Err(LostBy::Forked);
        }
        if let Some(by) = self.lost() {
            return Err(by);
        }
        let deadline = self.deadline();
        if Moment::now() < deadline {
            return Ok(deadline);
        }
        // Whoever sees it first says so to all: a renewal that comes now is too late (BEAT-FINAL).
        Err(self.lose(LostBy::Deadline))
    }

    pub(crate) fn lost(&self) -> Option<LostBy> {
        let kind = self.lost.load(Ordering::Acquire);
        KINDS.get(usize::from(kind).wrapping_sub(1)).copied()
    }

    /// Makes the lease lost, and tells all that listen; returns how it was lost, which may have been
    /// before.
    pub(crate) fn lose(&self, by: LostBy) -> LostBy {
        let kind = KINDS.iter().position(|kind| *kind == by).unwrap_or(0) + 1;
        let kind = u8::try_from(kind).unwrap_or(1);
        if self.lost.compare_exchange(0, kind, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return self.lost().unwrap_or(by);
        }
        let listeners = std::mem::take(&mut *self.listeners());
        for bell in listeners.bells.iter().filter_map(Weak::upgrade) {
            bell.up();
        }
        listeners.wakers.into_iter().for_each(Waker::wake);
        if !listeners.calls.is_empty() {
            // They are the program's: neither the heart nor whoever asked waits for them.
            let calls = listeners.calls;
            let run = move || calls.into_iter().for_each(|call| call(by));
            let _ = threads::start("lockstead-lost", run);
        }
        by
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the loss ring a bell.
    pub(crate) fn ring(&self, bell: &Arc<Semaphore>) {
        let mut listeners = self.listeners();
        listeners.bells.retain(|bell| bell.strong_count() > 0);
        listeners.bells.push(Arc::downgrade(bell));
        drop(listeners);
        if self.lost().is_some() {
            bell.up();
        }
    }

    /// Has the loss call a function, on a thread of its own; at once if it is lost already.
    pub(crate) fn call(&self, call: impl FnOnce(LostBy) + Send + 'static) {
        let mut listeners = self.listeners();
        match self.lost() {
            None => listeners.calls.push(Box::new(call)),
            Some(by) => {
                drop(listeners);
                call(by);
            }
        }
    }
}

/// A future that is ready once the session has lost its lease; for any executor.
///
/// The session's own thread finds the loss, so it is told without anybody who asks, and not before the
/// deadline. It says nothing after the lock was released in good order.
pub struct Lost {
    pub(crate) beat: Arc<Beat>,
}

impl Lost {
    /// Waits for the loss for `timeout` at most; `None` if it was not lost by then.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<LostBy> {
        let bell = Arc::new(Semaphore::new(0));
        self.beat.ring(&bell);
        let _ = bell.down_timeout(timeout);
        self.beat.lost()
    }

    /// Returns how the lease was lost, if it was.
    #[must_use]
    pub fn get(&self) -> Option<LostBy> {
        self.beat.lost()
    }
}

impl Future for Lost {
    type Output = LostBy;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<LostBy> {
        let mut listeners = self.beat.listeners();
        match self.beat.lost() {
            Some(by) => Poll::Ready(by),
            None => {
                listeners.wakers.retain(|waker| !waker.will_wake(context.waker()));
                listeners.wakers.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl std::fmt::Debug for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lost").field("by", &self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_lost_stays_lost() {
        let beat = Beat::new(Moment::now().after(Duration::from_secs(60)));
        assert!(beat.check().is_ok());
        let bell = Arc::new(Semaphore::new(0));
        beat.ring(&bell);
        assert_eq!(beat.lose(LostBy::Ended), LostBy::Ended);
        assert!(bell.try_down());
        beat.renewed(Moment::now().after(Duration::from_secs(600)));
        assert_eq!(beat.check(), Err(LostBy::Ended));
        assert_eq!(beat.lose(LostBy::Deadline), LostBy::Ended);
    }

    #[test]
    fn a_deadline_that_has_passed_is_a_loss_whoever_looks() {
        let beat = Arc::new(Beat::new(Moment(1)));
        assert_eq!(beat.check(), Err(LostBy::Deadline));
        let lost = Lost { beat };
        assert_eq!(lost.wait_timeout(Duration::from_secs(10)), Some(LostBy::Deadline));
    }

    #[test]
    fn the_deadline_leaves_a_margin() {
        let span = span(Duration::from_secs(10), Duration::from_secs(1));
        assert_eq!(span, Duration::from_millis(8800));
    }
}
