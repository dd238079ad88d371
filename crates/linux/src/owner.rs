//! Whether the owner of a lock runs: a hint for those who spin for it.
//!
//! # Role
//! Behind [`Platform::on_cpu`](lockstead_core::Platform::on_cpu), called by a
//! spinner each time it looks at the clock. One place decides which
//! [`Oracle`] answers.
//!
//! # Protocol
//! The clock oracle reads the owner's own processor-time clock twice: it
//! advanced, so the owner runs. One reading costs 0.2 to 0.4 µs, so it is made
//! only for an owner that has been in the way for `PATIENCE`, and then
//! every `PERIOD`; a clock that kept up with the time since the last
//! reading needs no second one.
//!
//! The processor oracle compares the processors: who was last seen on mine
//! does not run, for I do. Threads say where they are when they wait for a
//! lock; a thread that only ever took the fast path, or has moved since, is
//! misjudged. So alone it is not to be trusted; followed by the clock it saves
//! the clock's patience.
//!
//! # Invariants
//! None that a lock relies on. A thread id that has been given to another
//! thread, or a handler that ran in the middle, spoils an answer, not a lock.

use crate::{futex, rseq, table};
use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use lockstead_core::{Atomic32, Nanos, OnCpu, Slot};

/// How to find out whether an owner runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Oracle {
    /// Nobody is asked: spinners rely on their bound alone.
    Nobody,
    /// The owner's processor-time clock.
    Clock,
    /// The processor the owner was last seen on.
    Processor,
    /// The processor; if it is mine, the clock at once, else the clock in time.
    Both,
}

const ALL: [Oracle; 4] = [Oracle::Nobody, Oracle::Clock, Oracle::Processor, Oracle::Both];

/// On two processors the four were within noise of each other; this is the one
/// that is both quick to suspect and confirmed before it says no.
static CHOSEN: AtomicU8 = AtomicU8::new(Oracle::Both as u8);

/// The oracle in use.
#[must_use]
pub fn oracle() -> Oracle {
    ALL[usize::from(CHOSEN.load(Relaxed))]
}

/// Chooses the oracle for all locks of the process; for measurements.
pub fn set_oracle(oracle: Oracle) {
    CHOSEN.store(oracle as u8, Relaxed);
}

/// Nanoseconds an owner is in the way before its clock is read.
const PATIENCE: u64 = 1_500;
/// Nanoseconds between two readings.
const PERIOD: u64 = 4_000;
/// Nanoseconds after which what a spinner knows of an owner is forgotten.
const FORGET: u64 = 100_000;

/// What the calling thread knows of the owner it spins for.
#[derive(Clone, Copy)]
struct Watch {
    slot: u32,
    since: Nanos,
    due: Nanos,
    /// The owner's clock at `since`, if it was read.
    clock: Option<u64>,
}

thread_local! {
    static WATCH: Cell<Watch> = const {
        Cell::new(Watch { slot: 0, since: Nanos(0), due: Nanos(0), clock: None })
    };
}

/// Whether the thread in `slot` runs, as far as the chosen oracle knows.
pub(crate) fn on_cpu(slot: Slot) -> OnCpu {
    match oracle() {
        Oracle::Nobody => OnCpu::Unknown,
        Oracle::Clock => ask_clock(slot, false),
        Oracle::Processor if on_my_processor(slot) => OnCpu::No,
        Oracle::Processor => OnCpu::Unknown,
        Oracle::Both => ask_clock(slot, on_my_processor(slot)),
    }
}

/// Lets the others know where the thread in `me`, the calling one, runs.
pub(crate) fn show_up(me: Slot) {
    if matches!(oracle(), Oracle::Processor | Oracle::Both)
        && let Some(cpu) = rseq::current_cpu()
    {
        let note = &table::participant(me).note;
        // Reading first leaves the line shared while nothing changes.
        if note.load(Relaxed) != cpu + 1 {
            note.store(cpu + 1, Relaxed);
        }
    }
}

fn on_my_processor(slot: Slot) -> bool {
    let seen = table::participant(slot).note.load(Relaxed);
    seen != 0 && rseq::current_cpu() == Some(seen - 1)
}

fn ask_clock(slot: Slot, suspicious: bool) -> OnCpu {
    let now = futex::now();
    let watch = WATCH.get();
    if watch.slot != slot.get() || now.since(watch.since) > FORGET {
        let due = now.after(PATIENCE);
        WATCH.set(Watch { slot: slot.get(), since: now, due, clock: None });
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
    WATCH.set(Watch { slot: slot.get(), since: now, due: now.after(PERIOD), clock: Some(last) });
    if runs { OnCpu::Yes } else { OnCpu::No }
}

/// Nanoseconds of processor time that a thread of this process has used;
/// `None` if there is no such thread, or the kernel refuses to tell.
pub(crate) fn thread_time(tid: u32) -> Option<u64> {
    /// The kernel's `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED`.
    const THREAD_RUN_TIME: i32 = 4 | 2;
    let clock = !(tid as i32) << 3 | THREAD_RUN_TIME;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live timespec.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
