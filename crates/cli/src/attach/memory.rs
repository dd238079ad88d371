//! The memory of the process, to be written as well: also where it may only be read there.

use lockstead_inspect::memory::ReadableMemory;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The memory of one process.
#[derive(Debug)]
pub(super) struct TargetMemory {
    file: File,
}

impl TargetMemory {
    /// Opens the memory of the process `pid`.
    ///
    /// # Errors
    /// It has ended, or may not be traced.
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(TargetMemory { file })
    }

    /// Writes all of `bytes`. No thread of the process may run that uses them.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, address)
    }

    /// Writes a word of eight bytes at this address.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn write_u64(&self, address: u64, word: u64) -> io::Result<()> {
        self.write(address, &word.to_ne_bytes())
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    /// There are not so many.
    pub(super) fn bytes(&self, address: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    /// Reads a text that ends with a zero, at most `most` bytes of it.
    pub(super) fn text(&self, address: u64, most: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < most {
            // To the end of the page: what follows may not be there.
            let chunk = (4096 - (at % 4096) as usize).min(256);
            let bytes = self.bytes(at, chunk).ok()?;
            if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&bytes[..end]);
                return Some(text);
            }
            text.extend_from_slice(&bytes);
            at += chunk as u64;
        }
        None
    }
}

impl ReadableMemory for TargetMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, address)
    }
}
