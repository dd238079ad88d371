//! Which member of a variable lies at an offset, by debug information.
//!
//! # Role
//! A symbol says where a variable lies and how long it is, and nothing of what is in it. Debug
//! information has its type: elements of arrays, members of structures, down to the lock. Only what is
//! said there for this very variable is taken: an offset in memory of the heap may be one in any type.
//!
//! Where two things lie at one offset, as in a union, the name ends in front of them; and where the
//! size of the type is not that of the symbol, nothing is said.
//!
//! # Progress
//! The entries of a file are read once, and counted; the members of the types of a variable are.

use super::debug_file::debug_file;
use super::quiet::quietly;
use super::variables::{Slice, sections, text};
use crate::module::Module;
use gimli::constants as dw;
use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Operation, Unit, UnitOffset,
};
use memmap2::Mmap;
use object::Object;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

/// The most entries of a file that are read, some seconds' worth: more than the biggest programs
/// have that people watch.
const MOST_ENTRIES: u64 = 100_000_000;
/// The members of all types of one variable, and how deep they are looked at.
const MOST_MEMBERS: usize = 20_000;
const MOST_DEPTH: u32 = 64;

/// Types that are a lock, however many members they have: as they are called without parameters and
/// namespaces. Whatever lies in such a type and not in its `data` is the lock itself. In one with
/// parameters that has its data elsewhere another lock may lie, so that the way goes on.
const LOCKS: &[&str] = &[
    // The C library.
    "pthread_mutex_t",
    "pthread_rwlock_t",
    "pthread_spinlock_t",
    "pthread_cond_t",
    "pthread_barrier_t",
    "sem_t",
    "mtx_t",
    "cnd_t",
    // C++.
    "mutex",
    "timed_mutex",
    "recursive_mutex",
    "recursive_timed_mutex",
    "shared_mutex",
    "shared_timed_mutex",
    "condition_variable",
    "condition_variable_any",
    "counting_semaphore",
    "atomic",
    // Rust, and libraries of C++ with types of these names.
    "Mutex",
    "RwLock",
    "Condvar",
    "ReentrantLock",
    "ReentrantMutex",
    "RawMutex",
    "RawRwLock",
    "SharedMutex",
    "AtomicU32",
    "AtomicI32",
    "AtomicU64",
    "AtomicUsize",
    "AtomicPtr",
    "Once",
    "Semaphore",
];
/// Types of C++ that have no data in spite of their parameters.
const WITHOUT_DATA: &[&str] = &["counting_semaphore", "atomic"];
/// How the types of lockstead's library for C begin.
const OWN: &str = "lks_";

/// What a type has in it.
#[derive(Debug)]
enum Shape {
    /// It has nothing that has a name of its own, or more than one thing at an offset.
    Whole,
    /// A lock, with what it protects where that lies inside.
    Lock(Option<ShapePart>),
    Array {
        stride: u64,
        counts: Vec<u64>,
        element: Rc<Shape>,
    },
    Parts(Vec<ShapePart>),
}

#[derive(Debug)]
struct ShapePart {
    /// The name of a member; `None` of a base, and of a structure without a name.
    name: Option<String>,
    at: u64,
    size: u64,
    shape: Rc<Shape>,
}

impl ShapePart {
    fn holds(&self, offset: u64) -> bool {
        self.at <= offset && offset - self.at < self.size
    }
}

/// The variables of one file that have debug information.
pub(super) struct DebugVariables {
    /// The file that has it, if that is another one.
    separate: Option<Mmap>,
    /// Unit and entry, by stated address.
    by_address: HashMap<u64, (DebugInfoOffset, UnitOffset)>,
    /// The types that were looked at, by the address of the variable.
    shapes: HashMap<u64, Option<Rc<Shape>>>,
}

impl DebugVariables {
    /// Reads where the variables of a file lie.
    pub(super) fn of(module: &Module) -> Self {
        let separate = separate(module);
        let bytes = separate.as_deref().unwrap_or(module.bytes());
        // The reader checks what it reads; a panic in it costs these names and nothing else.
        let by_address = quietly(|| addresses(bytes)).ok().flatten().unwrap_or_default();
        DebugVariables { separate, by_address, shapes: HashMap::new() }
    }

    /// Returns what lies at an offset in the variable of `size` bytes at a stated address:
    /// `[3].mutex`, and the offset in that.
    pub(super) fn member(
        &mut self,
        module: &Module,
        (start, size): (u64, u64),
        offset: u64,
    ) -> Option<(String, u64)> {
        let shape = match self.shapes.get(&start) {
            Some(known) => known.clone(),
            None => {
                let bytes = self.separate.as_deref().unwrap_or(module.bytes());
                let &(unit, entry) = self.by_address.get(&start)?;
                let shape = quietly(|| shape_of(bytes, unit, entry, size)).ok().flatten();
                self.shapes.insert(start, shape.clone());
                shape
            }
        };
        let (way, inside, is_lock) = path(shape?, offset);
        // What begins with a lock that no type tells of is memory for one.
        (is_lock || offset != 0).then_some((way, inside))
    }
}

/// Returns the file with the debug information of a module, if that is another one.
fn separate(module: &Module) -> Option<Mmap> {
    let file = object::File::parse(module.bytes()).ok()?;
    match file.section_by_name(".debug_info") {
        Some(_) => None,
        None => debug_file(&file, module.path()),
    }
}

/// Returns where each variable is described that has one place in memory.
fn addresses(bytes: &[u8]) -> Option<HashMap<u64, (DebugInfoOffset, UnitOffset)>> {
    let dwarf = sections(bytes)?;
    let mut found = HashMap::new();
    let mut headers = dwarf.units();
    let mut left = MOST_ENTRIES;
    while let Ok(Some(header)) = headers.next() {
        let Some(at) = header.debug_info_offset() else { continue };
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            left = left.checked_sub(1)?;
            if entry.tag() == dw::DW_TAG_variable
                && let Some(address) = address(&dwarf, &unit, entry)
            {
                found.insert(address, (at, entry.offset()));
            }
        }
    }
    Some(found)
}

/// Returns the address of a variable whose place is nothing but one.
fn address<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    unit: &Unit<Slice<'d>>,
    entry: &DebuggingInformationEntry<Slice<'d>>,
) -> Option<u64> {
    let Some(AttributeValue::Exprloc(place)) = entry.attr_value(dw::DW_AT_location) else {
        return None;
    };
    let mut operations = place.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(address)
}

fn shape_of(
    bytes: &[u8],
    unit: DebugInfoOffset,
    entry: UnitOffset,
    size: u64,
) -> Option<Rc<Shape>> {
    let dwarf = sections(bytes)?;
    let header = dwarf.unit_header(unit).ok()?;
    let unit = dwarf.unit(header).ok()?;
    let entry = unit.entry(entry).ok()?;
    let mut types =
        Types { dwarf: &dwarf, unit: &unit, known: HashMap::new(), members: MOST_MEMBERS };
    let type_ = types.type_of(&entry).or_else(|| {
        let declared = types.reference(&entry, dw::DW_AT_specification)?;
        types.type_of(&unit.entry(declared).ok()?)
    })?;
    let (shape, its_size) = types.shape(type_, MOST_DEPTH)?;
    (its_size == size).then_some(shape)
}

/// The types of one unit.
struct Types<'u, 'd> {
    dwarf: &'u Dwarf<Slice<'d>>,
    unit: &'u Unit<Slice<'d>>,
    known: HashMap<UnitOffset, Option<(Rc<Shape>, u64)>>,
    /// How many members may still be looked at.
    members: usize,
}

impl<'d> Types<'_, 'd> {
    fn reference(
        &self,
        entry: &DebuggingInformationEntry<Slice<'d>>,
        name: gimli::DwAt,
    ) -> Option<UnitOffset> {
        match entry.attr_value(name)? {
            AttributeValue::UnitRef(at) => Some(at),
            AttributeValue::DebugInfoRef(at) => at.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    fn type_of(&self, entry: &DebuggingInformationEntry<Slice<'d>>) -> Option<UnitOffset> {
        self.reference(entry, dw::DW_AT_type)
    }

    /// Returns what is in a type, and its size.
    fn shape(&mut self, at: UnitOffset, depth: u32) -> Option<(Rc<Shape>, u64)> {
        if let Some(known) = self.known.get(&at) {
            return known.clone();
        }
        let shape = self.read(at, depth.checked_sub(1)?);
        self.known.insert(at, shape.clone());
        shape
    }

    fn read(&mut self, at: UnitOffset, depth: u32) -> Option<(Rc<Shape>, u64)> {
        let entry = self.unit.entry(at).ok()?;
        let size = entry.attr_value(dw::DW_AT_byte_size).and_then(|size| size.udata_value());
        let name = text(self.dwarf, self.unit, &entry).unwrap_or_default();
        let base = name.split('<').next().unwrap_or_default();
        let is_lock = LOCKS.contains(&base) || name.starts_with(OWN);
        match entry.tag() {
            dw::DW_TAG_typedef
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_atomic_type => {
                let (shape, size) = self.shape(self.type_of(&entry)?, depth)?;
                Some((if is_lock { Rc::new(Shape::Lock(None)) } else { shape }, size))
            }
            dw::DW_TAG_array_type => self.array(&entry, depth),
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type => {
                let mut parts = self.parts(at, depth)?;
                let data = parts.iter().position(|part| part.name.as_deref() == Some("data"));
                let is_whole = !name.contains('<') || WITHOUT_DATA.contains(&base);
                let shape = match data {
                    Some(data) if is_lock => Shape::Lock(Some(parts.swap_remove(data))),
                    None if is_lock && is_whole => Shape::Lock(None),
                    _ => Shape::Parts(parts),
                };
                Some((Rc::new(shape), size?))
            }
            // Which of its members a union has just now, the program knows.
            _ => Some((Rc::new(if is_lock { Shape::Lock(None) } else { Shape::Whole }), size?)),
        }
    }

    fn array(
        &mut self,
        entry: &DebuggingInformationEntry<Slice<'d>>,
        depth: u32,
    ) -> Option<(Rc<Shape>, u64)> {
        let (element, size) = self.shape(self.type_of(entry)?, depth)?;
        let number = |entry: &DebuggingInformationEntry<Slice<'d>>, name| {
            entry.attr_value(name).and_then(|value| value.udata_value())
        };
        let stride = number(entry, dw::DW_AT_byte_stride).unwrap_or(size);
        let mut counts = Vec::new();
        let mut entries = self.unit.entries_at_offset(entry.offset()).ok()?;
        entries.next_dfs().ok()??;
        let mut next = entries.next_entry().map(|_| entries.current().cloned());
        while let Ok(Some(part)) = next {
            if part.tag() == dw::DW_TAG_subrange_type {
                let count = number(&part, dw::DW_AT_count)
                    .or_else(|| number(&part, dw::DW_AT_upper_bound)?.checked_add(1))?;
                counts.push(count);
            }
            next = entries.next_sibling().map(|entry| entry.cloned());
        }
        let all = counts.iter().try_fold(stride, |all, &count| all.checked_mul(count))?;
        let is_array = !counts.is_empty() && stride != 0 && all != 0;
        is_array.then(|| (Rc::new(Shape::Array { stride, counts, element }), all))
    }

    /// Returns the members of a structure and its bases, as far as they can be read: what lies in
    /// another one keeps its offset for a name. `None` of what is one of several things.
    fn parts(&mut self, at: UnitOffset, depth: u32) -> Option<Vec<ShapePart>> {
        let mut parts = Vec::new();
        let mut entries = self.unit.entries_at_offset(at).ok()?;
        if !entries.next_dfs().ok()??.has_children() {
            return Some(parts);
        }
        let mut next = entries.next_entry().map(|_| entries.current().cloned());
        while let Ok(Some(entry)) = next {
            match entry.tag() {
                dw::DW_TAG_member | dw::DW_TAG_inheritance => {
                    self.members = self.members.checked_sub(1)?;
                    parts.extend(self.part(&entry, depth));
                }
                // Of an enumeration of Rust a member is there or not.
                dw::DW_TAG_variant_part => return None,
                _ => {}
            }
            next = entries.next_sibling().map(|entry| entry.cloned());
        }
        Some(parts)
    }

    fn part(
        &mut self,
        entry: &DebuggingInformationEntry<Slice<'d>>,
        depth: u32,
    ) -> Option<ShapePart> {
        // A static member has no place in the structure, and a base that is virtual no fixed one.
        let at = entry.attr_value(dw::DW_AT_data_member_location)?.udata_value()?;
        let (shape, size) = self.shape(self.type_of(entry)?, depth)?;
        let name = text(self.dwarf, self.unit, entry).filter(|_| entry.tag() == dw::DW_TAG_member);
        // Rust counts the members of a tuple.
        let name = name.map(|name| {
            let number = name.strip_prefix("__").filter(|rest| rest.parse::<u32>().is_ok());
            number.unwrap_or(name).to_owned()
        });
        Some(ShapePart { name, at, size, shape })
    }
}

/// Returns the way to what lies at an offset in a shape, the offset in that, and whether it is a
/// lock by its type.
fn path(mut shape: Rc<Shape>, mut offset: u64) -> (String, u64, bool) {
    let mut path = String::new();
    loop {
        let part = match &*shape {
            Shape::Whole => return (path, offset, false),
            Shape::Lock(data) => match data.as_ref().filter(|data| data.holds(offset)) {
                Some(data) => data,
                None => return (path, 0, true),
            },
            Shape::Array { stride, counts, element } => {
                let mut index = offset / stride;
                let mut all: u64 = counts.iter().product();
                // No lock is one of the numbers that make up memory for it.
                if index >= all || matches!(**element, Shape::Whole) {
                    return (path, offset, false);
                }
                for count in counts {
                    all /= count;
                    let _ = write!(path, "[{}]", index / all);
                    index %= all;
                }
                offset %= stride;
                shape = element.clone();
                continue;
            }
            Shape::Parts(parts) => {
                let mut there = parts.iter().filter(|part| part.holds(offset));
                match (there.next(), there.next()) {
                    (Some(part), None) => part,
                    _ => return (path, offset, false),
                }
            }
        };
        if let Some(name) = &part.name {
            path.push('.');
            path += name;
        }
        offset -= part.at;
        shape = part.shape.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, at: u64, size: u64, shape: Shape) -> ShapePart {
        let name = (!name.is_empty()).then(|| name.to_owned());
        ShapePart { name, at, size, shape: Rc::new(shape) }
    }

    #[test]
    fn the_way_ends_at_a_lock_and_in_front_of_what_is_not_known() {
        let shard = Shape::Parts(vec![
            part("entries", 0, 8, Shape::Whole),
            part("mutex", 8, 40, Shape::Lock(None)),
            part("", 48, 16, Shape::Parts(vec![part("inner", 4, 4, Shape::Lock(None))])),
            part("one", 64, 8, Shape::Whole),
            part("other", 64, 4, Shape::Whole),
        ]);
        let shards =
            Rc::new(Shape::Array { stride: 96, counts: vec![2, 3], element: shard.into() });
        for (offset, found) in [
            (8, ("[0][0].mutex", 0)),
            (96 * 5 + 8, ("[1][2].mutex", 0)),
            (96 * 2 + 20, ("[0][2].mutex", 0)),
            (52, ("[0][0].inner", 0)),
            (49, ("[0][0]", 1)),
            (66, ("[0][0]", 66)),
            (96 + 80, ("[0][1]", 80)),
            (3, ("[0][0].entries", 3)),
            (96 * 6, ("", 96 * 6)),
        ] {
            let (way, offset, _) = path(shards.clone(), offset);
            assert_eq!((way.as_str(), offset), found);
        }
    }

    #[test]
    fn what_a_lock_protects_is_not_the_lock() {
        let inner = Shape::Parts(vec![part("lock", 8, 8, Shape::Lock(None))]);
        let lock = Rc::new(Shape::Lock(Some(part("data", 8, 24, inner))));
        assert_eq!(path(lock.clone(), 4), (String::new(), 0, true));
        assert_eq!(path(lock.clone(), 16), (".data.lock".to_owned(), 0, true));
        assert_eq!(path(lock, 8), (".data".to_owned(), 0, false));
        let memory = Shape::Array { stride: 8, counts: vec![8], element: Shape::Whole.into() };
        let memory = Rc::new(Shape::Parts(vec![part("value", 0, 64, memory)]));
        assert_eq!(path(memory, 16), (".value".to_owned(), 16, false), "no element of it");
    }
}
