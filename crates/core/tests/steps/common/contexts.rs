//! Wait/wound mutexes of the machine, whose words a test reads and writes as other threads would.

use super::{Alone, U64, as_participant, set, wakes};
use lockstead_core::policy::NoSpin;
use lockstead_core::word::Word;
use lockstead_core::ww::{Class, Context, ContextPatience, Scheme};
use lockstead_core::{Address, Atomic64, Ordering, RawWwMutex};

/// A lock whose waiters sleep at once.
pub(crate) type Lock = &'static RawWwMutex<Alone, NoSpin>;

/// The context of a participant.
pub(crate) type Begun = &'static Context<Alone>;

pub(crate) const SCHEMES: [Scheme; 2] = [Scheme::WaitDie, Scheme::WoundWait];

/// The flag in *first* which says that others sleep behind this context.
pub(crate) const FOLLOWED: u64 = 1;
/// The flag in *first* which says that the context holds other locks. Alone, it stands in *holder*
/// for one without a context.
pub(crate) const MORTAL: u64 = 2;

/// The patience of a context that gives up after a signal.
pub(crate) const IMPATIENT: ContextPatience =
    ContextPatience { deadline: None, interruptible: true };

/// Makes a lock on a machine on which no time passes but where a test says so.
pub(crate) fn lock() -> Lock {
    set(|machine| machine.tick = 0);
    Box::leak(Box::new(RawWwMutex::new()))
}

/// Returns the three words of a lock: the mutex, the holder's ticket, the first's ticket.
fn words(lock: Lock) -> &'static [U64; 3] {
    // SAFETY: the lock is made of three atomics of eight bytes (`repr(C)`), and lives for ever.
    unsafe { &*std::ptr::from_ref(lock).cast() }
}

/// Returns the word of the mutex that the lock is made of.
pub(crate) fn peek(lock: Lock) -> Word {
    Word(words(lock)[0].load(Ordering::Relaxed))
}

pub(crate) fn holder(lock: Lock) -> u64 {
    words(lock)[1].load(Ordering::Relaxed)
}

pub(crate) fn first(lock: Lock) -> u64 {
    words(lock)[2].load(Ordering::Relaxed)
}

/// Writes the word of the mutex that the lock is made of.
pub(crate) fn force(lock: Lock, word: u64) {
    words(lock)[0].store(word, Ordering::Relaxed);
}

pub(crate) fn set_holder(lock: Lock, ticket: u64) {
    words(lock)[1].store(ticket, Ordering::Relaxed);
}

pub(crate) fn set_first(lock: Lock, ticket: u64) {
    words(lock)[2].store(ticket, Ordering::Relaxed);
}

/// Makes a class of contexts.
pub(crate) fn class(scheme: Scheme) -> &'static Class<Alone> {
    Box::leak(Box::new(Class::new(scheme)))
}

/// Begins a context of participant `number`, the class's next one.
pub(crate) fn context(class: &'static Class<Alone>, number: u32) -> Begun {
    let begun = as_participant(number, || Context::begin(class));
    Box::leak(Box::new(begun.expect("a place")))
}

/// Begins a context of each participant, the older ones first.
pub(crate) fn contexts<const COUNT: usize>(scheme: Scheme, of: [u32; COUNT]) -> [Begun; COUNT] {
    let class = class(scheme);
    of.map(|number| context(class, number))
}

/// Returns the ticket of a context, without flags.
pub(crate) fn ticket(context: Begun) -> u64 {
    // SAFETY: a context begins with its ticket (`repr(C)`), and lives for ever.
    unsafe { *std::ptr::from_ref(context).cast() }
}

/// Returns the wake-ups since the last time: of those behind the first of the lock, of those that
/// sleep on its mutex, or of a context; and how many.
pub(crate) fn woken(lock: Lock) -> Vec<(&'static str, u32)> {
    let [base, _, first] = words(lock).each_ref().map(|word| std::ptr::from_ref(word).addr());
    let name = |Address(at)| match at {
        at if at == base => "base",
        at if at == first => "behind",
        _ => "context",
    };
    wakes().into_iter().map(|(address, count)| (name(address), count)).collect()
}
