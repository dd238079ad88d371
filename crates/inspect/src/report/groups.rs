//! Locks that are one row: elements of one array, and those that one place made.
//!
//! # Role
//! Locks of one kind form a group where [their names](super::family) differ by an index, a number or
//! an address alone. What has no name of its own is named by the place that initialised it, or that
//! used it first; there the place must be the same as well, to the line, or to the instruction where
//! lines are not known: two locks that one function makes are two things. Names that a program gives
//! are taken as they are.
//!
//! Of thousands of locks that are on the heap the names are worked out once for each stack.

use super::account::is_running;
use super::family::family;
use super::model::{LockTotals, Sort};
use super::names::{LockFacts, Names, attribute_names, given_name};
use super::rows::{ReportRow, add};
use crate::stack::Stack;
use crate::symbols::{python_lock, site};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{LockRecord, ObjectKind};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// The fewest locks that are a group, and the fewest rows that it takes the place of.
const LOCKS: u64 = 3;
const ROWS: usize = 2;

/// Locks that are one row.
#[derive(Debug)]
pub(super) struct LockGroup {
    /// The row, with the name that its locks have in common.
    pub(super) row: ReportRow,
    /// The rows of its locks, as places in the list of all, in the order of that.
    pub(super) rows: Vec<usize>,
}

/// What the locks of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LockFamily {
    kind: ObjectKind,
    /// What it is called besides its kind: attributes, and whose it is.
    attributes: Vec<&'static str>,
    noun: Option<&'static str>,
    name: String,
    place: Option<FamilyPlace>,
}

/// A place in the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FamilyPlace {
    Line(Option<String>, String, u32),
    Instruction(u64),
}

/// What the records of locks have in common that surely are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LockClass {
    kind: ObjectKind,
    attributes: u16,
    noun: Option<&'static str>,
    stack: u32,
}

/// Returns the groups among the rows of locks, which are in the order of `sort`.
pub(super) fn gather(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    rows: &[ReportRow],
    sort: Sort,
) -> Vec<LockGroup> {
    // The others have nothing to list.
    if rows.iter().take_while(|row| row.key(sort) != 0).count() < ROWS {
        return Vec::new();
    }
    let mut families = Families { ledger, names, stacks: stacks(ledger), known: HashMap::new() };
    let mut members: HashMap<LockFamily, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(family) = families.of(row) {
            members.entry(family).or_default().push(at);
        }
    }
    let is_group = |members: &[usize]| {
        let locks = members.iter().fold(LockTotals::default(), |mut sum, &at| {
            add(&mut sum, &rows[at].totals);
            sum
        });
        let listed = members.iter().filter(|&&at| rows[at].key(sort) != 0).count();
        locks.locks >= LOCKS && listed >= ROWS
    };
    let groups = members.into_iter().filter(|(_, members)| is_group(members));
    let groups = groups.map(|(family, members)| {
        let mut row = rows[members[0]].clone();
        members[1..].iter().for_each(|&at| row.absorb(&rows[at]));
        row.called = Some(family.name);
        LockGroup { row, rows: members }
    });
    groups.collect()
}

/// Returns the stacks of the threads that run, by their lowest addresses.
fn stacks(ledger: &Ledger<'_>) -> Vec<(u64, u64)> {
    let running = ledger.threads().filter(is_running);
    let mut stacks: Vec<(u64, u64)> = running
        .map(|thread| {
            let ends = [&thread.record.stack_low, &thread.record.stack_high];
            let [low, high] = ends.map(|end| end.load(Relaxed));
            (low, high)
        })
        .filter(|&(low, _)| low != 0)
        .collect();
    stacks.sort_unstable();
    stacks
}

struct Families<'l, 'n> {
    ledger: &'l Ledger<'l>,
    names: &'n mut dyn Names,
    stacks: Vec<(u64, u64)>,
    known: HashMap<LockClass, Option<LockFamily>>,
}

impl Families<'_, '_> {
    /// Returns the family of the lock of a row; `None` if it is like no other.
    fn of(&mut self, row: &ReportRow) -> Option<LockFamily> {
        let record = self.ledger.lock(row.members.all()[0])?;
        let noun = row.futex.as_ref().map(|futex| futex.noun);
        // What has no address is the row of a place already.
        if row.futex.as_ref().is_some_and(|futex| futex.address.is_none()) {
            return None;
        }
        let Some(class) = self.class(record, noun) else { return self.named(row, record) };
        if let Some(known) = self.known.get(&class) {
            return known.clone();
        }
        let family = self.named(row, record);
        self.known.insert(class, family.clone());
        family
    }

    /// Returns what is enough to know the family by, of a lock whose own address has no name.
    fn class(&self, record: &LockRecord, noun: Option<&'static str>) -> Option<LockClass> {
        let (kind, _, attributes) = record.shape();
        let address = record.address.load(Relaxed);
        let below = self.stacks.partition_point(|&(low, _)| low <= address);
        let on_stack = below.checked_sub(1).is_some_and(|at| address < self.stacks[at].1);
        let is_named = record.module.load(Relaxed) != 0 || on_stack;
        if is_named || given_name(self.ledger, record).is_some() {
            return None;
        }
        let [init, first] =
            [&record.init_stack, &record.first_stack].map(|stack| stack.load(Relaxed));
        let stack = if init == 0 { first } else { init };
        (stack != 0).then_some(LockClass { kind, attributes, noun, stack })
    }

    fn named(&mut self, row: &ReportRow, record: &LockRecord) -> Option<LockFamily> {
        let mut facts = LockFacts::of(self.ledger, record);
        let name = match &row.futex {
            Some(futex) => futex.name(self.names, &mut facts),
            None => self.names.lock(&facts),
        };
        let common = family(&name);
        let is_told = facts.given.is_some() || facts.module != 0;
        let place = match is_told {
            // A variable that is one lock is like no other.
            true if facts.given.is_none() && common == name => return None,
            true => None,
            false => Some(self.place(&facts)?),
        };
        Some(LockFamily {
            kind: facts.kind,
            attributes: attribute_names(facts.attributes),
            noun: facts.noun,
            name: common,
            place,
        })
    }

    /// Returns the place that a lock is named by.
    fn place(&mut self, facts: &LockFacts) -> Option<FamilyPlace> {
        let chain = if facts.init.is_empty() { &facts.first } else { &facts.init };
        let stack: Stack = self.names.stack(chain, 0);
        // Of all locks that a program in Python has the interpreter's code makes one kind.
        if python_lock(&stack).is_some() {
            return None;
        }
        let frame = site(&stack)?;
        Some(match (&frame.file, frame.line) {
            (Some(file), Some(line)) => {
                FamilyPlace::Line(frame.function.clone(), file.clone(), line)
            }
            _ => FamilyPlace::Instruction(frame.address),
        })
    }
}
