//! Which file a command line means, and whether its locks can be watched.
//!
//! # Role
//! Everything that would make the library in the program stay away is found
//! here, before anything is started, so that the answer is a message and not
//! an empty report. What is not found here (a static program that the program
//! itself starts) only lacks from the report.

use super::elf::{self, Elf};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The library needs symbols of this version.
const GLIBC: &str = "GLIBC_2.34";
/// How many scripts the kernel follows whose interpreter is a script.
const SCRIPTS: usize = 5;
/// How many bytes at the beginning of a file the kernel looks at.
const BEGINNING: usize = 256;
/// What `execvp` searches without a `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The reason for which a program is not started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartRefusal {
    /// The exit status of the command.
    pub(crate) status: u8,
    /// The reason, and what to do instead.
    pub(crate) text: String,
}

/// The command could not do its part.
pub(crate) const REFUSED: u8 = 125;
/// There is a file, but it cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub(crate) const NOT_FOUND: u8 = 127;

impl StartRefusal {
    fn new(status: u8, text: impl Into<String>) -> Self {
        StartRefusal { status, text: text.into() }
    }
}

/// Finds the file as `execvp` does: a name without a slash in `path`.
///
/// # Errors
/// [`NOT_FOUND`] or [`NOT_EXECUTABLE`].
pub(crate) fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, StartRefusal> {
    let shown = program.to_string_lossy();
    if program.is_empty() {
        return Err(StartRefusal::new(NOT_FOUND, "the name of the program is empty"));
    }
    if program.as_bytes().contains(&b'/') {
        let file = PathBuf::from(program);
        return match executable(&file) {
            Ok(()) => Ok(file),
            Err(error) => Err(StartRefusal::new(status_of(&error), format!("{shown}: {error}"))),
        };
    }
    let mut denied = None;
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    for folder in path.as_bytes().split(|&byte| byte == b':') {
        // An empty entry is the working directory.
        let folder = if folder.is_empty() { b".".as_slice() } else { folder };
        let file = Path::new(OsStr::from_bytes(folder)).join(program);
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(error) if status_of(&error) == NOT_EXECUTABLE => {
                denied = denied.or(Some(format!("{}: {error}", file.display())));
            }
            Err(_) => {}
        }
    }
    Err(match denied {
        Some(text) => StartRefusal::new(NOT_EXECUTABLE, text),
        None => StartRefusal::new(NOT_FOUND, format!("{shown}: no such program in PATH")),
    })
}

fn status_of(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}

fn executable(file: &Path) -> io::Result<()> {
    let metadata = fs::metadata(file)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let name = CString::new(file.as_os_str().as_bytes())?;
    // SAFETY: `name` is a terminated string that lives during the call.
    if unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) } == 0
    {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// How the locks of a program are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedBy {
    /// The library that is put under it.
    Library,
    /// Its futex calls alone: it takes no library along.
    Syscalls,
}

/// Says how the locks of the program in `file` can be watched; with `syscalls` also those of one
/// that takes no library along.
///
/// # Errors
/// [`REFUSED`] with the reason and the way out.
pub(crate) fn check(file: &Path, syscalls: bool) -> Result<WatchedBy, StartRefusal> {
    let mut file = file.to_path_buf();
    for _ in 0..SCRIPTS {
        let Ok(opened) = File::open(&file) else {
            // Executable but not readable: nothing is known, and an ordinary
            // program is the likely case.
            return privileges(&file).map(|()| WatchedBy::Library);
        };
        let mut beginning = [0; BEGINNING];
        let length = opened.read_at(&mut beginning, 0).unwrap_or(0);
        let beginning = &beginning[..length];
        if elf::is_elf(beginning) {
            let by = linking(&file, &opened, syscalls)?;
            return privileges(&file).map(|()| by);
        }
        match interpreter(beginning) {
            Some(next) => file = next,
            // A script without a first line, which the shell runs, or a format
            // that the kernel has learnt.
            None => return Ok(WatchedBy::Library),
        }
    }
    // The kernel will say that these are too many.
    Ok(WatchedBy::Library)
}

fn linking(file: &Path, opened: &File, syscalls: bool) -> Result<WatchedBy, StartRefusal> {
    let dump = "`lockstead dump PID` looks at it from outside once it runs, and with --syscalls its \
                waits in the kernel are seen";
    let (why, instead) = match elf::read(opened) {
        Ok(Elf::Dynamic(interpreter)) => match elf::is_glibc(&interpreter, GLIBC) {
            Ok(()) => return Ok(WatchedBy::Library),
            Err(_) if syscalls => return Ok(WatchedBy::Syscalls),
            Err(why) => {
                (why, format!("only programs of glibc 2.34 and newer can be watched; {dump}"))
            }
        },
        Ok(Elf::Static) if syscalls => return Ok(WatchedBy::Syscalls),
        Ok(Elf::Static) => (
            "it is statically linked, so that nothing can be put under it".into(),
            format!(
                "link it dynamically (without -static, or for Rust with the target \
                     {}-unknown-linux-gnu); {dump}",
                std::env::consts::ARCH
            ),
        ),
        Ok(Elf::Foreign(what)) => {
            let instead = format!(
                "only programs for {} can be watched by this command, which is for it too",
                elf::processor()
            );
            (format!("it is {what}"), instead)
        }
        // Damaged in a way that the kernel or the linker will put better.
        Err(_) => return Ok(WatchedBy::Library),
    };
    Err(refuse(file, &why, &instead))
}

fn refuse(file: &Path, why: &str, instead: &str) -> StartRefusal {
    StartRefusal::new(
        REFUSED,
        format!("cannot watch the locks of {}: {why}\n  Instead: {instead}", file.display()),
    )
}

/// Refuses a program that gains privileges by being started: the loader drops `LD_PRELOAD` for it.
fn privileges(file: &Path) -> Result<(), StartRefusal> {
    let Ok(metadata) = fs::metadata(file) else { return Ok(()) };
    // SAFETY: the calls take and return numbers only.
    let (user, group, real) = unsafe { (libc::geteuid(), libc::getegid(), libc::getuid()) };
    let mode = metadata.permissions().mode();
    let gains = if mode & libc::S_ISUID != 0 && metadata.uid() != user {
        "the set-user-ID bit"
    } else if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && metadata.gid() != group {
        "the set-group-ID bit"
    } else if real != 0 && has_capabilities(file) {
        "file capabilities"
    } else {
        return Ok(());
    };
    if no_privileges_here(file) {
        return Ok(());
    }
    Err(refuse(
        file,
        &format!("it gains privileges by {gains}, and such a program takes no library along"),
        "run lockstead as the user it would become (sudo lockstead run -- ...), or start a copy \
         of the file without the privilege (cp does not copy it)",
    ))
}

fn has_capabilities(file: &Path) -> bool {
    let Ok(name) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings are terminated and live during the call; no buffer
    // is given, only the size is asked for.
    let size = unsafe {
        libc::getxattr(name.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0)
    };
    size > 0
}

/// Returns whether starting a program gives no privileges here: so it is on some file systems, and
/// for some processes.
fn no_privileges_here(file: &Path) -> bool {
    // SAFETY: the call takes numbers only and returns a flag of this process.
    if unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 1 {
        return true;
    }
    let Ok(name) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut system: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is terminated, `system` is borrowed exclusively.
    unsafe {
        libc::statvfs(name.as_ptr(), &mut system) == 0 && system.f_flag & libc::ST_NOSUID != 0
    }
}

/// Returns the program that a script's first line names.
fn interpreter(beginning: &[u8]) -> Option<PathBuf> {
    let line = beginning.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let word = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    (!word.is_empty()).then(|| PathBuf::from(OsString::from_vec(word.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("mode set");
        file
    }

    #[test]
    fn names_are_searched_as_execvp_does() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let wanted = script(second.path(), "tool", "", 0o755);
        fs::create_dir(first.path().join("tool")).expect("a folder of that name is passed over");
        script(first.path(), "data", "", 0o644);
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        let find = |name: &str| find(OsStr::new(name), Some(&path));
        assert_eq!(find("tool"), Ok(wanted.clone()));
        assert_eq!(find(wanted.to_str().unwrap()), Ok(wanted));
        assert_eq!(find("data").expect_err("no x bit").status, NOT_EXECUTABLE);
        assert_eq!(find("absent").expect_err("nowhere").status, NOT_FOUND);
        assert_eq!(find("/absent/tool").expect_err("nowhere").status, NOT_FOUND);
        assert_eq!(find("").expect_err("no name").status, NOT_FOUND);
        assert_eq!(super::find(OsStr::new("sh"), None), Ok("/bin/sh".into()));
    }

    #[test]
    fn scripts_are_judged_by_their_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let loop_ = folder.path().join("loop");
        for text in ["#!/bin/sh\n", "#! /bin/sh -e\n", "#!/absent\n", "#!", "plain text", ""] {
            let by = check(&script(folder.path(), "s", text, 0o755), false);
            assert_eq!(by, Ok(WatchedBy::Library), "{text}");
        }
        let text = format!("#!{}\n", loop_.display());
        assert_eq!(
            check(&script(folder.path(), "loop", &text, 0o755), false),
            Ok(WatchedBy::Library)
        );
    }

    #[test]
    fn what_cannot_be_watched_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let mut header = vec![0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[18] = elf::PROCESSOR.0 as u8;
        header[54] = 56;
        let alone = folder.path().join("alone");
        fs::write(&alone, &header).unwrap();
        let wrapper =
            script(folder.path(), "wrapper", &format!("#!{} -x\n", alone.display()), 0o755);
        for file in [&alone, &wrapper] {
            let refusal = check(file, false).expect_err("static");
            assert_eq!(refusal.status, REFUSED);
            for word in ["statically", "Instead", "lockstead dump", "--syscalls", "alone"] {
                assert!(refusal.text.contains(word), "{word}: {}", refusal.text);
            }
            assert_eq!(check(file, true), Ok(WatchedBy::Syscalls));
        }
        header[4] = 1;
        fs::write(&alone, &header).unwrap();
        assert!(check(&alone, true).expect_err("small").text.contains("32-bit"));
    }

    #[test]
    fn an_ordinary_program_passes() {
        assert_eq!(check(Path::new("/bin/sh"), false), Ok(WatchedBy::Library));
        assert_eq!(check(Path::new("/absent"), false), Ok(WatchedBy::Library));
    }
}
