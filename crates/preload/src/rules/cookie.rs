//! Marks in bytes of the program's locks that glibc does not use: whose lock it
//! is, and whether it lives.
//!
//! # Role
//! A lock that was initialised or used carries its own address, hidden by a secret
//! of this process. So a copy is told from the lock that it was made of, and both
//! from one that was never used; a lock that was destroyed says so. A static
//! initialiser, a call that initialises, or memory that is wiped takes the mark
//! away.
//!
//! # Where
//! | lock | mark | check | glibc's names |
//! |---|---|---|---|
//! | mutex, neither robust nor shared | 24 | 32 | `__list`, of robust ones only |
//! | reader-writer lock, not shared | 40 | 16 | `__pad2`; `__pad3` and `__pad4` |
//! | semaphore, not shared | 16 | 24 | beyond `struct new_sem` |
//! | barrier, not shared | 24 | 20 (half) | beyond `struct pthread_barrier` |
//!
//! So it is in glibc 2.34 to 2.43; with others nothing is planted. Nothing is
//! planted in what processes share, for whom this process's secret means nothing;
//! in condition variables and spin locks, which have no bytes to spare; in a lock
//! that is not aligned.
//!
//! # State
//! The mark: address xor secret; the three lower bits, which an address lacks:
//! [`DESTROYED`], [`LOOK`], [`FREED`]. The check: a hash of the address, xor what kind of lock
//! it is, of one that has ended xor stack and thread of the call that destroyed it or freed its
//! memory. So a lock of another kind than the one that was marked has no mark.

use crate::real;
use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, attribute};

/// The mark of a lock that was destroyed.
pub const DESTROYED: u64 = 1;
/// The flag beside a lock's own mark that has the library look at each use: the fast path leaves
/// it.
pub const LOOK: u64 = 2;
/// The flag beside [`DESTROYED`] that says that the lock's memory was freed.
pub const FREED: u64 = 4;
const FLAGS: u64 = 7;

/// The attributes that do not change in the life of a lock, and that it shows at each use.
pub const NATURE: u16 = attribute::RECURSIVE
    | attribute::ERRORCHECK
    | attribute::ADAPTIVE
    | attribute::INHERIT
    | attribute::PROTECT
    | attribute::WRITERS_FIRST;

/// What a lock carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CookieMark {
    /// The bytes hold nothing of the library.
    None,
    /// The lock has its own mark.
    Own,
    /// It was destroyed: number of the thread, and stack.
    Destroyed(u32, u32),
    /// Its memory was freed, by this thread at this stack.
    Freed(u32, u32),
    /// It is a copy of the lock at this address.
    CopyOf(u64),
}

/// The places in one lock.
#[derive(Clone, Copy, Debug)]
pub struct Cookie {
    address: u64,
    mark: &'static AtomicU64,
    check: CookieCheck,
    nature: u64,
}

#[derive(Clone, Copy, Debug)]
enum CookieCheck {
    Whole(&'static AtomicU64),
    Half(&'static AtomicU32),
}

impl CookieCheck {
    fn set(self, value: u64) {
        match self {
            CookieCheck::Whole(word) => word.store(value, Relaxed),
            CookieCheck::Half(word) => word.store(value as u32, Relaxed),
        }
    }

    fn is(self, value: u64) -> bool {
        match self {
            CookieCheck::Whole(word) => word.load(Relaxed) == value,
            CookieCheck::Half(word) => word.load(Relaxed) == value as u32,
        }
    }
}

impl Cookie {
    /// Returns the places in a lock of this kind with these attributes; `None` if there are none
    /// for certain.
    ///
    /// # Safety
    /// At `address` is such a lock of the program's. The places are not used when
    /// the program's call with it is over.
    #[must_use]
    pub unsafe fn of(address: u64, kind: ObjectKind, attributes: u16) -> Option<Cookie> {
        if !address.is_multiple_of(8)
            || attributes & (attribute::SHARED | attribute::ROBUST) != 0
            || !shapes_are_known()
        {
            return None;
        }
        let (mark, check, half) = match kind {
            ObjectKind::Mutex => (24, 32, false),
            ObjectKind::RwLock => (40, 16, false),
            ObjectKind::Semaphore => (16, 24, false),
            ObjectKind::Barrier => (24, 20, true),
            _ => return None,
        };
        // SAFETY: RULES-PASSED, by the caller: inside of the lock, and aligned; other
        // threads of ours use the same atomics, glibc nothing. The lifetime is
        // the caller's affair.
        unsafe {
            let check = if half {
                CookieCheck::Half(&*((address + check) as *const AtomicU32))
            } else {
                CookieCheck::Whole(&*((address + check) as *const AtomicU64))
            };
            let mark = &*((address + mark) as *const AtomicU64);
            Some(Cookie { address, mark, check, nature: u64::from(attributes & NATURE) })
        }
    }

    /// Returns what the lock carries.
    #[must_use]
    pub fn read(&self) -> CookieMark {
        let word = self.mark.load(Relaxed);
        let named = (word & !FLAGS) ^ secret();
        if named == self.address && word & DESTROYED != 0 {
            let by = match self.check {
                CookieCheck::Whole(check) => check.load(Relaxed) ^ hash(named),
                CookieCheck::Half(_) => 0,
            };
            let (tid, stack) = ((by >> 32) as u32, by as u32);
            return match word & FREED {
                0 => CookieMark::Destroyed(tid, stack),
                _ => CookieMark::Freed(tid, stack),
            };
        }
        if word & DESTROYED != 0 || !self.check.is(hash(named) ^ self.nature) {
            return CookieMark::None;
        }
        if named == self.address { CookieMark::Own } else { CookieMark::CopyOf(named) }
    }

    /// Marks the lock as one that lives.
    pub fn plant(&self) {
        self.mark.store(self.address ^ secret(), Relaxed);
        self.check.set(hash(self.address) ^ self.nature);
    }

    /// Marks the lock as destroyed by this thread, at this stack.
    pub fn destroy(&self, tid: u32, stack: u32) {
        self.end(DESTROYED, tid, stack);
    }

    /// Marks the lock's memory, which is still the program's at this moment, as freed so.
    pub fn free(&self, tid: u32, stack: u32) {
        self.end(DESTROYED | FREED, tid, stack);
    }

    fn end(&self, so: u64, tid: u32, stack: u32) {
        self.mark.store(self.address ^ secret() | so, Relaxed);
        self.check.set(hash(self.address) ^ (u64::from(tid) << 32 | u64::from(stack)));
    }

    /// Has the lock looked at from now on. Returns false if it carries no mark.
    pub fn watch(&self) -> bool {
        let is_own = self.read() == CookieMark::Own;
        if is_own {
            self.mark.fetch_or(LOOK, Relaxed);
        }
        is_own
    }
}

/// Tells whether the bytes are free in the libc of this process.
fn shapes_are_known() -> bool {
    const UNASKED: u32 = 0;
    static MINOR: AtomicU32 = AtomicU32::new(UNASKED);
    let mut minor = MINOR.load(Relaxed);
    if minor == UNASKED {
        minor = u32::try_from(real::libc_minor()).unwrap_or(u32::MAX).max(1);
        MINOR.store(minor, Relaxed);
    }
    (34..=43).contains(&minor)
}

/// A number that is this process's, and its forked children's, alone; without
/// the lower bits. 0 before the first lock has a mark: the fast path compares.
pub static SECRET: AtomicU64 = AtomicU64::new(0);

fn secret() -> u64 {
    let known = SECRET.load(Relaxed);
    if known != 0 {
        return known;
    }
    let mut random = 0_u64;
    let arguments = [&raw mut random as usize, size_of::<u64>(), 0, 0, 0, 0];
    // SAFETY: the kernel writes into a live word of this size.
    let asked = unsafe { sys::call(libc::SYS_getrandom, arguments) };
    if asked.is_err() {
        random = hash(sys::now());
    }
    // Above all addresses there is a bit: no mark is zero.
    let made = random & !FLAGS | 1 << 63;
    match SECRET.compare_exchange(0, made, Relaxed, Relaxed) {
        Ok(_) => made,
        Err(first) => first,
    }
}

/// Returns a number that no other address has, for a multiplication by an odd number can be undone.
fn hash(address: u64) -> u64 {
    (address ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;

    /// The room for a lock, aligned as one.
    #[repr(align(8))]
    #[derive(Clone, Copy)]
    struct Room([u8; 56]);

    fn cookie(room: &Room, kind: ObjectKind) -> Cookie {
        let address = core::ptr::from_ref(room) as u64;
        // SAFETY: larger than any lock, and alive as long as the test uses it.
        unsafe { Cookie::of(address, kind, 0) }.expect("aligned, private")
    }

    #[test]
    fn a_lock_is_told_from_its_copies() {
        crate::real::resolve();
        for kind in
            [ObjectKind::Mutex, ObjectKind::RwLock, ObjectKind::Semaphore, ObjectKind::Barrier]
        {
            let room = Box::new(Room([0; 56]));
            let own = cookie(&room, kind);
            assert_eq!(own.read(), CookieMark::None);
            own.plant();
            assert_eq!(own.read(), CookieMark::Own);
            assert!(own.watch());
            assert_eq!(own.read(), CookieMark::Own);
            let copy = room.clone();
            assert_eq!(
                cookie(&copy, kind).read(),
                CookieMark::CopyOf(core::ptr::from_ref(&*room) as u64)
            );
            let early = Box::new(Room([0; 56]));
            assert_eq!(cookie(&early.clone(), kind).read(), CookieMark::None);
            // SAFETY: RULES-PASSED: `room` is live and has the size of the largest lock.
            let other = unsafe { Cookie::of(own.address, kind, attribute::RECURSIVE) };
            assert_eq!(other.expect("private").read(), CookieMark::None, "another kind");
            own.destroy(77, 9);
            let by = if kind == ObjectKind::Barrier { (0, 0) } else { (77, 9) };
            assert_eq!(own.read(), CookieMark::Destroyed(by.0, by.1));
            let copy = room.clone();
            assert_eq!(cookie(&copy, kind).read(), CookieMark::None);
            own.plant();
            own.free(78, 10);
            let by = if kind == ObjectKind::Barrier { (0, 0) } else { (78, 10) };
            assert_eq!(own.read(), CookieMark::Freed(by.0, by.1));
        }
    }

    #[test]
    fn only_spare_bytes_are_written() {
        crate::real::resolve();
        for (kind, spare) in [
            (ObjectKind::Mutex, [24..40, 0..0]),
            (ObjectKind::RwLock, [16..24, 40..48]),
            (ObjectKind::Semaphore, [16..32, 0..0]),
            (ObjectKind::Barrier, [20..32, 0..0]),
        ] {
            let room = Box::new(Room([0; 56]));
            cookie(&room, kind).plant();
            cookie(&room, kind).destroy(u32::MAX, u32::MAX);
            for (at, byte) in room.0.iter().enumerate() {
                assert!(*byte == 0 || spare.iter().any(|part| part.contains(&at)), "{kind:?} {at}");
            }
        }
        let room = Room([0; 56]);
        let address = core::ptr::from_ref(&room) as u64;
        for (address, kind, attributes) in [
            (address + 4, ObjectKind::Mutex, 0),
            (address, ObjectKind::Mutex, attribute::SHARED),
            (address, ObjectKind::Mutex, attribute::ROBUST),
            (address, ObjectKind::Condition, 0),
            (address, ObjectKind::Spin, 0),
        ] {
            // SAFETY: RULES-PASSED: each of these locks fits into `room`, which lives.
            assert!(unsafe { Cookie::of(address, kind, attributes) }.is_none());
        }
    }
}
