//! What the measurements need from outside: the command, a C compiler,
//! programs, and the CPU time of processes.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whatever went wrong, in a sentence.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The command under test and a folder that is removed at the end.
pub(crate) struct Tools {
    lockstead: PathBuf,
    /// The command is to check.
    pub(crate) check: bool,
    /// The folder for programs that are built and data that is made.
    pub(crate) folder: tempfile::TempDir,
}

impl Tools {
    pub(crate) fn find(lockstead: Option<&Path>, check: bool) -> Result<Tools> {
        let lockstead = match lockstead {
            Some(path) => path.to_path_buf(),
            None => std::env::current_exe()?.with_file_name("lockstead"),
        };
        if !lockstead.is_file() {
            return Err(format!(
                "{} does not exist: build it with `cargo build --release`, or name it with \
                 --lockstead",
                lockstead.display()
            )
            .into());
        }
        Ok(Tools { lockstead, check, folder: tempfile::tempdir()? })
    }

    /// Returns `program`, by itself or under `lockstead run`, which writes its report
    /// to a file nobody reads.
    pub(crate) fn command(&self, under_run: bool, program: impl AsRef<OsStr>) -> Command {
        let mut command = if under_run {
            let mut command = Command::new(&self.lockstead);
            command.arg("run");
            if self.check {
                command.arg("--check");
            }
            command.arg("--").arg(program);
            command
        } else {
            Command::new(program)
        };
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns the file of an installed program; a note if there is none.
    pub(crate) fn installed(name: &str) -> Option<PathBuf> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file());
        if found.is_none() {
            eprintln!("run-overhead: {name} is not installed: its rows are left out");
        }
        found
    }
}

/// Returns the CPU seconds of all children that have been waited for.
pub(crate) fn children_cpu() -> f64 {
    // SAFETY: zero is a valid rusage, and the call only writes to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Returns the CPU seconds of all threads of a live process, to the nanosecond where the
/// kernel keeps scheduler statistics, otherwise to its clock tick.
pub(crate) fn process_cpu(pid: u32) -> Result<f64> {
    let mut nanoseconds = 0u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().ok_or("an empty schedstat")?;
        nanoseconds += first.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 * 1e-9)
}

/// Returns the first child of a process.
pub(crate) fn child_of(pid: u32) -> Result<Option<u32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().next().map(str::parse).transpose()?)
}
