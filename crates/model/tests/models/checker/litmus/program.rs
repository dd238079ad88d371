//! Litmus tests as text, and all that the checker finds of one.
//!
//! # The text
//! Threads are separated by `|`, steps by blanks. `x` to `w` are atomic, `d` and `e` plain;
//! all begin with 0. What a step reads goes to the next register of its thread.
//!
//! | step | meaning |
//! |---|---|
//! | `x=1.rel` | a store |
//! | `x.acq` | a load |
//! | `x+1.ar` | a fetch-add |
//! | `x~1.ar` | an exchange |
//! | `x?0:1.ar,acq` | a compare-exchange of 0 by 1; orderings of success and failure |
//! | `F.sc` | a fence |
//! | `d=1`, `d` | a plain store, a plain load |
//! | `==1` | the thread ends here unless it read this last |
//!
//! An outcome is what the registers hold in the end, thread by thread, `:`, and what the atomic
//! locations hold; a register that was not reached holds 0.

use lockstead_model::{Cell, Config, Coverage, FailureKind, Ordering, Scenario, U32, fence};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

pub(super) const ATOMICS: &str = "xyzw";
pub(super) const PLAIN: &str = "de";
const THREADS: usize = 4;
const REGISTERS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Store(usize, u32, Ordering),
    Load(usize, Ordering),
    Add(usize, u32, Ordering),
    Swap(usize, u32, Ordering),
    Exchange(usize, [u32; 2], [Ordering; 2]),
    Fence(Ordering),
    Write(usize, u32),
    Read(usize),
    Guard(u32),
}

impl Step {
    /// Returns the step that this text stands for.
    ///
    /// # Panics
    /// If it stands for none.
    fn parse(text: &str) -> Step {
        Step::from(text).unwrap_or_else(|| panic!("no step: {text}"))
    }

    fn from(text: &str) -> Option<Step> {
        if let Some(value) = text.strip_prefix("==") {
            return Some(Step::Guard(value.parse().ok()?));
        }
        if let Some(order) = text.strip_prefix("F.") {
            return Some(Step::Fence(ordering(order)?));
        }
        let place = text.chars().next()?;
        if let Some(location) = PLAIN.find(place) {
            return match text[1..].strip_prefix('=') {
                Some(value) => Some(Step::Write(location, value.parse().ok()?)),
                None => (text.len() == 1).then_some(Step::Read(location)),
            };
        }
        let location = ATOMICS.find(place)?;
        let (what, orders) = text[1..].split_once('.')?;
        let (first, second) = match orders.split_once(',') {
            Some((success, failure)) => (ordering(success)?, Some(ordering(failure)?)),
            None => (ordering(orders)?, None),
        };
        if what.is_empty() {
            return Some(Step::Load(location, first));
        }
        let values = &what[1..];
        Some(match what.chars().next()? {
            '=' => Step::Store(location, values.parse().ok()?, first),
            '+' => Step::Add(location, values.parse().ok()?, first),
            '~' => Step::Swap(location, values.parse().ok()?, first),
            '?' => {
                let (old, new) = values.split_once(':')?;
                Step::Exchange(location, [old.parse().ok()?, new.parse().ok()?], [first, second?])
            }
            _ => return None,
        })
    }

    /// Tells whether what it reads goes to a register.
    pub(super) fn reads(self) -> bool {
        !matches!(self, Step::Store(..) | Step::Fence(_) | Step::Write(..) | Step::Guard(_))
    }

    /// Returns the atomic location that it touches.
    pub(super) fn atomic(self) -> Option<usize> {
        match self {
            Step::Store(at, ..)
            | Step::Load(at, _)
            | Step::Add(at, ..)
            | Step::Swap(at, ..)
            | Step::Exchange(at, ..) => Some(at),
            _ => None,
        }
    }
}

fn ordering(text: &str) -> Option<Ordering> {
    Some(match text {
        "rlx" => Relaxed,
        "acq" => Acquire,
        "rel" => Release,
        "ar" => AcqRel,
        "sc" => SeqCst,
        _ => return None,
    })
}

/// A litmus test: what each thread does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) threads: &'static [&'static [Step]],
}

/// What the shared value of a test holds.
#[derive(Debug)]
struct Shared {
    atomics: [U32; ATOMICS.len()],
    plain: [Cell<u32>; PLAIN.len()],
    registers: [[std::cell::Cell<u32>; REGISTERS]; THREADS],
}

impl Program {
    /// Returns the program with this text.
    ///
    /// # Panics
    /// If it is none.
    pub(super) fn parse(text: &str) -> Program {
        // The threads of a scenario live as long as the program.
        let threads: Vec<&'static [Step]> = text
            .split('|')
            .map(|thread| {
                let steps: Vec<Step> = thread.split_whitespace().map(Step::parse).collect();
                assert!(steps.iter().filter(|step| step.reads()).count() <= REGISTERS, "{text}");
                &*steps.leak()
            })
            .collect();
        assert!(threads.len() <= THREADS, "{text}");
        Program { threads: threads.leak() }
    }

    /// Returns the atomic locations that it touches.
    pub(super) fn atomics(self) -> BTreeSet<usize> {
        self.threads.iter().flat_map(|steps| steps.iter().filter_map(|s| s.atomic())).collect()
    }

    /// Returns all outcomes that the checker finds; `None` if it finds a data race.
    ///
    /// # Panics
    /// If the reductions make a difference, where `unreduced`.
    pub(super) fn outcomes(self, unreduced: bool) -> Option<BTreeSet<String>> {
        let reduced = self.explore(true);
        if unreduced {
            let all = self.explore(false);
            assert_eq!(reduced, all, "the reductions lose or invent an outcome: {self:?}");
        }
        reduced
    }

    fn explore(self, reduce: bool) -> Option<BTreeSet<String>> {
        let outcomes = Rc::new(RefCell::new(BTreeSet::new()));
        let into = Rc::clone(&outcomes);
        let atomics = self.atomics();
        let scenario = Scenario::new(|| Shared {
            atomics: [const { U32::ZERO }; ATOMICS.len()],
            plain: [const { Cell::new(0) }; PLAIN.len()],
            registers: Default::default(),
        });
        let scenario = (0..).zip(self.threads).fold(scenario, |scenario, (me, steps)| {
            scenario.thread(move |shared| shared.run(me, steps))
        });
        let scenario = scenario.after(move |shared| {
            let registers = self.threads.iter().zip(&shared.registers).flat_map(|(steps, all)| {
                let read = steps.iter().filter(|step| step.reads()).count();
                all[..read].iter().map(|register| register.get())
            });
            let mut outcome: String = registers.map(|value| value.to_string()).collect();
            outcome.push(':');
            for &atomic in &atomics {
                outcome += &shared.atomics[atomic].load(Relaxed).to_string();
            }
            into.borrow_mut().insert(outcome);
        });
        match scenario.check(&Config::new().reduce(reduce)) {
            Ok(stats) => assert_eq!(stats.coverage, Coverage::Complete),
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::Race, "{self:?}");
                return None;
            }
        }
        Some(outcomes.take())
    }
}

impl Shared {
    fn run(&self, me: usize, steps: &'static [Step]) {
        let mut registers = self.registers[me].iter();
        let mut last = 0;
        for &step in steps {
            let read = match step {
                Step::Guard(value) => {
                    if last != value {
                        return;
                    }
                    None
                }
                Step::Store(at, value, order) => {
                    self.atomics[at].store(value, order);
                    None
                }
                Step::Fence(order) => {
                    fence(order);
                    None
                }
                Step::Write(at, value) => {
                    self.plain[at].set(value);
                    None
                }
                Step::Load(at, order) => Some(self.atomics[at].load(order)),
                Step::Add(at, value, order) => Some(self.atomics[at].fetch_add(value, order)),
                Step::Swap(at, value, order) => Some(self.atomics[at].swap(value, order)),
                Step::Exchange(at, [old, new], [success, failure]) => {
                    let result = self.atomics[at].compare_exchange(old, new, success, failure);
                    Some(result.unwrap_or_else(|found| found))
                }
                Step::Read(at) => Some(self.plain[at].get()),
            };
            if let (Some(value), true) = (read, step.reads()) {
                registers.next().expect("as many as are read").set(value);
                last = value;
            }
        }
    }
}
