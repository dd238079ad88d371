//! Names for addresses: functions with file and line, and variables.
//!
//! # Role
//! Runs in the command, on the files of the process: an address is turned into
//! a file and an address in it, and the file is asked. Each file is opened when
//! the first address in it comes up, its debug information read then and not
//! earlier, and every answer is kept.
//!
//! What cannot be named keeps what is known: the file and the offset in it, or
//! the bare address. No failure here is an error for the caller.

mod data;
mod debug_file;
mod guards;
mod lock;
mod members;
mod python;
mod quiet;
mod shape;
mod site;
mod variables;

pub use data::Variable;
pub(crate) use data::demangled;
pub use lock::{LockClues, LockOrigin, LockSymbol};
pub use python::python_lock;
pub(crate) use site::plain;
pub use site::{is_lock_wrapper, program_frames, site};
pub use variables::FrameValues;

use crate::maps::Maps;
use crate::module::Module;
use crate::modules::{CodePlace, Modules};
use crate::stack::{CodeAddress, Frame, Stack, StackEnd, is_libc};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized};
use data::{DataSymbols, Symbol};
use members::DebugVariables;
use quiet::quietly;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The size of the largest lock of the C library, its reader-writer lock.
const LARGEST_LOCK: u64 = size_of::<libc::pthread_rwlock_t>() as u64;

/// Names the code and data of one process.
pub struct Symbolizer {
    modules: Modules,
    reader: blazesym::symbolize::Symbolizer,
    /// Files whose debug information cannot be read; their symbols can.
    without_debug: Vec<PathBuf>,
    /// Files whose symbols cannot be read either.
    unreadable: Vec<PathBuf>,
    /// Frames by the address looked up, innermost first.
    code: HashMap<u64, Rc<[Frame]>>,
    data: HashMap<PathBuf, Rc<DataSymbols>>,
    /// The variables of a file in its debug information, read when a part of one comes up.
    members: HashMap<PathBuf, DebugVariables>,
    /// The places of call chains: thousands of locks come from a few.
    sites: HashMap<Vec<CodeAddress>, Option<Frame>>,
}

impl Symbolizer {
    /// Prepares to name the code of the process whose files these are.
    #[must_use]
    pub fn new(modules: Modules) -> Self {
        Symbolizer {
            modules,
            reader: reader(),
            without_debug: Vec::new(),
            unreadable: Vec::new(),
            code: HashMap::new(),
            data: HashMap::new(),
            members: HashMap::new(),
            sites: HashMap::new(),
        }
    }

    /// Takes newer maps of the same process: it has loaded a library since, or
    /// ended and these are its last.
    pub fn update(&mut self, maps: Maps) {
        // A library may have taken another's place.
        if maps != *self.modules.maps() {
            self.code.clear();
            self.sites.clear();
            self.modules.update(maps);
        }
    }

    /// Returns the files of the process.
    #[must_use]
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Returns a stack with names: functions that the compiler inlined have frames of their own.
    pub fn stack(&mut self, addresses: &[CodeAddress], end: StackEnd) -> Stack {
        self.prepare(addresses.iter().copied());
        let frames = addresses.iter().flat_map(|&a| self.frames(a)).collect();
        Stack { frames, end }
    }

    /// Returns the frames at one address: of the function that was compiled there, and in front of
    /// it those of the functions inlined into it.
    pub fn frames(&mut self, at: CodeAddress) -> Vec<Frame> {
        self.prepare([at]);
        let back = at.address.wrapping_sub(at.lookup());
        let mut frames = self.code.get(&at.lookup()).map(|f| f.to_vec()).unwrap_or_default();
        for frame in &mut frames {
            frame.address = at.address;
            frame.found = at.found;
            frame.offset += if frame.inlined { 0 } else { back };
            frame.module_offset = frame.module_offset.map(|offset| offset + back);
        }
        frames
    }

    /// Looks many addresses up at once, which is much cheaper than one by one
    /// when they are in few files.
    pub fn prepare(&mut self, addresses: impl IntoIterator<Item = CodeAddress>) {
        let mut by_file: HashMap<PathBuf, Vec<(u64, u64)>> = HashMap::new();
        for at in addresses {
            let address = at.lookup();
            if self.code.contains_key(&address) {
                continue;
            }
            let mut bare = Frame { address, ..Frame::default() };
            match self.modules.place(address) {
                CodePlace::File { path, module, bias, offset } => {
                    bare.module = Some(path.display().to_string());
                    bare.module_offset = offset;
                    if let Some(module) = module {
                        let file = by_file.entry(module.path().to_owned()).or_default();
                        file.push((address, address.wrapping_sub(bias)));
                    }
                }
                CodePlace::Special(name) => bare.module = Some(name),
                CodePlace::Anonymous | CodePlace::Nowhere => {}
            }
            self.code.insert(address, Rc::new([bare]));
        }
        for (file, addresses) in by_file {
            self.name(&file, &addresses);
        }
    }

    /// Names addresses of one file, given as in the process and as stated.
    fn name(&mut self, file: &Path, addresses: &[(u64, u64)]) {
        let mut remaining = addresses;
        // Lines inside the C library help nobody, and to unpack its debug
        // information, where that is installed, takes longer than all else.
        let has_lines = !is_libc(&file.to_string_lossy());
        // One address in a damaged part of the debug information fails the
        // whole lot: then one by one, and after three failures without it.
        for (lot, attempts) in [(addresses.len(), 1), (1, 3)] {
            let mut failures = 0;
            while has_lines
                && !remaining.is_empty()
                && failures < attempts
                && !self.without_debug.iter().any(|path| path == file)
            {
                let (now, later) = remaining.split_at(lot);
                if self.ask(file, true, now) {
                    remaining = later;
                } else if lot == 1 {
                    self.ask(file, false, now);
                    remaining = later;
                    failures += 1;
                } else {
                    failures += 1;
                }
            }
            if failures == attempts && lot == 1 {
                self.without_debug.push(file.to_owned());
            }
        }
        if !remaining.is_empty() {
            self.ask(file, false, remaining);
        }
    }

    /// Tells whether the file could be asked.
    fn ask(&mut self, file: &Path, debug: bool, addresses: &[(u64, u64)]) -> bool {
        if self.unreadable.iter().any(|path| path == file) {
            return false;
        }
        let mut elf = Elf::new(file);
        elf.debug_syms = debug;
        let source = Source::Elf(elf);
        let stated: Vec<_> = addresses.iter().map(|&(_, stated)| stated).collect();
        // The reader takes much of a file on trust, and panics over a damaged
        // one; a report goes on without its names.
        let answers = quietly(|| {
            let answers = self.reader.symbolize(&source, Input::VirtOffset(&stated)).ok()?;
            let named = addresses.iter().zip(answers).filter_map(|(&(address, _), answer)| {
                let bare = self.code.get(&address)?.first()?;
                match answer {
                    Symbolized::Sym(symbol) => Some((address, named(bare, &symbol))),
                    Symbolized::Unknown(_) => None,
                }
            });
            Some(named.collect::<Vec<_>>())
        });
        match answers {
            Ok(Some(answers)) => {
                self.code.extend(answers.into_iter().map(|(address, f)| (address, f.into())));
                true
            }
            Ok(None) => false,
            Err(_) => {
                // What it was in the middle of changing is given up with it.
                self.reader = reader();
                let list = if debug { &mut self.without_debug } else { &mut self.unreadable };
                list.push(file.to_owned());
                false
            }
        }
    }

    /// Returns the variable that `address` lies in, of the program or of a library, by its symbol.
    pub fn variable(&mut self, address: u64) -> Option<Variable> {
        let place = self.modules.place(address);
        let CodePlace::File { path, module: Some(module), bias, .. } = place else { return None };
        let symbol = self.symbols(&module).find(address.wrapping_sub(bias))?;
        let main = self.modules.is_main(&path);
        Some(Variable {
            name: demangled(&symbol.name),
            offset: symbol.offset,
            module: (!main).then(|| path.display().to_string()),
        })
    }

    /// Returns a variable with the member that `address` lies in, where debug information has the
    /// type of the variable: `shards[3].mutex`.
    pub fn member(&mut self, address: u64, variable: Variable) -> Variable {
        match self.way(address) {
            Some((way, offset)) => Variable { name: variable.name + &way, offset, ..variable },
            None => variable,
        }
    }

    /// Returns the way from the variable around an address to what lies there.
    fn way(&mut self, address: u64) -> Option<(String, u64)> {
        let place = self.modules.place(address);
        let CodePlace::File { module: Some(module), bias, .. } = place else { return None };
        let Symbol { start, size, offset, .. } =
            self.symbols(&module).find(address.wrapping_sub(bias))?;
        // It is a lock, or hardly more: not worth reading all variables for.
        if offset == 0 && size <= LARGEST_LOCK {
            return None;
        }
        let file = self.members.entry(module.path().to_owned());
        let file = file.or_insert_with(|| DebugVariables::of(&module));
        file.member(&module, (start, size), offset)
    }

    fn symbols(&mut self, module: &Module) -> Rc<DataSymbols> {
        let symbols = self.data.entry(module.path().to_owned());
        symbols.or_insert_with(|| Rc::new(DataSymbols::of(module))).clone()
    }
}

/// Returns a reader that does not demangle: its demangling takes a C function `m` or `w` for the
/// C++ code of a type.
fn reader() -> blazesym::symbolize::Symbolizer {
    blazesym::symbolize::Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_demangling(false)
        .build()
}

/// Returns the frames of one address. The reader gives the outermost function first and the
/// innermost last, each with the line that runs in it.
fn named(bare: &Frame, symbol: &Sym<'_>) -> Vec<Frame> {
    let frame = |name: &str, code: Option<&CodeInfo<'_>>, inlined| Frame {
        function: (!name.is_empty()).then(|| demangled(name)),
        offset: if inlined { 0 } else { symbol.offset as u64 },
        file: code.map(|code| code.to_path().display().to_string()),
        line: code.and_then(|code| code.line).filter(|&line| line != 0),
        inlined,
        ..bare.clone()
    };
    let mut frames = vec![frame(&symbol.name, symbol.code_info.as_deref(), false)];
    for inlined in &symbol.inlined {
        frames.push(frame(&inlined.name, inlined.code_info.as_ref(), true));
    }
    frames.reverse();
    frames
}
