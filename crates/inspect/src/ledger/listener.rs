//! The command's end of the socket.
//!
//! # Role
//! Takes in the ledgers of the processes of a run, and gives them out to other
//! commands that ask for one (`lockstead dump`, `lockstead top`). A caller is
//! believed nothing but what the kernel says of it.

use super::passing::{self, SocketPeer};
use lockstead_ledger::hello::{self, Hello};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// First bytes of the question for a ledger; the process id follows, in the
/// namespace of the command that is asked.
pub(super) const QUESTION: &[u8; 8] = b"lsLedger";

/// A caller that says nothing for so long is hung up on, and is [`CallerRequest::Lost`].
const SILENCE: Duration = Duration::from_secs(10);

/// A socket in the file system, which goes with the command.
#[derive(Debug)]
struct FileSocket {
    socket: OwnedFd,
    path: PathBuf,
}

impl Drop for FileSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens for the processes of one run.
#[derive(Debug)]
pub struct Listener {
    /// A second socket, with a name in the file system, for those that cannot see the abstract one.
    beside: Option<FileSocket>,
    socket: OwnedFd,
    token: String,
    open: Vec<(OwnedFd, SocketPeer, Instant)>,
    /// The descriptor that is given up for a caller when there is no other descriptor left: somebody
    /// who is not heard would call for ever.
    spare: Option<File>,
}

/// What a caller wants.
#[derive(Debug)]
pub enum CallerRequest {
    /// A process hands over its ledger.
    Hello {
        /// The message by which the process names itself.
        hello: Box<Hello>,
        /// The file that the ledger lies in.
        file: OwnedFd,
        /// The process at the other end.
        peer: SocketPeer,
    },
    /// A process could not make a ledger.
    Without {
        /// What it says of itself, and why.
        hello: Box<Hello>,
        /// The process at the other end.
        peer: SocketPeer,
    },
    /// A process could not hand over its ledger.
    Lost {
        /// The process at the other end.
        peer: SocketPeer,
        /// The reason, from the system.
        error: io::Error,
    },
    /// Somebody asks for the ledger of a process.
    Question {
        /// The process that it is about.
        pid: u32,
        /// The process that asks, and the connection for the answer.
        caller: WaitingCaller,
    },
}

/// Somebody who waits for an answer.
#[derive(Debug)]
pub struct WaitingCaller {
    connection: OwnedFd,
    /// The process at the other end.
    pub peer: SocketPeer,
}

impl WaitingCaller {
    /// Gives the ledger. That the caller has gone is its own affair.
    pub fn give(&self, file: BorrowedFd<'_>) {
        let _ = passing::send(self.connection.as_fd(), QUESTION, Some(file));
    }

    /// Says why there is none.
    pub fn refuse(&self, why: &str) {
        let _ = passing::send(self.connection.as_fd(), why.as_bytes(), None);
    }
}

/// Returns a number that nobody can guess, also where there is no `/dev`.
fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: the kernel writes at most that many bytes into `bytes`, which are borrowed exclusively.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    // So few come whole, or none.
    if usize::try_from(got) == Ok(bytes.len()) {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

impl Listener {
    /// Listens under a name that nobody else has.
    ///
    /// # Errors
    /// No random number or no socket can be had.
    pub fn new() -> io::Result<Listener> {
        let token = format!("{:016x}", random()?);
        let (name, length) = hello::socket_name(token.as_bytes());
        let socket = passing::listen(&name[..length])?;
        Ok(Listener { beside: None, socket, token, open: Vec::new(), spare: spare() })
    }

    /// Listens in a directory too, which is reached from other network
    /// namespaces; and removes what commands have left there that were killed.
    ///
    /// # Errors
    /// As of `bind`.
    pub fn listen_in(&mut self, directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_socket = entry.file_name().to_string_lossy().starts_with(hello::SOCKET);
            if is_socket && passing::is_deserted(&entry.path()) {
                // Another command may be faster.
                let _ = fs::remove_file(entry.path());
            }
        }
        // Under another name until somebody listens, lest it looks deserted.
        let path = directory.join(format!("new-{}", self.token));
        let socket = passing::listen_at(&path)?;
        let mut beside = FileSocket { socket, path };
        // Processes of the run may become other users; who calls is checked.
        fs::set_permissions(&beside.path, fs::Permissions::from_mode(0o777))?;
        let name = directory.join(format!("{}{}", hello::SOCKET, self.token));
        fs::rename(&beside.path, &name)?;
        beside.path = name;
        self.beside = Some(beside);
        Ok(())
    }

    /// Returns what tells this run from all others.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the descriptors of which one becomes readable when somebody calls.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let beside = self.beside.iter().map(|beside| beside.socket.as_fd());
        let own = [self.socket.as_fd()].into_iter().chain(beside);
        own.chain(self.open.iter().map(|(open, ..)| open.as_fd()))
    }

    /// Returns the next caller, at either socket.
    fn accept(&self) -> io::Result<OwnedFd> {
        match (passing::accept(self.socket.as_fd()), &self.beside) {
            (Err(error), Some(beside)) if error.kind() == io::ErrorKind::WouldBlock => {
                passing::accept(beside.socket.as_fd())
            }
            (accepted, _) => accepted,
        }
    }

    /// Takes all calls that are there.
    pub fn calls(&mut self) -> Vec<CallerRequest> {
        let mut calls = Vec::new();
        loop {
            match self.accept() {
                Ok(connection) => {
                    if let Ok(peer) = passing::peer(connection.as_fd()) {
                        self.open.push((connection, peer, Instant::now()));
                    }
                }
                // The kernel says so also when nobody calls.
                Err(error) if is_shortage(&error) && self.spare.take().is_some() => {
                    let refused = self.accept();
                    let peer = refused.and_then(|refused| passing::peer(refused.as_fd()));
                    self.spare = spare();
                    let Ok(peer) = peer else { break };
                    calls.push(CallerRequest::Lost { peer, error });
                }
                Err(_) => break,
            }
        }
        for (connection, peer, since) in std::mem::take(&mut self.open) {
            match passing::receive(connection.as_fd()) {
                Ok((message, file)) => calls.extend(understand(&message, file, peer, connection)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if since.elapsed() < SILENCE {
                        self.open.push((connection, peer, since));
                    } else {
                        let text = format!("it called, and said nothing for {SILENCE:?}");
                        let error = io::Error::new(io::ErrorKind::TimedOut, text);
                        calls.push(CallerRequest::Lost { peer, error });
                    }
                }
                Err(error) if is_shortage(&error) => {
                    calls.push(CallerRequest::Lost { peer, error })
                }
                Err(_) => {}
            }
        }
        calls
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn understand(
    message: &[u8],
    file: Option<OwnedFd>,
    peer: SocketPeer,
    connection: OwnedFd,
) -> Option<CallerRequest> {
    if let Some(hello) = Hello::from_bytes(message) {
        let hello = Box::new(hello);
        return Some(match file {
            Some(file) => CallerRequest::Hello { hello, file, peer },
            None => CallerRequest::Without { hello, peer },
        });
    }
    let pid = message.strip_prefix(QUESTION)?;
    let pid = u32::from_le_bytes(pid.try_into().ok()?);
    Some(CallerRequest::Question { pid, caller: WaitingCaller { connection, peer } })
}
