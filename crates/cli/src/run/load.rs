//! How busy others kept the processors while a program ran.
//!
//! # Role
//! A thread that has lost its processor to another program seems to compute, or to hold its lock,
//! all the while. Nothing in the program can tell; the kernel's sums for each processor can:
//! what they have more than the program and this command is what others had. A hypervisor's
//! taking counts as theirs.
//!
//! # Source
//! `/proc/stat`, whose numbers are ticks of a hundredth of a second: short runs are not judged.

use std::time::Duration;

/// A run that is shorter cannot be told from the coarse steps of the sums.
const SHORTEST: Duration = Duration::from_millis(500);

/// The processors' time when a run began.
pub(super) struct MachineLoad {
    /// The processors that the program may run on.
    mask: Vec<bool>,
    /// Their time used so far, in nanoseconds, and that of the command and its children.
    busy: Option<u64>,
    own: u64,
}

impl MachineLoad {
    /// Reads the sums at the beginning of a run.
    pub(super) fn begin() -> Self {
        let mask = allowed();
        let busy = busy_now(&mask);
        MachineLoad { mask, busy, own: own_time() }
    }

    /// Returns how much processor time others had since, in nanoseconds; `None` if that cannot be
    /// said, as of a run of less than half a second.
    pub(super) fn others(self, took: Duration) -> Option<u64> {
        if took < SHORTEST {
            return None;
        }
        let busy = busy_now(&self.mask)?.checked_sub(self.busy?)?;
        Some(busy.saturating_sub(own_time().saturating_sub(self.own)))
    }
}

/// Returns which processors the command may run on, and so what it starts.
fn allowed() -> Vec<bool> {
    // SAFETY: the set has numbers only, of which all zeroes are a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one set of this size, which lives in this frame.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0;
    let many = libc::CPU_SETSIZE as usize;
    // SAFETY: each number is below the size of the set, which lives in this frame.
    (0..many).map(|cpu| !failed && unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Returns the time that these processors have been used so far, in nanoseconds.
fn busy_now(mask: &[bool]) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let sum = busy_ticks(&text, mask)?;
    Some(sum * (1_000_000_000 / ticks.max(1)))
}

/// Adds the ticks of use of the processors in `mask` up; `None` if the file lists none of them.
fn busy_ticks(text: &str, mask: &[bool]) -> Option<u64> {
    let mut sum = None;
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next().and_then(|name| name.strip_prefix("cpu"));
        let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else { continue };
        if !mask.get(number).copied().unwrap_or(false) {
            continue;
        }
        let times: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        // User, nice, system, idle, waiting for a disk, two kinds of interrupts, taken by a
        // hypervisor; those of guests are in the first two.
        let used = times.iter().take(8).enumerate().filter(|(place, _)| !matches!(place, 3 | 4));
        *sum.get_or_insert(0) += used.map(|(_, time)| time).sum::<u64>();
    }
    sum
}

/// Returns the processor time of the command and of the children that have been waited for.
fn own_time() -> u64 {
    super::outcome::children_cpu() + super::outcome::cpu_of(libc::RUSAGE_SELF)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 100 1000 0 0 0 0 0 0\n\
        cpu0 10 1 20 500 40 2 3 4 7 0\n\
        cpu1 50 0 50 400 30 0 0 0 0 0\n\
        intr 123 0\n";

    #[test]
    fn idleness_and_guests_are_left_out_and_other_processors_too() {
        assert_eq!(busy_ticks(STAT, &[true, true]), Some(140));
        assert_eq!(busy_ticks(STAT, &[true]), Some(40));
        assert_eq!(busy_ticks(STAT, &[false, true]), Some(100));
        assert_eq!(busy_ticks(STAT, &[false, false, true]), None);
        assert_eq!(busy_ticks("", &[true]), None);
    }

    #[test]
    fn a_short_run_is_not_judged() {
        assert_eq!(MachineLoad::begin().others(Duration::from_millis(499)), None);
    }
}
