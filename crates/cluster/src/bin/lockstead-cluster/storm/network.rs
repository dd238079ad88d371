//! A network of the storm's own: each member and each client in a network namespace, joined by bridges in
//! one that the storm has entered.
//!
//! ```text
//!   bridge for clients 10.77.0.1   relays ── client c in a namespace, 10.77.2.x
//!                                         └─ member m in a namespace, 10.77.1.x
//!   bridge for members             member m, 10.78.0.x: this link alone is cut from a leader
//! ```
//!
//! Nothing of it is in the namespace that the machine has, and all of it ends with the process.

use lockstead_cluster::member::Site;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

/// The namespaces and links of one storm.
pub(super) struct Network {
    clients: Vec<OwnedFd>,
    /// `tc` is there, and the kernel can make a link slow.
    pub(super) can_be_slow: bool,
}

/// Returns a failure that says what was tried.
fn cannot(what: &str, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

/// Has this process enter a network namespace of its own, by a user namespace where it may not otherwise.
/// Called while there is one thread.
fn enter() -> io::Result<()> {
    // SAFETY: the calls take nothing, and return numbers alone.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: the call takes flags alone, and concerns this process's one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        return Ok(());
    }
    // SAFETY: the call takes flags alone, and concerns this process's one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) } != 0 {
        return Err(cannot("a network namespace", io::Error::last_os_error()));
    }
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Makes a network namespace, which is there as long as the descriptor.
fn namespace() -> io::Result<OwnedFd> {
    let made = thread::spawn(|| {
        // SAFETY: the call takes nothing, and concerns this thread alone, which ends then.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        fs::File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
    });
    made.join().map_err(|_| io::Error::other("a thread has panicked"))?
}

/// Runs a program with these words and this input, in a namespace or in this one.
fn run(program: &str, words: &[&str], input: &str, within: Option<RawFd>) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: between fork and exec nothing is called but a system call.
    unsafe {
        command.pre_exec(move || match within.map(|fd| libc::setns(fd, libc::CLONE_NEWNET)) {
            None | Some(0) => Ok(()),
            Some(_) => Err(io::Error::last_os_error()),
        });
    }
    let mut child = command.spawn().map_err(|error| cannot(program, error))?;
    if let Some(mut to) = child.stdin.take() {
        to.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(cannot(program, String::from_utf8_lossy(&output.stderr).trim()))
}

fn ip(batch: &str, within: Option<RawFd>) -> io::Result<()> {
    run("ip", &["-batch", "-"], batch, within)
}

/// Joins a namespace to a bridge by a pair of links: `NAME` here, `eth-NAME` there.
fn join(name: &str, bridge: &str, address: &str, namespace: &OwnedFd) -> io::Result<()> {
    let file = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
    ip(
        &format!(
            "link add {name} type veth peer name eth-{name}\n\
             link set eth-{name} netns {file}\n\
             link set {name} master {bridge} up\n"
        ),
        None,
    )?;
    ip(
        &format!("link set lo up\naddr add {address} dev eth-{name}\nlink set eth-{name} up\n"),
        Some(namespace.as_raw_fd()),
    )
}

impl Network {
    /// The address of the relays.
    pub(super) const RELAYS: &str = "10.77.0.1";

    /// Makes namespaces for so many members and clients; this process is in one of its own from then on.
    /// Called while there is one thread.
    pub(super) fn new(members: usize, clients: usize) -> io::Result<(Network, Vec<Site>)> {
        enter()?;
        ip(
            &format!(
                "link set lo up\nlink add clients type bridge\nlink add peers type bridge\n\
                 addr add {}/16 dev clients\nlink set clients up\nlink set peers up\n",
                Network::RELAYS
            ),
            None,
        )?;
        let mut sites = Vec::new();
        for member in 0..members {
            let namespace = namespace()?;
            let (client, peer) =
                (format!("10.77.1.{}", member + 1), format!("10.78.0.{}", member + 1));
            join(&format!("m{member}"), "clients", &format!("{client}/16"), &namespace)?;
            join(&format!("p{member}"), "peers", &format!("{peer}/16"), &namespace)?;
            sites.push(Site { client, peer, namespace: Some(namespace) });
        }
        let mut all = Vec::new();
        for client in 0..clients {
            let namespace = namespace()?;
            let address = format!("10.77.{}.{}/16", 2 + client / 250, 1 + client % 250);
            join(&format!("c{client}"), "clients", &address, &namespace)?;
            all.push(namespace);
        }
        let network = Network { clients: all, can_be_slow: false };
        let can_be_slow = network.slow(0, true).and_then(|()| network.slow(0, false)).is_ok();
        Ok((Network { can_be_slow, ..network }, sites))
    }

    pub(super) fn of_client(&self, client: usize) -> RawFd {
        self.clients[client].as_raw_fd()
    }

    /// Sets a link down or up. One that cannot be is a fault that does not happen.
    fn plug(name: &str, up: bool) {
        let state = if up { "up" } else { "down" };
        let _ = ip(&format!("link set {name} {state}\n"), None);
    }

    pub(super) fn plug_client(&self, client: usize, up: bool) {
        Network::plug(&format!("c{client}"), up);
    }

    pub(super) fn plug_peer(&self, member: usize, up: bool) {
        Network::plug(&format!("p{member}"), up);
    }

    /// Gives the link to a member a small bucket: what does not fit is late, or lost.
    fn slow(&self, member: usize, slow: bool) -> io::Result<()> {
        let link = format!("p{member}");
        let bucket = ["tbf", "rate", "48kbit", "burst", "1600", "limit", "6000"];
        match slow {
            true => {
                let words = [&["qdisc", "replace", "dev", &link, "root"][..], &bucket].concat();
                run("tc", &words, "", None)
            }
            false => run("tc", &["qdisc", "del", "dev", &link, "root"], "", None),
        }
    }

    pub(super) fn slow_peer(&self, member: usize, slow: bool) {
        if self.can_be_slow {
            let _ = self.slow(member, slow);
        }
    }
}
