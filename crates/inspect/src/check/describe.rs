//! Gives facts their names.

use super::facts::{ExcuseFacts, OrderFacts, StepFacts, ThreadFacts, ViolationFacts};
use super::lives::LockLife;
use super::model::{
    CycleKind, Details, LockIdentity, LockOrder, OrderExcuse, OrderStep, RuleViolation,
    ThreadIdentity,
};
use crate::report::names::Names;
use crate::report::names::{class_name, type_name};
use crate::stack::{Frame, Stack};
use lockstead_ledger::Ledger;
use lockstead_ledger::violation::Rule;
use lockstead_lockdep::InversionKind;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Frames by which two violations are told to be of one place.
const PLACE: usize = 12;

/// Turns the facts of an inversion or a violation into texts, by the names that it looks up.
pub struct Describer<'a> {
    /// The place where stacks and locks are looked up.
    pub ledger: Ledger<'a>,
    /// What the addresses in a stack mean.
    pub names: &'a mut dyn Names,
    /// What a thread is called.
    pub threads: &'a dyn Fn(ThreadFacts) -> Option<String>,
    /// The program: causes are told apart by it.
    pub program: &'a str,
}

impl Describer<'_> {
    /// Names all that an inversion speaks of.
    pub fn order(&mut self, facts: &OrderFacts) -> Details {
        let steps = facts.steps.iter().map(|step| self.step(step)).collect();
        let gate = match facts.excuse {
            Some(ExcuseFacts::Gate(life)) => Some(self.lock(&life)),
            _ => None,
        };
        let (cycle, signal) = match facts.kind {
            InversionKind::Cycle => (CycleKind::Locks, None),
            InversionKind::Classes => (CycleKind::Classes, None),
            InversionKind::Handler { signal, .. } => (CycleKind::Handler, Some(signal)),
        };
        Details {
            level: Some(facts.level()),
            rule: Some(facts.rule().id().into()),
            cause: Some(self.cause_of_order(facts)),
            suppressed: None,
            order: Some(LockOrder {
                cycle,
                signal,
                handler: facts.handler.map(|thread| self.thread(thread)),
                excuse: facts.excuse.map(|excuse| match excuse {
                    ExcuseFacts::OneThread => OrderExcuse::OneThread,
                    ExcuseFacts::Gate(_) => OrderExcuse::Gate,
                    ExcuseFacts::Alone => OrderExcuse::Alone,
                    ExcuseFacts::OtherInstances => OrderExcuse::OtherInstances,
                }),
                gate,
                steps,
            }),
            violation: None,
        }
    }

    fn step(&mut self, facts: &StepFacts) -> OrderStep {
        OrderStep {
            thread: self.thread(facts.thread),
            holds: self.lock(&facts.from),
            holds_how: facts.from_mode.into(),
            tried: facts.tried,
            timed: facts.timed,
            acquired: self.stack(facts.from_stack),
            asks: self.lock(&facts.to),
            asks_how: facts.to_mode.into(),
            asked: self.stack(facts.to_stack),
            gates: facts.gates.iter().map(|gate| self.lock(gate)).collect(),
            alone: facts.alone,
        }
    }

    /// Names all that a violation speaks of.
    pub fn violation(&mut self, facts: &ViolationFacts) -> Details {
        let violation = &facts.violation;
        let thread = self.thread(ThreadFacts { serial: violation.thread, tid: violation.tid });
        let other = ThreadFacts { serial: 0, tid: violation.other_tid };
        // Two rules have three places: the number is the stack of one of them.
        let acquired = match violation.rule {
            Rule::JoinHolding | Rule::ConditionHolding => {
                u32::try_from(violation.number).unwrap_or(0)
            }
            _ => 0,
        };
        let lock = match &facts.lock {
            Some(life) => self.lock(life),
            None if violation.address == 0 => LockIdentity::default(),
            None => LockIdentity {
                name: format!("lock at {:#x}", violation.address),
                address: violation.address,
                ..LockIdentity::default()
            },
        };
        Details {
            level: Some(facts.level()),
            rule: Some(violation.rule.id().into()),
            cause: Some(self.cause_of_violation(facts)),
            suppressed: None,
            order: None,
            violation: Some(RuleViolation {
                thread,
                lock,
                stack: self.stack(violation.stack),
                acquired: self.stack(acquired),
                other: (violation.other_tid != 0).then(|| self.thread(other)),
                earlier: self.stack(violation.other_stack),
                other_lock: facts.other.as_ref().map(|life| self.lock(life)),
                number: violation.number,
            }),
        }
    }

    /// Returns a lock by its names.
    pub fn lock(&mut self, life: &LockLife) -> LockIdentity {
        let facts = life.facts(&self.ledger);
        let name = self.names.lock(&facts);
        let class = if life.module != 0 { name.clone() } else { class_name(self.names, &facts) };
        let type_name = type_name(life.kind, life.attributes);
        LockIdentity { name, type_name, class, address: life.address }
    }

    /// Returns a stack by its id.
    pub fn stack(&mut self, id: u32) -> Option<Stack> {
        let stored = self.ledger.stack(id)?;
        let returns: Vec<u64> = stored.returns().collect();
        Some(self.names.stack(&returns, stored.end))
    }

    /// Names a thread as far as it is known.
    #[must_use]
    pub fn thread(&self, facts: ThreadFacts) -> ThreadIdentity {
        ThreadIdentity { tid: facts.tid, name: (self.threads)(facts) }
    }

    /// Hashes the places of a stack as they are in every process of the program.
    fn places(&mut self, id: u32, most: usize, into: &mut impl Hasher) {
        let stack = self.stack(id);
        for frame in stack.iter().flat_map(|stack| stack.frames.iter().take(most)) {
            place(frame).hash(into);
        }
    }

    fn class(&mut self, life: &LockLife) -> u64 {
        let mut hasher = DefaultHasher::new();
        life.kind.hash(&mut hasher);
        if life.module != 0 {
            self.names.lock(&life.facts(&self.ledger)).hash(&mut hasher);
        } else if life.init_stack != 0 || life.first_stack != 0 {
            let id = if life.init_stack != 0 { life.init_stack } else { life.first_stack };
            self.places(id, usize::MAX, &mut hasher);
        } else {
            life.address.hash(&mut hasher);
        }
        hasher.finish()
    }

    fn cause_of_order(&mut self, facts: &OrderFacts) -> String {
        let mut classes: Vec<u64> = facts.steps.iter().map(|step| self.class(&step.from)).collect();
        classes.sort_unstable();
        let mut hasher = DefaultHasher::new();
        let is_handler = matches!(facts.kind, InversionKind::Handler { .. });
        (self.program, Rule::LockOrderInversion.id(), is_handler, classes).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn cause_of_violation(&mut self, facts: &ViolationFacts) -> String {
        let mut hasher = DefaultHasher::new();
        (self.program, facts.violation.rule).hash(&mut hasher);
        match &facts.lock {
            Some(life) => self.class(life).hash(&mut hasher),
            None if facts.violation.stack == 0 => facts.violation.address.hash(&mut hasher),
            None => {}
        }
        self.places(facts.violation.stack, PLACE, &mut hasher);
        self.places(facts.violation.other_stack, PLACE, &mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// Returns where a frame is, wherever the loader put its file, and by whichever of its paths the
/// file is known: `/lib` may be a link, of which the kernel knows nothing.
fn place(frame: &Frame) -> (Option<&str>, u64) {
    let name = |path: &'_ str| path.rfind('/').map_or(0, |slash| slash + 1);
    match frame.module_offset {
        Some(offset) => (frame.module.as_deref().map(|path| &path[name(path)..]), offset),
        None => (None, frame.address),
    }
}
