//! How code without unwind tables is left: by what its instructions do until it returns.
//!
//! # Role
//! musl has no tables, and in a static program of Rust its function `syscall` is the innermost one
//! of each thread that sleeps. But such code says itself where its caller is: it puts the stack
//! pointer back, takes registers from the stack, and returns. Every way from the program counter
//! to a return is read, and followed only as far as the stack pointer is concerned.
//!
//! # When it is believed
//! All ways must agree on where the return address lies. A way that changes the stack pointer
//! otherwise, jumps to where a register says, or is too long, makes it unknown. Behind a call of a
//! function that never returns there is another function's code: functions that are called directly
//! are read for that. Of others the code is read on, and finds a place that may hold anything. So a
//! call must stand in front of the return address. If it says where it leads, the code there must
//! lead to the program counter, see [`reaches`]; if it does not say, the frame counts as looked for
//! on the stack.

use super::{Kept, StackBase, StackPlace};
use crate::memory::ReadableMemory;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use lockstead_unwind::Register as UnwindRegister;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// The most instructions that are read for one place.
const MOST: usize = 4000;
/// The most instructions of a function that is called are read to tell whether it returns, and of
/// functions how deep.
const MOST_CALLED: usize = 300;
const DEEPEST: usize = 3;
/// The longest instruction in bytes.
const LONGEST: usize = 15;

/// The registers that a function leaves as it found them, by their numbers in DWARF.
const KEPT: [(Register, UnwindRegister); 6] = [
    (Register::RBX, UnwindRegister(3)),
    (Register::RBP, UnwindRegister(6)),
    (Register::R12, UnwindRegister(12)),
    (Register::R13, UnwindRegister(13)),
    (Register::R14, UnwindRegister(14)),
    (Register::R15, UnwindRegister(15)),
];
/// The index of the frame pointer among these.
const FRAME_POINTER: usize = 1;

/// How a function is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// Where the return address lies.
    pub(crate) returns_by: StackPlace,
    kept: [Kept; KEPT.len()],
}

impl Leaving {
    /// Returns where the return address lies.
    pub(crate) fn returns_by(&self) -> StackPlace {
        self.returns_by
    }

    /// Returns what becomes of each register that functions leave as they found it.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (UnwindRegister, Kept)> + '_ {
        KEPT.iter().zip(self.kept).map(|(&(_, register), kept)| (register, kept))
    }

    /// Reads the code from `pc` on.
    pub(crate) fn of(memory: &dyn ReadableMemory, pc: u64) -> Option<Leaving> {
        let start = StackPlace { base: StackBase::StackPointer, offset: 0 };
        let begin = Leaving { returns_by: start, kept: [Kept::Same; KEPT.len()] };
        let mut states: HashMap<u64, Leaving> = HashMap::from([(pc, begin)]);
        let (mut open, mut left, mut info) = (vec![pc], None, InstructionInfoFactory::new());
        for _ in 0..MOST {
            let Some(at) = open.pop() else { return left };
            let mut state = states.get(&at)?.clone();
            let instruction = decode(memory, at)?;
            state.take(&instruction, &mut info)?;
            let next = instruction.next_ip();
            let targets = match instruction.flow_control() {
                _ if ends(memory, &instruction, DEEPEST) => [None, None],
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                    [Some(next), None]
                }
                FlowControl::ConditionalBranch => {
                    [Some(next), Some(instruction.near_branch_target())]
                }
                FlowControl::UnconditionalBranch => [Some(instruction.near_branch_target()), None],
                FlowControl::Return => {
                    left = Some(match left {
                        None => state.clone(),
                        Some(other) => state.merged(&other)?,
                    });
                    [None, None]
                }
                FlowControl::IndirectBranch
                | FlowControl::Interrupt
                | FlowControl::Exception
                | FlowControl::XbeginXabortXend => return None,
            };
            for target in targets.into_iter().flatten() {
                match states.entry(target) {
                    Entry::Vacant(free) => {
                        free.insert(state.clone());
                        open.push(target);
                    }
                    Entry::Occupied(mut known) => {
                        let merged = state.merged(known.get())?;
                        if merged != *known.get() {
                            known.insert(merged);
                            open.push(target);
                        }
                    }
                }
            }
        }
        None
    }

    /// Returns what is known where two ways meet; `None` if they disagree on the stack pointer.
    fn merged(&self, other: &Leaving) -> Option<Leaving> {
        let kept = std::array::from_fn(|index| match self.kept[index] == other.kept[index] {
            true => self.kept[index],
            false => Kept::Lost,
        });
        (self.returns_by == other.returns_by)
            .then_some(Leaving { returns_by: self.returns_by, kept })
    }

    /// Takes in what an instruction does to the stack pointer and to the registers.
    fn take(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<()> {
        let top = self.returns_by;
        let frame = StackPlace { base: StackBase::FramePointer, offset: 0 };
        let has_frame = self.kept[FRAME_POINTER] == Kept::Same;
        let immediate = || match instruction.op_kind(1) {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
                Some(instruction.immediate(1) as i64)
            }
            _ => None,
        };
        let to_stack_pointer = instruction.op0_register() == Register::RSP;
        let mut popped = None;
        self.returns_by = match instruction.mnemonic() {
            // The return itself leaves the address where it is looked for; a call puts one there and
            // takes it away.
            Mnemonic::Ret | Mnemonic::Call | Mnemonic::Syscall => top,
            Mnemonic::Push => top.moved(-8),
            Mnemonic::Pop if instruction.code() == Code::Pop_r64 && !to_stack_pointer => {
                popped = Some(instruction.op0_register());
                top.moved(8)
            }
            Mnemonic::Add if to_stack_pointer => top.moved(immediate()?),
            Mnemonic::Sub if to_stack_pointer => top.moved(immediate()?.checked_neg()?),
            Mnemonic::Lea if to_stack_pointer => {
                let by = instruction.memory_displacement64() as i64;
                if instruction.memory_index() != Register::None {
                    return None;
                }
                match instruction.memory_base() {
                    Register::RSP => top.moved(by),
                    Register::RBP if has_frame => frame.moved(by),
                    _ => return None,
                }
            }
            Mnemonic::Mov if to_stack_pointer => {
                (instruction.op1_register() == Register::RBP && has_frame).then_some(frame)?
            }
            Mnemonic::Leave if has_frame => {
                self.kept[FRAME_POINTER] = Kept::At(frame);
                self.returns_by = frame.moved(8);
                return Some(());
            }
            _ => {
                let used = info.info(instruction).used_registers();
                let mut writes = used.iter().filter(|used| is_write(used.access()));
                if writes.any(|used| used.register().full_register() == Register::RSP) {
                    return None;
                }
                top
            }
        };
        let used = info.info(instruction).used_registers();
        for used in used.iter().filter(|used| is_write(used.access())) {
            let full = used.register().full_register();
            let Some(index) = KEPT.iter().position(|&(kept, _)| kept == full) else { continue };
            // What was pushed on the way lies below where the stack pointer was.
            let below = top.base == StackBase::StackPointer && top.offset < 0;
            self.kept[index] = match popped == Some(full) && !below {
                true => Kept::At(top),
                false => Kept::Lost,
            };
        }
        Some(())
    }
}

/// Tells whether the code at `function` leads to `pc` without leaving by a return; `None` where that
/// cannot be told.
pub(crate) fn reaches(memory: &dyn ReadableMemory, function: u64, pc: u64) -> Option<bool> {
    let (mut open, mut seen) = (vec![function], HashSet::from([function]));
    let mut is_whole = true;
    for _ in 0..MOST {
        let Some(at) = open.pop() else { return is_whole.then_some(false) };
        if at == pc {
            return Some(true);
        }
        let instruction = decode(memory, at)?;
        let targets = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                [Some(instruction.next_ip()), None]
            }
            FlowControl::ConditionalBranch => {
                [Some(instruction.next_ip()), Some(instruction.near_branch_target())]
            }
            FlowControl::UnconditionalBranch => [Some(instruction.near_branch_target()), None],
            FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => [None, None],
            FlowControl::IndirectBranch | FlowControl::XbeginXabortXend => {
                is_whole = false;
                [None, None]
            }
        };
        open.extend(targets.into_iter().flatten().filter(|&target| seen.insert(target)));
    }
    None
}

/// Tells whether nothing is done behind this instruction: it stops the program, or calls what does.
fn ends(memory: &dyn ReadableMemory, instruction: &Instruction, deepest: usize) -> bool {
    match instruction.flow_control() {
        FlowControl::Interrupt | FlowControl::Exception => true,
        FlowControl::Call if instruction.mnemonic() == Mnemonic::Call => {
            deepest > 0 && !returns(memory, instruction.near_branch_target(), deepest - 1)
        }
        _ => instruction.mnemonic() == Mnemonic::Hlt,
    }
}

/// Tells whether a function may return, as far as can be told.
fn returns(memory: &dyn ReadableMemory, function: u64, deepest: usize) -> bool {
    let (mut open, mut seen) = (vec![function], HashSet::from([function]));
    for _ in 0..MOST_CALLED {
        let Some(at) = open.pop() else { return false };
        let Some(instruction) = decode(memory, at) else { return true };
        let targets = match instruction.flow_control() {
            _ if ends(memory, &instruction, deepest) => continue,
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                [Some(instruction.next_ip()), None]
            }
            FlowControl::ConditionalBranch => {
                [Some(instruction.next_ip()), Some(instruction.near_branch_target())]
            }
            FlowControl::UnconditionalBranch => [Some(instruction.near_branch_target()), None],
            _ => return true,
        };
        open.extend(targets.into_iter().flatten().filter(|&target| seen.insert(target)));
    }
    true
}

fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn decode(memory: &dyn ReadableMemory, at: u64) -> Option<Instruction> {
    let mut bytes = [0; LONGEST];
    let length = memory.read(at, &mut bytes).ok()?;
    let mut decoder = Decoder::with_ip(64, &bytes[..length], at, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    const CODE: u64 = 0x40_0000;

    fn left(code: &[u8]) -> Option<Leaving> {
        let mut bytes = code.to_vec();
        bytes.extend([0xcc; 32]);
        Leaving::of(&SavedMemory::new(CODE, bytes), CODE)
    }

    fn sp(offset: i64) -> StackPlace {
        StackPlace { base: StackBase::StackPointer, offset }
    }

    fn bp(offset: i64) -> StackPlace {
        StackPlace { base: StackBase::FramePointer, offset }
    }

    fn kept(leaving: &Leaving, wanted: u16) -> Kept {
        leaving.kept().find(|(register, _)| register.0 == wanted).unwrap().1
    }

    #[test]
    fn what_a_function_does_until_it_returns_says_where_its_caller_is() {
        // As musl's `syscall` behind the system call.
        let code = [0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x50, 0x5d, 0xc3];
        let found = left(&code).unwrap();
        assert_eq!(found.returns_by, sp(0x58));
        assert_eq!(kept(&found, 6), Kept::At(sp(0x50)));
        assert_eq!(kept(&found, 3), Kept::Same);
        // `mov $1,%ebx; leave; ret`
        let found = left(&[0xbb, 1, 0, 0, 0, 0xc9, 0xc3]).unwrap();
        assert_eq!((found.returns_by, kept(&found, 6)), (bp(8), Kept::At(bp(0))));
        assert_eq!(kept(&found, 3), Kept::Lost);
        // `lea -0x18(%rbp),%rsp; pop %rbx; pop %r12; pop %r13; pop %rbp; ret`
        let code = [0x48, 0x8d, 0x65, 0xe8, 0x5b, 0x41, 0x5c, 0x41, 0x5d, 0x5d, 0xc3];
        let found = left(&code).unwrap();
        assert_eq!((found.returns_by, kept(&found, 12)), (bp(8), Kept::At(bp(-0x10))));
    }

    #[test]
    fn all_ways_have_to_agree() {
        // `je` over `pop %rbx; ret` to `pop %rbx; ret`
        let found = left(&[0x74, 0x02, 0x5b, 0xc3, 0x5b, 0xc3]).unwrap();
        assert_eq!((found.returns_by, kept(&found, 3)), (sp(8), Kept::At(sp(0))));
        // The same, where one way takes another register.
        let found = left(&[0x74, 0x02, 0x5b, 0xc3, 0x5d, 0xc3]).unwrap();
        assert_eq!((kept(&found, 3), kept(&found, 6)), (Kept::Lost, Kept::Lost));
        // One way leaves the stack pointer where it is.
        assert_eq!(left(&[0x74, 0x02, 0x5b, 0xc3, 0xc3]), None);
        // `push $1; pop %rbx; ret`: what was pushed is no caller's register.
        let found = left(&[0x6a, 1, 0x5b, 0xc3]).unwrap();
        assert_eq!((found.returns_by, kept(&found, 3)), (sp(0), Kept::Lost));
    }

    #[test]
    fn what_never_returns_is_no_way() {
        // `je` over `pop %rbx; ret` to a call of `hlt`, behind which another function begins.
        let found = left(&[0x74, 0x02, 0x5b, 0xc3, 0xe8, 1, 0, 0, 0, 0xc3, 0xf4]).unwrap();
        assert_eq!(found.returns_by, sp(8));
        // It calls a function that returns.
        assert_eq!(left(&[0x74, 0x02, 0x5b, 0xc3, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3]), None);
        // It jumps to itself, and never returns.
        let found = left(&[0x74, 0x02, 0x5b, 0xc3, 0xe8, 1, 0, 0, 0, 0xc3, 0xeb, 0xfe]).unwrap();
        assert_eq!(found.returns_by, sp(8));
    }

    #[test]
    fn a_function_reaches_what_lies_on_its_ways() {
        // `call +0; jne +1; ret; jmp +1; ret; nop; ret`
        let code = [0xe8, 0, 0, 0, 0, 0x75, 1, 0xc3, 0xeb, 1, 0xc3, 0x90, 0xc3];
        let memory = SavedMemory::new(CODE, [&code[..], &[0xcc; 32]].concat());
        let found: Vec<u64> =
            (0..13).filter(|at| reaches(&memory, CODE, CODE + at) == Some(true)).collect();
        assert_eq!(found, [0, 5, 7, 8, 11, 12]);
        assert_eq!(reaches(&memory, CODE, CODE + 10), Some(false));
        let memory = SavedMemory::new(CODE, vec![0xff, 0xe0, 0xcc]);
        assert_eq!(reaches(&memory, CODE, CODE + 2), None, "a jump to where a register says");
    }

    #[test]
    fn what_cannot_be_followed_is_not_known() {
        for code in [
            &[0xff, 0xe0][..],               // jmp *%rax
            &[0x48, 0x89, 0xc4, 0xc3],       // mov %rax,%rsp; ret
            &[0x48, 0x83, 0xe4, 0xf0, 0xc3], // and $-16,%rsp; ret
            &[0xbd, 0, 0, 0, 0, 0xc9, 0xc3], // mov $0,%ebp; leave; ret
            &[0xeb, 0xfe],                   // a loop
            &[0x0f, 0x0b],                   // ud2
        ] {
            assert_eq!(left(code), None, "{code:x?}");
        }
    }
}
