//! The rules of locks, as far as they are decided inside the program: by the
//! library that checks, and not at all by the one that only observes.
//!
//! # Role
//! [`record`](crate::record) and the [interposed](crate::interpose) functions call
//! the functions of this file where a rule may be broken; in the build without the
//! feature `check` they are empty, and their calls vanish. They note violations in
//! the ledger (`note`); the command names and prints them.
//!
//! | module | rules |
//! |---|---|
//! | `unlock` | unlock by another thread, of an unlocked lock; held lock overwritten |
//! | `recursion` | recursion |
//! | `exit` | thread exit, process exit while holding |
//! | `life` | use without initialisation, of a copied lock, after destruction |
//! | `at_fork` | use in a child of a lock held at fork |
//! | `join` | join while holding |
//! | `condition` | condition wait with an unlocked, a changing mutex; while holding |
//! | `reader` | recursive read lock |
//! | `worlds` | use in a signal handler; `handlers` knows when a thread is in one |
//! | `sleepy` | blocking call under a lock |
//! | `semaphore` | the order of semaphores that serve as mutexes |
//! | `tokens` | what semaphores are used for |
//! | `handoff` | what a program may say about its locks |
//! | `held` | initialised, destroyed while held; memory of a held lock freed, unmapped, left |
//!
//! # What a rule may conclude from
//! The held stacks say what threads have acquired, as far as that was recorded: a
//! handler that interrupts the library is not. The `words` of glibc's locks say
//! who holds a mutex, and whether anybody holds the others. A violation is noted only
//! where both agree, or where the words alone suffice; so what was acquired
//! unseen is no violation.
//!
//! # Invariants
//! - **RULES-PASSED** The memory of a lock that a rule looks at is readable for the size of its
//!   kind: the program passes it to the function that it calls, which reads it as well, and the
//!   library looks before that call or before it returns.

#[cfg(feature = "check")]
pub mod at_fork;
#[cfg(feature = "check")]
pub mod condition;
#[cfg(feature = "check")]
pub mod cookie;
#[cfg(feature = "check")]
pub mod exit;
#[cfg(feature = "check")]
pub mod handlers;
#[cfg(feature = "check")]
pub mod handoff;
#[cfg(feature = "check")]
pub mod held;
#[cfg(feature = "check")]
pub mod hush;
#[cfg(feature = "check")]
pub mod join;
#[cfg(feature = "check")]
pub mod life;
#[cfg(feature = "check")]
pub mod note;
#[cfg(feature = "check")]
pub mod reader;
#[cfg(feature = "check")]
pub mod recursion;
#[cfg(feature = "check")]
pub mod semaphore;
#[cfg(feature = "check")]
pub mod sleepy;
#[cfg(feature = "check")]
pub mod tokens;
#[cfg(feature = "check")]
pub mod unlock;
#[cfg(feature = "check")]
pub mod words;
#[cfg(feature = "check")]
pub mod worlds;

#[cfg(feature = "check")]
pub use held::{Gone, memory_gone};

use crate::call::{CallOutcome, CallPlace, LockCall, Nature};
use crate::me::Me;
use crate::site::CallSite;
use lockstead_ledger::lock::{LockRecord, ObjectKind};
use lockstead_ledger::publish::Flags;
use lockstead_ledger::thread::ThreadPart;
use lockstead_ledger::usage::Sharing;

/// `calls! { fn name<T>(argument: Type, ...) => function; ... }`: functions that
/// call their namesakes in the library that checks, and do nothing in the other.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident$(<$t:ident: $bound:path>)?($($argument:ident: $type:ty),*)
        => $function:path;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name$(<$t: $bound>)?($($argument: $type),*) {
            #[cfg(feature = "check")]
            $function($($argument),*);
            #[cfg(not(feature = "check"))]
            let _ = ($($argument,)*);
        }
    )* };
}

calls! {
    /// Called when the calling thread is about to give back the lock at `address`; its held stack
    /// says still what it said before.
    fn releases<N: Nature>(me: &Me, address: u64, nature: &N, site: &CallSite) => unlock::releases;
    /// Called when the calling thread did not get a lock at once and is about to wait for it.
    fn waits<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) => before_wait;
    /// Called when the calling thread has just acquired a lock, which is not on its held stack yet.
    fn acquired<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace, how: Flags) => has_acquired;
    /// Called when the calling thread acquires a lock, or is about to wait for it, and that is not
    /// recorded.
    fn passes<N: Nature>(call: &LockCall<'_, N>, how: Flags) => worlds::passes;
    /// Called when the lock is about to be initialised.
    fn initialises(address: u64, kind: ObjectKind, site: &CallSite) => before_initialisation;
    /// Called when the lock is about to be destroyed.
    fn destroys(address: u64, kind: ObjectKind, site: &CallSite) => held::destroys;
    /// Called when the lock was initialised.
    fn initialised(me: &Me, address: u64, kind: ObjectKind, attributes: u16) => has_initialised;
    /// Called when the lock was destroyed; its record says still what it was.
    fn destroyed(me: &Me, address: u64, kind: ObjectKind, site: &CallSite) => life::destroyed;
    /// Called when the calling thread uses a lock that it does not know; the ledger says still what
    /// it said before.
    fn first_use<N: Nature>(me: &Me, address: u64, nature: &N, stack: u32) => life::first_use;
    /// Called when a lock that was not known has got a record.
    fn recorded(me: &Me, address: u64) => handoff::recorded;
    /// Called when the calling thread has tried to acquire a lock and got an error.
    fn fails<N: Nature>(call: &LockCall<'_, N>) => life::fails;
    /// Called when the calling thread is about to join another one.
    fn joins(me: &Me, other: ThreadPart<'_>, site: &CallSite) => join::joins;
    /// Called when a condition is about to be signalled or broadcast.
    fn signals(condition: u64, site: &CallSite) => condition::signals;
    /// Called when the calling thread has got a semaphore that serves as a mutex, for which it may
    /// have waited.
    fn semaphore_asked<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) => semaphore::asked;
    /// Called when a semaphore that was taken for a mutex turns out to be a signal.
    fn semaphore_signals(semaphore: u64, index: u32, lock: &LockRecord) => semaphore::signals;
    /// Called when the calling thread gives a token of a semaphore.
    fn token_given(semaphore: u64, site: &CallSite) => tokens::given;
    /// Called when the calling thread has got a token, after it has waited since then; 0: it has
    /// not waited.
    fn token_taken(semaphore: u64, site: &CallSite, since: u64) => tokens::taken;
    /// Called when the calling thread has asked for a token and has got none.
    fn token_missed(semaphore: u64, site: &CallSite, outcome: CallOutcome) => tokens::missed;
    /// Called when a semaphore was initialised or opened, with this value if that is known.
    fn semaphore_begins(me: &Me, semaphore: u64, site: &CallSite, value: Option<u32>, sharing: Sharing)
        => tokens::begins;
    /// Called when a semaphore was destroyed or closed; its record says still what it was.
    fn semaphore_ends(me: &Me, semaphore: u64, site: &CallSite) => tokens::ends;
    /// Says whether to note what semaphores are used for.
    fn want_tokens(wanted: bool) => tokens::want;
    /// Says whether to look at calls that may block.
    fn want_sleepy(wanted: bool) => sleepy::want;
    /// Called when the calling thread is about to fork.
    fn forks(me: &Me) => at_fork::forks;
    /// Called when the calling thread has forked, and this is the parent.
    fn has_forked() => at_fork::in_parent;
    /// Called when the process is a forked child, which has no ledger yet.
    fn forked() => in_child;
    /// Tells that the calling thread ends.
    fn thread_ends(me: &Me) => at_end;
}

#[cfg(feature = "check")]
fn before_wait<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    life::waits(me, call, place);
    recursion::waits(me, call, place);
    reader::reads(me, call, place, Flags::NONE);
    worlds::uses(me, call, place, Flags::NONE);
    condition::waits(me, call, place);
    semaphore::waits(me, call, place);
    at_fork::waits(me, call, place);
}

#[cfg(feature = "check")]
fn before_initialisation(address: u64, kind: ObjectKind, site: &CallSite) {
    held::initialises(address, kind, site);
    at_fork::initialises(address);
}

#[cfg(feature = "check")]
fn has_acquired<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace, how: Flags) {
    unlock::acquired(me, call, place);
    reader::reads(me, call, place, how);
    worlds::uses(me, call, place, how);
}

#[cfg(feature = "check")]
fn has_initialised(me: &Me, address: u64, kind: ObjectKind, attributes: u16) {
    life::initialised(address, kind, attributes);
    handoff::recorded(me, address);
}

#[cfg(feature = "check")]
fn at_end(me: &Me) {
    exit::thread_ends(me);
}

#[cfg(feature = "check")]
fn in_child() {
    note::forget();
    life::forked();
    condition::forget();
    worlds::forget();
    at_fork::in_child();
}
