//! The names of a process from its files: [`Names`] by the symbolizer.

use super::names::{LockFacts, Names};
use crate::stack::{CodeAddress, Stack, StackEnd};
use crate::symbols::{self, Symbolizer};

impl Names for Symbolizer {
    fn stack(&mut self, returns: &[u64], end: u32) -> Stack {
        let stack = Symbolizer::stack(self, &chain(returns), StackEnd::Bottom);
        let module = stack.frames.last().and_then(|frame| frame.module.clone());
        Stack { end: end_of(end, returns, module), ..stack }
    }

    fn function(&mut self, address: u64) -> Option<String> {
        // The address of a function, not one to which it returns.
        self.frames(CodeAddress::exact(address)).pop()?.function
    }

    fn lock(&mut self, facts: &LockFacts) -> String {
        if let Some(given) = &facts.given {
            return given.clone();
        }
        let [init, first] = [&facts.init, &facts.first].map(|returns| chain(returns));
        let some = |chain: &'_ [CodeAddress]| !chain.is_empty();
        self.lock_name(&symbols::LockClues {
            kind: facts.noun(),
            address: facts.address,
            on_stack_of: facts.on_stack_of.as_deref(),
            initialised: Some(init.as_slice()).filter(|chain| some(chain)),
            first_used: Some(first.as_slice()).filter(|chain| some(chain)),
            late: facts.late,
            is_of_second_pair: facts.is_of_second_pair,
            serial: Some(u64::from(facts.serial)).filter(|&serial| serial != 0),
        })
        .to_string()
    }
}

fn chain(returns: &[u64]) -> Vec<CodeAddress> {
    returns.iter().copied().map(CodeAddress::return_to).collect()
}

/// Returns why a stack with these return addresses ends, by the number that the library stored with
/// it; `module` is that of the outermost.
#[must_use]
pub fn end_of(end: u32, returns: &[u64], module: Option<String>) -> StackEnd {
    let address = returns.last().copied().unwrap_or(0);
    match end {
        0 => StackEnd::Bottom,
        1 => StackEnd::Limit { frames: returns.len() },
        3 => StackEnd::Unreadable { address },
        _ => StackEnd::NoUnwindInformation { address, module },
    }
}
