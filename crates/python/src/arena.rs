//! Anonymous locks: many in one segment without a name, whose descriptor children get.
//!
//! # Protocol
//! An arena is a segment with rows of locks, each with the number of those that are taken, which only
//! grows. A place is taken by one addition, so that a process that dies in between loses a place at
//! most, and forked children take places of their parent's arena. Nobody gives a place back: that
//! nobody else uses it any more no process knows. An arena goes, as a whole, when the last object that
//! lies in it has gone, in each process; and from the system with the last process.

use crate::error::unusable;
use crate::place::Place;
use crate::segment::{Attached, Described, Segment, form};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstead::shared::SegmentOptions;
use lockstead::shared::inspect::LayoutNode;
use lockstead::shared::raw::RawSegment;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of an arena: their names, what they consist of, how many there are.
const ROWS: [(&str, &str, u64); 5] = [
    ("mutexes", "mutex", 2048),
    ("rwlocks", "rwlock", 256),
    ("semaphores", "semaphore", 512),
    ("conditions", "condvar", 1024),
    ("words", "u64", 2048),
];

/// The arena in which the next lock is made, and what the next arena is to be like.
static NEWEST: Mutex<(Option<Arc<Attached>>, Sizes)> = Mutex::new((None, Sizes::USUAL));

#[derive(Clone, Copy)]
struct Sizes {
    participants: u32,
    claims: u32,
}

impl Sizes {
    const USUAL: Sizes = Sizes { participants: 1024, claims: 32 };
}

/// Sets what the segments of anonymous locks are like that are made from now on.
///
/// `participants` is how many threads, of all processes, may use one of them at the same time (1 to
/// 16,382, usually 1,024), `claims` under how many locks a thread may read, and of how many semaphores
/// it may have units, at once (0 to 192, usually 32). Raises `ValueError` for other numbers.
#[pyfunction]
#[pyo3(signature = (*, participants = None, claims = None))]
pub(crate) fn configure(participants: Option<u32>, claims: Option<u32>) -> PyResult<()> {
    let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    let usual = newest.1;
    let sizes = Sizes {
        participants: participants.unwrap_or(usual.participants),
        claims: claims.unwrap_or(usual.claims),
    };
    if !(1..=16_382).contains(&sizes.participants) || sizes.claims > 192 {
        return Err(PyValueError::new_err("participants: 1 to 16382; claims: 0 to 192"));
    }
    *newest = (None, sizes);
    Ok(())
}

/// Takes a place for each of `rows` (pairs of a row's name and how many in a row), all in one segment: in
/// `beside` if that is given, else in the newest arena or in a new one. Returns the segment and the
/// offsets.
#[pyfunction]
#[pyo3(signature = (rows, beside = None))]
pub(crate) fn allocate(
    rows: Vec<(String, u64)>,
    beside: Option<&Segment>,
) -> PyResult<(Segment, Vec<u64>)> {
    if let Some(segment) = beside {
        let places = take(&segment.attached, &rows).ok_or_else(|| {
            PyRuntimeError::new_err(
                "there is no room for a condition in the segment of this lock: it has a name, or \
                 its arena is full; give Condition a lock of its own, or a name",
            )
        })?;
        return Ok((Segment { attached: segment.attached.clone() }, places));
    }
    let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(arena) = &newest.0
        && let Some(places) = take(arena, &rows)
    {
        return Ok((Segment { attached: arena.clone() }, places));
    }
    let arena = make(newest.1)?;
    let places = take(&arena, &rows).ok_or_else(|| PyRuntimeError::new_err("no such row"))?;
    newest.0 = Some(arena.clone());
    Ok((Segment { attached: arena }, places))
}

/// Makes a new arena.
fn make(sizes: Sizes) -> PyResult<Arc<Attached>> {
    let taken = Described("taken".into(), "u64".into(), ROWS.len() as u64, true);
    let row =
        |(name, kind, count): (&str, &str, u64)| Described(name.into(), kind.into(), count, true);
    let fields: Vec<_> = core::iter::once(taken).chain(ROWS.map(row)).collect();
    let form = form("lockstead_arena", &fields)?;
    let options = SegmentOptions::new().participants(sizes.participants).claims(sizes.claims);
    let raw = RawSegment::memfd("lockstead", &options, &form, |_| ()).map_err(unusable)?;
    Attached::register(raw, None)
}

/// Takes places in rows of a segment, if it is an arena with so much room.
fn take(segment: &Arc<Attached>, rows: &[(String, u64)]) -> Option<Vec<u64>> {
    let LayoutNode::Struct { name, fields } = &segment.raw().layout().node else { return None };
    if name != "lockstead_arena" {
        return None;
    }
    rows.iter().map(|(row, many)| take_row(segment, fields, row, *many)).collect()
}

fn take_row(
    segment: &Arc<Attached>,
    fields: &[(String, u64, lockstead::shared::inspect::RootLayout)],
    row: &str,
    many: u64,
) -> Option<u64> {
    let number = fields.iter().position(|(name, ..)| name == row)?.checked_sub(1)?;
    let (_, start, layout) = fields.get(number + 1)?;
    let LayoutNode::Array { count, stride, .. } = &layout.node else { return None };
    let counter = Place::new(segment, number as u64 * 8, 8)?;
    // SAFETY: PLACE-LOCK: the first field of an arena consists of counters, one for each row.
    let counter: &AtomicU64 = unsafe { counter.at() };
    let taken = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
        taken.checked_add(many).filter(|end| end <= count)
    });
    taken.ok().map(|index| start + index * stride)
}
