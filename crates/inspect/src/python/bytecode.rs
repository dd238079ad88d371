//! The instructions of a function: where they jump, who handles their exceptions, and how deep the
//! stack is.
//!
//! # Role
//! Pure functions over bytes that anybody may have written. Code with an instruction that is not
//! known is not read at all.

use super::layout::Minor;
use super::opcodes::{self, Op};
use std::ops::Range;

/// The most instructions of a function that are read.
const MOST: usize = 64 * 1024;

/// One instruction of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// The bytes that it takes, with those that lengthen its argument and its cache.
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) op: Op,
    pub(super) argument: u32,
    /// The index of the instruction that it may jump to.
    pub(super) target: Option<usize>,
    /// The change of the stack's depth when it goes on, and when it jumps.
    on: i32,
    jump: i32,
}

/// A range of instructions with one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Covered {
    bytes: Range<u32>,
    handler: usize,
    /// The depth of the stack as the handler begins, from 3.11 on.
    depth: Option<i32>,
}

/// The instructions of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytecode {
    pub(super) instructions: Vec<Instruction>,
    covered: Vec<Covered>,
    depths: Vec<Option<i32>>,
    /// Whether something jumps to an instruction.
    is_target: Vec<bool>,
}

/// An entry of the table of exceptions: numbers in units of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableEntry {
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) handler: u32,
    /// Values that stay on the stack.
    pub(super) depth: u32,
    /// The instruction is pushed in front of the exception.
    pub(super) pushes_last: bool,
}

/// Reads the table of exceptions: numbers of six bits a byte, the highest first, bit 6 where more
/// follow; the first byte of an entry has its high bit set. An entry has the start, the length, the
/// handler, and the depth with a flag in its lowest bit.
pub(super) fn entries(table: &[u8]) -> impl Iterator<Item = TableEntry> {
    let mut bytes = table.iter();
    std::iter::from_fn(move || {
        let mut number = || {
            let mut number = 0_u32;
            loop {
                let byte = *bytes.next()?;
                number = number.wrapping_shl(6) | u32::from(byte & 63);
                if byte & 64 == 0 {
                    return Some(number);
                }
            }
        };
        let (start, length, handler, depth) = (number()?, number()?, number()?, number()?);
        Some(TableEntry { start, length, handler, depth: depth >> 1, pushes_last: depth & 1 == 1 })
    })
}

impl Bytecode {
    /// Reads the instructions of a function of some version; `None` if one is not known.
    pub(super) fn read(version: Minor, code: &[u8], exceptions: &[u8]) -> Option<Bytecode> {
        let mut found = Bytecode { instructions: decoded(version, code)?, ..Bytecode::default() };
        found.is_target = vec![false; found.instructions.len()];
        for at in 0..found.instructions.len() {
            if let Some(target) = found.instructions[at].target {
                found.is_target[target] = true;
            }
        }
        found.covered = if version < (3, 11) {
            let instructions = found.instructions.iter();
            let blocks = instructions.filter(|it| matches!(it.op, Op::Setup | Op::EnterWith));
            let covered = blocks.filter_map(|it| {
                let handler = it.target?;
                let bytes = it.end..found.instructions[handler].start;
                Some(Covered { bytes, handler, depth: None })
            });
            covered.collect()
        } else {
            let covered = entries(exceptions).filter_map(|entry| {
                let start = entry.start.checked_mul(2)?;
                let end = entry.length.checked_mul(2)?.checked_add(start)?;
                let depth = entry.depth.cast_signed() + i32::from(entry.pushes_last) + 1;
                let handler = found.index(entry.handler.checked_mul(2)?)?;
                Some(Covered { bytes: start..end, handler, depth: Some(depth) })
            });
            covered.take(MOST).collect()
        };
        found.depths = found.depths();
        Some(found)
    }

    /// Returns the index of the instruction that takes a byte.
    pub(super) fn index(&self, byte: u32) -> Option<usize> {
        let behind = self.instructions.partition_point(|it| it.end <= byte);
        self.instructions.get(behind).filter(|it| it.start <= byte).map(|_| behind)
    }

    /// Tells whether something may jump to an instruction.
    pub(super) fn is_target(&self, at: usize) -> bool {
        self.is_target.get(at) == Some(&true)
            || self.covered.iter().any(|covered| covered.handler == at)
    }

    /// Returns the handler of the exceptions of an instruction, by the table: from 3.11 on.
    pub(super) fn handler(&self, at: usize) -> Option<usize> {
        let start = self.instructions.get(at)?.end.checked_sub(1)?;
        let covered = self.covered.iter().find(|covered| covered.bytes.contains(&start));
        covered.filter(|covered| covered.depth.is_some()).map(|covered| covered.handler)
    }

    /// Returns the handlers that begin after some exception of an instruction.
    pub(super) fn handlers(&self, at: usize) -> impl Iterator<Item = usize> {
        let byte = self.instructions.get(at).map_or(u32::MAX, |it| it.start);
        let covered = self.covered.iter().filter(move |covered| covered.bytes.contains(&byte));
        covered.map(|covered| covered.handler)
    }

    /// Returns the instructions that may come next, other than handlers.
    pub(super) fn next(&self, at: usize) -> [Option<usize>; 2] {
        let Some(it) = self.instructions.get(at) else { return [None, None] };
        let goes_on = !matches!(it.op, Op::Jump | Op::Return | Op::Raise | Op::Reraise);
        let next = (goes_on && at + 1 < self.instructions.len()).then_some(at + 1);
        // What begins a block leads to its handler by an exception alone.
        [next, it.target.filter(|_| !matches!(it.op, Op::Setup | Op::EnterWith))]
    }

    /// Returns where on the stack the iterators lie of the loops that an instruction is in, and the
    /// generators that it waits for, the outermost first.
    pub(super) fn iterated(&self, at: usize) -> Vec<u32> {
        let slot = |(loops, it): (usize, &Instruction)| {
            let (below, is_inside) = match it.op {
                Op::ForIter => (1, it.target.is_some_and(|end| loops < at && at < end)),
                Op::Send => (2, it.target.is_some_and(|end| loops < at && at < end)),
                // A frame that waits there stands in front of it.
                Op::YieldFrom => (2, loops == at || loops == at + 1),
                _ => return None,
            };
            let depth = is_inside.then(|| self.depths.get(loops).copied().flatten())??;
            u32::try_from(depth - below).ok()
        };
        self.instructions.iter().enumerate().filter_map(slot).collect()
    }

    fn depths(&self) -> Vec<Option<i32>> {
        let mut depths = vec![None; self.instructions.len()];
        let mut open = vec![(0, 0)];
        open.extend(self.covered.iter().filter_map(|it| Some((it.handler, it.depth?))));
        while let Some((at, depth)) = open.pop() {
            let (Some(it), Some(known)) = (self.instructions.get(at), depths.get_mut(at)) else {
                continue;
            };
            if known.is_some() {
                continue;
            }
            *known = Some(depth);
            let [next, _] = self.next(at);
            open.extend(it.target.map(|target| (target, depth.saturating_add(it.jump))));
            open.extend(next.map(|next| (next, depth.saturating_add(it.on))));
        }
        depths
    }
}

fn decoded(version: Minor, code: &[u8]) -> Option<Vec<Instruction>> {
    let known = opcodes::of(version)?;
    let mut all: Vec<Instruction> = Vec::new();
    let mut targets: Vec<Option<u32>> = Vec::new();
    let (mut start, mut longer, mut at) = (0_u32, 0_u32, 0_u32);
    while let Some(&[number, argument]) = code.get(at as usize..at as usize + 2) {
        let kind = known[usize::from(number)]?;
        let argument = longer << 8 | u32::from(argument);
        let end = at + 2 + 2 * kind.caches;
        if kind.op == Op::Extended {
            (longer, at) = (argument, end);
            continue;
        }
        let step = if version < (3, 10) { argument } else { argument.checked_mul(2)? };
        let target = match (kind.absolute, kind.backward) {
            _ if !may_jump(version, kind.op) => None,
            (true, _) => Some(step),
            (false, true) => Some(end.checked_sub(step)?),
            (false, false) => Some(end.checked_add(step)?),
        };
        let (on, jump) = (kind.on.of(argument), kind.jump.of(argument));
        let one =
            |op, argument, on| Instruction { start, end, op, argument, target: None, on, jump };
        let (first, second) = (argument >> 4, argument & 15);
        let parts = match kind.op {
            Op::LoadFastTwice => [one(Op::LoadFast, first, 1), one(Op::LoadFast, second, 1)],
            Op::StoreFastLoadFast => [one(Op::StoreFast, first, -1), one(Op::LoadFast, second, 1)],
            Op::StoreFastTwice => [one(Op::StoreFast, first, -1), one(Op::StoreFast, second, -1)],
            op => {
                all.push(one(op, argument, on));
                targets.push(target);
                (start, longer, at) = (end, 0, end);
                continue;
            }
        };
        all.extend(parts);
        targets.extend([None, None]);
        (start, longer, at) = (end, 0, end);
        if all.len() > MOST {
            return None;
        }
    }
    let starts: Vec<u32> = all.iter().map(|it| it.start).collect();
    for (it, target) in all.iter_mut().zip(targets) {
        it.target = match target {
            // The first of two with one start.
            Some(target) => Some(starts.partition_point(|&start| start < target))
                .filter(|&at| starts.get(at) == Some(&target)),
            None => None,
        };
    }
    Some(all)
}

fn may_jump(version: Minor, op: Op) -> bool {
    match op {
        Op::Jump
        | Op::JumpIf(_)
        | Op::JumpIfNone(_)
        | Op::JumpUnlessMatch
        | Op::JumpPerhaps
        | Op::ForIter
        | Op::Send
        | Op::Setup => true,
        Op::EnterWith => version < (3, 11),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_exceptions_is_read_to_its_end() {
        // From 4 on for 70 units to depth 2, from 80 on for 3 units to depth 5.
        let table = [0x84, 0x41, 6, 50, 4, 0xc1, 16, 3, 0x41, 26, 11];
        let found: Vec<TableEntry> = entries(&table).collect();
        let entry = |start, length, handler, depth, pushes_last| TableEntry {
            start,
            length,
            handler,
            depth,
            pushes_last,
        };
        assert_eq!(found, [entry(4, 70, 50, 2, false), entry(80, 3, 90, 5, true)]);
        assert_eq!(entries(&[0xff; 100]).count(), 0);
    }

    /// `mine.acquire()`, and `other.acquire()` in `try` with `mine.release()` in `finally`.
    fn acquired() -> Vec<u8> {
        let call = |local: u8, name: u8| {
            let mut bytes = vec![124, local, 106, name << 1 | 1];
            bytes.extend([0; 18]);
            bytes.extend([171, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
            bytes
        };
        let mut code = vec![151, 0];
        code.extend(call(0, 0));
        code.extend(call(1, 0));
        code.extend([121, 0, 35, 0]);
        code.extend(call(0, 1));
        code.extend([119, 0]);
        code
    }

    #[test]
    fn instructions_have_their_handlers_and_depths() {
        let code = acquired();
        let handler = (code.len() - 2 - 32 - 2) / 2;
        let table = [0x80 | 17, 16, handler as u8, 0];
        let found = Bytecode::read((3, 12), &code, &table).expect("known instructions");
        let at = found.index(34).expect("the second load");
        assert_eq!((found.instructions[at].op, found.instructions[at].argument), (Op::LoadFast, 1));
        let into = found.handler(at).expect("in try");
        assert_eq!(found.instructions[into].end as usize, 2 * handler + 2);
        assert_eq!(found.handler(found.index(2).expect("the first load")), None);
        assert!(found.is_target(into) && !found.is_target(at));
        let call = found.index(34 + 22 + 3).expect("its cache");
        assert_eq!((found.instructions[call].op, found.depths[call]), (Op::Call, Some(2)));
        assert!(Bytecode::read((3, 12), &[255, 0], &[]).is_none(), "a number that nothing has");
    }

    #[test]
    fn damaged_code_is_read_to_an_end() {
        for version in [(3, 9), (3, 10), (3, 11), (3, 12), (3, 13), (3, 14)] {
            for number in 0..=255_u8 {
                let code: Vec<u8> =
                    (0..64_u8).flat_map(|at| [number, at.wrapping_mul(37)]).collect();
                if let Some(found) = Bytecode::read(version, &code, &[0xff; 40]) {
                    for at in 0..found.instructions.len() {
                        let _ = (found.iterated(at), found.next(at), found.handler(at));
                    }
                }
            }
        }
    }
}
