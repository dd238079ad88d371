//! What a function has done to a lock so far, and what it would do next.
//!
//! # How
//! The instructions are followed on all ways that lead to the one where the frame is, with what is
//! known of one lock. Where the ways disagree, or a variable got another value meanwhile,
//! nothing is known. The expressions of the sites are looked up as they are *now*: that is
//! right as long as nothing between gives their variables another value, which is watched for.

use super::calls::{Body, Event};
use super::opcodes::Op;

/// The most steps of one search.
const STEPS: usize = 256 * 1024;
/// The most steps through handlers.
const HANDLER_STEPS: usize = 4096;
/// The variables that are watched.
const WATCHED: u32 = 63;

/// What a site is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The lock that is asked about.
    This,
    /// It is about another lock.
    Another,
    /// It is not known.
    Unknown,
}

/// What the instructions up to some place did to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// They left it alone.
    Untouched,
    /// They acquired it, and have not released it.
    Held,
    /// They released the lock.
    Released,
    /// It is not known.
    Perhaps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Past(Past),
    /// Acquired if the value that was left on the stack says so.
    IfResult,
    /// Acquired if this variable says so.
    IfLocal(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    known: Known,
    /// The variables that expressions so far began with, by bit.
    used: u64,
    /// A method that releases the lock may have been kept, to be called at any time.
    aliased: bool,
}

const PERHAPS: Known = Known::Past(Past::Perhaps);

impl State {
    fn merge(self, other: State) -> State {
        let known = if self.known == other.known { self.known } else { PERHAPS };
        let aliased = self.aliased || other.aliased;
        State { known, used: self.used | other.used, aliased }
    }
}

/// A function, and what its sites are about.
pub(super) struct Flow<'a> {
    pub(super) body: &'a Body,
    /// What each site is about.
    pub(super) about: Vec<About>,
    /// Tells whether a variable is true now.
    pub(super) is_true: &'a dyn Fn(u32) -> Option<bool>,
}

impl Flow<'_> {
    /// Returns what was done to the lock on the ways to an instruction.
    pub(super) fn past(&self, to: usize) -> Past {
        let code = &self.body.bytecode;
        let mut states: Vec<Option<State>> = vec![None; code.instructions.len()];
        let mut open: Vec<usize> = Vec::new();
        let start = State { known: Known::Past(Past::Untouched), used: 0, aliased: false };
        merge_into(&mut states, &mut open, 0, start);
        for _ in 0..STEPS {
            let Some(at) = open.pop() else {
                return match states.get(to).copied().flatten().map(|state| state.known) {
                    Some(Known::Past(past)) => past,
                    Some(Known::IfLocal(local)) => match (self.is_true)(local) {
                        Some(true) => Past::Held,
                        Some(false) => Past::Untouched,
                        None => Past::Perhaps,
                    },
                    Some(Known::IfResult) | None => Past::Perhaps,
                };
            };
            let Some(before) = states.get(at).copied().flatten() else { continue };
            let after = self.step(at, before);
            for handler in code.handlers(at) {
                merge_into(&mut states, &mut open, handler, before);
                merge_into(&mut states, &mut open, handler, after);
            }
            let [next, target] = code.next(at);
            let (on, jump) = self.branches(at, after);
            for (way, state) in [(next, on), (target, jump)] {
                if let Some(way) = way {
                    merge_into(&mut states, &mut open, way, state);
                }
            }
        }
        Past::Perhaps
    }

    fn step(&self, at: usize, mut state: State) -> State {
        let Some(it) = self.body.bytecode.instructions.get(at) else { return state };
        if state.known == Known::IfResult && !matches!(it.op, Op::Same | Op::JumpIf(_)) {
            state.known = match it.op {
                Op::StoreFast => Known::IfLocal(it.argument),
                _ => PERHAPS,
            };
        } else if it.op == Op::StoreFast {
            let watched = it.argument >= WATCHED || state.used >> it.argument & 1 == 1;
            if watched && state.used != 0 || state.known == Known::IfLocal(it.argument) {
                state.known = PERHAPS;
            }
        }
        if state.used != 0 && self.body.rebinds(at) {
            state.known = PERHAPS;
        }
        for (number, site) in self.body.sites_at(at) {
            // The highest bit: some expression was looked up.
            state.used |= 1 << WATCHED;
            if let Some(local) = site.path.as_ref().and_then(|path| path.local()) {
                state.used |= if local < WATCHED { 1 << local } else { 0 };
            }
            let about = self.about.get(number).copied().unwrap_or(About::Unknown);
            state.aliased |= about != About::Another && site.event == Event::MayRelease;
            state.known = match (about, site.event) {
                (About::Another, _) => state.known,
                (About::This, Event::Release) => Known::Past(Past::Released),
                (About::This, Event::Acquire | Event::Try) if state.aliased => PERHAPS,
                (About::This, Event::Acquire) => Known::Past(Past::Held),
                (About::This, Event::Try) => Known::IfResult,
                (About::This, Event::Enter) => Known::Past(Past::Untouched),
                (_, Event::Release | Event::MayRelease) => PERHAPS,
                (About::Unknown, _) => state.known,
            };
        }
        state
    }

    /// Returns the states behind an instruction, when it goes on and when it jumps.
    fn branches(&self, at: usize, state: State) -> (State, State) {
        let code = &self.body.bytecode.instructions;
        let Some(Op::JumpIf(wanted)) = code.get(at).map(|it| it.op) else { return (state, state) };
        let tested = match state.known {
            Known::IfResult => true,
            Known::IfLocal(local) => self
                .tested(at)
                .is_some_and(|at| code[at].op == Op::LoadFast && code[at].argument == local),
            Known::Past(_) => false,
        };
        if !tested {
            return (state, state);
        }
        let held = State { known: Known::Past(Past::Held), ..state };
        let not = State { known: Known::Past(Past::Untouched), ..state };
        if wanted { (not, held) } else { (held, not) }
    }

    /// Returns the instruction whose value a jump tests.
    pub(super) fn tested(&self, jump: usize) -> Option<usize> {
        let code = &self.body.bytecode;
        let mut at = jump;
        loop {
            if code.is_target(at) {
                return None;
            }
            at = at.checked_sub(1)?;
            if code.instructions.get(at)?.op != Op::Same {
                return Some(at);
            }
        }
    }

    /// Tells whether some way on from an instruction releases the lock before it acquires it.
    pub(super) fn would_release(&self, from: usize) -> bool {
        let code = &self.body.bytecode;
        let mut seen = vec![false; code.instructions.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let Some(seen) = seen.get_mut(at).filter(|seen| !**seen) else { continue };
            *seen = true;
            match self.first(at) {
                Some(true) => return true,
                Some(false) => {}
                None => open.extend(code.next(at).into_iter().flatten()),
            }
        }
        false
    }

    /// Returns the instruction by which the handlers of an exception would release the lock, if
    /// that is what they do first. `outer` returns the handler of an exception that a handler lets
    /// through; `decide` whether a jump is taken that tests what an instruction leaves.
    pub(super) fn released_by_handler(
        &self,
        first: usize,
        outer: &mut dyn FnMut(usize) -> Option<usize>,
        decide: &dyn Fn(Op, usize) -> Option<bool>,
    ) -> Option<usize> {
        let code = &self.body.bytecode;
        let mut at = first;
        for _ in 0..HANDLER_STEPS {
            match self.first(at) {
                Some(true) => return Some(at),
                Some(false) => return None,
                None if self.may_be_released(at) => return None,
                None => {}
            }
            let it = code.instructions.get(at)?;
            let jumps = match it.op {
                Op::Reraise => {
                    at = outer(at)?;
                    continue;
                }
                Op::Return | Op::Raise | Op::JumpPerhaps | Op::ForIter | Op::Send => return None,
                // The exception is none that the function expects, and no `with` swallows it.
                Op::Jump | Op::JumpUnlessMatch => true,
                Op::JumpIf(wanted) => {
                    let tested = self.tested(at)?;
                    match code.instructions.get(tested)?.op {
                        Op::ExceptionMatches | Op::WithExit => !wanted,
                        _ => decide(it.op, tested)?,
                    }
                }
                Op::JumpIfNone(_) => decide(it.op, self.tested(at)?)?,
                _ => false,
            };
            at = if jumps { it.target? } else { at + 1 };
        }
        None
    }

    fn may_be_released(&self, at: usize) -> bool {
        let mut sites = self.body.sites_at(at);
        sites.any(|(number, site)| {
            let is_release = matches!(site.event, Event::Release | Event::MayRelease);
            is_release && self.about.get(number) != Some(&About::Another)
        })
    }

    /// Tells whether an instruction releases the lock, or acquires it; `None`: neither.
    pub(super) fn first(&self, at: usize) -> Option<bool> {
        let mut sites = self.body.sites_at(at);
        sites.find_map(|(number, site)| {
            if self.about.get(number) != Some(&About::This) {
                return None;
            }
            match site.event {
                Event::Release => Some(true),
                Event::Acquire | Event::Try | Event::Enter => Some(false),
                Event::MayRelease => None,
            }
        })
    }
}

fn merge_into(states: &mut [Option<State>], open: &mut Vec<usize>, at: usize, state: State) {
    let Some(there) = states.get_mut(at) else { return };
    let merged = there.map_or(state, |there| there.merge(state));
    if *there != Some(merged) {
        *there = Some(merged);
        open.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytecode::Bytecode;
    use super::super::calls::Site;
    use super::super::scope::{Path, Root};
    use super::*;

    const LOAD_ATTR: u8 = 106;
    const LOAD_FAST: u8 = 124;
    const POP_JUMP_IF_FALSE: u8 = 114;
    const POP_TOP: u8 = 1;
    const STORE_FAST: u8 = 125;
    const CALL: u8 = 171;

    /// Instructions of 3.12 without caches, and where each begins.
    fn code(parts: &[(u8, u8)], table: &[u8]) -> Bytecode {
        let caches = |op| match op {
            LOAD_ATTR => 9,
            CALL => 3,
            _ => 0,
        };
        let bytes = parts
            .iter()
            .flat_map(|&(op, argument)| [vec![op, argument], vec![0; 2 * caches(op)]].concat());
        let bytes: Vec<u8> = bytes.collect();
        Bytecode::read((3, 12), &bytes, table).expect("known instructions")
    }

    fn site(at: usize, event: Event) -> Site {
        Site { at, event, path: Some(Path { root: Root::Local(0), attributes: Vec::new() }) }
    }

    fn past(parts: &[(u8, u8)], sites: Vec<Site>, to: usize) -> Past {
        let body = Body::of(code(parts, &[]), sites);
        let about = vec![About::This; body.sites.len()];
        Flow { body: &body, about, is_true: &|local| Some(local == 3) }.past(to)
    }

    const METHOD: [(u8, u8); 3] = [(LOAD_FAST, 0), (LOAD_ATTR, 1), (CALL, 0)];
    const END: (u8, u8) = (121, 0);

    #[test]
    fn what_was_acquired_is_held_until_it_is_released() {
        let parts = [&METHOD[..], &[(POP_TOP, 0)], &METHOD, &[(POP_TOP, 0), END]].concat();
        let sites = || vec![site(2, Event::Acquire), site(5, Event::Release)];
        let found = [0, 2, 3, 5, 6].map(|to| past(&parts, sites(), to));
        let [untouched, held, released] = [Past::Untouched, Past::Held, Past::Released];
        assert_eq!(found, [untouched, untouched, held, held, released]);
        // Another value of the variable: what was called then is not known.
        let parts = [&METHOD[..], &[(STORE_FAST, 0), END]].concat();
        assert_eq!(past(&parts, vec![site(2, Event::Acquire)], 4), Past::Perhaps);
    }

    #[test]
    fn what_is_acquired_while_its_release_is_kept_may_be_released_at_any_time() {
        let kept = [(LOAD_FAST, 0), (LOAD_ATTR, 0), (STORE_FAST, 1)];
        let parts = [&kept[..], &METHOD, &[(POP_TOP, 0), END]].concat();
        let sites = || vec![site(1, Event::MayRelease), site(5, Event::Acquire)];
        assert_eq!(past(&parts, sites(), 6), Past::Perhaps);
        let body = Body::of(code(&parts, &[]), sites());
        let about = vec![About::Another, About::This];
        let flow = Flow { body: &body, about, is_true: &|_| None };
        assert_eq!(flow.past(6), Past::Held, "it is another lock's");
    }

    #[test]
    fn an_attempt_counts_where_it_has_succeeded() {
        // Goes on if it has, and jumps over the next instruction if not.
        let tested = [&METHOD[..], &[(POP_JUMP_IF_FALSE, 1), (POP_TOP, 0), END]].concat();
        let at = |to| past(&tested, vec![site(2, Event::Try)], to);
        assert_eq!([at(4), at(5)], [Past::Held, Past::Perhaps]);
        let ignored = [&METHOD[..], &[(POP_TOP, 0), END]].concat();
        assert_eq!(past(&ignored, vec![site(2, Event::Try)], 4), Past::Perhaps);
        let kept = |local| [&METHOD[..], &[(STORE_FAST, local), END]].concat();
        let at = |local| past(&kept(local), vec![site(2, Event::Try)], 4);
        assert_eq!([at(3), at(4)], [Past::Held, Past::Untouched]);
    }

    #[test]
    fn a_handler_that_lets_the_exception_through_releases() {
        let release = [&[(35, 0)], &METHOD[..], &[(POP_TOP, 0), (119, 0)]].concat();
        let parts = [&METHOD[..], &[(POP_TOP, 0), END], &release].concat();
        // All but the handler is covered by it.
        let body = code(&parts, &[0x80, 17, 17, 0]);
        let sites = vec![site(2, Event::Acquire), site(7, Event::Release)];
        let body = Body::of(body, sites);
        let flow = |about| Flow { body: &body, about, is_true: &|_| None };
        let handler = body.bytecode.handler(2).expect("covered");
        let by = |flow: &Flow<'_>| {
            let outer = &mut |at: usize| body.bytecode.handler(at);
            flow.released_by_handler(handler, outer, &|_, _| None)
        };
        assert_eq!(by(&flow(vec![About::This; 2])), Some(7));
        assert_eq!(by(&flow(vec![About::This, About::Another])), None);
        assert_eq!(by(&flow(vec![About::This, About::Unknown])), None);
        assert!(!flow(vec![About::This; 2]).would_release(0), "it acquires it first");
    }
}
