//! What goes on in one storm: the locks, the workers, and what happens to them.

use super::limits::{MAX_LOCKS, MAX_PROCESSES, MAX_THREADS};
use super::tally::StormLockKind;
use crate::{Error, options};
use serde::Serialize;
use std::fmt;

/// The namespaces of process ids in which the workers live.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Namespacing {
    /// All workers live in that of the command.
    #[default]
    One,
    /// Each worker is process 1 of one of its own.
    Each,
    /// Every other worker is, the rest lives in that of the command.
    Several,
}

/// One combination of what a storm can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mix {
    /// Which kinds of locks they use. A report has one object for each instead.
    #[serde(skip)]
    pub kinds: Vec<StormLockKind>,
    /// The number of workers at a time.
    pub processes: usize,
    /// The number of locks of each kind.
    pub locks: usize,
    /// The number of threads of each worker.
    pub threads: usize,
    /// The namespaces of process ids in which the workers live.
    pub namespaces: Namespacing,
    /// Whether threads give the kernel a list of their own, in the segment (`--exclusive`).
    pub exclusive: bool,
    /// Whether the same threads use robust mutexes of the C library (`--beside-robust`).
    pub beside_robust: bool,
    /// Whether threads leave after every operation, or end and others come in their place
    /// (`--churn`).
    pub churn: bool,
    /// Whether some workers are stopped, and go on or are killed (`--stop`).
    pub stop: bool,
    /// Whether some workers end by a thread's call of `exec` (`--exec`).
    pub exec: bool,
    /// Whether some that are killed lose their memory before their threads end (`--reap`).
    pub reap: bool,
    /// Whether every other worker is another user's (`--users`).
    pub users: bool,
    /// Whether workers have no `/proc` (`--without-proc`).
    pub without_proc: bool,
}

impl Default for Mix {
    /// Returns 4 processes of one thread, 8 mutexes, nothing but kills.
    fn default() -> Self {
        Self {
            kinds: vec![StormLockKind::Mutex],
            processes: 4,
            locks: 8,
            threads: 1,
            namespaces: Namespacing::One,
            exclusive: false,
            beside_robust: false,
            churn: false,
            stop: false,
            exec: false,
            reap: false,
            users: false,
            without_proc: false,
        }
    }
}

impl Mix {
    /// Tells whether workers open the segment by its name. Who has no `/proc`, or has given up its
    /// rights to its own folder there by becoming another user, can use no descriptor that it
    /// has inherited.
    pub(super) fn needs_a_name(&self) -> bool {
        self.without_proc || self.users
    }

    /// Tells whether there can be such a storm, on any machine.
    pub(super) fn check(&self) -> Result<(), Error> {
        options::within("--lock", self.kinds.len(), 1..=StormLockKind::ALL.len(), " kinds")?;
        options::within("--processes", self.processes, 1..=MAX_PROCESSES, "")?;
        options::within("--locks", self.locks, 1..=MAX_LOCKS, "")?;
        options::within("--threads", self.threads, 1..=MAX_THREADS, "")?;
        // The C library's mutexes do not work in a thread that has an exclusive list; they
        // take the death of a waiter in another namespace for that of the owner; and of a
        // death of which the kernel does not tell they never hear.
        let others = [
            (self.exclusive, "--exclusive"),
            (self.namespaces != Namespacing::One, "--namespaces"),
            (self.reap, "--reap"),
            (self.exec, "--exec"),
        ];
        let other = others.into_iter().find(|(given, _)| *given);
        if let Some((_, other)) = other.filter(|_| self.beside_robust) {
            return Err(Error::Option {
                option: "--beside-robust",
                given: format!("with {other}"),
                allowed: "without --exclusive, --namespaces, --reap and --exec".into(),
            });
        }
        Ok(())
    }

    /// Returns all that `measure_all` lets happen, each for a while.
    pub(super) fn all() -> Vec<Mix> {
        let plain = Mix { kinds: StormLockKind::ALL.to_vec(), ..Mix::default() };
        let (two, three) =
            (Mix { threads: 2, ..plain.clone() }, Mix { threads: 3, ..plain.clone() });
        let (each, several) = (Namespacing::Each, Namespacing::Several);
        let most = Mix { churn: true, stop: true, exec: true, reap: true, ..three.clone() };
        vec![
            plain.clone(),
            Mix { churn: true, ..three.clone() },
            Mix { stop: true, ..two.clone() },
            Mix { exec: true, ..three.clone() },
            Mix { reap: true, ..two.clone() },
            Mix { users: true, ..two.clone() },
            Mix { without_proc: true, ..two.clone() },
            Mix { namespaces: each, ..plain },
            Mix { namespaces: several, churn: true, ..three.clone() },
            Mix { beside_robust: true, ..two },
            Mix { exclusive: true, reap: true, ..three.clone() },
            Mix { namespaces: several, reap: true, ..three.clone() },
            Mix { namespaces: several, without_proc: true, users: true, churn: true, ..three },
            Mix { users: true, namespaces: several, ..most },
        ]
    }
}

impl fmt::Display for Mix {
    /// Returns what it has that is not usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "1 thread" } else { "threads" };
        if self.threads > 1 {
            write!(f, "{} ", self.threads)?;
        }
        f.write_str(threads)?;
        for (has, name) in [
            (self.namespaces == Namespacing::Each, "namespaces=each"),
            (self.namespaces == Namespacing::Several, "namespaces=several"),
            (self.without_proc, "without-proc"),
            (self.users, "users"),
            (self.exclusive, "exclusive"),
            (self.beside_robust, "beside-robust"),
            (self.churn, "churn"),
            (self.stop, "stop"),
            (self.exec, "exec"),
            (self.reap, "reap"),
        ] {
            if has {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storms_that_cannot_be_are_refused() {
        let usual = Mix { beside_robust: true, ..Mix::default() };
        for (mix, expected) in [
            (Mix { kinds: Vec::new(), ..usual.clone() }, "--lock"),
            (Mix { threads: 0, ..usual.clone() }, "--threads"),
            (Mix { exclusive: true, ..usual.clone() }, "--exclusive"),
            (Mix { namespaces: Namespacing::Several, ..usual.clone() }, "--namespaces"),
            (Mix { reap: true, ..usual.clone() }, "--reap"),
            (Mix { exec: true, ..usual.clone() }, "--exec"),
        ] {
            let refused = mix.check().expect_err(expected);
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        usual.check().expect("possible");
    }

    #[test]
    fn all_of_them_are_possible_differ_and_have_everything() {
        let all = Mix::all();
        for (at, mix) in all.iter().enumerate() {
            mix.check().expect("possible");
            assert!(!all[..at].contains(mix), "{mix} is there twice");
            assert_eq!(mix.kinds, StormLockKind::ALL);
        }
        let has: [fn(&Mix) -> bool; 10] = [
            |mix| mix.namespaces == Namespacing::Each,
            |mix| mix.namespaces == Namespacing::Several,
            |mix| mix.exclusive,
            |mix| mix.beside_robust,
            |mix| mix.churn,
            |mix| mix.stop,
            |mix| mix.exec,
            |mix| mix.reap,
            |mix| mix.users,
            |mix| mix.without_proc,
        ];
        for (number, has) in has.into_iter().enumerate() {
            assert!(all.iter().any(has) && !all.iter().all(has), "number {number}");
        }
    }
}
