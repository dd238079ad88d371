//! Two threads that sleep for what a victim has.

use super::scenes::SceneStage;
use super::victim::{PATIENCE, sleeps};
use crate::Error;
use crate::shared::process::until;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// What one of them does, and whether it was told of a death.
type WaiterJob = fn(&SceneStage) -> Result<bool, Error>;

pub(super) struct Waiters([StepsWaiter; 2]);

struct StepsWaiter {
    thread: libc::pid_t,
    go: Sender<WaiterJob>,
    through: Receiver<(Instant, Result<bool, Error>)>,
    /// Whether it has been told to go, and is not through.
    busy: Arc<AtomicBool>,
}

impl Waiters {
    pub(super) fn new(stage: &'static SceneStage) -> Result<Self, Error> {
        Ok(Waiters([StepsWaiter::new(stage)?, StepsWaiter::new(stage)?]))
    }

    /// Has both waiters begin.
    pub(super) fn go(&self, job: WaiterJob) {
        for waiter in &self.0 {
            waiter.busy.store(true, Ordering::SeqCst);
            // It waits for this as long as this exists.
            let _ = waiter.go.send(job);
        }
    }

    /// Waits until each sleeps or is through. Returns whether one is through.
    pub(super) fn until_asleep(&self) -> Result<bool, Error> {
        let busy = |waiter: &StepsWaiter| waiter.busy.load(Ordering::SeqCst);
        let settled =
            until(PATIENCE, || self.0.iter().all(|waiter| !busy(waiter) || waiter.is_asleep()));
        match settled {
            true => Ok(!self.0.iter().all(busy)),
            false => Err(Error::Worker { how: "a waiter neither sleeps nor ends".into() }),
        }
    }

    /// Waits until both are through: when the last one was, and how many were told of a death.
    pub(super) fn until_through(&self) -> Result<(Instant, u64), Error> {
        let mut last = None;
        let mut told = 0;
        for waiter in &self.0 {
            let (when, outcome) = waiter.through.recv_timeout(PATIENCE).map_err(|_| {
                Error::Worker { how: format!("a waiter waits for {} s", PATIENCE.as_secs()) }
            })?;
            told += u64::from(outcome?);
            last = last.max(Some(when));
        }
        Ok((last.unwrap_or_else(Instant::now), told))
    }
}

impl StepsWaiter {
    fn new(stage: &'static SceneStage) -> Result<Self, Error> {
        let (go, jobs) = channel::<WaiterJob>();
        let (tell, through) = channel();
        let (introduce, who) = channel();
        let busy = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::clone(&busy);
        let work = move || {
            // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
            let _ = introduce.send(unsafe { libc::gettid() });
            while let Ok(job) = jobs.recv() {
                let outcome = job(stage);
                let when = Instant::now();
                is_busy.store(false, Ordering::SeqCst);
                let _ = tell.send((when, outcome));
            }
        };
        let started = std::thread::Builder::new().spawn(work);
        started.map_err(|source| Error::Process { what: "cannot start a thread", source })?;
        let thread = who.recv().map_err(|_| Error::Worker { how: "a thread is gone".into() })?;
        Ok(StepsWaiter { thread, go, through, busy })
    }

    /// Looks twice, some time apart, since a short rest is a sleep too.
    fn is_asleep(&self) -> bool {
        let asleep = || sleeps(std::process::id() as libc::pid_t, self.thread);
        let first = asleep();
        std::thread::sleep(Duration::from_micros(200));
        first && asleep()
    }
}
