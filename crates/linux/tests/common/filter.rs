//! Processes that forbid themselves a system call.

/// Has this system call refused with this error from here on, to all threads; where `second` is
/// given, only with that second argument. Returns false if filters are not allowed.
pub(crate) fn refuse(call: libc::c_long, second: Option<u32>, error: libc::c_int) -> bool {
    install(call, second, error, libc::SECCOMP_FILTER_FLAG_TSYNC)
}

/// Does as [`refuse`] to the calling thread alone, and to those that it starts.
#[allow(dead_code, reason = "not all programs that share this module use it")]
pub(crate) fn refuse_here(call: libc::c_long, error: libc::c_int) -> bool {
    install(call, None, error, 0)
}

fn install(
    call: libc::c_long,
    second: Option<u32>,
    error: libc::c_int,
    flags: libc::c_ulong,
) -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    /// The place where the lower half of the second argument is among what a filter reads.
    const SECOND: u32 = core::mem::offset_of!(libc::seccomp_data, args) as u32 + 8;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(LOAD, 0, 0, 0),
        step(EQUAL, 0, 3, call as u32),
        step(LOAD, 0, 0, SECOND),
        // Anything is the argument that is meant where none is given.
        step(EQUAL, 0, u8::from(second.is_some()), second.unwrap_or(0)),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its steps are alive during the calls, which copy them.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            ) == 0
    }
}
