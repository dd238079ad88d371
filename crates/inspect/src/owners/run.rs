//! Emulates code of another process, from a frame on, without the process noticing.
//!
//! ```text
//!   registers of a frame ─┐
//!   its landing pad ──────┼─▶ run: decode, execute ──▶ what others could see:
//!   memory, read only ────┘        │                   locks released and taken
//!                                  ▼
//!                       calls: followed in the program's code,
//!                       known by name, or skipped
//! ```
//!
//! # Progress
//! A run has a number of steps, a number of cells that it may write, and a number of calls that it
//! may be deep in; at any of these ends it ends.

use super::event::{Event, RunEnd};
use super::functions::KnownFunction;
use super::native::Native;
use super::overlay::{NOWHERE, ReadPages, is_nowhere};
use super::processor::{Destination, Processor, Step};
use super::state::State;
use super::value::Value;
use lockstead_unwind::arch::without_signature;
use std::cell::RefCell;
use std::collections::HashMap;

/// The exception that a landing pad is called with: it lies where no program has anything.
pub const EXCEPTION: u64 = NOWHERE;
/// Where what a run allocates begins; each allocation gets as much.
const ALLOCATED: u64 = NOWHERE + 0x1_0000_0000;
const ALLOCATION: u64 = 0x1_0000_0000;
/// Steps of one run: instructions, and what single ones of them move.
const MOST_STEPS: u64 = 20_000;
/// Calls that a run may be in at once.
const MOST_DEPTH: u32 = 200;
/// What others could see of one run, at most.
const MOST_EVENTS: usize = 4096;
/// Instructions that are kept decoded.
const MOST_DECODED: usize = 1 << 18;
/// The most that a known function may copy or fill.
const MOST_BYTES: u64 = 16 << 10;

/// What a C++20 wait has in the second word of its result when its time is over.
const TIMED_OUT: u64 = 2;

/// What a call leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// Code that is followed.
    Followed,
    /// A function that is known by its name.
    Known(KnownFunction),
    /// A function of which nothing is known but that it returns.
    Skipped,
    /// There is no code at all.
    Nothing,
}

/// What a call through a slot of the linker's leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// A function that is known by its name.
    Known(KnownFunction),
    /// The function at this address.
    At(u64),
    /// A function of which nothing is known but that it returns.
    Skipped,
}

/// What is known of the code of a process.
pub trait KnownCode {
    /// Returns what the address of a function leads to.
    fn callee(&self, address: u64) -> Callee;

    /// Returns what is imported through the pointer at this address, if that is one of the
    /// linker's.
    fn import(&self, slot: u64) -> Option<Imported>;
}

/// Code that was decoded, for the runs of one look.
pub struct DecodedCode<'p, P: Processor = Native> {
    pages: &'p ReadPages<'p>,
    known: RefCell<HashMap<u64, P::Instruction>>,
    steps: std::cell::Cell<u64>,
}

impl<'p, P: Processor> DecodedCode<'p, P> {
    /// Knows none yet. `steps`: the most that all runs may take together.
    #[must_use]
    pub fn new(pages: &'p ReadPages<'p>, steps: u64) -> Self {
        DecodedCode { pages, known: RefCell::default(), steps: steps.into() }
    }

    /// Returns the pages that the code is read from.
    #[must_use]
    pub fn pages(&self) -> &'p ReadPages<'p> {
        self.pages
    }

    /// Tells whether the runs have taken all their steps.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    /// Returns how many steps all runs together may still take.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.steps.get()
    }

    fn spend(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    fn at(&self, address: u64) -> Option<P::Instruction> {
        let mut known = self.known.borrow_mut();
        if let Some(instruction) = known.get(&address) {
            return Some(*instruction);
        }
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..P::LONGEST];
        let length = self.pages.bytes(address, bytes);
        let instruction = P::decode(&bytes[..length], address)?;
        if known.len() < MOST_DECODED {
            known.insert(address, instruction);
        }
        Some(instruction)
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What others could have seen, in order.
    pub events: Vec<Event>,
    /// Why there is no more.
    pub end: RunEnd,
    /// A known function was called with what is not known.
    pub vague: bool,
    /// How many frames it had left before each of these.
    pub left: Vec<usize>,
}

impl Ran {
    /// Returns a run that did nothing.
    #[must_use]
    pub fn nothing() -> Ran {
        Ran { events: Vec::new(), end: RunEnd::BadCode, vague: false, left: Vec::new() }
    }

    /// Tells whether more might be seen with more registers known.
    #[must_use]
    pub fn is_for_want_of_registers(&self) -> bool {
        self.vague || matches!(self.end, RunEnd::UnknownJump | RunEnd::UnknownStore)
    }
}

struct Runner<'r, 'p, P: Processor> {
    state: State<'p, P>,
    code: &'r dyn KnownCode,
    /// Calls that have not returned.
    depth: u32,
    /// The run may return from the frame that it began in.
    leaves: bool,
    allocated: u64,
    events: Vec<Event>,
    /// How many frames the run had left before each of the events, and has left.
    left: Vec<usize>,
    frames_left: usize,
    vague: bool,
}

/// Runs from a state on. `leaves`: the run goes on where the frame that it begins in returns.
#[must_use]
pub fn run<P: Processor>(
    state: State<'_, P>,
    code: &dyn KnownCode,
    decoded: &DecodedCode<'_, P>,
    leaves: bool,
) -> Ran {
    let mut runner = Runner {
        state,
        code,
        depth: 0,
        leaves,
        allocated: 0,
        events: Vec::new(),
        left: Vec::new(),
        frames_left: 0,
        vague: false,
    };
    let mut end = RunEnd::Bound;
    let mut left = MOST_STEPS.min(decoded.left());
    let before = left;
    while left != 0 && runner.events.len() < MOST_EVENTS {
        let Some(instruction) = decoded.at(runner.state.pc) else {
            end = RunEnd::BadCode;
            break;
        };
        let (moved, frames_left) = (runner.state.moved, runner.frames_left);
        let stepped = runner.step(&instruction);
        runner.left.resize(runner.events.len(), frames_left);
        if let Err(why) = stepped {
            end = why;
            break;
        }
        left = left.saturating_sub(1 + runner.state.moved - moved);
    }
    decoded.spend((before - left).max(1));
    Ran { events: runner.events, end, vague: runner.vague, left: runner.left }
}

impl<P: Processor> Runner<'_, '_, P> {
    fn step(&mut self, instruction: &P::Instruction) -> Result<(), RunEnd> {
        match P::step(&mut self.state, instruction, &mut self.events)? {
            Step::Done => Ok(()),
            Step::Jumps(target) => match self.code.callee(target) {
                Callee::Known(function) => self.known(function, true),
                _ => {
                    self.state.pc = target;
                    Ok(())
                }
            },
            Step::Calls(to) => self.transfer(to, false),
            Step::JumpsBy(to) => self.transfer(to, true),
            Step::Returns(to) => self.leave(to),
            Step::AsksKernel([number, word, operation]) => {
                self.system_call(number, word, operation)
            }
        }
    }

    /// Calls a function, or jumps to one that returns to the caller's caller.
    fn transfer(&mut self, to: Destination, tail: bool) -> Result<(), RunEnd> {
        // Whatever gets the exception decides what becomes of it. Where the exception is still in the register of
        // the first argument, it is not known whether the function is given it.
        let processor = &self.state.processor;
        let exception = (processor.arguments()[0].get(8) == Some(EXCEPTION))
            .then(|| if processor.has_argument() { RunEnd::Resumed } else { RunEnd::Stopped });
        let mut target = None;
        if let Some(imported) = to.slot.and_then(|slot| self.code.import(slot)) {
            match imported {
                Imported::Known(function) => return self.known(function, tail),
                Imported::Skipped => return exception.map_or_else(|| self.skip(tail), Err),
                Imported::At(address) => target = Some(address),
            }
        }
        let target = match target.or(to.address.get(8)) {
            Some(target) => target,
            // A call through a pointer that is not known returns, as any other.
            None if !tail => return self.skip(false),
            None => return Err(RunEnd::UnknownJump),
        };
        match self.code.callee(target) {
            Callee::Known(function) => self.known(function, tail),
            Callee::Skipped => exception.map_or_else(|| self.skip(tail), Err),
            Callee::Nothing => Err(RunEnd::BadCode),
            Callee::Followed => {
                if !tail {
                    self.depth += 1;
                    if self.depth > MOST_DEPTH {
                        return Err(RunEnd::Bound);
                    }
                    let next = self.state.pc;
                    P::enter(&mut self.state, next)?;
                }
                self.state.pc = target;
                Ok(())
            }
        }
    }

    fn leave(&mut self, to: Value) -> Result<(), RunEnd> {
        match self.depth.checked_sub(1) {
            Some(depth) => self.depth = depth,
            None if self.leaves => self.frames_left += 1,
            None => return Err(RunEnd::Stopped),
        }
        let to = to.get(8).ok_or(RunEnd::UnknownJump)?;
        let to = without_signature(to, |at| self.code.callee(at) != Callee::Nothing);
        if is_nowhere(to) || self.code.callee(to) == Callee::Nothing {
            return Err(RunEnd::BadCode);
        }
        // Behind a function that is not followed, nothing is known.
        if self.code.callee(to) == Callee::Skipped {
            return Err(RunEnd::Stopped);
        }
        self.state.pc = to;
        Ok(())
    }

    /// Goes on behind a function that is not followed.
    fn skip(&mut self, tail: bool) -> Result<(), RunEnd> {
        self.go_on([Value::UNKNOWN; 2], tail)
    }

    /// Goes on behind a function that has returned this.
    fn go_on(&mut self, results: [Value; 2], tail: bool) -> Result<(), RunEnd> {
        // Where it returns to may be in a register that it may change.
        let returns_to = if tail { Some(P::leave(&mut self.state)?) } else { None };
        self.state.processor.forget_scratch();
        self.state.processor.set_results(results);
        returns_to.map_or(Ok(()), |to| self.leave(to))
    }

    fn known(&mut self, function: KnownFunction, tail: bool) -> Result<(), RunEnd> {
        use KnownFunction as F;
        let [first, second, third] = self.state.processor.arguments();
        let (mut result, mut second_result) = (Value::UNKNOWN, Value::UNKNOWN);
        match function {
            F::Unlocks => {
                // It worked: nobody releases what he does not hold.
                result = Value::of(0);
                self.see(first, Event::Releases);
            }
            F::UnlocksShared => self.see(first, Event::ReleasesShared),
            F::Locks => self.see(first, Event::Acquires),
            F::Retakes => self.see(second, Event::Acquires),
            F::Resumes => return Err(RunEnd::Resumed),
            F::Ends => return Err(RunEnd::Stopped),
            F::Returns => {}
            F::Sleeps => return Err(RunEnd::Blocked),
            F::SleepsOn if self.only_spins(second) => {
                (result, second_result) = (Value::of(0), Value::of(TIMED_OUT));
            }
            F::SleepsOn => {
                self.events.extend(first.get(8).map(Event::Sleeps));
                return Err(RunEnd::Blocked);
            }
            F::Wakes => self.events.extend(first.get(8).map(Event::Wakes)),
            F::Allocates => {
                result = Value::of(ALLOCATED + self.allocated * ALLOCATION);
                self.allocated = (self.allocated + 1) % 0xf000;
            }
            F::Copies => {
                self.copy(first, second, third)?;
                result = first;
            }
            F::Fills => {
                self.fill(first, second, third)?;
                result = first;
            }
            F::Compares => result = self.compare(first, second, third)?,
            F::Calls => self.system_call(first, second, third)?,
        }
        self.go_on([result, second_result], tail)
    }

    /// Tells whether a C++20 wait is one that never sleeps, by the flags with which its arguments begin.
    fn only_spins(&mut self, arguments: Value) -> bool {
        const SPIN_ONLY: u64 = 8;
        let flags = arguments.get(8).and_then(|at| self.state.memory.read(at, 4).ok()?.get(4));
        flags.is_some_and(|flags| flags & SPIN_ONLY != 0)
    }

    fn see(&mut self, lock: Value, event: impl FnOnce(u64) -> Event) {
        match lock.get(8) {
            Some(lock) => self.events.push(event(lock)),
            None => self.vague = true,
        }
    }

    fn system_call(&mut self, number: Value, word: Value, operation: Value) -> Result<(), RunEnd> {
        /// The operations that wake, and those that do so and more; others sleep.
        const WAKES: [u64; 2] = [1, 10];
        const WAKES_AND_MORE: [u64; 2] = [3, 5];
        /// Private, and by the wall clock.
        const OPTIONS: u64 = 0x180;
        if number.get(4) == Some(P::FUTEX) {
            let operation = operation.get(4).map(|operation| operation & !OPTIONS);
            let is_of = |some: [u64; 2]| operation.is_some_and(|known| some.contains(&known));
            if is_of(WAKES) {
                self.events.extend(word.get(8).map(Event::Wakes));
            } else if !is_of(WAKES_AND_MORE) {
                self.events.extend(word.get(8).map(Event::Sleeps));
                return Err(RunEnd::Blocked);
            }
        }
        match number.get(4) {
            Some(number) if P::ENDING.contains(&number) => Err(RunEnd::Stopped),
            _ => Ok(()),
        }
    }

    fn copy(&mut self, to: Value, from: Value, length: Value) -> Result<(), RunEnd> {
        let (Some(to), Some(length)) = (to.get(8), length.get(8)) else {
            return Err(RunEnd::UnknownStore);
        };
        if length > MOST_BYTES {
            return Err(RunEnd::Bound);
        }
        let value = |at: u64| match from.get(8) {
            Some(from) => self.state.memory.read(from.wrapping_add(at), 1),
            None => Ok(Value::UNKNOWN),
        };
        self.state.moved += length;
        let bytes: Result<Vec<Value>, _> = (0..length).map(value).collect();
        for (at, byte) in (0..).zip(bytes.map_err(|_| RunEnd::NoMemory)?) {
            let place = to.wrapping_add(at);
            self.state.memory.write(place, byte, 1).map_err(|_| RunEnd::NoMemory)?;
        }
        Ok(())
    }

    /// Returns the order of two places in memory, as far as it is known.
    fn compare(&mut self, one: Value, other: Value, length: Value) -> Result<Value, RunEnd> {
        let Some(length) = length.get(8) else { return Ok(Value::UNKNOWN) };
        let (Some(one), Some(other)) = (one.get(8), other.get(8)) else {
            return Ok(if length == 0 { Value::of(0) } else { Value::UNKNOWN });
        };
        if length > MOST_BYTES {
            return Err(RunEnd::Bound);
        }
        self.state.moved += length;
        for at in 0..length {
            let [one, other] = [one, other].map(|place| {
                let byte = self.state.memory.read(place.wrapping_add(at), 1);
                byte.map(|byte| byte.get(1)).map_err(|_| RunEnd::NoMemory)
            });
            match (one?, other?) {
                (Some(one), Some(other)) if one == other => {}
                (Some(one), Some(other)) if one > other => return Ok(Value::of(1)),
                (Some(_), Some(_)) => return Ok(Value::of(u64::MAX)),
                _ => return Ok(Value::UNKNOWN),
            }
        }
        Ok(Value::of(0))
    }

    fn fill(&mut self, to: Value, byte: Value, length: Value) -> Result<(), RunEnd> {
        let (Some(to), Some(length)) = (to.get(8), length.get(8)) else {
            return Err(RunEnd::UnknownStore);
        };
        if length > MOST_BYTES {
            return Err(RunEnd::Bound);
        }
        self.state.moved += length;
        for at in 0..length {
            let place = to.wrapping_add(at);
            self.state.memory.write(place, byte, 1).map_err(|_| RunEnd::NoMemory)?;
        }
        Ok(())
    }
}
