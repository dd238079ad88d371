//! What a thread waits for in a system call that is no futex call, and who could
//! end that.
//!
//! # Role
//! From number and arguments of a call to an object of the kernel: a lock of a
//! file, a semaphore of System V, a pipe, the end of a child. The kernel tells
//! more of such objects than of futex words: `/proc/locks` has holder and waiter,
//! a set of semaphores remembers who changed it last, and descriptors show which
//! processes have the other end of a pipe.
//!
//! # What is not known
//! A process of another user does not show its descriptors. Who is not seen is
//! not named, and [`WaitEnds::Inside`] is said only where all processes were seen.

mod descriptors;
mod file_locks;
mod locks;
mod model;
mod surroundings;
mod systemv;

use super::task::SleepingCall;
use crate::memory::ReadableMemory;
use descriptors::Descriptor;
use file_locks::FileLockKind;
pub use model::{Asleep, OtherProcess, WaitEnds};
pub use surroundings::SleepSurroundings;
pub(crate) use surroundings::processes;

/// Tells whether it is a call that waits for what others hold; see [`WaitEnds::Holders`].
#[must_use]
pub fn is_for_lock(call: &SleepingCall) -> bool {
    match call.number {
        libc::SYS_flock | libc::SYS_semop | libc::SYS_semtimedop => true,
        libc::SYS_fcntl => {
            let waits = [libc::F_SETLKW, libc::F_OFD_SETLKW];
            i32::try_from(call.arguments[1]).is_ok_and(|command| waits.contains(&command))
        }
        _ => false,
    }
}

/// Returns what a thread of the process waits for in this call; `memory` is the process's, and
/// `around` is for one look at any number of threads.
#[must_use]
pub fn asleep(
    pid: u32,
    call: &SleepingCall,
    memory: &dyn ReadableMemory,
    around: &SleepSurroundings,
) -> Asleep {
    let [first, second, third, fourth, fifth, _] = call.arguments;
    let descriptor = || Descriptor::of(pid, first);
    // A null pointer is no limit.
    let limited = |pointer: u64| pointer != 0;
    match call.number {
        libc::SYS_flock => locks::wait(pid, call, FileLockKind::Flock, memory, around),
        libc::SYS_fcntl => match i32::try_from(second) {
            Ok(libc::F_SETLKW) => locks::wait(pid, call, FileLockKind::Record, memory, around),
            Ok(libc::F_OFD_SETLKW) => {
                locks::wait(pid, call, FileLockKind::Description, memory, around)
            }
            _ => Asleep::plain(WaitEnds::Outside),
        },
        libc::SYS_semop => systemv::semaphore(pid, call, memory),
        libc::SYS_semtimedop => systemv::semaphore(pid, call, memory).limited(limited(fourth)),
        libc::SYS_msgrcv | libc::SYS_msgsnd => {
            systemv::queue(pid, first, call.number == libc::SYS_msgrcv)
        }
        libc::SYS_mq_timedreceive | libc::SYS_mq_timedsend => {
            descriptors::queue(&descriptor(), limited(fifth))
        }
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 => {
            descriptors::wait(&descriptor(), descriptors::PipeUse::Read, around)
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 => {
            descriptors::wait(&descriptor(), descriptors::PipeUse::Write, around)
        }
        // Which of its two ends a splice waits for cannot be told.
        libc::SYS_splice
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_ioctl
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_getdents64 => Asleep::on(descriptor().text(), WaitEnds::Outside),
        libc::SYS_openat => descriptors::open(second, memory),
        libc::SYS_ppoll => descriptors::poll(pid, (first, second), limited(third), memory),
        libc::SYS_pselect6 => descriptors::select(limited(fifth)),
        libc::SYS_epoll_pwait => descriptors::epoll(pid, first, fourth.cast_signed() as i32 >= 0),
        libc::SYS_epoll_pwait2 => descriptors::epoll(pid, first, limited(fourth)),
        libc::SYS_wait4 => child(first.cast_signed() as i32),
        libc::SYS_waitid => child(match i32::try_from(first) {
            Ok(id) if id == libc::P_PID as i32 => second.cast_signed() as i32,
            _ => -1,
        }),
        libc::SYS_rt_sigsuspend => Asleep::plain(WaitEnds::Signal),
        libc::SYS_rt_sigtimedwait => Asleep::plain(WaitEnds::Signal).limited(limited(third)),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Asleep::plain(WaitEnds::Time),
        number => legacy(pid, number, call, memory),
    }
}

/// Explains calls that newer processors do not have, and those of which nothing is known.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn legacy(pid: u32, number: i64, call: &SleepingCall, memory: &dyn ReadableMemory) -> Asleep {
    let [first, second, third, fourth, fifth, _] = call.arguments;
    match number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => Asleep::plain(WaitEnds::Signal),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => {
            descriptors::poll(pid, (first, second), third.cast_signed() as i32 >= 0, memory)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => descriptors::select(fifth != 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => descriptors::epoll(pid, first, fourth.cast_signed() as i32 >= 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => descriptors::open(first, memory),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => {
            Asleep::on("its new child to end or to call exec".into(), WaitEnds::Child)
        }
        // Only a call that makes a child with the parent's memory sleeps for it.
        libc::SYS_clone | libc::SYS_clone3 => {
            Asleep::on("its new child to end or to call exec".into(), WaitEnds::Child)
        }
        _ => Asleep::plain(WaitEnds::Outside),
    }
}

fn child(pid: i32) -> Asleep {
    let what = match u32::try_from(pid).ok().filter(|&pid| pid > 0).map(OtherProcess::new) {
        Some(OtherProcess { pid, name: Some(name), .. }) => {
            format!("the end of its child {pid} \"{name}\"")
        }
        Some(OtherProcess { pid, .. }) => format!("the end of its child {pid}"),
        None => "the end of a child".into(),
    };
    Asleep::on(what, WaitEnds::Child)
}
