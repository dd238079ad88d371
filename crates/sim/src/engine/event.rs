//! The events to come, in the order of their times, and the source of chance.

use super::time::Ps;

/// An event, which happens at some time.
#[derive(Clone, Copy)]
pub(crate) enum What {
    /// A task has passed the time it wanted to, unless the number is out of date.
    Passed(u32, u32),
    /// A cache line arrives where it was asked for.
    Line(u32),
    /// A shared line has been read.
    Read(u32, u32),
    /// A processor has switched, or woken up.
    Dispatch(u32),
    /// The time slice of a processor's task is over, unless out of date.
    Slice(u32, u32),
    /// A sleeper's time is over, unless out of date.
    Timer(u32, u32),
    /// The warm-up is over, and counting begins.
    Count,
    /// Idle processors look around for work.
    Balance,
}

/// An event to come.
struct SimEvent {
    at: Ps,
    what: What,
    /// The next one of its slot.
    next: u32,
}

/// The index of no event.
const NONE: u32 = u32::MAX;

/// A digit of a time has so many bits.
const DIGIT: u32 = 6;

/// The number of digits of a time.
const WHEELS: usize = Ps::BITS.div_ceil(DIGIT) as usize;

/// The events whose times have the same digits up to one of them, in the order of their
/// announcement.
#[derive(Clone, Copy)]
struct EventSlot {
    first: u32,
    last: u32,
    /// The earliest time among them.
    earliest: Ps,
}

const EMPTY: EventSlot = EventSlot { first: NONE, last: NONE, earliest: Ps::MAX };

/// The events to come: a wheel of slots for each digit of a time.
///
/// An event lies on the wheel of the highest digit in which its time differs from that of
/// the event taken last, in the slot of its own digit there. So those of a lower wheel come
/// before those of a higher one, and a slot of the lowest wheel has one time. When the turn
/// of a slot of a higher wheel comes, its events are spread over the wheels below. None is
/// announced for a time before that of the event taken last, so that the others stay where
/// they are.
///
/// Events of one time always share a slot, and keep their order there (EVENT-ORDER).
pub(super) struct Queue {
    /// The time of the event taken last.
    last: Ps,
    /// The time of the first event to come, or the end of time.
    earliest: Ps,
    /// The wheels that have events, and those of their slots that have some.
    wheels: u32,
    used: [u64; WHEELS],
    slots: Vec<[EventSlot; 1 << DIGIT]>,
    events: Vec<SimEvent>,
    /// The first of those that are not in use.
    free: u32,
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue {
            last: 0,
            earliest: Ps::MAX,
            wheels: 0,
            used: [0; WHEELS],
            slots: vec![[EMPTY; 1 << DIGIT]; WHEELS],
            events: Vec::new(),
            free: NONE,
        }
    }

    /// Returns the time of the first event to come, or the end of time.
    #[inline]
    pub(super) fn earliest(&self) -> Ps {
        self.earliest
    }

    /// Announces an event that happens at a time.
    #[inline]
    pub(super) fn push(&mut self, at: Ps, what: What) {
        debug_assert!(at >= self.last);
        let index = self.free;
        let event = SimEvent { at, what, next: NONE };
        if let Some(place) = self.events.get_mut(index as usize) {
            self.free = place.next;
            *place = event;
            self.put(index, at);
        } else {
            self.events.push(event);
            self.put(self.events.len() as u32 - 1, at);
        }
        self.earliest = self.earliest.min(at);
    }

    /// Puts an event behind those of its slot.
    #[inline]
    fn put(&mut self, index: u32, at: Ps) {
        let wheel = ((at ^ self.last) | 1).ilog2() / DIGIT;
        let digit = at >> (wheel * DIGIT) & ((1 << DIGIT) - 1);
        let wheel = wheel as usize;
        self.wheels |= 1 << wheel;
        self.used[wheel] |= 1 << digit;
        let slot = &mut self.slots[wheel][digit as usize];
        slot.earliest = slot.earliest.min(at);
        let before = std::mem::replace(&mut slot.last, index);
        if before == NONE {
            slot.first = index;
        } else {
            self.events[before as usize].next = index;
        }
    }

    /// Returns the wheel and the slot of the first event to come.
    #[inline]
    fn foremost(&self) -> Option<(usize, usize)> {
        let wheel = self.wheels.trailing_zeros() as usize;
        Some((wheel, self.used.get(wheel)?.trailing_zeros() as usize))
    }

    /// Notes that a slot has no events left.
    #[inline]
    fn clear(&mut self, wheel: usize, digit: usize) {
        self.slots[wheel][digit] = EMPTY;
        self.used[wheel] &= !(1 << digit);
        if self.used[wheel] == 0 {
            self.wheels &= !(1 << wheel);
        }
    }

    /// Takes the first event. Returns when it happens, and what it is.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Ps, What)> {
        let (mut wheel, mut digit) = self.foremost()?;
        let mut slot = self.slots[wheel][digit];
        self.last = slot.earliest;
        if wheel > 0 && slot.first != slot.last {
            self.clear(wheel, digit);
            let mut next = slot.first;
            while let Some(event) = self.events.get_mut(next as usize) {
                let index = std::mem::replace(&mut next, std::mem::replace(&mut event.next, NONE));
                let at = event.at;
                self.put(index, at);
            }
            (wheel, digit) = (0, self.last as usize % (1 << DIGIT));
            slot = self.slots[wheel][digit];
        }
        let event = &mut self.events[slot.first as usize];
        let (at, what) = (event.at, event.what);
        let next = std::mem::replace(&mut event.next, self.free);
        self.free = slot.first;
        if next == NONE {
            self.clear(wheel, digit);
        } else {
            self.slots[wheel][digit].first = next;
        }
        self.earliest = self.foremost().map_or(Ps::MAX, |(w, d)| self.slots[w][d].earliest);
        Some((at, what))
    }
}

/// A generator of random numbers (splitmix64).
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
