//! What to do with a semaphore of which the use is known.

use super::model::{MissingEvidence, NoMutexWhy, SemaphoreOrigin, SemaphoreVerdict};

/// Returns the next steps, each a sentence.
pub(super) fn steps(origin: &SemaphoreOrigin) -> Vec<String> {
    let steps: Vec<&str> = match origin.verdict {
        SemaphoreVerdict::Mutex => of_mutex(origin),
        SemaphoreVerdict::NoMutex => {
            origin.reasons.iter().map(|reason| of_reason(reason.reason)).collect()
        }
        SemaphoreVerdict::Unclear => vec![of_missing(origin.missing)],
    };
    let mut all: Vec<String> = Vec::new();
    for step in steps {
        if !all.iter().any(|known| known == step) {
            all.push(step.into());
        }
    }
    all
}

fn of_mutex(origin: &SemaphoreOrigin) -> Vec<&'static str> {
    let mut steps = vec!["declare it as a mutex; take it by lock, give it by unlock"];
    if origin.value.is_none() {
        steps.push("its initialisation was not seen: look whether it begins with 1");
    }
    if !origin.several_threads {
        steps.push("only one thread took it: run it with others before you rely on that");
    }
    for (is_so, step) in [
        (origin.refused != 0, "attempts that may fail become trylock"),
        (origin.timed_out != 0, "waits with a deadline become lock_timeout"),
        (origin.interrupted != 0, "waits that a signal handler may end become lock_interruptible"),
        (origin.count_reads != 0, "who asks for the count asks is_locked"),
        (
            origin.left_taken != 0,
            "it was still taken at its end, or at that of the program: give it back first",
        ),
    ] {
        if is_so {
            steps.push(step);
        }
    }
    steps
}

fn of_reason(why: NoMutexWhy) -> &'static str {
    match why {
        NoMutexWhy::BeginsTaken => {
            "it tells a thread that something has happened: keep the semaphore; or, if it is \
             given once by the thread that initialises it, begin with 1 instead"
        }
        NoMutexWhy::BeginsAboveOne | NoMutexWhy::RisesAboveOne | NoMutexWhy::TakenTwice => {
            "it counts: keep the semaphore"
        }
        NoMutexWhy::GivenByAnother => {
            "let the thread that took it give it; if it is a message to another thread, keep the \
             semaphore"
        }
        NoMutexWhy::InHandler => "a mutex is not for signal handlers: keep the semaphore",
        NoMutexWhy::ProcessShared => {
            "a mutex of lockstead's shared segments can take its place where each process gives \
             back what it took"
        }
        NoMutexWhy::DestroyedTaken => "give it back before it is destroyed, and look again",
        NoMutexWhy::ThreadEnded => "give it back before the thread ends, and look again",
    }
}

fn of_missing(missing: Option<MissingEvidence>) -> &'static str {
    match missing {
        Some(MissingEvidence::NeverUsed) => "nobody used it in this run: run what does",
        Some(MissingEvidence::NeverTaken) => "nobody took it in this run: run what does",
        Some(MissingEvidence::NeverGiven) => "nobody gave it back in this run: run what does",
        Some(MissingEvidence::UnknownThreads) | None => {
            "threads used it that lockstead does not know, at their very end say: look by hand"
        }
    }
}
