//! Asking whether threads run; and a process in which less is allowed.

use super::{my_slot, until};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use lockstead_core::{OnCpu, Platform, Slot};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Asks for `milliseconds`, as a spinner would; counts yes, no and unknown.
pub(crate) fn ask(slot: u32, milliseconds: u64) -> [u32; 3] {
    let slot = Slot::new(slot).expect("a slot");
    // Spinners have joined.
    my_slot();
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut answers = [0; 3];
    while Instant::now() < end {
        let answer = Linux::on_cpu(slot);
        answers[match answer {
            OnCpu::Yes => 0,
            OnCpu::No => 1,
            OnCpu::Unknown => 2,
        }] += 1;
        (0..16).for_each(|_| Linux::relax());
    }
    answers
}

/// Waits until the thread in `slot`, which has joined, sleeps.
pub(crate) fn until_asleep(slot: u32) {
    let slot = Slot::new(slot).expect("a slot");
    let tid = Linux::participant(slot).tid().expect("it lives");
    until_thread_sleeps(tid as libc::pid_t);
}

/// Waits until a thread of any process sleeps; a process means its first thread.
pub(crate) fn until_thread_sleeps(tid: libc::pid_t) {
    until("the thread sleeps", || {
        let text = std::fs::read_to_string(format!("/proc/{tid}/stat"));
        // The state follows the name in parentheses.
        text.is_ok_and(|text| text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
    });
}

/// Runs `check` beside a thread that runs `body` until the check is over.
pub(crate) fn beside(body: impl Fn(&AtomicBool) + Sync, check: impl FnOnce(u32)) {
    let (slot, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            slot.store(my_slot(), Relaxed);
            body(&stop);
        });
        until("the other thread has joined", || slot.load(Relaxed) != 0);
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(slot.load(Relaxed))));
        stop.store(true, Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

pub(crate) fn pin(cpu: usize) -> bool {
    // SAFETY: a processor set is plain bits, for which zeros are a value; the kernel reads it.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

pub(crate) fn spin(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        core::hint::spin_loop();
    }
}

pub(crate) fn sleep(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Gives up all privileges, for good.
pub(crate) fn become_nobody() -> bool {
    /// `nobody` on every system.
    const NOBODY: libc::uid_t = 65_534;
    // SAFETY: the process gives its own privileges up; takes numbers.
    unsafe {
        libc::setgroups(0, core::ptr::null()) == 0
            && libc::setgid(NOBODY) == 0
            && libc::setuid(NOBODY) == 0
            && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    }
}
