//! What a lock can tell or do only because it names its owner, tried.
//!
//! Each trial does to each lock what goes wrong in programs, and writes down what
//! the lock answered. All waits have deadlines.

use core::panic::Location;
use lockstead_core::{LockError, Platform, RawMutex, TunedSemaphore, WaitBounds};
use lockstead_linux::Linux;
use serde::Serialize;
use std::thread;
use std::time::Duration;

/// One trial with both locks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// What was tried with it.
    pub trial: &'static str,
    /// What an owner is needed for here.
    pub gives: &'static str,
    /// What the mutex answered.
    pub mutex: String,
    /// What the semaphore answered.
    pub semaphore: String,
    /// Whether the mutex could tell and the semaphore could not.
    pub only_mutex: bool,
}

/// How long a trial that waits in vain waits.
const PATIENCE: Duration = Duration::from_millis(20);

fn soon() -> WaitBounds<'static, Linux> {
    let deadline = Linux::now().after(PATIENCE.as_nanos() as u64);
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

fn answer(result: Result<(), LockError>) -> (String, bool) {
    match result {
        Ok(()) => ("acquired".into(), false),
        Err(LockError::TimedOut) => {
            (format!("waited, gave up after {} ms", PATIENCE.as_millis()), false)
        }
        Err(LockError::Recursive) => ("refused at once: the caller holds it".into(), true),
        Err(LockError::OwnerLost) => {
            ("refused at once: the holder stayed behind in the parent".into(), true)
        }
        Err(error) => (format!("{error:?}"), false),
    }
}

/// Tries everything with each lock.
#[must_use]
pub fn try_all() -> Vec<Trial> {
    vec![again(), who(), somebody_else()]
}

/// Takes what the caller holds already.
fn again() -> Trial {
    let mutex = RawMutex::<Linux>::new();
    let semaphore = TunedSemaphore::<Linux>::new(1).expect("one permit is possible");
    let here = Location::caller();
    mutex.lock(here).expect("nobody holds a new mutex");
    semaphore.down(here);
    let (mutex_says, mutex_tells) = answer(mutex.lock_how(&soon(), 0, here));
    let (semaphore_says, semaphore_tells) = answer(semaphore.down_how(&soon(), here));
    // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
    unsafe { mutex.unlock() };
    Trial {
        trial: "the holder takes it once more",
        gives: "debugging: recursion is reported and not slept through",
        mutex: mutex_says,
        semaphore: semaphore_says,
        only_mutex: mutex_tells && !semaphore_tells,
    }
}

/// Asks a lock that another thread holds for its holder.
fn who() -> Trial {
    let mutex = RawMutex::<Linux>::new();
    let semaphore = TunedSemaphore::<Linux>::new(1).expect("one permit is possible");
    let here = Location::caller();
    mutex.lock(here).expect("nobody holds a new mutex");
    semaphore.down(here);
    let me = Linux::me();
    let (owner, word) = thread::scope(|scope| {
        let asked = scope.spawn(|| (mutex.owner(), semaphore.peek()));
        asked.join().expect("asking does not panic")
    });
    // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
    unsafe { mutex.unlock() };
    let known = owner == Some(me);
    Trial {
        trial: "another thread asks who holds it",
        gives: "spinning while the owner runs, lending it a priority, finding deadlocks, and \
                noticing its death",
        mutex: match owner {
            Some(owner) => format!("thread {} of the table", owner.get()),
            None => "nobody".into(),
        },
        semaphore: format!("{} permits are free", word.subject()),
        only_mutex: known && word.owner() != Some(me),
    }
}

/// Gives back what another thread took. Of a mutex that is forbidden, so what is
/// tried is what a checked face asks first: is it mine?
fn somebody_else() -> Trial {
    let mutex = RawMutex::<Linux>::new();
    let semaphore = TunedSemaphore::<Linux>::new(1).expect("one permit is possible");
    let here = Location::caller();
    mutex.lock(here).expect("nobody holds a new mutex");
    semaphore.down(here);
    let (mine, given) = thread::scope(|scope| {
        let other = scope.spawn(|| (mutex.is_mine(), semaphore.up().is_ok()));
        other.join().expect("asking does not panic")
    });
    // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
    unsafe { mutex.unlock() };
    Trial {
        trial: "a thread that did not take it gives it back",
        gives: "debugging: only the owner releases",
        mutex: if mine { "taken for its owner" } else { "known not to be its owner" }.into(),
        semaphore: if given { "accepted" } else { "refused" }.into(),
        only_mutex: !mine && given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mutex_can_tell_and_the_semaphore_cannot() {
        for trial in try_all() {
            assert!(trial.only_mutex, "{trial:?}");
        }
    }
}
