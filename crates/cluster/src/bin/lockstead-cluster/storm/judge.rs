//! What must hold under faults, from what the clients say.

use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What was heard of one owner.
#[derive(Clone, Copy, Debug)]
struct Owner {
    pid: u32,
    /// The first and the last moment at which it was sure.
    first: u64,
    last: u64,
}

#[derive(Default)]
struct Facts {
    /// The owners, by their tokens.
    owners: BTreeMap<u64, Owner>,
    turns: BTreeMap<u32, u64>,
    /// The register that checks tokens: the greatest that it has seen.
    register: u64,
    accepted: u64,
    refused: u64,
    died: u64,
    lost: u64,
    wrong: Vec<String>,
}

/// The one who hears all clients.
#[derive(Clone, Default)]
pub(super) struct Judge(Arc<Mutex<Facts>>);

impl Judge {
    fn facts(&self) -> std::sync::MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears one line of a client.
    pub(super) fn hear(&self, pid: u32, line: &str) {
        let mut words = line.split(' ');
        let (Some(word), Some(Ok(token))) = (words.next(), words.next().map(str::parse::<u64>))
        else {
            return;
        };
        let at = words.next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut facts = self.facts();
        match word {
            "in" => {
                *facts.turns.entry(pid).or_default() += 1;
                let owner = Owner { pid, first: at, last: at };
                if let Some(other) = facts.owners.insert(token, owner) {
                    let text = format!("token {token} was given to {} and to {pid}", other.pid);
                    facts.wrong.push(text);
                }
            }
            "sure" => {
                if let Some(owner) = facts.owners.get_mut(&token) {
                    owner.last = at;
                }
            }
            "write" if token >= facts.register => {
                facts.register = token;
                facts.accepted += 1;
            }
            "write" => facts.refused += 1,
            "died" => facts.died += 1,
            "lost" => facts.lost += 1,
            _ => {}
        }
    }

    pub(super) fn turns(&self, pid: u32) -> u64 {
        self.facts().turns.get(&pid).copied().unwrap_or(0)
    }

    pub(super) fn summary(&self) -> String {
        let facts = self.facts();
        format!(
            "{} owners, {} told of a death, {} lost, register accepted {} and refused {} writes",
            facts.owners.len(),
            facts.died,
            facts.lost,
            facts.accepted,
            facts.refused
        )
    }

    /// Prints what was found, and fails if something did not hold.
    pub(super) fn report(
        &self,
        seed: u64,
        faults: u64,
        (served, clients): (usize, usize),
        left: &[String],
    ) -> Result<(), Failure> {
        let mut wrong = self.facts().wrong.clone();
        let (mut overlaps, mut before): (u64, Option<(u64, Owner)>) = (0, None);
        for (token, owner) in &self.facts().owners {
            // In the order of tokens: whoever has a greater one was never sure before a smaller one's
            // last moment.
            if let Some((older, other)) = before.filter(|(_, other)| other.last > owner.first) {
                overlaps += 1;
                wrong.push(format!(
                    "{} was sure by token {older} for {} ns after {} was by token {token}",
                    other.pid,
                    other.last - owner.first,
                    owner.pid
                ));
            }
            let last = before.map_or(0, |(_, other)| other.last).max(owner.last);
            before = Some((*token, Owner { last, ..*owner }));
        }
        if served < clients {
            wrong.push(format!("{} of {clients} clients were not served", clients - served));
        }
        wrong.extend(left.iter().map(|what| format!("{what} is left behind")));
        output::print(&format!(
            "seed {seed}: {faults} faults; {}; {overlaps} moments with two owners; {served} of \
             {clients} clients served at the end; {} keys left\n",
            self.summary(),
            left.len()
        ))?;
        if wrong.is_empty() { Ok(()) } else { Err(Failure::Run(wrong.join("\n"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_owners_at_once_are_noticed() {
        let judge = Judge::default();
        for line in ["in 10 100", "sure 10 200", "in 20 201", "out 20"] {
            judge.hear(1, line);
        }
        assert!(judge.report(1, 0, (1, 1), &[]).is_ok());
        judge.hear(2, "sure 10 300");
        assert!(judge.report(1, 0, (1, 1), &[]).is_err());
    }

    #[test]
    fn the_register_refuses_an_old_owners_write() {
        let judge = Judge::default();
        for line in ["write 10", "write 20", "write 10"] {
            judge.hear(1, line);
        }
        assert!(
            judge.summary().ends_with("accepted 2 and refused 1 writes"),
            "{}",
            judge.summary()
        );
    }
}
