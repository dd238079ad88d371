//! The ledger of a process that a `lockstead run` somewhere watches.

use super::listener::QUESTION;
use super::mapped::MappedLedger;
use super::passing;
use crate::maps::{Backing, Maps, MapsLine};
use lockstead_ledger::hello;
use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;

/// The command answers within its next round, some milliseconds; this is for
/// one that is stopped.
const PATIENCE_MS: i32 = 5000;

/// The name that the library gives to the file of a ledger, as the maps of a
/// process show it.
const SHOWN: &str = "memfd:lockstead-";

/// Sockets of the abstract name space, which stand in this file with an `@` for
/// the zero that their names begin with.
const SOCKETS: &str = "/proc/net/unix";

/// Asks the command that runs the process `pid` for its ledger. `None` if the
/// process is under no `lockstead run`, so far as its maps tell.
///
/// A process may forbid that its maps are read. Then all the commands that are
/// there are asked.
///
/// # Errors
/// The maps of the process cannot be read and nobody knows it, the command has
/// gone or refuses, or the ledger is of another version.
pub fn attach(pid: u32) -> io::Result<Option<MappedLedger>> {
    match Maps::of(pid) {
        Ok(maps) => match maps.iter().find_map(token) {
            Some(token) => ask(&token, pid).map(Some),
            None => Ok(None),
        },
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let sockets = std::fs::read_to_string(SOCKETS).unwrap_or_default();
            tokens(&sockets)
                .find_map(|token| ask(token, pid).ok())
                .map_or(Err(error), |m| Ok(Some(m)))
        }
        Err(error) => Err(error),
    }
}

/// Asks the command with this token for the ledger of a process.
fn ask(token: &str, pid: u32) -> io::Result<MappedLedger> {
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
        Some(file) if answer == QUESTION => MappedLedger::new(file, false),
        _ => Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
    }
}

/// Returns the token of the run in the name of a mapped ledger.
fn token(mapping: &MapsLine) -> Option<String> {
    let Backing::File { path, .. } = &mapping.backing else { return None };
    let name = path.file_name()?.to_str()?;
    let token = name.strip_prefix(SHOWN)?;
    // The other memory files of lockstead are not shared, or have longer names.
    (mapping.shared && is_token(token)).then(|| token.to_owned())
}

fn is_token(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !text.is_empty() && text.len() <= hello::TOKEN && text.chars().all(plain)
}

/// Returns the tokens of all runs that listen, from the text of [`SOCKETS`].
fn tokens(sockets: &str) -> impl Iterator<Item = &str> {
    let (prefix, length) = hello::socket_name(b"");
    let names = sockets.lines().filter_map(|line| line.split_once('@')?.1.split(' ').next());
    let mut seen = HashSet::new();
    names
        .filter_map(move |name| name.strip_prefix(std::str::from_utf8(&prefix[..length]).ok()?))
        .filter(move |token| is_token(token) && seen.insert(*token))
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
    fn the_tokens_of_listening_commands_are_read_from_the_sockets() {
        let (name, length) = hello::socket_name(b"00c0ffee");
        let name = String::from_utf8_lossy(&name[..length]).into_owned();
        let line = |path: &str| format!("0: 00000002 0 00010000 0005 01 99 {path}\n");
        let text = [
            "Num RefCount Protocol Flags Type St Inode Path\n".into(),
            line(&format!("@{name}")),
            line(&format!("@{name}")),
            line("@other"),
            line("/run/@socket"),
            line(""),
        ]
        .concat();
        assert_eq!(tokens(&text).collect::<Vec<_>>(), ["00c0ffee"]);
    }

    #[test]
    fn a_process_under_no_run_has_no_ledger() {
        assert!(attach(std::process::id()).expect("maps are readable").is_none());
        assert!(attach(u32::MAX).is_err());
    }
}
