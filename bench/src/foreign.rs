//! What other processes used of the machine while something was measured.

use crate::clock::process_cpu;
use std::fs;
use std::time::{Duration, Instant};

/// Percentage of all processors above which a round is thrown away.
pub(crate) const TOLERATED: f64 = 6.0;

/// The kernel counts in hundredths of a second: of less than this nothing can
/// be said.
const SHORTEST: Duration = Duration::from_millis(200);

/// The beginning of an observation.
pub(crate) struct Observation {
    start: Instant,
    machine: Option<MachineUsage>,
    own: Duration,
}

impl Observation {
    pub(crate) fn begin() -> Self {
        Self { start: Instant::now(), machine: MachineUsage::now(), own: process_cpu() }
    }

    /// Returns the per cent of all processors that others used since the beginning, time
    /// stolen by the hypervisor included; `None` if the system does not tell
    /// or too little time has passed.
    pub(crate) fn foreign_percent(&self) -> Option<f64> {
        self.foreign_percent_beside(Duration::ZERO)
    }

    /// Returns the same, when children of this process have used so much.
    pub(crate) fn foreign_percent_beside(&self, children: Duration) -> Option<f64> {
        if self.start.elapsed() < SHORTEST {
            return None;
        }
        let (before, after) = (self.machine?, MachineUsage::now()?);
        let own = (process_cpu() - self.own + children).as_secs_f64() * ticks_per_second();
        let (busy, all) = (after.busy - before.busy, after.all - before.all);
        (all > 0).then(|| (100.0 * (busy as f64 - own) / all as f64).max(0.0))
    }
}

/// Processor time of the whole machine, in the kernel's ticks.
#[derive(Clone, Copy, PartialEq, Debug)]
struct MachineUsage {
    busy: u64,
    all: u64,
}

impl MachineUsage {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the line `cpu user nice system idle iowait irq softirq steal …`; the guests' times
    /// that follow are contained in the first two.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_ascii_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let [user, nice, system, idle, iowait, irq, softirq, steal] = fields[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq + steal;
        Some(Self { busy, all: busy + idle + iowait })
    }
}

fn ticks_per_second() -> f64 {
    // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_format() {
        let text = "cpu  10 1 20 300 4 5 6 7 8 9\ncpu0 1 2 3\n";
        assert_eq!(MachineUsage::parse(text), Some(MachineUsage { busy: 49, all: 353 }));
        assert_eq!(MachineUsage::parse("cpu  10 1 20\n"), None);
        assert_eq!(MachineUsage::parse("intr 1\n"), None);
        assert_eq!(MachineUsage::parse(""), None);
    }

    #[test]
    fn own_work_is_not_foreign_and_short_spans_are_not_judged() {
        let observation = Observation::begin();
        assert_eq!(observation.foreign_percent(), None);
        while observation.start.elapsed() < SHORTEST {
            std::hint::spin_loop();
        }
        let foreign = observation.foreign_percent().expect("long enough");
        assert!((0.0..=100.0).contains(&foreign), "{foreign}");
    }
}
