//! What a profile cannot say, or the simulator not represent: where that matters there is no
//! prediction.
//!
//! # Role
//! A recorded program becomes mutexes, computing and time away. Reader-writer locks become
//! mutexes, though their readers go together; who waits for a condition, a semaphore or a barrier is
//! away for as long as it was, though it waits for others; other locks are left out. Each of
//! these is harmless where it takes hardly any time, and makes a prediction worthless where it takes
//! much: by its share of the threads' time this file decides which. So does load: what other programs
//! had of the processors while the profile was recorded.

use serde::Serialize;

/// Something of a program that the simulation has as something else.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Unrepresented {
    /// The name of the lock, or of the object that was waited for.
    pub(super) name: String,
    /// What it is: `rwlock`, `condition`, `semaphore`, `barrier`, or another kind of a report.
    pub(super) kind: String,
    /// What it is in the simulation, in words.
    pub(super) simulated_as: &'static str,
    /// The share of its threads' time that the program held it or waited for it.
    pub(super) share_percent: f64,
    /// Whether its share counts by the number of processors: what many hold together.
    #[serde(skip)]
    pub(super) shared: bool,
    /// Whether it is known to be time away, or too short to matter.
    #[serde(skip)]
    pub(super) is_harmless: bool,
}

/// A wait for others that has a larger share of the threads' time than this makes a prediction
/// worthless: more processors make what is waited for come sooner, by up to this share.
const WAITS: f64 = 10.0;

/// Readers of a lock that is held for a share of a thread's time stand in each other's way if they
/// are simulated as owners: with `n` threads that run, one of them finds another there in `n` times that
/// share of all cases. More than this is too much.
const MEETS: f64 = 10.0;

/// The share from which on something is named.
const NAMED: f64 = 1.0;

impl Unrepresented {
    /// Makes it of an object of a report; `time`: how long threads held it and waited for it, `all`:
    /// how long they lived, both in nanoseconds. `None` for what is represented.
    pub(super) fn new(name: &str, kind: &str, time: u64, all: u64) -> Option<Self> {
        let (simulated_as, shared) = match kind {
            "mutex" | "spin" => return None,
            "rwlock" => ("a mutex, which readers hold one at a time", true),
            "condition" | "semaphore" | "barrier" => ("time away, whatever others do", false),
            _ => ("nothing: it is left out", false),
        };
        let share_percent = (time as f64 / all.max(1) as f64 * 1000.0).round() / 10.0;
        let (name, kind) = (name.to_owned(), kind.to_owned());
        Some(Unrepresented { name, kind, simulated_as, share_percent, shared, is_harmless: false })
    }

    /// Tells whether it has enough of the time to be named.
    pub(super) fn is_named(&self) -> bool {
        self.share_percent >= NAMED
    }

    fn matters(&self, running: usize) -> bool {
        if self.is_harmless {
            false
        } else if self.shared {
            running > 1 && self.share_percent * running as f64 > MEETS
        } else {
            self.share_percent > WAITS
        }
    }

    /// Says what it is, and how much of the time it has.
    pub(super) fn words(&self) -> String {
        format!(
            "{} `{}` ({:.1} % of the threads' time) is simulated as {}",
            self.kind, self.name, self.share_percent, self.simulated_as
        )
    }
}

/// Others that used more than this share of the processors are named: some of the program's threads
/// waited for a processor, as if they computed or held a lock.
const LOADED: f64 = 5.0;

/// Others that used more than this make a prediction worthless.
const OVERLOADED: f64 = 20.0;

/// Others harm nobody if the program's threads stood without a processor for less than this share of
/// the time that they wanted one: there were enough.
const DELAYED: f64 = 2.0;

/// What others did while a program was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordedLoad {
    /// Hardly anything, or it is unknown.
    None,
    /// So much that a prediction is less certain.
    Some,
    /// So much that there is no prediction.
    Much,
}

impl RecordedLoad {
    /// Judges the share of the processors that others used, in per cent; `delayed`: for which share
    /// of their time the program's threads stood ready without a processor.
    pub(super) fn of(others: Option<f64>, delayed: Option<f64>) -> Self {
        match others.filter(|_| delayed.is_none_or(|share| share > DELAYED)) {
            Some(share) if share > OVERLOADED => RecordedLoad::Much,
            Some(share) if share > LOADED => RecordedLoad::Some,
            _ => RecordedLoad::None,
        }
    }
}

/// Returns why nothing can be predicted for so many tasks that run at a time, if so.
pub(super) fn not_predictable(all: &[Unrepresented], running: usize) -> Option<String> {
    let worst = all.iter().filter(|one| one.matters(running));
    worst
        .max_by(|one, other| one.share_percent.total_cmp(&other.share_percent))
        .map(Unrepresented::words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, percent: u64) -> Unrepresented {
        Unrepresented::new("it", kind, percent, 100).expect("it is not represented")
    }

    #[test]
    fn mutexes_are_represented() {
        assert!(Unrepresented::new("it", "mutex", 90, 100).is_none());
        assert!(Unrepresented::new("it", "spin", 90, 100).is_none());
    }

    #[test]
    fn readers_matter_by_how_many_there_can_be() {
        let lock = [of("rwlock", 4)];
        assert_eq!(not_predictable(&lock, 1), None, "one at a time is a mutex");
        assert_eq!(not_predictable(&lock, 2), None);
        let said = not_predictable(&lock, 4).expect("four at a time are not");
        assert!(said.contains("rwlock `it` (4.0 %") && said.contains("as a mutex"), "{said}");
        assert_eq!(not_predictable(&[of("rwlock", 0)], 4096), None);
    }

    #[test]
    fn load_is_judged_by_its_share() {
        let of = |share| RecordedLoad::of(share, None);
        assert_eq!((of(None), of(Some(4.9))), (RecordedLoad::None, RecordedLoad::None));
        assert_eq!((of(Some(5.1)), of(Some(20.1))), (RecordedLoad::Some, RecordedLoad::Much));
        // There were processors for all, or not.
        assert_eq!(RecordedLoad::of(Some(60.0), Some(1.9)), RecordedLoad::None);
        assert_eq!(RecordedLoad::of(Some(60.0), Some(2.1)), RecordedLoad::Much);
        // Threads that are in the way of each other alone are the program's own matter.
        assert_eq!(RecordedLoad::of(Some(1.0), Some(70.0)), RecordedLoad::None);
    }

    #[test]
    fn waiting_for_others_matters_however_many_run() {
        for kind in ["condition", "semaphore", "barrier", "once", "futex"] {
            assert_eq!(not_predictable(&[of(kind, 9)], 100), None, "{kind}");
            assert!(not_predictable(&[of(kind, 11)], 1).is_some(), "{kind}");
        }
        let said = not_predictable(&[of("condition", 11), of("barrier", 40)], 2);
        assert!(said.is_some_and(|said| said.starts_with("barrier")), "the worst one is named");
    }
}
