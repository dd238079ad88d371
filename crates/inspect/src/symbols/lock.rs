//! What a lock is called.
//!
//! # Role
//! Locks have addresses; people know them by the variable they are, or by the
//! place that made them. In that order: a variable's symbol, with the member by
//! debug information; the thread whose
//! stack it lies on; the place that initialised it; the place that used it
//! first, for a lock that was zeroed or copied into being; the file it is
//! mapped from; the bare address.

use super::{Symbolizer, Variable, python, site};
use crate::modules::CodePlace;
use crate::stack::{CodeAddress, Frame, StackEnd};
use std::fmt;

/// What is known of a lock, to find its name by.
#[derive(Clone, Copy, Debug)]
pub struct LockClues<'a> {
    /// What kind of lock: `mutex`, `rwlock`.
    pub kind: &'a str,
    /// The address of its first byte.
    pub address: u64,
    /// The name of the thread whose stack it lies on.
    pub on_stack_of: Option<&'a str>,
    /// Call chain of its initialisation.
    pub initialised: Option<&'a [CodeAddress]>,
    /// Call chain that was seen to use it first.
    pub first_used: Option<&'a [CodeAddress]>,
    /// Others may have used it before that.
    pub late: bool,
    /// Whether a mutex lies where another pair of a condition and a mutex in front of it would have
    /// its own; `None` if that is not known.
    pub is_of_second_pair: Option<bool>,
    /// Tells locks from the same place apart.
    pub serial: Option<u64>,
}

/// The place that a lock comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOrigin {
    /// It is a variable, or part of one.
    Variable(Variable),
    /// It lies on a thread's stack.
    Stack {
        /// The name of the thread.
        thread: String,
    },
    /// It is one of Python's.
    Python {
        /// What it is called: `threading.Lock`.
        called: &'static str,
    },
    /// The lock was initialised there.
    Initialised {
        /// The place in the code.
        site: Box<Frame>,
    },
    /// It was first used there; nobody saw it initialised.
    FirstUsed {
        /// The place in the code.
        site: Box<Frame>,
    },
    /// It was used there; what was before that is not known any more.
    Used {
        /// The place in the code.
        site: Box<Frame>,
    },
    /// It lies in memory mapped from a file, shared perhaps.
    File {
        /// The path of the file.
        path: String,
        /// The offset in the file.
        offset: u64,
    },
    /// Only its address is known.
    Address,
}

/// The name of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSymbol {
    /// The kind of the lock.
    pub kind: String,
    /// The address of its first byte.
    pub address: u64,
    /// The place that the lock comes from.
    pub origin: LockOrigin,
    /// Tells locks from the same place apart.
    pub serial: Option<u64>,
}

impl fmt::Display for LockSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.kind;
        match &self.origin {
            // A variable is one lock: a number would be noise.
            LockOrigin::Variable(variable) => return variable.fmt(f),
            LockOrigin::Stack { thread } => {
                write!(f, "{kind} on the stack of thread \"{thread}\"")?
            }
            LockOrigin::Python { called } => f.write_str(called)?,
            LockOrigin::Initialised { site } => write!(f, "{kind} from {}", site.site())?,
            LockOrigin::FirstUsed { site } => write!(f, "{kind} first used in {}", site.site())?,
            LockOrigin::Used { site } => write!(f, "{kind} used in {}", site.site())?,
            LockOrigin::File { path, offset } => {
                let base = path.rsplit('/').next().unwrap_or(path);
                return write!(f, "{kind} in {base}+{offset:#x}");
            }
            LockOrigin::Address => return write!(f, "{kind} at {:#x}", self.address),
        }
        match self.serial {
            Some(serial) => write!(f, ", #{serial}"),
            None => Ok(()),
        }
    }
}

impl Symbolizer {
    /// Returns the best name for a lock.
    pub fn lock_name(&mut self, facts: &LockClues<'_>) -> LockSymbol {
        LockSymbol {
            kind: facts.kind.to_owned(),
            address: facts.address,
            origin: self.origin(facts),
            serial: facts.serial,
        }
    }

    fn origin(&mut self, facts: &LockClues<'_>) -> LockOrigin {
        if let Some(variable) = self.variable(facts.address) {
            let gil = match self.modules.place(facts.address) {
                CodePlace::File { path, .. } => python::gil(facts, &variable, &path),
                _ => None,
            };
            let named = gil.unwrap_or_else(|| self.member(facts.address, variable));
            return LockOrigin::Variable(named);
        }
        if let Some(thread) = facts.on_stack_of {
            return LockOrigin::Stack { thread: thread.to_owned() };
        }
        if let Some(called) = facts.initialised.and_then(|chain| self.python_lock(chain)) {
            return LockOrigin::Python { called };
        }
        if let Some(site) = facts.initialised.and_then(|chain| self.site_of(chain)) {
            return LockOrigin::Initialised { site };
        }
        if let Some(site) = facts.first_used.and_then(|chain| self.site_of(chain)) {
            return if facts.late {
                LockOrigin::Used { site }
            } else {
                LockOrigin::FirstUsed { site }
            };
        }
        match self.modules.place(facts.address) {
            CodePlace::File { path, module, bias, offset } => LockOrigin::File {
                path: path.display().to_string(),
                // Of an ELF file the stated address is what tools take; it is
                // also there for zero-filled memory.
                offset: match (module, offset) {
                    (None, Some(offset)) => offset,
                    _ => facts.address.wrapping_sub(bias),
                },
            },
            _ => LockOrigin::Address,
        }
    }

    fn python_lock(&mut self, chain: &[CodeAddress]) -> Option<&'static str> {
        python::python_lock(&self.stack(chain, StackEnd::Bottom))
    }

    fn site_of(&mut self, chain: &[CodeAddress]) -> Option<Box<Frame>> {
        if let Some(known) = self.sites.get(chain) {
            return known.clone().map(Box::new);
        }
        let stack = self.stack(chain, StackEnd::Bottom);
        let found = site(&stack).cloned();
        self.sites.insert(chain.to_vec(), found.clone());
        found.map(Box::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(origin: LockOrigin) -> String {
        LockSymbol { kind: "mutex".into(), address: 0x7f00, origin, serial: Some(17) }.to_string()
    }

    #[test]
    fn each_origin_has_its_words() {
        let site = || {
            Box::new(Frame {
                function: Some("cache_new".into()),
                file: Some("/src/cache.c".into()),
                line: Some(41),
                ..Frame::default()
            })
        };
        let variable = Variable { name: "server".into(), offset: 0x18, module: None };
        assert_eq!(name(LockOrigin::Variable(variable)), "server+0x18");
        let thread = "io \"2\"".to_owned();
        assert_eq!(
            name(LockOrigin::Stack { thread }),
            "mutex on the stack of thread \"io \"2\"\", #17"
        );
        assert_eq!(
            name(LockOrigin::Initialised { site: site() }),
            "mutex from cache_new() at cache.c:41, #17"
        );
        assert_eq!(
            name(LockOrigin::FirstUsed { site: site() }),
            "mutex first used in cache_new() at cache.c:41, #17"
        );
        assert_eq!(
            name(LockOrigin::Used { site: site() }),
            "mutex used in cache_new() at cache.c:41, #17"
        );
        let path = "/dev/shm/pool".to_owned();
        assert_eq!(name(LockOrigin::File { path, offset: 0x40 }), "mutex in pool+0x40");
        assert_eq!(name(LockOrigin::Address), "mutex at 0x7f00");
    }
}
