//! Variables that are guards of a lock, by debug information.
//!
//! # Role
//! Types of guards are known by their names, and in each the member that points at its lock. A
//! variable of such a type, or with a member of one, guards the lock that this points into. That
//! says little by itself: without optimisation a variable is in scope that was moved from or
//! dropped. It confirms what the code shows, and gives it a name.

use super::Symbolizer;
use super::debug_file::debug_file;
use super::quiet::quietly;
use super::variables::{FrameValues, Part, VariableValue, Variables, sections, text};
use crate::modules::CodePlace;
use crate::stack::CodeAddress;
use gimli::constants as dw;
use gimli::{AttributeValue, UnitOffset};
use object::Object;

/// How deep guards are looked for in the members of a variable.
const MOST_DEPTH: u32 = 4;
/// The members of one variable that are looked at.
const MOST_MEMBERS: u32 = 400;

/// A type of guard: how its name begins, up to its parameters; the members that point at the lock;
/// and those that say whether it has the lock.
type GuardType = (&'static str, &'static [&'static str], &'static [&'static str]);

const GUARDS: &[GuardType] = &[
    // The standard library of C++: libstdc++ and libc++.
    ("lock_guard", &["_M_device", "__m_"], &[]),
    ("scoped_lock", &["_M_device", "__m_"], &[]),
    ("unique_lock", &["_M_device", "__m_"], &["_M_owns", "__owns_"]),
    ("shared_lock", &["_M_pm", "__m_"], &["_M_owns", "__owns_"]),
    // abseil.
    ("MutexLock", &["mu_"], &[]),
    ("ReaderMutexLock", &["mu_"], &[]),
    ("WriterMutexLock", &["mu_"], &[]),
    ("ReleasableMutexLock", &["mu_"], &[]),
    // Rust: std, lock_api with parking_lot, lockstead.
    ("MutexGuard", &["lock", "mutex", "inner"], &[]),
    ("RwLockReadGuard", &["inner_lock", "lock", "rwlock"], &[]),
    ("RwLockWriteGuard", &["lock", "rwlock"], &[]),
    ("RwLockUpgradableReadGuard", &["rwlock"], &[]),
    ("ReentrantLockGuard", &["lock"], &[]),
    ("ReentrantMutexGuard", &["remutex"], &[]),
    ("MappedMutexGuard", &["raw"], &[]),
];

impl Symbolizer {
    /// Returns the name of a variable of the function at `at` that guards the lock at `lock`, if
    /// debug information has one in scope there: `frame` has the registers and the memory, and at
    /// most so many `entries` of debug information are read, which are counted down.
    pub fn guard_variable(
        &mut self,
        at: CodeAddress,
        frame: &FrameValues<'_>,
        lock: u64,
        entries: &mut usize,
    ) -> Option<String> {
        let CodePlace::File { module: Some(module), bias, .. } = self.modules.place(at.lookup())
        else {
            return None;
        };
        let file = object::File::parse(module.bytes()).ok()?;
        let separate = match file.section_by_name(".debug_info") {
            Some(_) => None,
            None => Some(debug_file(&file, module.path())?),
        };
        let bytes = separate.as_deref().unwrap_or(module.bytes());
        let stated = at.lookup().wrapping_sub(bias);
        // The reader checks what it reads; a panic in it costs this name and nothing else.
        quietly(|| named_in(bytes, stated, bias, frame, lock, entries)).ok().flatten()
    }
}

fn named_in(
    bytes: &[u8],
    pc: u64,
    bias: u64,
    frame: &FrameValues<'_>,
    lock: u64,
    entries: &mut usize,
) -> Option<String> {
    let variables = Variables::at(sections(bytes)?, pc, entries)?;
    // The innermost scope is the last.
    for variable in variables.all.iter().rev() {
        let Some(value) = variables.value(variable, frame, bias) else { continue };
        let places = GuardPlaces::of(&variables, variable.type_);
        if places.found.iter().any(|place| place.guards(&variables, &value, frame, lock)) {
            return Some(variable.name.clone());
        }
    }
    None
}

/// Where in a variable a guard has what.
struct GuardPlace {
    /// The offset of the pointer at the lock.
    pointer: u64,
    /// The type that it points at.
    pointee: Option<UnitOffset>,
    /// The offset of the byte that says whether it has the lock.
    owns: Option<u64>,
}

impl GuardPlace {
    fn guards(
        &self,
        variables: &Variables<'_>,
        value: &VariableValue,
        frame: &FrameValues<'_>,
        lock: u64,
    ) -> bool {
        if let Some(owns) = self.owns
            && value.read(owns, 1, frame) != Some(1)
        {
            return false;
        }
        let Some(inside) = value.read(self.pointer, 8, frame).and_then(|at| lock.checked_sub(at))
        else {
            return false;
        };
        let Some(pointee) = self.pointee else { return inside == 0 };
        // What a lock protects may have a lock of its own.
        let is_data = |member: &Part<'_>| {
            let size = variables.size(member.type_).unwrap_or(0);
            member.name == Some("data") && (member.at..member.at + size).contains(&inside)
        };
        inside < variables.size(pointee).unwrap_or(1).max(1)
            && !variables.parts(pointee).iter().any(is_data)
    }
}

struct GuardPlaces {
    found: Vec<GuardPlace>,
    left: u32,
}

impl GuardPlaces {
    /// Returns those in a variable of this type.
    fn of(variables: &Variables<'_>, type_: UnitOffset) -> GuardPlaces {
        let mut places = GuardPlaces { found: Vec::new(), left: MOST_MEMBERS };
        places.look(variables, type_, 0, MOST_DEPTH);
        places
    }

    fn look(&mut self, variables: &Variables<'_>, type_: UnitOffset, at: u64, depth: u32) {
        let Some(type_) = variables.plain(type_) else { return };
        let parts = variables.parts(type_);
        let name = variables.type_name(type_).unwrap_or_default();
        let base = name.split('<').next().unwrap_or_default();
        if let Some((_, pointers, flags)) = GUARDS.iter().find(|(known, ..)| *known == base) {
            let named = |names: &[&str]| {
                parts.iter().find(|part| part.name.is_some_and(|name| names.contains(&name)))
            };
            let pointer = named(pointers).and_then(|part| {
                let pointee = variables.pointee(part.type_)?;
                Some((at + part.at, pointee))
            });
            if let Some((pointer, pointee)) = pointer {
                let owns = named(flags).map(|part| at + part.at);
                self.found.push(GuardPlace { pointer, pointee, owns });
                return;
            }
        }
        if depth == 0 {
            return;
        }
        for part in parts {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            self.look(variables, part.type_, at.saturating_add(part.at), depth - 1);
        }
    }
}

impl<'d> Variables<'d> {
    /// Returns the type without names and qualifiers around it.
    fn plain(&self, type_: UnitOffset) -> Option<UnitOffset> {
        let mut at = type_;
        for _ in 0..16 {
            let entry = self.unit.entry(at).ok()?;
            match entry.tag() {
                dw::DW_TAG_typedef | dw::DW_TAG_const_type | dw::DW_TAG_volatile_type => {
                    at = self.reference(&entry, dw::DW_AT_type)?;
                }
                _ => return Some(at),
            }
        }
        None
    }

    /// Returns what a pointer of this type points at, if it is one: `Some(None)` for what has no
    /// type.
    fn pointee(&self, type_: UnitOffset) -> Option<Option<UnitOffset>> {
        let entry = self.unit.entry(self.plain(type_)?).ok()?;
        let pointers =
            [dw::DW_TAG_pointer_type, dw::DW_TAG_reference_type, dw::DW_TAG_rvalue_reference_type];
        let is_pointer = pointers.contains(&entry.tag());
        is_pointer.then(|| self.reference(&entry, dw::DW_AT_type).and_then(|at| self.plain(at)))
    }

    fn type_name(&self, type_: UnitOffset) -> Option<&'d str> {
        text(&self.dwarf, &self.unit, &self.unit.entry(type_).ok()?)
    }

    fn size(&self, type_: UnitOffset) -> Option<u64> {
        let entry = self.unit.entry(self.plain(type_)?).ok()?;
        entry.attr_value(dw::DW_AT_byte_size)?.udata_value()
    }

    /// Returns the members of a type, and what it is derived from.
    fn parts(&self, type_: UnitOffset) -> Vec<Part<'d>> {
        let mut parts = Vec::new();
        let Ok(mut entries) = self.unit.entries_at_offset(type_) else { return parts };
        let structures = [dw::DW_TAG_structure_type, dw::DW_TAG_class_type, dw::DW_TAG_inheritance];
        let is_structure = |tag| structures.contains(&tag);
        match entries.next_dfs() {
            Ok(Some(entry)) if is_structure(entry.tag()) && entry.has_children() => {}
            _ => return parts,
        }
        let mut next = entries.next_entry().map(|_| entries.current().cloned());
        while let Ok(Some(entry)) = next {
            if matches!(entry.tag(), dw::DW_TAG_member | dw::DW_TAG_inheritance)
                && let Some(type_) = self.reference(&entry, dw::DW_AT_type)
                && let Some(at) = entry
                    .attr_value(dw::DW_AT_data_member_location)
                    .as_ref()
                    .and_then(AttributeValue::udata_value)
            {
                parts.push(Part { name: text(&self.dwarf, &self.unit, &entry), at, type_ });
            }
            if parts.len() >= MOST_MEMBERS as usize {
                break;
            }
            next = entries.next_sibling().map(|entry| entry.cloned());
        }
        parts
    }
}
