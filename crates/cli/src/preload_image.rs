//! The library that `run` puts under a program: embedded in the command, and
//! as a file that the dynamic loader of the program and of all its descendants
//! can read and map.
//!
//! A descendant may be another user's, have closed all descriptors it
//! inherited, or have another directory for temporary files; so it is a plain
//! file with a path of its own, readable by all, in a directory that others can
//! reach where there is one. A file system that is mounted without the right to
//! execute would make the loader of every descendant complain, which is why
//! each place is tried out first.
//!
//! A descendant may also outlive the command, and start programs then; their
//! loader would complain if the file were gone. So it stays, one for each user
//! and version of the library, and serves all runs.

use lockstead_ledger::hello;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A library, and what tells it from others.
#[derive(Clone, Copy)]
struct LibraryImage {
    bytes: &'static [u8],
    version: &'static str,
}

/// The library that observes, and the one that checks as well, on targets that
/// have them.
#[cfg(preload_image)]
const IMAGES: Option<[LibraryImage; 2]> = Some([
    LibraryImage {
        bytes: include_bytes!(env!("LOCKSTEAD_PRELOAD_IMAGE")),
        version: env!("LOCKSTEAD_PRELOAD_HASH"),
    },
    LibraryImage {
        bytes: include_bytes!(env!("LOCKSTEAD_CHECK_IMAGE")),
        version: env!("LOCKSTEAD_CHECK_HASH"),
    },
]);
#[cfg(not(preload_image))]
const IMAGES: Option<[LibraryImage; 2]> = None;

/// The library as a file.
#[derive(Debug)]
pub(crate) struct PreloadImage {
    path: PathBuf,
    /// The descriptor of a file in memory, which goes with the command.
    memory: Option<OwnedFd>,
}

impl PreloadImage {
    /// Puts the library where programs can load it: the one that observes, or
    /// the one that checks.
    ///
    /// # Errors
    /// There is none for this target, or no place to put it; the message says
    /// what to do.
    pub(crate) fn install(checks: bool) -> Result<PreloadImage, String> {
        let [observes, check] = IMAGES.ok_or_else(without)?;
        install_in(&places(), if checks { check } else { observes })
    }

    /// Returns the file's absolute path, without any character that would end it in `LD_PRELOAD`.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory that the library lies in, if it lies in one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        if self.memory.is_some() { None } else { self.path.parent() }
    }
}

/// Returns the library that observes, for a process that runs already: nothing in it runs when it is
/// loaded, and it does not come before the libraries that are there.
///
/// # Errors
/// There is none for this target.
pub(crate) fn to_be_loaded_late() -> Result<Vec<u8>, String> {
    let [observes, _] = IMAGES.ok_or_else(without)?;
    let mut bytes = observes.bytes.to_vec();
    match be_late(&mut bytes) {
        Some(()) => Ok(bytes),
        None => Err("the library that this command was built with is damaged".into()),
    }
}

/// Takes the constructor out of a library, and the wish to be the first.
fn be_late(bytes: &mut [u8]) -> Option<()> {
    const DYNAMIC: u64 = 2;
    const CONSTRUCTORS_SIZE: u64 = 27;
    const FLAGS: u64 = 0x6fff_fffb;
    const FIRST: u64 = 0x20;
    let word =
        |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?));
    let (headers, count) = (word(bytes, 32)? as usize, word(bytes, 56)? & 0xffff);
    let headers = (0..count as usize).map(|index| headers + index * 56);
    let mut dynamic =
        headers.filter(|&at| word(bytes, at).is_some_and(|kind| kind & 0xffff_ffff == DYNAMIC));
    let mut at = word(bytes, dynamic.next()? + 8)? as usize;
    let mut found = 0;
    loop {
        let value = match (word(bytes, at)?, word(bytes, at + 8)?) {
            (0, _) => return (found == 2).then_some(()),
            (CONSTRUCTORS_SIZE, _) => Some(0),
            (FLAGS, flags) => Some(flags & !FIRST),
            _ => None,
        };
        if let Some(value) = value {
            bytes[at + 8..at + 16].copy_from_slice(&value.to_le_bytes());
            found += 1;
        }
        at += 16;
    }
}

fn without() -> String {
    format!(
        "this command was built without the library for `run`: it exists for \
         Linux with glibc on x86-64 and aarch64, and this is {}-{}; `lockstead dump PID` works",
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}

fn install_in(places: &[PathBuf], image: LibraryImage) -> Result<PreloadImage, String> {
    let mut failures = Vec::new();
    for place in places {
        match in_directory(place, image) {
            Ok(installed) => return Ok(installed),
            Err(error) => failures.push(format!("{}: {error}", place.display())),
        }
    }
    match in_memory(image.bytes) {
        Ok(installed) => Ok(installed),
        Err(error) => Err(format!(
            "no place to put the library that goes under the program ({}; in memory: {error}); \
             set TMPDIR to a directory that allows execution",
            failures.join("; ")
        )),
    }
}

/// Returns the directories to try, those first that other users can reach.
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

/// Returns whether the loader would take the path as it is: it splits the list at colons and spaces
/// and replaces names after a dollar sign.
fn loadable(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b": \t\n$".contains(byte))
}

fn reachable_by_others(path: &Path) -> bool {
    path.ancestors().all(|directory| {
        directory.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    })
}

fn in_directory(place: &Path, image: LibraryImage) -> io::Result<PreloadImage> {
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let user = unsafe { libc::geteuid() };
    let directory = place.join(format!("lockstead-{user}-{}", image.version));
    let path = directory.join(hello::LIBRARY);
    if !(is_safe(&directory, user) && is_safe(&path, user) && fs::read(&path)? == image.bytes) {
        publish(place, &directory, user, image.bytes)?;
    }
    try_out(&fs::File::open(&path)?)?;
    Ok(PreloadImage { path, memory: None })
}

/// Puts the library into `directory`, below `place`: all at once, for other
/// commands may do the same at this moment.
fn publish(place: &Path, directory: &Path, user: u32, bytes: &[u8]) -> io::Result<()> {
    let new = tempfile::Builder::new().prefix(".lockstead-").tempdir_in(place)?;
    let file = new.path().join(hello::LIBRARY);
    fs::write(&file, bytes)?;
    // Whatever the user's mask is.
    for path in [&*file, new.path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    // Nothing is left where it would not do.
    try_out(&fs::File::open(&file)?)?;
    // Replaces an empty directory only.
    if fs::rename(new.path(), directory).is_ok() {
        let _ = new.keep();
        return Ok(());
    }
    if !is_safe(directory, user) {
        let why = format!("{} is not this user's alone", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    fs::rename(&file, directory.join(hello::LIBRARY))
}

/// Returns whether nobody else can change what is there.
fn is_safe(path: &Path, user: u32) -> bool {
    let Ok(facts) = path.symlink_metadata() else { return false };
    !facts.is_symlink() && facts.uid() == user && facts.permissions().mode() & 0o022 == 0
}

/// Makes a file in memory, where no directory will do. Processes of the same user find it through
/// this process as long as it lives.
fn in_memory(image: &[u8]) -> io::Result<PreloadImage> {
    // SAFETY: the name is zero-terminated; the descriptor is checked, and nobody else has it.
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
    Ok(PreloadImage { path, memory: Some(file) })
}

/// Maps the file as the loader will.
fn try_out(file: &impl AsRawFd) -> io::Result<()> {
    const LENGTH: usize = 4096;
    // SAFETY: the call makes a new private mapping at an address that the kernel chooses; it is
    // never accessed and given back at once.
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

/// Returns `LD_PRELOAD` for a program: the library first, then what was there.
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
    const IMAGE: LibraryImage = LibraryImage { bytes: BYTES, version: "0123" };

    fn entries(place: &Path) -> usize {
        fs::read_dir(place).expect("readable").count()
    }

    #[test]
    fn the_file_is_there_for_everybody_and_all_runs() {
        let place = tempfile::tempdir().expect("a directory");
        let install = || install_in(&[place.path().to_owned()], IMAGE).expect("installed");
        let path = install().path().to_owned();
        assert!(path.starts_with(place.path()));
        assert_eq!(fs::read(&path).expect("readable"), BYTES);
        for path in [&*path, path.parent().expect("its directory")] {
            let mode = path.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o755, "{}", path.display());
        }
        let made = path.metadata().expect("there").ino();
        assert_eq!(install().path(), path);
        assert_eq!(path.metadata().expect("there").ino(), made, "made once");
        assert_eq!(entries(place.path()), 1);
    }

    #[test]
    fn what_is_damaged_or_was_removed_is_made_anew() {
        let place = tempfile::tempdir().expect("a directory");
        let install = || install_in(&[place.path().to_owned()], IMAGE).expect("installed");
        let path = install().path().to_owned();
        let damage: [&dyn Fn(); 4] = [
            &|| fs::write(&path, b"damaged").expect("written"),
            &|| fs::remove_file(&path).expect("removed"),
            &|| fs::remove_dir_all(path.parent().expect("there")).expect("removed"),
            &|| {
                fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("anybody's");
                fs::write(path.with_file_name("socket-1"), b"").expect("written");
            },
        ];
        for damage in damage {
            damage();
            assert_eq!(install().path(), path);
            assert_eq!(fs::read(&path).expect("readable"), BYTES);
            assert_eq!(path.metadata().expect("there").permissions().mode() & 0o022, 0);
            assert_eq!(entries(place.path()), 1);
        }
    }

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        let [place, next] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let places = [place.path().to_owned(), next.path().to_owned()];
        let path = install_in(&places, IMAGE).expect("installed").path().to_owned();
        let directory = path.parent().expect("there");
        fs::set_permissions(directory, Permissions::from_mode(0o777)).expect("anybody's");
        let image = install_in(&places, IMAGE).expect("installed");
        assert!(image.path().starts_with(next.path()));
        assert_eq!(entries(place.path()), 1);
    }

    #[test]
    fn a_place_that_will_not_do_is_passed_over() {
        let place = tempfile::tempdir().expect("a directory");
        let missing = place.path().join("missing");
        let image = install_in(&[missing, place.path().to_owned()], IMAGE).expect("installed");
        assert!(image.path().starts_with(place.path()));
    }

    #[test]
    fn without_any_place_the_file_is_in_memory() {
        let image = match install_in(&[], IMAGE) {
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
        let place = tempfile::tempdir().expect("a directory");
        let image = install_in(&[place.path().to_owned()], IMAGE).expect("installed");
        let path = image.path().display();
        assert_eq!(ld_preload(&image, None), *format!("{path}"));
        assert_eq!(ld_preload(&image, Some("".as_ref())), *format!("{path}"));
        assert_eq!(ld_preload(&image, Some("/x.so y.so".as_ref())), *format!("{path}:/x.so y.so"));
    }
}
