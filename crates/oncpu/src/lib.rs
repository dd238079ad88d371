//! Keeps the table of who runs on which processor: starts it and stops it.
//!
//! # Role
//! For the privileged command `lockstead oncpu`; programs link only the reader,
//! `lockstead_linux::oncpu`, which also has the layout and says whether a table is kept.
//! While the table is kept, one file system lies at [`FOLDER`], with two names in it; after
//! [`stop`], or a [`start`] that fails on the way, nothing is left.
//!
//! # Parts
//! ```text
//! btf       two numbers from the kernel's description of its types
//! program   the two programs, written with the words of assembler
//! bpf       the system call
//! lib       creates the map, loads the program, gives both their names
//! ```
//!
//! # Why by hand
//! `aya-obj` and `libbpf-rs` load object files that a compiler for eBPF has made, and adapt
//! them to the kernel. Here is no object file: the program is 30 instructions that are
//! written with the two numbers in place, so that building and starting need no compiler.
//! `aya-obj` would replace none of the system calls, and parse the types without telling
//! the offset of a member; `libbpf-rs` would bring a library in C, and that of ELF.

mod assembler;
mod bpf;
mod btf;
mod program;

use core::ffi::CStr;
use core::fmt;
use core::ptr::null_mut;
use lockstead_linux::oncpu::layout::{
    FOLDER, LINK, MAGIC, MOST_CPUS, MOST_THREADS, OncpuHeader, TABLE, VERSION, size,
};
use lockstead_linux::oncpu::{RunningTable, Unreadable, status};
use program::{Geometry, at_switch, at_the_end};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why the table could not be started or stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OncpuRefusal {
    /// The caller lacks the privileges for this step.
    Privileges(&'static str),
    /// The kernel does not describe its types: `/sys/kernel/btf/vmlinux` is missing, or
    /// says nothing about threads and switches.
    Types(String),
    /// The kernel cannot mount the file system of eBPF.
    FileSystem(String),
    /// The kernel refused this step.
    Kernel(&'static str, String),
}

impl fmt::Display for OncpuRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OncpuRefusal::Privileges(step) => write!(
                f,
                "not permitted to {step}: this needs root, or the capabilities CAP_BPF, CAP_PERFMON and \
                 CAP_SYS_ADMIN in the first user namespace"
            ),
            OncpuRefusal::Types(why) => {
                write!(f, "this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF): {why}")
            }
            OncpuRefusal::FileSystem(why) => {
                write!(f, "the file system of eBPF cannot be mounted at {}: {why}", folder())
            }
            OncpuRefusal::Kernel(step, why) => write!(f, "the kernel refused to {step}: {why}"),
        }
    }
}

impl std::error::Error for OncpuRefusal {}

impl From<Unreadable> for OncpuRefusal {
    fn from(why: Unreadable) -> Self {
        OncpuRefusal::Kernel("open the table", why.to_string())
    }
}

fn folder() -> &'static str {
    FOLDER.to_str().unwrap_or_default()
}

fn why(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

fn refused(step: &'static str) -> impl Fn(i32) -> OncpuRefusal {
    move |errno| match errno {
        libc::EPERM => OncpuRefusal::Privileges(step),
        _ => OncpuRefusal::Kernel(step, why(errno)),
    }
}

fn result(value: libc::c_int) -> Result<(), i32> {
    if value == 0 { Ok(()) } else { Err(errno()) }
}

/// Starts the table, and returns it. A table that is kept already stays as it is.
///
/// # Errors
/// [`OncpuRefusal`]; then nothing is left behind.
pub fn start() -> Result<RunningTable, OncpuRefusal> {
    if let Some(running) = status()?.filter(|running| running.kept) {
        return Ok(running);
    }
    let data = match fs::read("/sys/kernel/btf/vmlinux") {
        Ok(data) => data,
        Err(error) => return Err(OncpuRefusal::Types(format!("/sys/kernel/btf/vmlinux: {error}"))),
    };
    let facts = btf::find(&data);
    let facts =
        facts.ok_or_else(|| OncpuRefusal::Types("it does not say where threads are".into()))?;
    let number_at = i16::try_from(facts.number_at)
        .map_err(|_| OncpuRefusal::Types("threads are described as too large".into()))?;
    let geometry = Geometry { processors: processors(), threads: threads(), number_at };
    let (map, link) = load(&geometry, facts.tracepoint)?;
    mount()?;
    publish(&map, &link).inspect_err(|_| {
        // What was begun; that it could not be finished is what the caller is told.
        let _ = remove();
    })?;
    status()?.ok_or(OncpuRefusal::Kernel("find the table again", "it has vanished".into()))
}

/// Stops the table. Returns false if there was none. Programs that have mapped it fall back to what
/// they use without.
///
/// # Errors
/// [`OncpuRefusal`].
pub fn stop() -> Result<bool, OncpuRefusal> {
    if !Path::new(folder()).exists() {
        return Ok(false);
    }
    // A file that is no table has no `live` to clear, and goes with the folder.
    let map = bpf::open(TABLE).ok();
    remove()?;
    // Last, for a caller that is refused this has stopped the table all the same.
    if let Some(map) = map {
        let program = at_the_end(map.as_raw_fd());
        let program = bpf::load(NAME, bpf::ProgramEntry::Raw, &program)
            .map_err(|(errno, _)| refused("load the program that marks the table as old")(errno))?;
        bpf::run(&program).map_err(refused("mark the table as old"))?;
    }
    Ok(true)
}

/// The name that the kernel shows for map and program.
const NAME: &[u8; 16] = b"lockstead_oncpu\0";

/// Creates the table with its header, and puts the program in its place.
fn load(geometry: &Geometry, tracepoint: u32) -> Result<(OwnedFd, OwnedFd), OncpuRefusal> {
    let Geometry { processors, threads, .. } = *geometry;
    let bytes = size(processors, threads);
    let map =
        bpf::create_array(NAME, bytes as u32).map_err(refused("create a map for eBPF programs"))?;
    let header = OncpuHeader {
        magic: MAGIC,
        version: VERSION,
        processors,
        threads,
        live: 1,
        started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
    };
    // SAFETY: a new mapping of a new map, of at least a header's size, which only this block
    // knows; any bytes are a header.
    unsafe {
        let (writable, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let page = libc::mmap(null_mut(), bytes, writable, shared, map.as_raw_fd(), 0);
        if page == libc::MAP_FAILED {
            return Err(refused("map the table")(errno()));
        }
        page.cast::<OncpuHeader>().write_volatile(header);
        libc::munmap(page, bytes);
    }
    let program = at_switch(map.as_raw_fd(), geometry);
    let program = bpf::load(NAME, bpf::ProgramEntry::Typed(tracepoint), &program).map_err(
        |(errno, log)| match refused("load an eBPF program")(errno) {
            OncpuRefusal::Kernel(step, why) if !log.is_empty() => {
                OncpuRefusal::Kernel(step, format!("{why}\n{log}"))
            }
            other => other,
        },
    )?;
    bpf::freeze(&map).map_err(refused("freeze the table"))?;
    let link = bpf::attach(&program).map_err(refused("watch the scheduler"))?;
    Ok((map, link))
}

/// Gives both their names, and lets everybody read the table.
fn publish(map: &OwnedFd, link: &OwnedFd) -> Result<(), OncpuRefusal> {
    bpf::pin(link, LINK).map_err(refused("keep the program"))?;
    bpf::pin(map, TABLE).map_err(refused("keep the table"))?;
    let opened = |path: &CStr, mode| {
        let path = path.to_str().unwrap_or_default();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| {
            OncpuRefusal::Kernel("let everybody read the table", error.to_string())
        })
    };
    // A map that is not opened for writing too cannot be mapped; frozen, it cannot be
    // written to (ONCPU-FROZEN).
    opened(TABLE, 0o666)
}

/// Mounts the file system of eBPF.
fn mount() -> Result<(), OncpuRefusal> {
    // What a start left that was killed on the way.
    if Path::new(folder()).exists() {
        remove()?;
    }
    fs::create_dir_all(folder()).map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => OncpuRefusal::Privileges("create a folder in /run"),
        _ => OncpuRefusal::FileSystem(error.to_string()),
    })?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let (kind, options) = (c"bpf".as_ptr(), c"mode=0755".as_ptr().cast());
    // SAFETY: all are static C strings, and the kernel only reads them.
    let mounted = unsafe { libc::mount(kind, FOLDER.as_ptr(), kind, flags, options) };
    result(mounted).map_err(|errno| {
        let _ = remove_folders();
        match errno {
            libc::EPERM => OncpuRefusal::Privileges("mount the file system of eBPF"),
            errno => OncpuRefusal::FileSystem(why(errno)),
        }
    })
}

/// Takes both names away, the file system and its folder.
fn remove() -> Result<(), OncpuRefusal> {
    for path in [LINK, TABLE] {
        match fs::remove_file(path.to_str().unwrap_or_default()) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(OncpuRefusal::Privileges("remove the table"));
            }
            // Not there, or it goes with the file system.
            _ => {}
        }
    }
    // SAFETY: the path is a static C string, and the kernel only reads it. Detached at once,
    // also from processes that stand in the folder.
    let unmounted = unsafe { libc::umount2(FOLDER.as_ptr(), libc::MNT_DETACH) };
    match result(unmounted) {
        // EINVAL: nothing is mounted there.
        Ok(()) | Err(libc::EINVAL) => remove_folders(),
        Err(errno) => Err(refused("unmount the table's file system")(errno)),
    }
}

/// Removes the folder, and the one above it unless others use it.
fn remove_folders() -> Result<(), OncpuRefusal> {
    let folder = Path::new(folder());
    fs::remove_dir(folder)
        .map_err(|error| OncpuRefusal::Kernel("remove its folder", error.to_string()))?;
    if let Some(above) = folder.parent() {
        let _ = fs::remove_dir(above);
    }
    Ok(())
}

/// Returns how many processors there may ever be: the table is not made anew when one is
/// plugged in.
fn processors() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    last_of(&text).map_or(MOST_CPUS, |last| (last + 1).min(MOST_CPUS))
}

/// Returns the last number of a list such as `0-3,8`.
fn last_of(list: &str) -> Option<u32> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// Returns how many entries for threads the table gets: one for each number that there may
/// be, if they are not too many.
fn threads() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    let most = text.trim().parse::<u32>().unwrap_or(MOST_THREADS);
    most.clamp(1024, MOST_THREADS).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_end_with_the_last() {
        assert_eq!(last_of("0\n"), Some(0));
        assert_eq!(last_of("0-3\n"), Some(3));
        assert_eq!(last_of("0-3,8,10-127\n"), Some(127));
        assert_eq!(last_of(""), None);
        assert!((1..=MOST_CPUS).contains(&processors()));
        assert!(threads().is_power_of_two() && threads() <= MOST_THREADS);
    }

    #[test]
    fn refusals_say_what_is_missing() {
        assert!(refused("load it")(libc::EPERM).to_string().contains("CAP_BPF"));
        assert!(refused("load it")(libc::E2BIG).to_string().contains("refused to load it"));
        assert!(
            OncpuRefusal::Types("no file".into()).to_string().contains("CONFIG_DEBUG_INFO_BTF")
        );
    }
}
