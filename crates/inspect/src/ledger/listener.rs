//! The command's end of the socket.
//!
//! # Role
//! Takes in the ledgers of the processes of a run, and gives them out to other
//! commands that ask for one (`lockstead dump`, `lockstead top`). A caller is
//! believed nothing but what the kernel says of it.

use super::passing::{self, Peer};
use lockstead_ledger::hello::{self, Hello};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// First bytes of the question for a ledger; the process id follows, in the
/// namespace of the command that is asked.
pub(super) const QUESTION: &[u8; 8] = b"lsLedger";

/// A caller that says nothing for so long is hung up on.
const SILENCE: Duration = Duration::from_secs(10);

/// Listens for the processes of one run.
#[derive(Debug)]
pub struct Listener {
    /// For those that the abstract one is hidden from.
    beside: Option<OwnedFd>,
    socket: OwnedFd,
    token: String,
    open: Vec<(OwnedFd, Peer, Instant)>,
}

/// What a caller wants.
#[derive(Debug)]
pub enum Call {
    /// A process hands over its ledger.
    Hello {
        /// What it says of itself.
        hello: Box<Hello>,
        /// The ledger's file.
        file: OwnedFd,
        /// Who it is.
        peer: Peer,
    },
    /// Somebody asks for the ledger of a process.
    Question {
        /// Whose.
        pid: u32,
        /// Who asks, and where to answer.
        caller: Caller,
    },
}

/// Somebody who waits for an answer.
#[derive(Debug)]
pub struct Caller {
    connection: OwnedFd,
    /// Who it is.
    pub peer: Peer,
}

impl Caller {
    /// Gives the ledger. That the caller has gone is its own affair.
    pub fn give(&self, file: BorrowedFd<'_>) {
        let _ = passing::send(self.connection.as_fd(), QUESTION, Some(file));
    }

    /// Says why there is none.
    pub fn refuse(&self, why: &str) {
        let _ = passing::send(self.connection.as_fd(), why.as_bytes(), None);
    }
}

impl Listener {
    /// Listens under a name that nobody else has.
    ///
    /// # Errors
    /// No random number or no socket can be had.
    pub fn new() -> io::Result<Listener> {
        let mut random = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token = format!("{:016x}", u64::from_ne_bytes(random));
        let (name, length) = hello::socket_name(token.as_bytes());
        let socket = passing::listen(&name[..length])?;
        Ok(Listener { beside: None, socket, token, open: Vec::new() })
    }

    /// Listens at a path too, which is reached from other network namespaces.
    /// The file stays when the listener goes.
    ///
    /// # Errors
    /// As of `bind`.
    pub fn listen_beside(&mut self, path: &Path) -> io::Result<()> {
        self.beside = Some(passing::listen_at(path)?);
        // Processes of the run may become other users; who calls is checked.
        fs::set_permissions(path, fs::Permissions::from_mode(0o777))
    }

    /// What tells this run from all others.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The descriptors of which one becomes readable when somebody calls.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = self.beside.iter().chain([&self.socket]).map(AsFd::as_fd);
        own.chain(self.open.iter().map(|(open, ..)| open.as_fd()))
    }

    /// The next caller, at either socket.
    fn accept(&self) -> io::Result<OwnedFd> {
        match self.beside.as_ref().map(|socket| passing::accept(socket.as_fd())) {
            Some(Ok(caller)) => Ok(caller),
            Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => passing::accept(self.socket.as_fd()),
        }
    }

    /// All calls that are there.
    pub fn calls(&mut self) -> Vec<Call> {
        while let Ok(connection) = self.accept() {
            if let Ok(peer) = passing::peer(connection.as_fd()) {
                self.open.push((connection, peer, Instant::now()));
            }
        }
        let mut calls = Vec::new();
        for (connection, peer, since) in std::mem::take(&mut self.open) {
            match passing::receive(connection.as_fd()) {
                Ok((message, file)) => calls.extend(understand(&message, file, peer, connection)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if since.elapsed() < SILENCE {
                        self.open.push((connection, peer, since));
                    }
                }
                Err(_) => {}
            }
        }
        calls
    }
}

fn understand(
    message: &[u8],
    file: Option<OwnedFd>,
    peer: Peer,
    connection: OwnedFd,
) -> Option<Call> {
    if let (Some(hello), Some(file)) = (Hello::from_bytes(message), file) {
        return Some(Call::Hello { hello: Box::new(hello), file, peer });
    }
    let pid = message.strip_prefix(QUESTION)?;
    let pid = u32::from_le_bytes(pid.try_into().ok()?);
    Some(Call::Question { pid, caller: Caller { connection, peer } })
}
