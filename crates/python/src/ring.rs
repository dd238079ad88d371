//! The items of a queue: messages of any length in a ring of bytes, that no death tears.
//!
//! # Format
//! ```text
//!  0      64              128             192        4096
//!  ┌──────┬───────────────┬───────────────┬─────────┬───────────────┬──────────────────
//!  │ head │ ring, layout 0│ ring, layout 1│         │ bytes of ring │ of a longer one …
//!  └──────┴───────────────┴───────────────┴─────────┴───────────────┴──────────────────
//! ```
//! The head says which of the two layouts holds. A layout is where the ring lies in the file, its bytes,
//! and the positions of the first message and behind the last one, which only grow; a position lies at
//! itself modulo the bytes. A message is its length in 8 bytes and its bytes, up to a multiple of 8.
//!
//! # Protocol
//! All of it is under the queue's mutex. A message is in the ring, or out of it, by one store of a
//! position, after all its bytes are there, or have been copied. A ring that is too small is copied into
//! a longer one, whose layout is written beside the one that holds; one store of the head exchanges them.
//! So whenever a holder dies there is a ring in order. What can be wrong then is the number of messages,
//! which [`Ring::repair`] counts.
//!
//! Nothing that is read here is believed: a peer may write any bytes. What does not fit is
//! [`RingError::Damaged`].

use crate::map::Items;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::io;

/// The bytes in front of the first ring.
const FRONT: u64 = 4096;
/// The bytes of the first ring.
const FIRST: u64 = 60 * 1024;
/// What a file of items begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"lockitem");

/// The words in front.
#[repr(C)]
struct Front {
    magic: AtomicU64,
    /// The number of the layout that holds.
    holds: AtomicU64,
    /// The most messages; 0: any number.
    most: AtomicU64,
    /// The messages that were put and not yet declared done.
    unfinished: AtomicU64,
    spare: [u64; 4],
    layouts: [Layout; 2],
}

#[repr(C)]
struct Layout {
    start: AtomicU64,
    bytes: AtomicU64,
    first: AtomicU64,
    end: AtomicU64,
    /// The number of messages.
    count: AtomicU64,
    spare: [u64; 3],
}

/// A layout as it was read, and checked.
#[derive(Clone, Copy)]
struct Seen {
    start: u64,
    bytes: u64,
    first: u64,
    end: u64,
}

/// The reason for which nothing was put or taken.
#[derive(Debug)]
pub(crate) enum RingError {
    /// The system refused memory.
    Io(io::Error),
    /// The file does not make sense.
    Damaged,
}

impl From<io::Error> for RingError {
    fn from(error: io::Error) -> RingError {
        RingError::Io(error)
    }
}

/// The items of a queue, for who has its mutex.
pub(crate) struct Ring {
    items: Items,
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Changes a word after all that was written before.
fn commit(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Release);
}

/// Returns the bytes that a message of this length takes.
fn room_for(len: u64) -> Option<u64> {
    len.checked_next_multiple_of(8)?.checked_add(8)
}

impl Ring {
    /// Makes the items of a new queue in memory, for at most so many messages (0: any number).
    pub(crate) fn anonymous(most: u64) -> Result<Ring, RingError> {
        let ring = Ring { items: Items::anonymous(FRONT + FIRST)? };
        ring.begin(most);
        Ok(ring)
    }

    /// Maps a file of items that somebody has made. Of one that is as long as a new one and was not begun
    /// it makes a new one, if the caller has the mutex.
    pub(crate) fn open(file: File, most: u64) -> Result<Ring, RingError> {
        if file.metadata()?.len() < FRONT + FIRST {
            let mut items = Items::map(lengthened(file)?)?;
            items.follow()?;
            let ring = Ring { items };
            ring.begin(most);
            return Ok(ring);
        }
        let ring = Ring { items: Items::map(file)? };
        match get(&ring.front().magic) {
            MAGIC => Ok(ring),
            // Its maker has died before it was begun.
            0 => {
                ring.begin(most);
                Ok(ring)
            }
            _ => Err(RingError::Damaged),
        }
    }

    fn begin(&self, most: u64) {
        let front = self.front();
        let [layout, _] = &front.layouts;
        layout.start.store(FRONT, Ordering::Relaxed);
        layout.bytes.store(FIRST, Ordering::Relaxed);
        front.most.store(most, Ordering::Relaxed);
        commit(&front.magic, MAGIC);
    }

    pub(crate) fn file(&self) -> &File {
        self.items.file()
    }

    fn front(&self) -> &Front {
        // SAFETY: ITEMS-MAPPED: the file has at least a page, which is mapped; all of it are atomics and
        // spare words.
        unsafe { self.items.base().cast().as_ref() }
    }

    fn layout(&self) -> &Layout {
        let front = self.front();
        let [zero, one] = &front.layouts;
        if get(&front.holds) == 0 { zero } else { one }
    }

    /// Returns the layout that holds, mapping what the file has become.
    fn seen(&mut self) -> Result<Seen, RingError> {
        let read = |layout: &Layout| Seen {
            start: get(&layout.start),
            bytes: get(&layout.bytes),
            first: get(&layout.first),
            end: get(&layout.end),
        };
        let mut seen = read(self.layout());
        let reach = seen.start.checked_add(seen.bytes).ok_or(RingError::Damaged)?;
        if reach > self.items.len() as u64 {
            self.items.follow()?;
            seen = read(self.layout());
        }
        let Seen { start, bytes, first, end } = seen;
        let reach = start.checked_add(bytes).ok_or(RingError::Damaged)?;
        let in_file = start >= FRONT && reach <= self.items.len() as u64;
        let in_order = [start, bytes, first, end].iter().all(|number| number.is_multiple_of(8));
        let in_ring = end.checked_sub(first).is_some_and(|used| used <= bytes);
        if in_file && in_order && in_ring && bytes != 0 {
            Ok(seen)
        } else {
            Err(RingError::Damaged)
        }
    }

    /// Returns how many messages there are.
    pub(crate) fn count(&self) -> u64 {
        get(&self.layout().count)
    }

    /// Tells whether there are as many messages as there may be.
    pub(crate) fn is_full(&self) -> bool {
        let most = self.most();
        most != 0 && self.count() >= most
    }

    /// Returns how many messages there may be; 0: any number.
    pub(crate) fn most(&self) -> u64 {
        get(&self.front().most)
    }

    /// Returns how many messages were put and not yet declared done.
    pub(crate) fn unfinished(&self) -> u64 {
        get(&self.front().unfinished)
    }

    /// Declares a message done. Returns false if none was left.
    pub(crate) fn finish(&self) -> bool {
        let left = self.unfinished().checked_sub(1);
        if let Some(left) = left {
            commit(&self.front().unfinished, left);
        }
        left.is_some()
    }

    /// Puts a message behind the last one.
    pub(crate) fn put(&mut self, message: &[u8]) -> Result<(), RingError> {
        let room = room_for(message.len() as u64).ok_or(RingError::Damaged)?;
        let mut seen = self.seen()?;
        if seen.bytes - (seen.end - seen.first) < room {
            self.lengthen(&seen, room)?;
            seen = self.seen()?;
        }
        self.copy_in(&seen, seen.end, &(message.len() as u64).to_le_bytes());
        self.copy_in(&seen, seen.end + 8, message);
        let layout = self.layout();
        commit(&layout.end, seen.end + room);
        commit(&layout.count, get(&layout.count) + 1);
        let unfinished = &self.front().unfinished;
        commit(unfinished, get(unfinished) + 1);
        Ok(())
    }

    /// Takes the first message. Returns `None` if there is none.
    pub(crate) fn take(&mut self) -> Result<Option<Vec<u8>>, RingError> {
        let seen = self.seen()?;
        let Some((len, room)) = self.message(&seen, seen.first)? else { return Ok(None) };
        let mut message = vec![0; len as usize];
        self.copy_out(&seen, seen.first + 8, &mut message);
        let layout = self.layout();
        commit(&layout.first, seen.first + room);
        commit(&layout.count, get(&layout.count).saturating_sub(1));
        Ok(Some(message))
    }

    /// Returns the length of the message at this position, and what it takes.
    fn message(&self, seen: &Seen, at: u64) -> Result<Option<(u64, u64)>, RingError> {
        if at == seen.end {
            return Ok(None);
        }
        let mut len = [0; 8];
        self.copy_out(seen, at, &mut len);
        let len = u64::from_le_bytes(len);
        let room = room_for(len).filter(|room| *room <= seen.end - at);
        room.map(|room| Some((len, room))).ok_or(RingError::Damaged)
    }

    /// Puts in order what a dead owner of the mutex has left.
    pub(crate) fn repair(&mut self) {
        let Ok(seen) = self.seen() else { return };
        let (mut at, mut count) = (seen.first, 0);
        while let Ok(Some((_, room))) = self.message(&seen, at) {
            at += room;
            count += 1;
        }
        commit(&self.layout().count, count);
        let unfinished = &self.front().unfinished;
        commit(unfinished, get(unfinished).max(count));
    }

    /// Copies the messages into a longer ring, and has that one hold.
    fn lengthen(&mut self, seen: &Seen, room: u64) -> Result<(), RingError> {
        let used = seen.end - seen.first;
        let wanted = used.checked_add(room).ok_or(RingError::Damaged)?.max(seen.bytes);
        let wanted = wanted.checked_mul(2).ok_or(RingError::Damaged)?;
        let bytes = wanted.checked_next_multiple_of(4096).ok_or(RingError::Damaged)?;
        let start = self.items.grow(bytes)?;
        let next = Seen { start, bytes, first: 0, end: used };
        let mut at = 0;
        let mut piece = vec![0; 64 * 1024];
        while at < used {
            let len = (used - at).min(piece.len() as u64) as usize;
            self.copy_out(seen, seen.first + at, &mut piece[..len]);
            self.copy_in(&next, at, &piece[..len]);
            at += len as u64;
        }
        let front = self.front();
        let [zero, one] = &front.layouts;
        let is_one = get(&front.holds) != 0;
        let (from, to) = if is_one { (one, zero) } else { (zero, one) };
        for (word, value) in [
            (&to.start, start),
            (&to.bytes, bytes),
            (&to.first, 0),
            (&to.end, used),
            (&to.count, get(&from.count)),
        ] {
            word.store(value, Ordering::Relaxed);
        }
        commit(&front.holds, u64::from(!is_one));
        self.items.forget(seen.start, seen.bytes);
        Ok(())
    }

    /// Calls with the parts of the ring that so many bytes from a position on lie in.
    fn parts(&self, seen: &Seen, at: u64, len: usize, mut each: impl FnMut(*mut u8, usize, usize)) {
        assert!(len as u64 <= seen.bytes, "a message fits its ring");
        let from = at % seen.bytes;
        let first = len.min((seen.bytes - from) as usize);
        for (from, done, len) in [(from, 0, first), (0, first, len - first)] {
            // SAFETY: ITEMS-MAPPED: `seen` was checked to lie in the mapping, and the part lies in it.
            let place = unsafe { self.items.base().add((seen.start + from) as usize) };
            each(place.as_ptr(), done, len);
        }
    }

    fn copy_in(&self, seen: &Seen, at: u64, bytes: &[u8]) {
        self.parts(seen, at, bytes.len(), |place, done, len| {
            let part = &bytes[done..done + len];
            // SAFETY: ITEMS-MAPPED: so many bytes from the place on are mapped, and ours alone; the
            // program's bytes are no part of them.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), place, len) };
        });
    }

    fn copy_out(&self, seen: &Seen, at: u64, bytes: &mut [u8]) {
        self.parts(seen, at, bytes.len(), |place, done, len| {
            let part = &mut bytes[done..done + len];
            // SAFETY: ITEMS-MAPPED, as in `copy_in`; the program's bytes are its own vector's.
            unsafe { core::ptr::copy_nonoverlapping(place, part.as_mut_ptr(), len) };
        });
    }
}

/// Makes a file as long as that of a new queue.
fn lengthened(file: File) -> io::Result<File> {
    file.set_len(FRONT + FIRST)?;
    Ok(file)
}
