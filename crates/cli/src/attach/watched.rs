//! The mark that a command watches a process, for commands of other network namespaces.
//!
//! # Role
//! Commands find each other by a socket, which is seen in one network namespace. The ledger's file is
//! the same wherever one stands: who watches the process has it locked, and with the end of that
//! command, however it comes, the lock is gone. The kernel shows the files that a process has mapped to
//! the privileged only; for others there is the socket alone.

use lockstead_inspect::maps::{Backing, Maps, MapsLine};
use lockstead_inspect::proc::shown::shown_as;
use std::fs::{File, TryLockError};
use std::time::Duration;

/// How often the lock is asked for, and the time in between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The name that a ledger's file has in the maps of a process.
const LEDGER: &str = "/memfd:lockstead-";

/// The lock of a ledger's file, held as long as this lives.
#[derive(Debug)]
pub(super) struct Watched(#[expect(dead_code, reason = "it is held, and closed at the end")] File);

impl Watched {
    /// Locks the file of the ledger that is at `path`, where that can be. It is opened anew, for a copy
    /// of the other descriptor may be given to commands that outlive this one.
    pub(super) fn mark(path: &str) -> Option<Watched> {
        let file = File::open(path).ok()?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Some(Watched(file)),
                // Another command asks just now, by locking the file, whether somebody watches.
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(_)) => return None,
            }
        }
        None
    }
}

/// Tells whether a command watches the process of these maps, as far as may be seen.
pub(super) fn is_watched(pid: u32, maps: &Maps) -> bool {
    let is_ledger = |mapping: &&MapsLine| {
        let Backing::File { path, .. } = &mapping.backing else { return false };
        mapping.shared && path.to_string_lossy().starts_with(LEDGER)
    };
    maps.iter().filter(is_ledger).any(|mapping| {
        let range = &mapping.range;
        let path = format!("/proc/{}/map_files/{:x}-{:x}", shown_as(pid), range.start, range.end);
        let locked = File::open(path).map(|file| file.try_lock());
        matches!(locked, Ok(Err(TryLockError::WouldBlock)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_marked_though_somebody_asks_meanwhile() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("text").to_owned();
        let asks = File::open(&path).expect("it is there");
        asks.try_lock().expect("nobody has it");
        std::thread::scope(|scope| {
            let marks = scope.spawn(|| Watched::mark(&path));
            // The other one comes for it before or after this: it gets it either way.
            drop(asks);
            let marked = marks.join().expect("no panic");
            assert!(marked.is_some());
            assert!(Watched::mark(&path).is_none(), "one command alone");
        });
    }
}
