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

use super::library::Library;
use super::memory::TargetMemory;
use super::moment::{interrupted, is_whole};
use super::objects::Objects;
use super::slots::stop_all;
use super::trace::{Asked, Held};
use lockstead_inspect::maps::{Backing, Maps};
use lockstead_inspect::memory::{ReadableMemory, SavedMemory};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::owners::lsda::Landing;
use lockstead_inspect::proc::task;
use lockstead_inspect::stack::{self, CodeAddress};
use lockstead_inspect::unwind::{Registers, Unwinder, Unwound};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The time for a thread to stand still.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two rounds.
const PAUSE: Duration = Duration::from_millis(2);
const RED_ZONE: u64 = 128;
/// The most of a stack, and of all memory, that is looked through.
const MOST_STACK: u64 = 64 << 20;
const MOST_MEMORY: u64 = 8 << 30;

/// What a call of `cancellable!` does when the C library's function has come back, before it leaves
/// its frame.
const BACK_FROM_WAIT: &[u8] = &[0x48, 0x98, 0x48, 0x89, 0x44, 0x24, 0x20];
/// The same of `syscall`.
const BACK_FROM_CALL: &[u8] = &[0x48, 0x89, 0x44, 0x24, 0x48, 0x48, 0x8d, 0x7c, 0x24, 0x10];
/// `leave; ret` and `xor %eax, %eax; ret`.
const LEAVE: &[u8] = &[0xc9, 0xc3];
const RETURN: &[u8] = &[0x31, 0xc0, 0xc3];

/// Instructions of the C library that leave a frame.
#[derive(Clone, Copy, Debug)]
struct Exits {
    /// Leaves a frame that the frame pointer stands at.
    leave: Option<u64>,
    /// The address of an instruction that returns, with nothing on the stack above.
    ret: Option<u64>,
}

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
        let exits = code.map_or(Exits { leave: None, ret: None }, |(start, code)| {
            let mut find = |bytes: &[u8], skip: u64, is: fn(&mut Unwinder, u64, u64) -> bool| {
                let all = code.windows(bytes.len()).enumerate().filter(|(_, here)| *here == bytes);
                let mut places = all.map(|(at, _)| start + at as u64 + skip).take(64);
                places.find(|&at| is(&mut unwinder, at, start))
            };
            Exits { leave: find(LEAVE, 0, leaves_frame), ret: find(RETURN, 2, returns) }
        });
        Ok(Leaving { pid, memory, library, unwinder, exits, fork })
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
        match asked.stands(Instant::now() + PATIENCE)? {
            Some((held, _)) => self.has_left(&held),
            None => Ok(true),
        }
    }

    fn has_left(&mut self, held: &Held) -> io::Result<bool> {
        let mut r = held.registers()?;
        if self.library.contains(r.rip) || self.is_taken(r.rip) {
            return Ok(false);
        }
        let asleep = interrupted(&r).is_some();
        let stack = self.stack(&r);
        let stack_words = stack.words.iter().map(|&(_, word)| word);
        let kept = [&mut r.rbx, &mut r.rbp, &mut r.r12, &mut r.r13, &mut r.r14, &mut r.r15];
        let others = [
            &mut r.rax, &mut r.rcx, &mut r.rdx, &mut r.rsi, &mut r.rdi, &mut r.r8, &mut r.r9,
            &mut r.r10, &mut r.r11,
        ];
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
            let keeps = |&(_, word): &(u64, u64)| {
                let returns_to_fork = word != self.fork.0 && forks(&word);
                self.library.contains(word) || returns_to_fork || self.is_taken(word)
            };
            return Ok(stack.is_whole
                && !unwound.registers.windows(2).any(is_below)
                && !stack.words.iter().any(keeps));
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
            [frame] if asleep => self.lead_past(&unwound, frame),
            _ => Ok(false),
        }
    }

    /// Returns the words of the stack that a thread is on.
    fn stack(&self, r: &libc::user_regs_struct) -> StackWords {
        let mut stack = StackWords { words: Vec::new(), is_whole: false };
        let from = (r.rsp - RED_ZONE) & !7;
        let Some(mapping) = self.unwinder.modules().maps().find(from) else { return stack };
        let size = mapping.range.end - from;
        let Ok(bytes) = self.memory.bytes(from, size.min(MOST_STACK) as usize) else {
            return stack;
        };
        stack.words = (from..).step_by(8).zip(bytes.chunks_exact(8).map(word)).collect();
        // The thread's descriptor lies at the end of its stack; the first one's lies elsewhere.
        let is_its_own = mapping.range.contains(&r.fs_base) && r.rsp < r.fs_base
            || matches!(&mapping.backing, Backing::Special(name) if name == "[stack]");
        stack.is_whole = is_its_own && size <= MOST_STACK;
        stack
    }

    /// Leads a sleeping thread past a frame of the library's, to which the C library's function would
    /// return that it sleeps in. Returns false if the frame is none that can be left so.
    fn lead_past(&mut self, unwound: &Unwound, frame: usize) -> io::Result<bool> {
        let (Some(place), Some(caller)) =
            (unwound.frames.get(frame), unwound.registers.get(frame + 1))
        else {
            return Ok(false);
        };
        let inner = &unwound.frames[..frame];
        let of_libc = inner.iter().all(|frame| self.is_of_libc(frame.lookup()));
        let here = &unwound.registers[frame];
        let (Some(sp), Some(end)) = (here.stack_pointer(), caller.stack_pointer()) else {
            return Ok(false);
        };
        let slot = sp - 8;
        if !of_libc || inner.is_empty() || self.memory.read_u64(slot) != Some(place.address) {
            return Ok(false);
        }
        let code = self.memory.bytes(place.address, BACK_FROM_CALL.len())?;
        if code.starts_with(BACK_FROM_WAIT)
            && let Some(leave) = self.exits.leave
            && here.frame_pointer() == Some(end - 16)
        {
            self.memory.write_u64(slot, leave)?;
            return Ok(true);
        }
        if code.starts_with(BACK_FROM_CALL)
            && let Some(ret) = self.exits.ret
            && (slot..slot + 4096).contains(&end)
        {
            // One return after the other, up to the caller's address. The registers that the frame has
            // saved were not changed since.
            let words = (end - 8 - slot) / 8;
            let bytes: Vec<u8> = (0..words).flat_map(|_| ret.to_ne_bytes()).collect();
            self.memory.write(slot, &bytes)?;
            return Ok(true);
        }
        Ok(false)
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
        const PAGE: u64 = 4096;
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
                let mut there = vec![0; (size / PAGE * 8) as usize];
                pages.read_exact_at(&mut there, at / PAGE * 8)?;
                // Present, or swapped out.
                let used = there.chunks_exact(8).map(word).filter(|page| page >> 62 != 0).count();
                if used != 0 {
                    left = left.checked_sub(size).ok_or_else(|| {
                        io::Error::other("it has too much memory to look through")
                    })?;
                    let bytes = self.memory.bytes(at, size as usize)?;
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

/// Returns where an instruction leads on a stack of these words, as whoever unwinds sees it: he looks
/// at the instruction before the address that is returned to.
fn leads(
    unwinder: &mut Unwinder,
    instruction: u64,
    words: &[u64],
    [rsp, rbp]: [u64; 2],
) -> Option<Registers> {
    const STACK: u64 = 0x10_0000;
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    (registers.rip, registers.rsp, registers.rbp) = (instruction - 1, STACK + rsp, STACK + rbp);
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let memory = SavedMemory::new(STACK, bytes);
    let unwound = unwinder.unwind(&memory, Registers::all(&registers));
    let caller = unwound.registers.get(1)?;
    // A thread that is cancelled would clean up for whoever has called from here.
    let landing = unwinder.landing(&memory, CodeAddress::return_to(instruction));
    let passes = matches!(landing, None | Some(Landing::Passes));
    (passes && !unwound.frames[1].found).then_some(*caller)
}

fn leaves_frame(unwinder: &mut Unwinder, instruction: u64, code: u64) -> bool {
    const BEFORE: u64 = 0x77_0000;
    // Nothing lies below the frame pointer: other registers cannot come from there.
    let caller = leads(unwinder, instruction, &[BEFORE, code + 16], [0, 0]);
    caller.is_some_and(|caller| {
        caller.pc() == code + 16
            && caller.frame_pointer() == Some(BEFORE)
            && caller.stack_pointer() == Some(0x10_0010)
    })
}

fn returns(unwinder: &mut Unwinder, instruction: u64, code: u64) -> bool {
    const BEFORE: u64 = 0x10_0000 + 0x1000;
    let caller = leads(unwinder, instruction, &[code + 16], [0, 0x1000]);
    caller.is_some_and(|caller| {
        caller.pc() == code + 16
            && caller.frame_pointer() == Some(BEFORE)
            && caller.stack_pointer() == Some(0x10_0008)
    })
}
