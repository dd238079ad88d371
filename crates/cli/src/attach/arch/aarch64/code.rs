//! What is read in the code of the C library.

use crate::attach::memory::TargetMemory;
use lockstead_inspect::memory::ReadableMemory;

/// Reads the distance of `errno` from the thread pointer in the code of `__errno_location`: it loads
/// that from a word and adds the thread pointer, in one order or another.
pub(crate) fn errno_of(function: u64, memory: &TargetMemory) -> Option<u64> {
    let code = memory.bytes(function, 32).ok()?;
    errno_in(function, &code, |at| memory.read_u64(at))
}

/// Follows the instructions of such a function. `word` reads the process's memory.
fn errno_in(function: u64, code: &[u8], word: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    const RETURN: u32 = 0xd65f_03c0;
    const MARK: u32 = 0xd503_245f;
    // What is in a register: a number, and whether the thread pointer is added to it.
    let mut registers = [None::<(u64, bool)>; 32];
    for (at, bytes) in (function..).step_by(4).zip(code.chunks_exact(4)) {
        let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let (to, from, other) =
            ((code & 31) as usize, (code >> 5 & 31) as usize, (code >> 16 & 31) as usize);
        if code == RETURN {
            return registers[0].filter(|&(_, of_thread)| of_thread).map(|(distance, _)| distance);
        } else if code == MARK {
        } else if code & 0x9f00_0000 == 0x9000_0000 {
            // The address of a page, of 21 bits.
            let pages = (code >> 5 & 0x7_ffff) << 2 | code >> 29 & 3;
            let pages = i64::from((pages << 11).cast_signed() >> 11);
            registers[to] = Some(((at & !0xfff).wrapping_add_signed(pages << 12), false));
        } else if code & 0xffc0_0000 == 0xf940_0000 {
            let (base, of_thread) = registers[from]?;
            let place = base.wrapping_add(u64::from(code >> 10 & 0xfff) * 8);
            registers[to] = Some((word(place).filter(|_| !of_thread)?, false));
        } else if code & 0xffff_ffe0 == 0xd53b_d040 {
            registers[to] = Some((0, true));
        } else if code & 0xffe0_fc00 == 0x8b00_0000 {
            let ((one, first), (two, second)) = (registers[from]?, registers[other]?);
            registers[to] = Some((one.wrapping_add(two), first ^ second));
        } else {
            return None;
        }
    }
    None
}

/// Returns where the jumps in some code lead.
pub(crate) fn jumps(code: &[u8], start: u64) -> Vec<u64> {
    let instructions = (start..).step_by(4).zip(code.chunks_exact(4));
    let jumps = instructions.filter_map(|(at, bytes)| {
        let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let distance = i64::from((code << 6).cast_signed() >> 6) * 4;
        (code >> 26 == 5).then(|| at.wrapping_add_signed(distance))
    });
    jumps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_errno_is_read_in_either_order() {
        let word = |at: u64| (at == 0x1b_0000 + 3512).then_some(0x58);
        let bytes = |code: &[u32]| code.iter().flat_map(|c| c.to_le_bytes()).collect::<Vec<u8>>();
        // With the mark for indirect calls, then `adrp`, `ldr`, `mrs`, `add`, `ret`.
        let one = [0xd503_245f, 0x9000_0c60, 0xf946_dc00, 0xd53b_d041, 0x8b00_0020, 0xd65f_03c0];
        assert_eq!(errno_in(0x2_4340, &bytes(&one), word), Some(0x58));
        let other = [0xd53b_d040, 0x9000_0c61, 0xf946_dc21, 0x8b01_0000, 0xd65f_03c0];
        assert_eq!(errno_in(0x2_4340, &bytes(&other), word), Some(0x58));
        assert_eq!(errno_in(0x2_4340, &bytes(&one[..5]), word), None, "it does not return");
        assert_eq!(errno_in(0x2_4340, &bytes(&other[1..]), word), None, "no thread pointer");
    }

    #[test]
    fn jumps_lead_forth_and_back() {
        let code = [0x1400_0002_u32, 0x9400_0002, 0x17ff_ffff];
        let bytes: Vec<u8> = code.iter().flat_map(|code| code.to_le_bytes()).collect();
        assert_eq!(jumps(&bytes, 0x1000), [0x1008, 0x1004]);
    }
}
