//! Tells a spinner whether the owner of the lock runs, as a hint.
//!
//! # Role
//! Behind [`Platform::on_cpu`](lockstead_core::Platform::on_cpu), called by a
//! spinner each time it looks at the clock. One place decides which
//! [`Oracle`] answers.
//!
//! # The chain
//! 1. The table that an eBPF program keeps at each switch ([`oncpu`]):
//!    exact, two loads, no call; there only if somebody with privileges started it
//!    before the process took its first lock.
//! 2. The processor: an owner that was last seen on the spinner's own does not run, for the
//!    spinner does. Threads say
//!    where they are when they wait for a lock, in their slot, which is never freed; a
//!    thread that only ever took the fast path, or has moved since, is misjudged. So
//!    this source only says whom to suspect, and the next confirms.
//! 3. The owner's own processor-time clock, read twice (`clock`): it advanced, so the
//!    owner runs. Needs no privilege; of the same process only.
//! 4. Nothing: spinners rely on their bound of time.
//!
//! Each falls back to the next where it cannot tell. `docs/owner.md` has the costs and
//! how often each is right.
//!
//! # Invariants
//! None that a lock relies on. A thread id that has been given to another
//! thread, or a handler that ran in the middle, spoils an answer, not a lock: the
//! tests run with oracles that say yes, no, or either at random.

mod clock;

pub(crate) use clock::thread_time;

use crate::{me, oncpu, rseq, table};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use lockstead_core::{Atomic32, OnCpu, Slot};

/// A way to find out whether an owner runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Oracle {
    /// No source is asked: spinners rely on their bound alone.
    Nobody,
    /// The owner's processor-time clock is read.
    Clock,
    /// The processor is asked that the owner was last seen on.
    Processor,
    /// The processor is asked; if it is the spinner's own, the clock at once, else the clock in
    /// time.
    Both,
    /// The table of which thread runs where is asked.
    Table,
    /// The table is asked; where there is none, or it cannot tell, as [`Oracle::Both`]. The
    /// default.
    Chain,
    /// The answer is always yes: to see what a lie does to a lock.
    Yes,
    /// The answer is always no, as much of a lie.
    No,
    /// The answer is one of the three, at random.
    Random,
}

impl Oracle {
    /// All oracles that there are.
    pub const ALL: [Oracle; 9] = [
        Oracle::Nobody,
        Oracle::Clock,
        Oracle::Processor,
        Oracle::Both,
        Oracle::Table,
        Oracle::Chain,
        Oracle::Yes,
        Oracle::No,
        Oracle::Random,
    ];
}

static CHOSEN: AtomicU8 = AtomicU8::new(Oracle::Chain as u8);

/// Returns the oracle in use.
#[must_use]
pub fn oracle() -> Oracle {
    Oracle::ALL[usize::from(CHOSEN.load(Relaxed))]
}

/// Chooses the oracle for all locks of the process; for measurements and tests.
pub fn set_oracle(oracle: Oracle) {
    CHOSEN.store(oracle as u8, Relaxed);
}

/// Tells whether the thread in `slot` runs, as far as the chosen oracle knows.
pub(crate) fn on_cpu(slot: Slot) -> OnCpu {
    ask(slot, oracle())
}

/// Tells whether the thread in `slot` runs, as far as this oracle knows; for measurements. The
/// calling thread should ask only one oracle that reads clocks at a time, for it remembers
/// the last reading.
#[must_use]
pub fn ask(slot: Slot, oracle: Oracle) -> OnCpu {
    match oracle {
        Oracle::Nobody => OnCpu::Unknown,
        Oracle::Clock => clock::ask(slot, false),
        Oracle::Processor if on_my_processor(slot) => OnCpu::No,
        Oracle::Processor => OnCpu::Unknown,
        Oracle::Both => clock::ask(slot, on_my_processor(slot)),
        Oracle::Table => ask_table(slot).unwrap_or(OnCpu::Unknown),
        Oracle::Chain => ask_table(slot).unwrap_or_else(|| clock::ask(slot, on_my_processor(slot))),
        Oracle::Yes => OnCpu::Yes,
        Oracle::No => OnCpu::No,
        Oracle::Random => at_random(),
    }
}

/// Notes the calling thread's name in the table. It joins, in the slot `me`, or has a new
/// number after `fork`: the thread that had the slot before had another name.
pub(crate) fn introduce(me: Slot) {
    table::name(me).store(oncpu::introduce(), Relaxed);
}

fn ask_table(slot: Slot) -> Option<OnCpu> {
    let kept = oncpu::OncpuTable::here()?;
    let me = Slot::new(me::me_or_zero())?;
    let name = |slot| table::name(slot).load(Relaxed);
    let Some(runs) = kept.runs(name(slot), name(me)) else {
        // The table does not know the calling thread, or its name in the slot is wrong.
        introduce(me);
        return None;
    };
    Some(if runs { OnCpu::Yes } else { OnCpu::No })
}

/// Lets the others know where the thread in `me`, the calling one, runs.
pub(crate) fn show_up(me: Slot) {
    if uses_processor()
        && let Some(cpu) = rseq::current_cpu()
    {
        let note = &table::participant(me).note;
        // Reading first leaves the line shared while nothing changes.
        if note.load(Relaxed) != cpu + 1 {
            note.store(cpu + 1, Relaxed);
        }
    }
    if uses_table() && table::name(me).load(Relaxed) == 0 {
        introduce(me);
    }
}

/// Tells whether the chosen oracle may ask for processors.
pub(crate) fn uses_processor() -> bool {
    matches!(oracle(), Oracle::Processor | Oracle::Both | Oracle::Table | Oracle::Chain)
}

/// Tells whether the chosen oracle may read clocks.
pub(crate) fn uses_clock() -> bool {
    matches!(oracle(), Oracle::Clock | Oracle::Both | Oracle::Chain)
}

/// Tells whether the chosen oracle reads a table that is there.
pub(crate) fn uses_table() -> bool {
    matches!(oracle(), Oracle::Table | Oracle::Chain) && oncpu::OncpuTable::here().is_some()
}

fn on_my_processor(slot: Slot) -> bool {
    let seen = table::participant(slot).note.load(Relaxed);
    seen != 0 && rseq::current_cpu() == Some(seen - 1)
}

fn at_random() -> OnCpu {
    static TURN: AtomicU32 = AtomicU32::new(0);
    // Weyl's sequence; the upper bits are the less regular ones.
    match TURN.fetch_add(0x9e37_79b9, Relaxed) >> 30 {
        0 => OnCpu::No,
        1 => OnCpu::Unknown,
        _ => OnCpu::Yes,
    }
}
