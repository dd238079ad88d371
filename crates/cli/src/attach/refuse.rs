//! Which processes cannot be attached to, why, and what to do instead.

use super::arch;
use super::filters;
use super::memory::TargetMemory;
use super::objects::Objects;
use super::watched;
use lockstead_inspect::ledger;
use lockstead_inspect::maps::{Backing, Maps};
use lockstead_inspect::proc::access::Barrier;
use lockstead_inspect::proc::process::LiveProcess;
use lockstead_inspect::proc::status::StatusFile;
use lockstead_inspect::proc::task;
use lockstead_ledger::hello;
use std::path::Path;

/// Why a process is not attached to, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttachRefusal {
    /// The reason why it is not attached to, as a sentence's end.
    pub(crate) why: String,
    /// What to do instead.
    pub(crate) instead: String,
    /// A thread had not come to a stop in time: it may the next time.
    pub(super) again: bool,
}

impl AttachRefusal {
    pub(super) fn new(why: impl Into<String>, instead: impl Into<String>) -> Self {
        AttachRefusal { why: why.into(), instead: instead.into(), again: false }
    }
}

/// What holds whatever the reason.
pub(super) const OUTSIDE: &str = "`lockstead dump PID` shows who waits for whom from outside; `lockstead run` watches a program from \
     its start";

/// Says whether a process can be attached to, as far as can be seen from outside.
pub(super) fn check(process: &LiveProcess) -> Result<(), AttachRefusal> {
    let pid = process.pid;
    let status = &process.status;
    let no = |why: &str, instead: &str| Err(AttachRefusal::new(why, instead));
    if status.number("TracerPid").is_some_and(|tracer| tracer != 0) {
        let tracer = status.number("TracerPid").unwrap_or(0);
        return Err(AttachRefusal::new(
            format!("process {tracer} traces it, and a process has one tracer at most"),
            "end that (a debugger, strace), and try again",
        ));
    }
    if status.text("State").is_some_and(|state| state.starts_with(['T', 't'])) {
        return no("it is stopped", "continue it (`kill -CONT PID`), and try again");
    }
    let Ok(maps) = Maps::of(pid) else { return Err(barred(pid, status)) };
    if maps.iter().next().is_none() || TargetMemory::open(pid).is_err() {
        return Err(barred(pid, status));
    }
    if maps.iter().any(is_library) {
        return if is_watched(pid) {
            no(
                "it is under lockstead already",
                "`lockstead top PID` and `lockstead dump PID` show what is recorded",
            )
        } else {
            no(
                "lockstead's library is in it, from a run or an attach whose command has gone",
                "`lockstead attach --detach PID` takes out what an attach has left; what a run has \
                 brought in stays to the end",
            )
        };
    }
    if other_libc(&maps) {
        return no(
            "its C library is not glibc, and the library stands before glibc's functions",
            &format!("{OUTSIDE}, with --syscalls also such a one"),
        );
    }
    let tids = task::numbers(pid).unwrap_or_default();
    let of_threads = |name: &str| {
        let of = |tid: &u32| {
            let status = StatusFile::read(&format!("/proc/{pid}/task/{tid}/status")).ok()?;
            Some((*tid, status.text(name)?.to_owned()))
        };
        tids.iter().filter_map(of).collect::<Vec<_>>()
    };
    const FILTERED: &str = "2";
    let modes = of_threads("Seccomp");
    if modes.iter().any(|(_, mode)| mode != "0" && mode != FILTERED) {
        return no("it may make no calls but to read and write (strict seccomp)", OUTSIDE);
    }
    let filtered: Vec<u32> =
        modes.iter().filter(|(_, mode)| mode == FILTERED).map(|&(tid, _)| tid).collect();
    if !filtered.is_empty() {
        filters::check(filtered)?;
    }
    if arch::has_shadow_stack(pid, &tids) {
        return no(
            "it has shadow stacks, which calls from outside would not be on",
            &format!("start it without them (GLIBC_TUNABLES); {OUTSIDE}"),
        );
    }
    Ok(())
}

/// Tells whether a command watches the process, in this network namespace or another.
pub(super) fn is_watched(pid: u32) -> bool {
    matches!(ledger::attach(pid), Ok(Some(_)))
        || Maps::of(pid).is_ok_and(|maps| watched::is_watched(pid, &maps))
}

fn barred(pid: u32, status: &StatusFile) -> AttachRefusal {
    let barrier = Barrier::of(pid, status);
    let advice = barrier.advice(pid).replace("lockstead dump", "lockstead attach");
    AttachRefusal::new(barrier.reason(), advice)
}

/// Tells whether a mapping is of the library, as the loader maps it: commands of lockstead map the same
/// file to read its symbols, and share it.
pub(super) fn is_library(mapping: &lockstead_inspect::maps::MapsLine) -> bool {
    match &mapping.backing {
        Backing::File { path, .. } if !mapping.shared => {
            path.file_name().is_some_and(|name| name.to_string_lossy().contains(hello::LIBRARY))
        }
        _ => false,
    }
}

fn other_libc(maps: &Maps) -> bool {
    let is_named = |path: &Path, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    maps.iter().any(|mapping| match &mapping.backing {
        Backing::File { path, .. } => is_named(path, "ld-musl") || is_named(path, "libc.musl"),
        _ => false,
    })
}

/// Says whether the files of a process are such that the library can stand before glibc's functions.
pub(super) fn check_files(
    objects: Option<&Objects>,
    memory: &TargetMemory,
) -> Result<(), AttachRefusal> {
    let Some(objects) = objects else {
        return Err(AttachRefusal::new(
            "it is statically linked (or is just being started), so that nothing can be loaded into it",
            OUTSIDE,
        ));
    };
    let Some(libc) = objects.libc() else {
        return Err(AttachRefusal::new("no glibc is loaded in it", OUTSIDE));
    };
    // Since 2.34 this is the C library's own.
    if libc.function(memory, "pthread_mutex_clocklock").is_none() {
        return Err(AttachRefusal::new("its glibc is older than 2.34", OUTSIDE));
    }
    /// Whoever stands before one of these stands before all locks.
    const LOCKS: [&str; 4] =
        ["pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "sem_wait"];
    for object in objects.iter().filter(|object| object.map != libc.map && !object.is_loader()) {
        if let Some(name) = LOCKS.iter().find(|name| object.function(memory, name).is_some()) {
            let file = if object.name.is_empty() { "the program" } else { &object.name };
            return Err(AttachRefusal::new(
                format!("{file} stands before {name} itself (a sanitizer, another profiler)"),
                format!("start the program without it; {OUTSIDE}"),
            ));
        }
    }
    Ok(())
}
