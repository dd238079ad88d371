//! Which thread of the process can make a call for the command, and when.
//!
//! # Role
//! What is called takes locks of the loader and of the allocator, so a thread that holds one of these
//! must not make the call. One that sleeps in a call that neither of them makes holds none, and
//! neither does one that runs code outside of the C library, if it did not come there out of the
//! loader or the allocator. So all frames of its stack must be known, down to where it began; none may
//! be the loader's or of a signal's handler, and the C library's only at both ends.

use super::arch::{self, HeldRegisters, Standing, stack_pointer};
use super::call::Borrowed;
use super::filters::FUTEX;
use super::memory::TargetMemory;
use super::objects::Objects;
use super::trace::{Asked, Held, Stop};
use lockstead_inspect::maps::{Backing, Maps};
use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::modules::{CodePlace, Modules};
use lockstead_inspect::proc::task::{self, TaskDoing};
use lockstead_inspect::stack::{self, CodeAddress, StackEnd};
use lockstead_inspect::unwind::{Registers, Unwinder, Unwound};
use std::io;
use std::ops::Range;
use std::ptr;
use std::time::{Duration, Instant};

/// The time for a thread to stand still.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two rounds.
const PAUSE: Duration = Duration::from_millis(5);
/// The frames of the C library's with which a thread or a program begins.
const BEGINNING: usize = 3;

/// Sleeps on every processor that begin again by themselves, or go on.
const SLEEPS: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_rt_sigsuspend,
    libc::SYS_read,
];
/// Sleeps on every processor that end when somebody looks.
const ENDING: &[libc::c_long] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
];
/// Functions of the C library that sleep on a futex and are not the allocator's or the loader's.
const WAITING: &[&str] = &[
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "pthread_join",
    "pthread_barrier_wait",
    "syscall",
];

/// Looks for threads that can make calls.
pub(super) struct Moments<'a> {
    pid: u32,
    memory: &'a TargetMemory,
    unwinder: Unwinder,
    /// Where the functions of [`WAITING`] lie.
    waiting: Vec<(u64, u64)>,
    /// Where the functions begin that the calls of these end in: the slow path of a semaphore's wait,
    /// which has no name.
    ends: Vec<u64>,
    /// Where `read` lies: newer C libraries have it call another function that makes the call.
    reading: (u64, u64),
    reading_ends: Vec<u64>,
    /// Files that have an allocator of their own.
    allocators: Vec<String>,
}

impl<'a> Moments<'a> {
    /// Reads the files of the process, and which functions of theirs sleep without a lock.
    ///
    /// # Errors
    /// The process has ended.
    pub(super) fn new(pid: u32, memory: &'a TargetMemory, objects: &Objects) -> io::Result<Self> {
        let libc = objects.libc();
        let reading = libc.and_then(|libc| libc.defined(memory, "read"));
        let reading = reading.map_or((0, 0), |found| (found.address, found.address + found.size));
        let waiting = WAITING.iter().filter_map(|name| libc?.defined(memory, name));
        let waiting: Vec<(u64, u64)> =
            waiting.map(|found| (found.address, found.address + found.size)).collect();
        let others = objects.iter().filter(|object| object.base_name() != "libc.so.6");
        let allocators = others
            .filter(|object| !object.is_loader() && object.function(memory, "malloc").is_some())
            .map(|object| object.name.clone())
            .collect();
        let mut unwinder = Unwinder::new(Modules::of(pid)?);
        let reading_ends = jumps_out(memory, reading);
        let ends = waiting.iter().flat_map(|&waiting| jumps_out(memory, waiting));
        let ends = ends.filter(|&at| unwinder.function(memory, at) == Some(at)).collect();
        Ok(Moments { pid, memory, unwinder, waiting, ends, reading, reading_ends, allocators })
    }

    /// Waits until a thread can make calls, and returns it, and how it stands. `None` when the time is over.
    ///
    /// # Errors
    /// The process has ended, or may not be traced.
    pub(super) fn find(&mut self, deadline: Instant) -> io::Result<Option<(Held, Standing)>> {
        loop {
            self.unwinder.update(Maps::of(self.pid)?);
            let tids = task::numbers(self.pid)?;
            let mut ranked: Vec<_> =
                tids.iter().filter_map(|&tid| Some((self.rank(tid)?, tid))).collect();
            ranked.sort_unstable();
            for (_, tid) in ranked {
                if let Some(held) = self.hold(tid)? {
                    return Ok(Some(held));
                }
                if Instant::now() >= deadline {
                    return Ok(None);
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Says how little a thread is disturbed; `None` if it need not be asked.
    fn rank(&self, tid: u32) -> Option<u8> {
        match task::doing(self.pid, tid).ok()? {
            TaskDoing::Call(call) if is_sleep(call.number) => Some(0),
            TaskDoing::Call(call) if is_futex(call.number) => Some(1),
            TaskDoing::Call(call) if is_ending(call.number) => Some(2),
            TaskDoing::Running => Some(3),
            _ => None,
        }
    }

    fn hold(&mut self, tid: u32) -> io::Result<Option<(Held, Standing)>> {
        let asked = match Asked::new(tid) {
            Ok(asked) => asked,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            Err(error) => return Err(error),
        };
        let deadline = Instant::now() + PATIENCE;
        let Some((mut held, Stop::Asked)) = asked.stands(deadline)? else {
            return Ok(None);
        };
        let registers = held.registers()?;
        let pointer = held.thread_pointer(&registers)?;
        let at = (stack_pointer(&registers), pointer);
        let maps = self.unwinder.modules().maps();
        let limit = if tid == self.pid { most_stack(tid) } else { None };
        let fits = has_room(maps, self.memory, limit, at, Borrowed::NEEDS)
            && self.may_call(&registers)
            && !may_be_in_section(&held, &registers, self.memory);
        let standing = if fits { arch::standing(&mut held, self.memory, deadline)? } else { None };
        Ok(standing.map(|standing| (held, standing)))
    }

    fn may_call(&mut self, registers: &HeldRegisters) -> bool {
        let unwound = self.unwinder.unwind(self.memory, Registers::all(registers));
        if !is_whole(&unwound) {
            return false;
        }
        let frames = &unwound.frames;
        let files: Option<Vec<String>> =
            frames.iter().map(|frame| self.file(frame.lookup())).collect();
        let Some(files) = files else { return false };
        let of_libc = |file: &String| stack::is_glibc(file);
        let first = files.iter().take_while(|file| of_libc(file)).count();
        let end = files.len().saturating_sub(BEGINNING).max(first);
        if files[first..end].iter().any(of_libc)
            || files.iter().any(|file| file.contains("/ld-linux"))
            || files.iter().any(|file| self.allocators.contains(file))
        {
            return false;
        }
        let Some(call) = arch::interrupted(registers, self.memory) else {
            return first == 0 && self.allocators.is_empty();
        };
        let number = call.before_restart(self.memory).number;
        let waits = |&(start, end): &(u64, u64)| {
            frames[..first].iter().any(|frame| (start..end).contains(&frame.lookup()))
        };
        let ends = frames[..first].iter().any(|frame| {
            let function = self.unwinder.function(self.memory, frame.lookup());
            function.is_some_and(|function| self.ends.contains(&function))
        });
        match number {
            _ if first == 0 => false,
            _ if is_futex(number) => {
                self.allocators.is_empty() && (ends || self.waiting.iter().any(waits))
            }
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => self.allocators.is_empty(),
            // A file of the loader's is read with other files open; what sleeps is a pipe or a socket,
            // and such a call is the program's own where the next frame is.
            libc::SYS_read => first == 1 || self.reads(&frames[first - 1]),
            _ => is_sleep(number) || is_ending(number),
        }
    }

    /// Tells whether a frame is that of `read`, or of the function that it ends in.
    fn reads(&mut self, frame: &CodeAddress) -> bool {
        let at = frame.lookup();
        let function = self.unwinder.function(self.memory, at);
        (self.reading.0..self.reading.1).contains(&at)
            || function.is_some_and(|function| self.reading_ends.contains(&function))
    }

    /// Returns the file that an address of code lies in.
    fn file(&mut self, address: u64) -> Option<String> {
        match self.unwinder.modules_mut().place(address) {
            CodePlace::File { path, .. } => Some(path.to_string_lossy().into_owned()),
            CodePlace::Special(name) => Some(name),
            CodePlace::Nowhere | CodePlace::Anonymous => None,
        }
    }
}

/// Tells whether the stack is the thread's own, with `room` bytes below the stack pointer. `at` is that, and where the
/// thread's own variables begin. `limit`: what the first thread's stack may grow to.
pub(super) fn has_room(
    maps: &Maps,
    memory: &TargetMemory,
    limit: Option<u64>,
    (sp, pointer): (u64, u64),
    room: u64,
) -> bool {
    const MAPPED: u64 = 32 << 10;
    let Some(stack) = maps.find(sp) else { return false };
    match &stack.backing {
        // It grows.
        Backing::Special(name) if name == "[stack]" => limit.is_some_and(|limit| {
            let used = stack.range.end - sp;
            sp - stack.range.start >= MAPPED && used.saturating_add(room) <= limit
        }),
        // A program may have given it a part of a mapping, and what lies below that is other data. A guard may
        // lie within the mapping, too, and nobody can read that.
        Backing::Anonymous | Backing::Special(_) => {
            let own = stack_of(memory, (sp, pointer));
            stack.writable
                && own.is_some_and(|own| sp - own.start >= room)
                && memory.bytes(sp - room, room as usize).is_ok()
        }
        Backing::File { .. } => false,
    }
}

/// Returns the stack that the C library's descriptor of a thread names, without its guard. Its place in the
/// descriptor differs from version to version: three words after one another, the lowest address, the size and
/// the size of the guard, around the stack pointer and the descriptor itself, which lies on it.
fn stack_of(memory: &TargetMemory, (sp, pointer): (u64, u64)) -> Option<Range<u64>> {
    /// No stack is larger.
    const MOST: u64 = 1 << 40;
    let (from, length) = arch::DESCRIPTOR;
    let mut bytes = vec![0; length];
    let read = memory.read(pointer.checked_add_signed(from)?, &mut bytes).ok()?;
    let (words, _) = bytes[..read].as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    words.windows(3).find_map(|words| {
        let &[lowest, size, guard] = words else { return None };
        let end = lowest.checked_add(size).filter(|_| size <= MOST && guard < size)?;
        let stack = lowest + guard..end;
        (stack.contains(&sp) && sp < pointer && pointer <= end).then_some(stack)
    })
}

/// Returns the bytes to which the kernel lets the stack of a process's first thread grow.
pub(super) fn most_stack(pid: u32) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let pid = libc::pid_t::try_from(pid).ok()?;
    // SAFETY: the kernel writes to a structure of ours, and changes nothing.
    let done = unsafe { libc::prlimit(pid, libc::RLIMIT_STACK, ptr::null(), &raw mut limit) };
    (done == 0).then_some(limit.rlim_cur)
}

/// Tells whether a thread may be in a restartable section. The kernel has it begin the section anew when it goes
/// on; one that makes calls meanwhile is out of it for the kernel, and would go on in the middle.
fn may_be_in_section(held: &Held, registers: &HeldRegisters, memory: &TargetMemory) -> bool {
    /// Where the word lies in `struct rseq` that leads to the section, and the words of `struct rseq_cs`.
    const SECTION: u64 = 8;
    const START: u64 = 8;
    const LENGTH: u64 = 16;
    if arch::interrupted(registers, memory).is_some() {
        // No call is made in a section.
        return false;
    }
    let place = match held.sections() {
        Ok(0) => return false,
        Ok(place) => place,
        Err(_) => return true,
    };
    let word = |at: u64| memory.read_u64(at);
    let Some(section) = word(place + SECTION) else { return true };
    let inside = || {
        let (start, length) = (word(section + START)?, word(section + LENGTH)?);
        Some(arch::program_counter(registers).wrapping_sub(start) < length)
    };
    section != 0 && inside().unwrap_or(true)
}

/// Returns where the jumps lead by which the code of a function is left, and perhaps other places: what
/// looks like such a jump may be a part of something else.
fn jumps_out(memory: &TargetMemory, (start, end): (u64, u64)) -> Vec<u64> {
    let code = memory.bytes(start, (end - start) as usize).unwrap_or_default();
    let leads = arch::jumps(&code, start).into_iter();
    leads.filter(|at| !(start..end).contains(at)).collect()
}

/// Tells whether the call is a sleep that begins again by itself, or goes on.
fn is_sleep(number: libc::c_long) -> bool {
    SLEEPS.contains(&number) || arch::SLEEPS.contains(&number)
}

/// Tells whether the call is a sleep that ends when somebody looks.
fn is_ending(number: libc::c_long) -> bool {
    ENDING.contains(&number) || arch::ENDING.contains(&number)
}

/// Tells whether the call may be one on a futex word: one that goes on after a stop does not always say
/// what it is.
fn is_futex(number: libc::c_long) -> bool {
    number == FUTEX || number == libc::SYS_restart_syscall
}

/// Tells whether all frames of a stack are known for certain, and none is of a signal's handler.
pub(super) fn is_whole(unwound: &Unwound) -> bool {
    unwound.end == StackEnd::Bottom
        && unwound.frames.iter().all(|frame| !frame.found)
        && unwound.frames[1..].iter().all(|frame| frame.returns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_within_the_mapping_of_a_stack_is_no_room() {
        /// `MADV_GUARD_INSTALL`, from Linux 6.13 on.
        const INSTALL_GUARD: libc::c_int = 102;
        const LENGTH: usize = 1 << 20;
        const GUARD: usize = LENGTH / 4;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: asks for memory wherever there is some; nothing else has it.
        let stack = unsafe { libc::mmap(std::ptr::null_mut(), LENGTH, protection, flags, -1, 0) };
        assert_ne!(stack, libc::MAP_FAILED);
        let (start, end) = (stack.addr() as u64, (stack.addr() + LENGTH) as u64);
        let (sp, pointer) = (start + (LENGTH / 2) as u64, end - 0x1000);
        // As the C library has it somewhere in its descriptor.
        let describe = |lowest: u64, guard: u64| {
            let (from, length) = arch::DESCRIPTOR;
            let words = [lowest, end - lowest, guard].map(u64::to_ne_bytes);
            let at = pointer.wrapping_add_signed(from) + length as u64 / 2;
            // SAFETY: in the mapping, which nobody else has: the descriptor is smaller than what is left of it.
            unsafe {
                let place = ptr::with_exposed_provenance_mut::<[u8; 24]>(at as usize);
                place.write(words.as_flattened().try_into().expect("three words"));
            }
        };
        let has_room = |room: u64| {
            let maps = Maps::of(std::process::id()).expect("own mappings");
            let memory = TargetMemory::open(std::process::id()).expect("own memory");
            super::has_room(&maps, &memory, None, (sp, pointer), room)
        };
        assert!(!has_room(0), "nothing says that it is its stack");
        // A part of the mapping alone is the stack.
        describe(sp - 4096, 0);
        assert!(has_room(4096) && !has_room(4097));
        describe(start, 0);
        let (less, more) = (sp - start - GUARD as u64, sp - start - GUARD as u64 + 1);
        assert!(has_room(less) && has_room(more));
        // SAFETY: nobody but this function has the memory, which it does not touch any more.
        if unsafe { libc::madvise(stack, GUARD, INSTALL_GUARD) } == 0 {
            assert!(has_room(less) && !has_room(more));
        } else {
            println!("skipped: this kernel has no guards within mappings (Linux 6.13)");
        }
        // SAFETY: as above, of all of it.
        assert_eq!(unsafe { libc::munmap(stack, LENGTH) }, 0);
    }
}
