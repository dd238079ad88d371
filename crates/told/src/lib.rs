//! Tells `lockstead run` what the locks of a library do that pthread interposition cannot see.
//!
//! # Role
//! The library that `lockstead run` puts under a program exports one table of functions,
//! `lockstead_listener`. A lock library asks for it by [`listener`] where it is about to wait, or
//! at each acquisition if it wants to be followed, and calls what is in it. Without `lockstead run`
//! there is no table, and the question is one load and a branch.
//!
//! # The table is a weak symbol
//! The loader fills the word that [`listener`] reads when it loads the program or library that has
//! this code: null where nobody exports the table, so too in static programs. So nothing is looked
//! up at run time, where the loader's own lock may be held; each copy of this code in a process has
//! its word, whenever it is loaded; a fork changes nothing; and no section can be dropped by a
//! linker but with the code that reads it.
//!
//! # Invariants
//! - **TOLD-VERSION** A table has [`VERSION`], and as many bytes as it says. Functions are only ever
//!   added at its end; whatever changes what is there has another symbol.
//! - **TOLD-PAIRS** [`wait_ends`](Listener::wait_ends) follows on the same thread, for a
//!   [`wait_begins`](Listener::wait_begins) that said yes. In between the thread tells nothing else.
//! - **TOLD-BEFORE** A release is told before it is done, an acquisition after it.

#![no_std]

pub mod home;
pub mod once;

/// The version of the table and of what its functions take.
pub const VERSION: u32 = 1;

/// The kinds of locks, by number.
pub mod kind {
    /// The lock is a mutex.
    pub const MUTEX: u32 = 1;
    /// The lock is a reader-writer lock.
    pub const RWLOCK: u32 = 2;
    /// The lock is a semaphore: its units have no owner.
    pub const SEMAPHORE: u32 = 3;
    /// It is a condition variable.
    pub const CONDITION: u32 = 4;
    /// It is what a thread does once, while others wait for its end.
    pub const ONCE: u32 = 5;
}

/// The facts of a lock beside its kind, a bit each.
pub mod flag {
    /// The low 20 bits of the word at its address are its owner's slot in lockstead's table, or 0;
    /// those of a reader-writer lock only if bit 20 is clear.
    pub const SLOT: u32 = 1;
    /// Each acquisition and each release is told, and not only waits.
    pub const FOLLOWED: u32 = 2;
    /// The kernel shares the word at its address, and finds the owner's number in its low 30 bits.
    pub const INHERIT: u32 = 4;
    /// Its owner may acquire it again.
    pub const RECURSIVE: u32 = 8;
    /// A reader waits behind a writer that waits.
    pub const WRITERS_FIRST: u32 = 16;
    /// It lies in a segment of lockstead's that processes share, which has who holds it.
    pub const SHARED: u32 = 32;
    /// The owner whose slot stands in the word at its address has it only while bit 31 is clear.
    pub const BIASED: u32 = 64;
}

/// The ways in which a thread asks for a lock, or has acquired it.
pub mod way {
    /// The thread wants the lock alone: a mutex, a reader-writer lock to write, a unit.
    pub const ALONE: u32 = 0;
    /// The thread reads under a reader-writer lock.
    pub const READ: u32 = 1;
    /// The lock was tried, and would not have been waited for.
    pub const TRIED: u32 = 2;
    /// The thread has waited for the lock.
    pub const WAITED: u32 = 4;
    /// The thread would have waited until a deadline only.
    pub const TIMED: u32 = 8;
    /// The thread reads past a writer that waits, whatever the lock does else.
    pub const RECURSIVE: u32 = 16;
    /// The thread reads, and wants the [right](super::RIGHT) to become the writer: it waits for who has
    /// that as well.
    pub const UPGRADABLE: u32 = 32;
}

/// How far behind the beginning of a reader-writer lock the right to become its writer is told to lie, as
/// a lock of its own that who reads upgradably holds: at the last byte of its first word, where no lock
/// begins, and which is none of those by which the listener tells the ways of asking for a lock apart.
pub const RIGHT: usize = 7;

/// The ways in which a wait has ended.
pub mod ending {
    /// The thread has what it waited for.
    pub const GRANTED: u32 = 0;
    /// The deadline has passed.
    pub const TIMED_OUT: u32 = 1;
    /// A signal handler ran, or somebody has called the wait off.
    pub const INTERRUPTED: u32 = 2;
    /// The wait would never have ended.
    pub const REFUSED: u32 = 3;
}

/// A lock, as its library describes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ToldLock {
    /// The address by which it is known: of its first word.
    pub address: u64,
    /// The kind, one of [`kind`].
    pub kind: u32,
    /// The facts of [`flag`] that hold.
    pub flags: u32,
    /// The name that the program has given it, not terminated; null: none.
    pub name: *const u8,
    /// The bytes of the name.
    pub name_length: u64,
}

impl ToldLock {
    /// Describes a lock of this kind at this address.
    #[inline]
    #[must_use]
    pub fn new(address: usize, kind: u32, flags: u32) -> ToldLock {
        ToldLock { address: address as u64, kind, flags, name: core::ptr::null(), name_length: 0 }
    }

    /// Adds a name.
    #[inline]
    #[must_use]
    pub fn named(mut self, name: Option<&'static str>) -> ToldLock {
        if let Some(name) = name {
            (self.name, self.name_length) = (name.as_ptr(), name.len() as u64);
        }
        self
    }
}

type AnyFunction = unsafe extern "C" fn();
type Begins = unsafe extern "C" fn(&ToldLock, u32, u64, u64, usize) -> u32;
type Ends = unsafe extern "C" fn(&ToldLock, u32, u32);
type Acquired = unsafe extern "C" fn(&ToldLock, u32);
type Releases = unsafe extern "C" fn(&ToldLock);
type Dies = unsafe extern "C" fn(u64);

/// The table of whoever listens. Its functions neither keep the pointers that they get nor call
/// back, and leave `errno` alone.
#[repr(C)]
#[derive(Debug)]
pub struct Listener {
    /// The [`VERSION`] of the table.
    pub version: u32,
    /// The bytes of the table.
    pub size: u32,
    /// Bit 0: it looks at the order of locks and the rules of their use.
    pub abilities: u32,
    reserved: u32,
    wait_begins: Begins,
    wait_ends: Ends,
    acquired: Acquired,
    releases: Releases,
    dies: Dies,
}

/// The ability to look at orders and rules.
pub const CHECKS: u32 = 1;

impl Listener {
    /// Builds a table of these functions, which take what the methods of the same names take.
    ///
    /// # Safety
    /// Each function is one of its kind as the methods call it, whatever its type here is.
    #[must_use]
    pub const unsafe fn of(abilities: u32, functions: [AnyFunction; 5]) -> Listener {
        let [begins, ends, acquired, releases, dies] = functions;
        // SAFETY: the caller promises functions of these kinds; pointers to functions have one size.
        unsafe {
            Listener {
                version: VERSION,
                size: size_of::<Listener>() as u32,
                abilities,
                reserved: 0,
                wait_begins: core::mem::transmute::<AnyFunction, Begins>(begins),
                wait_ends: core::mem::transmute::<AnyFunction, Ends>(ends),
                acquired: core::mem::transmute::<AnyFunction, Acquired>(acquired),
                releases: core::mem::transmute::<AnyFunction, Releases>(releases),
                dies: core::mem::transmute::<AnyFunction, Dies>(dies),
            }
        }
    }

    /// Tells whether orders and rules are looked at.
    #[inline]
    #[must_use]
    pub fn checks(&self) -> bool {
        self.abilities & CHECKS != 0
    }

    /// Tells that the calling thread is about to wait for a lock in this [`way`], at most until
    /// `deadline` in nanoseconds of `CLOCK_MONOTONIC` (0: without end). `companion` is the address
    /// of the mutex that a wait for a condition gives back meanwhile, or 0. `frame` is an address in
    /// the frame of the function that waits, or above it: while that is on the stack, the thread
    /// has not left the wait by a jump. Returns whether the wait was noted; if so, [`wait_ends`](Self::wait_ends) must follow (TOLD-PAIRS).
    #[inline]
    #[must_use]
    pub fn wait_begins(
        &self,
        lock: &ToldLock,
        way: u32,
        (deadline, companion): (u64, usize),
        frame: usize,
    ) -> bool {
        // SAFETY: TOLD-VERSION: the function takes a lock that lives until it returns, and numbers.
        unsafe { (self.wait_begins)(lock, way, deadline, companion as u64, frame) != 0 }
    }

    /// Tells that the wait that was noted last has come to this [`ending`]. What was granted is not
    /// held by that: a lock that is followed tells its acquisition as well.
    #[inline]
    pub fn wait_ends(&self, lock: &ToldLock, way: u32, ending: u32) {
        // SAFETY: TOLD-VERSION: the function takes a lock that lives until it returns, and numbers.
        unsafe { (self.wait_ends)(lock, way, ending) }
    }

    /// Tells that the calling thread has acquired a lock that is followed, in this [`way`].
    #[inline]
    pub fn acquired(&self, lock: &ToldLock, way: u32) {
        // SAFETY: TOLD-VERSION: the function takes a lock that lives until it returns, and a number.
        unsafe { (self.acquired)(lock, way) }
    }

    /// Tells that the calling thread is about to release a lock that is followed.
    #[inline]
    pub fn releases(&self, lock: &ToldLock) {
        // SAFETY: TOLD-VERSION: the function takes a lock that lives until it returns.
        unsafe { (self.releases)(lock) }
    }

    /// Tells that there is no lock at this address any more.
    #[inline]
    pub fn dies(&self, address: usize) {
        // SAFETY: TOLD-VERSION: the function takes a number.
        unsafe { (self.dies)(address as u64) }
    }
}

/// Returns whoever listens, if somebody does. One load, and a comparison.
#[inline(always)]
#[must_use]
pub fn listener() -> Option<&'static Listener> {
    // SAFETY: TOLD-VERSION: what exports the symbol under this name, the library of `lockstead run`,
    // is such a table, which stays as long as the process.
    unsafe { table().as_ref() }.filter(|table| table.version == VERSION)
}

/// Returns the address that the loader has found for the table; null if there is none.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux", not(miri)))]
#[inline(always)]
fn table() -> *const Listener {
    let table;
    // SAFETY: loads a word of the global offset table, which the linker makes for the name and the
    // loader has filled before any code of this module runs.
    unsafe {
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            ".weak lockstead_listener_1",
            "adrp {table}, :got:lockstead_listener_1",
            "ldr {table}, [{table}, :got_lo12:lockstead_listener_1]",
            table = out(reg) table,
            options(pure, readonly, nostack, preserves_flags),
        );
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            ".weak lockstead_listener_1",
            "mov {table}, qword ptr [rip + lockstead_listener_1@GOTPCREL]",
            table = out(reg) table,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    table
}

/// Returns null: on other machines no program runs under `lockstead run`.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
)))]
#[inline(always)]
fn table() -> *const Listener {
    core::ptr::null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_listens_to_a_plain_program() {
        assert!(listener().is_none());
    }

    #[test]
    fn the_layout_is_that_of_the_document() {
        assert_eq!((size_of::<ToldLock>(), size_of::<Listener>()), (32, 56));
    }
}
