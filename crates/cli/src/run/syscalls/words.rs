//! What a futex word belongs to, by the call that sleeps on it and by the memory around it.
//!
//! # Role
//! Names on the stack decide in the end, where there are any. Until then, and in stripped programs,
//! this says where the lock lies and whether it is one.

use lockstead_inspect::glibc::mutex::GlibcMutex;
use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::proc::futex::{FutexWait, FutexWaitKind, WaitLimit};
use lockstead_inspect::proc::task::SleepingCall;
use lockstead_ledger::lock::attribute;

/// Bytes from a mutex of musl to the word that its waiters sleep on.
pub(super) const MUSL_WORD: u64 = 4;
/// The bit of that word that says that threads wait.
const MUSL_WAITERS: u32 = 1 << 31;
/// The bits of that word that are the owner's number, or [`MUSL_TAKEN`].
const MUSL_OWNER: u32 = (1 << 30) - 1;
/// What stands in a default mutex that is taken.
const MUSL_TAKEN: u32 = 16;
/// The bits that the type of a mutex may have: its kind, robust, priority inheritance, shared.
const MUSL_TYPES: u32 = 3 | 4 | 8 | 128;

/// The object that a word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordOwner {
    /// The address of its first byte.
    pub(super) address: u64,
    /// What its record says of it: [`attribute`].
    pub(super) attributes: u16,
    /// Whether it is a mutex, as far as is known without names.
    pub(super) is_mutex: bool,
}

impl WordOwner {
    /// Returns what the word of a wait belongs to; the word itself, where nothing is known.
    pub(super) fn of(
        call: &SleepingCall,
        wait: &FutexWait,
        memory: &dyn ReadableMemory,
    ) -> WordOwner {
        let word = wait.address;
        let found = |address, attributes, is_mutex| WordOwner { address, attributes, is_mutex };
        if !matches!(wait.operation, FutexWaitKind::Wait { .. }) {
            return found(word, 0, false);
        }
        if !FutexWait::is_plain(call) {
            // As Rust's mutex.
            return found(word, 0, wait.expected == 2 && wait.limit == WaitLimit::None);
        }
        let mutex = GlibcMutex::behind(wait, memory).map(|mutex| mutex.address);
        if let Some(mutex) = mutex.or_else(|| musl_mutex(wait, memory)) {
            return found(mutex, attribute::C_LIBRARY, true);
        }
        // As with parking_lot, whose threads are parked with the lock beside the word.
        match wait.expected {
            1 => lock_beside(memory, word)
                .map_or(found(word, 0, false), |lock| found(lock, attribute::BESIDE, false)),
            _ => found(word, 0, false),
        }
    }
}

/// Returns the mutex of musl that a thread sleeps for. A default one has the error number `EBUSY` in
/// it while it is taken, the others their owner's number.
fn musl_mutex(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<u64> {
    let mutex = wait.address.checked_sub(MUSL_WORD).filter(|mutex| mutex.is_multiple_of(8))?;
    let mut bytes = [0; 12];
    (memory.read(mutex, &mut bytes).ok()? == bytes.len()).then_some(())?;
    let field =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (kind, word, waiters) = (field(0), field(4), field(8));
    let owner = word & MUSL_OWNER;
    let fits = kind & !MUSL_TYPES == 0
        && wait.private == (kind & 128 == 0)
        && word == wait.expected
        && word & MUSL_WAITERS != 0
        && waiters != 0
        && match kind & 15 {
            0 => owner == MUSL_TAKEN,
            _ => owner != 0,
        };
    fits.then_some(mutex)
}

/// Returns the address of the lock that stands beside a word, as with parking_lot; `None` where
/// nothing does that looks like it.
fn lock_beside(memory: &dyn ReadableMemory, word: u64) -> Option<u64> {
    const DATA: u64 = 32;
    let mut bytes = [0; DATA as usize];
    let data = word.checked_sub(DATA).filter(|_| word.is_multiple_of(8))?;
    (memory.read(data, &mut bytes).ok()? == bytes.len()).then_some(())?;
    let mut words =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    let [lock, next, first, second] = [(); 4].map(|()| words.next().unwrap_or_default());
    let is_address =
        |address: u64| (4096..1_u64 << lockstead_inspect::arch::ADDRESS_BITS).contains(&address);
    let is_next = next == 0 || is_address(next) && next % 8 == 0;
    (is_address(lock) && is_next && first < 4096 && second < 4096).then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_inspect::memory::SavedMemory;

    const FUTEX: i64 = lockstead_inspect::arch::FUTEX;
    const PRIVATE: u64 = 128;

    fn owner(operation: u64, word: u64, expected: u64, memory: &[u32]) -> WordOwner {
        let bytes = memory.iter().flat_map(|field| field.to_ne_bytes()).collect();
        let arguments = [word, operation | PRIVATE, expected, 0, 0, u64::from(u32::MAX)];
        let call = SleepingCall { number: FUTEX, arguments, sp: 0, pc: 0 };
        let wait = FutexWait::decode(&call).unwrap();
        WordOwner::of(&call, &wait, &SavedMemory::new(0x7000, bytes))
    }

    #[test]
    fn call_and_memory_tell_mutexes_from_other_words() {
        let is = |address, attributes, is_mutex| WordOwner { address, attributes, is_mutex };
        let taken = MUSL_WAITERS | MUSL_TAKEN;
        let musl = owner(0, 0x7004, taken.into(), &[0, taken, 1]);
        assert_eq!(musl, is(0x7000, attribute::C_LIBRARY, true));
        let owned = MUSL_WAITERS | 77;
        let recursive = owner(0, 0x7004, owned.into(), &[1, owned, 1]);
        assert_eq!(recursive, is(0x7000, attribute::C_LIBRARY, true));
        // A default mutex does not name its owner, and one that nobody waits for is none.
        assert_eq!(owner(0, 0x7004, owned.into(), &[0, owned, 1]), is(0x7004, 0, false));
        assert_eq!(owner(0, 0x7004, taken.into(), &[0, taken, 0]), is(0x7004, 0, false));
        let glibc = owner(0, 0x7000, 2, &[2, 0, 77, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(glibc, is(0x7000, attribute::C_LIBRARY, true));
        // The end of a thread of musl is waited for with a 2 as well.
        assert_eq!(owner(0, 0x7004, 2, &[0, 2, 0]), is(0x7004, 0, false));
        assert_eq!(owner(9, 0x7004, 2, &[0, 2, 0]), is(0x7004, 0, true), "as Rust's");
        let parked = [0x5000, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(owner(0, 0x7020, 1, &parked), is(0x5000, attribute::BESIDE, false));
    }
}
