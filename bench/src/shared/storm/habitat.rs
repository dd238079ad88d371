//! What a worker may be deprived of: its user, and `/proc`.

use super::part::StormPart;
use crate::Error;
use crate::shared::process::try_in_child;
use std::io;
use std::path::Path;

/// Another user and group, who own nothing.
const NOBODY: libc::uid_t = 65534;

/// Makes the calling process, of one thread, what its part says.
pub(super) fn settle(part: &StormPart) -> Result<(), Error> {
    let process = |what| move |source| Error::Process { what, source };
    if part.without_proc {
        lose_proc().map_err(process("a worker cannot do without /proc"))?;
    }
    if part.other_user {
        become_nobody().map_err(process("a worker cannot become another user"))?;
    }
    if part.without_proc || part.other_user {
        // The kernel forgets this where rights change.
        // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }
    Ok(())
}

fn checked(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Becomes the user nobody, by the bare calls: those of the C library wait for threads that a
/// copied process has lost.
fn become_nobody() -> io::Result<()> {
    // SAFETY: by CALL-NUMBERS: numbers, and a list of no entries.
    unsafe {
        let none = std::ptr::null::<libc::gid_t>();
        checked(libc::syscall(libc::SYS_setgroups, 0, none) as libc::c_int)?;
        checked(libc::syscall(libc::SYS_setgid, NOBODY) as libc::c_int)?;
        checked(libc::syscall(libc::SYS_setuid, NOBODY) as libc::c_int)
    }
}

/// Hides `/proc` from the process for good, in a mount namespace of its own.
fn lose_proc() -> io::Result<()> {
    let mount = |from: &std::ffi::CStr, to: &std::ffi::CStr, kind: &std::ffi::CStr, flags| {
        // SAFETY: the strings are constants that end with a zero, and there are no data.
        checked(unsafe {
            libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
        })
    };
    // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
    let unshare = |flags| checked(unsafe { libc::unshare(flags) });
    unshare(libc::CLONE_NEWNS).or_else(|_| unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUSER))?;
    mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE)?;
    // SAFETY: the string is a constant that ends with a zero.
    unsafe { libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH) };
    // It may have been there twice, or not be this user's to remove.
    if Path::new("/proc/self").exists() {
        mount(c"none", c"/proc", c"tmpfs", 0)?;
    }
    if Path::new("/proc/self").exists() {
        return Err(io::Error::other("it is there still"));
    }
    Ok(())
}

/// Tries whether workers can be other users'.
///
/// # Errors
/// [`Error::NotHere`] if not.
pub(super) fn probe_users() -> Result<(), Error> {
    try_in_child(|| become_nobody().is_ok()).map_err(|_| Error::NotHere {
        option: "--users",
        why: "only root can start processes of another user; run it as root".into(),
    })
}

/// Tries whether workers can do without `/proc`.
///
/// # Errors
/// [`Error::NotHere`] if not.
pub(super) fn probe_proc() -> Result<(), Error> {
    try_in_child(|| lose_proc().is_ok()).map_err(|_| Error::NotHere {
        option: "--without-proc",
        why: "neither privilege nor user namespaces allow a mount namespace; run it as root".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> libc::uid_t {
        // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
        unsafe { libc::getuid() }
    }

    fn has_proc() -> bool {
        Path::new("/proc/self").exists()
    }

    #[test]
    fn who_becomes_another_user_is_one() {
        match probe_users() {
            Ok(()) => {
                let before = user();
                try_in_child(|| become_nobody().is_ok() && user() == NOBODY).expect("as the probe");
                assert_eq!(user(), before, "this process is as it was");
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
    }

    #[test]
    fn who_loses_proc_has_none() {
        match probe_proc() {
            Ok(()) => {
                try_in_child(|| has_proc() && lose_proc().is_ok() && !has_proc())
                    .expect("as the probe");
                assert!(has_proc(), "this process is as it was");
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
