//! Who holds a lock, by the words that glibc keeps in it.
//!
//! # Role
//! The held stacks know what was recorded; these words know what is. Offsets and
//! bits are those of glibc's binary interface, which static initialisers and
//! locks in shared memory have fixed for good.
//!
//! | lock | word | meaning |
//! |---|---|---|
//! | mutex | 0 | 0: free. Robust and priority inheritance: the owner's number below two flags. Priority ceiling: the ceiling above 19 bits |
//! | | 1 | of a recursive one: how often the owner has locked it |
//! | | 2 | the owner's number, written after the lock was taken and erased before it is given back |
//! | | 4 | kind; -1 of a destroyed one |
//! | reader-writer lock | 0 | readers above three flags: write phase, writer, readers sleep |
//! | | 6 | the writer's number |
//! | semaphore, barrier | 2, 3 | 0, or 128 of a shared one |
//! | condition variable | 9 (seen with 2.36), or 7 (2.43) | the third bit: destroyed |
//! | spin lock | 0 | what initialisation writes: free |

use crate::real::{self, call};
use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use lockstead_ledger::lock::ObjectKind;

/// The number of words of the largest lock.
pub const MOST: usize = 14;

/// The holder of a lock, as far as its words tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordHolder {
    /// Nobody holds the lock.
    Nobody,
    /// The thread with this number.
    Thread(u32),
    /// So many readers hold the lock.
    Readers(u32),
    /// Somebody holds it who is not named.
    Somebody,
    /// It is being taken or given back, or these are no words of such a lock.
    Unknown,
}

/// The words of a lock, read at one time.
#[derive(Clone, Copy, Debug)]
pub struct LockWords {
    kind: ObjectKind,
    words: [u32; MOST],
}

/// The bits of a mutex's kind.
mod mutex {
    pub(super) const TYPE: u32 = 3;
    pub(super) const ROBUST: u32 = 16;
    pub(super) const INHERIT: u32 = 32;
    pub(super) const PROTECT: u32 = 64;
    pub(super) const SHARED: u32 = 128;
    pub(super) const ELISION: u32 = 256 | 512;
    pub(super) const ALL: u32 = TYPE | ROBUST | INHERIT | PROTECT | SHARED | ELISION;
    /// The owner's number in the word of a robust or inheriting one.
    pub(super) const NUMBER: u32 = 0x3fff_ffff;
    /// The bits of the word below the ceiling.
    pub(super) const BELOW_CEILING: u32 = 0x7_ffff;
}

/// The bits of a reader-writer lock's first word.
mod rwlock {
    pub(super) const WRITER: u32 = 2;
    pub(super) const READERS_SHIFT: u32 = 3;
}

/// What semaphores and barriers that are shared say in their third or fourth word.
const SHARED: u32 = 128;

/// Returns how many words a lock of this kind has that are looked at.
#[must_use]
pub const fn count(kind: ObjectKind) -> usize {
    match kind {
        ObjectKind::Mutex => 10,
        ObjectKind::RwLock => MOST,
        ObjectKind::Spin => 1,
        ObjectKind::Semaphore | ObjectKind::Barrier => 8,
        ObjectKind::Condition => 12,
        _ => 0,
    }
}

/// The bit by which glibc marks a condition variable that it has destroyed.
const DESTROYED: u32 = 4;

/// Returns the word of a condition variable with that bit. Versions do not tell it, for distributions
/// bring changes to older ones: a condition is destroyed, and looked at.
fn mark_of_destroyed() -> usize {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let known = FOUND.load(Relaxed);
    if known != 0 {
        return known;
    }
    let mut condition = [0_u64; count(ObjectKind::Condition) / 2];
    let place = condition.as_mut_ptr().cast();
    // SAFETY: memory of this frame, of the size and alignment of a condition variable, which nobody
    // else knows; `start` has resolved the real functions.
    let words = unsafe {
        call::pthread_cond_init()(place, core::ptr::null());
        call::pthread_cond_destroy()(place);
        LockWords::read(ObjectKind::Condition, place as u64).words
    };
    // Of a library that leaves no mark the word is one that nothing uses.
    let found = words.iter().position(|&word| word == DESTROYED).unwrap_or(MOST - 1);
    FOUND.store(found, Relaxed);
    found
}

impl LockWords {
    /// Reads the words of a lock that the program passes at this moment.
    ///
    /// # Safety
    /// At `address` is memory of the size of such a lock, aligned.
    #[must_use]
    pub unsafe fn read(kind: ObjectKind, address: u64) -> LockWords {
        let mut words = [0; MOST];
        for (index, word) in words[..count(kind)].iter_mut().enumerate() {
            // SAFETY: RULES-PASSED: the caller promises memory of the size of such a lock; glibc
            // changes the words atomically.
            *word = unsafe { (*(address as *const AtomicU32).add(index)).load(Relaxed) };
        }
        LockWords { kind, words }
    }

    /// Reads the words at an address that may be mapped no more. Returns `None` if they cannot be
    /// read.
    #[must_use]
    pub fn read_if_there(kind: ObjectKind, address: u64) -> Option<LockWords> {
        let mut words = [0_u32; MOST];
        let bytes = count(kind) * size_of::<u32>();
        let to = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
        let from = libc::iovec { iov_base: address as *mut _, iov_len: bytes };
        let arguments =
            [sys::getpid() as usize, &raw const to as usize, 1, &raw const from as usize, 1, 0];
        // SAFETY: writes into the words, which are live and as long; what it reads
        // the kernel checks.
        let read = unsafe { sys::call(libc::SYS_process_vm_readv, arguments) };
        (read == Ok(bytes) && bytes != 0).then_some(LockWords { kind, words })
    }

    /// Returns who holds the lock.
    #[must_use]
    pub fn holder(&self) -> WordHolder {
        match self.kind {
            ObjectKind::Mutex => self.mutex_holder(),
            ObjectKind::RwLock => self.rwlock_holder(),
            ObjectKind::Spin if self.words[0] == free_spin() => WordHolder::Nobody,
            ObjectKind::Spin => WordHolder::Somebody,
            _ => WordHolder::Unknown,
        }
    }

    fn mutex_holder(&self) -> WordHolder {
        let [lock, _, owner, _, kind, ..] = self.words;
        if !self.is_sound() {
            return WordHolder::Unknown;
        }
        let locked = if kind & (mutex::ROBUST | mutex::INHERIT) != 0 {
            return match lock & mutex::NUMBER {
                0 => WordHolder::Nobody,
                number => WordHolder::Thread(number),
            };
        } else if kind & mutex::PROTECT != 0 {
            lock & mutex::BELOW_CEILING
        } else {
            lock
        };
        match (locked, owner) {
            (0, _) => WordHolder::Nobody,
            (_, 0) => WordHolder::Unknown,
            (_, owner) => WordHolder::Thread(owner),
        }
    }

    fn rwlock_holder(&self) -> WordHolder {
        let (state, writer) = (self.words[0], self.words[6]);
        match state >> rwlock::READERS_SHIFT {
            _ if writer != 0 => WordHolder::Thread(writer),
            0 if state & rwlock::WRITER == 0 => WordHolder::Nobody,
            0 => WordHolder::Unknown,
            readers => WordHolder::Readers(readers),
        }
    }

    /// Tells whether a mutex of this kind, a reader-writer lock of this preference exists.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        const INHERIT_OR_PROTECT: u32 = mutex::INHERIT | mutex::PROTECT;
        match self.kind {
            ObjectKind::Mutex => {
                let kind = self.words[4];
                kind & !mutex::ALL == 0 && kind & INHERIT_OR_PROTECT != INHERIT_OR_PROTECT
            }
            ObjectKind::RwLock => self.words[12] <= 2 && self.words[7] <= 1,
            ObjectKind::Semaphore => matches!(self.words[2], 0 | SHARED),
            ObjectKind::Barrier => matches!(self.words[3], 0 | SHARED),
            _ => true,
        }
    }

    /// Tells whether the words of a mutex are ones that glibc writes there. Where the first is not
    /// a thread's number, nor beside a ceiling, it says that the mutex is free, taken, or waited
    /// for; and only of a recursive one the second counts.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        const NUMBERS: u32 = mutex::ROBUST | mutex::INHERIT | mutex::PROTECT;
        let [lock, depth, _, _, kind, ..] = self.words;
        self.is_sound()
            && (self.kind != ObjectKind::Mutex
                || kind & NUMBERS != 0
                || lock <= 2 && (depth == 0 || self.is_recursive()))
    }

    /// Tells whether a mutex carries the mark of a destroyed one.
    #[must_use]
    pub fn is_destroyed_mutex(&self) -> bool {
        self.kind == ObjectKind::Mutex && self.words[4] == u32::MAX
    }

    /// Tells whether a condition variable carries the mark of a destroyed one.
    #[must_use]
    pub fn is_destroyed_condition(&self) -> bool {
        self.kind == ObjectKind::Condition && self.words[mark_of_destroyed()] & DESTROYED != 0
    }

    /// Tells whether processes may share a semaphore or a barrier.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match self.kind {
            ObjectKind::Semaphore => self.words[2] != 0,
            ObjectKind::Barrier => self.words[3] != 0,
            _ => false,
        }
    }

    /// Tells whether processes may share a mutex or a reader-writer lock.
    #[must_use]
    pub fn is_between_processes(&self) -> bool {
        match self.kind {
            ObjectKind::Mutex => self.is_sound() && self.words[4] & mutex::SHARED != 0,
            ObjectKind::RwLock => self.is_sound() && self.words[7] != 0,
            _ => false,
        }
    }

    /// Tells whether a mutex survives its owner.
    #[must_use]
    pub fn is_robust(&self) -> bool {
        self.kind == ObjectKind::Mutex && self.words[4] & mutex::ROBUST != 0
    }

    /// Tells whether its owner may lock it again.
    #[must_use]
    pub fn is_recursive(&self) -> bool {
        self.kind == ObjectKind::Mutex && self.words[4] & mutex::TYPE == 1
    }

    /// Returns how often the owner of a mutex has locked it.
    #[must_use]
    pub fn depth(&self) -> u32 {
        if self.is_recursive() { self.words[1] } else { 1 }
    }

    /// Returns the word at this index.
    #[must_use]
    pub fn word(&self, index: usize) -> u32 {
        self.words[index]
    }
}

/// Returns what a free spin lock contains: asked of glibc once, for its machines differ.
fn free_spin() -> u32 {
    static FREE: AtomicU32 = AtomicU32::new(u32::MAX);
    let known = FREE.load(Relaxed);
    if known != u32::MAX {
        return known;
    }
    real::resolve();
    let mut lock = 0_u32;
    // SAFETY: resolved; a live word of our own, which is a spin lock's size.
    unsafe { call::pthread_spin_init()((&raw mut lock).cast(), 0) };
    FREE.store(lock, Relaxed);
    lock
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(kind: ObjectKind, set: &[(usize, u32)]) -> WordHolder {
        let mut words = [0; MOST];
        set.iter().for_each(|&(index, word)| words[index] = word);
        LockWords { kind, words }.holder()
    }

    #[test]
    fn mutexes_name_their_owner() {
        let mutex = |set: &[(usize, u32)]| holder(ObjectKind::Mutex, set);
        assert_eq!(mutex(&[]), WordHolder::Nobody);
        assert_eq!(mutex(&[(0, 1), (2, 77)]), WordHolder::Thread(77));
        assert_eq!(mutex(&[(0, 2), (2, 77)]), WordHolder::Thread(77));
        assert_eq!(mutex(&[(0, 1)]), WordHolder::Unknown, "not written yet");
        assert_eq!(mutex(&[(2, 77)]), WordHolder::Nobody, "just given back");
        let robust = 16 | 128;
        assert_eq!(mutex(&[(0, 77 | 1 << 31), (4, robust)]), WordHolder::Thread(77));
        assert_eq!(mutex(&[(0, 1 << 30), (4, robust)]), WordHolder::Nobody, "its owner has died");
        assert_eq!(mutex(&[(0, 77), (2, 77), (4, 32)]), WordHolder::Thread(77));
        assert_eq!(mutex(&[(0, 50 << 19), (4, 64)]), WordHolder::Nobody, "a ceiling alone");
        assert_eq!(mutex(&[(0, 50 << 19 | 1), (2, 77), (4, 64)]), WordHolder::Thread(77));
        assert_eq!(mutex(&[(0, 1), (2, 77), (4, u32::MAX)]), WordHolder::Unknown);
        assert_eq!(mutex(&[(4, 96)]), WordHolder::Unknown, "two protocols");
    }

    #[test]
    fn words_that_no_mutex_has() {
        let is_possible = |set: &[(usize, u32)]| {
            let mut words = [0; MOST];
            set.iter().for_each(|&(index, word)| words[index] = word);
            LockWords { kind: ObjectKind::Mutex, words }.is_possible()
        };
        assert!([0, 1, 2].iter().all(|&word| is_possible(&[(0, word), (2, 77)])));
        assert!(!is_possible(&[(0, 3)]) && !is_possible(&[(1, 1)]));
        assert!(is_possible(&[(0, 1), (1, 2), (2, 77), (4, 1)]), "a recursive one counts");
        assert!(is_possible(&[(0, 77), (1, 1), (2, 77), (4, 32)]), "inheriting ones have numbers");
        assert!(!is_possible(&[(4, 96)]), "two protocols");
    }

    #[test]
    fn reader_writer_locks_count_their_readers() {
        let rwlock = |set: &[(usize, u32)]| holder(ObjectKind::RwLock, set);
        assert_eq!(rwlock(&[]), WordHolder::Nobody);
        assert_eq!(rwlock(&[(0, 1)]), WordHolder::Nobody, "the phase stays for a while");
        assert_eq!(rwlock(&[(0, 2 << 3)]), WordHolder::Readers(2));
        assert_eq!(rwlock(&[(0, 3), (6, 77)]), WordHolder::Thread(77));
        assert_eq!(rwlock(&[(0, 3)]), WordHolder::Unknown);
    }

    #[test]
    fn words_are_read_where_there_are_any() {
        let lock = [7_u32, 0, 5, 0, 0, 0, 0, 0, 0, 0];
        let address = lock.as_ptr() as u64;
        // SAFETY: RULES-PASSED: `lock` has the ten words of a mutex, and lives.
        let here = unsafe { LockWords::read(ObjectKind::Mutex, address) };
        let there = LockWords::read_if_there(ObjectKind::Mutex, address).expect("readable");
        assert_eq!((here.word(0), there.word(2)), (7, 5));
        assert!(LockWords::read_if_there(ObjectKind::Mutex, 4096).is_none());
        assert_ne!(free_spin(), u32::MAX);
    }
}
