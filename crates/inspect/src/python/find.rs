//! Where a process has its interpreter.
//!
//! # How
//! The state of the runtime is the variable `_PyRuntime`, which the interpreter exports from
//! its program or library, also where its symbols are stripped; from 3.11 on it is a section of
//! its own too. The version is the variable `Py_Version`, from 3.11 on; before, the name of the
//! file and the size of the state tell it.

use super::layout::{Layout, Minor, NEWEST, OLDEST};
use super::offsets::SelfDescription;
use super::read::PageReader;
use crate::maps::Backing;
use crate::memory::ReadableMemory;
use crate::module::Module;
use crate::modules::Modules;
use object::{Object, ObjectSection, ObjectSymbol};
use std::path::Path;

/// An interpreter in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The address of the state of the runtime.
    pub(super) runtime: u64,
    pub(super) layout: Layout,
}

/// An interpreter, as far as it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundInterpreter {
    /// One that can be read.
    Readable(Box<Interpreter>),
    /// One that cannot, with the reason, a sentence.
    Unreadable(String),
}

/// The symbols of a file that lead to its interpreter, by stated addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RuntimeSymbols {
    runtime: u64,
    size: u64,
    version: Option<u64>,
}

impl Interpreter {
    /// Looks for an interpreter among the files of a process; `None` if it has none.
    #[must_use]
    pub fn find(modules: &mut Modules, memory: &dyn ReadableMemory) -> Option<FoundInterpreter> {
        let first = modules.maps().iter().filter(|mapping| mapping.offset == 0);
        let files: Vec<_> =
            first.filter(|mapping| may_have_one(modules, &mapping.backing)).collect();
        let files: Vec<_> = files.into_iter().cloned().collect();
        files.iter().find_map(|mapping| {
            let module = modules.module(mapping)?;
            let bias = module.bias(mapping.range.start, mapping.offset, mapping.executable)?;
            let symbols = symbols(&module)?;
            let Backing::File { path, .. } = &mapping.backing else { return None };
            Some(Self::read(symbols, bias, path, memory))
        })
    }

    fn read(
        symbols: RuntimeSymbols,
        bias: u64,
        path: &Path,
        memory: &dyn ReadableMemory,
    ) -> FoundInterpreter {
        let reader = PageReader::new(memory);
        let runtime = bias.wrapping_add(symbols.runtime);
        let described = SelfDescription::read(runtime, &reader);
        let stated = symbols.version.and_then(|at| reader.u32(bias.wrapping_add(at)));
        let stated = stated.map(|number| ((number >> 24) as u8, (number >> 16) as u8));
        let version = described.map(|described| described.version()).or(stated);
        let Some(version) = version.or_else(|| by_name(path, symbols.size)) else {
            return FoundInterpreter::Unreadable("the version of its Python cannot be told".into());
        };
        let (major, minor) = version;
        let Some(table) = Layout::of(version) else {
            return FoundInterpreter::Unreadable(format!(
                "its Python is {major}.{minor}; frames and locks of Python {}.{} to {}.{} are read",
                OLDEST.0, OLDEST.1, NEWEST.0, NEWEST.1
            ));
        };
        if described.is_some_and(|described| described.is_free_threaded()) {
            return FoundInterpreter::Unreadable(format!(
                "its Python {major}.{minor} is a free-threaded build, whose frames and locks are \
                 not read"
            ));
        }
        let layout = match described {
            Some(described) => described.over(table),
            None => Some(table).filter(|table| table.version < (3, 13)),
        };
        match layout {
            Some(layout) => FoundInterpreter::Readable(Box::new(Interpreter { runtime, layout })),
            None => FoundInterpreter::Unreadable(format!(
                "its Python {major}.{minor} does not describe itself as expected"
            )),
        }
    }

    /// Returns the version, as people say it: `3.12`.
    #[must_use]
    pub fn version(&self) -> String {
        format!("{}.{}", self.layout.version.0, self.layout.version.1)
    }
}

/// Tells whether an interpreter is looked for in a file: in the program itself, and in what has
/// Python in its name.
fn may_have_one(modules: &Modules, backing: &Backing) -> bool {
    let Backing::File { path, .. } = backing else { return false };
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    modules.is_main(path) || name.contains("python")
}

fn symbols(module: &Module) -> Option<RuntimeSymbols> {
    let file = object::File::parse(module.bytes()).ok()?;
    let find = |name: &str| {
        let mut symbols = file.dynamic_symbols().chain(file.symbols());
        let found = symbols.find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))?;
        Some((found.address(), found.size()))
    };
    let section = || file.section_by_name(".PyRuntime").map(|it| (it.address(), it.size()));
    let (runtime, size) = find("_PyRuntime").or_else(section)?;
    Some(RuntimeSymbols { runtime, size, version: find("Py_Version").map(|(at, _)| at) })
}

/// Returns the version of an interpreter that does not say it.
fn by_name(path: &Path, size: u64) -> Option<Minor> {
    // Bytes of the runtime's state on machines of 64 bits, which no later version has.
    let sized = match size {
        656 => Some((3, 9)),
        672 => Some((3, 10)),
        _ => None,
    };
    let name = path.file_name()?.to_str()?;
    let numbers = name.split_once("python")?.1.split(|c: char| !c.is_ascii_digit());
    let mut numbers = numbers.map_while(|number| number.parse::<u8>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => Some((major, minor)),
        _ => sized,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_told_by_name_or_size() {
        let named = |name: &str, size| by_name(Path::new(name), size);
        assert_eq!(named("/usr/lib/libpython3.9.so.1.0", 0), Some((3, 9)));
        assert_eq!(named("/opt/bin/python3.10", 656), Some((3, 10)));
        assert_eq!(named("/usr/bin/python3", 672), Some((3, 10)));
        assert_eq!(named("/usr/bin/uwsgi", 656), None, "no Python in its name");
        assert_eq!(named("/usr/bin/python3", 1), None);
    }
}
