//! The ledger of a process that a `lockstead run` somewhere watches.

use super::listener::QUESTION;
use super::mapped::Mapped;
use super::passing;
use crate::maps::{Backing, Mapping, Maps};
use lockstead_ledger::hello;
use std::io;
use std::os::fd::AsFd;

/// The command answers within its next round, some milliseconds; this is for
/// one that is stopped.
const PATIENCE_MS: i32 = 5000;

/// The name that the library gives to the file of a ledger, as the maps of a
/// process show it.
const SHOWN: &str = "memfd:lockstead-";

/// Asks the command that runs the process `pid` for its ledger. `None` if the
/// process is under no `lockstead run`, so far as its maps tell.
///
/// # Errors
/// The maps of the process cannot be read, the command has gone or refuses, or
/// the ledger is of another version.
pub fn attach(pid: u32) -> io::Result<Option<Mapped>> {
    let maps = Maps::of(pid)?;
    let Some(token) = maps.iter().find_map(token) else { return Ok(None) };
    let (name, length) = hello::socket_name(token.as_bytes());
    let connection = passing::connect(&name[..length]).map_err(|error| {
        let text = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "the `lockstead run` that watched the process has gone".to_owned()
            }
            _ => format!("cannot reach the `lockstead run` that watches the process: {error}"),
        };
        io::Error::new(error.kind(), text)
    })?;
    let question = [QUESTION.as_slice(), &pid.to_le_bytes()].concat();
    passing::send(connection.as_fd(), &question, None)?;
    if !passing::wait_readable(connection.as_fd(), PATIENCE_MS)? {
        let text = "the `lockstead run` that watches the process does not answer";
        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
    }
    let (answer, file) = passing::receive(connection.as_fd())?;
    match file {
        Some(file) if answer == QUESTION => Mapped::new(file, false).map(Some),
        _ => Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
    }
}

/// The token of the run in the name of a mapped ledger.
fn token(mapping: &Mapping) -> Option<String> {
    let Backing::File { path, .. } = &mapping.backing else { return None };
    let name = path.file_name()?.to_str()?;
    let token = name.strip_prefix(SHOWN)?;
    // The other memory files of lockstead are not shared, or have longer names.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (mapping.shared && !token.is_empty() && token.len() <= hello::TOKEN && token.chars().all(plain))
        .then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_read_from_the_maps() {
        let of = |line: &str| Maps::parse(line.as_bytes()).iter().find_map(token);
        let line = |flags: &str, name: &str| format!("7f00-7f10 {flags} 00000000 00:01 5 {name}\n");
        let name = "/memfd:lockstead-00c0ffee (deleted)";
        assert_eq!(of(&line("rw-s", name)), Some("00c0ffee".into()));
        assert_eq!(of(&line("r-xp", name)), None);
        assert_eq!(of(&line("rw-s", "/memfd:lockstead-lib.so (deleted)")), None);
        assert_eq!(of(&line("rw-s", "/memfd:other (deleted)")), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_process_under_no_run_has_no_ledger() {
        assert!(attach(std::process::id()).expect("maps are readable").is_none());
        assert!(attach(u32::MAX).is_err());
    }
}
