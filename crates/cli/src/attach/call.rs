//! Has a thread of the process call a function.
//!
//! # Protocol
//! The thread stands still, at a [`moment`](super::moment) at which it holds no lock that the function
//! takes. Below what it uses of its stack lies, as for a signal's handler, a frame with all of its
//! registers, and the address to which the function returns has the kernel take that frame down. So if
//! this command is killed while the function runs, the thread goes on as after a signal, with what it
//! was at. If it is not, it is stopped at that last call, which is not made, and gets its registers
//! back: then even the system call that it slept in goes on with the time that it had left.
//!
//! Each step of the command's leaves the thread such that it comes back by itself: it gets all
//! registers at once, its own or those for a function above such a frame. Meanwhile it blocks all
//! signals that can be, so that no handler comes in between.

use super::memory::TargetMemory;
use super::objects::Objects;
use super::trace::{CallSide, Held, Stop};
use std::io;
use std::time::Instant;

/// What a function may use below the stack pointer without moving it.
const RED_ZONE: u64 = 128;
/// The room for what a function is given.
const DATA: u64 = 4096;
/// The bytes of the kernel's frame: the return address, `struct ucontext`, and more than is read.
const FRAME: u64 = 512;
/// The room that functions need that are called.
pub(super) const ROOM: u64 = 96 << 10;
/// What the frame and the data need.
const ABOVE: u64 = 24 << 10;
/// `mov $15, %rax; syscall`: where handlers return to.
const RESTORER: &[u8] = &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
/// The number of `rt_sigreturn`, by which a handler's frame is taken down.
const SIGRETURN: u64 = 15;
/// The signals that the thread's own doing causes: blocked, they would end the process.
const OWN: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// The name of the C library's function that makes any system call.
const ANY_CALL: &str = "syscall";

/// Places in the C library that calls go through.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPlaces {
    /// The place that handlers return to.
    restorer: u64,
    /// Where a thread's `errno` lies, from its thread pointer.
    errno: u64,
    /// The C library's function that makes any system call.
    any_call: u64,
}

impl CallPlaces {
    /// Finds them. `None` if this C library is unlike all that are known.
    pub(super) fn of(objects: &Objects, memory: &TargetMemory) -> Option<CallPlaces> {
        let libc = objects.libc()?;
        let code = libc.code(memory)?;
        let at = code.1.windows(RESTORER.len()).position(|bytes| bytes == RESTORER)?;
        Some(CallPlaces {
            restorer: code.0 + at as u64,
            errno: errno_of(libc.function(memory, "__errno_location")?, memory)?,
            any_call: libc.function(memory, ANY_CALL)?,
        })
    }
}

/// Reads the distance of `errno` from the thread pointer in the code of `__errno_location`: it loads
/// that from a word, adds the thread pointer, and returns.
fn errno_of(function: u64, memory: &TargetMemory) -> Option<u64> {
    const ENDBR: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const LOAD: &[u8] = &[0x48, 0x8b, 0x05];
    const ADD: &[u8] = &[0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, 0xc3];
    let code = memory.bytes(function, 32).ok()?;
    let skipped = if code.starts_with(ENDBR) { ENDBR.len() } else { 0 };
    let rest = code[skipped..].strip_prefix(LOAD)?;
    let (distance, rest) = rest.split_first_chunk::<4>()?;
    if !rest.starts_with(ADD) {
        return None;
    }
    let next = function + (skipped + LOAD.len() + 4) as u64;
    let word = next.checked_add_signed(i32::from_le_bytes(*distance).into())?;
    lockstead_inspect::memory::ReadableMemory::read_u64(memory, word)
}

/// A thread that makes calls for the command.
#[derive(Debug)]
pub(super) struct Borrowed<'a> {
    held: Held,
    memory: &'a TargetMemory,
    places: CallPlaces,
    deadline: Instant,
    registers: libc::user_regs_struct,
    extended: Vec<u8>,
    blocked: u64,
    errno: [u8; 4],
    frame: u64,
    data: u64,
    used: u64,
    /// The last system call in a function that the kernel refused: its number and the error.
    pub(super) refused: Option<(u64, i64)>,
    last: i64,
    /// Whether it stands at the call that would take the frame down.
    has_called: bool,
}

impl<'a> Borrowed<'a> {
    /// Prepares a thread. Its stack has [`ROOM`] and [`ABOVE`] below.
    ///
    /// # Errors
    /// The system says so; the thread is as it was.
    pub(super) fn new(
        held: Held,
        memory: &'a TargetMemory,
        places: CallPlaces,
        deadline: Instant,
    ) -> io::Result<Borrowed<'a>> {
        let registers = held.registers()?;
        let extended = held.extended()?;
        let blocked = held.blocked()?;
        let errno = memory.bytes(registers.fs_base.wrapping_add(places.errno), 4)?;
        let data = (registers.rsp - RED_ZONE - DATA) & !63;
        let area = (data - extended.len() as u64 - 64) & !63;
        // The stack pointer where a function begins is eight more than a multiple of sixteen.
        let frame = ((area - FRAME) & !15) - 8;
        let borrowed = Borrowed {
            held,
            memory,
            places,
            deadline,
            registers,
            extended,
            blocked,
            errno: [errno[0], errno[1], errno[2], errno[3]],
            frame,
            data,
            used: 0,
            refused: None,
            last: 0,
            has_called: false,
        };
        borrowed.write_area(area)?;
        Ok(borrowed)
    }

    /// Writes the registers beside the general ones as the kernel leaves them to a handler.
    fn write_area(&self, area: u64) -> io::Result<()> {
        /// Where the kernel says what follows, in the bytes that the processor leaves alone.
        const SAID: usize = 464;
        let mut bytes = self.extended.clone();
        if bytes.len() < SAID + 48 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::Unsupported)?;
        let features: [u8; 8] = std::array::from_fn(|at| bytes[SAID + at]);
        bytes[SAID..SAID + 4].copy_from_slice(&0x4650_5853_u32.to_ne_bytes());
        bytes[SAID + 4..SAID + 8].copy_from_slice(&(length + 4).to_ne_bytes());
        bytes[SAID + 8..SAID + 16].copy_from_slice(&features);
        bytes[SAID + 16..SAID + 20].copy_from_slice(&length.to_ne_bytes());
        bytes.extend(0x4650_5845_u32.to_ne_bytes());
        self.memory.write(area, &bytes)?;
        self.memory.write(self.frame, &self.frame_bytes(area))
    }

    /// Returns the kernel's frame: the address to return to, and a `struct ucontext`.
    fn frame_bytes(&self, area: u64) -> Vec<u8> {
        /// The registers beside the general ones are there, and those of segments are to be kept.
        const FLAGS: u64 = 1 | 2 | 4;
        /// No mode of a stack for handlers: the thread keeps the one that it has.
        const NO_STACK: u64 = 0x7f;
        let r = self.as_after_a_signal();
        let segments = r.cs & 0xffff | (r.ss & 0xffff) << 48;
        let words = [
            vec![self.places.restorer, FLAGS, 0, 0, NO_STACK, 0],
            vec![r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15],
            vec![r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax, r.rcx, r.rsp],
            vec![r.rip, r.eflags, segments, 0, 0, 0, 0, area],
            vec![0; 8],
            vec![self.blocked],
        ];
        words.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Returns the registers with which the thread goes on after a handler: a system call that was
    /// interrupted begins again, or says so if that cannot be.
    fn as_after_a_signal(&self) -> libc::user_regs_struct {
        let mut registers = self.begun_again();
        if registers.rax == libc::SYS_restart_syscall.cast_unsigned() {
            // The end of a handler's frame has the kernel forget how it goes on.
            registers.rip = self.registers.rip;
            registers.rax = i64::from(-libc::EINTR).cast_unsigned();
        }
        registers
    }

    /// Returns the registers with which the thread begins the system call again that was interrupted,
    /// or goes on with it.
    fn begun_again(&self) -> libc::user_regs_struct {
        const AGAIN: [i64; 3] = [-512, -513, -514];
        const GOES_ON: i64 = -516;
        let mut registers = self.registers;
        let answer = registers.rax.cast_signed();
        if registers.orig_rax.cast_signed() >= 0 {
            if AGAIN.contains(&answer) {
                registers.rax = registers.orig_rax;
                registers.rip -= 2;
            } else if answer == GOES_ON {
                registers.rax = libc::SYS_restart_syscall.cast_unsigned();
                registers.rip -= 2;
            }
        }
        registers.orig_rax = u64::MAX;
        registers
    }

    /// Puts bytes where a function can find them, and returns their address.
    ///
    /// # Errors
    /// There is no room, or no memory.
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let address = self.data + self.used;
        self.used += (bytes.len() as u64).next_multiple_of(16);
        if self.used > DATA {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.memory.write(address, bytes)?;
        Ok(address)
    }

    /// Has the thread make a system call by the C library's function, and returns the kernel's answer.
    ///
    /// # Errors
    /// As [`Self::call`]; what the kernel says is the answer.
    pub(super) fn system(&mut self, number: libc::c_long, arguments: &[u64]) -> io::Result<i64> {
        let mut all = vec![number.cast_unsigned()];
        all.extend(arguments);
        self.call(self.places.any_call, &all)?;
        Ok(self.last)
    }

    /// Has the thread call the function at this address, with at most six arguments.
    ///
    /// # Errors
    /// It has ended, did not come back in time, or did what would have ended the process. It goes on
    /// with what it was at when the function comes back.
    pub(super) fn call(&mut self, function: u64, arguments: &[u64]) -> io::Result<()> {
        /// The direction of strings, and the step by step of debuggers.
        const NOT: u64 = 0x400 | 0x100;
        self.memory.write(self.frame, &self.places.restorer.to_ne_bytes())?;
        let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
        let mut registers = self.registers;
        (registers.rip, registers.rsp) = (function, self.frame);
        (registers.rdi, registers.rsi, registers.rdx) = (argument(0), argument(1), argument(2));
        (registers.rcx, registers.r8, registers.r9) = (argument(3), argument(4), argument(5));
        (registers.rax, registers.orig_rax) = (0, u64::MAX);
        registers.eflags &= !NOT;
        self.held.set_registers(&registers)?;
        // Not before: the frame has the signals that are blocked otherwise.
        self.held.block(!OWN.iter().fold(0, |set, signal| set | 1 << (signal - 1)))?;
        self.refused = None;
        let mut number = 0;
        loop {
            match self.go()? {
                Some(CallSide::Before(SIGRETURN)) if self.is_back()? => {
                    self.has_called = true;
                    return Ok(());
                }
                Some(CallSide::Before(made)) => number = made,
                Some(CallSide::After(answer)) => {
                    self.last = answer;
                    if answer < 0 && answer > -4096 {
                        self.refused = Some((number, answer));
                    }
                }
                None => {}
            }
        }
    }

    fn is_back(&self) -> io::Result<bool> {
        let registers = self.held.registers()?;
        let end = self.places.restorer + RESTORER.len() as u64;
        Ok(registers.rip == end && registers.rsp == self.frame + 8)
    }

    fn go(&mut self) -> io::Result<Option<CallSide>> {
        match self.held.go_to_call(self.deadline)? {
            Some(Stop::Call) => self.held.side(),
            Some(Stop::Signal(signal)) => Err(io::Error::other(format!(
                "the thread got signal {signal} in a call that lockstead had it make"
            ))),
            // Somebody stops the process, or asked for this stop before.
            Some(Stop::Asked | Stop::Job) => Ok(None),
            None => Err(io::Error::other("the thread has ended")),
        }
    }

    /// Gives the thread back what it was at, and lets it go on.
    ///
    /// # Errors
    /// The system says so; the thread has its registers back all the same, if that could be.
    pub(super) fn give_back(mut self) -> io::Result<()> {
        let errno = self.registers.fs_base.wrapping_add(self.places.errno);
        self.memory.write(errno, &self.errno)?;
        if self.has_called {
            self.held.set_extended(&self.extended)?;
            self.held.block(self.blocked)?;
            // The call that it stands at is left out.
            self.held.set_registers(&self.begun_again())?;
            self.go()?;
            // The kernel does for it now what it would have done when it was asked to stand: whether a
            // call begins again is decided by the signals that are there.
            self.held.stand_anew(&self.registers, self.deadline)?;
        }
        Ok(())
    }

    /// Tells whether a stack that reaches down to `low` has the room, at the stack pointer `sp`.
    pub(super) fn has_room(low: u64, sp: u64) -> bool {
        sp.checked_sub(low).is_some_and(|room| room >= ROOM + ABOVE)
    }
}
