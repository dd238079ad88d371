//! The GIL: a record with two conditions and two mutexes.

use super::layout::GilPlace;
use super::objects::Objects;

/// Where the record has the state that had it last, and whether it is taken.
const LAST_HOLDER: u64 = 8;
const LOCKED: u64 = 16;
/// The first of its conditions.
const CONDITIONS: u64 = 32;
/// The longest interval that the record may have, in microseconds: a day.
const LONGEST: u64 = 24 * 3600 * 1_000_000;

/// Tells whether an address is one of the conditions or mutexes of the GIL whose record is at
/// `gil`.
pub(super) fn covers(gil: u64, address: u64) -> bool {
    let pair = size_of::<libc::pthread_cond_t>() + size_of::<libc::pthread_mutex_t>();
    let offset = address.wrapping_sub(gil);
    (CONDITIONS..CONDITIONS + 2 * pair as u64).contains(&offset)
}

/// Returns the address of the GIL of the interpreter whose state is at `interpreter`.
pub(super) fn address(objects: &Objects<'_>, runtime: u64, interpreter: u64) -> Option<u64> {
    let address = match objects.layout.gil {
        GilPlace::Runtime(offset) => runtime.checked_add(offset)?,
        GilPlace::Interpreter(offset) => objects.reader.pointer(interpreter, offset)?,
    };
    // What is no GIL has another beginning.
    let interval = objects.reader.u64(address)?;
    let locked = objects.reader.u32(address.checked_add(LOCKED)?)?.cast_signed();
    ((1..=LONGEST).contains(&interval) && (-1..=1).contains(&locked)).then_some(address)
}

/// Returns the state of the thread that has the GIL, as it is now; `None` if nobody has.
pub(super) fn holder(objects: &Objects<'_>, gil: u64) -> Option<u64> {
    let now = |offset: u64| objects.reader.now(gil.checked_add(offset)?);
    let locked = |word: u64| word as u32 == 1;
    let before = now(LOCKED).is_some_and(locked);
    let holder = now(LAST_HOLDER).filter(|&holder| holder != 0)?;
    let after = now(LOCKED).is_some_and(locked) && now(LAST_HOLDER) == Some(holder);
    (before && after).then_some(holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_on_any_of_its_parts_is_one_for_the_gil() {
        assert!(covers(0x1000, 0x1020) && covers(0x1000, 0x1080));
        assert!(!covers(0x1000, 0x1010) && !covers(0x1000, 0x1000 + 300));
        assert!(!covers(u64::MAX - 8, 0) && !covers(0x1000, 0));
    }
}
