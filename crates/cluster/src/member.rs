//! Members of etcd that this process starts on the loopback interface and ends again: for the
//! demonstration, the fault runs and tests.

use crate::error::ClusterError;
use crate::etcd::{Client, ClientOptions, Endpoint};
use crate::folder::Folder;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What to do where there is no etcd.
pub const HOW_TO_GET: &str = "etcd is not in PATH; install it (Debian and Ubuntu: apt-get install \
                              etcd-server etcd-client)";

/// The time within which members have to answer once they are started.
const START: Duration = Duration::from_secs(30);

/// Where a member is: its addresses, and the network namespace that has them.
#[derive(Debug)]
pub struct Site {
    /// The address at which clients reach it.
    pub client: String,
    /// The address at which the other members do.
    pub peer: String,
    /// The network namespace; `None`: this process's own.
    pub namespace: Option<OwnedFd>,
}

impl Site {
    /// Returns the loopback interface of this process's namespace.
    fn here() -> Site {
        let address = || "127.0.0.1".to_owned();
        Site { client: address(), peer: address(), namespace: None }
    }
}

/// A cluster of one or more members, on addresses that begin with 127 or in namespaces of their own.
pub struct Members {
    children: Vec<Option<Child>>,
    clients: Vec<u16>,
    peers: Vec<u16>,
    sites: Vec<Site>,
    folder: Folder,
    program: PathBuf,
    more: Vec<String>,
    secure: bool,
}

/// Returns the program `etcd`, if it is in PATH.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(|file| file.is_file())
}

/// Has the kernel kill the process of a command when the thread that starts it ends, also if that is killed.
///
/// What the process starts itself is not killed. If the thread ends before the kernel knows that, the process
/// ends as well, and starts no program.
pub fn dies_with_us(command: &mut Command) {
    let us = std::process::id();
    // SAFETY: between fork and exec nothing is called but `prctl` and `getppid`, which are system calls alone.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // If the parent was killed before that, the child already has another one. 0: it is in a namespace
            // in which its parent has no number.
            match u32::try_from(libc::getppid()) {
                Ok(parent) if parent == us || parent == 0 => Ok(()),
                _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        });
    }
}

/// Returns ports that nobody listens at now.
fn free_ports(number: usize) -> io::Result<Vec<u16>> {
    let sockets: io::Result<Vec<_>> =
        (0..number).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect();
    sockets?.iter().map(|socket| Ok(socket.local_addr()?.port())).collect()
}

/// Returns the number of the endpoint whose member leads, if one says so.
#[must_use]
pub fn leader(options: &ClientOptions) -> Option<usize> {
    (0..options.endpoints.len()).find(|member| {
        let endpoints = vec![options.endpoints[*member].clone()];
        let patience = Duration::from_secs(1);
        let client = Client::new(ClientOptions { endpoints, patience, ..options.clone() });
        client.and_then(|client| client.leads()).unwrap_or(false)
    })
}

impl Members {
    /// Starts so many members, and returns once they answer.
    ///
    /// # Errors
    /// There is no program, or they do not answer; the text says which.
    pub fn start(number: usize) -> Result<Members, ClusterError> {
        Members::start_with(number, &[], false)
    }

    /// Does the same with more flags of etcd; `secure`: clients are to use `https:`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(
        number: usize,
        more: &[String],
        secure: bool,
    ) -> Result<Members, ClusterError> {
        let sites = (0..number).map(|_| Site::here()).collect();
        let members = Members::start_at(sites, more, secure)?;
        if !secure {
            members.wait(START)?;
        }
        Ok(members)
    }

    /// Starts a member at each site, and does not wait until they answer.
    ///
    /// # Errors
    /// There is no program, or it cannot be started.
    pub fn start_at(
        sites: Vec<Site>,
        more: &[String],
        secure: bool,
    ) -> Result<Members, ClusterError> {
        let number = sites.len();
        let failed =
            |error: io::Error| ClusterError::Options(format!("cannot start etcd: {error}"));
        let program = program().ok_or_else(|| ClusterError::Options(HOW_TO_GET.into()))?;
        let ports = free_ports(2 * number).map_err(failed)?;
        let (clients, peers) = ports.split_at(number);
        let mut members = Members {
            children: (0..number).map(|_| None).collect(),
            clients: clients.to_vec(),
            peers: peers.to_vec(),
            sites,
            folder: Folder::new().map_err(failed)?,
            program,
            more: more.to_vec(),
            secure,
        };
        for member in 0..number {
            members.start_member(member).map_err(failed)?;
        }
        Ok(members)
    }

    /// Returns the endpoints, for [`ClientOptions::of`].
    #[must_use]
    pub fn endpoints(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let all = self.addresses().map(|(host, port)| format!("{scheme}://{host}:{port}"));
        all.collect::<Vec<_>>().join(",")
    }

    /// Returns the address and the port at which clients reach each member.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        self.sites.iter().map(|site| site.client.as_str()).zip(self.clients.iter().copied())
    }

    /// Returns how a client reaches them.
    #[must_use]
    pub fn options(&self) -> ClientOptions {
        let secure = self.secure;
        let endpoint = |(host, port): (&str, u16)| Endpoint { secure, host: host.into(), port };
        let endpoints = self.addresses().map(endpoint).collect();
        ClientOptions { endpoints, ..ClientOptions::default() }
    }

    /// Returns the number of members.
    #[must_use]
    pub fn number(&self) -> usize {
        self.children.len()
    }

    /// Waits until a read that the majority has to agree to is answered.
    ///
    /// # Errors
    /// [`ClusterError::Unreachable`].
    pub fn wait(&self, timeout: Duration) -> Result<(), ClusterError> {
        let until = Instant::now() + timeout;
        loop {
            let client = Client::new(self.options())?;
            match client.get(&crate::etcd::wire::Get::all("lockstead/none")) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Starts a member, anew or with the data that it has left.
    ///
    /// # Errors
    /// As the system says.
    pub fn start_member(&mut self, member: usize) -> io::Result<()> {
        let client = format!(
            "{}://{}:{}",
            if self.secure { "https" } else { "http" },
            self.sites[member].client,
            self.clients[member]
        );
        let peer =
            |member: usize| format!("http://{}:{}", self.sites[member].peer, self.peers[member]);
        let all: Vec<_> =
            (0..self.number()).map(|number| format!("m{number}={}", peer(number))).collect();
        let own = peer(member);
        let namespace = self.sites[member].namespace.as_ref().map(AsRawFd::as_raw_fd);
        let log = std::fs::File::create(self.folder.path().join(format!("log{member}")))?;
        let mut command = Command::new(&self.program);
        command
            .args(["--name", &format!("m{member}")])
            .arg("--data-dir")
            .arg(self.folder.path().join(format!("data{member}")))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &own, "--initial-advertise-peer-urls", &own])
            .args(["--initial-cluster", &all.join(",")])
            .args(["--logger", "zap", "--log-level", "error"])
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // No member outlives who started it, also if that is killed.
        dies_with_us(&mut command);
        if let Some(namespace) = namespace {
            // SAFETY: between fork and exec nothing is called but `setns`, which is a system call alone. The
            // namespace is this object's, and so open.
            unsafe {
                command.pre_exec(move || match libc::setns(namespace, libc::CLONE_NEWNET) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                });
            }
        }
        self.children[member] = Some(command.spawn()?);
        Ok(())
    }

    /// Kills a member.
    pub fn kill(&mut self, member: usize) {
        if let Some(mut child) = self.children[member].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops a member, and returns once it stands; or lets it go on.
    pub fn stop(&self, member: usize, stopped: bool) {
        let Some(child) = &self.children[member] else { return };
        let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
        // SAFETY: a signal to a child that is not yet waited for, so that the number is its own.
        unsafe { libc::kill(pid, if stopped { libc::SIGSTOP } else { libc::SIGCONT }) };
        if stopped {
            // Until it stands: the signal alone is no end of what it does.
            let until = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
            // SAFETY: by ZEROED-BITS zero is a valid value of this plain C structure, which the call fills.
            // What it finds is left to be waited for.
            unsafe {
                let mut found: libc::siginfo_t = std::mem::zeroed();
                libc::waitid(libc::P_PID, child.id(), &raw mut found, until);
            }
        }
    }

    /// Returns the folder in which members keep their data.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        (0..self.children.len()).for_each(|member| self.kill(member));
    }
}
