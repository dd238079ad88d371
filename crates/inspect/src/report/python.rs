//! Where threads of Python waited: what looks at them have met, and its way into the rows.
//!
//! # Role
//! The ledger has the waits and how long each took, but not where a thread was in Python: that is
//! gone when the wait has ended. So the command looks at the threads that wait, again and again, and
//! adds up here what it met, by lock and by frames. A look stands for the time since the one before,
//! so the sums are estimates; a wait between two looks is in none of them.

use super::lives::{LifeRecords, WaitedLife};
use super::model::percent;
use crate::python::PythonStack;
use lockstead_ledger::Ledger;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The most different places of a process that are kept apart.
const PLACES: usize = 1024;
/// The most places of a row.
const LISTED: usize = 32;

/// The number of a place among those of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaceNumber(usize);

/// Where threads of Python wait, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitedPlace {
    /// What is waited for, as the interpreter tells: `queue.Queue`.
    pub waits_for: Option<String>,
    /// The frames of the thread.
    pub stack: PythonStack,
}

/// A wait that a look met.
#[derive(Clone, Debug)]
pub struct MetWait {
    /// The lock that is waited for.
    pub life: WaitedLife,
    /// Where the thread is in Python; `None` if it is in no code of Python, or was not looked at.
    pub place: Option<PlaceNumber>,
    /// The address of the object that is waited for.
    pub object: Option<u64>,
    /// The time since the look before, in nanoseconds.
    pub ns: u64,
    /// How long the wait had lasted, in nanoseconds.
    pub lasted_ns: u64,
    /// No look before has met it.
    pub is_new: bool,
}

/// Sums of what looks met at one place.
#[derive(Clone, Debug, Default)]
struct PlaceSum {
    ns: u64,
    waits: u64,
    longest: u64,
    /// The object that was waited for; `None` if there were several, or one is not known.
    object: Option<u64>,
}

impl PlaceSum {
    fn absorb(&mut self, other: &PlaceSum) {
        let is_same = self.waits == 0 || self.object == other.object;
        self.object = other.object.filter(|_| is_same);
        self.ns = self.ns.saturating_add(other.ns);
        self.waits = self.waits.saturating_add(other.waits);
        self.longest = self.longest.max(other.longest);
    }
}

/// The sums of one place, or of waits without one, by lock.
type PlaceSums = HashMap<Option<PlaceNumber>, PlaceSum>;

/// What looks at the threads of one process have met.
#[derive(Clone, Debug, Default)]
pub struct PythonWaits {
    lives: HashMap<WaitedLife, PlaceSums>,
    places: Vec<WaitedPlace>,
    numbers: HashMap<WaitedPlace, PlaceNumber>,
    /// The version of its interpreter: `3.12`.
    pub version: Option<String>,
    /// The reason why its interpreter cannot be read, a sentence.
    pub unreadable: Option<String>,
    /// How many looks there were.
    pub looks: u64,
}

impl PythonWaits {
    /// Returns the number of a place; `None` if there is no room for one more.
    pub fn place(&mut self, place: WaitedPlace) -> Option<PlaceNumber> {
        if let Some(&known) = self.numbers.get(&place) {
            return Some(known);
        }
        if self.places.len() == PLACES {
            return None;
        }
        let number = PlaceNumber(self.places.len());
        self.places.push(place.clone());
        self.numbers.insert(place, number);
        Some(number)
    }

    /// Adds a wait that a look met.
    pub fn add(&mut self, met: MetWait) {
        let sum = self.lives.entry(met.life).or_default().entry(met.place).or_default();
        let waits = u64::from(met.is_new);
        sum.absorb(&PlaceSum { ns: met.ns, waits, longest: met.lasted_ns, object: met.object });
    }
}

/// How the threads of a process were looked at in Python.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PythonLooks {
    /// The version of the interpreter: `3.12`; null if it cannot be read.
    pub version: Option<String>,
    /// Why it cannot be read.
    pub unreadable: Option<String>,
    /// How many looks at threads that waited there were.
    pub looks: u64,
}

/// Where threads of Python waited for a lock, as far as looks met them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PythonPlaces {
    /// How long threads of Python waited, an estimate: each look stands for the time since the one
    /// before.
    pub seen_ns: u64,
    /// The part of the waiting in which no place in Python is known, in percent: the waits were too
    /// short to be met, or those of threads in no code of Python.
    pub unseen_percent: f64,
    /// The places, the largest part first; at most 32.
    pub places: Vec<PythonPlace>,
    /// How many more places there were.
    pub more: u64,
}

/// A place in a program of Python where threads waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PythonPlace {
    /// The place in few words: `get() at app.py:31`. The innermost that is not of the interpreter's
    /// own library.
    pub site: String,
    /// The name of the function.
    pub function: String,
    /// The source file, as the code names it.
    pub file: String,
    /// The number of the line in `file`; null where the code has none.
    pub line: Option<u32>,
    /// The function of the interpreter's library that was called there: `Queue.get`.
    pub through: Option<String>,
    /// What was waited for, as the interpreter tells: `threading.Lock`, `threading.RLock`,
    /// `threading.Condition`, `queue.Queue` and their like, `the GIL`, `the end of a thread`.
    pub waits_for: Option<String>,
    /// How long threads waited here, an estimate.
    pub seen_ns: u64,
    /// Its part in the waiting for the lock.
    pub share_percent: f64,
    /// How many waits the looks met.
    pub waits: u64,
    /// How long the longest of these had lasted when it was last met.
    pub longest_ns: u64,
    /// The frames of Python, of the largest part.
    pub stack: PythonStack,
}

/// The waits that looks met, by the records of a ledger that is read at the end.
pub(super) struct WaitsByRecord<'w> {
    places: &'w [WaitedPlace],
    records: HashMap<u32, Vec<&'w PlaceSums>>,
}

impl<'w> WaitsByRecord<'w> {
    /// Finds the record of each lock that was waited for.
    pub(super) fn new(ledger: &Ledger<'_>, waits: Option<&'w PythonWaits>) -> Self {
        let mut records: HashMap<u32, Vec<&PlaceSums>> = HashMap::new();
        let Some(waits) = waits.filter(|waits| !waits.lives.is_empty()) else {
            return WaitsByRecord { places: &[], records };
        };
        let found = LifeRecords::of(ledger);
        for (life, sums) in &waits.lives {
            if let Some(record) = found.find(life) {
                records.entry(record).or_default().push(sums);
            }
        }
        WaitsByRecord { places: &waits.places, records }
    }

    /// Returns where threads of Python waited for the locks of these records, of which `whole` is the
    /// waiting in nanoseconds; `None` if no look met one.
    pub(super) fn places(&self, members: &[u32], whole: u64) -> Option<PythonPlaces> {
        let mut sums: BTreeMap<usize, PlaceSum> = BTreeMap::new();
        let met = members.iter().filter_map(|index| self.records.get(index)).flatten();
        for (place, sum) in met.copied().flatten() {
            if let Some(PlaceNumber(place)) = place {
                sums.entry(*place).or_default().absorb(sum);
            }
        }
        if sums.is_empty() {
            return None;
        }
        let seen_ns = sums.values().fold(0_u64, |all, sum| all.saturating_add(sum.ns));
        // Estimates may come to more than there was.
        let whole = whole.max(seen_ns);
        // So the first stack of each place is that with the largest part.
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(place, sum)| (Reverse((sum.ns, sum.waits)), *place));
        let mut places: Vec<PythonPlace> = Vec::new();
        for (place, sum) in &sums {
            let Some(found) = shown(&self.places[*place], sum, whole) else { continue };
            let is_same = |other: &&mut PythonPlace| {
                (&other.site, &other.file, &other.through, &other.waits_for)
                    == (&found.site, &found.file, &found.through, &found.waits_for)
            };
            match places.iter_mut().find(is_same) {
                Some(known) => {
                    known.seen_ns = known.seen_ns.saturating_add(found.seen_ns);
                    known.waits = known.waits.saturating_add(found.waits);
                    known.longest_ns = known.longest_ns.max(found.longest_ns);
                    known.share_percent = percent(known.seen_ns, whole);
                }
                None => places.push(found),
            }
        }
        places.sort_by_key(|place| Reverse(place.seen_ns));
        let more = places.len().saturating_sub(LISTED) as u64;
        places.truncate(LISTED);
        Some(PythonPlaces {
            seen_ns,
            unseen_percent: percent(whole - seen_ns, whole),
            places,
            more,
        })
    }

    /// Returns what the one lock of this record is, if all looks that found what a wait for it was for
    /// found the same.
    pub(super) fn object(&self, record: u32) -> Option<String> {
        let met = self.records.get(&record)?.iter().copied().flatten();
        let mut found = None;
        for (place, sum) in met {
            let Some(kind) = place.and_then(|at| self.places[at.0].waits_for.as_ref()) else {
                continue;
            };
            let this = (kind, sum.object?);
            if found.is_some_and(|other| other != this) {
                return None;
            }
            found = Some(this);
        }
        found.map(|(kind, object)| format!("{kind} at {object:#x}"))
    }
}

fn shown(place: &WaitedPlace, sum: &PlaceSum, whole: u64) -> Option<PythonPlace> {
    let (frame, through) = place.stack.place()?;
    Some(PythonPlace {
        site: frame.site(),
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
        through: through.map(|inner| inner.function.clone()),
        waits_for: place.waits_for.clone(),
        seen_ns: sum.ns,
        share_percent: percent(sum.ns, whole),
        waits: sum.waits,
        longest_ns: sum.longest,
        stack: place.stack.clone(),
    })
}
