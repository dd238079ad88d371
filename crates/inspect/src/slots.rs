//! The owners of lockstead's own locks in another process.
//!
//! # Role
//! A mutex of the crate lockstead names its owner by a slot, and so do a reader-writer lock its
//! writer and a once the thread that runs the initialiser. Which thread that is stands in a table
//! of the program or library that has the lock's code; its data has a description of the table.
//! Both, and how a sleep says which lock it is for, are specified in `crates/linux/src/slots.rs`.
//!
//! Nothing that is read is trusted: numbers are checked before they are used.

use crate::maps::{Backing, Maps, MapsLine};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};

const MAGIC: &[u8; 16] = b"lockstead seats\n";
const VERSION: u32 = 2;
/// Bytes of a description.
const LENGTH: usize = 48;
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Bits of a slot.
const SLOT: u32 = (1 << 20) - 1;

/// The bits of a sleep for a lock that may be given up, of one that ends with the lock alone, and of
/// one as the hand-off waiter of a mutex.
const WAITER: u32 = !7;
const LASTING: u32 = !15;
const HANDOFF: u32 = 1;
/// The bit sets of all sleeps for lockstead's locks.
const ALL: [u32; 5] = [WAITER, LASTING, HANDOFF, !3, 3];
/// The bit of a reader-writer lock's word with which its low bits count readers.
const READERS: u32 = 1 << 20;

/// Tells whether the sleep hears what only the sleepers of lockstead's locks do.
#[must_use]
pub fn is_lockstead(wait: &FutexWait) -> bool {
    matches!(wait.operation, FutexWaitKind::Wait { bits } if ALL.contains(&bits))
}

/// Tells whether the sleep is for a lock with an owner.
#[must_use]
pub fn is_for_owned(wait: &FutexWait) -> bool {
    matches!(wait.operation, FutexWaitKind::Wait { bits: WAITER | LASTING | HANDOFF })
}

/// The kinds of locks that name an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnKind {
    /// The mutex, which names its owner.
    Mutex,
    /// The reader-writer lock, which names its writer.
    RwLock,
    /// The once; its owner is the thread that runs the initialiser.
    Once,
}

impl OwnKind {
    /// Returns what a lock of this kind is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OwnKind::Mutex => "lockstead mutex",
            OwnKind::RwLock => "lockstead rwlock",
            OwnKind::Once => "lockstead once",
        }
    }
}

/// The owner of a mutex, as its word names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOwner {
    /// This thread, by its own number.
    Thread(u32),
    /// Nobody: it is changing hands.
    None,
    /// A thread that has ended.
    Ended,
    /// A thread that was left behind by `fork`.
    Lost,
}

/// A lock that a thread sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLock {
    /// The address of its first byte.
    pub address: u64,
    /// The kind of the lock.
    pub kind: OwnKind,
    /// Whether the sleeper wants to share it, to read.
    pub shared: bool,
    /// The thread that has the lock alone, if one does.
    pub owner: WordOwner,
    /// The number of threads that hold it to read.
    pub readers: u32,
    /// The wait ends with the lock alone, however often the sleeper looks at it in between. Others
    /// give up for a signal, or at a time that cannot be seen.
    pub lasting: bool,
    /// The sleep ends by itself, and the wait with it.
    pub timed: bool,
}

/// Times after this many seconds are never: a sleep that signals end, and
/// nothing else, has such a time.
const NEVER: i64 = 1 << 40;

impl OwnLock {
    /// Returns the lock that a thread sleeps for in this way; `None` if it is none. `slots` is the
    /// table of the code that called.
    #[must_use]
    pub fn behind(
        wait: &FutexWait,
        slots: &SlotTable,
        memory: &dyn ReadableMemory,
    ) -> Option<OwnLock> {
        if !is_for_owned(wait) || !wait.private {
            return None;
        }
        let (address, wants) = (wait.other & !3, wait.other & 3);
        let kind = match wants {
            0 => OwnKind::Mutex,
            1 | 2 => OwnKind::RwLock,
            _ => OwnKind::Once,
        };
        let state = word(memory, address)?;
        let is_read = kind == OwnKind::RwLock && state & READERS != 0;
        let (owner, readers) = match is_read {
            true => (WordOwner::None, state & SLOT),
            false => (slots.owner(address, memory)?, 0),
        };
        let handoff = wait.operation == FutexWaitKind::Wait { bits: HANDOFF };
        // Other sleeps end that the wait may go on.
        let tells_limit = handoff || kind == OwnKind::Once;
        let never = wait.limit_time(memory).is_some_and(|(seconds, _)| seconds >= NEVER);
        let lasting = match handoff {
            true => !wait.timed(),
            false => wait.operation == FutexWaitKind::Wait { bits: LASTING },
        };
        let timed = tells_limit && wait.timed() && !never;
        Some(OwnLock { address, kind, shared: wants == 1, owner, readers, lasting, timed })
    }
}

/// A table of participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTable {
    chunk_slots: u32,
    chunks: u32,
    slot_size: u32,
    tid: u32,
    standing: u32,
    directory: u64,
}

impl SlotTable {
    /// Returns the table of the program or library with this path.
    #[must_use]
    pub fn find(maps: &Maps, module: &str, memory: &dyn ReadableMemory) -> Option<SlotTable> {
        let of_module = |mapping: &&MapsLine| matches!(&mapping.backing, Backing::File { path, .. } if path.display().to_string() == module);
        let data = maps.iter().filter(of_module).filter(|m| m.readable && !m.executable);
        let mut bytes = vec![0; PIECE + LENGTH];
        for mapping in data {
            let mut at = mapping.range.start;
            while at < mapping.range.end {
                let left = usize::try_from(mapping.range.end - at).unwrap_or(usize::MAX);
                // Pieces overlap by a description.
                let wanted = left.min(bytes.len());
                let length = memory.read(at, &mut bytes[..wanted]).unwrap_or(0);
                let places = bytes[..length].windows(LENGTH).step_by(8);
                let mut found = places.filter_map(SlotTable::parse);
                if let Some(slots) = found.find(|slots| slots.is_sound(maps)) {
                    return Some(slots);
                }
                at += PIECE as u64;
            }
        }
        None
    }

    fn parse(bytes: &[u8]) -> Option<SlotTable> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let number = |at: usize| {
            let bytes = rest.get(4 * at..4 * at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let directory = u64::from_ne_bytes(rest.get(24..32)?.try_into().ok()?);
        (number(0)? == VERSION).then_some(SlotTable {
            chunk_slots: number(1)?,
            chunks: number(2)?,
            slot_size: number(3)?,
            tid: number(4)?,
            standing: number(5)?,
            directory,
        })
    }

    fn is_sound(&self, maps: &Maps) -> bool {
        let inside = |offset: u32| offset.checked_add(4).is_some_and(|end| end <= self.slot_size);
        let writable = maps.find(self.directory).is_some_and(|mapping| mapping.writable);
        self.chunk_slots != 0 && inside(self.tid) && inside(self.standing) && writable
    }

    /// Returns the owner of the lock whose word at `address` names it by its slot; `None` if memory
    /// does not say.
    #[must_use]
    pub fn owner(&self, address: u64, memory: &dyn ReadableMemory) -> Option<WordOwner> {
        let slot = word(memory, address)? & SLOT;
        if slot == 0 {
            return Some(WordOwner::None);
        }
        let chunk = slot / self.chunk_slots;
        if chunk >= self.chunks {
            return None;
        }
        let entry = self.directory.checked_add(8 * u64::from(chunk))?;
        let chunk = memory.read_u64(entry).filter(|&chunk| chunk != 0)?;
        let offset = u64::from(slot % self.chunk_slots) * u64::from(self.slot_size);
        let record = chunk.checked_add(offset)?;
        let tid = word(memory, record.checked_add(self.tid.into())?)?;
        let standing = word(memory, record.checked_add(self.standing.into())?)?;
        // The lock may have changed hands, and the slot may have with it.
        if word(memory, address)? & SLOT != slot {
            return Some(WordOwner::None);
        }
        match (standing, tid) {
            (1, 1..) => Some(WordOwner::Thread(tid)),
            (0 | 1, _) => Some(WordOwner::Ended),
            (2, _) => Some(WordOwner::Lost),
            _ => None,
        }
    }
}

fn word(memory: &dyn ReadableMemory, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    (memory.read(address, &mut bytes).ok()? == 4).then(|| u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

    /// Returns a file's data at 0x1000 with a description at 0x1040 after one that is damaged, the
    /// directory at 0x1100, a chunk at 0x1200, a mutex at 0x1180.
    fn memory(mutex: u32, standing: u32, tid: u32) -> SavedMemory {
        let mut bytes = vec![0; 0x1000];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        for (at, directory) in [(0x10, 0x9000_u64), (0x40, 0x1100)] {
            put(at, MAGIC);
            for (index, number) in [VERSION, 4, 2, 128, 60, 64].into_iter().enumerate() {
                put(at + 16 + 4 * index, &number.to_ne_bytes());
            }
            put(at + 40, &directory.to_ne_bytes());
        }
        put(0x108, &0x1200_u64.to_ne_bytes());
        put(0x180, &mutex.to_ne_bytes());
        put(0x200 + 128 + 60, &tid.to_ne_bytes());
        put(0x200 + 128 + 64, &standing.to_ne_bytes());
        SavedMemory::new(0x1000, bytes)
    }

    fn find(memory: &SavedMemory, module: &str) -> Option<SlotTable> {
        let maps = Maps::parse(b"1000-2000 rw-p 0 00:01 5 /bin/prog\n");
        SlotTable::find(&maps, module, memory)
    }

    #[test]
    fn the_owner_is_the_thread_on_its_slot() {
        let owner = |mutex, standing, tid| {
            let memory = memory(mutex, standing, tid);
            find(&memory, "/bin/prog").expect("there").owner(0x1180, &memory)
        };
        // Slot 1 of chunk 1.
        assert_eq!(owner(5 | 1 << 20, 1, 77), Some(WordOwner::Thread(77)));
        assert_eq!(owner(5, 0, 0), Some(WordOwner::Ended));
        assert_eq!(owner(5, 2, 77), Some(WordOwner::Lost));
        assert_eq!(owner(5, 9, 77), None);
        assert_eq!(owner(1 << 20, 1, 77), Some(WordOwner::None));
        assert_eq!(owner(1, 1, 77), None, "a chunk that is not there");
        assert_eq!(owner(1000, 1, 77), None, "no such chunk");
    }

    #[test]
    fn a_sleep_says_which_lock_it_is_for_and_how_it_ends() {
        let found = |word: u32, address, bits, other| {
            let memory = memory(word, 1, 77);
            let operation = FutexWaitKind::Wait { bits };
            let (private, limit) = (true, WaitLimit::None);
            let wait = FutexWait { address, expected: 0, operation, private, limit, other };
            OwnLock::behind(&wait, &find(&memory, "/bin/prog").expect("there"), &memory)
        };
        let mutex = found(5, 0x1180, LASTING, 0x1180).expect("a mutex");
        assert_eq!((mutex.kind, mutex.owner), (OwnKind::Mutex, WordOwner::Thread(77)));
        assert!(mutex.lasting && !mutex.timed && !mutex.shared);
        assert!(!found(5, 0x1180, WAITER, 0x1180).expect("a mutex").lasting);
        assert!(found(5, 0x1180, HANDOFF, 0x1180).expect("a mutex").lasting);
        assert_eq!(found(5, 0x1180, !3, 0x1180), None);
        // The word that is slept on may be another one.
        let read = found(READERS | 2, 0x1300, LASTING, 0x1180 | 2).expect("a lock");
        assert_eq!((read.kind, read.owner, read.readers), (OwnKind::RwLock, WordOwner::None, 2));
        let written = found(5, 0x1180, LASTING, 0x1180 | 1).expect("a lock");
        assert_eq!((written.owner, written.shared), (WordOwner::Thread(77), true));
        let once = found(5 | 1 << 20, 0x1180, LASTING, 0x1180 | 3).expect("a once");
        assert_eq!((once.kind, once.owner), (OwnKind::Once, WordOwner::Thread(77)));
    }

    #[test]
    fn a_file_without_a_description_has_no_table() {
        assert_eq!(find(&memory(0, 0, 0), "/lib/other.so"), None);
        assert_eq!(find(&SavedMemory::new(0x1000, vec![0; 0x1000]), "/bin/prog"), None);
    }

    #[test]
    fn the_bits_are_those_of_the_specification() {
        let source = include_str!("../../linux/src/slots.rs");
        for bits in ALL {
            assert!(source.contains(&format!("| `{bits:08x}` |")), "{bits:08x}");
        }
        assert!(source.contains("b\"lockstead seats\\n\"") && source.contains("version: 2,"));
    }
}
