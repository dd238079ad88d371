//! Where a lock lies, seen from the word that its waiters sleep on.

use crate::memory::ReadableMemory;

/// The end of what a program may map.
const USER_END: u64 = 1 << lockstead_unwind::arch::ADDRESS_BITS;
/// Bytes from the lock's address in a parked thread's data to the word it sleeps on, in
/// parking_lot_core 0.9 and 0.10: the compiler puts the words of 8 bytes first, in their order.
const PARKED_KEY: u64 = 32;
/// Bytes from the next thread in the queue to the word.
const PARKED_NEXT: u64 = 24;

/// The place of an object, relative to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPlace {
    /// It begins with the word.
    Word,
    /// It begins so many bytes before the word.
    Before(u64),
    /// A parked thread has its address beside the word: the address of the lock but for the bits of
    /// this mask, by which the lock tells its queues apart.
    Parked(u64),
    /// Nothing near the word tells.
    Nowhere,
}

impl KeyPlace {
    /// Returns the object's address, from memory where it stands there.
    pub(super) fn of(self, word: u64, memory: &dyn ReadableMemory) -> Option<u64> {
        let KeyPlace::Parked(_) = self else { return self.recorded(word, 0) };
        let key = memory.read_u64(word.checked_sub(PARKED_KEY)?)?;
        let next = memory.read_u64(word.checked_sub(PARKED_NEXT)?)?;
        // The neighbour is a pointer to another thread's data, or nothing.
        let sound = next == 0 || is_address(next) && next % 8 == 0;
        let key = self.recorded(word, key).filter(|_| sound)?;
        let mut byte = [0];
        (memory.read(key, &mut byte).ok()? == 1).then_some(key)
    }

    /// Returns the object's address, from the word's and what stood [`PARKED_KEY`] bytes before it.
    pub(super) fn recorded(self, word: u64, before: u64) -> Option<u64> {
        match self {
            KeyPlace::Word => Some(word),
            KeyPlace::Before(bytes) => word.checked_sub(bytes),
            KeyPlace::Parked(mask) => Some(before & !mask).filter(|&key| is_address(key)),
            KeyPlace::Nowhere => None,
        }
    }
}

/// Tells whether an address may be one of a program's data.
fn is_address(address: u64) -> bool {
    (4096..USER_END).contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    #[test]
    fn a_parked_thread_has_the_lock_beside_its_word() {
        let of = |key: u64, next: u64, place: KeyPlace| {
            let mut bytes = vec![0; 0x1000];
            bytes[0x100..0x108].copy_from_slice(&key.to_ne_bytes());
            bytes[0x108..0x110].copy_from_slice(&next.to_ne_bytes());
            place.of(0x1120, &SavedMemory::new(0x1000, bytes))
        };
        assert_eq!(of(0x1801, 0, KeyPlace::Parked(0)), Some(0x1801), "a mutex is a byte");
        assert_eq!(of(0x1801, 0x1300, KeyPlace::Parked(1)), Some(0x1800));
        assert_eq!(of(0x1801, 0x1301, KeyPlace::Parked(1)), None, "no pointer beside it");
        assert_eq!(of(0x9800, 0, KeyPlace::Parked(0)), None, "nothing is mapped there");
        assert_eq!(of(5, 0, KeyPlace::Parked(0)), None);
        assert_eq!(of(u64::MAX, 0, KeyPlace::Parked(0)), None);
    }

    #[test]
    fn no_word_leads_outside_of_memory() {
        let memory = SavedMemory::new(0x1000, vec![0; 64]);
        assert_eq!(KeyPlace::Parked(1).of(8, &memory), None);
        assert_eq!(KeyPlace::Before(4).of(0, &memory), None);
        assert_eq!(KeyPlace::Before(4).of(0x1004, &memory), Some(0x1000));
        assert_eq!(KeyPlace::Nowhere.of(0x1000, &memory), None);
    }
}
