//! The second source on who has ended.
//!
//! # Role
//! The kernel's mark may fail to appear: the memory of a killed process is taken away
//! before its threads end (`process_mrelease`, the reaper of the out-of-memory killer),
//! the libc's list holds more mutexes than the kernel walks, somebody has displaced the
//! thread's list head, the system went down, or the segment is a copy. Sleepers therefore
//! ask here once a second, who only tries does so as often, and a process that comes asks
//! about everybody.
//!
//! # Why nobody that lives is declared dead
//! Let L be the life word about which is asked, and X the participant that had the slot under it. L
//! names X's process by a number and X by its thread number, and was put there by one exchange:
//! there is no moment in which a slot is taken and does not say by whom.
//!
//! The asker first replaces L by L [doubted](Life::doubted). Then it asks. If X has left meanwhile,
//! the doubt has gone with it, whoever has the slot now; so the exchange of L doubted declares X
//! dead, or nothing. Three questions can show that X has ended:
//!
//! - *Its process has.* Its number is n, and nobody holds the lock of n for writing. A
//!   process holds that lock before it puts n into any life word, and until its memory is
//!   gone.
//! - *The thread has*, of a process that goes on: the note says whose the slot's other words are,
//!   and the kernel knows no thread of X's number in X's process, or knows another process by
//!   X's number. Who leaves takes its note along, so that no note speaks for a newcomer before
//!   that has said who it is.
//! - *X was of another start of the system, or of the file of which this one is a copy*: the note
//!   is of X, and X has noted another [`origin`](super::origin) than this one.
//!
//! And without a question: who gets the number n declares dead whoever has a slot under n then.
//!
//! What is left: X leaves, somebody comes to the same slot under the very same L, which takes the
//! same thread number in the same process, or in one that has drawn the same number after
//! [`LAST_NUMBER`](super::description::LAST_NUMBER) others; and that one is doubted by somebody
//! else; all between the two last steps of one asker.
//!
//! What a hostile peer writes into slots can have living participants declared dead; it
//! could as well declare them dead itself. Who can only read the file can neither have that
//! done nor prevent it: see [`number`](super::number).

use super::description::{self, SHARED, SegmentDescription, Standing};
use super::registry::AttachedSegment;
use super::{origin, process};
use crate::futex;
use crate::linux::Linux;
use crate::sys::{self, KeepErrno};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use lockstead_core::robust::SlotRecord;
use lockstead_core::robust::life::{LIFE_NUMBER, Life};
use lockstead_core::{Atomic32, Atomic64};

/// Tells whether the participant that has this slot with this life word has ended. Then it has been
/// marked there, and all sleepers of the segment look.
pub(super) fn has_ended(attached: &AttachedSegment, slot: u32, life: Life) -> bool {
    let _errno = KeepErrno::new();
    let life = life.trusted();
    let Some(record) = attached.domain().record(slot) else { return false };
    if !life.is_taken() || !doubt(record, life) {
        return false;
    }
    let ended = process_ended(attached, life)
        || came_elsewhere(attached, record, life)
        || thread_ended(attached, record, life);
    let to = if ended { life.dead() } else { life };
    let dead = record.change(life.doubted(), to) && ended;
    if dead {
        attached.domain().wake_everybody();
    }
    dead
}

/// Marks the participant about which is asked, so that a newcomer cannot pass for it: the doubt
/// goes with it. Returns false if it has gone already.
fn doubt(record: &SlotRecord<Linux>, life: Life) -> bool {
    record.change(life, life.doubted()) || record.current() == life.doubted()
}

/// Looks for participants that have ended in all slots. Returns whether there were any.
pub(super) fn sweep(attached: &AttachedSegment) -> bool {
    taken(attached).filter(|&(slot, _, life)| has_ended(attached, slot, life)).count() != 0
}

/// Asks about the threads of this process, at most once in [`OWN`] nanoseconds. In other PID
/// namespaces nobody can: while the process goes on, only itself learns of the end of one
/// of its threads that the kernel has not told of.
pub(super) fn ask_about_own(attached: &AttachedSegment) {
    let Some(place) = attached.place() else { return };
    let (now, last) = ((futex::now().0 >> 20) as u32 | 1, place.asked.load(Ordering::Relaxed));
    if last != 0 && u64::from(now.wrapping_sub(last)) << 20 < OWN {
        return;
    }
    place.asked.store(now, Ordering::Relaxed);
    let own = place.number.load(Ordering::Relaxed);
    for (slot, record, life) in taken(attached).filter(|(_, _, life)| life.process() == own) {
        if thread_ended(attached, record, life) {
            has_ended(attached, slot, life);
        }
    }
}

/// The time between two questions of [`ask_about_own`], in nanoseconds.
const OWN: u64 = 500_000_000;

/// Declares dead who has a slot under the number that this process has just got: none of its
/// threads has one yet. Asks about all others, too.
pub(super) fn bury_predecessors(attached: &AttachedSegment, number: u32) {
    let _errno = KeepErrno::new();
    let mut any = false;
    for (slot, record, life) in taken(attached) {
        any |= match life.process() & !SHARED == number & !SHARED {
            true => record.replace(life.trusted(), life.dead()),
            false => has_ended(attached, slot, life),
        };
    }
    if any {
        attached.domain().wake_everybody();
    }
}

/// Tells whether anybody has a slot.
pub(super) fn lives_anybody(attached: &AttachedSegment) -> bool {
    taken(attached).any(|(_, _, life)| life.is_alive())
}

/// Tells whether somebody has a slot under this number.
pub(super) fn is_named(attached: &AttachedSegment, number: u32) -> bool {
    taken(attached).any(|(_, _, life)| life.process() & !SHARED == number)
}

fn taken(attached: &AttachedSegment) -> impl Iterator<Item = (u32, &SlotRecord<Linux>, Life)> {
    let records = (0..).zip(attached.domain().records).skip(1);
    records
        .map(|(slot, record)| (slot, record, record.current()))
        .filter(|(_, _, life)| life.is_taken())
}

/// Returns what is known of the process of a life word from its number: whether the process has
/// ended. Asked by any descriptor of the segment's file.
#[must_use]
pub fn process_has_ended(file: c_int, life: Life) -> Option<bool> {
    judge(life, |number| description::standing(file, number))
}

fn judge(life: Life, ask: impl FnOnce(u32) -> Standing) -> Option<bool> {
    let process = life.process();
    if process == 0 {
        // Participants always name their process: none of them has written this.
        return Some(true);
    }
    match ask(process & !SHARED) {
        Standing::Free => Some(true),
        // A lock of its own would be one for writing.
        Standing::Shared { .. } if process & SHARED == 0 => Some(true),
        Standing::Shared { exactly: true } | Standing::Alone { exactly: true } => Some(false),
        Standing::Shared { .. } | Standing::Alone { .. } | Standing::Unknown(_) => None,
    }
}

fn process_ended(attached: &AttachedSegment, life: Life) -> bool {
    judge(life, |number| ask(attached, number)) == Some(true)
}

/// Asks how the byte of a number of a segment is locked. The program may close our descriptor, and
/// give its number to something else, at any time.
pub(super) fn ask(attached: &AttachedSegment, number: u32) -> Standing {
    let (file, identity, _) = attached.file();
    let is_ours = || origin::identify(file) == Some(identity);
    if is_ours() {
        let standing = description::standing(file, number);
        if is_ours() {
            return standing;
        }
    }
    match SegmentDescription::open(attached) {
        Ok(fresh) => description::standing(fresh.file(), number),
        Err(error) => Standing::Unknown(error),
    }
}

/// Tells whether it came in another start of the system, or to another file than this copy of it.
fn came_elsewhere(attached: &AttachedSegment, record: &SlotRecord<Linux>, life: Life) -> bool {
    let (here, there) = (attached.origin(), &record.origin[0]);
    // Who prepares a slot has not said who it is; its predecessor may have, under the same note.
    !life.is_prepared() && is_noted(record, life) && differ(here, there.load(Ordering::Relaxed))
}

/// Tells whether both numbers are certain, and are not the same.
fn differ(one: u64, other: u64) -> bool {
    one != 0 && other != 0 && one != other
}

/// Tells whether the kernel has no such thread any more, if it can be asked.
fn thread_ended(attached: &AttachedSegment, record: &SlotRecord<Linux>, life: Life) -> bool {
    // A thread that prepares a slot names no thread in it yet.
    if life.is_prepared() {
        return false;
    }
    let Some(process) = process_of(attached, record, life) else { return false };
    let noted = record.origin[1].load(Ordering::Relaxed);
    is_gone(process, life.life() & LIFE_NUMBER)
        || noted != 0 && differ(noted, origin::of_process(process))
}

/// Tells whether the tenant with this life word has written what the slot says of its tenant.
fn is_noted(record: &SlotRecord<Linux>, life: Life) -> bool {
    // ord: SHL-4 (acquire): what the note speaks for.
    record.note.load(Ordering::Acquire) == life.high()
}

/// Returns the process of the tenant, as this one's namespace numbers it; `None`: it is in another
/// one, or has not said so.
fn process_of(attached: &AttachedSegment, record: &SlotRecord<Linux>, life: Life) -> Option<u32> {
    let noted = is_noted(record, life);
    let here = process::namespace();
    // Where `/proc` does not tell, a process knows its own.
    let known = here != 0 || life.process() == attached.place()?.number.load(Ordering::Relaxed);
    let same = known && record.namespace.load(Ordering::Relaxed) == here;
    (noted && same).then(|| record.process.load(Ordering::Relaxed))
}

/// Tells whether there is no such thread in this process namespace.
fn is_gone(process: u32, thread: u32) -> bool {
    let (Ok(process), Ok(thread)) = (c_int::try_from(process), c_int::try_from(thread)) else {
        return false;
    };
    if process == 0 || thread == 0 {
        return false;
    }
    // SAFETY: the call with signal 0 only asks, and takes numbers.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    result != 0 && sys::errno() == libc::ESRCH
}
