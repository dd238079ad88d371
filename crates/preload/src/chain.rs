//! Finds the numbers that the ledger has for a lock and for the chain of calls that led
//! to it.
//!
//! # Role
//! Behind the fast path, which knows a call that is in the thread's acquisition
//! cache. Here such lines are made. A chain of calls is recognised by return
//! address, stack pointer and the next three return addresses, without a walk;
//! walked and stored when it is new.
//!
//! # Invariants
//! - **CHAIN-READABLE** The distances in a line lead to words that the walk that made it has
//!   read, on the same thread. If the line's stack pointer is the caller's,
//!   these words are readable: they lie in the thread's own stack above the
//!   stack pointer, or, on a stack that is not known, in the stack pointer's
//!   page.

use crate::call::{CallPlace, Nature};
use crate::me::Me;
use crate::real;
use crate::rules;
use crate::site::CallSite;
use crate::timing::TimingPace;
use crate::tls;
use crate::unwind::{FindObject, Loaded, OwnStack, ReturnSlots, Rules, SLOTS, Unwinder, WalkEnd};
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::Birth;
use lockstead_ledger::known::{CacheLine, KnownLine, KnownLock};
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::stacks::DEEPEST;
use lockstead_ledger::thread::{CACHE_LINES, CHAINS};

/// How frames of known addresses are left, for all threads.
static RULES: Rules = Rules::new();

/// The multiplier of the cache's hash: 2^32 divided by the golden ratio.
pub const HASH: i32 = 0x9e37_79b1_u32 as i32;
/// The hash's upper bits choose the line.
pub const HASH_SHIFT: u32 = 32 - CACHE_LINES.trailing_zeros();

/// Returns the line of a lock and a call site. The fast path computes the same.
#[inline(always)]
#[must_use]
pub fn line_of(address: u64, site: u64) -> usize {
    let key = address.wrapping_add(site.wrapping_mul(4)) as u32;
    (key.wrapping_mul(HASH as u32) >> HASH_SHIFT) as usize
}

/// The shift for pairs of chains.
pub const CHAIN_SHIFT: u32 = 32 - (CHAINS / 2).trailing_zeros();

/// Returns the first of the two places for the chain of a call. The fast path computes
/// the same.
#[inline(always)]
fn chains_of(sp: u64, site: u64) -> usize {
    let key = sp.wrapping_add(site.wrapping_mul(8)) as u32;
    (key.wrapping_mul(HASH as u32) >> CHAIN_SHIFT) as usize * 2
}

/// Tells whether the caller at `site` is at the end of the chain that `line` knows.
#[inline(always)]
fn leads_here(line: &CacheLine, site: &CallSite) -> bool {
    let sp = site.stack_pointer() - 8;
    line.site.load(Relaxed) == site.return_address() as u32
        && line.sp.load(Relaxed) == sp
        && (0..SLOTS).all(|i| {
            let slot = sp + u64::from(line.distances[i].load(Relaxed)) * 8;
            // SAFETY: CHAIN-READABLE, kept by the walk that filled the line.
            let word = unsafe { (slot as *const u32).read_volatile() };
            word == line.returns[i].load(Relaxed)
        })
}

impl Me {
    /// Returns what the thread knows of this lock, with this call as its last; made if
    /// there is nothing.
    #[inline]
    pub fn known_lock(
        &self,
        address: u64,
        site: &CallSite,
        nature: impl Nature,
    ) -> &'static KnownLock {
        #[cfg(feature = "check")]
        {
            self.leaves_frames(site);
            if rules::life::has_changed(address, &nature) {
                self.give_up_lock(address);
            }
        }
        let line = &self.thread.cache[line_of(address, site.return_address())];
        let known = &line.known;
        // Whether it is still that lock is asked now and then, for the answer is
        // in memory that others write.
        let is_due = known.count.load(Relaxed) >= known.next_sample.load(Relaxed);
        if known.address.load(Relaxed) != address
            || !leads_here(line, site)
            || is_due && self.is_outdated(known)
        {
            #[cfg(feature = "check")]
            self.is_same_frame(address, site);
            let known = self.look(line, address, site, nature);
            #[cfg(feature = "check")]
            self.lies_at(address, known.lock.load(Relaxed), site);
            return known;
        }
        known
    }

    /// Returns what the thread has known of this lock since this call began, whatever has become of
    /// the lock.
    pub fn still_known(&self, address: u64, site: &CallSite) -> Option<&'static KnownLock> {
        let line = &self.thread.cache[line_of(address, site.return_address())].known;
        let all = core::iter::once(line).chain(&self.thread.set(address).0);
        all.into_iter().find(|known| known.address.load(Relaxed) == address)
    }

    /// Returns the numbers of this lock and this call.
    #[must_use]
    pub fn place(&self, address: u64, site: &CallSite, nature: impl Nature) -> CallPlace {
        CallPlace::of(self.known_lock(address, site, nature))
    }

    /// Looks further than [`Me::known_lock`], when `line` is not the one for this call.
    ///
    /// A handler that interrupts passes through, for this thread is busy; so its
    /// fast path sees nothing half done.
    fn look(
        &self,
        line: &'static CacheLine,
        address: u64,
        site: &CallSite,
        nature: impl Nature,
    ) -> &'static KnownLock {
        let chain = if leads_here(line, site) { line } else { self.chain(site) };
        let stack = chain.known.stack.load(Relaxed);
        let is_lines = line.known.address.load(Relaxed) == address;
        let mut set = self.thread.set(address);
        let found = set.0.iter().find(|known| known.address.load(Relaxed) == address);
        let before = found.map(TimingPace::of);
        if is_lines || line.known.yields() {
            found.iter().for_each(|known| self.give_up(known));
            if !is_lines || self.is_outdated(&line.known) {
                self.give_up(&line.known);
            }
            copy_chain(chain, line);
            self.learn(&line.known, address, stack, nature, before);
            return &line.known;
        }
        if let Some(known) = found {
            if self.is_outdated(known) {
                self.give_up(known);
            }
            self.learn(known, address, stack, nature, before);
            return known;
        }
        let displaced = |set: &'static KnownLine| match &set.0 {
            [first, second] if first.yields() || !second.yields() => first,
            [_, second] => second,
        };
        let mut known = displaced(set);
        if known.address.load(Relaxed) != 0 && self.thread.more_sets() {
            // The fast path looks elsewhere from now on.
            let near = self.record().near.iter().flat_map(|set| &set.0);
            near.for_each(|known| self.give_up(known));
            set = self.thread.set(address);
            known = displaced(set);
        }
        self.give_up(known);
        self.learn(known, address, stack, nature, before);
        known
    }

    /// Makes `known`, if it is empty, and notes the last stack.
    fn learn(
        &self,
        known: &KnownLock,
        address: u64,
        stack: u32,
        nature: impl Nature,
        before: Option<TimingPace>,
    ) {
        known.stack.store(stack, Relaxed);
        if known.address.load(Relaxed) != 0 {
            return;
        }
        rules::first_use(self, address, &nature, stack);
        let lock = self.use_lock(address, stack, nature);
        rules::recorded(self, address);
        known.lock.store(lock, Relaxed);
        known.generation.store(self.generation(lock), Relaxed);
        self.begins(known, before);
        known.wanted_at.store(u8::MAX, Relaxed);
        known.address.store(address, Relaxed);
    }

    pub(crate) fn generation(&self, lock: u32) -> u32 {
        self.ledger.lock(lock).map_or(0, |lock| lock.generation.load(Relaxed))
    }

    /// Tells whether another lock lives at the address now.
    fn is_outdated(&self, known: &KnownLock) -> bool {
        self.generation(known.lock.load(Relaxed)) != known.generation.load(Relaxed)
    }

    /// Returns the number of a lock that is used at `stack`; 0 where the ledger is full.
    pub(crate) fn use_lock(&self, address: u64, stack: u32, nature: impl Nature) -> u32 {
        use lockstead_ledger::lock::RecordLife;
        let mut is_other = false;
        if let Some(found) = self.ledger.find_lock(address)
            && let Some(lock) = self.ledger.lock(found)
            && let (kind, RecordLife::Live, _) = lock.shape()
        {
            // A futex word is not destroyed: its memory may be another lock's by now.
            is_other = kind == ObjectKind::Futex;
            if !is_other {
                return found;
            }
        }
        let (kind, attributes) = nature.nature();
        let module = self.module_of(address);
        let birth = Birth { address, kind, attributes, init_stack: 0, first_stack: stack, module };
        let made = match is_other && kind != ObjectKind::Futex {
            true => self.ledger.init_lock(&birth),
            false => self.ledger.use_lock(&birth),
        };
        made.unwrap_or(0)
    }

    /// Begins the life of the lock at `address`, which this call has initialised.
    pub fn initialised(&self, address: u64, site: &CallSite, nature: impl Nature) {
        self.give_up_lock(address);
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
        rules::initialised(self, address, kind, attributes);
        #[cfg(feature = "check")]
        {
            self.lies_at(address, self.ledger.find_lock(address).unwrap_or(0), site);
            crate::order::chains::life_ended(address);
        }
    }

    /// Forgets what is held at this address: that was another lock. Of a mutex and of a
    /// reader-writer lock the command can see that, whatever thread held it.
    fn forget_holds(&self, address: u64, kind: ObjectKind) {
        let own = self.thread.stack();
        while own.depth() != 0 && own.revoke(address).is_some() {}
        if kind == ObjectKind::Spin && self.ledger.find_lock(address).is_some() {
            for thread in self.ledger.threads() {
                let _ = thread.stack().revoke(address);
            }
        }
    }

    /// Ends the life of the lock at `address`.
    pub fn destroyed(&self, address: u64, kind: ObjectKind, site: &CallSite) {
        rules::destroyed(self, address, kind, site);
        self.give_up_lock(address);
        self.ledger.destroy_lock(address);
        #[cfg(feature = "check")]
        crate::order::chains::life_ended(address);
    }

    /// Returns the number of the stack that leads to this call; 0 where the ledger is
    /// full.
    #[must_use]
    pub fn stack(&self, site: &CallSite) -> u32 {
        self.chain(site).known.stack.load(Relaxed)
    }

    /// Returns the thread's knowledge of this call's chain, walked if it is new.
    pub(crate) fn chain(&self, site: &CallSite) -> &'static CacheLine {
        let first = chains_of(site.stack_pointer() - 8, site.return_address());
        let pair = &self.thread.chains[first..first + 2];
        if let Some(line) = pair.iter().find(|line| leads_here(line, site)) {
            return line;
        }
        // In turn: the older one goes.
        let turns = &pair[0].known.count;
        let turn = turns.load(Relaxed);
        turns.store(turn ^ 1, Relaxed);
        let line = &pair[turn as usize & 1];
        self.walk(line, site);
        line
    }

    /// Walks the caller's stack, stores it and remembers its chain in `line`.
    #[cold]
    #[inline(never)]
    fn walk(&self, line: &CacheLine, site: &CallSite) {
        let mut returns = [0; DEEPEST];
        let start = site.start();
        let find = real::find_object();
        // SAFETY: not zero, so that `real::resolve` has stored the address of
        // `_dl_find_object`.
        let modules = (find != 0)
            .then(|| unsafe { Loaded::new(core::mem::transmute::<usize, FindObject>(find)) });
        let walk = Unwinder::new(modules, &RULES).walk(start, stack_at(start.sp), &mut returns);
        let returns = &returns[..walk.len];
        self.note_modules(returns);
        let end = end_code(walk.end, walk.guessed);
        line.sp.store(0, Relaxed);
        line.known.stack.store(self.ledger.intern_stack(returns, end), Relaxed);
        remember(line, site, returns, &walk.slots);
    }

    /// Adds a count to its lock and its thread, and empties the place.
    fn give_up(&self, known: &KnownLock) {
        if known.address.load(Relaxed) == 0 {
            return;
        }
        known.address.store(0, Relaxed);
        self.hand_over(known);
    }

    /// Adds a count to its lock and its thread; it begins anew.
    pub fn hand_over(&self, known: &KnownLock) {
        let count = u64::from(known.count.load(Relaxed));
        known.count.store(0, Relaxed);
        let Some(lock) = self.ledger.lock(known.lock.load(Relaxed)) else { return };
        if count == 0 {
            return;
        }
        let own = &self.record().acquisitions;
        own.store(own.load(Relaxed) + count, Relaxed);
        if lock.generation.load(Relaxed) == known.generation.load(Relaxed) {
            lock.acquisitions.fetch_add(count, Relaxed);
        } else {
            self.ledger.header().losses.late.fetch_add(count, Relaxed);
        }
    }

    /// Gives up all that the thread knows, at its end. In the library that checks
    /// whoever joins it still finds which locks it has taken.
    pub fn give_up_all(&self) {
        for known in self.thread.known() {
            if cfg!(feature = "check") && known.count.load(Relaxed) != 0 {
                self.hand_over(known);
            } else {
                self.give_up(known);
            }
        }
    }

    pub(crate) fn give_up_lock(&self, address: u64) {
        let lines = self.thread.cache.iter().map(|line| &line.known);
        lines
            .chain(self.thread.known_by_address(address))
            .filter(|known| known.address.load(Relaxed) == address)
            .for_each(|known| self.give_up(known));
    }
}

/// Returns the stack on which `sp` lies, as far as it may be read.
fn stack_at(sp: u64) -> OwnStack {
    let words = tls::words();
    let (low, high) = (words.stack_low.load(Relaxed) as u64, words.stack_high.load(Relaxed) as u64);
    // SAFETY: the thunk passes the stack pointer of the interposed function's caller, which
    // waits for our return; the thread's own stack is readable from there to its end.
    unsafe {
        if low <= sp && sp < high {
            OwnStack::new(sp, high)
        } else {
            OwnStack::unnamed(sp).over(low, high)
        }
    }
}

/// Returns why the walk ended, as the ledger stores it. The command reads it in
/// `inspect/src/report/symbolized.rs`.
fn end_code(end: WalkEnd, guessed: bool) -> u32 {
    let code = match end {
        WalkEnd::Bottom => 0,
        WalkEnd::Full => 1,
        WalkEnd::Uncharted => 2,
        WalkEnd::OffStack => 3,
        WalkEnd::Unknown => 4,
        WalkEnd::Damaged => 5,
    };
    code | u32::from(guessed) << 8
}

fn remember(line: &CacheLine, site: &CallSite, returns: &[u64], slots: &ReturnSlots) {
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
    line.site.store(site.return_address() as u32, Relaxed);
    line.sp.store(site.stack_pointer() - 8, Relaxed);
}

fn copy_chain(from: &CacheLine, to: &CacheLine) {
    for i in 0..SLOTS {
        to.distances[i].store(from.distances[i].load(Relaxed), Relaxed);
        to.returns[i].store(from.returns[i].load(Relaxed), Relaxed);
    }
    to.site.store(from.site.load(Relaxed), Relaxed);
    to.sp.store(from.sp.load(Relaxed), Relaxed);
}

/// Forgets how frames are left, after code was unloaded: other code may come to lie there.
pub fn forget_rules() {
    RULES.forget();
}
