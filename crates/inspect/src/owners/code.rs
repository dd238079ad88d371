//! What is known of the code of a process: which functions a run follows, and what the others do.
//!
//! # Role
//! Calls into the program and its own libraries are followed. Calls into the libraries of the
//! system are known by name or skipped. A call through the linkage table says the name by the
//! relocation of its slot, also where the loader has not filled the slot yet.

use super::functions::{self, KnownFunction};
use super::overlay::ReadPages;
use super::run::{Callee, Imported, KnownCode};
use crate::maps::{Backing, Maps, MapsLine};
use crate::module::Module;
use crate::modules::Modules;
use crate::stack;
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// The most names of one file that are looked at.
const MOST_NAMES: usize = 4 << 20;

/// Files that are not followed, by how their names begin.
const SYSTEM: &[&str] = &[
    "libstdc++",
    "libgcc_s",
    "libc++",
    "libunwind",
    "libm.so",
    "liblockstead_preload",
    "libdl",
    "librt",
    "libabsl_",
    "libasan",
    "libtsan",
];

/// What the names of one file tell.
#[derive(Default)]
struct FileNames {
    followed: bool,
    /// Known functions by their addresses in the process.
    functions: HashMap<u64, KnownFunction>,
    /// The imports by the addresses of their slots.
    slots: HashMap<u64, Slot>,
}

#[derive(Clone, Copy)]
enum Slot {
    Known(KnownFunction),
    /// The file itself has the function, at this address.
    Own(u64),
    Other,
}

/// The code of a process, whose files are opened as a run reaches them.
pub struct ProgramCode<'m> {
    modules: RefCell<&'m mut Modules>,
    maps: Maps,
    pages: &'m ReadPages<'m>,
    /// The names of the files by the starts of mappings.
    files: RefCell<HashMap<u64, Rc<FileNames>>>,
    known: &'m KnownNames,
}

/// The names of files that were read, for several looks at one process.
#[derive(Default)]
pub struct KnownNames {
    /// The names by inode and by what the loader added to the file's addresses.
    files: RefCell<HashMap<(u64, u64), Rc<FileNames>>>,
}

impl<'m> ProgramCode<'m> {
    /// Knows none of the files yet.
    #[must_use]
    pub fn new(modules: &'m mut Modules, pages: &'m ReadPages<'m>, known: &'m KnownNames) -> Self {
        let maps = modules.maps().clone();
        ProgramCode {
            modules: RefCell::new(modules),
            maps,
            pages,
            files: RefCell::default(),
            known,
        }
    }

    /// Returns what the names of the file around `address` tell.
    fn file(&self, mapping: &MapsLine) -> Rc<FileNames> {
        if let Some(known) = self.files.borrow().get(&mapping.range.start) {
            return known.clone();
        }
        let found = self.read(mapping);
        self.files.borrow_mut().insert(mapping.range.start, found.clone());
        found
    }

    fn read(&self, mapping: &MapsLine) -> Rc<FileNames> {
        let Backing::File { path, .. } = &mapping.backing else { return Rc::default() };
        let followed = !is_system(path);
        let mut modules = self.modules.borrow_mut();
        let unnamed = || Rc::new(FileNames { followed, ..FileNames::default() });
        let Some(module) = modules.module(mapping) else { return unnamed() };
        let bias = module.bias(mapping.range.start, mapping.offset, mapping.executable);
        let Some(bias) = bias else { return unnamed() };
        let key = (mapping.inode, bias);
        if let Some(known) = self.known.files.borrow().get(&key) {
            return known.clone();
        }
        let names = Rc::new(names(&module, bias, followed));
        self.known.files.borrow_mut().insert(key, names.clone());
        names
    }
}

impl KnownCode for ProgramCode<'_> {
    fn callee(&self, address: u64) -> Callee {
        let Some(mapping) = self.maps.find(address) else { return Callee::Nothing };
        if !mapping.executable {
            return Callee::Nothing;
        }
        let file = self.file(mapping);
        match file.functions.get(&address) {
            Some(&known) => Callee::Known(known),
            None if file.followed => Callee::Followed,
            None => Callee::Skipped,
        }
    }

    fn import(&self, slot: u64) -> Option<Imported> {
        let mapping = self.maps.find(slot)?;
        let file = self.file(mapping);
        let imported = match *file.slots.get(&slot)? {
            Slot::Known(known) => return Some(Imported::Known(known)),
            Slot::Own(at) => Some(at),
            Slot::Other => None,
        };
        // The loader puts the function's address there at its first call; before, the slot leads
        // back into this file.
        let value = self.pages.number(slot, 8)?;
        let to = self.maps.find(value)?;
        if !Rc::ptr_eq(&self.file(to), &file) {
            return Some(Imported::At(value));
        }
        Some(imported.map_or(Imported::Skipped, Imported::At))
    }
}

/// Tells whether a file is one of the system's libraries, or lockstead's own, whose functions are
/// not followed.
#[must_use]
pub fn is_system(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    stack::is_libc(name) || SYSTEM.iter().any(|start| name.starts_with(start))
}

fn names(module: &Module, bias: u64, followed: bool) -> FileNames {
    let mut names = FileNames { followed, ..FileNames::default() };
    let Ok(file) = object::File::parse(module.bytes()) else { return names };
    let defined = file.symbols().chain(file.dynamic_symbols()).take(MOST_NAMES);
    for symbol in defined.filter(|symbol| symbol.is_definition()) {
        if let Some(known) = symbol.name().ok().and_then(functions::known) {
            names.functions.insert(symbol.address().wrapping_add(bias), known);
        }
    }
    let (Some(symbols), Some(relocations)) =
        (file.dynamic_symbol_table(), file.dynamic_relocations())
    else {
        return names;
    };
    for (place, relocation) in relocations.take(MOST_NAMES) {
        let RelocationTarget::Symbol(index) = relocation.target() else { continue };
        let Ok(symbol) = symbols.symbol_by_index(index) else { continue };
        let slot = match symbol.name().ok().and_then(functions::known) {
            Some(known) => Slot::Known(known),
            None if symbol.is_definition() => Slot::Own(symbol.address().wrapping_add(bias)),
            None => Slot::Other,
        };
        names.slots.insert(place.wrapping_add(bias), slot);
    }
    names
}
