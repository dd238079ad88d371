//! Sleeping on a word, and waking: Linux' futex.
//!
//! # Role
//! The kernel has a table of buckets. An address belongs to one by its hash, so that others may share it.
//! A bucket has a lock, the number of those who are in it or about to be, and a queue of sleepers. A
//! waiter takes the lock, reads the word, lines up and releases the lock; a waker takes it, looks for
//! sleepers of its address, past those of others, and takes them out. Linux before 4.2 woke them with
//! the lock in its hands, since then it does so afterwards, and the lock, which had given turns by number, is a
//! queue, each of whose waiters spins on a line of its own (`waking`). Everybody who sleeps, wakes or
//! gives up on one word meets there, so that the costs grow with their number.
//!
//! With `bucket = 0` there is no lock: a call costs an exchange on the bucket's line.
//!
//! # Source
//! Linux' `kernel/futex.c`: `futex_wait_setup`, `futex_wake`, `unqueue_me`; its spin lock, `qspinlock` since 4.2;
//! the number of waiters by
//! which a waker spares itself the lock is from 3.14 on, as is the size of the table.

use crate::engine::calls::{self, in_kernel};
use crate::engine::task::Activity;
use crate::engine::words::{Bucket, Sim};
use crate::engine::world::with;
use lockstead_core::{WaitBounds, WaitOutcome};

/// Counts who comes and goes. Linux of the boxes that wake with the lock in their hands does not.
fn came(bucket: &Bucket, by: i32) {
    if with(|w| !w.machine.wakes_inside()) {
        bucket.waiters.update_quietly(|waiters| waiters.wrapping_add_signed(by));
    }
}

fn lock(bucket: &Bucket) {
    if with(|w| w.machine.wakes_inside()) { bucket.turns.lock() } else { bucket.line.lock() }
}

fn unlock(bucket: &Bucket) {
    if with(|w| w.machine.wakes_inside()) { bucket.turns.unlock() } else { bucket.line.unlock() }
}

/// Changes the queue, with the lock in its hands.
fn change(bucket: &Bucket) {
    with(|w| {
        let time = w.machine.kernel.bucket;
        w.pay(time);
    });
    bucket.queue.write(bucket.queue.read().wrapping_add(1));
}

/// Enters the kernel. Returns the bucket of an address; with `None` it has none with a lock.
fn enter(address: usize) -> Option<&'static Bucket> {
    let (bucket, locks) = with(|w| {
        // Two that call in turn would stay in step for ever.
        let jitter = 1.0 + w.machine.lines.jitter * (2.0 * w.random.unit() - 1.0);
        let cost = w.machine.kernel.call + w.machine.kernel.futex;
        w.pay(cost * jitter);
        (w.bucket(address), w.machine.kernel.bucket > 0.0)
    });
    if !locks {
        // The kernel's own step.
        bucket.queue.update_quietly(|value| value.wrapping_add(1));
        calls::settle();
    }
    locks.then_some(bucket)
}

/// Sleeps until woken, if `holds` says so; its argument: whether its look is to cost something.
pub(crate) fn wait(
    address: usize,
    holds: impl Fn(bool) -> bool,
    how: &WaitBounds<'_, Sim>,
) -> WaitOutcome {
    calls::at(Activity::Kernel, || hushed(|| sleep(address, holds, how)))
}

/// Runs `f` as the kernel's own code, whose accesses no trace shows.
fn hushed<R>(f: impl FnOnce() -> R) -> R {
    let hush = |hushed: bool| {
        with(|w| {
            let current = w.current;
            w.tasks[current].hushed = hushed;
        });
    };
    hush(true);
    let result = in_kernel(f);
    hush(false);
    result
}

fn sleep(address: usize, holds: impl Fn(bool) -> bool, how: &WaitBounds<'_, Sim>) -> WaitOutcome {
    let bucket = enter(address);
    if let Some(bucket) = bucket {
        came(bucket, 1);
        lock(bucket);
    }
    let until = how.deadline.map(|deadline| deadline.0.saturating_mul(1000));
    let refused = if !holds(bucket.is_some()) {
        Some(WaitOutcome::Changed)
    } else if how.cancel.is_some_and(|word| word.get() != 0) {
        Some(WaitOutcome::Cancelled)
    } else if with(|w| until.is_some_and(|until| until <= w.now)) {
        Some(WaitOutcome::TimedOut)
    } else {
        None
    };
    if let Some(refused) = refused {
        if let Some(bucket) = bucket {
            unlock(bucket);
            came(bucket, -1);
        }
        return refused;
    }
    if let Some(bucket) = bucket {
        change(bucket);
    }
    with(|w| {
        w.lie_down(address);
        let current = w.current;
        w.tasks[current].sleepy = true;
    });
    if let Some(bucket) = bucket {
        unlock(bucket);
    }
    // A wake-up that was late for an earlier wait ends none of this one.
    while with(|w| w.lies()) {
        calls::settle();
        let sleeps = with(|w| w.sleep_if_sleepy(until));
        if !sleeps {
            break;
        }
        calls::rest();
    }
    give_up_place(address, bucket)
}

/// Leaves the queue, if nobody has taken the task out of it. Returns how its wait has ended.
fn give_up_place(address: usize, bucket: Option<&'static Bucket>) -> WaitOutcome {
    if with(|w| w.lies())
        && let Some(bucket) = bucket
    {
        lock(bucket);
        if with(|w| w.lies()) {
            change(bucket);
            came(bucket, -1);
        }
        unlock(bucket);
    }
    with(|w| {
        let current = w.current;
        w.tasks[current].sleepy = false;
        w.get_up(current, address)
    })
}

/// Wakes up to `count` sleepers of an address. Returns how many there were.
pub(crate) fn wake(address: usize, count: u32) -> u32 {
    hushed(|| {
        let bucket = calls::at(Activity::Kernel, || enter(address));
        let Some(bucket) = bucket else {
            let mut woken = 0;
            while woken < count
                && let Some((task, _)) = with(|w| w.next_sleeper(address))
            {
                calls::wake(task);
                woken += 1;
            }
            return woken;
        };
        calls::at(Activity::Kernel, || wake_from(bucket, address, count))
    })
}

fn wake_from(bucket: &'static Bucket, address: usize, count: u32) -> u32 {
    let inside = with(|w| w.machine.wakes_inside());
    if !inside && bucket.waiters.read() == 0 {
        return 0;
    }
    lock(bucket);
    let mut taken = Vec::new();
    while taken.len() < count as usize {
        // Whom it looks at in vain has a line of its own.
        let found = with(|w| {
            let found = w.next_sleeper(address);
            let passed = found.map_or_else(|| w.sleepers_beside(address), |(_, passed)| passed);
            let current = w.current;
            w.tasks[current].debt += w.machine.cost.transfer[0] * passed as u64;
            found
        });
        let Some((task, _)) = found else { break };
        change(bucket);
        came(bucket, -1);
        taken.push(task);
        if inside {
            calls::wake(task);
        }
    }
    unlock(bucket);
    if !inside {
        taken.iter().for_each(|&task| {
            calls::wake(task);
        });
    }
    taken.len() as u32
}
