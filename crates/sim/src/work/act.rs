//! What tasks do: computing, acquisitions, time away.

use super::model::{UseKind, WorkUse, Workload};
use super::tokens::{Meeting, Tokens};
use crate::engine::calls::{at, away, chance, in_kernel, now, work};
use crate::engine::task::Activity;
use crate::engine::time::{Ps, ps};
use crate::engine::words::U64;
use crate::engine::world::with;
use crate::locks::SimLock;
use crate::locks::shared::SimRwLock;
use crate::locks::spin::RwSpinLock;

/// The data that sections change: one word a cache line.
pub(super) type Data = &'static U64;

/// A lock of a workload.
#[derive(Clone, Copy)]
pub(super) struct UseSite {
    pub(super) number: usize,
    pub(super) kind: SiteKind,
    pub(super) data: usize,
}

#[derive(Clone, Copy)]
pub(super) enum SiteKind {
    Mutex(SimLock),
    ReadWrite(&'static RwSpinLock),
    Shared(SimRwLock),
}

/// The plan that tasks look at while they run. The world keeps it, so that it outlives them.
pub(crate) struct Plan {
    pub(super) workload: Workload,
    pub(super) sites: Vec<UseSite>,
    pub(super) tokens: Vec<&'static Tokens>,
    pub(super) meetings: Vec<&'static Meeting>,
    pub(super) classes: Vec<ClassPlan>,
}

impl Plan {
    /// Returns one of the locks of a kind, by chance.
    pub(super) fn site(&self, number: usize) -> UseSite {
        let before = self.workload.locks[..number].iter().map(|user| user.many).sum::<usize>();
        self.sites[before + (chance() * self.workload.locks[number].many as f64) as usize]
    }
}

/// Where a class of a workload finds what it uses, in a world.
pub(super) struct ClassPlan {
    /// The place of the lock among the workload's, and how it is used.
    pub(super) uses: Vec<(usize, WorkUse)>,
    pub(super) takes: Vec<(usize, u32)>,
    pub(super) gives: Vec<(usize, u32)>,
    /// Barriers, and how many meet there.
    pub(super) meets: Vec<(usize, u32)>,
}

pub(super) fn vary(mean: f64, variation: f64) -> Ps {
    let pace = with(|w| w.machine.layout.pace);
    ps(mean * 1e3 * pace * (1.0 + variation * (2.0 * chance() - 1.0)))
}

/// Returns a time that is exponentially distributed, with this mean.
fn waiting(mean: f64) -> Ps {
    ps(mean * 1e3 * -(1.0 - chance()).ln())
}

/// Leaves the processor for such a time.
pub(super) fn away_for(mean: f64) {
    if mean > 0.0 {
        away(waiting(mean).max(1));
    }
}

/// The time of computing that is credited at once. Whole jobs would be credited in clumps.
const PIECE: Ps = 250_000_000;

/// Computes, which is `rounds` of the work.
pub(super) fn compute(time: Ps, rounds: f64) {
    let pieces = time.div_ceil(PIECE).max(1);
    for _ in 0..pieces {
        work(time / pieces);
        progress(rounds / pieces as f64);
    }
}

/// Credits a part of a round that is done.
pub(super) fn progress(rounds: f64) {
    with(|w| {
        let now = w.local_now();
        w.tally.progress(now, rounds);
    });
}

pub(super) fn burst(workload: &Workload, user: &WorkUse, site: UseSite) {
    // A burst of a fraction happens that often.
    let whole = user.burst.trunc();
    let many = whole as u64 + u64::from(chance() < user.burst - whole);
    for turn in 0..many {
        if turn > 0 {
            work(vary(user.gap, workload.variation));
        }
        if workload.kernel {
            in_kernel(|| acquire(workload, user, site));
        } else {
            acquire(workload, user, site);
        }
    }
}

fn acquire(workload: &Workload, user: &WorkUse, site: UseSite) {
    let section = |writes: bool| {
        for line in 0..user.lines {
            let data = with(|w| w.data[site.data + line]);
            let value = data.read();
            if writes {
                data.write(value + 1);
            }
        }
        let time = if writes && user.kind != UseKind::Mutex {
            user.write_section.unwrap_or(user.section)
        } else {
            user.section
        };
        work(vary(time, workload.variation));
    };
    match site.kind {
        SiteKind::Mutex(lock) => lock.with(site.number, || section(true)),
        SiteKind::ReadWrite(lock) => {
            let writes = chance() < user.writes;
            let take = || if writes { lock.write_lock() } else { lock.read_lock() };
            let give = || if writes { lock.write_unlock() } else { lock.read_unlock() };
            share(site.number, take, || section(writes), give);
        }
        SiteKind::Shared(lock) => {
            let writes = chance() < user.writes;
            share(site.number, || lock.lock(writes), || section(writes), || lock.unlock(writes));
        }
    }
}

/// Holds a lock that others may have as well.
fn share(number: usize, take: impl FnOnce(), section: impl FnOnce(), give: impl FnOnce()) {
    let asked = now();
    with(|w| w.tally.asked(number, w.current, asked));
    at(Activity::Lock, take);
    let taken = now();
    with(|w| w.tally.entered(number, w.current, taken));
    at(Activity::Section, section);
    let released = now();
    with(|w| w.tally.shared((number, w.current), asked, taken, released));
    at(Activity::Lock, give);
}
