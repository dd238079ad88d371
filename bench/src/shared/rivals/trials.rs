//! What is tried with each lock: kills, forks, closed files, containers.
//!
//! Whoever holds or waits is a child made by `fork`, which opens the lock for itself; the parent
//! judges by what children write into memory that all share.

use super::locks::{PATIENCE, Rival, RivalGround};
use super::row::RivalRow;
use crate::shared::memory::{Plain, SharedMemory};
use crate::shared::process::{Namespaces, WorkerProcess, ending, leave_child, until};
use crate::{Error, clock, stats};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A waiter that has not got the lock by then will not get it.
const STUCK: Duration = Duration::from_secs(2);

/// Kills with each lock, of which the median time is told.
const KILLS: usize = 9;

/// What a waiter gets when the holder is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AfterKill {
    /// The lock, and word of the death.
    Told,
    /// The lock, as if it had been released.
    Silent,
    /// Nothing, within two seconds.
    Stuck,
}

/// The memory in which children tell what they saw.
#[repr(C)]
pub(super) struct Board {
    /// How many hold the lock.
    pub(super) held: AtomicU32,
    /// One is about to ask for it.
    pub(super) asks: AtomicU32,
    /// One has got it: 1, or 2 with word of a death; or found it free, 1, or not, 2.
    pub(super) got: AtomicU32,
    /// The time of that on the monotonic clock, in nanoseconds.
    pub(super) when: AtomicU64,
    /// The number of a grandchild, as the parent sees it.
    pub(super) grandchild: AtomicU32,
}

// SAFETY: by PLAIN-BITS it is made of atomics: any bits are valid, and others may write at any
// time.
unsafe impl Plain for Board {}

impl Board {
    pub(super) fn clear(&self) {
        for word in [&self.held, &self.asks, &self.got, &self.grandchild] {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Waits for a word of the board; an error if the child ends, or takes too long.
pub(super) fn await_word(word: &AtomicU32, child: &mut WorkerProcess) -> Result<u32, Error> {
    let mut end = None;
    until(PATIENCE, || {
        end = end.or_else(|| child.ended());
        word.load(Ordering::Acquire) != 0 || end.is_some()
    });
    match (word.load(Ordering::Acquire), end) {
        (0, Some(status)) => Err(Error::Worker { how: ending(status) }),
        (0, None) => Err(Error::Worker { how: format!("it did nothing for {PATIENCE:?}") }),
        (said, _) => Ok(said),
    }
}

/// What a holder does before it is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrialScene {
    /// It takes the lock.
    Holds,
    /// Takes a share of it.
    Shares,
    /// Takes the lock, and has a child that outlives it.
    HasChild,
}

/// Starts a child that takes the lock, and keeps it until it is killed.
fn holder<'g, R: Rival<'g>>(
    ground: &'g RivalGround,
    board: &Board,
    scene: TrialScene,
) -> Result<WorkerProcess, Error> {
    let mut child = WorkerProcess::fork(|| {
        let lock = R::open(ground)?;
        match scene {
            TrialScene::Shares => lock.share()?,
            TrialScene::Holds | TrialScene::HasChild => lock.lock().map(drop)?,
        }
        if scene == TrialScene::HasChild {
            let what = "cannot start a process";
            let child = leave_child().map_err(|source| Error::Process { what, source })?;
            board.grandchild.store(child as u32, Ordering::Relaxed);
        }
        board.held.store(1, Ordering::Release);
        loop {
            std::thread::park();
        }
    })?;
    await_word(&board.held, &mut child)?;
    Ok(child)
}

/// Tells whether another process finds the lock free.
fn is_free<'g, R: Rival<'g>>(ground: &'g RivalGround, board: &Board) -> Result<bool, Error> {
    board.got.store(0, Ordering::Relaxed);
    let mut child = WorkerProcess::fork(|| {
        let lock = R::open(ground)?;
        let free = lock.try_lock()?;
        if free {
            lock.unlock()?;
        }
        board.got.store(if free { 1 } else { 2 }, Ordering::Release);
        Ok(())
    })?;
    let said = await_word(&board.got, &mut child)?;
    child.reap();
    Ok(said == 1)
}

/// Kills a holder while somebody waits for the lock, several times.
fn kill<'g, R: Rival<'g>>(
    ground: &'g RivalGround,
    board: &Board,
    scene: TrialScene,
    kills: usize,
) -> Result<(AfterKill, Option<f64>), Error> {
    let mut times = Vec::new();
    let mut outcome = AfterKill::Stuck;
    for _ in 0..kills {
        board.clear();
        let mut holder = holder::<R>(ground, board, scene)?;
        let _child = LeftProcess(board.grandchild.load(Ordering::Relaxed) as libc::pid_t);
        let mut waiter = WorkerProcess::fork(|| {
            let lock = R::open(ground)?;
            board.asks.store(1, Ordering::Release);
            let told = lock.lock()?;
            board.when.store(clock::monotonic().as_nanos() as u64, Ordering::Relaxed);
            board.got.store(if told { 2 } else { 1 }, Ordering::Release);
            lock.unlock()
        })?;
        await_word(&board.asks, &mut waiter)?;
        // If it never sleeps, it learns of the death as it asks.
        until(Duration::from_millis(100), || waiter.sleeps());
        let killed = clock::monotonic().as_nanos() as u64;
        holder.kill();
        holder.reap();
        if !until(STUCK, || board.got.load(Ordering::Acquire) != 0) {
            return Ok((AfterKill::Stuck, None));
        }
        waiter.reap();
        let since = board.when.load(Ordering::Relaxed).saturating_sub(killed);
        times.push(since as f64 / 1e6);
        let told = board.got.load(Ordering::Relaxed) == 2;
        outcome = if told { AfterKill::Told } else { AfterKill::Silent };
    }
    Ok((outcome, Some(stats::median(&times))))
}

/// A process that its parent has left behind, or 0; killed when dropped.
struct LeftProcess(libc::pid_t);

impl Drop for LeftProcess {
    fn drop(&mut self) {
        if self.0 != 0 {
            // SAFETY: a process that ends by a signal only, and has had none.
            unsafe { libc::kill(self.0, libc::SIGKILL) };
        }
    }
}

/// Tells whether two threads, each of which opens the lock, exclude each other.
fn threads<'g, R: Rival<'g>>(ground: &'g RivalGround, board: &Board) -> Result<bool, Error> {
    board.clear();
    let mut child = WorkerProcess::fork(|| {
        let lock = R::open(ground)?;
        lock.lock()?;
        let second = || R::open(ground)?.try_lock();
        let both = std::thread::scope(|s| s.spawn(second).join()).unwrap_or(Ok(false))?;
        board.got.store(if both { 1 } else { 2 }, Ordering::Release);
        Ok(())
    })?;
    let said = await_word(&board.got, &mut child)?;
    child.reap();
    Ok(said == 2)
}

/// Tells whether the lock is still held when its holder has opened the file once more, and closed
/// that.
fn close<'g, R: Rival<'g>>(ground: &'g RivalGround, board: &Board) -> Result<bool, Error> {
    let lock = R::open(ground)?;
    lock.lock()?;
    drop(ground.file()?);
    let kept = !is_free::<R>(ground, board)?;
    lock.unlock()?;
    Ok(kept)
}

/// Tells whether the lock is still held when a forked child has unlocked what it inherited.
fn child<'g, R: Rival<'g>>(ground: &'g RivalGround, board: &Board) -> Result<bool, Error> {
    board.clear();
    let lock = R::open(ground)?;
    lock.lock()?;
    let mut child = WorkerProcess::fork(|| {
        // Refused, by some.
        let _ = lock.unlock();
        board.held.store(1, Ordering::Release);
        Ok(())
    })?;
    await_word(&board.held, &mut child)?;
    child.reap();
    let kept = !is_free::<R>(ground, board)?;
    let _ = lock.unlock();
    Ok(kept)
}

/// Tells whether the lock is still held when one that waits for it is killed, and holder and waiter
/// are process 1, each of its own namespace.
fn container<'g, R: Rival<'g>>(
    ground: &'g RivalGround,
    board: &Board,
    namespaces: Namespaces,
) -> Result<bool, Error> {
    board.clear();
    let mut holder = first(namespaces, board, || {
        let lock = R::open(ground)?;
        lock.lock()?;
        board.held.store(1, Ordering::Release);
        loop {
            std::thread::park();
        }
    })?;
    await_word(&board.held, &mut holder.parent)?;
    let mut waiter = first(namespaces, board, || {
        let lock = R::open(ground)?;
        board.asks.store(1, Ordering::Release);
        lock.lock().map(drop)
    })?;
    await_word(&board.asks, &mut waiter.parent)?;
    until(Duration::from_millis(100), || waiter.sleeps());
    waiter.kill();
    Ok(!is_free::<R>(ground, board)?)
}

/// Process 1 of a namespace, and the child of this process that has made it.
pub(super) struct First {
    pub(super) parent: WorkerProcess,
    number: libc::pid_t,
}

/// Has process 1 of a new namespace do this.
pub(super) fn first(
    namespaces: Namespaces,
    board: &Board,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<First, Error> {
    board.grandchild.store(0, Ordering::Relaxed);
    let mut parent = WorkerProcess::fork(|| {
        namespaces.enter().map_err(|source| Error::Namespaces { source })?;
        let mut grandchild = WorkerProcess::fork(work)?;
        board.grandchild.store(grandchild.pid() as u32, Ordering::Release);
        // It is killed, or has said itself why it failed.
        grandchild.reap();
        Ok(())
    })?;
    let number = await_word(&board.grandchild, &mut parent)? as libc::pid_t;
    Ok(First { parent, number })
}

impl First {
    fn sleeps(&self) -> bool {
        WorkerProcess::process_sleeps(self.number)
    }

    /// Kills process 1, and waits until it is gone.
    fn kill(mut self) {
        // SAFETY: the child of ours that waits for it has not ended, so the number is its own.
        unsafe { libc::kill(self.number, libc::SIGKILL) };
        self.parent.reap();
    }
}

/// One ground for each trial, since some leave a lock that is of no more use.
pub(super) const GROUNDS: usize = 7;

/// Tries everything with a lock.
pub(super) fn all<'g, R: Rival<'g>>(
    grounds: &'g [RivalGround],
    namespaces: Option<Namespaces>,
    row: &mut RivalRow,
) -> Result<(), Error> {
    let [first, second, third, fourth, fifth, sixth, seventh] = grounds else {
        unreachable!("{GROUNDS} were made");
    };
    let board = SharedMemory::<Board>::create()?;
    (row.after_kill, row.known_ms) = kill::<R>(first, &board, TrialScene::Holds, KILLS)?;
    if R::SHARES {
        row.after_reader_kill = Some(kill::<R>(second, &board, TrialScene::Shares, 1)?.0);
    }
    if R::OPENS_TWICE {
        row.after_kill_with_child = Some(kill::<R>(seventh, &board, TrialScene::HasChild, 1)?.0);
        row.excludes_threads = Some(threads::<R>(third, &board)?);
        row.survives_child = Some(child::<R>(fourth, &board)?);
        if let Some(namespaces) = namespaces {
            row.survives_waiter = Some(container::<R>(fifth, &board, namespaces)?);
        }
    }
    if R::IS_OF_FILE {
        row.survives_close = Some(close::<R>(sixth, &board)?);
    }
    Ok(())
}
