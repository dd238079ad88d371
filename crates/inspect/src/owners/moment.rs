//! A thread at one moment, as far as the search for holders asks.

use super::lsda::Landing;
use super::shape::AwaitedLock;
use crate::futexes::FutexUse;
use crate::stack::{CodeAddress, Stack};
use crate::unwind::Registers;
use crate::waits::modes::WaitMode;

/// One frame of a thread.
#[derive(Clone, Debug)]
pub struct FrameMoment {
    /// The place in its code.
    pub at: CodeAddress,
    /// What is known of its registers.
    pub registers: Registers,
    /// What an exception from there would do; `None` where no table tells.
    pub landing: Option<Landing>,
    /// Whether it is a function of the system's libraries, or lockstead's own.
    pub of_system: bool,
    /// Whether it, or one further in, was looked for on the stack.
    pub guessed: bool,
}

/// What a thread that sleeps on a futex word waits for.
#[derive(Clone, Debug)]
pub struct WaitMoment {
    /// The address of the word.
    pub word: u64,
    /// What the functions on its stack say.
    pub known: Option<&'static FutexUse>,
    /// The locks that it may wait for.
    pub locks: Vec<AwaitedLock>,
    /// How it wants each of those of which that is known.
    pub modes: Vec<(AwaitedLock, WaitMode)>,
    /// Whether it is known to wait for something else than a condition.
    pub is_plain: bool,
    /// Whether the functions that it sleeps in are not followed, and may take a lock back: abseil's,
    /// where none of its locks is found that the thread waits for.
    pub may_retake: bool,
    /// Frames from the innermost on that have names, of which none is a condition's.
    pub plainly_named: usize,
}

/// A thread at one moment.
#[derive(Clone, Debug)]
pub struct ThreadMoment {
    /// The number of the thread.
    pub tid: u32,
    /// Its frames, the innermost first.
    pub frames: Vec<FrameMoment>,
    /// What it waits for, if it sleeps on a futex word.
    pub wait: Option<WaitMoment>,
    /// The start of its own variables, if it is known.
    pub thread_pointer: Option<u64>,
    /// Whether there are more frames, for which a register is not known.
    pub is_cut: bool,
    /// What the call that it sleeps in returns.
    pub returns: Returned,
}

/// What a call that a thread sleeps in returns once it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Anything, as a read does.
    Anything,
    /// 0, as a sleep does.
    Zero,
    /// A value of libstdc++'s that has none in it, in two registers: its caller then reads the word.
    NoValue,
}

/// How the functions begin in which a C++20 wait sleeps, in the library of gcc 16 and later.
const VALUE_WAIT: &str = "std::__detail::__wait_";

impl Returned {
    /// Returns what a thread gets that sleeps on a word or for a time, by the library's function that the program
    /// has called; `stack` has the names.
    #[must_use]
    pub fn from_sleep(stack: Option<&Stack>, frames: &[FrameMoment]) -> Returned {
        let called = || {
            let program = frames.iter().position(|frame| !frame.of_system)?;
            let at = frames.get(program.checked_sub(1)?)?.at;
            let shown = stack?.frames.iter().rfind(|shown| shown.address == at.address)?;
            shown.function.as_deref()
        };
        match called() {
            Some(name) if name.starts_with(VALUE_WAIT) => Returned::NoValue,
            _ => Returned::Zero,
        }
    }

    /// Returns what is in the registers of a result afterwards.
    #[must_use]
    pub fn results(self) -> [Option<u64>; 2] {
        match self {
            Returned::Anything => [None, None],
            Returned::Zero => [Some(0), None],
            Returned::NoValue => [Some(0), Some(0)],
        }
    }
}

/// Returns the number of frames from the innermost on that have names, of which
/// none is that of a condition.
#[must_use]
pub fn plainly_named(stack: &Stack, frames: &[FrameMoment]) -> usize {
    let is_plain = |frame: &FrameMoment| {
        let mut named = stack.frames.iter().filter(|shown| shown.address == frame.at.address);
        named.clone().next().is_some()
            && named.all(|shown| {
                shown.function.as_deref().is_some_and(|function| {
                    !["ondvar", "ondVar", "ondition", "cond_"]
                        .iter()
                        .any(|part| function.contains(part))
                })
            })
    };
    frames.iter().take_while(|frame| is_plain(frame)).count()
}

impl WaitMoment {
    /// Returns how the thread wants this lock, if that is known.
    #[must_use]
    pub fn mode(&self, lock: &AwaitedLock) -> Option<WaitMode> {
        self.modes.iter().find(|(wanted, _)| wanted == lock).map(|(_, mode)| *mode)
    }
}

impl ThreadMoment {
    /// Tells whether more frames, or the true ones, would be found if the registers were known.
    #[must_use]
    pub fn is_partly_guessed(&self) -> bool {
        self.is_cut || self.frames.iter().any(|frame| frame.guessed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::{Frame, StackEnd};
    use crate::unwind::Registers;

    fn moment(address: u64, of_system: bool) -> FrameMoment {
        let (at, registers) = (CodeAddress::return_to(address), Registers::new(address, 0x2000));
        FrameMoment { at, registers, landing: None, of_system, guessed: false }
    }

    #[test]
    fn the_function_that_the_program_has_called_says_what_it_returns() {
        let frames = [moment(0x10, true), moment(0x20, true), moment(0x30, false)];
        let returned = |names: [&str; 3]| {
            let frame = |(address, name): (u64, &str)| Frame {
                address,
                function: Some(name.into()),
                offset: 1,
                file: None,
                line: None,
                module: None,
                module_offset: None,
                inlined: false,
                found: false,
            };
            let shown = [0x10, 0x20, 0x30].into_iter().zip(names).map(frame).collect();
            Returned::from_sleep(Some(&Stack { frames: shown, end: StackEnd::Bottom }), &frames)
        };
        let wait = "std::__detail::__wait_impl(void const*, std::__detail::__wait_args_base&)";
        assert_eq!(returned(["syscall", wait, "main"]), Returned::NoValue);
        assert_eq!(returned([wait, "another", "main"]), Returned::Zero, "not what main has called");
        assert_eq!(returned(["syscall", "another", wait]), Returned::Zero);
        assert_eq!(Returned::from_sleep(None, &frames), Returned::Zero, "no names");
    }
}
