//! What the steps that locks are made of take on this machine.
//!
//! # Role
//! Measures, in some seconds, the numbers of a simulated machine: what a line costs that
//! another processor has, what a system call, a wake-up, a switch take, how long a slice
//! is. With them the simulator can be compared with the machine it runs on, whichever
//! that is.

mod kernel;
mod layout;
mod lines;
mod pinned;

pub use layout::ProcessorLayout;
pub(crate) use layout::allowed;
pub(crate) use pinned::pin;

use crate::{Error, Session};
use lines::median;

/// Times in nanoseconds, as the simulator's machine files have them.
#[derive(Clone, Debug)]
pub struct Costs {
    /// How its processors lie to each other.
    pub layout: ProcessorLayout,
    /// A load or a store of a line at hand.
    pub hit: f64,
    /// A locked instruction there.
    pub exchange: f64,
    /// One turn of a spin loop.
    pub pause: f64,
    /// A line that nobody has.
    pub memory: f64,
    /// A transfer of a line between two threads of a core, if there are such.
    pub sibling: Option<f64>,
    /// A transfer of a line between cores, by distance; a distance that does not exist has no
    /// entry.
    pub transfer: Vec<f64>,
    /// How long an owner keeps a line that another one wants to write.
    pub hold_write: f64,
    /// The same time for a processor that wants to read.
    pub hold_read: f64,
    /// How fast a thread is while the other one of its core computes.
    pub speed: f64,
    /// A system call that does nothing.
    pub call: f64,
    /// What a wake-up of nobody takes beyond that.
    pub futex: f64,
    /// The time that one reading of the clock takes.
    pub clock: f64,
    /// Restarting the releases of other threads.
    pub restart: f64,
    /// Waking a thread, beyond the call.
    pub wake: f64,
    /// What the waker pays beyond that if its processor was idle.
    pub kick: f64,
    /// The time from the call until that processor notices, if it has been idle for a moment only.
    pub signal: f64,
    /// The time that a change of threads takes.
    pub switch: f64,
    /// Pairs of an idleness, and of how much longer a processor takes to notice after it.
    pub idle: Vec<(f64, f64)>,
    /// How long a thread runs before another one that computes has its turn.
    pub slice: f64,
    /// How long a thread that slept waits for a processor on which another one computes.
    pub intrusion: f64,
    /// The share of wake-ups for which a waker finds the processor that is idle, if the thread ran on its own.
    pub finds: Option<CountedShare>,
    /// The share of wake-ups that do not take the processor from a thread whose turn has just begun.
    pub keeps: Option<CountedShare>,
}

/// A share of wake-ups that was counted several times, since it depends on what else the machine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedShare {
    /// The median of the counts; of an even number, the greater of the two in the middle.
    pub median: f64,
    /// The least of them.
    pub least: f64,
    /// The greatest of them.
    pub most: f64,
    /// How many there are.
    pub counts: usize,
}

impl CountedShare {
    /// Counts several times; `None` if no count had anything to count.
    fn of(mut count: impl FnMut() -> Result<Option<f64>, Error>) -> Result<Option<Self>, Error> {
        const COUNTS: usize = 5;
        let counts = (0..COUNTS).map(|_| count()).collect::<Result<Vec<_>, _>>()?;
        let mut shares: Vec<f64> = counts.into_iter().flatten().collect();
        let median = median(&mut shares);
        let ends = shares.first().copied().zip(shares.last().copied());
        Ok(ends.map(|(least, most)| CountedShare { median, least, most, counts: shares.len() }))
    }

    /// Tells whether the counts are so far apart, or so few, that one number says little.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.most - self.least > 0.2 || self.counts < 3
    }
}

/// Times of idleness after which a wake-up is measured; the first is the plain one.
const IDLE: [(u64, u32); 4] = [(10_000, 200), (50_000, 200), (500_000, 60), (5_000_000, 20)];

/// What is measured, for the progress.
const STEPS: u64 = 14;

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Process`] if a thread cannot be kept on its processor, [`Error::Interrupted`].
pub fn measure(session: &mut Session<'_>) -> Result<Costs, Error> {
    let layout = ProcessorLayout::here();
    let cpu = layout.first();
    let mut done = 0;
    let mut step = |session: &mut Session<'_>, what: &str| {
        session.tell(done, STEPS, what);
        done += 1;
        if session.stopped() { Err(Error::Interrupted) } else { Ok(()) }
    };
    step(session, "lines at hand")?;
    let (hit, exchange, pause) = (lines::hit(cpu)?, lines::exchange(cpu)?, lines::pause(cpu)?);
    step(session, "memory")?;
    let memory = lines::memory(cpu)?;
    step(session, "system calls")?;
    let call = kernel::call(cpu)?;
    let (futex, clock) = (kernel::futex(cpu, call)?, kernel::clock(cpu)?);
    step(session, "switches")?;
    let relay = kernel::relay(cpu)?;
    step(session, "slices")?;
    let slice = kernel::slice(cpu)?;
    step(session, "wake-ups beside a new turn")?;
    let keeps = CountedShare::of(|| kernel::keeps(cpu))?;
    let mut costs = Costs {
        hit,
        exchange,
        pause,
        memory,
        sibling: None,
        transfer: Vec::new(),
        hold_write: exchange,
        hold_read: exchange,
        speed: 1.0,
        call,
        futex,
        clock,
        restart: 0.0,
        wake: 0.0,
        kick: 0.0,
        signal: 0.0,
        switch: 0.0,
        idle: Vec::new(),
        slice,
        intrusion: 0.0,
        finds: None,
        keeps,
        layout,
    };
    step(session, "siblings")?;
    if let Some(pair) = costs.layout.siblings() {
        costs.sibling = Some(lines::transfer(pair)?);
        costs.speed = lines::sibling_speed(pair)?;
    }
    step(session, "transfers")?;
    let pairs = costs.layout.pairs();
    for pairs in pairs.iter().filter(|pairs| !pairs.is_empty()) {
        let mut transfers =
            pairs.iter().map(|&pair| lines::transfer(pair)).collect::<Result<Vec<_>, _>>()?;
        costs.transfer.push(median(&mut transfers));
    }
    let Some(&pair) = pairs.iter().flatten().next() else {
        // One processor: nobody to wake, or to take a line from.
        costs.switch = (relay - 2.0 * (call + futex)).max(0.0);
        return Ok(costs);
    };
    step(session, "lines that two want")?;
    costs.hold_write = lines::hold_write(pair, costs.transfer[0])?;
    costs.hold_read = lines::hold_read(pair, costs.transfer[0])?;
    step(session, "restarts")?;
    costs.restart = kernel::restart(pair)?;
    step(session, "wake-ups")?;
    let mut rousings = Vec::new();
    for (idle, turns) in IDLE {
        rousings.push(kernel::rouse(pair, idle, turns)?);
    }
    step(session, "wake-ups of a busy processor")?;
    costs.intrusion = kernel::intrude(pair)?;
    step(session, "wake-ups beside an idle processor")?;
    costs.finds = CountedShare::of(|| kernel::finds(pair).map(Some))?;
    costs.account(relay, &rousings);
    session.tell(STEPS, STEPS, "done");
    Ok(costs)
}

impl Costs {
    /// Divides what wake-ups took into their parts.
    fn account(&mut self, relay: f64, rousings: &[kernel::Rousing]) {
        let call = self.call + self.futex;
        let first = &rousings[0];
        // Half a round of a relay is a wake-up, a sleep and a change of threads. Which of
        // these takes how much cannot be told apart from outside.
        let rest = (relay - 2.0 * call).max(0.0);
        (self.wake, self.switch) = (rest / 2.0, rest / 2.0);
        // From here on the waker and the other processor are busy at the same time.
        self.kick = (first.call - call - self.wake).max(0.0);
        self.signal = (first.run - call - self.wake - self.switch).max(0.0);
        for (rousing, (idle, _)) in rousings.iter().zip(IDLE).skip(1) {
            self.idle.push((idle as f64, (rousing.run - first.run).max(0.0)));
        }
    }
}

#[cfg(test)]
mod tests;
