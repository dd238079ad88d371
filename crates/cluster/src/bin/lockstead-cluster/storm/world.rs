//! All that the storm has started, and what ends a fault.

mod strikes;

use super::judge::{Found, Judge};
use super::network::Network;
use super::plan::{Moment, Plan};
use super::relay::{Line, Relays, Strikes};
use super::worker::{self, Broken, Start};
use lockstead_cluster::member::{self, Members};
use lockstead_render::output;
use std::collections::BTreeMap;
use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The time after which a client that was killed is there again.
const AGAIN: Duration = Duration::from_millis(200);
/// The time that members have after a fault before the next one of them is hurt.
const RECOVER: Duration = Duration::from_millis(2_500);

/// One client: the process of now, and its line to the members.
#[derive(Default)]
pub(super) struct Client {
    line: Arc<Line>,
    lock: usize,
    child: Mutex<Option<Child>>,
    turns: AtomicU64,
    ahead: u64,
}

impl Client {
    pub(super) fn of(lock: usize, ahead: u64) -> Client {
        Client { lock, ahead, ..Client::default() }
    }

    pub(super) fn days_ahead(&self) -> u64 {
        self.ahead / (24 * 60 * 60)
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        lock(&self.child)
    }

    /// Kills its process; false if there is none.
    fn kill(&self) -> bool {
        let Some(mut child) = self.child().take() else { return false };
        let killed = child.kill().is_ok();
        let _ = child.wait();
        killed
    }

    /// Stops its process, or has it go on; false if there is none.
    fn stop(&self, stopped: bool) -> bool {
        let mut child = self.child();
        let Some(child) = child.as_mut() else { return false };
        let Ok(pid) = libc::pid_t::try_from(child.id()) else { return false };
        if !matches!(child.try_wait(), Ok(None)) {
            return false;
        }
        // SAFETY: a signal to a child that has just not been waited for, nor can be while it is locked here: so
        // the number is its own.
        unsafe { libc::kill(pid, if stopped { libc::SIGSTOP } else { libc::SIGCONT }) == 0 }
    }

    /// Says whether its process has ended.
    pub(super) fn ended(&self) -> bool {
        self.child().as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(Some(_))))
    }
}

/// What ends by itself.
#[derive(Clone, Copy, Debug)]
enum Due {
    StartClient(usize),
    ContinueClient(usize),
    MendClient(usize, bool),
    PlugClient(usize),
    StartMember(usize),
    ContinueMember(usize),
    JoinMember(usize),
    QuickMember(usize),
    WholeClient(usize, u8),
    WholeMember(usize, u8),
    Whole,
}

/// What concerns one lock.
pub(super) struct Lock {
    pub(super) judge: Judge,
    plan: Plan,
    /// Clients that are stopped until another one is in, and how long after that they go on.
    stopped: Vec<(usize, Duration)>,
}

impl Lock {
    pub(super) fn new(judge: Judge, plan: Plan) -> Lock {
        Lock { judge, plan, stopped: Vec::new() }
    }
}

pub(super) struct World {
    relays: Arc<Relays>,
    pub(super) clients: Vec<Client>,
    /// The endpoints of each client, which are its relays.
    endpoints: Mutex<Vec<String>>,
    locks: Vec<Mutex<Lock>>,
    members: Mutex<Members>,
    network: Option<Network>,
    ttl: u64,
    broken: Option<Broken>,
    leader: AtomicUsize,
    /// A member is hurt, or was a moment ago.
    hurt: AtomicBool,
    /// There are to be no more faults. Who strikes reads it all the while, so that whoever sets it knows that
    /// nobody strikes any more.
    calm: RwLock<bool>,
    /// Clients that are in are to end.
    ending: AtomicBool,
    /// A client that runs by the machine's clock although it was given one of its own.
    without_clock: OnceLock<usize>,
    due: Mutex<Vec<(Instant, Due)>>,
    hits: Mutex<BTreeMap<String, u64>>,
}

/// Returns the present moment by this process's boot-time clock.
fn now() -> u64 {
    lockstead_cluster::Moment::now().nanoseconds()
}

/// Returns a moment of a client's boot-time clock by that of this process, which shows `now`; `None` if the client
/// has not got the clock that is so many seconds `ahead`.
fn by_own_clock(at: u64, ahead: u64, now: u64) -> Option<u64> {
    // No client is stopped for nearly so long, and no clock is less ahead of another one.
    const FAR: u64 = 3600 * 1_000_000_000;
    at.checked_sub(ahead * 1_000_000_000).filter(|here| here.abs_diff(now) < FAR)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn new(
        members: Members,
        network: Option<Network>,
        clients: Vec<Client>,
        locks: Vec<Lock>,
        ttl: u64,
        broken: Option<Broken>,
    ) -> World {
        let addresses = members.addresses().map(|(host, port)| (host.to_owned(), port)).collect();
        let address = network.as_ref().map_or("127.0.0.1", |_| Network::RELAYS).to_owned();
        World {
            relays: Arc::new(Relays { address, members: addresses }),
            clients,
            endpoints: Mutex::default(),
            locks: locks.into_iter().map(Mutex::new).collect(),
            members: Mutex::new(members),
            network,
            ttl,
            broken,
            leader: AtomicUsize::new(0),
            hurt: AtomicBool::new(false),
            calm: RwLock::new(false),
            ending: AtomicBool::new(false),
            without_clock: OnceLock::new(),
            due: Mutex::default(),
            hits: Mutex::default(),
        }
    }

    /// Starts all clients, from the thread whose end ends them.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<()> {
        let all = self.clients.iter().enumerate().map(|(number, client)| {
            let strikes = Arc::clone(self) as Arc<dyn Strikes>;
            self.relays.start(strikes, number, &client.line)
        });
        *lock(&self.endpoints) = all.collect::<io::Result<_>>()?;
        (0..self.clients.len()).try_for_each(|client| self.start_client(client))
    }

    fn start_client(self: &Arc<Self>, number: usize) -> io::Result<()> {
        let endpoints = lock(&self.endpoints)[number].clone();
        let client = &self.clients[number];
        client.kill();
        let world = Arc::clone(self);
        let child = worker::start(
            &Start {
                endpoints: &endpoints,
                lock: client.lock,
                ttl: self.ttl,
                broken: self.broken.filter(|broken| *broken == Broken::Guard),
                namespace: self.network.as_ref().map(|network| network.of_client(number)),
                ahead: client.ahead,
            },
            move |line| world.hear(number, line),
        )?;
        *client.child() = Some(child);
        Ok(())
    }

    fn lock_of(&self, client: usize) -> MutexGuard<'_, Lock> {
        lock(&self.locks[self.clients[client].lock])
    }

    /// Hears one line of a client, and returns the answer.
    pub(super) fn hear(&self, client: usize, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|text| text.parse::<u64>().ok());
        let token = number(1)?;
        let at = number(2).unwrap_or(0);
        let here = match words[0] {
            "in" | "sure" => match by_own_clock(at, self.clients[client].ahead, now()) {
                Some(here) => here,
                // Nothing can be judged by its moments; the storm ends, and says so.
                None => {
                    let _ = self.without_clock.set(client);
                    return None;
                }
            },
            _ => at,
        };
        let says =
            |value: Option<u64>| Some(value.map_or("refused".into(), |v| format!("value {v}")));
        match words[0] {
            "in" => {
                self.clients[client].turns.fetch_add(1, Ordering::Relaxed);
                let mut lock = self.lock_of(client);
                lock.plan.turn();
                let value = lock.judge.enters(client, token, here, number(3) == Some(1));
                let stopped = std::mem::take(&mut lock.stopped);
                drop(lock);
                for (client, after) in stopped {
                    self.later(after, Due::ContinueClient(client));
                }
                if self.ending.load(Ordering::Relaxed) {
                    return Some("end".into());
                }
                self.aimed(client, Moment::Holding);
                says(value)
            }
            "sure" => {
                self.lock_of(client).judge.is_sure(token, here);
                self.aimed(client, Moment::Writing);
                Some("go".into())
            }
            "write" => says(self.lock_of(client).judge.writes(token, at)),
            "leaving" => {
                self.lock_of(client).judge.leaves(token);
                None
            }
            "lost" => {
                self.lock_of(client).judge.is_lost(token);
                None
            }
            _ => None,
        }
    }

    /// Does to a client what waits for this moment.
    fn aimed(&self, client: usize, moment: Moment) {
        if let Some(hit) = self.reached(client, moment) {
            self.strike(client, None, &hit);
        }
    }

    /// Does something in the network; false if there is none, or it cannot be done.
    fn in_network(&self, what: impl FnOnce(&Network) -> bool) -> bool {
        self.network.as_ref().is_some_and(what)
    }

    fn later(&self, time: Duration, due: Due) {
        lock(&self.due).push((Instant::now() + time, due));
    }

    /// Ends the faults whose time has come, or all.
    pub(super) fn heal(self: &Arc<Self>, all: bool) -> io::Result<()> {
        let now = Instant::now();
        let over: Vec<Due> = {
            let mut due = lock(&self.due);
            let (over, left): (Vec<_>, Vec<_>) =
                std::mem::take(&mut *due).into_iter().partition(|(at, _)| all || *at <= now);
            *due = left;
            over.into_iter().map(|(_, what)| what).collect()
        };
        for what in over {
            let member_is_well = || self.later(RECOVER, Due::Whole);
            match what {
                Due::StartClient(client) => self.start_client(client)?,
                Due::ContinueClient(client) => {
                    self.clients[client].stop(false);
                }
                Due::MendClient(client, reset) => self.clients[client].line.mend(reset),
                Due::PlugClient(client) => {
                    self.in_network(|network| network.plug_client(client, true));
                }
                Due::StartMember(member) => {
                    lock(&self.members).start_member(member)?;
                    member_is_well();
                }
                Due::ContinueMember(member) => {
                    lock(&self.members).stop(member, false);
                    member_is_well();
                }
                Due::JoinMember(member) => {
                    self.in_network(|network| network.plug_peer(member, true));
                    member_is_well();
                }
                Due::QuickMember(member) => {
                    self.in_network(|network| network.slow_peer(member, false));
                    member_is_well();
                }
                Due::WholeClient(client, percent) => {
                    self.in_network(|network| network.lossy_client(client, percent, false));
                }
                Due::WholeMember(member, percent) => {
                    self.in_network(|network| network.lossy_member(member, percent, false));
                    member_is_well();
                }
                Due::Whole => self.hurt.store(false, Ordering::Release),
            }
        }
        Ok(())
    }

    /// Looks who leads, again and again, so that it is known when a fault wants to know it.
    pub(super) fn look_for_leaders(&self) {
        let options = lock(&self.members).options();
        while !self.is_calm() {
            let well = !self.hurt.load(Ordering::Acquire);
            if let Some(leader) = well.then(|| member::leader(&options)).flatten() {
                self.leader.store(leader, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Has no more faults happen, and ends those that do.
    pub(super) fn calm(self: &Arc<Self>) -> io::Result<()> {
        *self.calm.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.heal(true)?;
        if let Some(error) = self.network.as_ref().and_then(|network| network.lose_no_more().err())
        {
            output::note(format_args!("packets may be lost still: {error}"));
        }
        Ok(())
    }

    fn is_calm(&self) -> bool {
        *self.calm.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has each client end once it is in.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn kill_clients(&self) {
        for client in &self.clients {
            client.kill();
        }
    }

    pub(super) fn members(&self) -> MutexGuard<'_, Members> {
        lock(&self.members)
    }

    /// Returns a client that has not got its clock, if there is one.
    pub(super) fn without_clock(&self) -> Option<usize> {
        self.without_clock.get().copied()
    }

    /// Returns the network, if packets can be lost in it by chance.
    pub(super) fn lossy_network(&self) -> Option<&Network> {
        self.network.as_ref().filter(|network| network.can_lose)
    }

    pub(super) fn hits(&self) -> BTreeMap<String, u64> {
        lock(&self.hits).clone()
    }

    /// Sums up all locks; once it is over with the verdict.
    pub(super) fn found(&self, over: bool) -> Found {
        let mut sum = Found::default();
        for each in &self.locks {
            let each = lock(each);
            sum.add(&if over { each.judge.verdict() } else { each.judge.so_far().clone() });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_without_its_clock_is_known_whatever_time_the_machine_has_run() {
        const SECOND: u64 = 1_000_000_000;
        const DAY: u64 = 24 * 3600;
        for up in [5, DAY / 2, 3 * DAY, 300 * DAY] {
            let now = up * SECOND;
            for ahead in [DAY, 12 * DAY] {
                let own = now + ahead * SECOND;
                assert_eq!(by_own_clock(own, ahead, now + 9 * SECOND), Some(now));
                assert_eq!(by_own_clock(now, ahead, now), None, "{up} s, {ahead} s");
            }
            assert_eq!(by_own_clock(now, 0, now), Some(now));
        }
    }
}
