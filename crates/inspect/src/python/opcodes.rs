//! What the numbers of instructions mean in each version.
//!
//! # Source
//! The files in `opcodes`, which `opcodes.py` lets an interpreter of each version print of itself.
//! Numbers that are not in them (those of debuggers and profilers, and of compiled code) are not known: code
//! that has them is not read.

use super::layout::Minor;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What an instruction does, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// The argument of the next instruction is longer.
    Extended,
    LoadFast,
    /// Two variables at once.
    LoadFastTwice,
    StoreFast,
    StoreFastLoadFast,
    StoreFastTwice,
    LoadDeref,
    StoreDeref,
    LoadGlobal,
    LoadName,
    /// A global variable, or one of a module or class.
    StoreName,
    LoadAttribute,
    /// An attribute that is called next: to 3.11.
    LoadMethod,
    StoreAttribute,
    LoadConstant,
    /// Names of arguments, or what comes between a method and its call.
    PrepareCall,
    Call,
    Copy,
    LoadSpecial,
    EnterWith,
    ExceptionMatches,
    WithExit,
    PopTop,
    /// The same value as a truth, or no change at all.
    Same,
    /// A jump in any case.
    Jump,
    /// Pops a value and jumps if it is true, or if it is false.
    JumpIf(bool),
    /// Pops a value and jumps if it is `None`, or if it is not.
    JumpIfNone(bool),
    /// Jumps if the exception is not of the class.
    JumpUnlessMatch,
    /// Another jump on some condition.
    JumpPerhaps,
    /// Goes on through an iterator, which stays on the stack until it ends with a jump.
    ForIter,
    /// Sends a value to another generator, until that ends with a jump.
    Send,
    /// The same until 3.10: the generator ends the instruction.
    YieldFrom,
    /// Begins a block with a handler: to 3.10.
    Setup,
    /// Ends the function with a value.
    Return,
    Raise,
    Reraise,
    Other,
}

/// How an instruction changes the depth of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    base: i32,
    factor: i32,
    form: u8,
}

impl Effect {
    fn parse(text: &str) -> Option<Effect> {
        let Some(form) = text.bytes().last().filter(u8::is_ascii_alphabetic) else {
            return Some(Effect { base: text.parse().ok()?, factor: 0, form: b'n' });
        };
        let text = &text[..text.len() - 1];
        let sign = text.rfind(['+', '-'])?;
        let (base, factor) = (text[..sign].parse().ok()?, text[sign..].parse().ok()?);
        Some(Effect { base, factor, form })
    }

    /// Returns the change by an instruction with this argument.
    pub(super) fn of(self, argument: u32) -> i32 {
        let added = match self.form {
            b'b' => argument & 1,
            b'p' => (argument & 15).count_ones(),
            b'f' => argument >> 2 & 1,
            b's' => u32::from(argument == 3),
            _ => argument.min(0xffff),
        };
        self.base + self.factor * added.cast_signed()
    }
}

/// One kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) op: Op,
    /// The target of its jump is stated from the start of the code: to 3.10.
    pub(super) absolute: bool,
    /// Its jump leads backward: from 3.11 on.
    pub(super) backward: bool,
    /// The units behind it that are a cache of the interpreter's.
    pub(super) caches: u32,
    pub(super) on: Effect,
    pub(super) jump: Effect,
}

/// The kinds of instructions of one version, by their numbers.
pub(super) type Opcodes = [Option<Known>; 256];

static ALL: LazyLock<HashMap<Minor, Opcodes>> = LazyLock::new(|| {
    let texts = [
        include_str!("opcodes/3.9.txt"),
        include_str!("opcodes/3.10.txt"),
        include_str!("opcodes/3.11.txt"),
        include_str!("opcodes/3.12.txt"),
        include_str!("opcodes/3.13.txt"),
        include_str!("opcodes/3.14.txt"),
    ];
    texts.into_iter().filter_map(parse).flatten().collect()
});

/// Returns the instructions of a version.
pub(super) fn of(version: Minor) -> Option<&'static Opcodes> {
    ALL.get(&version)
}

fn parse(text: &str) -> Option<HashMap<Minor, Opcodes>> {
    let mut all = HashMap::new();
    let mut version = (0, 0);
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("# ") {
            let (major, minor) = named.split_once('.')?;
            version = (major.parse().ok()?, minor.parse().ok()?);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, number, caches, on, jump, others] = words[..] else { return None };
        let known = Known {
            op: op(name),
            absolute: version < (3, 11) && is_absolute(name),
            backward: name.contains("BACKWARD"),
            caches: caches.parse().ok()?,
            on: Effect::parse(on)?,
            jump: Effect::parse(jump)?,
        };
        let table = all.entry(version).or_insert([None; 256]);
        let others = others.split(',').filter(|&other| other != "-");
        for number in others.chain([number]) {
            table[usize::from(number.parse::<u8>().ok()?)] = Some(known);
        }
    }
    Some(all)
}

fn is_absolute(name: &str) -> bool {
    !matches!(
        name,
        "JUMP_FORWARD" | "FOR_ITER" | "SETUP_FINALLY" | "SETUP_WITH" | "SETUP_ASYNC_WITH"
    )
}

fn op(name: &str) -> Op {
    match name {
        "EXTENDED_ARG" => Op::Extended,
        "LOAD_FAST" | "LOAD_FAST_BORROW" | "LOAD_FAST_CHECK" => Op::LoadFast,
        "LOAD_FAST_LOAD_FAST" | "LOAD_FAST_BORROW_LOAD_FAST_BORROW" => Op::LoadFastTwice,
        "STORE_FAST" | "DELETE_FAST" | "LOAD_FAST_AND_CLEAR" => Op::StoreFast,
        "STORE_FAST_LOAD_FAST" => Op::StoreFastLoadFast,
        "STORE_FAST_STORE_FAST" => Op::StoreFastTwice,
        "LOAD_DEREF" => Op::LoadDeref,
        "STORE_DEREF" | "DELETE_DEREF" => Op::StoreDeref,
        "LOAD_GLOBAL" => Op::LoadGlobal,
        "LOAD_NAME" => Op::LoadName,
        "STORE_NAME" | "STORE_GLOBAL" | "DELETE_NAME" | "DELETE_GLOBAL" => Op::StoreName,
        "LOAD_ATTR" => Op::LoadAttribute,
        "LOAD_METHOD" => Op::LoadMethod,
        "STORE_ATTR" | "DELETE_ATTR" => Op::StoreAttribute,
        "LOAD_CONST" => Op::LoadConstant,
        "PRECALL" | "KW_NAMES" | "PUSH_NULL" => Op::PrepareCall,
        "CALL" | "CALL_KW" | "CALL_METHOD" | "CALL_FUNCTION" | "CALL_FUNCTION_KW"
        | "CALL_FUNCTION_EX" => Op::Call,
        "COPY" => Op::Copy,
        "LOAD_SPECIAL" => Op::LoadSpecial,
        "BEFORE_WITH" | "SETUP_WITH" => Op::EnterWith,
        "CHECK_EXC_MATCH" => Op::ExceptionMatches,
        "WITH_EXCEPT_START" => Op::WithExit,
        "POP_TOP" => Op::PopTop,
        "TO_BOOL" | "NOT_TAKEN" | "NOP" | "CACHE" | "RESUME" => Op::Same,
        "JUMP_FORWARD" | "JUMP_BACKWARD" | "JUMP_BACKWARD_NO_INTERRUPT" | "JUMP_ABSOLUTE" => {
            Op::Jump
        }
        "POP_JUMP_IF_TRUE" | "POP_JUMP_FORWARD_IF_TRUE" | "POP_JUMP_BACKWARD_IF_TRUE" => {
            Op::JumpIf(true)
        }
        "POP_JUMP_IF_FALSE" | "POP_JUMP_FORWARD_IF_FALSE" | "POP_JUMP_BACKWARD_IF_FALSE" => {
            Op::JumpIf(false)
        }
        "POP_JUMP_IF_NONE" | "POP_JUMP_FORWARD_IF_NONE" | "POP_JUMP_BACKWARD_IF_NONE" => {
            Op::JumpIfNone(true)
        }
        "POP_JUMP_IF_NOT_NONE"
        | "POP_JUMP_FORWARD_IF_NOT_NONE"
        | "POP_JUMP_BACKWARD_IF_NOT_NONE" => Op::JumpIfNone(false),
        "JUMP_IF_NOT_EXC_MATCH" => Op::JumpUnlessMatch,
        "JUMP_IF_FALSE_OR_POP" | "JUMP_IF_TRUE_OR_POP" => Op::JumpPerhaps,
        "FOR_ITER" => Op::ForIter,
        "SEND" => Op::Send,
        "YIELD_FROM" => Op::YieldFrom,
        "SETUP_FINALLY" | "SETUP_ASYNC_WITH" => Op::Setup,
        "RETURN_VALUE" | "RETURN_CONST" | "INTERPRETER_EXIT" => Op::Return,
        "RAISE_VARARGS" => Op::Raise,
        "RERAISE" => Op::Reraise,
        _ => Op::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_that_is_read_has_its_instructions() {
        for minor in super::super::layout::OLDEST.1..=super::super::layout::NEWEST.1 {
            let known = of((3, minor)).expect("in the table");
            let ops: Vec<Op> = known.iter().flatten().map(|known| known.op).collect();
            for op in [Op::LoadFast, Op::Call, Op::Return, Op::Reraise, Op::JumpIf(true)] {
                assert!(ops.contains(&op), "3.{minor} has no {op:?}");
            }
        }
        assert!(of((3, 8)).is_none());
    }

    #[test]
    fn effects_follow_their_arguments() {
        let of = |text: &str, argument| Effect::parse(text).expect("an effect").of(argument);
        assert_eq!([of("-1", 7), of("1-2n", 3), of("0+1b", 3), of("0-1p", 13)], [-1, -5, 1, -3]);
        assert_eq!([of("-1-1s", 3), of("-1-1s", 2), of("0-1f", 4)], [-2, -1, -1]);
    }
}
