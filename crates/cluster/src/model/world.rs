//! The clients and the network of the model, and what must hold:
//!
//! - At most one client believes to have the lock alone, by its clock; readers and permits accordingly.
//! - A place that is named as the owner's is there and first, and owners come in the order of tokens.
//! - An owner is told of a death if and only if the last owner's place vanished without a release.
//! - A release that was carried out is not told to have failed.
//! - Once losses and pauses end, each waiter is served, and nothing is left in the queue.

use super::etcd::Etcd;
use super::parts::{Ask, Client, Doing, Letter, Mix, Reply, Seen};
use crate::etcd::wire::{Answer, Keys, Txn};
use crate::protocol::{
    Acquire, Entered, Held, LockKeys, Mode, Refusal, ReleasePlan, Released, Step, Who,
};
use crate::wrong::{Broken, broken};
use fastrand::Rng;
use std::collections::BTreeMap;

const CLIENTS: usize = 3;
const TTL: u64 = 12;
/// The steps with faults, and those after them within which all must be served.
const WILD: u32 = 220;
const CALM: u32 = 3_000;

pub(super) struct World {
    rng: Rng,
    mix: Mix,
    now: u64,
    etcd: Etcd,
    clients: Vec<Client>,
    letters: Vec<Letter>,
    /// Answers on their way: to whom, to which request, sent when.
    answers: Vec<(usize, u64, u64, Reply)>,
    numbers: u64,
    leases: i64,
    keys: LockKeys,
    calm: bool,
    /// The last owner's place vanished without a release.
    dirty: bool,
    /// Whether each place that became the owner has to be told of a death.
    owed: BTreeMap<String, bool>,
    last_owner: i64,
    pub(super) seen: Seen,
}

impl World {
    pub(super) fn new(mix: Mix, seed: u64) -> Self {
        let mut world = World {
            rng: Rng::with_seed(seed),
            mix,
            now: 0,
            // The revision of an empty etcd: that of the first key is 2.
            etcd: Etcd { revision: 1, ..Etcd::default() },
            clients: Vec::new(),
            letters: Vec::new(),
            answers: Vec::new(),
            numbers: 0,
            leases: 0,
            keys: LockKeys::new("r", "l"),
            calm: false,
            dirty: false,
            owed: BTreeMap::new(),
            last_owner: 0,
            seen: Seen::default(),
        };
        for _ in 0..CLIENTS {
            let client = world.new_client();
            world.clients.push(client);
        }
        world
    }

    fn new_client(&mut self) -> Client {
        self.leases += 1;
        self.etcd.leases.insert(self.leases, self.now + TTL);
        Client {
            lease: self.leases,
            deadline: self.now + TTL,
            doing: Doing::Idle,
            acquire: None,
            plan: None,
            mode: Mode::Write,
            open: None,
            renewing: false,
            paused: false,
            attempt: 0,
        }
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        for _ in 0..WILD {
            self.step()?;
        }
        self.calm = true;
        for client in &mut self.clients {
            client.paused = false;
        }
        for _ in 0..CALM {
            let idle =
                self.clients.iter().all(|c| matches!(c.doing, Doing::Idle) && c.open.is_none());
            if idle && self.letters.is_empty() && self.answers.is_empty() {
                return self.nothing_left();
            }
            self.step()?;
        }
        let keys: Vec<_> = self.etcd.keys.keys().collect();
        let doing: Vec<_> = self.clients.iter().map(|c| (c.lease, &c.doing, &c.open)).collect();
        Err(format!("not all were served; etcd has {keys:?}; {doing:?}"))
    }

    fn nothing_left(&self) -> Result<(), String> {
        let queue = Keys::Prefix(self.keys.queue());
        // Those of the dead go with their leases.
        let mut alive = self.etcd.keys.values().filter(|pair| {
            queue.contains(&pair.key) && self.clients.iter().any(|c| c.lease == pair.lease)
        });
        match alive.next() {
            None => Ok(()),
            Some(pair) => Err(format!("{} is left, and nobody cares for it", pair.key)),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.u32(..100) {
            0..30 => self.deliver_letter()?,
            30..55 => self.deliver_answer()?,
            55..60 if !self.calm => self.lose(),
            60..70 => self.time_passes()?,
            70..72 if !self.calm => {
                let client = self.rng.usize(..CLIENTS);
                self.clients[client].paused ^= true;
            }
            72 if !self.calm => {
                // It dies, and another one comes in its stead.
                let client = self.rng.usize(..CLIENTS);
                self.clients[client] = self.new_client();
                self.letters
                    .iter_mut()
                    .filter(|l| l.client == client)
                    .for_each(|l| l.answer = false);
                self.answers.retain(|answer| answer.0 != client);
            }
            _ => {
                let client = self.rng.usize(..CLIENTS);
                if !self.clients[client].paused {
                    self.act(client)?;
                }
            }
        }
        self.exclusion()
    }

    fn believes(&self, client: &Client) -> bool {
        let in_time = self.now < client.deadline || broken(Broken::NoClock);
        matches!(client.doing, Doing::Holding { .. } | Doing::Repairing) && in_time
    }

    fn exclusion(&self) -> Result<(), String> {
        let mut used = 0;
        let (mut alone, mut all) = (0, 0);
        for client in self.clients.iter().filter(|client| self.believes(client)) {
            all += 1;
            alone += u32::from(client.mode == Mode::Write);
            if let Mode::Permits { want, .. } = client.mode {
                used += want;
            }
        }
        if (alone > 0 && all > 1) || used > 2 {
            return Err(format!("{all} clients believe to have the lock, {alone} of them alone"));
        }
        Ok(())
    }

    fn time_passes(&mut self) -> Result<(), String> {
        self.now += 1;
        let over: Vec<i64> =
            self.etcd.leases.iter().filter(|(_, end)| **end <= self.now).map(|(l, _)| *l).collect();
        for lease in over {
            // etcd may end it later.
            if self.calm || self.rng.bool() {
                self.seen.expired += 1;
                self.change(|etcd| etcd.revoke(lease))?;
            }
        }
        Ok(())
    }

    /// Has etcd change, and compares what it says of owners with what was before.
    fn change<T>(&mut self, change: impl FnOnce(&mut Etcd) -> T) -> Result<T, String> {
        let owner = |etcd: &Etcd, keys: &LockKeys| {
            etcd.keys.get(&keys.held()).and_then(|pair| Held::read(&pair.value))
        };
        let before = owner(&self.etcd, &self.keys);
        let was_there =
            before.as_ref().is_some_and(|h| self.etcd.keys.contains_key(&self.keys.at(&h.place)));
        let result = change(&mut self.etcd);
        let after = owner(&self.etcd, &self.keys);
        if let (Some(held), true) = (&before, was_there)
            && after.as_ref().is_some_and(|after| after.place == held.place)
            && !self.etcd.keys.contains_key(&self.keys.at(&held.place))
        {
            self.dirty = true;
        }
        let Some(after) = after else {
            self.dirty = false;
            return Ok(result);
        };
        if before.as_ref().is_none_or(|before| before.place != after.place) {
            let place = self.etcd.keys.get(&self.keys.at(&after.place));
            let created = place.ok_or("an owner is named that has no place")?.created;
            let queue = Keys::Prefix(self.keys.queue());
            let first = self.etcd.keys.values().filter(|pair| queue.contains(&pair.key));
            if first.map(|pair| pair.created).min() != Some(created) {
                return Err("an owner is named that is not first".into());
            }
            if created <= self.last_owner {
                return Err("an owner has a smaller token than one before it".into());
            }
            self.last_owner = created;
            self.owed.insert(after.place.clone(), self.dirty);
        } else if before.is_some_and(|before| before.died) && !after.died {
            self.dirty = false;
        }
        Ok(result)
    }

    fn deliver_letter(&mut self) -> Result<(), String> {
        if self.letters.is_empty() {
            return Ok(());
        }
        let at = self.rng.usize(..self.letters.len());
        let letter = self.letters.swap_remove(at);
        let answer = match letter.ask {
            Ask::Txn(txn) => {
                let answer = self.change(|etcd| etcd.execute(&txn))?;
                let state = &mut self.clients[letter.client];
                let is_open = state.open.as_ref().is_some_and(|open| open.0 == letter.number);
                if let (Doing::Releasing { carried_out, .. }, true) = (&mut state.doing, is_open) {
                    *carried_out |= answer.as_ref().is_some_and(|answer| answer.succeeded);
                }
                answer.map(Ok)
            }
            Ask::Renew(lease) => {
                let end = self.now + TTL;
                let alive = self.etcd.leases.get_mut(&lease).map(|until| *until = end).is_some();
                Some(Err(alive))
            }
        };
        if letter.answer {
            self.answers.push((letter.client, letter.number, letter.sent, answer));
        }
        Ok(())
    }

    fn lose(&mut self) {
        if !self.letters.is_empty() && self.rng.bool() {
            let at = self.rng.usize(..self.letters.len());
            self.letters.swap_remove(at);
        } else if !self.answers.is_empty() {
            let at = self.rng.usize(..self.answers.len());
            self.answers.swap_remove(at);
        }
    }

    fn deliver_answer(&mut self) -> Result<(), String> {
        if self.answers.is_empty() {
            return Ok(());
        }
        let at = self.rng.usize(..self.answers.len());
        if self.clients[self.answers[at].0].paused {
            return Ok(());
        }
        let (client, number, sent, answer) = self.answers.swap_remove(at);
        if let Some(Err(alive)) = answer {
            let state = &mut self.clients[client];
            state.renewing = false;
            let from = if broken(Broken::DeadlineFromAnswer) { self.now } else { sent };
            if !alive {
                state.deadline = 0;
            } else if self.now < state.deadline {
                state.deadline = state.deadline.max(from + TTL);
            }
            return Ok(());
        }
        if self.clients[client].open.as_ref().is_none_or(|open| open.0 != number) {
            return Ok(());
        }
        self.clients[client].open = None;
        match answer {
            Some(Ok(answer)) => self.answered(client, &answer),
            // The lease has ended: nothing of it is left in etcd.
            _ => {
                self.clients[client] = self.new_client();
                Ok(())
            }
        }
    }

    fn send(&mut self, client: usize, txn: Txn) {
        self.numbers += 1;
        self.clients[client].open = Some((self.numbers, txn.clone()));
        let ask = Ask::Txn(txn);
        self.letters.push(Letter {
            client,
            number: self.numbers,
            sent: self.now,
            ask,
            answer: true,
        });
    }

    /// Has a client that is not paused do something.
    fn act(&mut self, client: usize) -> Result<(), String> {
        let now = self.now;
        if now >= self.clients[client].deadline && !broken(Broken::NoClock) {
            // It finds its lease lost and begins anew; its requests may still be on their way.
            self.letters.iter_mut().filter(|l| l.client == client).for_each(|l| l.answer = false);
            self.answers.retain(|answer| answer.0 != client);
            self.clients[client] = self.new_client();
            return Ok(());
        }
        let left = self.clients[client].deadline.saturating_sub(now);
        if left < TTL * 2 / 3 && (!self.clients[client].renewing || self.rng.u32(..4) == 0) {
            self.clients[client].renewing = true;
            let ask = Ask::Renew(self.clients[client].lease);
            self.letters.push(Letter { client, number: 0, sent: now, ask, answer: true });
        }
        if let Some((number, txn)) = self.clients[client].open.clone() {
            // No answer yet: sent once more.
            if self.rng.u32(..6) == 0 {
                self.seen.copies += 1;
                let state = &mut self.clients[client];
                if let (Doing::Acquiring, Some(acquire)) = (&state.doing, &mut state.acquire) {
                    acquire.repeats();
                }
                if let Doing::Releasing { again, .. } = &mut state.doing {
                    *again = true;
                }
                let ask = Ask::Txn(txn);
                self.letters.push(Letter { client, number, sent: now, ask, answer: true });
            }
            return Ok(());
        }
        let gives_up = self.rng.u32(..12) == 0;
        let state = &mut self.clients[client];
        match &mut state.doing {
            Doing::Idle if self.calm => {}
            Doing::Idle => self.begin(client),
            Doing::Waiting { keys, from, deletions } => {
                let woken = self.etcd.has_event(keys, *from, *deletions);
                let acquire = state.acquire.as_mut().ok_or("a waiter without an attempt")?;
                let step = if woken {
                    acquire.look()
                } else if gives_up && !self.calm {
                    self.seen.given_up += 1;
                    acquire.give_up()
                } else {
                    return Ok(());
                };
                state.doing = Doing::Acquiring;
                self.follow(client, step)?;
            }
            Doing::Holding { turns } if *turns > 0 => *turns -= 1,
            Doing::Holding { .. } => {
                state.doing = Doing::Releasing { again: false, carried_out: false };
                let txn = state.plan.as_ref().ok_or("a holder without a place")?.release();
                self.send(client, txn);
            }
            Doing::Acquiring | Doing::Repairing | Doing::Releasing { .. } => {}
        }
        Ok(())
    }

    fn begin(&mut self, client: usize) {
        let mode = match self.mix {
            Mix::Mutex => Mode::Write,
            Mix::Readers if self.rng.bool() => Mode::Read,
            Mix::Readers => Mode::Write,
            Mix::Permits => Mode::Permits { want: self.rng.u32(1..=2), of: 2 },
        };
        let only_try = self.rng.u32(..5) == 0;
        let state = &mut self.clients[client];
        state.attempt += 1;
        state.mode = mode;
        let (keys, who) = (self.keys.clone(), Who::default());
        let mut acquire = Acquire::new(keys, mode, state.lease, state.attempt, who, only_try);
        state.doing = Doing::Acquiring;
        let step = acquire.start();
        state.acquire = Some(acquire);
        // The first step is always a request.
        if let Step::Send(txn) = step {
            self.send(client, txn);
        }
    }

    fn follow(&mut self, client: usize, step: Step) -> Result<(), String> {
        match step {
            Step::Send(txn) => self.send(client, txn),
            Step::Wait { keys, from, deletions } => {
                self.clients[client].doing = Doing::Waiting { keys, from, deletions };
            }
            Step::In(entered) => self.enter(client, entered)?,
            Step::Refused(Refusal::Gone)
                if self.etcd.leases.contains_key(&self.clients[client].lease) =>
            {
                return Err("a place is gone although the lease lives".into());
            }
            Step::Refused(_) => self.clients[client].doing = Doing::Idle,
        }
        Ok(())
    }

    fn enter(&mut self, client: usize, entered: Entered) -> Result<(), String> {
        self.seen.entered += 1;
        let state = &mut self.clients[client];
        let acquire = state.acquire.as_ref().ok_or("in without an attempt")?;
        let plan = ReleasePlan {
            keys: self.keys.clone(),
            mode: state.mode,
            place: acquire.place().to_owned(),
            lease: state.lease,
            created: entered.revision,
            who: Who::default(),
            repeated: acquire.is_repeated(),
        };
        if state.mode == Mode::Write && self.now < state.deadline {
            let owed = self.owed.get(&plan.place).copied();
            match (entered.died, owed) {
                (_, None) => return Err("in, and never named as the owner".into()),
                (true, Some(false)) => return Err("told of a death, and nobody died".into()),
                (false, Some(true)) => return Err("not told of a death".into()),
                _ => {}
            }
        }
        if entered.died {
            self.seen.told_of_death += 1;
            state.doing = Doing::Repairing;
            let txn = plan.mark_consistent();
            state.plan = Some(plan);
            self.send(client, txn);
        } else {
            state.plan = Some(plan);
            state.doing = Doing::Holding { turns: self.rng.u8(..4) };
        }
        Ok(())
    }

    fn answered(&mut self, client: usize, answer: &Answer) -> Result<(), String> {
        let state = &mut self.clients[client];
        match state.doing {
            Doing::Acquiring => {
                let step = state.acquire.as_mut().ok_or("an answer for nobody")?.answered(answer);
                self.follow(client, step)
            }
            Doing::Repairing => {
                state.doing = Doing::Holding { turns: 1 };
                Ok(())
            }
            Doing::Releasing { again, carried_out } => {
                let plan = state.plan.take().ok_or("a release of nothing")?;
                let released = plan.released(answer, again);
                let in_time = self.now < state.deadline;
                if in_time && carried_out && released == Released::Gone {
                    return Err("released, and told that it was lost".into());
                }
                state.doing = Doing::Idle;
                Ok(())
            }
            Doing::Idle | Doing::Waiting { .. } | Doing::Holding { .. } => Ok(()),
        }
    }
}
