//! Programs whose system calls are filtered.

use super::Running;
use crate::common::run;
use std::os::unix::process::CommandExt;
use std::process::Command;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();

/// Loads a word of what a filter is given: the number of the call at 0, the machine at 4, the lower half
/// of the first argument at 16.
const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const AND: u16 = 0x54;
const ANSWER: u16 = 0x06;

fn op(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Puts a filter on a program.
fn filter(command: &mut Command, filter: Vec<libc::sock_filter>) {
    let install = move || {
        let program =
            libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the kernel reads the program, which this closure owns.
        let answers = unsafe {
            [
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
            ]
        };
        if answers == [0, 0] { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes system calls only.
    unsafe { command.pre_exec(install) };
}

/// Returns a filter that answers so to one call, and lets all others pass.
fn one(number: libc::c_long, answer: u32) -> Vec<libc::sock_filter> {
    vec![
        op(LOAD, 0, 0, 0),
        op(EQUAL, number as u32, 0, 1),
        op(ANSWER, answer, 0, 0),
        op(ANSWER, ALLOW, 0, 0),
    ]
}

/// Returns a filter like those that are put on containers: it knows the calls that it lets pass and
/// refuses all others, some by their arguments; of another machine it knows nothing.
fn of_containers() -> Vec<libc::sock_filter> {
    const MACHINE: u32 = if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };
    const OTHER_TABLE: u32 = 0x4000_0000;
    const NAMESPACES: u32 = 0x7e02_0000;
    let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let mut all = vec![
        op(LOAD, 4, 0, 0),
        op(EQUAL, MACHINE, 1, 0),
        op(ANSWER, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        op(LOAD, 0, 0, 0),
        op(AT_LEAST, OTHER_TABLE, 0, 1),
        op(ANSWER, REFUSE, 0, 0),
        op(EQUAL, libc::SYS_clone3 as u32, 0, 1),
        op(ANSWER, missing, 0, 0),
        op(EQUAL, libc::SYS_clone as u32, 0, 5),
        op(LOAD, 16, 0, 0),
        op(AND, NAMESPACES, 0, 0),
        op(EQUAL, 0, 0, 1),
        op(ANSWER, ALLOW, 0, 0),
        op(ANSWER, REFUSE, 0, 0),
        op(EQUAL, libc::SYS_personality as u32, 0, 4),
        op(LOAD, 16, 0, 0),
        op(EQUAL, 0, 0, 1),
        op(ANSWER, ALLOW, 0, 0),
        op(ANSWER, REFUSE, 0, 0),
    ];
    let refused = [
        libc::SYS_acct,
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_chroot,
        libc::SYS_init_module,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_mbind,
        libc::SYS_mount,
        libc::SYS_perf_event_open,
        libc::SYS_pivot_root,
        libc::SYS_reboot,
        libc::SYS_setns,
        libc::SYS_swapon,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
    ];
    for number in refused {
        all.extend([op(EQUAL, number as u32, 0, 1), op(ANSWER, REFUSE, 0, 0)]);
    }
    for number in [libc::SYS_close_range, libc::SYS_faccessat2] {
        all.extend([op(EQUAL, number as u32, 0, 1), op(ANSWER, ALLOW, 0, 0)]);
    }
    let last = libc::SYS_rseq as u32;
    all.extend([op(AT_LEAST, last + 1, 0, 1), op(ANSWER, REFUSE, 0, 0), op(ANSWER, ALLOW, 0, 0)]);
    all
}

#[test]
fn a_filter_is_looked_at_before_a_call_is_made_that_it_may_not_know() {
    let attach =
        |running: &Running| run(&["attach", &running.pid(), "--for", "50ms", "--no-report"]);
    let filtered =
        |number, answer| Running::busy_as("1", move |command| filter(command, one(number, answer)));
    let kills = libc::SECCOMP_RET_KILL_PROCESS;
    let Some(mut running) = filtered(libc::SYS_mincore, kills) else { return };
    let outcome = attach(&running);
    assert_eq!(outcome.status, 125, "{outcome:?}");
    running.goes_on();
    running.ends_well();
    let refused = format!("does more about system call {} than to refuse it", libc::SYS_mincore);
    if !outcome.stderr.contains(&refused) {
        let barred =
            ["a seccomp filter is on", "ptrace_scope", "does not permit", "cannot be traced"];
        assert!(barred.iter().any(|word| outcome.stderr.contains(word)), "{outcome:?}");
        return eprintln!("skipped: {}", outcome.stderr);
    }
    let refused = filtered(libc::SYS_process_vm_readv, REFUSE).expect("it was built before");
    let contained = Running::busy_as("1", |command| filter(command, of_containers()));
    for mut running in [refused, contained.expect("it was built before")] {
        let before = running.traces();
        for _ in 0..3 {
            let outcome = attach(&running);
            assert_eq!(outcome.status, 0, "{outcome:?}");
            assert_eq!(running.traces(), before);
        }
        running.goes_on();
        running.ends_well();
    }
}
