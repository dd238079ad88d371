//! How a thread that sleeps in a function of the C library is led past the library's frame that has
//! called it.

use crate::attach::memory::TargetMemory;
use crate::attach::trace::Held;
use lockstead_inspect::memory::{ReadableMemory, SavedMemory};
use lockstead_inspect::owners::lsda::Landing;
use lockstead_inspect::stack::CodeAddress;
use lockstead_inspect::unwind::{Registers, Unwinder, Unwound};
use std::io;

/// What a call of `cancellable!` does when the C library's function has come back, before it leaves
/// its frame.
const BACK_FROM_WAIT: &[u8] = &[0x48, 0x98, 0x48, 0x89, 0x44, 0x24, 0x20];
/// The same of `syscall`.
const BACK_FROM_CALL: &[u8] = &[0x48, 0x89, 0x44, 0x24, 0x48, 0x48, 0x8d, 0x7c, 0x24, 0x10];
/// `leave; ret` and `xor %eax, %eax; ret`.
const LEAVE: &[u8] = &[0xc9, 0xc3];
const RETURN: &[u8] = &[0x31, 0xc0, 0xc3];

/// Instructions of the C library that leave a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exits {
    /// Leaves a frame that the frame pointer stands at.
    leave: Option<u64>,
    /// The address of an instruction that returns, with nothing on the stack above.
    ret: Option<u64>,
}

impl Exits {
    /// Finds them in the code of the C library, if that is known.
    pub(crate) fn of(unwinder: &mut Unwinder, code: Option<(u64, Vec<u8>)>) -> Exits {
        let Some((start, code)) = code else { return Exits { leave: None, ret: None } };
        let mut find = |bytes: &[u8], skip: u64, is: fn(&mut Unwinder, u64, u64) -> bool| {
            let all = code.windows(bytes.len()).enumerate().filter(|(_, here)| *here == bytes);
            let mut places = all.map(|(at, _)| start + at as u64 + skip).take(64);
            places.find(|&at| is(unwinder, at, start))
        };
        Exits { leave: find(LEAVE, 0, leaves_frame), ret: find(RETURN, 2, returns) }
    }

    /// Leads a sleeping thread past a frame of the library's, which has called a function of the C library,
    /// below in the same stack. No return address is signed here. Returns false if the frame is none that can be left so.
    ///
    /// # Errors
    /// The memory cannot be read or written.
    pub(crate) fn lead_past(
        &mut self,
        _: &Held,
        memory: &TargetMemory,
        _: &mut Unwinder,
        unwound: &Unwound,
        frame: usize,
        _: &mut dyn FnMut(u64, u64) -> Option<u64>,
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
        let slot = sp - 8;
        if memory.read_u64(slot) != Some(place.address) {
            return Ok(false);
        }
        let code = memory.bytes(place.address, BACK_FROM_CALL.len())?;
        if code.starts_with(BACK_FROM_WAIT)
            && let Some(leave) = self.leave
            && here.frame_pointer() == Some(end - 16)
        {
            memory.write_u64(slot, leave)?;
            return Ok(true);
        }
        if code.starts_with(BACK_FROM_CALL)
            && let Some(ret) = self.ret
            && (slot..slot + 4096).contains(&end)
        {
            // One return after the other, up to the caller's address. The registers that the frame has
            // saved were not changed since.
            let words = (end - 8 - slot) / 8;
            let bytes: Vec<u8> = (0..words).flat_map(|_| ret.to_ne_bytes()).collect();
            memory.write(slot, &bytes)?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// Returns where an instruction leads on a stack of these words, as whoever unwinds sees it: he looks
/// at the instruction before the address that is returned to.
fn leads(
    unwinder: &mut Unwinder,
    instruction: u64,
    words: &[u64],
    [rsp, rbp]: [u64; 2],
) -> Option<Registers> {
    const STACK: u64 = 0x10_0000;
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    (registers.rip, registers.rsp, registers.rbp) = (instruction - 1, STACK + rsp, STACK + rbp);
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let memory = SavedMemory::new(STACK, bytes);
    let unwound = unwinder.unwind(&memory, Registers::all(&registers));
    let caller = unwound.registers.get(1)?;
    // A thread that is cancelled would clean up for whoever has called from here.
    let landing = unwinder.landing(&memory, CodeAddress::return_to(instruction));
    let passes = matches!(landing, None | Some(Landing::Passes));
    (passes && !unwound.frames[1].found).then_some(*caller)
}

fn leaves_frame(unwinder: &mut Unwinder, instruction: u64, code: u64) -> bool {
    const BEFORE: u64 = 0x77_0000;
    // Nothing lies below the frame pointer: other registers cannot come from there.
    let caller = leads(unwinder, instruction, &[BEFORE, code + 16], [0, 0]);
    caller.is_some_and(|caller| {
        caller.pc() == code + 16
            && caller.frame_pointer() == Some(BEFORE)
            && caller.stack_pointer() == Some(0x10_0010)
    })
}

fn returns(unwinder: &mut Unwinder, instruction: u64, code: u64) -> bool {
    const BEFORE: u64 = 0x10_0000 + 0x1000;
    let caller = leads(unwinder, instruction, &[code + 16], [0, 0x1000]);
    caller.is_some_and(|caller| {
        caller.pc() == code + 16
            && caller.frame_pointer() == Some(BEFORE)
            && caller.stack_pointer() == Some(0x10_0008)
    })
}
