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
    clients: Vec<Place>,
    members: Vec<Place>,
    /// `tc` is there, and the kernel can make a link slow.
    pub(super) can_be_slow: bool,
    /// `iptables` is there, and the kernel can lose packets by chance.
    pub(super) can_lose: bool,
}

/// A namespace, and the addresses of what is in it.
struct Place {
    namespace: OwnedFd,
    client: String,
    /// The address at which a member reaches others.
    peer: Option<String>,
}

/// The rules of each namespace: a chain that counts and drops what is sent to it.
const LOST: &str = "*filter\n:lost - [0:0]\n-A lost -j DROP\nCOMMIT\n";

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

/// Runs a program with these words and this input, in a namespace or in this one; returns what it says.
fn run(program: &str, words: &[&str], input: &str, within: Option<RawFd>) -> io::Result<String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
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
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(cannot(program, String::from_utf8_lossy(&output.stderr).trim()))
}

fn ip(batch: &str, within: Option<RawFd>) -> io::Result<()> {
    run("ip", &["-batch", "-"], batch, within).map(drop)
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
        let (mut sites, mut all_members) = (Vec::new(), Vec::new());
        for member in 0..members {
            let namespace = namespace()?;
            let (client, peer) =
                (format!("10.77.1.{}", member + 1), format!("10.78.0.{}", member + 1));
            join(&format!("m{member}"), "clients", &format!("{client}/16"), &namespace)?;
            join(&format!("p{member}"), "peers", &format!("{peer}/16"), &namespace)?;
            all_members.push(Place {
                namespace: namespace.try_clone()?,
                client: client.clone(),
                peer: Some(peer.clone()),
            });
            sites.push(Site { client, peer, namespace: Some(namespace) });
        }
        let mut all = Vec::new();
        for client in 0..clients {
            let namespace = namespace()?;
            let address = format!("10.77.{}.{}", 2 + client / 250, 1 + client % 250);
            join(&format!("c{client}"), "clients", &format!("{address}/16"), &namespace)?;
            all.push(Place { namespace, client: address, peer: None });
        }
        let mut network =
            Network { clients: all, members: all_members, can_be_slow: false, can_lose: false };
        network.can_be_slow = network.slow(0, true).and_then(|()| network.slow(0, false)).is_ok();
        network.can_lose = network.prepare_to_lose().is_ok();
        Ok((network, sites))
    }

    pub(super) fn of_client(&self, client: usize) -> RawFd {
        self.clients[client].namespace.as_raw_fd()
    }

    /// Sets a link down or up; false if it cannot be.
    fn plug(name: &str, up: bool) -> bool {
        let state = if up { "up" } else { "down" };
        ip(&format!("link set {name} {state}\n"), None).is_ok()
    }

    pub(super) fn plug_client(&self, client: usize, up: bool) -> bool {
        Network::plug(&format!("c{client}"), up)
    }

    pub(super) fn plug_peer(&self, member: usize, up: bool) -> bool {
        Network::plug(&format!("p{member}"), up)
    }

    /// Gives the link to a member a small bucket: what does not fit is late, or lost.
    fn slow(&self, member: usize, slow: bool) -> io::Result<()> {
        let link = format!("p{member}");
        let bucket = ["tbf", "rate", "48kbit", "burst", "1600", "limit", "6000"];
        match slow {
            true => {
                let words = [&["qdisc", "replace", "dev", &link, "root"][..], &bucket].concat();
                run("tc", &words, "", None).map(drop)
            }
            false => run("tc", &["qdisc", "del", "dev", &link, "root"], "", None).map(drop),
        }
    }

    pub(super) fn slow_peer(&self, member: usize, slow: bool) -> bool {
        self.can_be_slow && self.slow(member, slow).is_ok()
    }

    /// Returns all namespaces; `None` is the one of the relays.
    fn namespaces(&self) -> impl Iterator<Item = Option<RawFd>> {
        let places = self.members.iter().chain(&self.clients);
        std::iter::once(None).chain(places.map(|place| Some(place.namespace.as_raw_fd())))
    }

    fn prepare_to_lose(&self) -> io::Result<()> {
        for namespace in self.namespaces() {
            run("iptables-restore", &["--noflush"], LOST, namespace)?;
        }
        let member = &self.members[0];
        Network::lose(None, Some(&member.client), 10, true)?;
        Network::lose(None, Some(&member.client), 10, false)
    }

    /// Has packets that arrive in a namespace be lost by chance, each for itself, or no more; all, or those
    /// from one address. Dropped where they arrive, for a sender would be told of what it cannot send.
    fn lose(within: Option<RawFd>, from: Option<&str>, percent: u8, begin: bool) -> io::Result<()> {
        let share = format!("0.{percent:02}");
        let mut words = vec!["-w", if begin { "-A" } else { "-D" }, "INPUT"];
        words.extend(from.into_iter().flat_map(|from| ["-s", from]));
        words.extend([
            "-m",
            "statistic",
            "--mode",
            "random",
            "--probability",
            &share,
            "-j",
            "lost",
        ]);
        run("iptables", &words, "", within).map(drop)
    }

    /// Has packets of one place, both ways, be lost by chance, or no more; false if that can be nowhere.
    fn lossy(&self, place: &Place, percent: u8, begin: bool) -> bool {
        if !self.can_lose {
            return false;
        }
        let within = place.namespace.as_raw_fd();
        let mut done = Network::lose(Some(within), None, percent, begin).is_ok();
        done |= Network::lose(None, Some(&place.client), percent, begin).is_ok();
        let Some(peer) = &place.peer else { return done };
        for other in self.members.iter().map(|member| member.namespace.as_raw_fd()) {
            if other != within {
                done |= Network::lose(Some(other), Some(peer), percent, begin).is_ok();
            }
        }
        done
    }

    pub(super) fn lossy_client(&self, client: usize, percent: u8, begin: bool) -> bool {
        self.lossy(&self.clients[client], percent, begin)
    }

    pub(super) fn lossy_member(&self, member: usize, percent: u8, begin: bool) -> bool {
        self.lossy(&self.members[member], percent, begin)
    }

    /// Has no packets be lost any more, whoever they are of.
    pub(super) fn lose_no_more(&self) -> io::Result<()> {
        if !self.can_lose {
            return Ok(());
        }
        let flush = |namespace| run("iptables", &["-w", "-F", "INPUT"], "", namespace).map(drop);
        let names = ["the relays".to_owned()].into_iter();
        let names = names.chain((0..self.members.len()).map(|member| format!("member {member}")));
        let names = names.chain((0..self.clients.len()).map(|client| format!("client {client}")));
        in_all(names.zip(self.namespaces()), flush)
    }

    /// Returns the number of packets that were lost by chance, as the kernel counted them.
    pub(super) fn lost(&self) -> io::Result<u64> {
        let mut sum = 0;
        for namespace in self.namespaces() {
            let list = run("iptables", &["-w", "-nvxL", "lost"], "", namespace)?;
            // The line of the one rule: packets, bytes, DROP.
            let rule = list.lines().find(|line| line.contains("DROP"));
            let number = rule.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            sum += number.ok_or_else(|| cannot("iptables", "no count"))?;
        }
        Ok(sum)
    }
}

/// Does something in each of them, also after it failed in one.
///
/// # Errors
/// All that failed, each with its name.
fn in_all<T>(
    all: impl Iterator<Item = (String, T)>,
    mut does: impl FnMut(T) -> io::Result<()>,
) -> io::Result<()> {
    let failed = all.filter_map(|(name, each)| {
        let error = does(each).err()?;
        Some(format!("{name}: {error}"))
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(io::Error::other(failed.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_fails_leaves_none_of_the_others_undone_and_all_that_fail_are_told() {
        let mut done = Vec::new();
        let all = [1, 2, 3, 4].map(|number| (format!("client {number}"), number));
        let failed = in_all(all.into_iter(), |number| {
            done.push(number);
            if number % 2 == 0 { Err(io::Error::other("busy")) } else { Ok(()) }
        });
        assert_eq!(done, [1, 2, 3, 4]);
        assert_eq!(failed.expect_err("two of them").to_string(), "client 2: busy; client 4: busy");
    }
}
