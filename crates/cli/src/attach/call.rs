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

use super::arch::{self, SavedThread, Standing, stack_pointer};
use super::memory::TargetMemory;
use super::objects::Objects;
use super::trace::{CallSide, Held};
use lockstead_inspect::memory::ReadableMemory;
use std::io;
use std::time::Instant;

/// The room for what a function is given.
const DATA: u64 = 4096;
/// The room that functions need that are called.
pub(super) const ROOM: u64 = 96 << 10;
/// What the frame and the data need.
pub(super) const ABOVE: u64 = 24 << 10;
/// The signals that the thread's own doing causes: blocked, they would end the process.
const OWN: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// The number of `rt_sigreturn`, by which a handler's frame is taken down.
const SIGRETURN: u64 = libc::SYS_rt_sigreturn.cast_unsigned();
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
        let restores = objects.iter().find(|one| one.base_name().starts_with(arch::RESTORES));
        let (start, code) = restores?.code(memory)?;
        Some(CallPlaces {
            restorer: start + arch::restorer(&code)? as u64,
            errno: arch::errno_of(libc.function(memory, "__errno_location")?, memory)?,
            any_call: libc.function(memory, ANY_CALL)?,
        })
    }
}

/// A thread that makes calls for the command.
#[derive(Debug)]
pub(super) struct Borrowed<'a> {
    held: Held,
    memory: &'a TargetMemory,
    places: CallPlaces,
    deadline: Instant,
    saved: SavedThread,
    /// Where its `errno` lies, and what it was.
    errno: (u64, Vec<u8>),
    /// The stack pointer with which functions are called.
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
    /// Returns the number of the thread.
    pub(super) fn tid(&self) -> u32 {
        self.held.number().cast_unsigned()
    }

    /// Prepares a thread. Its stack has [`ROOM`] and [`ABOVE`] below.
    ///
    /// # Errors
    /// The system says so; the thread is as it was.
    pub(super) fn new(
        (held, standing): (Held, Standing),
        memory: &'a TargetMemory,
        places: CallPlaces,
        deadline: Instant,
    ) -> io::Result<Borrowed<'a>> {
        let registers = arch::registers_of(&standing);
        let errno = held.thread_pointer(registers)?.wrapping_add(places.errno);
        let errno = (errno, memory.bytes(errno, 4)?);
        let data = (stack_pointer(registers) - arch::RED_ZONE - DATA) & !63;
        let saved = SavedThread {
            standing,
            extended: arch::extended(held.number())?,
            blocked: held.blocked()?,
            restorer: places.restorer,
        };
        let frame = arch::frame(&saved, data)?;
        for (at, bytes) in &frame.pieces {
            memory.write(*at, bytes)?;
        }
        Ok(Borrowed {
            held,
            memory,
            places,
            deadline,
            saved,
            errno,
            frame: frame.sp,
            data,
            used: 0,
            refused: None,
            last: 0,
            has_called: false,
        })
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
        let frame = self.frame;
        let (held, saved) = (&mut self.held, &self.saved);
        arch::begin(held, self.memory, saved, frame, (function, arguments), self.deadline)?;
        // Not before: the frame has the signals that are blocked otherwise.
        self.held.block(!OWN.iter().fold(0, |set, signal| set | 1 << (signal - 1)))?;
        self.refused = None;
        let mut number = 0;
        loop {
            match self.held.go(self.deadline)? {
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
        Ok(arch::is_back(&self.held.registers()?, self.places.restorer, self.frame))
    }

    /// Has the thread call a function that takes two words, and returns what that puts into the first.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(super) fn answer(&mut self, function: u64, words: [u64; 2]) -> io::Result<u64> {
        let place = self.put(words.map(u64::to_ne_bytes).as_flattened())?;
        self.call(function, &[place])?;
        self.memory.read_u64(place).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Gives the thread back what it was at, and lets it go on.
    ///
    /// # Errors
    /// The system says so; the thread has its registers back all the same, if that could be.
    pub(super) fn give_back(mut self) -> io::Result<()> {
        self.memory.write(self.errno.0, &self.errno.1)?;
        if self.has_called {
            arch::come_back(&mut self.held, &self.saved, self.deadline)?;
        }
        Ok(())
    }

    /// The room below the stack pointer that a borrowed thread needs.
    pub(super) const NEEDS: u64 = ROOM + ABOVE;
}
