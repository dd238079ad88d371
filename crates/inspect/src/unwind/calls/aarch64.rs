//! The calls of aarch64.

use super::{Called, Link};
use crate::memory::ReadableMemory;

/// `bti c`, with which functions and stubs begin that may be jumped to.
const LANDING: u32 = 0xd503_245f;

/// Returns where the call in front of `returns_to` leads; `None` if there is none.
pub(crate) fn called_before(memory: &dyn ReadableMemory, returns_to: u64) -> Option<Called> {
    let target = match before(memory, returns_to)? {
        Call::Direct(target) => target,
        Call::Indirect => return Some(Called::Somewhere),
    };
    Some(Called::At(behind_stub(memory, target).unwrap_or(target)))
}

/// Returns how the call in front of `returns_to` leads to the function that starts at
/// `function`; `None` if there is no call.
pub(crate) fn link(memory: &dyn ReadableMemory, returns_to: u64, function: u64) -> Option<Link> {
    Some(match before(memory, returns_to)? {
        Call::Indirect => Link::Open,
        Call::Direct(target) if target == function => Link::Confirmed,
        Call::Direct(target) if behind_stub(memory, target) == Some(function) => Link::Confirmed,
        Call::Direct(_) => Link::Contradicted,
    })
}

/// The call that an instruction is.
enum Call {
    Direct(u64),
    Indirect,
}

fn before(memory: &dyn ReadableMemory, returns_to: u64) -> Option<Call> {
    let at = returns_to.checked_sub(4).filter(|at| at.is_multiple_of(4))?;
    let code = instruction(memory, at)?;
    // bl
    if code >> 26 == 0b10_0101 {
        return Some(Call::Direct(at.wrapping_add_signed(distance(code))));
    }
    // blr, and those that check a signature: blraaz, blrabz, blraa, blrab.
    let is_indirect = code & 0xffff_fc1f == 0xd63f_0000
        || code & 0xffff_f81f == 0xd63f_081f
        || code & 0xffff_f800 == 0xd73f_0800;
    is_indirect.then_some(Call::Indirect)
}

/// Returns how far a direct call or jump leads: a signed number of 26 bits, in instructions.
fn distance(code: u32) -> i64 {
    i64::from((code << 6).cast_signed() >> 6) * 4
}

/// Returns where the jump at `at` leads, if one stands there that asks no condition.
pub(crate) fn jump_at(memory: &dyn ReadableMemory, at: u64) -> Option<u64> {
    let code = instruction(memory, at)?;
    let target = (code >> 26 == 0b00_0101).then(|| at.wrapping_add_signed(distance(code)))?;
    Some(behind_stub(memory, target).unwrap_or(target))
}

/// Tells whether the instruction at `at` jumps, always or on a condition, or returns.
pub(crate) fn is_jump(memory: &dyn ReadableMemory, at: u64) -> bool {
    instruction(memory, at).is_some_and(|code| {
        let by_register = code & 0xfe00_0000 == 0xd600_0000 && code & 0xffff_fc1f != 0xd63f_0000;
        let by_condition = code & 0xff00_0000 == 0x5400_0000 || code & 0x7c00_0000 == 0x3400_0000;
        code >> 26 == 0b00_0101 || by_condition || by_register
    })
}

/// Returns by how many bytes the instruction at `at` lowers the stack pointer as the beginning of a function
/// does; 0 if it does not, `None` if by how many its code does not say.
pub(crate) fn taken_off_stack(memory: &dyn ReadableMemory, at: u64) -> Option<u64> {
    let code = instruction(memory, at)?;
    // sub sp, sp, #number, which may count pages.
    if code & 0xff80_03ff == 0xd100_03ff {
        return Some(u64::from(code >> 10 & 0xfff) << if code & 1 << 22 == 0 { 0 } else { 12 });
    }
    // stp of two registers of 8 or 16 bytes, and str of one, with [sp, #-number]!
    let is_pair = code & 0xffc0_03e0 == 0xa980_03e0 || code & 0xffc0_03e0 == 0x6d80_03e0;
    let is_long_pair = code & 0xffc0_03e0 == 0xad80_03e0;
    let is_one = [0xf800_0fe0, 0xfc00_0fe0, 0x3c80_0fe0].contains(&(code & 0xffe0_0fe0));
    let number_of_pair = (code << 10).cast_signed() >> 25;
    let lowered = match (is_pair || is_long_pair, is_one) {
        (true, _) => number_of_pair * if is_long_pair { 16 } else { 8 },
        (_, true) => (code << 11).cast_signed() >> 23,
        _ => 0,
    };
    // sub sp, …, register; and sp, register, mask; addvl and addpl sp, sp; and mov sp, or add and sub of a
    // number to another register than x29, by which functions restore it.
    let is_by_register = code & 0xffe0_001f == 0xcb20_001f || code & 0xff80_001f == 0x9200_001f;
    let is_by_vectors = code & 0xffbf_f81f == 0x043f_501f;
    let is_from = code & 0xbf80_001f == 0x9100_001f && !matches!(code >> 5 & 0x1f, 29 | 31);
    (lowered <= 0 && !is_by_register && !is_by_vectors && !is_from)
        .then(|| u64::from(lowered.unsigned_abs()))
}

/// Returns where the linkage stub at `stub` jumps: `adrp x16, page; ldr x17, [x16, distance]`, and further on
/// `br x17`; perhaps behind a mark for indirect jumps.
fn behind_stub(memory: &dyn ReadableMemory, stub: u64) -> Option<u64> {
    let first = instruction(memory, stub)?;
    let at = if first == LANDING { stub.checked_add(4)? } else { stub };
    let (page, load) = (instruction(memory, at)?, instruction(memory, at.checked_add(4)?)?);
    if page & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    // A signed distance of 21 bits, in pages of 4 KiB whatever those of the kernel are.
    let (low, high) = (page >> 29 & 3, page >> 5 & 0x7_ffff);
    let pages = i64::from(((high << 2 | low) << 11).cast_signed() >> 11);
    let slot = (at & !0xfff).wrapping_add_signed(pages << 12);
    memory.read_u64(slot.wrapping_add(u64::from(load >> 10 & 0xfff) * 8))
}

fn instruction(memory: &dyn ReadableMemory, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    (memory.read(at, &mut bytes).ok()? == 4).then(|| u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    const CODE: u64 = 0x40_0000;

    /// Returns how the instruction in front of `CODE + 0x40` calls `CODE + 0x10`, with a stub at `CODE` and
    /// its slot at `CODE + 0x1080`.
    fn linked(call: u32) -> Option<Link> {
        let mut bytes = vec![0; 0x2000];
        // bti c; adrp x16, CODE + 0x1000; ldr x17, [x16, #0x80]; add x16, x16, #0x80; br x17
        let stub = [LANDING, 0xb000_0010, 0xf940_4211, 0x9102_0210, 0xd61f_0220];
        for (place, code) in bytes.chunks_exact_mut(4).zip(stub) {
            place.copy_from_slice(&code.to_le_bytes());
        }
        bytes[0x3c..0x40].copy_from_slice(&call.to_le_bytes());
        bytes[0x1080..0x1088].copy_from_slice(&(CODE + 0x10).to_le_bytes());
        link(&SavedMemory::new(CODE, bytes), CODE + 0x40, CODE + 0x10)
    }

    #[test]
    fn direct_calls_confirm_or_contradict() {
        // bl to CODE + 0x3c + 4 * distance
        assert_eq!(
            linked(0x9400_0000 | (-11_i32).cast_unsigned() & 0x3ff_ffff),
            Some(Link::Confirmed)
        );
        assert_eq!(
            linked(0x9400_0000 | (-10_i32).cast_unsigned() & 0x3ff_ffff),
            Some(Link::Contradicted)
        );
        assert_eq!(
            linked(0x9400_0000 | (-15_i32).cast_unsigned() & 0x3ff_ffff),
            Some(Link::Confirmed),
            "by the stub"
        );
    }

    #[test]
    fn indirect_calls_leave_it_open() {
        for call in [0xd63f_0000, 0xd63f_0260, 0xd63f_081f, 0xd73f_0801] {
            assert_eq!(linked(call), Some(Link::Open), "{call:x}");
        }
    }

    fn code(code: u32) -> SavedMemory {
        SavedMemory::new(CODE, code.to_le_bytes().to_vec())
    }

    #[test]
    fn what_begins_a_function_lowers_the_stack_pointer() {
        for (number, bytes, text) in [
            (0xd100_c3ff, Some(0x30), "sub sp, sp, #0x30"),
            (0xd140_07ff, Some(0x1000), "sub sp, sp, #1, lsl #12"),
            (0xa9bd_7bfd, Some(0x30), "stp x29, x30, [sp, #-0x30]!"),
            (0x6dbe_2be9, Some(0x20), "stp d9, d10, [sp, #-0x20]!"),
            (0xf81f_0ffe, Some(0x10), "str x30, [sp, #-0x10]!"),
            (0xadbe_27e8, Some(0x40), "stp q8, q9, [sp, #-0x40]!"),
            (0x3c9e_0fe8, Some(0x20), "str q8, [sp, #-0x20]!"),
            (0xa902_7bfd, Some(0), "stp x29, x30, [sp, #0x20]"),
            (0x9100_83fd, Some(0), "add x29, sp, #0x20"),
            (0x9100_c3ff, Some(0), "add sp, sp, #0x30"),
            (0xd100_83bf, Some(0), "sub sp, x29, #0x20"),
            (0x9100_03bf, Some(0), "mov sp, x29"),
            (0xa8c3_7bfd, Some(0), "ldp x29, x30, [sp], #0x30"),
            (0xcb29_63ff, None, "sub sp, sp, x9"),
            (0x9100_013f, None, "mov sp, x9"),
            (0x927a_e53f, None, "and sp, x9, #-64"),
            (0x043f_57df, None, "addvl sp, sp, #-2"),
            (0x047f_57df, None, "addpl sp, sp, #-2"),
        ] {
            assert_eq!(taken_off_stack(&code(number), CODE), bytes, "{text}");
        }
    }

    #[test]
    fn jumps_and_returns_are_told_from_calls() {
        // b, b.eq, cbz, cbnz, tbz, br, ret; bl, blr, sub.
        for jump in [
            0x1400_0004,
            0x5400_0080,
            0xb400_0080,
            0x3500_0080,
            0x3600_0080,
            0xd61f_0220,
            0xd65f_03c0,
        ] {
            assert!(is_jump(&code(jump), CODE), "{jump:x}");
        }
        for other in [0x9400_0004, 0xd63f_0200, 0xd100_c3ff] {
            assert!(!is_jump(&code(other), CODE), "{other:x}");
        }
    }

    #[test]
    fn jumps_that_ask_nothing_lead_somewhere() {
        assert_eq!(jump_at(&code(0x1400_0004), CODE), Some(CODE + 16));
        assert_eq!(jump_at(&code(0x17ff_ffff), CODE), Some(CODE - 4));
        for other in [0x9400_0004, 0x5400_0080, 0xb400_0080, 0xd61f_0220] {
            assert_eq!(jump_at(&code(other), CODE), None, "{other:x}");
        }
    }

    #[test]
    fn what_is_no_call_is_no_link() {
        assert_eq!(linked(0xd61f_0220), None, "a jump");
        assert_eq!(linked(0x1400_0001), None, "a direct jump");
        assert_eq!(
            link(&SavedMemory::new(CODE, vec![0; 4]), CODE + 2, CODE),
            None,
            "no instruction's end"
        );
        assert_eq!(link(&SavedMemory::new(CODE, vec![0; 4]), 3, CODE), None);
    }
}
