//! Starts the program as the shell would have started it.
//!
//! # Role
//! By hand and not by `std::process::Command`, which empties the signal mask
//! and resets SIGPIPE: the program gets the mask, the dispositions, the
//! descriptors, the terminal and the process group that it would have had.
//!
//! # Protocol
//! A pipe that closes at a successful exec carries the error of a failed one,
//! so that the command knows which of the two happened.

use super::origin;
use super::syscalls::Told;
use super::syscalls::filter::TellingSockets;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// The shell that runs a script without a first line, as for `execvp`.
const SHELL: &std::ffi::CStr = c"/bin/sh";

/// The bit of an error that says that the filter was refused.
const FILTER: i32 = 1 << 30;

/// Why a program did not start.
#[derive(Debug)]
pub(super) enum StartFailure {
    /// The system has no process for it, or cannot execute it.
    Exec(io::Error),
    /// The kernel does not tell of its calls.
    Filter(io::Error),
}

impl From<io::Error> for StartFailure {
    fn from(error: io::Error) -> Self {
        StartFailure::Exec(error)
    }
}

/// The program and all it gets.
pub(super) struct Program<'a> {
    /// The file that was found by the name.
    pub(super) file: &'a Path,
    /// The arguments, the name first.
    pub(super) arguments: &'a [OsString],
    /// The environment that it gets.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Returns the environment of this command with these variables set.
pub(super) fn environment(set: &[(&str, OsString)]) -> Vec<(OsString, OsString)> {
    let kept = std::env::vars_os().filter(|(name, _)| set.iter().all(|(new, _)| name != new));
    kept.chain(set.iter().map(|(name, value)| (OsString::from(name), value.clone()))).collect()
}

/// The place where the address sanitizer reads its options.
pub(super) const SANITIZER: &str = "ASAN_OPTIONS";

/// Returns the options of the sanitizer, with those `before`. Without ours it ends a program that
/// has another library in front of the sanitizer's own. It is for programs that the program starts
/// as well, and means nothing to others.
pub(super) fn sanitizer_options(before: Option<OsString>) -> OsString {
    let mut options = before.filter(|options| !options.is_empty()).unwrap_or_default();
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    options
}

/// Starts it with the signal mask `mask` and returns its process id; and what the kernel tells of
/// its futex calls, if it is to tell of them. The caller is the only thread of its process.
///
/// # Errors
/// What the system says of `fork` or `execve`, or of the filter.
pub(super) fn start(
    program: &Program<'_>,
    mask: &libc::sigset_t,
    telling: Option<TellingSockets>,
) -> Result<(libc::pid_t, Option<Told>), StartFailure> {
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
    let file = text(program.file.as_os_str())?;
    let arguments: Vec<CString> =
        program.arguments.iter().map(|argument| text(argument)).collect::<io::Result<_>>()?;
    let environment: Vec<CString> = program
        .environment
        .iter()
        .map(|(name, value)| {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            text(&line)
        })
        .collect::<io::Result<_>>()?;
    let mut shell = vec![SHELL.to_owned(), file.clone()];
    shell.extend(arguments.iter().skip(1).cloned());
    let [arguments, shell, environment] = [&arguments, &shell, &environment]
        .map(|strings| strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>());
    let (mut news, teller) = pipe()?;
    // SAFETY: the child makes system calls only, on memory prepared above, and
    // ends in exec or _exit; it returns nowhere.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().into()),
        0 => {
            origin::restore();
            // SAFETY: `mask` is a valid set; the arrays end with null and point
            // to terminated strings that live in this copy of the memory.
            let error = unsafe {
                if let Some(Err(error)) = telling.as_ref().map(TellingSockets::tell) {
                    refuse(&teller, error.raw_os_error().unwrap_or(0) | FILTER);
                }
                libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut());
                libc::execve(file.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                let mut error = *libc::__errno_location();
                if error == libc::ENOEXEC {
                    libc::execve(SHELL.as_ptr(), shell.as_ptr(), environment.as_ptr());
                    error = *libc::__errno_location();
                }
                error
            };
            refuse(&teller, error)
        }
        child => {
            drop(teller);
            let told = telling.map(Told::take_over);
            let mut error = [0; 4];
            match news.read_exact(&mut error) {
                Err(_) => Ok((child, told.transpose().map_err(StartFailure::Filter)?)),
                Ok(()) => {
                    let mut status = 0;
                    // SAFETY: the call reaps the child just made, which has ended, and writes into
                    // `status`.
                    unsafe { libc::waitpid(child, &mut status, 0) };
                    let number = i32::from_ne_bytes(error);
                    let error = io::Error::from_raw_os_error(number & !FILTER);
                    Err(if number & FILTER == 0 {
                        StartFailure::Exec(error)
                    } else {
                        StartFailure::Filter(error)
                    })
                }
            }
        }
    }
}

/// Tells the parent why the program did not start, and ends the child.
fn refuse(teller: &OwnedFd, error: i32) -> ! {
    let bytes = error.to_ne_bytes();
    // SAFETY: writes from an array of this frame; _exit ends this
    // process without running anything of its copy of the parent.
    unsafe {
        libc::write(teller.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(super::program::NOT_EXECUTABLE.into())
    }
}

/// Returns a pipe of which no end is one of the three standard descriptors: those may be closed in
/// the child before it has told of its failure.
fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors into an array of two, which lives in this frame.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just opened and belong to nobody else.
    Ok(unsafe { (File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_once_and_the_others_stay() {
        let set = environment(&[("PATH", "mine".into()), ("LOCKSTEAD_X", "new".into())]);
        let of = |name: &str| set.iter().filter(|(n, _)| n == name).collect::<Vec<_>>();
        assert_eq!(of("PATH"), [&("PATH".into(), "mine".into())]);
        assert_eq!(of("LOCKSTEAD_X").len(), 1);
        assert_eq!(set.len(), std::env::vars_os().count() + 1);
    }

    #[test]
    fn options_of_the_sanitizer_are_kept() {
        let ours = "verify_asan_link_order=0";
        for (before, after) in [
            (None, ours.into()),
            (Some(""), ours.into()),
            (Some("detect_leaks=0"), format!("detect_leaks=0:{ours}")),
        ] {
            assert_eq!(sanitizer_options(before.map(OsString::from)), *after);
        }
    }
}
