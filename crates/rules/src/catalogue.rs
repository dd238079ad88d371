//! The catalogue: one entry a rule.
//!
//! # Adding one
//! Write an entry with the next free number, in the section of `docs/validator.md` that it belongs
//! to; a test says which row is missing there. A rule that the library inside a program decides has
//! a story as well: how the report tells it.

use crate::{By, Level, RuleText, Story};

// The anchors of the sections of `docs/validator.md`.
const ORDERS: &str = "deadlocks-and-orders";
const HOLDERS: &str = "holders";
const LIFE: &str = "life-and-memory";
const HANDLERS: &str = "handlers-and-forks";
const WAITING: &str = "waiting-while-holding";
const CONTEXTS: &str = "waitwound-contexts";

const RUN: By = By::RUN;
const C: By = By::C;
const RUN_C: By = RUN.and(C);
const RUN_CRATE: By = RUN.and(By::CRATE);
const CRATE_C: By = By::CRATE.and(C);
const ALL: By = RUN_CRATE.and(C);

/// Returns a story with what another thread, or none that is known, did before.
const fn told(does: &'static str, by_other: &'static str, before: &'static str) -> Story {
    Story { does, before_by_other: by_other, before, doubt: "it may be meant so" }
}

/// Returns a story in which the same thread did something before.
const fn before(does: &'static str, before: &'static str) -> Story {
    told(does, before, before)
}

/// Returns a story about a lock that somebody holds.
const fn held(does: &'static str) -> Story {
    told(does, "held by {other}, acquired", "it was acquired")
}

impl Story {
    /// Returns the story of a violation that is weak for another reason.
    const fn but(self, doubt: &'static str) -> Story {
        Story { doubt, ..self }
    }
}

/// Puts dashes for spaces.
const fn dashed<const N: usize>(phrase: &str) -> [u8; N] {
    let mut id = [0; N];
    let mut at = 0;
    while at < N {
        id[at] = if phrase.as_bytes()[at] == b' ' { b'-' } else { phrase.as_bytes()[at] };
        at += 1;
    }
    id
}

/// Makes the enumeration and its table from one list.
macro_rules! rules {
    ($(#[doc = $doc:literal]
       $name:ident = $number:literal, $phrase:literal, $level:ident, $by:ident, $section:ident:
       $meaning:literal, $remedy:literal $(, $story:expr)?;)*) => {
        /// A rule of the use of locks. Its number is that of a record in a ledger.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        #[repr(u32)]
        pub enum Rule {
            $(#[doc = $doc] $name = $number,)*
        }

        impl Rule {
            /// All rules, in the order of the tables of `docs/validator.md`.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];

            pub(crate) const fn text(self) -> &'static RuleText {
                match self {
                    $(Rule::$name => {
                        const ID: [u8; $phrase.len()] = dashed($phrase);
                        const TEXT: RuleText = RuleText {
                            id: match str::from_utf8(&ID) {
                                Ok(id) => id,
                                Err(_) => panic!("a phrase is text"),
                            },
                            phrase: $phrase,
                            level: Level::$level,
                            by: $by,
                            section: $section,
                            meaning: $meaning,
                            remedy: $remedy,
                            story: [$(Some($story),)? None][0],
                        };
                        &TEXT
                    })*
                }
            }
        }
    };
}

rules! {
    /// Threads wait for each other for ever.
    Deadlock = 27, "deadlock", Deadlock, ALL, ORDERS:
        "Threads wait for each other in a cycle, for ever.",
        "Take the locks of the cycle in one order everywhere; the stacks show where each thread \
         acquired what the one before it wants.";
    /// Locks are taken in orders that contradict each other.
    LockOrderInversion = 28, "lock order inversion", Potential, ALL, ORDERS:
        "Threads that take the same locks in different orders wait for each other when they meet.",
        "Take these locks in one order everywhere, or hold one lock around them all; where the \
         order cannot be known, take the second one by trylock and begin anew if that fails.";

    /// A thread unlocks a lock that another thread owns.
    UnlockByAnother = 1, "unlock by another thread", Rule, RUN_C, HOLDERS:
        "A mutex belongs to the thread that locked it; what another one's unlock does is \
         undefined, and what it guarded is open.",
        "Unlock in the thread that locked; where another one is to be told of something, use a \
         semaphore or a condition.",
        held("unlocks {lock}, which it does not hold");
    /// A thread unlocks a lock that nobody holds.
    UnlockOfUnlocked = 2, "unlock of an unlocked lock", Rule, RUN_C, HOLDERS:
        "Nobody held the lock: an unlock too many, which may release it under the next owner.",
        "Look for the path on which the lock is not taken, or is unlocked twice.",
        told("unlocks {lock}, which nobody holds", "unlocked before by {other}", "unlocked before");
    /// A thread takes a lock that it holds and that is not recursive.
    Recursion = 3, "recursion", Rule, RUN_C, HOLDERS:
        "The thread holds the lock already and it is not recursive: it waits for itself for ever.",
        "Split the function into one that locks and one that expects the lock to be held, or make \
         the mutex recursive.",
        before("locks {lock}", "holds {lock} already, acquired");
    /// A thread takes a read lock again, which a waiting writer makes a deadlock.
    RecursiveRead = 21, "recursive read lock", Rule, RUN_CRATE, HOLDERS:
        "A second read lock in one thread waits behind a writer that waits for the first one.",
        "Take the read lock once and hand it on, or use a lock that prefers readers.",
        before("reads {lock} again", "acquired before");
    /// A thread releases a reader-writer lock in another way than it holds it.
    OtherWay = 29, "another way of holding", Rule, C, HOLDERS:
        "The thread holds the lock for reading and releases it as a writer, or the other way \
         round.",
        "Release by the function that belongs to the acquisition.";
    /// Another process unlocks a lock that this process holds.
    ReleasedElsewhere = 23, "held lock released by another process", Rule, RUN, HOLDERS:
        "A lock belongs to the thread that locked it, of whichever process; what it guarded was \
         open meanwhile, and the next owner may be inside as well.",
        "Unlock in the process and the thread that locked.",
        held("finds {lock}, which it holds, released");
    /// A thread ends while it holds a lock.
    ThreadExit = 7, "thread exit while holding", Rule, ALL, HOLDERS:
        "The thread has ended and nobody is left to unlock.",
        "Unlock on every way out of the thread, cancellation included, by a clean-up handler or a \
         guard; or make the mutex robust.",
        before("has ended and holds {lock}", "acquired");
    /// A thread that holds a lock ends the process.
    ProcessExit = 8, "process exit while holding", Rule, RUN, HOLDERS:
        "A thread ended the process inside a critical section: what the lock guards may be \
         half-changed, and destructors that need it wait for ever.",
        "Unlock before the process is ended, or let another thread end it that holds nothing.",
        held("ends the process while {lock} is held").but("nobody else wanted it");
    /// A thread ends the turn of another thread at a once.
    EndOfOtherTurn = 30, "end of a turn of another", Rule, C, HOLDERS:
        "A thread ends the turn at a once that is not its own: whoever has the turn is not done.",
        "End the turn in the thread that began it, once.";
    /// The program says of a lock how the thread holds it, and that is not so.
    HoldAsserted = 49, "failed assertion of a hold", Rule, C, HOLDERS:
        "The code asserts that its thread holds the lock, or does not, and relies on it; that is \
         not so.",
        "Look for the caller that does not take the lock, or takes it in another way.";

    /// A lock is used that was never initialised.
    Uninitialised = 4, "use without initialisation", Rule, RUN, LIFE:
        "The lock's memory was neither initialised by a call nor by a static initialiser.",
        "Initialise the lock by its function or its static initialiser before anybody uses it.",
        told("uses {lock}, which nobody initialised", "seen before by {other}", "seen before");
    /// A lock is initialised while somebody holds it.
    InitialisedHeld = 12, "initialised while held", Rule, RUN_C, LIFE:
        "Initialising a held lock makes it free: its owner and the next one are both inside.",
        "Initialise a lock once, before anybody can reach it.",
        held("initialises {lock}");
    /// A lock is destroyed while somebody holds it.
    DestroyedHeld = 13, "destroyed while held", Rule, RUN_C, LIFE:
        "Destroying a held lock is undefined; its owner has yet to unlock.",
        "Destroy the lock when nobody can hold it or ask for it any more.",
        held("destroys {lock}");
    /// A lock is used after it was destroyed.
    Destroyed = 14, "use after destruction", Rule, RUN_C, LIFE:
        "The lock was destroyed and not initialised again.",
        "Let all users end before the lock is destroyed, or initialise it again after that.",
        told("uses {lock}", "destroyed by {other}", "destroyed");
    /// A copy of an initialised lock is used.
    Copied = 6, "use of a copied lock", Rule, RUN, LIFE:
        "A copy of a lock is another lock: whoever uses the original is not kept out.",
        "Pass structures with locks in them by pointer, and never copy them.",
        told("uses {lock}, a copy",
            "the original was initialised by {other}",
            "the original was initialised");
    /// The memory of a lock is written over while somebody holds it.
    Overwritten = 5, "held lock overwritten", Rule, RUN, LIFE:
        "The memory of a held lock was written over: its owner and its waiters are forgotten.",
        "Look for what writes there: a structure that is cleared or copied over, or a write past \
         the end of its neighbour.",
        held("finds {lock} written over");
    /// The memory of a lock is written over while nobody holds it.
    OverwrittenFree = 26, "lock overwritten before its use", Rule, RUN, LIFE:
        "The lock's memory was written over after its initialisation or its last use: who waits \
         or will wait for it is forgotten, or it is a lock of another kind.",
        "Look for what writes there: a structure that is cleared or copied over, or a write past \
         the end of its neighbour.",
        before("uses {lock}, which was written over", "initialised")
            .but("its words are in order, as an assignment leaves them");
    /// The memory of a held lock is freed or reallocated.
    Freed = 9, "memory of a held lock freed", Rule, RUN, LIFE:
        "The memory goes to others while a thread is to unlock in it.",
        "Unlock first, and give the memory back when nobody can reach it any more.",
        held("frees the memory of {lock}");
    /// A lock is used in memory that was freed.
    InFreedMemory = 25, "use in freed memory", Rule, RUN, LIFE:
        "The lock's memory was freed, and no lock was initialised there since: it may be \
         anybody's by now.",
        "Free the memory when nobody can reach the lock any more, or initialise a lock there.",
        told("uses {lock}, whose memory was freed",
            "the memory was freed by {other}",
            "the memory was freed");
    /// The memory of a held lock is unmapped.
    Unmapped = 10, "memory of a held lock unmapped", Rule, RUN, LIFE:
        "The memory goes away while a thread is to unlock in it.",
        "Unlock first, and give the memory back when nobody can reach it any more.",
        held("unmaps the memory of {lock}");
    /// The stack frame or the stack that a held lock lies in is left.
    StackLeft = 11, "stack of a held lock left", Rule, RUN, LIFE:
        "The lock lies in a stack frame that is gone: the next call writes over it.",
        "Unlock before the function returns, or let the lock live as long as its users.",
        held("leaves the stack that {lock} lies on");
    /// A call is given a null pointer.
    NullPointer = 31, "null pointer", Rule, C, LIFE:
        "The call was given no lock, context or class at all.",
        "Look for what should have set the pointer.";
    /// A call is given an address where no lock can be.
    NotALock = 32, "not a lock", Rule, C, LIFE:
        "No lock can lie at this address: it is not aligned.",
        "Look for where the pointer comes from.";
    /// A lock is given to a function of another kind of lock.
    OtherKind = 33, "another kind of lock", Rule, C, LIFE:
        "A lock of one kind is given to a function of another kind, which reads its words in \
         another way.",
        "Use the functions of the lock's own type, and no casts.";

    /// A lock is taken in a signal handler, and elsewhere with that signal unblocked.
    InHandler = 15, "use in a signal handler", Rule, RUN, HANDLERS:
        "A signal that arrives while its own thread holds the lock makes the handler wait for \
         ever.",
        "Use no lock in the handler: set a flag, write to a pipe, or take the signal with sigwait \
         in a thread of its own.",
        told("takes {lock} in a handler of {signal}",
            "acquired with that signal unblocked by {other}",
            "acquired with that signal unblocked")
            .but("nobody takes it outside of handlers");
    /// A forked child uses a lock that another thread of the parent held.
    HeldAtFork = 16, "use in a child of a lock held at fork", Rule, RUN, HANDLERS:
        "The thread that held the lock does not exist in the child: nobody will unlock it there.",
        "Call only async-signal-safe functions between fork and exec, or take the lock around the \
         fork by pthread_atfork.",
        told("uses {lock} in a forked child",
            "held at the fork by {other} of the parent, acquired",
            "held at the fork, acquired");

    /// A thread joins another one and holds a lock that this one takes.
    JoinHolding = 17, "join while holding", Rule, RUN, WAITING:
        "The joined thread takes the lock that the joining one holds: each waits for the other.",
        "Unlock before joining.",
        told("waits for the end of {other} and holds {lock}",
            "{other} takes {lock}",
            "{lock} is taken by the other thread")
            .but("the joined thread did not want it any more");
    /// A thread waits on a condition with a mutex that it does not hold.
    ConditionUnlocked = 18, "condition wait with an unlocked mutex", Rule, RUN_C, WAITING:
        "A wait on a condition gives its mutex back, which the caller did not have.",
        "Lock the mutex before waiting, and test what is waited for under it.",
        held("waits for a condition with {lock}, which it does not hold");
    /// A thread waits on a condition with a recursive mutex that it holds more than once.
    ConditionRecursive = 24, "condition wait with a mutex held more than once", Rule, RUN, WAITING:
        "A wait gives a recursive mutex back once: held twice, it stays locked, and who is to \
         signal under it never gets it.",
        "Wait with the mutex held once, or with one that is not recursive.",
        before("waits for a condition with {lock}, which it holds {times} times", "acquired last");
    /// Threads wait on one condition with two mutexes.
    ConditionMutexes = 19, "condition wait with a changing mutex", Rule, RUN, WAITING:
        "Threads wait for one condition with different mutexes at a time, which is undefined.",
        "Use one mutex with each condition.",
        told("waits for a condition with {lock}, for which others wait with {second}",
            "the other wait by {other}",
            "the other wait");
    /// A thread waits for a condition and holds a lock under which the condition is signalled.
    ConditionHolding = 20, "condition wait while holding", Rule, RUN, WAITING:
        "The thread sleeps with a further lock that whoever signals the condition takes first.",
        "Give the other lock back before waiting.",
        told("waits for a condition with {second} and holds {lock}",
            "{other} takes {lock}",
            "{lock} is taken by the other thread")
            .but("the condition was signalled without it too");
    /// A thread makes a call that may block for long, under a lock.
    Sleepy = 22, "blocking call under a lock", Rule, RUN, WAITING:
        "Whoever wants the lock waits for the call as well.",
        "Make the call before the lock is taken or after it is given back.",
        before("calls {call} and holds {lock}", "acquired");

    /// A wait/wound mutex is asked for in a context of another class.
    ContextOfOtherClass = 34, "context of another class", Rule, CRATE_C, CONTEXTS:
        "A lock is asked for in a context of another class: nobody can say which of two such \
         contexts is older.",
        "Use one class for all locks that are taken together, and its contexts.";
    /// A context that has said that it is done asks for a further lock.
    AcquisitionAfterDone = 35, "acquisition after done", Rule, CRATE_C, CONTEXTS:
        "The context has said that it needs no further lock.",
        "Say that the context is done after its last acquisition.";
    /// A context that was refused a lock asks for one while it still holds others.
    NoBackingOff = 36, "no backing off after a refusal", Rule, CRATE_C, CONTEXTS:
        "The context was told to back off and asks for a lock while it holds others, for which \
         others may wait.",
        "Release all locks of the context after a refusal, then take the refused one first.";
    /// A context that was refused a lock asks for another one first.
    OtherLockFirst = 37, "another lock after a refusal", Rule, CRATE_C, CONTEXTS:
        "The context asks for another lock than the one it was refused: it may be refused again \
         at once.",
        "Take the refused lock first, by the slow call.";
    /// A thread that holds locks in a context takes one of their class without it.
    AloneBesideContext = 38, "lock taken alone beside a context", Rule, CRATE_C, CONTEXTS:
        "A lock that is taken without the context is never told to back off, and its thread may \
         wait for ever.",
        "Take it in the context that holds the others.";
    /// A thread begins a context while it has another one of the class.
    SecondContext = 39, "second context of a class", Rule, CRATE_C, CONTEXTS:
        "Two contexts of one thread may wait for each other.",
        "End the first context before the second one begins, or take all locks in one.";
    /// The slow acquisition is called while the context holds locks.
    SlowWhileHolding = 40, "lock_slow while holding", Rule, C, CONTEXTS:
        "The slow call waits as long as it takes, and others may wait for the locks that the \
         context holds.",
        "Release all locks of the context before the slow call.";
    /// The slow acquisition is called by a context that was not refused.
    SlowWithoutRefusal = 41, "lock_slow without a refusal", Rule, CRATE_C, CONTEXTS:
        "The slow call is for the lock that the context was refused, and it was refused none.",
        "Use the plain acquisition.";
    /// A context says twice that it is done.
    DoneTwice = 42, "done twice", Rule, CRATE_C, CONTEXTS:
        "The context has said before that it needs no further lock.",
        "Say it once, after the last acquisition.";
    /// A context ends while it holds locks.
    EndedHolding = 43, "context ended while holding", Rule, CRATE_C, CONTEXTS:
        "The context has ended, and nobody releases its locks.",
        "Release all locks of a context before it ends.";
    /// A context is begun where one is that has not ended.
    BegunAgain = 44, "context begun again", Rule, C, CONTEXTS:
        "A context was begun at this address and has not ended.",
        "End each context before its memory is used again.";
    /// An address is used as a context where none was begun.
    NoContext = 45, "no context", Rule, C, CONTEXTS:
        "No context was begun at this address.",
        "Begin the context before it is used.";
    /// A context is used after its end.
    EndedContext = 46, "use of an ended context", Rule, C, CONTEXTS:
        "The context has ended.",
        "Use a context between its beginning and its end only.";
    /// A thread uses the context of another thread.
    ContextOfOtherThread = 47, "context of another thread", Rule, C, CONTEXTS:
        "A context belongs to the thread that began it.",
        "Begin a context in each thread.";
    /// A thread ends whose context has not ended.
    ThreadExitContext = 48, "thread exit with a context", Rule, C, CONTEXTS:
        "The thread has ended, and its context never will.",
        "End the context on every way out of the thread.";
}
