//! Reads the processor-time clock of another thread of the process.
//!
//! # Protocol
//! Read twice, it has advanced or not. One reading costs 0.2 to 0.4 µs, so it is made
//! only for an owner that has been in the way for [`PATIENCE`], and then
//! every [`PERIOD`]; a clock that kept up with the time since the last
//! reading needs no second one.

use crate::{futex, table};
use core::cell::Cell;
use lockstead_core::{Nanos, OnCpu, Slot};

/// The nanoseconds that an owner is in the way before its clock is read.
const PATIENCE: u64 = 1_500;
/// The nanoseconds between two readings.
const PERIOD: u64 = 4_000;
/// The nanoseconds after which what a spinner knows of an owner is forgotten.
const FORGET: u64 = 100_000;

/// What the calling thread knows of the owner that it spins for.
#[derive(Clone, Copy)]
struct OwnerWatch {
    slot: u32,
    since: Nanos,
    due: Nanos,
    /// The owner's clock at `since`, if it was read.
    clock: Option<u64>,
}

thread_local! {
    static WATCH: Cell<OwnerWatch> = const {
        Cell::new(OwnerWatch { slot: 0, since: Nanos(0), due: Nanos(0), clock: None })
    };
}

/// Tells whether the thread in `slot` runs; for a `suspicious` one the clock is read at once.
pub(super) fn ask(slot: Slot, suspicious: bool) -> OnCpu {
    let now = futex::now();
    let watch = WATCH.get();
    if watch.slot != slot.get() || now.since(watch.since) > FORGET {
        let due = now.after(PATIENCE);
        WATCH.set(OwnerWatch { slot: slot.get(), since: now, due, clock: None });
        if !suspicious {
            return OnCpu::Unknown;
        }
    } else if now < watch.due {
        return OnCpu::Unknown;
    }
    let Some(first) = table::participant(slot).tid().and_then(thread_time) else {
        return OnCpu::Unknown;
    };
    let keeps_up = watch.slot == slot.get()
        && watch.clock.is_some_and(|then| {
            // Seven tenths: the time of the readings themselves is lost.
            first.saturating_sub(then) * 10 >= now.since(watch.since) * 7
        });
    let (runs, last) = if keeps_up {
        (true, first)
    } else {
        match table::participant(slot).tid().and_then(thread_time) {
            Some(second) => (second > first, second),
            None => return OnCpu::Unknown,
        }
    };
    WATCH.set(OwnerWatch {
        slot: slot.get(),
        since: now,
        due: now.after(PERIOD),
        clock: Some(last),
    });
    if runs { OnCpu::Yes } else { OnCpu::No }
}

/// Returns the nanoseconds of processor time that a thread of this process has used;
/// `None` if there is no such thread, or the kernel refuses to tell.
pub(crate) fn thread_time(tid: u32) -> Option<u64> {
    /// The kernel's `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED`.
    const THREAD_RUN_TIME: i32 = 4 | 2;
    let clock = !(tid as i32) << 3 | THREAD_RUN_TIME;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a timespec that lives on this stack.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
