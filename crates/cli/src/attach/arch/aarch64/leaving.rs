//! How a thread that sleeps in a function of the C library is led past the library's frame that has
//! called it.
//!
//! The function returns to instructions of the C library instead, each of which takes a pair of frame pointer
//! and return address from where the stack pointer is, and so much off the stack: they are the ends of functions
//! that save nothing else. As many pairs as it takes are written into the library's frame, which nobody needs
//! any more; the last has what the library's frame has saved. The C library signs its return addresses where the
//! processor can, and so are these: only a thread of the process can do that. A function that has saved nothing
//! returns to the library's caller at once, which is in its registers.

use crate::attach::memory::TargetMemory;
use crate::attach::trace::Held;
use lockstead_inspect::arch::HeldRegisters;
use lockstead_inspect::memory::SavedMemory;
use lockstead_inspect::owners::lsda::Landing;
use lockstead_inspect::stack::CodeAddress;
use lockstead_inspect::unwind::{Registers, Unwinder, Unwound};
use std::collections::BTreeMap;
use std::io;

/// What a call of `cancellable!` does when the C library's function has come back: `sxtw x0, w0;
/// str x0, [sp, #32]; mov x0, sp; mov x1, x29`.
const BACK_FROM_WAIT: [u32; 4] = [0x9340_7c00, 0xf900_13e0, 0x9100_03e0, 0xaa1d_03e1];
/// The same of `syscall`: `str x0, [sp, #56]; mov x0, sp; mov x1, x29`.
const BACK_FROM_CALL: [u32; 3] = [0xf900_1fe0, 0x9100_03e0, 0xaa1d_03e1];
/// `ldp x29, x30, [sp], #0`, and where the bytes in words of eight have their place.
const POP: u32 = 0xa8c0_7bfd;
const POP_SIZE: u32 = 0x7f << 15;
/// `autiasp`, `ret`, and both in one.
const CHECK: u32 = 0xd503_23bf;
const RETURN: u32 = 0xd65f_03c0;
const CHECK_AND_RETURN: u32 = 0xd65f_0bff;
/// The stack pointer is a multiple of this.
const ALIGNMENT: u64 = 16;
/// The most of a stack that is between the two places that are changed.
const MOST: u64 = 64 << 10;

/// Instructions of the C library that leave a frame.
#[derive(Clone, Debug)]
pub(crate) struct Exits {
    /// The address of each, and whether it takes a signed return address, by what it takes off the stack.
    pops: BTreeMap<u64, (u64, bool)>,
}

impl Exits {
    /// Finds them in the code of the C library, if that is known.
    pub(crate) fn of(unwinder: &mut Unwinder, code: Option<(u64, Vec<u8>)>) -> Exits {
        let mut pops = BTreeMap::new();
        let (start, code) = code.unwrap_or_default();
        let code: Vec<u32> = code
            .chunks_exact(4)
            .map(|code| u32::from_le_bytes(std::array::from_fn(|at| code[at])))
            .collect();
        for (at, next) in (start..).step_by(4).zip(code.windows(3)) {
            let size = u64::from((next[0] & POP_SIZE) >> 15) * 8;
            // As the number has a sign, larger ones put the stack pointer down.
            let is_pop = next[0] & !POP_SIZE == POP && (ALIGNMENT..512).contains(&size);
            let signed = match (next[1], next[2]) {
                (RETURN, _) => false,
                (CHECK, RETURN) | (CHECK_AND_RETURN, _) => true,
                _ => continue,
            };
            if is_pop && !pops.contains_key(&size) && leaves(unwinder, at, size, start) {
                pops.insert(size, (at, signed));
            }
        }
        Exits { pops }
    }

    /// Leads a sleeping thread past a frame of the library's, which has called a function of the C library,
    /// below in the same stack. `sign` returns an address as one that was signed for a frame that ends at the
    /// other, if that is known already. Returns false if the frame is none that can be left so, or not
    /// yet.
    ///
    /// # Errors
    /// The memory or the registers cannot be read or written.
    pub(crate) fn lead_past(
        &mut self,
        held: &Held,
        memory: &TargetMemory,
        unwinder: &mut Unwinder,
        unwound: &Unwound,
        frame: usize,
        sign: &mut dyn FnMut(u64, u64) -> Option<u64>,
    ) -> io::Result<bool> {
        let (Some(place), Some(caller)) =
            (unwound.frames.get(frame), unwound.registers.get(frame + 1))
        else {
            return Ok(false);
        };
        let here = &unwound.registers[frame];
        let (Some(sp), Some(end)) = (here.stack_pointer(), caller.stack_pointer()) else {
            return Ok(false);
        };
        let back = place.address;
        let code = memory.bytes(back, 16)?;
        let is = |known: &[u32]| {
            code.chunks_exact(4).zip(known).all(|(code, known)| code == known.to_le_bytes())
        };
        if !(is(&BACK_FROM_WAIT) || is(&BACK_FROM_CALL)) || here.frame_pointer() != Some(end - 16) {
            return Ok(false);
        }
        let Some(pointer) = caller.frame_pointer() else { return Ok(false) };
        if frame == 1 && held.registers()?.sp == sp {
            // It has saved nothing: its caller is in registers, which change all at once.
            let mut registers = held.registers()?;
            if (registers.regs[29], registers.regs[30]) != (end - 16, back) {
                return Ok(false);
            }
            (registers.sp, registers.regs[29], registers.regs[30]) = (end, pointer, caller.pc());
            held.set_registers(&registers)?;
            return Ok(true);
        }
        let mut all = true;
        let mut sign = |address: u64, end: u64| {
            sign(address, end).unwrap_or_else(|| {
                all = false;
                0
            })
        };
        let pairs = self.pairs((sp, end), [pointer, caller.pc()], &mut sign);
        let Some((first, pairs)) = pairs else { return Ok(false) };
        let slot = unwinder.return_place(memory, unwound.frames[frame - 1], sp);
        let Some(slot) = slot.filter(|&slot| slot < sp && sp - slot < MOST) else {
            return Ok(false);
        };
        // All at once: whoever ends this command finds the one or the other.
        let mut bytes = memory.bytes(slot, (sp - slot) as usize)?;
        let word = u64::from_ne_bytes(std::array::from_fn(|at| bytes[at]));
        // What the C library has not signed it would not take signed.
        let (known, to) = (sign(back, sp), sign(first, sp));
        if !all || ![known, back].contains(&word) {
            return Ok(false);
        }
        let to = if word == known { to } else { first };
        bytes[..8].copy_from_slice(&to.to_ne_bytes());
        bytes.extend(pairs);
        memory.write(slot, &bytes)?;
        Ok(true)
    }

    /// Returns the address of the first instruction by which a frame is left from `sp` to `end`, and the
    /// pairs that all of them take: the last is `pair`.
    fn pairs(
        &self,
        (sp, end): (u64, u64),
        pair: [u64; 2],
        sign: &mut dyn FnMut(u64, u64) -> u64,
    ) -> Option<(u64, Vec<u8>)> {
        let mut steps = Vec::new();
        let mut at = sp;
        while at < end {
            let (&size, &(pop, signed)) = self.pops.range(..=end - at).next_back()?;
            at += size;
            steps.push((pop, signed, at));
        }
        let first = steps.first()?.0;
        let mut bytes = vec![0; (end - sp) as usize];
        let mut from = sp;
        for (index, &(_, signed, to)) in steps.iter().enumerate() {
            let returns_to = steps.get(index + 1).map_or(pair[1], |next| next.0);
            let word = if signed { sign(returns_to, to) } else { returns_to };
            let place = (from - sp) as usize;
            bytes[place..place + 8].copy_from_slice(&pair[0].to_ne_bytes());
            bytes[place + 8..place + 16].copy_from_slice(&word.to_ne_bytes());
            from = to;
        }
        (at == end).then_some((first, bytes))
    }
}

/// Tells whether an instruction leaves a frame of this size, with all registers but those of the pair as they
/// were, as whoever unwinds sees it: he looks at the instruction before the address that is returned to.
fn leaves(unwinder: &mut Unwinder, instruction: u64, size: u64, code: u64) -> bool {
    const STACK: u64 = 0x10_0000;
    const BEFORE: u64 = 0x77_0000;
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut registers: HeldRegisters = unsafe { std::mem::zeroed() };
    registers.regs = std::array::from_fn(|number| 0x1000 + number as u64);
    (registers.pc, registers.sp) = (instruction - 4, STACK);
    let before = Registers::all(&registers);
    // Other registers cannot come from what is not there.
    let bytes = [BEFORE, code + 16].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let memory = SavedMemory::new(STACK, bytes);
    let unwound = unwinder.unwind(&memory, before);
    let Some(caller) = unwound.registers.get(1) else { return false };
    // A thread that is cancelled would clean up for whoever has called from here.
    let landing = unwinder.landing(&memory, CodeAddress::return_to(instruction));
    matches!(landing, None | Some(Landing::Passes))
        && !unwound.frames[1].found
        && caller.pc() == code + 16
        && caller.frame_pointer() == Some(BEFORE)
        && caller.stack_pointer() == Some(STACK + size)
        && caller.keeps(&before)
}
