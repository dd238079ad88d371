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
//! The entries of a file are read once. The time that a file takes is bounded, for one may be made so
//! that few bytes of it take for ever; the members of the types of one variable are counted.

use super::debug_file::debug_file;
use super::quiet::quietly;
use super::shape::{Shape, ShapePart, locks, path};
use super::variables::{Slice, sections, text};
use crate::module::Module;
use gimli::constants as dw;
use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Operation, Unit, UnitOffset,
};
use memmap2::Mmap;
use object::Object;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The longest that the debug information of one file is read: longer than it takes for the biggest
/// programs that people watch.
const MOST_TIME: Duration = Duration::from_secs(30);
/// How many entries are read between two looks at the clock.
const ENTRIES_A_LOOK: u64 = 1024;
/// The members of all types of one variable, and how deep they are looked at.
const MOST_MEMBERS: usize = 20_000;
const MOST_DEPTH: u32 = 64;

/// Types that are a lock, however many members they have: as they are called without parameters and
/// namespaces. Whatever lies in such a type and not in its `data` is the lock itself. In one with
/// parameters that has its data elsewhere another lock may lie, so that the way goes on; and so it
/// does in one that is made of several locks, as a program's own `Semaphore`.
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
    // Rust, and libraries of C++ with types of these names.
    "Mutex",
    "RwLock",
    "Condvar",
    "ReentrantLock",
    "ReentrantMutex",
    "RawMutex",
    "RawRwLock",
    "SharedMutex",
    "Once",
    "Semaphore",
];
/// Types that have no data in spite of their parameters.
const WITHOUT_DATA: &[&str] = &["counting_semaphore", "atomic", "Atomic"];
/// Types of a word that may be a lock by itself, or one of those that make up a lock.
const WORDS: &[&str] = &[
    "atomic",
    "Atomic",
    "AtomicU8",
    "AtomicU32",
    "AtomicI32",
    "AtomicU64",
    "AtomicUsize",
    "AtomicPtr",
];
/// How the types of lockstead's library for C begin.
const OWN: &str = "lks_";

/// The variables of one file that have debug information.
pub(super) struct DebugVariables {
    /// The file that has it, if that is another one.
    separate: Option<Mmap>,
    /// Unit and entry, by stated address.
    by_address: HashMap<u64, (DebugInfoOffset, UnitOffset)>,
    /// The types that were looked at, by the address of the variable.
    shapes: HashMap<u64, Option<Rc<Shape>>>,
    /// How long the file may still be read.
    left: Duration,
}

impl DebugVariables {
    /// Reads where the variables of a file lie.
    pub(super) fn of(module: &Module) -> Self {
        let separate = separate(module);
        let bytes = separate.as_deref().unwrap_or(module.bytes());
        let begin = Instant::now();
        // The reader checks what it reads; a panic in it costs these names and nothing else.
        let by_address =
            quietly(|| addresses(bytes, begin + MOST_TIME)).ok().flatten().unwrap_or_default();
        let left = MOST_TIME.saturating_sub(begin.elapsed());
        DebugVariables { separate, by_address, shapes: HashMap::new(), left }
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
                let begin = Instant::now();
                let until = begin + self.left;
                let shape = quietly(|| shape_of(bytes, unit, entry, size, until)).ok().flatten();
                self.left = self.left.saturating_sub(begin.elapsed());
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
fn addresses(bytes: &[u8], until: Instant) -> Option<HashMap<u64, (DebugInfoOffset, UnitOffset)>> {
    let dwarf = sections(bytes)?;
    let mut found = HashMap::new();
    let mut headers = dwarf.units();
    let mut read = 0;
    while let Ok(Some(header)) = headers.next() {
        let Some(at) = header.debug_info_offset() else { continue };
        in_time(until)?;
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            read += 1;
            if read % ENTRIES_A_LOOK == 0 {
                in_time(until)?;
            }
            if entry.tag() == dw::DW_TAG_variable
                && let Some(address) = address(&dwarf, &unit, entry)
            {
                found.insert(address, (at, entry.offset()));
            }
        }
    }
    Some(found)
}

fn in_time(until: Instant) -> Option<()> {
    (Instant::now() < until).then_some(())
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
    until: Instant,
) -> Option<Rc<Shape>> {
    in_time(until)?;
    let dwarf = sections(bytes)?;
    let header = dwarf.unit_header(unit).ok()?;
    let unit = dwarf.unit(header).ok()?;
    // In some languages the first element is the one of the number 1, or of any.
    let mut entries = unit.entries();
    let language = entries.next_dfs().ok()??.attr_value(dw::DW_AT_language);
    if let Some(AttributeValue::Language(language)) = language
        && language.default_lower_bound().is_some_and(|first| first != 0)
    {
        return None;
    }
    let entry = unit.entry(entry).ok()?;
    let mut types =
        Types { dwarf: &dwarf, unit: &unit, known: HashMap::new(), members: MOST_MEMBERS, until };
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
    until: Instant,
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
        in_time(self.until)?;
        let entry = self.unit.entry(at).ok()?;
        let size = entry.attr_value(dw::DW_AT_byte_size).and_then(|size| size.udata_value());
        let name = text(self.dwarf, self.unit, &entry).unwrap_or_default();
        let base = name.split('<').next().unwrap_or_default();
        let is_own = name.starts_with(OWN);
        let is_lock = is_own || LOCKS.contains(&base);
        let is_word = WORDS.contains(&base);
        let whole = || match () {
            () if is_lock => Shape::Lock(None),
            () if is_word => Shape::Word,
            () => Shape::Whole,
        };
        match entry.tag() {
            dw::DW_TAG_typedef
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_atomic_type => {
                let (shape, size) = self.shape(self.type_of(&entry)?, depth)?;
                let is_one = is_own || shape.locks() < 2;
                Some((if is_lock && is_one { Rc::new(whole()) } else { shape }, size))
            }
            dw::DW_TAG_array_type => self.array(&entry, depth),
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type => {
                let (mut parts, is_complete) = self.parts(at, depth)?;
                let data = parts.iter().position(|part| part.name.as_deref() == Some("data"));
                let data = data.filter(|_| is_lock).map(|data| parts.swap_remove(data));
                let is_one = is_own || is_complete && locks(&parts) < 2;
                let is_whole = !name.contains('<') || WITHOUT_DATA.contains(&base);
                let shape = match data {
                    Some(data) if is_one => Shape::Lock(Some(data)),
                    None if is_one && is_whole && (is_lock || is_word) => whole(),
                    data => {
                        parts.extend(data);
                        Shape::of_parts(parts, is_complete)
                    }
                };
                Some((Rc::new(shape), size?))
            }
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type => {
                let size = size.unwrap_or(self.unit.encoding().address_size.into());
                Some((Rc::new(Shape::Whole), size))
            }
            // Which of its members a union has just now, the program knows.
            _ => Some((Rc::new(whole()), size?)),
        }
    }

    fn array(
        &mut self,
        entry: &DebuggingInformationEntry<Slice<'d>>,
        depth: u32,
    ) -> Option<(Rc<Shape>, u64)> {
        let (element, stride) = self.shape(self.type_of(entry)?, depth)?;
        let number = |entry: &DebuggingInformationEntry<Slice<'d>>, name| {
            entry.attr_value(name).and_then(|value| value.udata_value())
        };
        // Elements that do not follow each other in their order, from number 0, no lock is among.
        let is_plain = |entry: &DebuggingInformationEntry<Slice<'d>>| {
            let strange = [dw::DW_AT_byte_stride, dw::DW_AT_bit_stride, dw::DW_AT_ordering];
            strange.iter().all(|&name| entry.attr_value(name).is_none())
                && entry
                    .attr_value(dw::DW_AT_lower_bound)
                    .is_none_or(|first| first.udata_value() == Some(0))
        };
        if !is_plain(entry) {
            return None;
        }
        let mut counts = Vec::new();
        let mut entries = self.unit.entries_at_offset(entry.offset()).ok()?;
        entries.next_dfs().ok()??;
        let mut next = entries.next_entry().map(|_| entries.current().cloned());
        while let Ok(Some(part)) = next {
            if part.tag() == dw::DW_TAG_subrange_type {
                if !is_plain(&part) || counts.len() == MOST_DEPTH as usize {
                    return None;
                }
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
    /// another one keeps its offset for a name, and the answer says that there are such. `None` of
    /// what is one of several things.
    fn parts(&mut self, at: UnitOffset, depth: u32) -> Option<(Vec<ShapePart>, bool)> {
        let mut parts = Vec::new();
        let mut is_complete = true;
        let mut entries = self.unit.entries_at_offset(at).ok()?;
        if !entries.next_dfs().ok()??.has_children() {
            return Some((parts, is_complete));
        }
        let mut next = entries.next_entry().map(|_| entries.current().cloned());
        while let Ok(Some(entry)) = next {
            match entry.tag() {
                dw::DW_TAG_member | dw::DW_TAG_inheritance => {
                    self.members = self.members.checked_sub(1)?;
                    // What has no place is no part of the structure, but static, or some bits.
                    if let Some(place) = entry.attr_value(dw::DW_AT_data_member_location) {
                        let part = self.part(&entry, place, depth);
                        is_complete &= part.is_some();
                        parts.extend(part.filter(|part| !part.is_empty()));
                    }
                }
                // Of an enumeration of Rust a member is there or not.
                dw::DW_TAG_variant_part => return None,
                _ => {}
            }
            next = entries.next_sibling().map(|entry| entry.cloned());
        }
        Some((parts, is_complete))
    }

    fn part(
        &mut self,
        entry: &DebuggingInformationEntry<Slice<'d>>,
        place: AttributeValue<Slice<'d>>,
        depth: u32,
    ) -> Option<ShapePart> {
        let at = match place {
            // So DWARF 2 has it. A base that is virtual has no fixed place.
            AttributeValue::Exprloc(place) => {
                let mut operations = place.operations(self.unit.encoding());
                match (operations.next().ok()??, operations.next().ok()?) {
                    (Operation::PlusConstant { value }, None) => value,
                    _ => return None,
                }
            }
            place => place.udata_value()?,
        };
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
