//! Whether a thread is inside the library, or has yet to come back to it.
//!
//! # Role
//! The library may be unloaded when no thread runs in it, no frame of it is on a stack, and nobody has
//! a pointer by which it could be entered again. Threads are looked at one by one: once calls lead past
//! the library, a thread that is out of it stays out. A pointer to one of its functions that a program
//! has read, into a register, on its stack or elsewhere, is made one to the C library's function.
//! Handlers of forks and destructors of keys are called by the C library, which has the address of the
//! next one in memory of its own at that moment, when it has been told to forget it already. So a
//! thread that is in a fork counts as one that is inside, and so does one that runs and has no frames
//! but the C library's, as a thread has that ends.
//!
//! A thread that sleeps in a function of the C library, called by one of the library's assembler
//! frames, may sleep for hours. It is led past that frame: where it would return to the library it
//! returns to instructions of the C library that leave such a frame in the same way.

use super::arch::{self, Exits, HeldRegisters, program_counter, stack_pointer};
use super::call::{ABOVE, Borrowed, CallPlaces};
use super::library::Library;
use super::memory::TargetMemory;
use super::moment::{has_room, is_whole, most_stack};
use super::objects::Objects;
use super::slots::stop_all;
use super::trace::{Asked, Held};
use lockstead_inspect::maps::{Backing, Maps};
use lockstead_inspect::memory::{ReadableMemory, page_size};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::proc::task;
use lockstead_inspect::stack;
use lockstead_inspect::unwind::{Registers, Unwinder, Unwound};
use lockstead_ledger::attach::SIGN;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The time for a thread to stand still.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two rounds.
const PAUSE: Duration = Duration::from_millis(2);
/// The most of a stack, and of all memory, that is looked through.
const MOST_STACK: u64 = 64 << 20;
const MOST_MEMORY: u64 = 8 << 30;

/// The words of a stack, from the stack pointer on.
struct StackWords {
    /// Where each lies, and what it is.
    words: Vec<(u64, u64)>,
    /// These are all that the thread has on any stack: it is on the one that it began on.
    is_whole: bool,
}

/// Looks for threads that are inside the library.
pub(super) struct Leaving<'a> {
    pid: u32,
    memory: &'a TargetMemory,
    library: &'a Library,
    unwinder: Unwinder,
    exits: Exits,
    places: Option<CallPlaces>,
    /// What threads have signed: the address and the end of the frame, by the thread.
    signed: HashMap<(libc::pid_t, u64, u64), u64>,
    /// What the thread is to sign that is looked at.
    wanted: Vec<(u64, u64)>,
    /// Where `fork` lies, which calls the handlers.
    fork: (u64, u64),
}

impl<'a> Leaving<'a> {
    /// Reads the files of the process, and finds the places in the C library to which a thread can be
    /// led past a frame of the library's.
    ///
    /// # Errors
    /// The process has ended.
    pub(super) fn new(
        pid: u32,
        memory: &'a TargetMemory,
        library: &'a Library,
    ) -> io::Result<Leaving<'a>> {
        let mut unwinder = Unwinder::new(Modules::of(pid)?);
        let objects = Objects::of(pid, memory).ok_or(io::ErrorKind::NotFound)?;
        let fork = objects.libc().and_then(|libc| libc.defined(memory, "fork"));
        let fork = fork.map_or((0, 0), |fork| (fork.address, fork.address + fork.size));
        let code = objects.libc().and_then(|libc| libc.code(memory));
        let exits = Exits::of(&mut unwinder, code);
        let places = CallPlaces::of(&objects, memory);
        let (signed, wanted) = (HashMap::new(), Vec::new());
        Ok(Leaving { pid, memory, library, unwinder, exits, places, signed, wanted, fork })
    }

    /// Waits until no thread is inside. Returns the threads that still are when the time is over.
    ///
    /// # Errors
    /// The process has ended, or may not be traced.
    pub(super) fn wait(&mut self, deadline: Instant) -> io::Result<Vec<u32>> {
        let mut outside = HashSet::new();
        loop {
            self.unwinder.update(Maps::of(self.pid)?);
            let all = task::numbers(self.pid)?;
            let mut inside = Vec::new();
            let mut looked = false;
            for tid in all {
                if outside.contains(&tid) {
                    continue;
                }
                looked = true;
                if self.is_outside(tid)? {
                    outside.insert(tid);
                } else {
                    inside.push(tid);
                }
            }
            // Threads may have begun meanwhile, made by one that was inside still.
            if !looked {
                return Ok(Vec::new());
            }
            if Instant::now() >= deadline {
                return Ok(inside);
            }
            if !inside.is_empty() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn is_outside(&mut self, tid: u32) -> io::Result<bool> {
        let asked = match Asked::new(tid) {
            Ok(asked) => asked,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(true),
            Err(error) => return Err(error),
        };
        let Some((held, _)) = asked.stands(Instant::now() + PATIENCE)? else { return Ok(true) };
        let has_left = self.has_left(&held)?;
        if !self.wanted.is_empty() {
            match self.have_signed(held) {
                // It has ended, or what it needs is not there: it is looked at again.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EIO)) => {}
                signed => signed?,
            }
        }
        Ok(has_left)
    }

    /// Has a thread sign what is wanted of it, by which it can be led past a frame the next time.
    fn have_signed(&mut self, mut held: Held) -> io::Result<()> {
        let (end, wanted) = (Instant::now() + PATIENCE, std::mem::take(&mut self.wanted));
        let standing = arch::standing(&mut held, self.memory, end)?;
        let (Some(standing), Some(places)) = (standing, self.places) else { return Ok(()) };
        let registers = arch::registers_of(&standing);
        let at = (stack_pointer(registers), held.thread_pointer(registers)?);
        let (sign, tid) = (self.library.function(SIGN), held.number());
        let is_main = tid.unsigned_abs() == self.pid;
        let limit = if is_main { most_stack(self.pid) } else { None };
        let maps = self.unwinder.modules().maps();
        if sign == 0 || !has_room(maps, self.memory, limit, at, ABOVE) {
            return Ok(());
        }
        let mut borrowed = Borrowed::new((held, standing), self.memory, places, end)?;
        let signed = wanted.into_iter().try_for_each(|(address, end)| {
            let word = borrowed.answer(sign, [address, end])?;
            self.signed.insert((tid, address, end), word);
            Ok(())
        });
        borrowed.give_back()?;
        signed
    }

    fn has_left(&mut self, held: &Held) -> io::Result<bool> {
        let mut r = held.registers()?;
        let pc = program_counter(&r);
        if self.library.contains(pc) || self.is_taken(pc) {
            return Ok(false);
        }
        let asleep = arch::interrupted(&r, self.memory).is_some();
        let stack = self.stack(&r, held.thread_pointer(&r)?);
        let stack_words = stack.words.iter().map(|&(_, word)| word);
        let (kept, others) = arch::words(&mut r);
        // What a system call leaves in the others nobody uses.
        let words = kept.into_iter().chain(others.into_iter().filter(|_| !asleep));
        let words: Vec<&mut u64> = words.collect();
        let is_called_back = |word: u64| word != 0 && self.library.called_back.contains(&word);
        if stack_words.chain(words.iter().map(|word| **word)).any(is_called_back) {
            return Ok(false);
        }
        let mut changed = false;
        for word in words {
            if let Some(real) = self.library.behind(*word) {
                *word = real;
                changed = true;
            }
        }
        if changed {
            held.set_registers(&r)?;
        }
        for &(at, word) in &stack.words {
            if let Some(real) = self.library.behind(word) {
                self.memory.write_u64(at, real)?;
            }
        }
        let unwound = self.unwinder.unwind(self.memory, Registers::all(&r));
        let forks = |&word: &u64| (self.fork.0..self.fork.1).contains(&word);
        if !is_whole(&unwound) {
            // A handler that runs on a stack of its own has interrupted something on another one, which
            // may lie below.
            let is_below = |pair: &[Registers]| pair[1].stack_pointer() < pair[0].stack_pointer();
            // What leads to the first byte of `fork` is a pointer to it, and no return.
            let is_kept = |word: u64| {
                let returns_to_fork = word != self.fork.0 && forks(&word);
                self.library.contains(word) || returns_to_fork || self.is_taken(word)
            };
            let keeps = |word: u64| is_kept(arch::address_in(word, is_kept));
            return Ok(stack.is_whole
                && !unwound.registers.windows(2).any(is_below)
                && !stack.words.iter().any(|&(_, word)| keeps(word))
                && !arch::link(&r).is_some_and(keeps));
        }
        let mut places = unwound.frames.iter().map(|frame| frame.lookup());
        let is_about_to_call = !asleep && places.clone().all(|at| self.is_of_libc(at));
        if is_about_to_call || places.any(|at| forks(&at)) {
            return Ok(false);
        }
        let ours: Vec<usize> = (0..unwound.frames.len())
            .filter(|&at| self.library.contains(unwound.frames[at].lookup()))
            .collect();
        match *ours.as_slice() {
            [] => Ok(true),
            [frame] if asleep => self.lead_past(held, &unwound, frame),
            _ => Ok(false),
        }
    }

    /// Returns the words of the stack that a thread is on.
    fn stack(&self, r: &HeldRegisters, pointer: u64) -> StackWords {
        let mut stack = StackWords { words: Vec::new(), is_whole: false };
        let sp = stack_pointer(r);
        let from = (sp - arch::RED_ZONE) & !7;
        let Some(mapping) = self.unwinder.modules().maps().find(from) else { return stack };
        let size = mapping.range.end - from;
        let Ok(bytes) = self.memory.bytes(from, size.min(MOST_STACK) as usize) else {
            return stack;
        };
        stack.words = (from..).step_by(8).zip(bytes.chunks_exact(8).map(word)).collect();
        // The thread's descriptor lies at the end of its stack; the first one's lies elsewhere.
        let is_its_own = mapping.range.contains(&pointer) && sp < pointer
            || matches!(&mapping.backing, Backing::Special(name) if name == "[stack]");
        stack.is_whole = is_its_own && size <= MOST_STACK;
        stack
    }

    /// Leads a sleeping thread past a frame of the library's, to which the C library's function would
    /// return that it sleeps in. Returns false if the frame is none that can be left so.
    fn lead_past(&mut self, held: &Held, unwound: &Unwound, frame: usize) -> io::Result<bool> {
        let inner = &unwound.frames[..frame];
        let of_libc = inner.iter().all(|frame| self.is_of_libc(frame.lookup()));
        if !of_libc || inner.is_empty() {
            return Ok(false);
        }
        let mut sign = |address, end| {
            let known = self.signed.get(&(held.number(), address, end)).copied();
            self.wanted.extend(known.is_none().then_some((address, end)));
            known
        };
        self.exits.lead_past(held, self.memory, &mut self.unwinder, unwound, frame, &mut sign)
    }

    /// Tells whether this is the address by which the kernel has replaced one that is returned to, for
    /// a uretprobe: where it leads is known to the kernel alone.
    fn is_taken(&self, address: u64) -> bool {
        let maps = self.unwinder.modules().maps();
        maps.find(address).is_some_and(
            |mapping| matches!(&mapping.backing, Backing::Special(name) if name == "[uprobes]"),
        )
    }

    fn is_of_libc(&self, address: u64) -> bool {
        let maps = self.unwinder.modules().maps();
        maps.find(address).is_some_and(|mapping| match &mapping.backing {
            Backing::File { path, .. } => stack::is_glibc(&path.to_string_lossy()),
            _ => false,
        })
    }

    /// Replaces the addresses of functions of the library's that lie somewhere in the program's memory
    /// by those of the C library's functions, while all threads stand still. Returns false if some
    /// were found again and again.
    ///
    /// # Errors
    /// The memory cannot be read, there is too much of it, or a thread does not stand still.
    pub(super) fn replace_pointers(&self) -> io::Result<bool> {
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            let found = self.pointers()?;
            if found.is_empty() {
                return Ok(true);
            }
            let held = stop_all(self.pid, Instant::now() + PATIENCE)?;
            for at in found {
                let word = self.memory.read_u64(at);
                if let Some(real) = word.and_then(|word| self.library.behind(word)) {
                    self.memory.write_u64(at, real)?;
                }
            }
            drop(held);
        }
        Ok(false)
    }

    /// Returns where in the program's memory lies the address of a function of the library's.
    fn pointers(&self) -> io::Result<Vec<u64>> {
        const PART: usize = 1 << 20;
        let page = page_size();
        let pages = File::open(format!("/proc/{}/pagemap", self.pid))?;
        let mut left = MOST_MEMORY;
        let mut found = Vec::new();
        for mapping in Maps::of(self.pid)?.iter().filter(|mapping| mapping.writable) {
            let is_its_own = match &mapping.backing {
                Backing::File { path, .. } => {
                    path.to_string_lossy().contains(lockstead_ledger::hello::LIBRARY)
                        || path.to_string_lossy().contains("/memfd:lockstead-")
                }
                _ => false,
            };
            if is_its_own || mapping.shared {
                continue;
            }
            let mut at = mapping.range.start;
            while at < mapping.range.end {
                let size = (mapping.range.end - at).min(PART as u64);
                let mut there = vec![0; (size / page * 8) as usize];
                pages.read_exact_at(&mut there, at / page * 8)?;
                // Present, or swapped out.
                let used = there.chunks_exact(8).map(word).filter(|page| page >> 62 != 0).count();
                if used != 0 {
                    left = left.checked_sub(size).ok_or_else(|| {
                        io::Error::other("it has too much memory to look through")
                    })?;
                    let bytes = self.memory.pages(at, size as usize, page as usize)?;
                    let words = (at..).step_by(8).zip(bytes.chunks_exact(8).map(word));
                    let ours = words.filter(|&(_, word)| self.library.behind(word).is_some());
                    found.extend(ours.map(|(at, _)| at));
                }
                at += size;
            }
        }
        Ok(found)
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
}
