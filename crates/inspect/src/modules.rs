//! The files of a process: from an address to the file it belongs to.
//!
//! # Role
//! Opens a file when the first address in it is asked for, once. The process
//! may live in another mount namespace, its files may have been replaced since
//! it started, and it may have ended: each file is looked for where the kernel
//! keeps the very one (`map_files`, for those who may), then under the
//! process's root, then by its plain path; and what is found there is taken
//! only if it is the file that was mapped.

use crate::maps::{Backing, Maps, MapsLine};
use crate::memory::ReadableMemory;
use crate::module::Module;
use crate::proc::shown::shown_as;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What an address belongs to.
#[derive(Clone, Debug)]
pub enum CodePlace {
    /// It belongs to nothing that the process has mapped.
    Nowhere,
    /// It belongs to memory without a file or name: heap, thread stacks, generated code.
    Anonymous,
    /// It belongs to what the kernel calls by this name.
    Special(String),
    /// The address belongs to a file.
    File {
        /// Path as the process knew it.
        path: PathBuf,
        /// The file, if it could be opened and is the one that was mapped.
        module: Option<Arc<Module>>,
        /// What the loader added to the addresses that the file states.
        bias: u64,
        /// The address as an offset in the file: of use where `module` is
        /// missing. `None` for zero-filled memory behind the file's bytes.
        offset: Option<u64>,
    },
}

/// A file, not a mapping: a file is mapped in several pieces.
type FileIdentity = ((u32, u32), u64, PathBuf);

/// The files of one process.
#[derive(Debug)]
pub struct Modules {
    pid: Option<u32>,
    started: Option<SystemTime>,
    /// Whether a path leads the process to the file that it leads this one to.
    shares_files: bool,
    maps: Maps,
    opened: HashMap<FileIdentity, Option<Arc<Module>>>,
    main: Option<PathBuf>,
}

impl Modules {
    /// Returns those of a living process.
    ///
    /// # Errors
    /// The process has ended, or belongs to somebody else.
    pub fn of(pid: u32) -> io::Result<Modules> {
        let pid = shown_as(pid);
        let maps = Maps::of(pid)?;
        let main = std::fs::read_link(format!("/proc/{pid}/exe")).ok().map(|path| {
            let shown = path.as_os_str().as_bytes();
            let plain = shown.strip_suffix(b" (deleted)").unwrap_or(shown);
            PathBuf::from(OsStr::from_bytes(plain))
        });
        // It may have ended since its maps were read.
        let main = main.or_else(|| lowest_with_code(&maps));
        let (started, shares_files) = (started(pid), shares_files(pid));
        let opened = HashMap::new();
        Ok(Modules { pid: Some(pid), started, shares_files, maps, opened, main })
    }

    /// Returns those of a process of which only its maps are left. The file of the lowest mapping
    /// with code counts as the program itself: the kernel puts libraries above it.
    #[must_use]
    pub fn saved(maps: Maps) -> Modules {
        let main = lowest_with_code(&maps);
        let opened = HashMap::new();
        Modules { pid: None, started: None, shares_files: true, maps, opened, main }
    }

    /// Returns the maps that addresses are looked up in.
    #[must_use]
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Takes newer maps of the same process: it has loaded a library since, or
    /// ended and these are its last. Of saved maps also those of another process.
    pub fn update(&mut self, maps: Maps) {
        // There were none, if it was ending when they were read first.
        if self.main.is_none() || self.pid.is_none() {
            self.main = lowest_with_code(&maps).or(self.main.take());
        }
        self.maps = maps;
    }

    /// Tells whether `path` is that of the program itself, not of a library.
    #[must_use]
    pub fn is_main(&self, path: &Path) -> bool {
        self.main.as_deref() == Some(path)
    }

    /// Returns what `address` belongs to.
    pub fn place(&mut self, address: u64) -> CodePlace {
        let Some(mapping) = self.maps.find(address).cloned() else { return CodePlace::Nowhere };
        match &mapping.backing {
            Backing::File { path, .. } => {
                let offset = mapping.file_offset(address);
                let module = self.module(&mapping);
                let bias = module
                    .as_ref()
                    .and_then(|m| m.bias(mapping.range.start, mapping.offset, mapping.executable))
                    .unwrap_or(mapping.range.start.wrapping_sub(mapping.offset));
                CodePlace::File { path: path.clone(), module, bias, offset: Some(offset) }
            }
            // The loader puts the zero-filled variables of a file into
            // anonymous memory right behind the file's own, and the kernel
            // joins that with the heap where the two touch.
            Backing::Anonymous => self.behind_a_file(address).unwrap_or(CodePlace::Anonymous),
            Backing::Special(name) if name == "[heap]" => {
                let name = name.clone();
                self.behind_a_file(address).unwrap_or(CodePlace::Special(name))
            }
            Backing::Special(name) => CodePlace::Special(name.clone()),
        }
    }

    /// Returns the file whose zero-filled memory `address` lies in.
    fn behind_a_file(&mut self, address: u64) -> Option<CodePlace> {
        let mut at = self.maps.index_of(address)?;
        let before = loop {
            let follows = self.maps.get(at)?.range.start;
            at = at.checked_sub(1)?;
            let before = self.maps.get(at)?;
            if before.range.end != follows {
                return None;
            }
            if let Backing::File { .. } = before.backing {
                break before.clone();
            }
        };
        let module = self.module(&before)?;
        let bias = module.bias(before.range.start, before.offset, before.executable)?;
        let Backing::File { path, .. } = before.backing else { return None };
        module.covers(address.wrapping_sub(bias)).then_some(CodePlace::File {
            path,
            module: Some(module),
            bias,
            offset: None,
        })
    }

    /// Returns the file behind `mapping`, opened at most once.
    pub fn module(&mut self, mapping: &MapsLine) -> Option<Arc<Module>> {
        let Backing::File { path, .. } = &mapping.backing else { return None };
        let identity = (mapping.device, mapping.inode, path.clone());
        if let Some(known) = self.opened.get(&identity) {
            return known.clone();
        }
        let module = self.open(mapping, path).map(Arc::new);
        self.opened.insert(identity, module.clone());
        module
    }

    fn open(&self, mapping: &MapsLine, path: &Path) -> Option<Module> {
        // Where the plain path leads to the same file, it is the better name:
        // separate debug information is looked for next to it. In a container it leads to another one.
        if let Some((file, meta)) = open_regular(path)
            && match self.shares_files {
                true => self.is_the_mapped(mapping, &meta),
                false => is_same(mapping, &meta),
            }
        {
            return Module::open(file, path.to_owned(), false);
        }
        let pid = self.pid?;
        let range = &mapping.range;
        let kept = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
        let rooted = format!("/proc/{pid}/root{}", path.display());
        for place in [kept, rooted] {
            if let Some((file, meta)) = open_regular(Path::new(&place))
                && self.is_the_mapped(mapping, &meta)
            {
                // By descriptor, for the process may end before the file is
                // opened again.
                let name = format!("/proc/self/fd/{}", file.as_raw_fd());
                return Module::open(file, name.into(), true);
            }
        }
        None
    }

    /// Returns the inode decides where it can. File systems in layers show another one in the maps
    /// than to those who ask; there a file that has not been touched since the process began is
    /// taken for the same.
    fn is_the_mapped(&self, mapping: &MapsLine, found: &Metadata) -> bool {
        if found.ino() == mapping.inode {
            return true;
        }
        // Rounded up, and a second more: the clock of file systems is coarse.
        let touched = u64::try_from(found.ctime()).ok().map(|t| Duration::from_secs(t + 2));
        match (touched, self.started) {
            (Some(touched), Some(started)) => SystemTime::UNIX_EPOCH + touched < started,
            _ => false,
        }
    }

    /// Returns a copy of what the process has loaded around `address`, for the unwind tables in it
    /// where no file can be had; with its bias.
    pub(crate) fn copied(
        &self,
        memory: &dyn ReadableMemory,
        address: u64,
    ) -> Option<(Module, u64)> {
        let here = self.maps.find(address)?;
        let first = match &here.backing {
            Backing::Special(name) if name == "[vdso]" => here,
            Backing::File { .. } => self.maps.iter().find(|m| {
                m.offset == 0
                    && m.backing == here.backing
                    && (m.inode, m.device) == (here.inode, here.device)
            })?,
            _ => return None,
        };
        Module::from_memory(memory, first.range.start)
    }
}

/// Returns the file of the lowest mapping with code.
fn lowest_with_code(maps: &Maps) -> Option<PathBuf> {
    maps.iter().find_map(|m| match &m.backing {
        Backing::File { path, .. } if m.executable => Some(path.clone()),
        _ => None,
    })
}

/// Opens a regular file and nothing else: a device could do anything when it is opened, and a pipe
/// would wait.
fn open_regular(path: &Path) -> Option<(File, Metadata)> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    meta.is_file().then_some((file, meta))
}

/// Tells whether a process has the mounts and the root that this one has. It is taken to have them where the
/// kernel does not tell, and each file is compared then.
fn shares_files(pid: u32) -> bool {
    let mounts = |whose: &str| std::fs::read_link(format!("/proc/{whose}/ns/mnt")).ok();
    let root = |whose: &str| {
        let found = std::fs::metadata(format!("/proc/{whose}/root")).ok()?;
        Some((found.dev(), found.ino()))
    };
    let pid = pid.to_string();
    let compared = [
        mounts("self").zip(mounts(&pid)).map(|(own, its)| own == its),
        root("self").zip(root(&pid)).map(|(own, its)| own == its),
    ];
    !compared.contains(&Some(false))
}

/// Tells whether a file is the one that is mapped, by its device and number.
fn is_same(mapping: &MapsLine, found: &Metadata) -> bool {
    let device = (libc::major(found.dev()), libc::minor(found.dev()));
    found.ino() == mapping.inode && device == mapping.device
}

/// Returns when the process began, by the clock that files are dated with.
fn started(pid: u32) -> Option<SystemTime> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, also brackets and spaces.
    let after_name = &stat[stat.rfind(')')? + 1..];
    // Field 22 of the file, the 20th behind the name.
    let ticks: u64 = after_name.split_ascii_whitespace().nth(19)?.parse().ok()?;
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec for the kernel to fill.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) } != 0 {
        return None;
    }
    let up = Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?);
    let began = Duration::from_millis(ticks.checked_mul(1000)?.checked_div(per_second)?);
    SystemTime::now().checked_sub(up.checked_sub(began)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its maps were empty when they were read first, and are known afterwards.
    #[test]
    fn the_program_is_known_although_its_process_was_ending() {
        let mut ending = Modules::saved(Maps::default());
        let me = std::env::current_exe().expect("this test");
        assert!(!ending.is_main(&me));
        ending.update(Maps::of(std::process::id()).expect("those of this process"));
        assert!(ending.is_main(&me));
    }
}
