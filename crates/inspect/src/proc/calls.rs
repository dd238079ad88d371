//! Names of the system calls in which threads commonly sleep.

use super::futex::FUTEX;

/// Returns the name of a call; `None` for one that is not in the list.
#[must_use]
pub fn name(number: i64) -> Option<&'static str> {
    if number == FUTEX {
        return Some("futex");
    }
    CALLS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

macro_rules! calls {
    ($($(#[$only:meta])? $constant:ident $name:literal,)*) => {
        const CALLS: &[(i64, &str)] = &[$($(#[$only])? (libc::$constant, $name),)*];
    };
}

calls! {
    SYS_read "read", SYS_write "write", SYS_readv "readv", SYS_writev "writev",
    SYS_pread64 "pread64", SYS_pwrite64 "pwrite64", SYS_openat "openat", SYS_close "close",
    #[cfg(target_arch = "x86_64")] SYS_open "open",
    #[cfg(target_arch = "x86_64")] SYS_poll "poll",
    #[cfg(target_arch = "x86_64")] SYS_select "select",
    #[cfg(target_arch = "x86_64")] SYS_epoll_wait "epoll_wait",
    #[cfg(target_arch = "x86_64")] SYS_pause "pause",
    SYS_ppoll "ppoll", SYS_pselect6 "pselect6", SYS_epoll_pwait "epoll_pwait",
    SYS_epoll_pwait2 "epoll_pwait2",
    SYS_nanosleep "nanosleep", SYS_clock_nanosleep "clock_nanosleep",
    SYS_rt_sigsuspend "rt_sigsuspend", SYS_rt_sigtimedwait "rt_sigtimedwait",
    SYS_wait4 "wait4", SYS_waitid "waitid", SYS_accept "accept", SYS_accept4 "accept4",
    SYS_connect "connect", SYS_recvfrom "recvfrom", SYS_recvmsg "recvmsg",
    SYS_recvmmsg "recvmmsg", SYS_sendto "sendto", SYS_sendmsg "sendmsg", SYS_flock "flock",
    SYS_fcntl "fcntl", SYS_ioctl "ioctl", SYS_fsync "fsync", SYS_fdatasync "fdatasync",
    SYS_sync "sync", SYS_msync "msync", SYS_msgrcv "msgrcv", SYS_msgsnd "msgsnd",
    SYS_semop "semop", SYS_semtimedop "semtimedop", SYS_mq_timedreceive "mq_timedreceive",
    SYS_mq_timedsend "mq_timedsend", SYS_io_getevents "io_getevents",
    SYS_io_uring_enter "io_uring_enter", SYS_splice "splice", SYS_sendfile "sendfile",
    SYS_getdents64 "getdents64", SYS_ptrace "ptrace", SYS_restart_syscall "restart_syscall",
    SYS_sched_yield "sched_yield", SYS_munmap "munmap", SYS_mmap "mmap",
    SYS_mprotect "mprotect", SYS_madvise "madvise", SYS_membarrier "membarrier",
    SYS_execve "execve", SYS_getrandom "getrandom", SYS_userfaultfd "userfaultfd",
    SYS_clone "clone", SYS_clone3 "clone3", SYS_mq_open "mq_open",
    #[cfg(target_arch = "x86_64")] SYS_vfork "vfork",
    SYS_exit "exit", SYS_exit_group "exit_group",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_has_two_names() {
        for (number, known) in CALLS {
            assert_eq!(name(*number), Some(*known));
        }
        assert_eq!(name(FUTEX), Some("futex"));
        assert_eq!(name(-1), None);
    }
}
