//! The calls of x86-64.

use super::{Called, Link};
use crate::memory::ReadableMemory;

/// Returns where the call in front of `returns_to` leads; `None` if there is none.
pub(crate) fn called_before(memory: &dyn ReadableMemory, returns_to: u64) -> Option<Called> {
    let code = code_before(memory, returns_to)?;
    let displacement = relative(returns_to, &code[3..]);
    // call *displacement(%rip)
    if code[1..3] == [0xff, 0x15] {
        let pointed = memory.read_u64(displacement?);
        return Some(pointed.map_or(Called::Somewhere, Called::At));
    }
    if is_indirect(&code) {
        return Some(Called::Somewhere);
    }
    // Directly, or over the linkage table.
    let target = displacement.filter(|_| code[2] == 0xe8)?;
    Some(Called::At(behind_stub(memory, target).unwrap_or(target)))
}

/// Returns the seven bytes in front of `returns_to`.
fn code_before(memory: &dyn ReadableMemory, returns_to: u64) -> Option<[u8; 7]> {
    let mut code = [0; 7];
    let start = returns_to.checked_sub(7)?;
    (memory.read(start, &mut code).ok()? == 7).then_some(code)
}

/// Returns how the call in front of `returns_to` leads to the function that starts at
/// `function`; `None` if there is no call.
pub(crate) fn link(memory: &dyn ReadableMemory, returns_to: u64, function: u64) -> Option<Link> {
    let code = code_before(memory, returns_to)?;
    if code[2] == 0xe8 && relative(returns_to, &code[3..]) == Some(function) {
        return Some(Link::Confirmed);
    }
    Some(match called_before(memory, returns_to)? {
        Called::At(called) if called == function => Link::Confirmed,
        Called::At(_) => Link::Contradicted,
        Called::Somewhere => Link::Open,
    })
}

/// Tells whether the bytes end with a call by register or memory: `ff /2` and what
/// its addressing mode adds.
fn is_indirect(code: &[u8; 7]) -> bool {
    (2..=7).any(|length| {
        let call = &code[7 - length..];
        let (mode, middle, base) = (call[1] >> 6, call[1] >> 3 & 7, call[1] & 7);
        let sib = usize::from(mode != 3 && base == 4);
        let displacement = match mode {
            0 if base == 5 => 4,
            0 if sib == 1 && call.get(2).is_some_and(|sib| sib & 7 == 5) => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        call[0] == 0xff && middle == 2 && length == 2 + sib + displacement
    })
}

/// Returns where the linkage stub at `stub` jumps: `jmp *slot(%rip)`, perhaps behind a
/// landing mark for indirect jumps and with a prefix.
fn behind_stub(memory: &dyn ReadableMemory, stub: u64) -> Option<u64> {
    let mut code = [0; 16];
    let n = memory.read(stub, &mut code).ok()?;
    let whole = &code[..n];
    let code = whole.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(whole);
    let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
    let code = code.strip_prefix(&[0xff, 0x25])?;
    let next = stub + (whole.len() - code.len()) as u64 + 4;
    memory.read_u64(relative(next, code.get(..4)?)?)
}

fn relative(next: u64, displacement: &[u8]) -> Option<u64> {
    let displacement = i32::from_le_bytes(displacement.try_into().ok()?);
    next.checked_add_signed(displacement.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    const CODE: u64 = 0x40_0000;

    /// Returns how the bytes in front of `CODE + 0x40` call `CODE + 0x10`, with a stub at `CODE`
    /// and its slot at `CODE + 0x80`.
    fn linked(call: &[u8]) -> Option<Link> {
        let mut bytes = vec![0x90; 0x100];
        bytes[..10].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x76, 0, 0, 0]);
        bytes[0x40 - call.len()..0x40].copy_from_slice(call);
        bytes[0x80..0x88].copy_from_slice(&(CODE + 0x10).to_le_bytes());
        bytes[0x88..0x90].copy_from_slice(&(CODE + 0x20).to_le_bytes());
        link(&SavedMemory::new(CODE, bytes), CODE + 0x40, CODE + 0x10)
    }

    #[test]
    fn direct_calls_confirm_or_contradict() {
        assert_eq!(linked(&[0xe8, 0xd0, 0xff, 0xff, 0xff]), Some(Link::Confirmed));
        assert_eq!(linked(&[0xe8, 0xd1, 0xff, 0xff, 0xff]), Some(Link::Contradicted));
        assert_eq!(linked(&[0xe8, 0xc0, 0xff, 0xff, 0xff]), Some(Link::Confirmed), "by the stub");
        assert_eq!(linked(&[0xff, 0x15, 0x40, 0, 0, 0]), Some(Link::Confirmed), "by the slot");
        assert_eq!(linked(&[0xff, 0x15, 0x48, 0, 0, 0]), Some(Link::Contradicted));
    }

    #[test]
    fn indirect_calls_leave_it_open() {
        for call in [
            &[0xff, 0xd0][..],                  // *%rax
            &[0x41, 0xff, 0xd4],                // *%r12
            &[0xff, 0x50, 0x18],                // *24(%rax)
            &[0xff, 0x14, 0x24],                // *(%rsp)
            &[0xff, 0x90, 0x50, 0x06, 0, 0],    // *0x650(%rax)
            &[0xff, 0x94, 0x24, 0x80, 0, 0, 0], // *0x80(%rsp)
            &[0xe8, 1, 2, 0xff, 0xd0],          // *%rax behind another instruction
        ] {
            assert_eq!(linked(call), Some(Link::Open), "{call:x?}");
        }
    }

    #[test]
    fn what_is_no_call_is_no_link() {
        assert_eq!(linked(&[0x90]), None);
        assert_eq!(linked(&[0xff, 0xe0]), None, "a jump");
        assert_eq!(linked(&[0xff, 0xd0, 0x90]), None, "a call elsewhere");
        assert_eq!(link(&SavedMemory::new(CODE, vec![0; 4]), CODE, CODE), None);
        assert_eq!(link(&SavedMemory::new(CODE, vec![0; 4]), 3, CODE), None);
    }
}
