//! A process is killed at each entry to and exit from each of the system calls of lock
//! and unlock, while another one sleeps for the same lock, with and without a third one
//! that takes it in between. The sleeper gets the lock, and not because it looks once a
//! second anyway.

mod common;
mod segment;

use common::{Watchdog, until};
use core::sync::atomic::Ordering::SeqCst;
use lockstead_core::Atomic32;
use lockstead_core::robust::Got;
use lockstead_core::robust::word::OWNER;
use segment::{Child, Segment};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

/// Sleepers look by themselves after a second; who returns by then was woken.
const WOKEN: Duration = Duration::from_millis(900);

/// The time without a stop after which the victim is taken to sleep.
const QUIET: Duration = Duration::from_millis(8);

/// What the victim ends with where it may not be traced.
const REFUSED: i32 = 77;

/// The plan of one run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The sleeper sleeps before the victim comes.
    sleeper_first: bool,
    /// The tracer takes the lock, if it is free, before it kills; releases it after.
    barges: bool,
    /// The tracer, who has the lock at first, releases it at this stop of the victim;
    /// at the latest when the victim sleeps.
    release: u32,
    /// The stop at which the run kills.
    kill: u32,
}

#[derive(Debug)]
enum Run {
    /// The victim may not be traced.
    Refused,
    /// It has ended before it came to the stop.
    Ended,
    /// It was killed at this system call; so long has the sleeper slept in all, and since
    /// the lock could be had.
    Killed { call: u64, slept: Duration, since: Duration },
}

/// Takes the lock and releases it, as the victim.
fn victim(segment: &Segment) {
    let party = segment.party();
    // SAFETY: the calls take no pointers; the process then stops, for the tracer.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            libc::_exit(REFUSED);
        }
        libc::raise(libc::SIGSTOP);
    }
    let lock = segment.lock(0);
    assert!(lock.lock(&party, &segment::within(LONG)).is_ok());
    lock.mark_consistent(&party);
    lock.unlock(&party);
    // SAFETY: ends the process, by a call that the tracer knows.
    unsafe { libc::_exit(0) };
}

/// Starts the sleeper, which tells when it has the lock.
fn sleeper(segment: &Segment) -> Child {
    let begun = segment.word(1);
    begun.store(0, SeqCst);
    let child = Child::new(|| {
        let party = segment.party();
        begun.store(u64::from(party.me.slot()), SeqCst);
        let got = segment.lock(0).lock(&party, &segment::within(LONG));
        assert!(matches!(got, Ok(Got::Clean | Got::OwnerDied)), "{got:?}");
        segment.lock(0).mark_consistent(&party);
        segment.lock(0).unlock(&party);
    });
    until("the sleeper is about to sleep", || {
        let slot = begun.load(SeqCst) as u32;
        slot != 0 && segment.record(slot).waits_for.load(core::sync::atomic::Ordering::Relaxed) != 0
    });
    common::until_thread_sleeps(child.0);
    child
}

/// Waits for the victim's next stop or end. Returns `None` if it sleeps.
fn next(victim: &Child, patience: Duration) -> Option<i32> {
    let end = Instant::now() + patience;
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes `status`, which lives until the call returns.
        let found = unsafe { libc::waitpid(victim.0, &mut status, libc::WNOHANG) };
        if found == victim.0 {
            return Some(status);
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn go_on(victim: &Child) {
    // SAFETY: the victim is our own child, which has stopped; the request carries numbers only.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, victim.0, 0, 0) };
}

/// Returns the system call at which the victim has stopped.
fn call(victim: &Child) -> u64 {
    // SAFETY: the kernel fills in the registers, which are plain bits and valid as zeroes.
    unsafe {
        let mut registers: libc::user_regs_struct = core::mem::zeroed();
        let mut place =
            libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size_of_val(&registers) };
        libc::ptrace(libc::PTRACE_GETREGSET, victim.0, libc::NT_PRSTATUS, &raw mut place);
        #[cfg(target_arch = "x86_64")]
        return registers.orig_rax;
        #[cfg(target_arch = "aarch64")]
        return registers.regs[8];
    }
}

fn run(segment: &Segment, plan: Plan) -> Run {
    let party = segment.party();
    let lock = segment.lock(0);
    assert!(lock.lock(&party, &segment::within(LONG)).is_ok());
    lock.mark_consistent(&party);
    let mut holds = true;
    let mut asleep = plan.sleeper_first.then(|| (sleeper(segment), Instant::now()));
    let victim = Child::new(|| victim(segment));
    let status = next(&victim, LONG).expect("it stops");
    if libc::WIFEXITED(status) {
        assert_eq!(libc::WEXITSTATUS(status), REFUSED);
        assert!(lock.unlock(&party));
        if let Some((sleeper, _)) = asleep {
            sleeper.wait();
        }
        return Run::Refused;
    }
    // SAFETY: the victim is our own child, which has stopped; the request carries numbers only.
    unsafe {
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
        libc::ptrace(libc::PTRACE_SETOPTIONS, victim.0, 0, options);
    }
    go_on(&victim);
    let mut stop = 0;
    let mut killed = None;
    loop {
        match next(&victim, QUIET) {
            None if asleep.is_none() => asleep = Some((sleeper(segment), Instant::now())),
            None if holds => {
                assert!(lock.unlock(&party));
                holds = false;
            }
            None => {}
            Some(status) if !libc::WIFSTOPPED(status) => break,
            Some(_) => {
                let at = call(&victim);
                if stop == plan.release && holds {
                    assert!(lock.unlock(&party));
                    holds = false;
                }
                if stop == plan.kill {
                    if asleep.is_none() && lock.peek() & OWNER != 0 {
                        asleep = Some((sleeper(segment), Instant::now()));
                    }
                    holds |= plan.barges && lock.take(party.me);
                    killed = Some(at);
                    victim.kill();
                    next(&victim, LONG).expect("it ends");
                    break;
                }
                stop += 1;
                go_on(&victim);
            }
        }
    }
    if holds {
        assert!(lock.unlock(&party));
    }
    let free = Instant::now();
    // Where the lock was free when the victim was killed, nobody slept.
    let mut slept = Duration::ZERO;
    if let Some((sleeper, since)) = asleep {
        assert_eq!(sleeper.wait(), 0, "the sleeper gets the lock: {plan:?}");
        slept = since.elapsed();
    }
    match killed {
        None => Run::Ended,
        Some(call) => Run::Killed { call, slept, since: free.elapsed() },
    }
}

#[test]
fn a_sleeper_survives_a_kill_at_any_system_call_of_lock_and_unlock() {
    let _watchdog = Watchdog::new(280);
    let segment = Segment::new();
    let mut calls = std::collections::BTreeMap::new();
    let mut longest = Duration::ZERO;
    for (sleeper_first, barges) in [(true, true), (false, true), (true, false), (false, false)] {
        for release in [0, 1, 2, 3, 99] {
            for kill in 0.. {
                let plan = Plan { sleeper_first, barges, release, kill };
                // Twice more if it took long: the machine may be busy.
                let mut runs = (0..3).map(|_| run(&segment, plan));
                let in_time =
                    |run: &Run| !matches!(run, Run::Killed { slept, .. } if *slept > WOKEN);
                let Some(run) = runs.find(in_time) else {
                    panic!("not woken, three times: {plan:?}");
                };
                match run {
                    Run::Refused => {
                        eprintln!("skipped: processes may not be traced here");
                        return;
                    }
                    Run::Ended => break,
                    Run::Killed { call, since, .. } => {
                        *calls.entry(call).or_insert(0) += 1;
                        longest = longest.max(since);
                    }
                }
            }
        }
    }
    println!("killed at system calls (number: times) {calls:?}; longest wait {longest:?}");
    for needed in [libc::SYS_futex, libc::SYS_futex_waitv] {
        assert!(calls.contains_key(&(needed as u64)), "{calls:?}");
    }
}
