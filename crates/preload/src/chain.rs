//! Which lock, by which chain of calls: from a call to the numbers that the
//! ledger has for both.
//!
//! # Role
//! Behind the fast path, which knows a call that is in the thread's acquisition
//! cache. Here such lines are made. A chain of calls is recognised by return
//! address, stack pointer and the next three return addresses, without a walk;
//! walked and stored when it is new.
//!
//! # Invariants
//! - **C1** The distances in a line lead to words that the walk that made it has
//!   read, on the same thread. If the line's stack pointer is the caller's,
//!   these words are readable: they lie in the thread's own stack above the
//!   stack pointer, or, on a stack that is not known, in the stack pointer's
//!   page.

use crate::me::Me;
use crate::real;
use crate::site::Site;
use crate::tls;
use crate::unwind::{End, FindObject, Loaded, Rules, SLOTS, Slots, Stack, Unwinder};
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::Birth;
use lockstead_ledger::lock::Kind;
use lockstead_ledger::stacks::DEEPEST;
use lockstead_ledger::table::spread;
use lockstead_ledger::thread::{CACHE_LINES, CHAINS, CacheLine};

/// How frames of known addresses are left, for all threads.
static RULES: Rules = Rules::new();

/// Multiplier of the cache's hash: 2^32 divided by the golden ratio.
pub const HASH: i32 = 0x9e37_79b1_u32 as i32;
/// The hash's upper bits choose the line.
pub const HASH_SHIFT: u32 = 32 - CACHE_LINES.trailing_zeros();

/// The line of a lock and a call site. The fast path computes the same.
#[inline(always)]
#[must_use]
pub fn line_of(address: u64, site: u64) -> usize {
    let key = address.wrapping_add(site.wrapping_mul(4)) as u32;
    (key.wrapping_mul(HASH as u32) >> HASH_SHIFT) as usize
}

/// What a lock is: asked only when it is new.
pub trait Nature {
    /// Kind and attributes.
    fn nature(&self) -> (Kind, u16);
}

impl Nature for (Kind, u16) {
    fn nature(&self) -> (Kind, u16) {
        *self
    }
}

impl<F: Fn() -> (Kind, u16)> Nature for F {
    fn nature(&self) -> (Kind, u16) {
        self()
    }
}

/// A lock and a stack by their numbers in the ledger; 0 where the ledger was
/// full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Index of the lock's record.
    pub lock: u32,
    /// Id of the stack that leads to the call.
    pub stack: u32,
}

/// Whether the caller at `site` is at the end of the chain that `line` knows.
#[inline(always)]
fn leads_here(line: &CacheLine, site: &Site) -> bool {
    let sp = site.stack_pointer() - 8;
    line.site.load(Relaxed) == site.return_address()
        && line.sp.load(Relaxed) == sp
        && (0..SLOTS).all(|i| {
            let slot = sp + u64::from(line.distances[i].load(Relaxed)) * 8;
            // SAFETY: C1.
            let word = unsafe { (slot as *const u32).read_volatile() };
            word == line.returns[i].load(Relaxed)
        })
}

impl Me {
    /// The line of the acquisition cache for this lock and this call, made if
    /// there is none.
    #[inline]
    pub fn line(&self, address: u64, site: &Site, nature: impl Nature) -> &'static CacheLine {
        let line = &self.thread.cache[line_of(address, site.return_address())];
        if line.address.load(Relaxed) != address || !leads_here(line, site) {
            self.renew(line, address, site, nature);
        }
        line
    }

    /// The numbers of this lock and this call.
    #[must_use]
    pub fn place(&self, address: u64, site: &Site, nature: impl Nature) -> Place {
        let line = self.line(address, site, nature);
        Place { lock: line.lock.load(Relaxed), stack: line.stack.load(Relaxed) }
    }

    /// Gives a line of the cache to another call.
    fn renew(&self, line: &CacheLine, address: u64, site: &Site, nature: impl Nature) {
        self.give_up(line);
        // A handler that interrupts passes through, for this thread is busy;
        // its fast path sees no line of a lock in the meantime.
        if !leads_here(line, site) {
            copy_chain(self.chain(site), line);
        }
        let stack = line.stack.load(Relaxed);
        let lock = self.use_lock(address, stack, nature);
        line.lock.store(lock, Relaxed);
        let generation = self.ledger.lock(lock).map_or(0, |lock| lock.generation.load(Relaxed));
        line.generation.store(generation, Relaxed);
        line.next_sample.store(self.first_gap(), Relaxed);
        line.address.store(address, Relaxed);
    }

    /// The number of a lock that is used at `stack`; 0 where the ledger is full.
    fn use_lock(&self, address: u64, stack: u32, nature: impl Nature) -> u32 {
        use lockstead_ledger::lock::Life;
        if let Some(found) = self.ledger.find_lock(address)
            && let Some(lock) = self.ledger.lock(found)
            && matches!(lock.shape().1, Life::Live)
        {
            return found;
        }
        let (kind, attributes) = nature.nature();
        self.ledger
            .use_lock(&Birth {
                address,
                kind,
                attributes,
                init_stack: 0,
                first_stack: stack,
                module: self.module_of(address),
            })
            .unwrap_or(0)
    }

    /// The lock at `address` was initialised by this call.
    pub fn initialised(&self, address: u64, site: &Site, nature: impl Nature) {
        self.give_up_lines_of(address);
        let (kind, attributes) = nature.nature();
        self.forget_holds(address, kind);
        self.ledger.init_lock(&Birth {
            address,
            kind,
            attributes,
            init_stack: self.stack(site),
            first_stack: 0,
            module: self.module_of(address),
        });
    }

    /// What was held at this address was another lock. Of a mutex and of a
    /// reader-writer lock the command can see that, whatever thread held it.
    fn forget_holds(&self, address: u64, kind: Kind) {
        let own = self.thread.stack();
        while own.depth() != 0 && own.revoke(address).is_some() {}
        if kind == Kind::Spin && self.ledger.find_lock(address).is_some() {
            for thread in self.ledger.threads() {
                let _ = thread.stack().revoke(address);
            }
        }
    }

    /// The lock at `address` is no more.
    pub fn destroyed(&self, address: u64) {
        self.give_up_lines_of(address);
        self.ledger.destroy_lock(address);
    }

    /// The number of the stack that leads to this call; 0 where the ledger is
    /// full.
    #[must_use]
    pub fn stack(&self, site: &Site) -> u32 {
        self.chain(site).stack.load(Relaxed)
    }

    /// The thread's knowledge of this call's chain, walked if it is new.
    fn chain(&self, site: &Site) -> &'static CacheLine {
        let key = spread(site.return_address() ^ site.stack_pointer());
        let line = &self.record().chains[key as usize % CHAINS];
        if !leads_here(line, site) {
            self.walk(line, site);
        }
        line
    }

    /// Walks the caller's stack, stores it and remembers its chain in `line`.
    #[cold]
    #[inline(never)]
    fn walk(&self, line: &CacheLine, site: &Site) {
        let mut returns = [0; DEEPEST];
        let start = site.start();
        let find = real::find_object();
        // SAFETY: not zero, it is the address of `_dl_find_object`.
        let modules = (find != 0)
            .then(|| unsafe { Loaded::new(core::mem::transmute::<usize, FindObject>(find)) });
        let walk = Unwinder::new(modules, &RULES).walk(start, stack_at(start.sp), &mut returns);
        let returns = &returns[..walk.len];
        self.note_modules(returns);
        let end = end_code(walk.end, walk.guessed);
        line.site.store(0, Relaxed);
        line.stack.store(self.ledger.intern_stack(returns, end), Relaxed);
        remember(line, site, returns, &walk.slots);
    }

    /// Adds the count of a line to its lock and empties it.
    fn give_up(&self, line: &CacheLine) {
        if line.address.load(Relaxed) == 0 {
            return;
        }
        line.address.store(0, Relaxed);
        let count = line.count.load(Relaxed);
        line.count.store(0, Relaxed);
        let Some(lock) = self.ledger.lock(line.lock.load(Relaxed)) else { return };
        if count == 0 {
        } else if lock.generation.load(Relaxed) == line.generation.load(Relaxed) {
            lock.acquisitions.fetch_add(u64::from(count), Relaxed);
        } else {
            self.ledger.header().losses.late.fetch_add(u64::from(count), Relaxed);
        }
    }

    /// Adds the counts of all lines to their locks.
    pub fn give_up_lines(&self) {
        self.thread.cache.iter().for_each(|line| self.give_up(line));
    }

    fn give_up_lines_of(&self, address: u64) {
        let lines = self.thread.cache.iter();
        lines.filter(|line| line.address.load(Relaxed) == address).for_each(|l| self.give_up(l));
    }
}

/// The stack on which `sp` lies, as far as it may be read.
fn stack_at(sp: u64) -> Stack {
    let words = tls::words();
    let (low, high) = (words.stack_low.load(Relaxed) as u64, words.stack_high.load(Relaxed) as u64);
    // SAFETY: `sp` is that of the interposed function's caller, which waits for
    // our return; the thread's own stack is readable from there to its end.
    unsafe {
        if low <= sp && sp < high {
            Stack::new(sp, high)
        } else {
            Stack::unnamed(sp).over(low, high)
        }
    }
}

/// Why the walk ended, as the ledger stores it: see [`END_NAMES`].
fn end_code(end: End, guessed: bool) -> u32 {
    let code = match end {
        End::Bottom => 0,
        End::Full => 1,
        End::Uncharted => 2,
        End::OffStack => 3,
        End::Unknown => 4,
        End::Damaged => 5,
    };
    code | u32::from(guessed) << 8
}

fn remember(line: &CacheLine, site: &Site, returns: &[u64], slots: &Slots) {
    for i in 0..SLOTS {
        let known = i < usize::from(slots.known) && i + 1 < returns.len();
        // The walk counts from above the return address, the line from it.
        let distance = if known { slots.words[i].checked_add(1) } else { None };
        let (distance, address) = match distance {
            Some(distance) => (distance, returns[i + 1]),
            None => (0, site.return_address()),
        };
        line.distances[i].store(distance, Relaxed);
        line.returns[i].store(address as u32, Relaxed);
    }
    line.sp.store(site.stack_pointer() - 8, Relaxed);
    line.site.store(site.return_address(), Relaxed);
}

fn copy_chain(from: &CacheLine, to: &CacheLine) {
    for i in 0..SLOTS {
        to.distances[i].store(from.distances[i].load(Relaxed), Relaxed);
        to.returns[i].store(from.returns[i].load(Relaxed), Relaxed);
    }
    to.sp.store(from.sp.load(Relaxed), Relaxed);
    to.stack.store(from.stack.load(Relaxed), Relaxed);
    to.site.store(from.site.load(Relaxed), Relaxed);
}

/// Code was unloaded: other code may come to lie where it was.
pub fn forget_rules() {
    RULES.forget();
}
