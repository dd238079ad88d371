//! The owners of lockstead's own mutexes in another process.
//!
//! # Role
//! A mutex of the crate lockstead names its owner by a slot. Which thread that
//! is stands in a table of the program or library that has the lock's code; its
//! data has a description of the table. Both, and the bits by which a sleep for a
//! mutex is known, are specified in `crates/linux/src/slots.rs`.
//!
//! Nothing that is read is trusted: numbers are checked before they are used.

use crate::maps::{Backing, Maps, MapsLine};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};

const MAGIC: &[u8; 16] = b"lockstead seats\n";
const VERSION: u32 = 1;
/// Bytes of a description.
const LENGTH: usize = 48;
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Bits of a slot.
const SLOT: u32 = (1 << 20) - 1;

/// The bits of a sleep for a mutex, and of one as its hand-off waiter.
const WAITER: u32 = !7;
const HANDOFF: u32 = 1;
/// The bit sets of all sleeps for lockstead's locks.
const ALL: [u32; 4] = [WAITER, HANDOFF, !3, 3];

/// Tells whether the sleep hears what only the sleepers of lockstead's locks do.
#[must_use]
pub fn is_lockstead(wait: &FutexWait) -> bool {
    matches!(wait.operation, FutexWaitKind::Wait { bits } if ALL.contains(&bits))
}

/// Tells whether it is a sleep for a mutex that will end only when it is woken; `None`
/// if it is for no mutex. Others look at the mutex from time to time.
#[must_use]
pub fn mutex_sleep(wait: &FutexWait) -> Option<bool> {
    match wait.operation {
        FutexWaitKind::Wait { bits: WAITER } => Some(false),
        FutexWaitKind::Wait { bits: HANDOFF } => Some(true),
        _ => None,
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

/// A mutex that a thread sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnMutex {
    /// The address of its first byte.
    pub address: u64,
    /// The thread that holds the mutex, if one does.
    pub owner: WordOwner,
    /// The sleeper sleeps until it is woken. Others look at the mutex from time
    /// to time, and what limit their waiting has cannot be seen.
    pub sound: bool,
    /// The sleep ends by itself.
    pub timed: bool,
}

/// Times after this many seconds are never: a sleep that signals end, and
/// nothing else, has such a time.
const NEVER: i64 = 1 << 40;

impl OwnMutex {
    /// Returns the mutex that a thread sleeps for in this way; `None` if it is none. `slots` is the
    /// table of the code that called.
    #[must_use]
    pub fn behind(
        wait: &FutexWait,
        slots: &SlotTable,
        memory: &dyn ReadableMemory,
    ) -> Option<OwnMutex> {
        let sound = mutex_sleep(wait).filter(|_| wait.private)?;
        let owner = slots.owner(wait.address, memory)?;
        let ends = wait.limit_time(memory).is_none_or(|(seconds, _)| seconds < NEVER);
        Some(OwnMutex { address: wait.address, owner, sound, timed: sound && wait.timed() && ends })
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

    /// Returns the owner of the mutex whose sleepers sleep on the word at `address`; `None` if
    /// memory does not say.
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
        // The mutex may have changed hands, and the slot may have with it.
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
        assert!(source.contains("b\"lockstead seats\\n\"") && source.contains("version: 1,"));
    }
}
