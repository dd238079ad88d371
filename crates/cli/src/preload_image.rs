//! The library that `run` puts under a program: embedded in the command, and
//! for the time of a run a file that the dynamic loader of the program and of
//! all its descendants can read and map.
//!
//! A descendant may be another user's, have closed all descriptors it
//! inherited, or have another directory for temporary files; so it is a plain
//! file with a path of its own, readable by all, in a directory that others can
//! reach where there is one. A file system that is mounted without the right to
//! execute would make the loader of every descendant complain, which is why
//! each place is tried out first.

use lockstead_ledger::hello;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The library's bytes, on targets that have one.
#[cfg(preload_image)]
const IMAGE: Option<&[u8]> = Some(include_bytes!(env!("LOCKSTEAD_PRELOAD_IMAGE")));
#[cfg(not(preload_image))]
const IMAGE: Option<&[u8]> = None;

/// The library as a file; gone when this goes.
#[derive(Debug)]
pub(crate) struct PreloadImage {
    path: PathBuf,
    /// Removed, or closed, with the image.
    keeper: Keeper,
}

#[derive(Debug)]
enum Keeper {
    Directory { _directory: TempDir },
    Memory { _file: OwnedFd },
}

impl PreloadImage {
    /// Puts the library where programs can load it.
    ///
    /// # Errors
    /// There is none for this target, or no place to put it; the message says
    /// what to do.
    pub(crate) fn install() -> Result<PreloadImage, String> {
        let image = IMAGE.ok_or_else(|| {
            format!(
                "this command was built without the library for `run`: it exists for \
                 x86-64 Linux with glibc, and this is {}-{}; `lockstead dump PID` works",
                std::env::consts::ARCH,
                std::env::consts::OS
            )
        })?;
        install_in(&places(), image)
    }

    /// The file's absolute path, without any character that would end it in
    /// `LD_PRELOAD`.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the library expects a socket, if there is such a place.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        match self.keeper {
            Keeper::Directory { .. } => Some(self.path.with_file_name(hello::SOCKET)),
            Keeper::Memory { .. } => None,
        }
    }
}

fn install_in(places: &[PathBuf], image: &[u8]) -> Result<PreloadImage, String> {
    let mut failures = Vec::new();
    for place in places {
        match in_directory(place, image) {
            Ok(installed) => return Ok(installed),
            Err(error) => failures.push(format!("{}: {error}", place.display())),
        }
    }
    match in_memory(image) {
        Ok(installed) => Ok(installed),
        Err(error) => Err(format!(
            "no place to put the library that goes under the program ({}; in memory: {error}); \
             set TMPDIR to a directory that allows execution",
            failures.join("; ")
        )),
    }
}

/// Directories to try, those first that other users can reach.
fn places() -> Vec<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    let mut places = vec![
        std::env::temp_dir(),
        "/tmp".into(),
        "/var/tmp".into(),
        "/dev/shm".into(),
        "/run".into(),
    ];
    places.extend(named("XDG_RUNTIME_DIR"));
    places.extend(named("XDG_CACHE_HOME"));
    places.extend(named("HOME").map(|home| home.join(".cache")));
    places.extend(std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned())));
    let mut places: Vec<_> = places
        .iter()
        .filter_map(|place| place.canonicalize().ok())
        .filter(|p| loadable(p))
        .collect();
    places.sort_by_key(|place| !reachable_by_others(place));
    places
}

/// Whether the loader would take the path as it is: it splits the list at
/// colons and spaces and replaces names after a dollar sign.
fn loadable(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b": \t\n$".contains(byte))
}

fn reachable_by_others(path: &Path) -> bool {
    path.ancestors().all(|directory| {
        directory.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    })
}

fn in_directory(place: &Path, image: &[u8]) -> io::Result<PreloadImage> {
    let directory = tempfile::Builder::new()
        .prefix("lockstead-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(place)?;
    let path = directory.path().join(hello::LIBRARY);
    fs::write(&path, image)?;
    // Whatever the user's mask is.
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    try_out(&fs::File::open(&path)?)?;
    Ok(PreloadImage { path, keeper: Keeper::Directory { _directory: directory } })
}

/// Where no directory will do: a file in memory, which is found through this
/// process as long as it lives, by processes of the same user.
fn in_memory(image: &[u8]) -> io::Result<PreloadImage> {
    // SAFETY: a zero-terminated name; the result is checked, and owned.
    let file = unsafe {
        let descriptor = libc::memfd_create(c"lockstead-preload".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(descriptor)
    };
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    fs::write(&path, image)?;
    try_out(&file)?;
    Ok(PreloadImage { path, keeper: Keeper::Memory { _file: file } })
}

/// Maps the file as the loader will.
fn try_out(file: &impl AsRawFd) -> io::Result<()> {
    const LENGTH: usize = 4096;
    // SAFETY: a new private mapping at an address that the kernel chooses, never
    // accessed and given back at once.
    unsafe {
        let mapping = libc::mmap(
            std::ptr::null_mut(),
            LENGTH,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::munmap(mapping, LENGTH);
    }
    Ok(())
}

/// `LD_PRELOAD` for a program: the library first, then what was there.
pub(crate) fn ld_preload(image: &PreloadImage, before: Option<&OsStr>) -> std::ffi::OsString {
    let mut list = image.path().as_os_str().to_owned();
    if let Some(others) = before.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = &[0x7f; 5000];

    #[test]
    fn the_file_is_there_for_everybody_and_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let image = install_in(&[place.path().to_owned()], BYTES).expect("installed");
        let path = image.path().to_owned();
        assert!(path.starts_with(place.path()));
        assert_eq!(fs::read(&path).expect("readable"), BYTES);
        for path in [&*path, path.parent().expect("its directory")] {
            let mode = path.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o755, "{}", path.display());
        }
        drop(image);
        assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_place_that_will_not_do_is_passed_over() {
        let place = tempfile::tempdir().expect("a directory");
        let missing = place.path().join("missing");
        let image = install_in(&[missing, place.path().to_owned()], BYTES).expect("installed");
        assert!(image.path().starts_with(place.path()));
    }

    #[test]
    fn without_any_place_the_file_is_in_memory() {
        let image = match install_in(&[], BYTES) {
            Ok(image) => image,
            Err(reason) => {
                eprintln!("skipped: this kernel maps no memory file for execution: {reason}");
                return;
            }
        };
        assert!(image.path().starts_with("/proc"));
        assert_eq!(fs::read(image.path()).expect("readable"), BYTES);
    }

    #[test]
    fn the_loader_takes_all_places() {
        for place in places() {
            assert!(place.is_absolute() && loadable(&place), "{}", place.display());
        }
        assert!(!loadable(Path::new("/a b")) && !loadable(Path::new("/a:b")));
        assert!(!loadable(Path::new("/$LIB")));
    }

    #[test]
    fn the_list_keeps_what_was_there() {
        let image = install_in(&[std::env::temp_dir()], BYTES).expect("installed");
        let path = image.path().display();
        assert_eq!(ld_preload(&image, None), *format!("{path}"));
        assert_eq!(ld_preload(&image, Some("".as_ref())), *format!("{path}"));
        assert_eq!(ld_preload(&image, Some("/x.so y.so".as_ref())), *format!("{path}:/x.so y.so"));
    }
}
