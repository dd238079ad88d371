//! Walks the stacks of threads of another process, by their registers and memory.
//!
//! # Role
//! Walks from a thread's program counter and stack pointer to where the thread
//! began, by the tables that compilers write for exceptions (`.eh_frame`). No
//! thread is stopped: the caller gives registers that it read from `/proc`,
//! which for a thread in a system call are the program counter and the stack
//! pointer alone, and the stack is read while the thread may run. So:
//!
//! - a register counts as known only when it was given or a frame restored it.
//!   Where the walk needs another, it stops and says which;
//! - a return address must lie in code, and a caller above its callee on the
//!   stack; else the walk stops and says so;
//! - the caller of code without tables is where that code itself would return
//!   to, see `leaving.rs`;
//! - nothing is guessed from what lies about on the stack, but three things may
//!   be found there: by a known frame pointer, the caller of code without
//!   tables that cannot be followed; an unknown frame pointer, by the search
//!   that `search.rs` describes; and, where calls leave the return address in a
//!   register, the caller of a function that has not saved it, by that of
//!   `leaf.rs`. Frames found in these ways are marked.
//!
//! # Why not framehop
//! The walk starts with the program counter and the stack pointer alone. `framehop` takes the
//! frame pointer for known at all times, follows no other register of x86-64, and does not say
//! which frames it has guessed; here an unknown register ends the walk, or is searched for, and
//! the frames found so are marked.
//!
//! # Cost
//! The rule for an address is worked out once in the life of an [`Unwinder`];
//! after that a frame costs a look-up and a read of memory that was fetched in
//! one piece with its neighbours.

mod calls;
#[cfg(target_arch = "aarch64")]
mod leaf;
#[cfg_attr(target_arch = "aarch64", allow(dead_code, reason = "code is not read there"))]
mod leaving;
mod registers;
mod row;
mod search;
mod table;
mod window;

use crate::maps::{Backing, Maps};
use crate::memory::ReadableMemory;
use crate::modules::{CodePlace, Modules};
use crate::owners::lsda::Landing;
use crate::stack::{CodeAddress, StackEnd};
use calls::{Called, called_before};
use leaving::{Kept, Leaving, StackBase, StackPlace, reaches};
use lockstead_unwind::{FP, SP, Stop, arch};
use row::RowInFile;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use table::ModuleTables;
use window::ReadWindow;

pub use registers::Registers;

/// No stack is followed further than this.
pub const MAX_FRAMES: usize = 256;

/// The walk over one stack: addresses without names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// The frames, innermost first. Never empty: the first is the program counter.
    pub frames: Vec<CodeAddress>,
    /// What is known of the registers in each of these frames. The stack pointer is where what was
    /// called from there has its frame below, and the frame itself begins.
    pub registers: Vec<Registers>,
    /// The reason why there are no more frames.
    pub end: StackEnd,
}

/// The reason why an address has no rule.
#[derive(Clone, Debug)]
struct NoRule {
    module: Option<String>,
}

/// Unwinds the threads of one process.
pub struct Unwinder {
    modules: Modules,
    /// The tables of files by where they are loaded.
    tables: HashMap<u64, Option<Rc<ModuleTables>>>,
    /// The rows by address of the instruction.
    rows: HashMap<u64, Result<Rc<RowInFile>, NoRule>>,
    /// How code without tables is left, by address of the instruction.
    leavings: HashMap<u64, Option<Leaving>>,
    window: ReadWindow,
}

impl Unwinder {
    /// Makes an unwinder for the process whose files these are.
    #[must_use]
    pub fn new(modules: Modules) -> Self {
        Unwinder {
            modules,
            tables: HashMap::new(),
            rows: HashMap::new(),
            leavings: HashMap::new(),
            window: ReadWindow::default(),
        }
    }

    /// Takes newer maps of the same process; what was learnt is kept unless
    /// code has moved.
    pub fn update(&mut self, maps: Maps) {
        let code = |maps: &Maps| {
            maps.iter()
                .filter(|m| m.executable)
                .map(|m| (m.range.start, m.inode, m.offset, m.backing.clone()))
                .collect::<Vec<_>>()
        };
        if code(&maps) != code(self.modules.maps()) {
            self.tables.clear();
            self.rows.clear();
            self.leavings.clear();
        }
        self.modules.update(maps);
    }

    /// Returns the files of the process.
    #[must_use]
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Returns the files of the process, to be opened.
    pub fn modules_mut(&mut self) -> &mut Modules {
        &mut self.modules
    }

    /// Walks the stack of one thread.
    pub fn unwind(&mut self, memory: &dyn ReadableMemory, start: Registers) -> Unwound {
        self.window.forget();
        let mut registers = start;
        let mut at = CodeAddress::exact(start.pc);
        let (mut frames, mut all) = (vec![at], vec![start]);
        let end = loop {
            match self.step_or_search(memory, at, &mut registers) {
                Ok(caller) if frames.len() < MAX_FRAMES => {
                    frames.push(caller);
                    all.push(registers);
                    at = caller;
                }
                Ok(_) => break StackEnd::Limit { frames: MAX_FRAMES },
                Err(end) => break end,
            }
        };
        Unwound { frames, registers: all, end }
    }

    /// Does as [`Self::step`], but looks for a frame pointer that is not known.
    fn step_or_search(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        registers: &mut Registers,
    ) -> Result<CodeAddress, StackEnd> {
        let step = self.step(memory, at, registers);
        if matches!(step, Err(StackEnd::UnknownRegister { .. }))
            && registers.get(FP).is_none()
            && self.row(memory, at.lookup()).is_ok_and(|row| row.has_usual_shape())
            && let Some(bp) = self.search(memory, at, registers)
        {
            *registers = registers.with(FP, Some(bp));
            let caller = self.step(memory, at, registers)?;
            return Ok(CodeAddress { found: true, ..caller });
        }
        #[cfg(target_arch = "aarch64")]
        if matches!(step, Err(StackEnd::UnknownRegister { .. }))
            && let Some(caller) = self.search_caller(memory, at, registers)
        {
            *registers = registers.with(lockstead_unwind::RA, Some(caller.returns_to));
            if caller.frame_pointer.is_some() {
                *registers = registers.with(FP, caller.frame_pointer);
            }
            let caller = self.step(memory, at, registers)?;
            return Ok(CodeAddress { found: true, ..caller });
        }
        step
    }

    /// Leaves one frame for its caller's: returns the address there, with `registers`
    /// changed to the caller's.
    fn step(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        registers: &mut Registers,
    ) -> Result<CodeAddress, StackEnd> {
        let here = registers.pc;
        #[cfg(target_arch = "aarch64")]
        if let Some(interrupted) = self.signal_frame(memory, registers) {
            *registers = interrupted;
            return Ok(CodeAddress::exact(interrupted.pc));
        }
        let row = match self.row(memory, at.lookup()) {
            Ok(row) => row,
            Err(NoRule { module }) => {
                let by_pointer = |unwinder: &mut Self| {
                    Some((unwinder.by_frame_pointer(memory, registers)?, true))
                };
                let next = self.by_code(memory, registers, module.is_some());
                let (next, found) = next
                    .or_else(|| by_pointer(self))
                    .ok_or(StackEnd::NoUnwindInformation { address: here, module })?;
                *registers = next;
                return Ok(CodeAddress { found, ..CodeAddress::return_to(next.pc) });
            }
        };
        let sp = registers.get(SP);
        let mut next =
            row.caller(registers, &mut self.window, memory).map_err(|stop| match stop {
                Stop::Bottom => StackEnd::Bottom,
                Stop::Unreadable(address) => StackEnd::Unreadable { address },
                Stop::Unknown(register) => StackEnd::UnknownRegister {
                    register: arch::register_name(register)
                        .map_or_else(|| format!("{}", register.0), str::to_owned),
                    address: here,
                    module: self.module_name(at.lookup()),
                },
                Stop::Unsupported | Stop::Damaged => StackEnd::NoUnwindInformation {
                    address: here,
                    module: self.module_name(at.lookup()),
                },
            })?;
        // Threads and the program itself are started with a return address of
        // zero by some C libraries.
        if next.pc == 0 {
            return Err(StackEnd::Bottom);
        }
        next.pc = self.return_address(next.pc);
        if !self.is_code(next.pc) {
            return Err(StackEnd::NotCode { address: next.pc });
        }
        // A signal handler may run on a stack of its own, anywhere.
        // What has saved nothing has an empty frame, where calls put nothing on the stack; only what runs or
        // was interrupted is such.
        let is_empty =
            cfg!(target_arch = "aarch64") && at.lookup() == at.address && next.get(SP) == sp;
        if !row.signal && next.get(SP) <= sp && !is_empty {
            return Err(StackEnd::Backwards { address: here });
        }
        *registers = next;
        // A signal interrupts an instruction; the address is not behind a call.
        Ok(match row.signal {
            true => CodeAddress::exact(next.pc),
            false => CodeAddress::return_to(next.pc),
        })
    }

    /// Returns the caller by what the code does until it returns, and whether it may be another, since
    /// its call does not say where it leads. `of_file`: the code is that of a file; what a program
    /// writes itself may be something else the next time.
    fn by_code(
        &mut self,
        memory: &dyn ReadableMemory,
        from: &Registers,
        of_file: bool,
    ) -> Option<(Registers, bool)> {
        let leaving = match self.leavings.entry(from.pc) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(free) if of_file => free.insert(Leaving::of(memory, from.pc)).clone(),
            Entry::Vacant(_) => Leaving::of(memory, from.pc),
        }?;
        let sp = from.get(SP)?;
        let place = |place: StackPlace| match place.base {
            StackBase::StackPointer => sp.checked_add_signed(place.offset),
            StackBase::FramePointer => from.get(FP)?.checked_add_signed(place.offset),
        };
        let returns_by = place(leaving.returns_by()).filter(|&at| at >= sp)?;
        let word = self.window.read(memory, returns_by).ok()?;
        let pc = self.return_address(word);
        if !self.is_code(pc) {
            return None;
        }
        let found = match called_before(memory, pc)? {
            Called::Somewhere => true,
            Called::At(function) => match reaches(memory, function, from.pc) {
                Some(true) => false,
                Some(false) => return None,
                None => true,
            },
        };
        let mut caller = Registers::new(pc, returns_by.checked_add(8)?);
        for (register, kept) in leaving.kept() {
            let value = match kept {
                Kept::Same => from.get(register),
                Kept::At(at) => place(at).and_then(|at| self.window.read(memory, at).ok()),
                Kept::Lost => None,
            };
            caller = caller.with(register, value);
        }
        Some((caller, found))
    }

    /// Returns the caller by the frame pointer, where one is known and leads to a pair
    /// of a saved frame pointer and a return address further up the stack.
    fn by_frame_pointer(
        &mut self,
        memory: &dyn ReadableMemory,
        from: &Registers,
    ) -> Option<Registers> {
        let bp = from.get(FP)?;
        // Unknown where the frame before was found so: that one lies further down.
        let sp = from.get(SP).or((!arch::PAIR_ENDS_FRAME).then_some(bp))?;
        if bp < sp || bp % 8 != 0 {
            return None;
        }
        let saved = self.window.read(memory, bp).ok()?;
        let word = self.window.read(memory, bp.checked_add(8)?).ok()?;
        let pc = self.return_address(word);
        if !self.is_code(pc) {
            return None;
        }
        let caller = Registers::new(pc, bp.checked_add(16)?).with_frame_pointer(saved);
        if arch::PAIR_ENDS_FRAME {
            return Some(caller);
        }
        // A walk of pairs ends where they no longer lead up the stack.
        (saved == 0 || saved > bp).then(|| caller.with(SP, None))
    }

    /// Returns the address in a word of the stack, which may have a signature above it.
    fn return_address(&self, word: u64) -> u64 {
        // A signature lies above the bits of all addresses that the process has.
        let highest = self.modules.maps().iter().last().map_or(u64::MAX, |last| last.range.end - 1);
        let below = u64::MAX.checked_shr(highest.leading_zeros()).unwrap_or(0);
        arch::without_signature(word, |address| {
            (word ^ address) & below == 0 && self.is_code(address)
        })
    }

    /// Returns the registers of what a signal has interrupted, if these are at what its handler returns to:
    /// code of the kernel's, whose tables do not describe it, or of a C library's (musl's), that has none.
    #[cfg(target_arch = "aarch64")]
    fn signal_frame(&mut self, memory: &dyn ReadableMemory, at: &Registers) -> Option<Registers> {
        use arch::signal_frame::{PC, SP as STACK, X0};
        let mapping = self.modules.maps().find(at.pc).filter(|mapping| mapping.executable)?;
        let is_special = matches!(mapping.backing, Backing::Special(_));
        if memory.read_u64(at.pc)?.to_le_bytes() != arch::SIGNAL_RETURN {
            return None;
        }
        if !is_special && self.row(memory, at.pc).is_ok() {
            return None;
        }
        let sp = at.get(SP)?;
        let saved = |distance: u64| memory.read_u64(sp.checked_add(distance)?);
        let mut interrupted = Registers::new(saved(PC)?, saved(STACK)?);
        for number in 0..31 {
            let register = lockstead_unwind::Register(number);
            interrupted = interrupted.with(register, saved(X0 + u64::from(number) * 8));
        }
        self.is_code(interrupted.pc).then_some(interrupted)
    }

    /// Returns what an exception that comes from this place would do in its frame. `None` where no
    /// table tells: it would pass, or the code was compiled without exceptions.
    pub fn landing(&mut self, memory: &dyn ReadableMemory, at: CodeAddress) -> Option<Landing> {
        self.table(memory, at.lookup())?.landing(at.lookup())
    }

    /// Returns where a function has saved its return address that is at this place and whose frame ends at `end`;
    /// `None` where no table tells, or the address is in its register.
    pub fn return_place(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        end: u64,
    ) -> Option<u64> {
        self.row(memory, at.lookup()).ok()?.return_place(end)
    }

    /// Returns where the function begins, or the part of it, in which this instruction stands; `None`
    /// where no table tells.
    pub fn function(&mut self, memory: &dyn ReadableMemory, instruction: u64) -> Option<u64> {
        self.row(memory, instruction).ok().map(|row| row.function)
    }

    fn is_code(&self, address: u64) -> bool {
        self.modules.maps().find(address).is_some_and(|m| m.executable)
    }

    fn module_name(&self, address: u64) -> Option<String> {
        match &self.modules.maps().find(address)?.backing {
            Backing::File { path, .. } => Some(path.display().to_string()),
            Backing::Special(name) => Some(name.clone()),
            Backing::Anonymous => None,
        }
    }

    fn row(&mut self, memory: &dyn ReadableMemory, address: u64) -> Result<Rc<RowInFile>, NoRule> {
        if let Some(known) = self.rows.get(&address) {
            return known.clone();
        }
        let found = self
            .table(memory, address)
            .and_then(|table| table.row(address))
            .map(Rc::new)
            .ok_or_else(|| NoRule { module: self.module_name(address) });
        self.rows.insert(address, found.clone());
        found
    }

    /// Returns the table for the code at `address`.
    fn table(&mut self, memory: &dyn ReadableMemory, address: u64) -> Option<Rc<ModuleTables>> {
        let start = self.modules.maps().find(address)?.range.start;
        if let Some(known) = self.tables.get(&start) {
            return known.clone();
        }
        let table = match self.modules.place(address) {
            CodePlace::File { module: Some(module), bias, .. } => {
                Some(ModuleTables::new(module, bias))
            }
            CodePlace::File { module: None, .. } | CodePlace::Special(_) => self
                .modules
                .copied(memory, address)
                .map(|(module, bias)| ModuleTables::new(module.into(), bias)),
            CodePlace::Anonymous | CodePlace::Nowhere => None,
        };
        let table = table.map(Rc::new);
        self.tables.insert(start, table.clone());
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ProcessMemory;

    /// Makes rows for the addresses of a mapping, by a file or by a copy of memory.
    fn rows(table: &ModuleTables, range: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        let row = |address| table.row(address).map(|row| (address, row.function));
        range.step_by(16).filter_map(row).collect()
    }

    #[test]
    fn a_copy_of_memory_serves_where_the_file_is_missing() {
        let pid = std::process::id();
        let memory = ProcessMemory::new(pid);
        let mut modules = Modules::of(pid).expect("one's own");
        let here = rows as fn(&ModuleTables, _) -> _ as usize as u64;
        let CodePlace::File { module: Some(module), bias, .. } = modules.place(here) else {
            panic!("no file behind this code");
        };
        let file = ModuleTables::new(module, bias);
        let (copy, bias) = modules.copied(&memory, here).expect("readable");
        let copy = ModuleTables::new(copy.into(), bias);
        let range = here..here + 4096;
        assert!(!rows(&file, range.clone()).is_empty());
        assert_eq!(rows(&file, range.clone()), rows(&copy, range));
    }

    #[test]
    fn the_kernels_page_of_code_can_be_left() {
        let pid = std::process::id();
        #[cfg_attr(target_arch = "aarch64", allow(unused_mut, reason = "no table is read"))]
        let mut unwinder = Unwinder::new(Modules::of(pid).expect("one's own"));
        let vdso = |m: &&crate::maps::MapsLine| m.backing == Backing::Special("[vdso]".into());
        let Some(range) = unwinder.modules().maps().iter().find(vdso).map(|m| m.range.clone())
        else {
            println!("skipped: no [vdso] here");
            return;
        };
        let memory = ProcessMemory::new(pid);
        // On aarch64 it is known by its instructions; tables it may have none.
        #[cfg(target_arch = "aarch64")]
        let found = range
            .step_by(4)
            .filter_map(|at| memory.read_u64(at))
            .filter(|code| code.to_le_bytes() == arch::SIGNAL_RETURN)
            .count();
        #[cfg(target_arch = "x86_64")]
        let found = range.step_by(16).filter(|&at| unwinder.row(&memory, at).is_ok()).count();
        assert!(found > 0);
    }

    #[test]
    fn newer_maps_keep_what_was_learnt_unless_code_moved() {
        let pid = std::process::id();
        let mut unwinder = Unwinder::new(Modules::of(pid).expect("one's own"));
        let here = rows as fn(&ModuleTables, _) -> _ as usize as u64;
        assert!(unwinder.row(&ProcessMemory::new(pid), here).is_ok());
        unwinder.update(Maps::of(pid).expect("one's own"));
        assert!(unwinder.rows.contains_key(&here));
        unwinder.update(Maps::default());
        assert!(unwinder.rows.is_empty());
        assert!(unwinder.row(&ProcessMemory::new(pid), here).is_err(), "nothing is mapped");
    }
}
