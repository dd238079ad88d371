//! The places of a function that acquire and release locks.
//!
//! # How
//! `X.acquire()`, `X.release()` and `with X`, where `X` is a variable with attributes, are a few
//! instructions one after the other, and nothing jumps between them. Of another `X` it is only
//! known that something is acquired or released there.

use super::bytecode::Bytecode;
use super::code::Code;
use super::objects::Objects;
use super::opcodes::Op;
use super::scope::{Path, Root};
use std::collections::BTreeSet;

/// The most arguments of a call of `acquire` that are looked over.
const ARGUMENTS: usize = 8;
/// The longest chain of attributes.
const LINKS: usize = 8;

/// What a place does to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It releases the lock.
    Release,
    /// It may release it later, by a method that it keeps.
    MayRelease,
    /// It has acquired it, behind the instruction.
    Acquire,
    /// Behind the instruction a value says whether it has.
    Try,
    /// It has entered a `with` statement of it, behind the instruction.
    Enter,
}

/// A place that does something to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The index of the instruction.
    pub(super) at: usize,
    pub(super) event: Event,
    /// The expression for the lock; `None` where it is not so simple.
    pub(super) path: Option<Path>,
}

/// The instructions of a function, and its places that concern locks.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytecode: Bytecode,
    /// The places that concern locks, in the order of their instructions.
    pub(super) sites: Vec<Site>,
    /// The names, and the shared variables, that the expressions of the sites look up.
    used_names: BTreeSet<usize>,
    used_shared: BTreeSet<u32>,
}

impl Body {
    pub(super) fn read(
        objects: &Objects<'_>,
        code: &Code,
        bytes: &[u8],
        exceptions: &[u8],
    ) -> Option<Body> {
        let bytecode = Bytecode::read(objects.layout.version, bytes, exceptions)?;
        let names = code.names(objects);
        let reading = Reading { version: objects.layout.version, bytecode: &bytecode, names };
        let is_true = |constant| {
            code.constant(objects, constant).and_then(|it| objects.truth(it)) == Some(true)
        };
        let sites: Vec<Site> = if reading.concerns_locks() {
            let all = 0..bytecode.instructions.len();
            let mut sites: Vec<Site> = all.filter_map(|at| reading.site(at, &is_true)).collect();
            sites.sort_by_key(|site| site.at);
            sites
        } else {
            Vec::new()
        };
        let paths = || sites.iter().filter_map(|site| site.path.as_ref());
        let root_name = |path: &Path| match path.root {
            Root::Global(at) | Root::Named(at) => Some(at),
            Root::Local(_) | Root::Shared(_) => None,
        };
        let shared = |path: &Path| match path.root {
            Root::Shared(number) => Some(number),
            _ => None,
        };
        let attributes = paths().flat_map(|path| path.attributes.iter().copied());
        let used_names = attributes.chain(paths().filter_map(root_name)).collect();
        let used_shared = paths().filter_map(shared).collect();
        Some(Body { used_names, used_shared, bytecode, sites })
    }

    #[cfg(test)]
    pub(super) fn of(bytecode: Bytecode, sites: Vec<Site>) -> Body {
        Body { bytecode, sites, used_names: BTreeSet::new(), used_shared: BTreeSet::new() }
    }

    /// Returns the sites of an instruction, with their numbers.
    pub(super) fn sites_at(&self, at: usize) -> impl Iterator<Item = (usize, &Site)> {
        let first = self.sites.partition_point(|site| site.at < at);
        let sites = self.sites.iter().enumerate().skip(first);
        sites.take_while(move |(_, site)| site.at == at)
    }

    /// Tells whether an instruction gives a name or a shared variable another value that an
    /// expression of a site looks up.
    pub(super) fn rebinds(&self, at: usize) -> bool {
        let Some(it) = self.bytecode.instructions.get(at) else { return false };
        match it.op {
            Op::StoreName | Op::StoreAttribute => self.used_names.contains(&(it.argument as usize)),
            Op::StoreDeref => self.used_shared.contains(&it.argument),
            _ => false,
        }
    }

    /// Returns the expression whose value an instruction leaves on the stack.
    pub(super) fn path_to(&self, objects: &Objects<'_>, code: &Code, at: usize) -> Option<Path> {
        let (version, names) = (objects.layout.version, code.names(objects));
        Reading { version, bytecode: &self.bytecode, names }.path(at)
    }
}

/// A function that is being looked through.
struct Reading<'a> {
    version: (u8, u8),
    bytecode: &'a Bytecode,
    names: &'a [(u64, String)],
}

impl Reading<'_> {
    fn concerns_locks(&self) -> bool {
        self.names.iter().any(|(_, name)| releases(name) || acquires(name))
    }

    /// Returns the site that an instruction begins, or is.
    fn site(&self, at: usize, is_true: &dyn Fn(u32) -> bool) -> Option<Site> {
        let it = self.bytecode.instructions.get(at)?;
        let path = |at: usize| if self.bytecode.is_target(at) { None } else { self.path(at - 1) };
        match it.op {
            Op::LoadAttribute | Op::LoadMethod => {
                let (_, name) = self.names.get(self.attribute(at)?)?;
                let path = at.checked_sub(1).and_then(|_| path(at));
                if releases(name) {
                    let called = matches!(self.call(at, is_true), Some((_, _)));
                    let event = if called { Event::Release } else { Event::MayRelease };
                    Some(Site { at, event, path })
                } else if acquires(name) {
                    let (at, certain) = self.call(at, is_true)?;
                    let event = if certain { Event::Acquire } else { Event::Try };
                    Some(Site { at, event, path })
                } else {
                    None
                }
            }
            Op::EnterWith => Some(Site {
                at,
                event: Event::Enter,
                path: at.checked_sub(1).and_then(|_| path(at)),
            }),
            // From 3.14 on: the second of two, and a call behind it.
            Op::LoadSpecial if it.argument == 0 => {
                let path = at.checked_sub(5).and_then(|copied| self.path(copied));
                Some(Site { at: at + 1, event: Event::Enter, path })
            }
            _ => None,
        }
    }

    /// Returns the name that an instruction looks up in a value.
    fn attribute(&self, at: usize) -> Option<usize> {
        let it = self.bytecode.instructions.get(at)?;
        match it.op {
            Op::LoadAttribute if self.version >= (3, 12) => Some(it.argument as usize >> 1),
            Op::LoadAttribute | Op::LoadMethod => Some(it.argument as usize),
            _ => None,
        }
    }

    /// Returns the expression whose value an instruction leaves on the stack.
    fn path(&self, at: usize) -> Option<Path> {
        let mut attributes = Vec::new();
        for back in 0..LINKS {
            let here = at.checked_sub(back)?;
            let it = self.bytecode.instructions.get(here)?;
            let root = match it.op {
                Op::LoadAttribute => {
                    if self.version >= (3, 12) && it.argument & 1 == 1 {
                        return None;
                    }
                    attributes.push(self.attribute(here)?);
                    if self.bytecode.is_target(here) {
                        return None;
                    }
                    continue;
                }
                Op::LoadFast => Root::Local(it.argument),
                Op::LoadDeref => Root::Shared(it.argument),
                Op::LoadGlobal if self.version >= (3, 11) => {
                    Root::Global(it.argument as usize >> 1)
                }
                Op::LoadGlobal => Root::Global(it.argument as usize),
                Op::LoadName => Root::Named(it.argument as usize),
                _ => return None,
            };
            attributes.reverse();
            return Some(Path { root, attributes });
        }
        None
    }

    /// Returns the call of the method that an instruction looks up, and whether the call waits
    /// without a limit.
    fn call(&self, at: usize, is_true: &dyn Fn(u32) -> bool) -> Option<(usize, bool)> {
        let mut arguments = Vec::new();
        for at in (at + 1..).take(ARGUMENTS) {
            let it = self.bytecode.instructions.get(at)?;
            if self.bytecode.is_target(at) {
                return None;
            }
            match it.op {
                Op::PrepareCall => {}
                Op::Call => {
                    let certain = match arguments[..] {
                        [] => true,
                        [only] => {
                            let only: &super::bytecode::Instruction = only;
                            only.op == Op::LoadConstant && is_true(only.argument)
                        }
                        _ => false,
                    };
                    return Some((at, certain && it.argument as usize == arguments.len()));
                }
                Op::LoadConstant
                | Op::LoadFast
                | Op::LoadGlobal
                | Op::LoadDeref
                | Op::LoadName
                | Op::Other => arguments.push(it),
                Op::LoadAttribute => {}
                _ => return None,
            }
        }
        None
    }
}

fn releases(name: &str) -> bool {
    matches!(name, "release" | "release_lock" | "__exit__")
}

fn acquires(name: &str) -> bool {
    matches!(name, "acquire" | "acquire_lock" | "__enter__")
}
