//! What the tests share.

#[path = "../common/watchdog.rs"]
mod watchdog;
#[path = "../common/watched.rs"]
mod watched;

use lockstead::shared::{Segment, SegmentOptions, Shareable};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
pub(crate) use watchdog::Watchdog;
pub(crate) use watched::Watched;

/// Calls `probe` until it is true.
#[track_caller]
pub(crate) fn eventually(mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !probe() {
        assert!(Instant::now() < end, "it never was");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A folder that is removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes one on the file system of the system's temporary files.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockstead-shared-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a segment in memory with this root.
pub(crate) fn segment<T: Shareable>() -> Segment<T> {
    Segment::memfd("test", &SegmentOptions::new()).expect("a segment")
}

/// Numbers that look random, the same ones for each seed (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Tells whether `told` is, of several times, true in less than the second after which a sleeper
/// looks again by itself.
pub(crate) fn before_it_looks_again(mut told: impl FnMut() -> Instant) -> bool {
    (0..10).any(|_| told().elapsed() < Duration::from_millis(500))
}
