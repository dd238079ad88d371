//! The rules by name: the phrase of a report's first line, the slug of files,
//! and what a reader has to know who meets one for the first time.

use lockstead_ledger::violation::Rule;

/// The slug of an inversion of lock order, whatever the number of locks.
pub const INVERSION: &str = "lock-order-inversion";

/// The slug of a deadlock that happened.
pub const DEADLOCK: &str = "deadlock";

/// What a rule is called in the first line of a report.
#[must_use]
pub fn phrase(rule: Rule) -> &'static str {
    match rule {
        Rule::UnlockByAnother => "unlock by another thread",
        Rule::UnlockOfUnlocked => "unlock of an unlocked lock",
        Rule::Recursion => "recursion",
        Rule::Uninitialised => "use without initialisation",
        Rule::Overwritten => "held lock overwritten",
        Rule::ReleasedElsewhere => "held lock released by another process",
        Rule::OverwrittenFree => "lock overwritten before its use",
        Rule::Copied => "use of a copied lock",
        Rule::ThreadExit => "thread exit while holding",
        Rule::ProcessExit => "process exit while holding",
        Rule::Freed => "memory of a held lock freed",
        Rule::Unmapped => "memory of a held lock unmapped",
        Rule::StackLeft => "stack of a held lock left",
        Rule::InitialisedHeld => "initialised while held",
        Rule::DestroyedHeld => "destroyed while held",
        Rule::Destroyed => "use after destruction",
        Rule::InFreedMemory => "use in freed memory",
        Rule::InHandler => "use in a signal handler",
        Rule::HeldAtFork => "use in a child of a lock held at fork",
        Rule::JoinHolding => "join while holding",
        Rule::ConditionUnlocked => "condition wait with an unlocked mutex",
        Rule::ConditionMutexes => "condition wait with a changing mutex",
        Rule::ConditionRecursive => "condition wait with a mutex held more than once",
        Rule::ConditionHolding => "condition wait while holding",
        Rule::RecursiveRead => "recursive read lock",
        Rule::Sleepy => "blocking call under a lock",
    }
}

/// What a rule is called in files: its phrase with dashes.
#[must_use]
pub fn slug(rule: Rule) -> String {
    phrase(rule).replace(' ', "-")
}

/// The rule with this slug.
#[must_use]
pub fn from_slug(text: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|&rule| slug(rule) == text)
}

/// All slugs that a finding can have.
#[must_use]
pub fn slugs() -> Vec<String> {
    [DEADLOCK, INVERSION].map(str::to_owned).into_iter().chain(Rule::ALL.map(slug)).collect()
}

/// Why a violation matters, in a sentence.
#[must_use]
pub fn meaning(rule: Rule) -> &'static str {
    match rule {
        Rule::UnlockByAnother => {
            "A mutex belongs to the thread that locked it; what another one's unlock does is \
             undefined, and what it guarded is open."
        }
        Rule::UnlockOfUnlocked => {
            "Nobody held the lock: an unlock too many, which may release it under the next owner."
        }
        Rule::Recursion => {
            "The thread holds the lock already and it is not recursive: it waits for itself for \
             ever."
        }
        Rule::Uninitialised => {
            "The lock's memory was neither initialised by a call nor by a static initialiser."
        }
        Rule::Overwritten => {
            "The memory of a held lock was written over: its owner and its waiters are forgotten."
        }
        Rule::ReleasedElsewhere => {
            "A lock belongs to the thread that locked it, of whichever process; what it guarded was \
             open meanwhile, and the next owner may be inside as well."
        }
        Rule::OverwrittenFree => {
            "The lock's memory was written over after its initialisation or its last use: who waits \
             or will wait for it is forgotten, or it is a lock of another kind."
        }
        Rule::Copied => {
            "A copy of a lock is another lock: whoever uses the original is not kept out."
        }
        Rule::ThreadExit => "The thread has ended and nobody is left to unlock.",
        Rule::ProcessExit => {
            "A thread ended the process inside a critical section: what the lock guards may be \
             half-changed, and destructors that need it wait for ever."
        }
        Rule::Freed => "The memory goes to others while a thread is to unlock in it.",
        Rule::Unmapped => "The memory goes away while a thread is to unlock in it.",
        Rule::StackLeft => {
            "The lock lies in a stack frame that is gone: the next call writes over it."
        }
        Rule::InitialisedHeld => {
            "Initialising a held lock makes it free: its owner and the next one are both inside."
        }
        Rule::DestroyedHeld => "Destroying a held lock is undefined; its owner has yet to unlock.",
        Rule::Destroyed => "The lock was destroyed and not initialised again.",
        Rule::InFreedMemory => {
            "The lock's memory was freed, and no lock was initialised there since: it may be \
             anybody's by now."
        }
        Rule::InHandler => {
            "A signal that arrives while its own thread holds the lock makes the handler wait for \
             ever."
        }
        Rule::HeldAtFork => {
            "The thread that held the lock does not exist in the child: nobody will unlock it \
             there."
        }
        Rule::JoinHolding => {
            "The joined thread takes the lock that the joining one holds: each waits for the other."
        }
        Rule::ConditionUnlocked => {
            "A wait on a condition gives its mutex back, which the caller did not have."
        }
        Rule::ConditionRecursive => {
            "A wait gives a recursive mutex back once: held twice, it stays locked, and who is to \
             signal under it never gets it."
        }
        Rule::ConditionMutexes => {
            "Threads wait for one condition with different mutexes at a time, which is undefined."
        }
        Rule::ConditionHolding => {
            "The thread sleeps with a further lock that whoever signals the condition takes first."
        }
        Rule::RecursiveRead => {
            "A second read lock in one thread waits behind a writer that waits for the first one."
        }
        Rule::Sleepy => "Whoever wants the lock waits for the call as well.",
    }
}

/// Why an inversion matters.
pub const INVERSION_MEANING: &str =
    "Threads that take the same locks in different orders wait for each other when they meet.";

/// What a deadlock is.
pub const DEADLOCK_MEANING: &str = "Threads wait for each other in a cycle, for ever.";

/// Why a finding with this slug matters.
#[must_use]
pub fn meaning_of(slug: &str) -> &'static str {
    match from_slug(slug) {
        Some(rule) => meaning(rule),
        None if slug == INVERSION => INVERSION_MEANING,
        None => DEADLOCK_MEANING,
    }
}

/// What to do about a finding with this slug.
#[must_use]
pub fn remedy_of(slug: &str) -> &'static str {
    match from_slug(slug) {
        Some(rule) => remedy(rule),
        None if slug == INVERSION => {
            "Take these locks in one order everywhere, or hold one lock around them all; where the \
             order cannot be known, take the second one by trylock and begin anew if that fails."
        }
        None => {
            "Take the locks of the cycle in one order everywhere; the stacks show where each thread \
             acquired what the one before it wants."
        }
    }
}

/// What to do about a violation, in a sentence.
#[must_use]
pub fn remedy(rule: Rule) -> &'static str {
    match rule {
        Rule::UnlockByAnother => {
            "Unlock in the thread that locked; where another one is to be told of something, use a \
             semaphore or a condition."
        }
        Rule::UnlockOfUnlocked => {
            "Look for the path on which the lock is not taken, or is unlocked twice."
        }
        Rule::Recursion => {
            "Split the function into one that locks and one that expects the lock to be held, or \
             make the mutex recursive."
        }
        Rule::Uninitialised => {
            "Initialise the lock by its function or its static initialiser before anybody uses it."
        }
        Rule::Overwritten | Rule::OverwrittenFree => {
            "Look for what writes there: a structure that is cleared or copied over, or a write \
             past the end of its neighbour."
        }
        Rule::ReleasedElsewhere => "Unlock in the process and the thread that locked.",
        Rule::Copied => "Pass structures with locks in them by pointer, and never copy them.",
        Rule::ThreadExit => {
            "Unlock on every way out of the thread, cancellation included, by a clean-up handler \
             or a guard; or make the mutex robust."
        }
        Rule::ProcessExit => {
            "Unlock before the process is ended, or let another thread end it that holds nothing."
        }
        Rule::Freed | Rule::Unmapped => {
            "Unlock first, and give the memory back when nobody can reach it any more."
        }
        Rule::StackLeft => {
            "Unlock before the function returns, or let the lock live as long as its users."
        }
        Rule::InitialisedHeld => "Initialise a lock once, before anybody can reach it.",
        Rule::DestroyedHeld => "Destroy the lock when nobody can hold it or ask for it any more.",
        Rule::Destroyed => {
            "Let all users end before the lock is destroyed, or initialise it again after that."
        }
        Rule::InFreedMemory => {
            "Free the memory when nobody can reach the lock any more, or initialise a lock there."
        }
        Rule::InHandler => {
            "Use no lock in the handler: set a flag, write to a pipe, or take the signal with \
             sigwait in a thread of its own."
        }
        Rule::HeldAtFork => {
            "Call only async-signal-safe functions between fork and exec, or take the lock around \
             the fork by pthread_atfork."
        }
        Rule::JoinHolding => "Unlock before joining.",
        Rule::ConditionUnlocked => {
            "Lock the mutex before waiting, and test what is waited for under it."
        }
        Rule::ConditionRecursive => {
            "Wait with the mutex held once, or with one that is not recursive."
        }
        Rule::ConditionMutexes => "Use one mutex with each condition.",
        Rule::ConditionHolding => "Give the other lock back before waiting.",
        Rule::RecursiveRead => {
            "Take the read lock once and hand it on, or use a lock that prefers readers."
        }
        Rule::Sleepy => "Make the call before the lock is taken or after it is given back.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_lead_back_and_are_unique() {
        let slugs = slugs();
        let unique: std::collections::HashSet<_> = slugs.iter().collect();
        assert_eq!((slugs.len(), unique.len()), (28, 28));
        for rule in Rule::ALL {
            assert_eq!(from_slug(&slug(rule)), Some(rule));
            assert!(meaning(rule).ends_with('.') && remedy(rule).ends_with('.'));
        }
        assert_eq!(slug(Rule::ConditionMutexes), "condition-wait-with-a-changing-mutex");
        assert_eq!(from_slug(INVERSION), None);
    }
}
