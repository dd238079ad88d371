//! What a client of the model does, one step at a time.

use super::*;

impl World {
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
