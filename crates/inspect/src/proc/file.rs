//! Reading the small files of `/proc`.
//!
//! # Role
//! They have no length that could be asked for, and most are a line: one buffer
//! and two calls, where the standard library asks for the size and feels its way
//! up. It counts where each of a thousand threads has several files.

use std::fs::File;
use std::io::{self, Read};

/// Returns the whole file.
///
/// # Errors
/// As the system says; a file of a process that has ended may open and not be
/// readable.
pub(super) fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 2048];
    let mut file = File::open(path)?;
    let mut all = Vec::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(all),
            Ok(length) => all.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_length_are_read_whole() {
        let maps = read("/proc/self/smaps").expect("one's own");
        assert!(maps.len() > 2048 && maps.ends_with(b"\n"), "{}", maps.len());
        assert_eq!(read("/proc/self/comm").ok(), std::fs::read("/proc/self/comm").ok());
        assert_eq!(read("/proc/absent").expect_err("absent").kind(), io::ErrorKind::NotFound);
    }
}
