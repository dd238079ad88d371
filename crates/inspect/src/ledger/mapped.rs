//! A ledger as memory of this process.
//!
//! # Role
//! Maps the file that the library handed over, once, for as long as anybody
//! looks at it. The file's owner is the program, which may do with it what it
//! likes: it must not be able to end the command, so a file that can shrink is
//! not mapped, and what is in it is checked where it is used.

use lockstead_ledger::growth::GrowingArea;
use lockstead_ledger::ledger::{Extent, PARTS};
use lockstead_ledger::{Ledger, LedgerLayout};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bytes of the first page, which holds the coarse clock.
const FIRST_PAGE: usize = 4096;

/// The ledger of a process, mapped into this one.
#[derive(Debug)]
pub struct MappedLedger {
    file: OwnedFd,
    base: *mut u8,
    size: usize,
    writable: bool,
    /// The ledger in that memory, which nobody may use for longer than this value lives.
    ledger: Option<Ledger<'static>>,
    /// How far the file was seen to bear out the counters of what is claimed.
    borne_out: [AtomicU64; PARTS],
    damaged: AtomicBool,
}

/// Elements of a part that may have been claimed since they were counted.
const NEW: u64 = 4096;
/// Bytes that may have been claimed and not been written to.
const UNWRITTEN: u64 = 1 << 20;

// SAFETY: the mapping is shared memory of atomics, at an address that stays
// until the value is dropped.
unsafe impl Send for MappedLedger {}
// SAFETY: all writes through a shared reference are atomic, as above.
unsafe impl Sync for MappedLedger {}

fn invalid(text: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl MappedLedger {
    /// Maps the ledger in `file`: for reading, and its first page and its rings also for
    /// writing if this process is the one that keeps its clock and takes its events.
    ///
    /// # Errors
    /// The file is no ledger, or can shrink, or there is no address space left.
    pub fn new(file: OwnedFd, keeps_clock: bool) -> io::Result<MappedLedger> {
        // SAFETY: the kernel writes one structure of this frame, about a descriptor that is open.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals == -1 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(invalid(
                "the ledger's file is not sealed: it could shrink under its reader",
            ));
        }
        let file = File::from(file);
        let size = usize::try_from(file.metadata()?.len()).map_err(|_| invalid("too large"))?;
        if (size as u64) < LedgerLayout::SMALLEST {
            return Err(invalid("the ledger's file is too small"));
        }
        let file = OwnedFd::from(file);
        let base = map(&file, ptr::null_mut(), (0, size), libc::PROT_READ, 0)?;
        let mut mapped = MappedLedger {
            file,
            base,
            size,
            writable: keeps_clock,
            ledger: None,
            borne_out: Default::default(),
            damaged: AtomicBool::new(false),
        };
        if keeps_clock {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            map(&mapped.file, mapped.base.cast(), (0, FIRST_PAGE), both, libc::MAP_FIXED)?;
        }
        // SAFETY: `base` is the start of `size` bytes that were just mapped
        // shared, and stay until `mapped` is dropped, before which `ledger` is
        // not given out for longer than a borrow of it.
        let ledger = unsafe { Ledger::open(mapped.base, size as u64) }.map_err(invalid)?;
        if keeps_clock {
            // The layout was computed anew, so that the rings lie in the file.
            let rings = GrowingArea::Rings;
            let offset = rings.region(ledger.layout()).offset as usize;
            let bytes = (rings.bytes(ledger.layout()) as usize).next_multiple_of(FIRST_PAGE);
            // A ledger of the smallest size has none.
            if bytes != 0 {
                let both = libc::PROT_READ | libc::PROT_WRITE;
                let at = mapped.base.wrapping_add(offset).cast();
                map(&mapped.file, at, (offset, bytes), both, libc::MAP_FIXED)?;
            }
        }
        mapped.ledger = Some(ledger);
        Ok(mapped)
    }

    /// Returns the ledger. Its version and layout are those that were checked when it was mapped.
    /// If the program has written over the counters of what is claimed, it ends where they were
    /// last right: to look at what was never written makes it exist, and a ledger is larger than
    /// most memories.
    ///
    /// # Panics
    /// Never: it was there when `new` returned.
    #[must_use]
    pub fn view(&self) -> Ledger<'_> {
        let ledger = self.ledger.expect("set by new");
        let claimed = ledger.extent();
        let known = || Extent(std::array::from_fn(|part| self.borne_out[part].load(Relaxed)));
        if claimed != known() && !self.is_damaged() {
            if claimed.least_bytes() > self.bytes().saturating_add(UNWRITTEN) {
                self.damaged.store(true, Relaxed);
            } else {
                for (known, claimed) in self.borne_out.iter().zip(claimed.0) {
                    known.store(claimed, Relaxed);
                }
            }
        }
        let new = if self.is_damaged() { 0 } else { NEW };
        ledger.within(&Extent(known().0.map(|count| count + new)))
    }

    /// Tells whether the program has written over it, as far as that was noticed:
    /// what it recorded later is not to be seen.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Relaxed)
    }

    /// Returns the number of bytes of the file that exist.
    fn bytes(&self) -> u64 {
        let mut facts = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: asks about an open descriptor, into a live structure, of which
        // zeroes are a valid value.
        unsafe {
            libc::fstat(self.file.as_raw_fd(), facts.as_mut_ptr());
            facts.assume_init().st_blocks.unsigned_abs().saturating_mul(512)
        }
    }

    /// Sets the coarse clock, if this process keeps it.
    pub fn set_clock(&self, now: u64) {
        if self.writable {
            let Some(ledger) = &self.ledger else { return };
            ledger.header().set_clock(now);
        }
    }

    /// Returns the file, to hand it on.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for MappedLedger {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; all views borrow from `self`.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

fn map(
    file: &OwnedFd,
    at: *mut libc::c_void,
    (offset, size): (usize, usize),
    protection: i32,
    flags: i32,
) -> io::Result<*mut u8> {
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | flags;
    // SAFETY: without MAP_FIXED the call makes a new mapping, which replaces nothing; with it the
    // callers replace a part of a mapping of their own.
    let base =
        unsafe { libc::mmap(at, size, protection, flags, file.as_raw_fd(), offset as libc::off_t) };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(base.cast()) }
}
