//! Whether a thread is on a processor just now.
//!
//! # Role
//! Of a thread that does not sleep the kernel says *running*, whether it has a processor or waits
//! for one. Two counts tell: how often it got a processor (`schedstat`) and how often it was taken
//! off (`sched`, else `status`). The first is one more exactly while it has one.
//!
//! # Whoever looks is in the way
//! On a busy machine the command has taken the processor from somebody. A thread that ran on that
//! processor until the command came would run if nobody looked: it is [`Processor::Lent`].

use super::file;
use super::status::StatusFile;

/// How long the switch itself takes at most, in nanoseconds: so much earlier a thread may have left
/// the processor that the look then got.
const SWITCH: u64 = 20_000;

/// What a thread that does not sleep has of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// The thread has one, and runs.
    Has,
    /// It waits for one.
    Lacks,
    /// It has lent its processor to whoever looks.
    Lent,
    /// The kernel does not tell.
    Unknown,
}

/// Where and since when the calling thread looks.
#[derive(Clone, Copy, Debug)]
pub struct Looker {
    processor: i64,
    /// The earliest time, in nanoseconds of the scheduler's clock, at which a thread can have left
    /// that processor to the caller; 0 where that is not known.
    came: u64,
}

impl Looker {
    /// Notes where the calling thread is, which had used so many nanoseconds of processor time
    /// (`CLOCK_THREAD_CPUTIME_ID`) when it went to sleep, and woke in order to look.
    ///
    /// What it has used since then is the time for which it has had the processor. A time of the
    /// wake-up that it took itself would be late by all that it did before.
    #[must_use]
    pub fn here(used_before: u64) -> Looker {
        // SAFETY: both calls take and return numbers only, and touch no memory of ours.
        let (processor, tid) = unsafe { (libc::sched_getcpu(), libc::gettid()) };
        let came = own_times(&format!("/proc/self/task/{tid}")).map_or(0, |(counted, used)| {
            counted.saturating_sub(used.saturating_sub(used_before)).saturating_sub(SWITCH)
        });
        Looker { processor: i64::from(processor), came }
    }
}

/// Tells whether a thread that does not sleep is on a processor.
#[must_use]
pub fn of(pid: u32, tid: u32, looker: &Looker) -> Processor {
    let folder = format!("/proc/{pid}/task/{tid}");
    let read = || Some((arrivals(&folder)?, departures(&folder)?, arrivals(&folder)?));
    match read() {
        None => Processor::Unknown,
        Some((got, (left, _), again)) if got == again && got > left => Processor::Has,
        Some((got, (_, at), again)) if got == again && is_lent(&folder, at, looker) => {
            Processor::Lent
        }
        // Also of one that has just got a processor: it had none before.
        Some(_) => Processor::Lacks,
    }
}

/// Returns how often a thread got a processor.
fn arrivals(folder: &str) -> Option<u64> {
    let text = file::read(&format!("{folder}/schedstat")).ok()?;
    String::from_utf8_lossy(&text).split_whitespace().nth(2)?.parse().ok()
}

/// Returns how often a thread left a processor, and when its time was last counted, in nanoseconds
/// of the scheduler's clock; 0 where that is not known.
fn departures(folder: &str) -> Option<(u64, u64)> {
    let Ok(text) = file::read(&format!("{folder}/sched")) else {
        let (own, forced) = StatusFile::read(&format!("{folder}/status")).ok()?.switches()?;
        return Some((own.saturating_add(forced), 0));
    };
    let text = String::from_utf8_lossy(&text);
    let switches = field(&text, "nr_switches")?.parse().ok()?;
    Some((switches, field(&text, "se.exec_start").and_then(nanoseconds).unwrap_or(0)))
}

/// Returns when the time of a thread was last counted, in nanoseconds of the scheduler's clock, and how
/// much processor time it had used by then; `None` where the kernel does not tell.
fn own_times(folder: &str) -> Option<(u64, u64)> {
    let text = file::read(&format!("{folder}/sched")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let time = |name| field(&text, name).and_then(nanoseconds);
    Some((time("se.exec_start")?, time("se.sum_exec_runtime")?))
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find(|line| line.split([' ', ':']).next() == Some(name))?;
    Some(line.split_once(':')?.1.trim())
}

/// Returns the nanoseconds of milliseconds with six decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let part: u64 = part.parse().ok().filter(|_| part.len() == 6)?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

/// Tells whether a thread that left its processor at `left` left it to the one that looks.
fn is_lent(folder: &str, left: u64, looker: &Looker) -> bool {
    let is_recent = left != 0 && looker.came != 0 && left >= looker.came;
    is_recent && last_processor(folder) == Some(looker.processor)
}

/// Returns the processor that a thread was on last.
fn last_processor(folder: &str) -> Option<i64> {
    let text = file::read(&format!("{folder}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name may hold any character; behind it, the first field is the third.
    text.rsplit_once(')')?.1.split_whitespace().nth(39 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "cat (7, #threads: 1)\n----\nse.exec_start   :    77691609.187661\n\
                    nr_switches    :     12\nnr_voluntary_switches : 3\n";
        assert_eq!(field(text, "nr_switches"), Some("12"));
        assert_eq!(field(text, "se.exec_start").and_then(nanoseconds), Some(77_691_609_187_661));
        assert_eq!(field(text, "se.vruntime"), None);
        assert_eq!(nanoseconds("12"), None);
    }

    /// Keeps this thread on one processor; the test is skipped where that is not possible.
    fn stay(on: usize) -> bool {
        // SAFETY: the set is plain numbers of this frame; the call changes this thread alone.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(on, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set) == 0
        }
    }

    #[test]
    fn of_two_threads_that_want_one_processor_at_most_one_has_it() {
        let stop = Arc::new(AtomicBool::new(false));
        let tids = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let (stop, tids) = (stop.clone(), tids.clone());
                thread::spawn(move || {
                    let stays = stay(0);
                    // SAFETY: the call returns a number only.
                    tids[number].store(unsafe { libc::gettid() } as u32, Relaxed);
                    while stays && !stop.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                    stays
                })
            })
            .collect();
        let (pid, looker) = (std::process::id(), Looker::here(0));
        let (mut has, mut lacks, mut unknown) = (0, 0, 0);
        let end = Instant::now() + Duration::from_secs(20);
        while (has == 0 || lacks == 0) && unknown == 0 && Instant::now() < end {
            let ids = [0, 1].map(|number: usize| tids[number].load(Relaxed));
            if ids.contains(&0) {
                thread::yield_now();
                continue;
            }
            for tid in ids {
                match of(pid, tid, &looker) {
                    Processor::Has => has += 1,
                    Processor::Lacks | Processor::Lent => lacks += 1,
                    Processor::Unknown => unknown += 1,
                }
            }
        }
        stop.store(true, Relaxed);
        let stayed = threads.into_iter().all(|thread| thread.join().expect("it spins"));
        assert!(!stayed || unknown != 0 || has != 0 && lacks != 0, "{has} {lacks} {unknown}");
    }

    /// Returns the processor time that this thread has used, in nanoseconds.
    fn used() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes into `time`, which is borrowed exclusively.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
    }

    #[test]
    fn who_lost_its_processor_to_the_looker_has_lent_it_though_that_did_something_else_first() {
        let (stop, tid) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let spinner = {
            let (stop, tid) = (stop.clone(), tid.clone());
            thread::spawn(move || {
                let stays = stay(0);
                // SAFETY: the call returns a number only.
                tid.store(unsafe { libc::gettid() } as u32, Relaxed);
                while stays && !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let knows = own_times("/proc/thread-self").is_some();
        let end = Instant::now() + Duration::from_secs(60);
        let mut met = Vec::new();
        while knows && stay(0) && met.last() != Some(&Processor::Lent) {
            assert!(Instant::now() < end, "never lent in {} looks", met.len());
            let before = used();
            thread::sleep(Duration::from_millis(1));
            while used() - before < 10 * SWITCH {
                std::hint::spin_loop();
            }
            let looker = Looker::here(before);
            if tid.load(Relaxed) != 0 {
                met.push(of(std::process::id(), tid.load(Relaxed), &looker));
            }
        }
        stop.store(true, Relaxed);
        spinner.join().expect("it spins");
        if met.is_empty() {
            eprintln!(
                "skipped: the kernel does not tell, or the thread may not choose a processor"
            );
        }
    }
}
