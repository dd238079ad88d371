//! Threads, frames and locks of CPython in another process.
//!
//! # Role
//! Pure readers over [`ReadableMemory`]: from the state of an interpreter to its threads, their
//! frames with file and line, the locks that they wait for, the `with` statements that they are
//! inside of, and the GIL. Nothing is called and nothing is stopped: what is read may be torn,
//! so each object is known by the name of its type, each length and each chain has a bound, and
//! frames that changed while they were read say nothing of who holds what.
//!
//! | module | what it knows |
//! |---|---|
//! | `find` | where the interpreter is, and which version |
//! | `layout`, `offsets` | where each version keeps what |
//! | `read`, `objects`, `code`, `lines` | memory, objects, code and its lines |
//! | `frames` | the frames of a thread |
//! | `locks`, `gil` | what is waited for |
//! | `waiters` | single threads that wait, for looks that are often taken |
//! | `opcodes`, `bytecode`, `calls`, `scope`, `rebound` | what functions do with locks, without running them |
//! | `contexts`, `flow`, `holds` | who holds a lock |
//! | [`model`] | all of that as data |

mod bytecode;
mod calls;
mod code;
mod contexts;
mod find;
mod flow;
mod frames;
mod gil;
mod holds;
mod layout;
mod lines;
mod locks;
pub mod model;
mod objects;
mod offsets;
mod opcodes;
mod read;
mod rebound;
mod scope;
#[cfg(test)]
mod tests;
mod waiters;

pub use find::{FoundInterpreter, Interpreter};
pub use locks::WaitPlace;
pub use model::{
    Gil, LooseGenerator, PythonClaim, PythonEvidence, PythonFrame, PythonHolder, PythonLock,
    PythonLook, PythonStack, PythonThread, PythonWait,
};
pub use waiters::{PythonWaiter, SeenWaiter};

use crate::memory::{ProcessMemory, ReadableMemory};
use crate::modules::Modules;
use contexts::{Activation, Finder};
use frames::{Chain, KnownCode};
use objects::Objects;
use read::PageReader;
use rebound::Rebound;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most interpreters and threads that are looked at.
const INTERPRETERS: usize = 256;
const THREADS: usize = 16 * 1024;

/// The states of threads as the interpreters list them, and the GILs of these.
#[derive(Default)]
struct ListedStates {
    /// The address of each, and the `pthread_self` that it names.
    states: Vec<(u64, u64)>,
    /// The addresses of the records of the GILs.
    gils: Vec<u64>,
    /// There are more than are looked at.
    cut: bool,
}

/// A thread's state, and what it says of the thread.
struct FoundState {
    address: u64,
    ident: u64,
    tid: u32,
}

/// Adds what each thread has to do with the locks that some thread waits for and that name no owner.
fn claims(
    objects: &Objects<'_>,
    states: &[FoundState],
    known: &mut KnownCode,
    look: &mut PythonLook,
) {
    let waits = look.threads.iter().filter_map(|(&tid, thread)| match thread.wait {
        Some(PythonWait::Lock(lock)) if !lock.recursive && lock.locked => Some((tid, lock)),
        _ => None,
    });
    let waits: Vec<(u32, PythonLock)> = waits.collect();
    let locks: BTreeMap<u64, PythonLock> =
        waits.iter().map(|(_, lock)| (lock.key, *lock)).collect();
    if locks.is_empty() {
        return;
    }
    use PythonEvidence::{MayRelease, WouldRelease};
    let rebound = Rebound::default();
    let mut finder = Finder { objects, known, run: HashSet::new(), rebound: &rebound };
    let mut loose: Vec<(u32, u64)> = Vec::new();
    for state in states {
        let chain = Chain::read(objects, state.address, finder.known);
        let frames: Vec<Activation> =
            chain.frames.iter().rev().map(|frame| finder.activation(frame)).collect();
        let awaited = waits.iter().find(|(tid, _)| *tid == state.tid).map(|(_, lock)| lock.key);
        let claim =
            |lock: &PythonLock| holds::claim(&mut finder, &frames, lock, awaited == Some(lock.key));
        let claims: Vec<PythonClaim> = locks.values().filter_map(claim).collect();
        let variables = chain.frames.iter().flat_map(|frame| frame.variables(objects));
        let generators = variables.filter(|&value| objects.is(value, "generator"));
        let generators: Vec<u64> = generators.collect();
        // What was read belongs to one moment only if the thread is still where it was.
        if !chain.steady || !chain.is_still_there(objects, state.address) {
            continue;
        }
        loose.extend(generators.into_iter().map(|generator| (state.tid, generator)));
        if let Some(thread) = look.threads.get_mut(&state.tid) {
            thread.claims = claims;
        }
    }
    for (thread, generator) in loose {
        let Some(activation) = finder.unrun(generator) else { continue };
        for lock in locks.values() {
            let frames = std::slice::from_ref(&activation);
            if let Some(claim) = holds::claim(&mut finder, frames, lock, false)
                && !matches!(claim.evidence, WouldRelease | MayRelease)
            {
                let frame = activation.innermost().shown();
                look.loose.push(LooseGenerator { lock: lock.key, thread, frame });
            }
        }
    }
}

/// Returns the frames of Python of the threads of a process, by their numbers; none where it has no
/// interpreter that can be read. The process may be in no other PID namespace.
#[must_use]
pub fn stacks_of(pid: u32) -> BTreeMap<u32, PythonStack> {
    let Ok(mut modules) = Modules::of(pid) else { return BTreeMap::new() };
    let memory = ProcessMemory::new(pid);
    let Some(FoundInterpreter::Readable(interpreter)) = Interpreter::find(&mut modules, &memory)
    else {
        return BTreeMap::new();
    };
    let is_thread = |tid: u32| std::fs::exists(format!("/proc/{pid}/task/{tid}")).unwrap_or(false);
    let look = interpreter.look(&memory, &BTreeMap::new(), &is_thread);
    let stacks = look.threads.into_iter().map(|(tid, thread)| (tid, thread.stack));
    stacks.filter(|(_, stack)| !stack.frames.is_empty()).collect()
}

impl Interpreter {
    /// Looks at all threads of the process that run Python. `waits`: where those sleep that sleep
    /// for a lock, by the numbers that they have for themselves; `is_thread` tells whether a number
    /// is of a thread of the process.
    #[must_use]
    pub fn look(
        &self,
        memory: &dyn ReadableMemory,
        waits: &BTreeMap<u32, WaitPlace>,
        is_thread: &dyn Fn(u32) -> bool,
    ) -> PythonLook {
        let reader = PageReader::new(memory);
        let objects = Objects::new(&reader, self.layout);
        let mut look = PythonLook::default();
        let states = self.states(&objects, is_thread, &mut look);
        let idents: HashMap<u64, u32> = states.iter().map(|it| (it.ident, it.tid)).collect();
        let by_ident = |ident: u64| idents.get(&ident).copied();
        let mut known = KnownCode::new();
        for state in &states {
            let chain = Chain::read(&objects, state.address, &mut known);
            let shown = chain.frames.iter().map(frames::RawFrame::shown).collect();
            let mut thread = PythonThread {
                ident: state.ident,
                stack: PythonStack { frames: shown, cut: chain.cut },
                ..PythonThread::default()
            };
            if let Some(&place) = waits.get(&state.tid) {
                thread.wait = match look.gil(place.address) {
                    Some(gil) => Some(PythonWait::Gil(gil.address)),
                    None if chain.steady => {
                        locks::awaited(&objects, &chain.frames, place, &by_ident)
                    }
                    None => None,
                };
            }
            look.threads.insert(state.tid, thread);
        }
        claims(&objects, &states, &mut known, &mut look);
        look
    }

    /// Returns the states of all threads as the interpreters list them, and the GILs.
    fn listed(&self, objects: &Objects<'_>) -> ListedStates {
        let (reader, layout) = (objects.reader, &self.layout);
        let mut listed = ListedStates::default();
        let mut interpreter = reader.pointer(self.runtime, layout.interpreters);
        for _ in 0..INTERPRETERS {
            let Some(here) = interpreter else { break };
            interpreter = reader.pointer(here, layout.interpreter_next);
            listed.gils.extend(gil::address(objects, self.runtime, here));
            let mut state = reader.pointer(here, layout.threads);
            while let Some(address) = state
                && listed.states.len() < THREADS
            {
                state = reader.pointer(address, layout.thread_next);
                // One that has not begun has no number.
                let ident = reader.pointer(address, layout.ident).unwrap_or(0);
                listed.states.push((address, ident));
                // A list that goes round has more states than there can be.
                listed.cut |= listed.states.len() == THREADS && state.is_some();
            }
        }
        listed.cut |= interpreter.is_some();
        listed.gils.sort_unstable();
        listed.gils.dedup();
        listed
    }

    /// Returns the states of all threads; adds the GILs.
    fn states(
        &self,
        objects: &Objects<'_>,
        is_thread: &dyn Fn(u32) -> bool,
        look: &mut PythonLook,
    ) -> Vec<FoundState> {
        let listed = self.listed(objects);
        look.cut |= listed.cut;
        let states = listed.states.into_iter();
        let states = states.filter_map(|state| self.state(objects, state, is_thread));
        let states: Vec<FoundState> = states.collect();
        look.gils = listed
            .gils
            .into_iter()
            .map(|address| {
                let holder = gil::holder(objects, address);
                let holder = states.iter().find(|state| Some(state.address) == holder);
                Gil { address, holder: holder.map(|state| state.tid) }
            })
            .collect();
        states
    }

    fn state(
        &self,
        objects: &Objects<'_>,
        (address, ident): (u64, u64),
        is_thread: &dyn Fn(u32) -> bool,
    ) -> Option<FoundState> {
        /// Where glibc keeps the kernel's number of a thread, from `pthread_self`.
        const NUMBER: u64 = 0x2d0;
        let reader = objects.reader;
        let native = self.layout.native.and_then(|at| reader.u64(address.checked_add(at)?));
        let native = native.and_then(|number| u32::try_from(number).ok());
        let by_library = || reader.u32(ident.checked_add(NUMBER)?);
        let tid = native.filter(|&tid| is_thread(tid));
        let tid = tid.or_else(|| by_library().filter(|&tid| is_thread(tid)))?;
        Some(FoundState { address, ident, tid })
    }
}
