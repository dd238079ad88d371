//! Holders whom the words of locks name, where no held stack has them.
//!
//! # Role
//! lockstead's own locks tell the ledger of waits alone: an acquisition on the fast path is told to
//! nobody. But their words name the owner, by a slot of a table that the owner's own code describes
//! ([`SlotTable`]), or by the kernel's number. [`complete`](WordOwners::complete) puts such a
//! lock on the held stack of a thread that waits itself, so that the detection sees it as held.
//!
//! A mutex of the C library's is on a held stack, unless it was acquired before the library came into
//! the process ([`ledger::attach`](lockstead_ledger::attach)). Its word names the owner as well.
//!
//! # What may be concluded
//! A thread that waits holds what it held, to the end of its wait: it gives nothing back meanwhile.
//! So a word that named it at one moment of its wait has named it all the time since it began. Two
//! things look like that and are not: the thread that waits for this very lock has just got it, and
//! is about to say so; and the word was read when the wait had ended. The first is left out here,
//! the second shows when the episodes are looked at again.

use super::grip::mutex_owner;
use super::observe::LastingWaiter;
use crate::maps::{Backing, Maps};
use crate::memory::{ProcessMemory, ReadableMemory};
use crate::slots::{SlotTable, WordOwner};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{LockRecord, ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding, Waiting};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// Bit 20 of a reader-writer lock's word: its low bits count readers.
const READERS: u32 = 1 << 20;
/// Bit 31 of a biased mutex's word: the owner that it names does not have it.
const BIASED_FREE: u32 = 1 << 31;
/// The bits of a word shared with the kernel that are the owner's number.
const NUMBER: u32 = 0x3fff_ffff;

/// The tables of one process, by the file of the code that waits.
#[derive(Debug, Default)]
pub struct WordOwners {
    tables: RefCell<HashMap<String, Option<SlotTable>>>,
    /// The same by the address of that code, as long as nothing is loaded.
    by_code: RefCell<HashMap<u64, Option<SlotTable>>>,
}

impl WordOwners {
    /// Returns the waiters with all that they hold: what they have published, and the locks among
    /// those that others of them wait for whose words name them.
    #[must_use]
    pub fn complete<'w>(
        &self,
        waiters: impl Iterator<Item = &'w LastingWaiter>,
        ledger: &Ledger<'_>,
        pid: u32,
    ) -> Vec<LastingWaiter> {
        let mut all: Vec<LastingWaiter> = waiters.cloned().collect();
        let mut owned = Vec::new();
        let mut asked = HashSet::new();
        for waiter in &all {
            let target = waiter.waiting.target;
            let unnoted =
                || asked.insert(target).then(|| unnoted_mutex(ledger, &all, target)).flatten();
            let Some(index) = named_by_word(ledger, target).or_else(unnoted) else { continue };
            if let Some(owner) = self.owner(&waiter.waiting, ledger, pid)
                && owner != waiter.tid
            {
                owned.push((owner, target, index));
            }
        }
        for (owner, address, lock) in owned {
            for holder in all.iter_mut().filter(|waiter| waiter.tid == owner) {
                let is_new = holder.waiting.target != address
                    && holder.held.iter().all(|holding| holding.address != address);
                if is_new {
                    let flags = Flags::BY_WORD;
                    holder.held.push(Holding { address, lock, flags, ..Holding::default() });
                }
            }
        }
        all
    }

    /// Returns what [`owner`](Self::owner) does, if the awaited lock is one whose word names its
    /// owner.
    #[must_use]
    pub fn named_owner(&self, waiting: &Waiting, ledger: &Ledger<'_>, pid: u32) -> Option<u32> {
        named_by_word(ledger, waiting.target)?;
        self.owner(waiting, ledger, pid)
    }

    /// Returns the thread that the word of the awaited lock names, by its own number; `None` if
    /// nobody has it alone, or it cannot be known.
    #[must_use]
    pub fn owner(&self, waiting: &Waiting, ledger: &Ledger<'_>, pid: u32) -> Option<u32> {
        match self.owner_in_word(waiting, ledger, pid)? {
            WordOwner::Thread(owner) => Some(owner),
            WordOwner::None | WordOwner::Ended | WordOwner::Lost => None,
        }
    }

    /// Returns whom the word of the awaited lock names; `None` if readers have it, or it cannot be
    /// known.
    #[must_use]
    pub fn owner_in_word(
        &self,
        waiting: &Waiting,
        ledger: &Ledger<'_>,
        pid: u32,
    ) -> Option<WordOwner> {
        let lock = record(ledger, waiting.target)?;
        let memory = ProcessMemory::new(pid);
        if let (ObjectKind::Mutex, _, attributes) = lock.shape() {
            return Some(match mutex_owner(&memory, waiting.target, attributes)? {
                0 => WordOwner::None,
                owner => WordOwner::Thread(owner),
            });
        }
        let mut word = [0; 4];
        let read = memory.read(waiting.target, &mut word).ok()? == word.len();
        let word = read.then(|| u32::from_ne_bytes(word))?;
        let (kind, _, attributes) = lock.shape();
        if attributes & attribute::INHERIT != 0 {
            return Some(match word & NUMBER {
                0 => WordOwner::None,
                owner => WordOwner::Thread(owner),
            });
        }
        if kind == ObjectKind::ToldRwLock && word & READERS != 0 {
            return None;
        }
        let is_biased = kind == ObjectKind::ToldMutex && attributes & attribute::BIASED != 0;
        if is_biased && word & BIASED_FREE != 0 {
            return Some(WordOwner::None);
        }
        self.table(waiting.stack, ledger, pid)?.owner(waiting.target, &memory)
    }

    /// Returns the table of the code that waits at this stack: its innermost return address is in
    /// the copy of lockstead that has the lock.
    fn table(&self, stack: u32, ledger: &Ledger<'_>, pid: u32) -> Option<SlotTable> {
        let code = ledger.stack(stack)?.returns().next()?;
        if let Some(known) = self.by_code.borrow().get(&code) {
            return *known;
        }
        let maps = Maps::of(pid).ok()?;
        let Backing::File { path, .. } = &maps.find(code)?.backing else { return None };
        let path = path.display().to_string();
        let mut tables = self.tables.borrow_mut();
        let known = tables.entry(path);
        let find = |path: &String| SlotTable::find(&maps, path, &ProcessMemory::new(pid));
        let table = *known.or_insert_with_key(find);
        self.by_code.borrow_mut().insert(code, table);
        table
    }

    /// Forgets where code lies, for some was loaded or has gone.
    pub fn update(&mut self) {
        self.by_code.get_mut().clear();
    }
}

fn record<'a>(ledger: &Ledger<'a>, lock: u64) -> Option<&'a LockRecord> {
    ledger.find_lock(lock).and_then(|index| ledger.lock(index))
}

/// Returns the index of a mutex of the C library's that is on no held stack of those that wait. One
/// that other processes share may name a thread of theirs.
fn unnoted_mutex(ledger: &Ledger<'_>, waiters: &[LastingWaiter], lock: u64) -> Option<u32> {
    let index = ledger.find_lock(lock)?;
    let (kind, _, attributes) = ledger.lock(index)?.shape();
    let is_asked = kind == ObjectKind::Mutex && attributes & attribute::SHARED == 0;
    let has = |waiter: &LastingWaiter| waiter.held.iter().any(|one| one.address == lock);
    (is_asked && !waiters.iter().any(has)).then_some(index)
}

/// Returns the index of a lock whose word names its owner, and whose acquisitions nobody tells.
#[must_use]
pub fn named_by_word(ledger: &Ledger<'_>, lock: u64) -> Option<u32> {
    let index = ledger.find_lock(lock)?;
    let (kind, _, attributes) = ledger.lock(index)?.shape();
    let names = attributes & (attribute::SLOT | attribute::INHERIT) != 0;
    (kind.is_told() && names && attributes & attribute::FOLLOWED == 0).then_some(index)
}
