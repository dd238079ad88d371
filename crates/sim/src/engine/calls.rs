//! The calls by which tasks do what they can do besides reading and writing memory.

use super::strand::suspend;
use super::task::{Activity, TaskState};
use super::time::Ps;
use super::trace::StepKind;
use super::world::with;

/// Computes for `time`, at full speed; a busy sibling makes it longer.
pub(crate) fn work(time: Ps) {
    loop {
        if !with(|w| w.settle()) {
            break;
        }
        suspend();
    }
    if with(|w| w.pass(time, true)) {
        suspend();
    }
}

/// Leaves the processor for `time`: a disk, a peer, a person.
pub(crate) fn away(time: Ps) {
    settle();
    with(|w| {
        w.set_timer(time);
        w.sleep();
    });
    suspend();
}

/// Gives the turn back, having gone to sleep.
pub(crate) fn rest() {
    suspend();
}

/// Lets the time come that the task has used up.
pub(crate) fn settle() {
    while with(|w| w.settle()) {
        suspend();
    }
}

/// Uses up a little time.
pub(crate) fn pay(ns: f64) {
    with(|w| w.pay(ns));
}

/// Returns the number of the running task, from 0.
pub(crate) fn me() -> usize {
    with(|w| w.current)
}

/// Returns the time as the running task sees it.
pub(crate) fn now() -> Ps {
    with(|w| w.local_now())
}

/// Returns a number from 0 to below 1.
pub(crate) fn chance() -> f64 {
    with(|w| {
        let current = w.current;
        w.tasks[current].random.unit()
    })
}

/// Runs `f` as time spent at `place`.
pub(crate) fn at<R>(place: Activity, f: impl FnOnce() -> R) -> R {
    let before = with(|w| w.go(place));
    let result = f();
    with(|w| w.go(before));
    result
}

/// Runs `f` without being preempted, as the kernel's own code.
pub(crate) fn in_kernel<R>(f: impl FnOnce() -> R) -> R {
    with(|w| {
        let current = w.current;
        w.tasks[current].kernel += 1;
    });
    let result = f();
    with(|w| {
        let current = w.current;
        w.tasks[current].kernel -= 1;
    });
    result
}

/// Pauses once, in a loop that may be elided: see `poll`.
pub(crate) fn pause() {
    let parked = with(|w| {
        let pause = w.machine.cost.pause;
        let current = w.current;
        w.tasks[current].debt += pause;
        w.turn_done()
    });
    // A parked task has passed its debt up to the beginning of its next turn, which
    // `unpark` counts from.
    if parked {
        with(|w| {
            let current = w.current;
            w.tasks[current].debt = 0;
        });
        suspend();
    }
}

/// Tells whether the scheduler wants the processor back.
pub(crate) fn need_resched() -> bool {
    with(|w| {
        let current = w.current;
        w.tasks[current].poll.asked();
        w.cpus[w.tasks[current].cpu].resched
    })
}

/// Announces that the running task will sleep: from now on a wake-up is not lost.
pub(crate) fn get_sleepy() {
    with(|w| {
        let current = w.current;
        w.tasks[current].sleepy = true;
    });
}

/// Says that the running task will not sleep after all.
pub(crate) fn stay_awake() {
    with(|w| {
        let current = w.current;
        w.tasks[current].sleepy = false;
    });
}

/// Sleeps, unless woken since [`get_sleepy`].
pub(crate) fn schedule() {
    settle();
    let left = with(|w| {
        let current = w.current;
        if w.tasks[current].sleepy {
            w.sleep();
            return true;
        }
        let cpu = w.tasks[current].cpu;
        if w.cpus[cpu].resched {
            w.preempt(current);
            return true;
        }
        false
    });
    if left {
        suspend();
    }
}

/// Lets another task have the processor, if one waits for it: the running one goes behind, as if
/// its slice were over.
pub(crate) fn give_way() {
    at(Activity::Kernel, || {
        with(|w| {
            let cost = w.machine.kernel.call;
            w.pay(cost);
        });
        settle();
    });
    let left = with(|w| {
        let current = w.current;
        let cpu = w.tasks[current].cpu;
        if w.cpus[cpu].queue.is_empty() {
            return false;
        }
        w.tasks[current].virtual_time += w.machine.cost.slice as i64;
        w.preempt(current);
        true
    });
    if left {
        suspend();
    }
}

/// Wakes a task. Returns true if that had an effect.
pub(crate) fn wake(task: usize) -> bool {
    at(Activity::Kernel, || {
        if with(|w| w.machine.scheduler.leaving) {
            settle();
            with(|w| w.wait_for_leaving(task));
            settle();
        }
        with(|w| {
            let current = w.current;
            let held = w.machine.cost.queue;
            let wake = w.machine.cost.wake.saturating_sub(held);
            w.tasks[current].debt += w.kernel_time(wake, w.tasks[current].cpu);
        });
        settle();
    });
    let target = with(|w| w.target(task, w.tasks[w.current].cpu));
    if with(|w| w.machine.cost.queue > 0 && w.tasks[task].sleepy) {
        at(Activity::Kernel, || {
            with(|w| {
                let current = w.current;
                w.tasks[current].debt += w.turn_at_queue(target);
            });
            settle();
        });
    }
    with(|w| {
        if !std::mem::replace(&mut w.tasks[task].sleepy, false) {
            return false;
        }
        w.note(StepKind::Wake, 0, task as u64);
        if w.tasks[task].state == TaskState::Asleep {
            let waker = w.current;
            if w.awaken(task, target) {
                w.tasks[waker].debt += w.machine.cost.kick;
            }
        }
        true
    })
}

/// Tells whether a task is on a processor, read from its own line.
pub(crate) fn runs(task: usize) -> bool {
    with(|w| w.tasks[task].on_cpu).read() != 0
}

/// Notes a step of the running task with a lock.
pub(crate) fn note(kind: StepKind, lock: usize) {
    with(|w| {
        if w.trace.on {
            w.note(kind, 0, lock as u64);
        }
    });
}
