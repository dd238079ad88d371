//! The second source on who has ended.
//!
//! # Role
//! The kernel's mark may fail to appear: the memory of a killed process is taken away
//! before its threads end (`process_mrelease`, the reaper of the out-of-memory killer),
//! the libc's list holds more mutexes than the kernel walks, or somebody has displaced
//! the thread's list head. Sleepers therefore ask here once a second.
//!
//! # What the kernel releases when a process ends, and not before
//! Each process has a *number* in each segment, kept by a record lock on byte
//! `LOCKS_FROM` + number of the segment's file. It is a lock of an open file
//! description (`F_OFD_SETLK`), and nothing refers to that description but a mapping of
//! one page without access, which forked children do not inherit (`MADV_DONTFORK`). So
//! the lock lives exactly as long as the memory of the process: closing descriptors
//! does not release it, as it would release a lock of the process (`F_SETLK`), nor
//! does a forked child keep it. `exec` ends it, as it ends the participant.
//!
//! # Why nobody that lives is declared dead
//! One at a time asks, in all processes: it has the record lock on byte `LOCKS_FROM`.
//! Let L be the life word that it finds in the seat, of generation g, and X the
//! participant that sits there.
//!
//! - *The process has ended.* The seat's note says (g, n). X itself has written it: a
//!   participant that leaves erases its note before its life word, and one that dies
//!   has its generation end with it; so a note of generation g is not a predecessor's.
//!   The asker takes the record lock n. It gets it, so the process of number n does not
//!   live; and until the asker returns it nobody else becomes number n. If then the life
//!   word is L and the note (g, n), X was a thread of that process: it is dead. It stays
//!   in the seat until somebody replaces its life word, and the asker does so by one
//!   exchange of L.
//! - *The thread has ended.* The asker replaces L by L with the bit [`DOUBT`], finds the
//!   note still (g, n), reads the numbers of process and thread and their namespace,
//!   which X has written before its note, finds the namespace its own, and that the
//!   kernel knows no such thread. Numbers of namespaces of living processes are not
//!   given twice, so X has ended or has left. If it has left, the life word has changed:
//!   somebody who has come after it does not have the bit, which none but the one asker
//!   sets. So the exchange of L with the bit declares X dead or nothing.
//!
//! What a hostile peer writes into seats can have living participants declared dead; it
//! could as well declare them dead itself.

use super::process::Place;
use super::registry::{Attached, Handle};
use crate::platform::Linux;
use crate::sys::{self, KeepErrno};
use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering;
use lockstead_core::shared::{Life, Seat};
use lockstead_core::{Atomic32, Atomic64};

/// The first byte of a segment's file that stands for something by being locked: it for
/// asking, the one after it for process number 1, and so on; from 16,384 on for taking
/// the seat of this number less 16,384, or giving it up; 16,384 itself for [`in_turn`]. No
/// file is that long.
pub const LOCKS_FROM: i64 = 1 << 40;

/// The last number of a process.
const LAST_NUMBER: u32 = (1 << 14) - 1;
/// See [`LOCKS_FROM`].
const SEATS_FROM: u32 = LAST_NUMBER + 1;
/// In [`Place::number`]: no number was to be had.
const NUMBERLESS: u32 = u32::MAX;

/// In a life word: somebody looks whether the participant has ended. Beside the number
/// of a living one it means nothing to the kernel and to everybody else.
const DOUBT: u64 = 1 << 30;

/// What a seat's note says: by which record lock the process of its participant is known.
///
/// | bits | meaning |
/// |---|---|
/// | 31 | somebody has written it |
/// | 27..14 | generation of who has written it |
/// | 13..0 | number of its process; 0: it has none |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note(pub u32);

impl Note {
    pub(super) const fn new(generation: u32, number: u32) -> Note {
        Note(1 << 31 | generation << 14 | number)
    }

    /// The number of the process, if the participant of this generation has written the
    /// note.
    #[must_use]
    pub const fn number(self, generation: u32) -> Option<u32> {
        let number = self.0 & LAST_NUMBER;
        if self.0 == Note::new(generation, number).0 { Some(number) } else { None }
    }
}

/// A life word while somebody doubts it.
pub(super) const fn doubted(life: Life) -> Life {
    Life(life.0 | DOUBT)
}

/// The device and the inode of a file; `None`: the error is in `errno`.
pub(super) fn identify(file: c_int) -> Option<(u64, u64)> {
    let mut about = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for what is told.
    if unsafe { libc::fstat(file, about.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled in, since the call said so.
    let about = unsafe { about.assume_init() };
    Some((about.st_dev, about.st_ino))
}

/// A description of the segment's file that nobody else has.
struct Description(c_int);

impl Description {
    fn new(attached: &Attached) -> Option<Self> {
        let (file, identity) = attached.file();
        let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
        let mut at = 14;
        let mut digits = [0u8; 10];
        let mut rest = u32::try_from(file).ok()?;
        let mut count = 0;
        loop {
            digits[count] = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        for digit in digits[..count].iter().rev() {
            path[at] = *digit;
            at += 1;
        }
        let path = CStr::from_bytes_until_nul(&path).ok()?;
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY;
        // SAFETY: a live path. By the bare call: no point of cancellation.
        let fresh =
            unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
        let fresh = Description(c_int::try_from(fresh).ok().filter(|&fresh| fresh >= 0)?);
        // The program may have closed our descriptor, and opened something else.
        fresh.is(identity).then_some(fresh)
    }

    fn is(&self, identity: (u64, u64)) -> bool {
        identify(self.0) == Some(identity)
    }

    /// Locks the byte of a number, or unlocks it; false if somebody else has it.
    fn lock(&self, number: u32, kind: c_int) -> bool {
        // SAFETY: plain bits, for which zero is valid.
        let mut range: libc::flock = unsafe { core::mem::zeroed() };
        range.l_type = kind as libc::c_short;
        range.l_whence = libc::SEEK_SET as libc::c_short;
        range.l_start = LOCKS_FROM + i64::from(number);
        range.l_len = 1;
        // SAFETY: reads a live structure.
        unsafe { libc::syscall(libc::SYS_fcntl, self.0, libc::F_OFD_SETLK, &raw const range) == 0 }
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: ours, opened in `new`. With it go its locks, unless something maps it.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// Keeps others from taking seats while the caller has their life words named.
///
/// The kernel marks a named word if it holds the number of the thread that ends. In another
/// PID namespace somebody may have the same number. So whoever names the life word of a
/// seat that is not its own, or is not any more, has the seat's record lock; it is released
/// when it ends, after the kernel has looked at the word.
pub(super) struct Turn(Option<Description>);

impl Turn {
    pub(super) fn new(attached: &Attached) -> Self {
        Turn(Description::new(attached))
    }

    /// Whether locks can be had at all.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// False if it is somebody else's turn at this seat.
    pub(super) fn begin(&self, slot: u32) -> bool {
        self.0.as_ref().is_none_or(|file| file.lock(SEATS_FROM + slot, libc::F_WRLCK))
    }

    pub(super) fn end(&self, slot: u32) {
        if let Some(file) = &self.0 {
            file.lock(SEATS_FROM + slot, libc::F_UNLCK);
        }
    }
}

/// Does what one at a time may do in all processes that have the segment; `None`, and it was
/// not done, if another one does not end with it for long. It has the turn at the seat of
/// number 0, in which nobody sits.
pub fn in_turn<R>(handle: &Handle, what: impl FnOnce() -> R) -> Option<R> {
    let _errno = KeepErrno::new();
    let turn = Turn::new(handle.attached());
    for _ in 0..PATIENCE {
        if turn.begin(0) {
            let outcome = what();
            turn.end(0);
            return Some(outcome);
        }
        std::thread::sleep(core::time::Duration::from_millis(1));
    }
    None
}

/// So many milliseconds.
const PATIENCE: u32 = 2000;

/// The number of this process in the segment; 0 if it can have none. The caller is a
/// member, or about to be.
pub(super) fn number_of_process(attached: &Attached) -> u32 {
    let Some(place) = attached.place() else { return 0 };
    let mut number = place.number.load(Ordering::Relaxed);
    if number == 0 {
        let _alone = place.alone();
        number = place.number.load(Ordering::Relaxed);
        if number == 0 {
            number = take_number(attached, place).unwrap_or(NUMBERLESS);
            place.number.store(number, Ordering::Relaxed);
        }
    }
    if number == NUMBERLESS { 0 } else { number }
}

fn take_number(attached: &Attached, place: &Place) -> Option<u32> {
    let file = Description::new(attached)?;
    // From different places: a look costs a system call.
    let first = std::process::id() % LAST_NUMBER;
    let mut numbers = (0..LAST_NUMBER).map(|step| (first + step) % LAST_NUMBER + 1);
    let number = numbers.find_map(|number| {
        if file.lock(number, libc::F_WRLCK) {
            return Some(Some(number));
        }
        // Not because somebody has it: nobody can lock there.
        (!matches!(sys::errno(), libc::EAGAIN | libc::EACCES)).then_some(None)
    })??;
    // SAFETY: a mapping of our own, at an address of the kernel's choice, without access.
    let hold = unsafe {
        libc::mmap(core::ptr::null_mut(), HOLD, libc::PROT_NONE, libc::MAP_SHARED, file.0, 0)
    };
    if hold == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: advice on the mapping made above.
    if unsafe { libc::madvise(hold, HOLD, libc::MADV_DONTFORK) } != 0 {
        // SAFETY: mapped above, known to nobody.
        unsafe { libc::munmap(hold, HOLD) };
        return None;
    }
    place.hold.store(hold.expose_provenance(), Ordering::Relaxed);
    Some(number)
}

/// The length of the mapping that keeps the record lock.
const HOLD: usize = 4096;

/// The process leaves the segment. None of its threads is a member.
pub(super) fn forget(place: &Place) {
    let hold = place.hold.swap(0, Ordering::Relaxed);
    if hold != 0 {
        // SAFETY: mapped by `take_number`, accessed by nobody.
        unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(hold), HOLD) };
    }
    place.number.store(0, Ordering::Relaxed);
}

/// Whether the participant in this slot has ended, by other means than its life word.
/// Then it has been marked there, and all sleepers of the segment look.
pub(super) fn has_ended(attached: &Attached, slot: u32) -> bool {
    let _errno = KeepErrno::new();
    let domain = attached.domain();
    let (Some(place), Some(seat)) = (attached.place(), domain.seat(slot)) else { return false };
    let Some(_alone) = place.try_alone() else { return false };
    let Some(file) = Description::new(attached) else { return false };
    if !file.lock(0, libc::F_WRLCK) {
        return false;
    }
    let life = Life(seat.life.load(Ordering::Relaxed) & !DOUBT);
    let dead = life.is_alive() && (process_ended(&file, seat, life) || thread_ended(seat, life));
    // Whoever asked last may have ended in the middle.
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    let _ = seat.life.compare_exchange(doubted(life).0, life.0, success, failure);
    // Not left to the end of the description: a child that another thread has forked since
    // has that as well.
    file.lock(0, libc::F_UNLCK);
    if dead {
        domain.ring();
    }
    dead
}

/// Looks for participants that have ended in all seats; whether there were any.
pub(super) fn sweep(attached: &Attached) -> bool {
    let seats = attached.domain().seats.len() as u32;
    (1..seats).filter(|&slot| has_ended(attached, slot)).count() != 0
}

/// Replaces a life word by that of a dead participant.
fn mark(seat: &Seat<Linux>, found: Life, life: Life) -> bool {
    let dead = Life::new(life.generation(), lockstead_core::shared::seat::LIFE_DEAD);
    // ord: SHL-5 (acq_rel): as the kernel's mark.
    let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    seat.life.compare_exchange(found.0, dead.0, success, failure).is_ok()
}

fn note_of(seat: &Seat<Linux>, life: Life) -> Option<u32> {
    // ord: SHL-4 (acquire): what the note vouches for.
    Note(seat.note.load(Ordering::Acquire)).number(life.generation())
}

fn process_ended(file: &Description, seat: &Seat<Linux>, life: Life) -> bool {
    let Some(number) = note_of(seat, life).filter(|&number| number != 0) else { return false };
    if !file.lock(number, libc::F_WRLCK) {
        return false;
    }
    let same = note_of(seat, life) == Some(number);
    let dead = same && [life, doubted(life)].into_iter().any(|found| mark(seat, found, life));
    file.lock(number, libc::F_UNLCK);
    dead
}

fn thread_ended(seat: &Seat<Linux>, life: Life) -> bool {
    let doubt = doubted(life);
    // Set anew: one that is left from before says nothing of who sits there now.
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    let _ = seat.life.compare_exchange(doubt.0, life.0, success, failure);
    // ord: SHL-5 (acq_rel): the numbers are read after it.
    let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    if seat.life.compare_exchange(life.0, doubt.0, success, failure).is_err() {
        return false;
    }
    let here = super::process::namespace();
    if here == 0 || note_of(seat, life).is_none() {
        return false;
    }
    let same = seat.namespace.load(Ordering::Relaxed) == here;
    let process = seat.process.load(Ordering::Relaxed);
    let thread = seat.thread.load(Ordering::Relaxed);
    same && is_gone(process, thread) && mark(seat, doubt, life)
}

/// Whether there is no such thread in this process namespace.
fn is_gone(process: u32, thread: u32) -> bool {
    let (Ok(process), Ok(thread)) = (c_int::try_from(process), c_int::try_from(thread)) else {
        return false;
    };
    if process == 0 || thread == 0 {
        return false;
    }
    // SAFETY: signal 0 only asks.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    result < 0 && sys::errno() == libc::ESRCH
}
