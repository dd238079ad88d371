//! The files whose code and data a ledger's addresses lie in, so that they can
//! be named when the process has ended or unloaded them.

use core::sync::atomic::{AtomicU64, Ordering};

/// The longest path that is recorded, in bytes; a longer one is cut at its front.
pub const PATH: usize = 448;

/// One file that was mapped for execution.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleRecord {
    /// The first address, which is stored last: 0 in a record that is not complete.
    pub start: AtomicU64,
    /// The address after the last.
    pub end: AtomicU64,
    /// What the loader added to the addresses in the file.
    pub bias: AtomicU64,
    /// The value of [`LedgerHeader::unloads`](crate::LedgerHeader::unloads) when the module was
    /// last seen at its place.
    pub unloads: AtomicU64,
    /// The bytes of the path; 0 for the program itself.
    pub path_length: AtomicU64,
    spare: [AtomicU64; 3],
    path: [AtomicU64; PATH / 8],
}

const _: () = assert!(size_of::<ModuleRecord>() == 512);

impl ModuleRecord {
    /// Writes the record. Only the thread that claimed it calls this.
    pub fn write(&self, start: u64, end: u64, bias: u64, unloads: u64, path: &[u8]) {
        let path = &path[path.len().saturating_sub(PATH)..];
        self.end.store(end, Ordering::Relaxed);
        self.bias.store(bias, Ordering::Relaxed);
        self.unloads.store(unloads, Ordering::Relaxed);
        self.path_length.store(path.len() as u64, Ordering::Relaxed);
        for (word, bytes) in self.path.iter().zip(path.chunks(8)) {
            let mut full = [0; 8];
            full[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(full), Ordering::Relaxed);
        }
        // ord: LED-6 (release): publishes the record.
        self.start.store(start, Ordering::Release);
    }

    /// Tells whether the record is of this file at this place.
    #[must_use]
    pub fn is_of(&self, start: u64, end: u64, bias: u64, path: &[u8]) -> bool {
        let path = &path[path.len().saturating_sub(PATH)..];
        // Without a copy: the caller's stack may be small.
        let is = |(bytes, word): (&[u8], &AtomicU64)| {
            word.load(Ordering::Relaxed).to_le_bytes().starts_with(bytes)
        };
        // ord: LED-6 (acquire): the record.
        self.start.load(Ordering::Acquire) == start
            && self.end.load(Ordering::Relaxed) == end
            && self.bias.load(Ordering::Relaxed) == bias
            && self.path_length.load(Ordering::Relaxed) == path.len() as u64
            && path.chunks(8).zip(&self.path).all(is)
    }

    /// Returns the path, which is copied into `buffer`.
    #[must_use]
    pub fn path<'b>(&self, buffer: &'b mut [u8; PATH]) -> &'b [u8] {
        for (bytes, word) in buffer.chunks_mut(8).zip(&self.path) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        &buffer[..(self.path_length.load(Ordering::Relaxed) as usize).min(PATH)]
    }
}
