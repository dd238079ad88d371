//! The protocol of the locks: keys, transactions, and what follows from their answers. No input or output
//! here, so that the model (`crate::model`) explores what ships.
//!
//! ```text
//!   lockstead/lock/NAME/q/w-LEASE-7    a place in the queue, with the lease: mode, session, attempt
//!   lockstead/lock/NAME/held           who owns it, without a lease: stays behind a dead owner
//!   lockstead/lock/NAME/broken         a dead owner's work was not repaired: nobody gets it
//!   lockstead/lock/NAME/void/w-LEASE-7 an attempt that is over, of which a copy may still arrive
//! ```
//!
//! - **CLUSTER-FIRST** A place is in when none that it must wait for was created before it. No place is
//!   ever created before one that is there, so who is in stays in while its place exists.
//! - **CLUSTER-NAMED** Each attempt has a key of its own, and each transaction compares what it needs:
//!   a copy that arrives later changes nothing, and an answer that was lost is learnt by asking again.
//! - **CLUSTER-HELD** `held` names the place of the last owner that was in exclusively. A release removes
//!   both in one transaction, so `held` without its place says that the owner's lease ended.
//! - **CLUSTER-TOKEN** The revision at which a place was created is its fencing token: places are in
//!   in the order of their tokens.
//! - **CLUSTER-CONFIRMED** Nobody is told to be in but by a transaction that saw its place, and with it
//!   its lease, after it had become first.

mod acquire;
mod release;

#[cfg(test)]
pub(crate) use acquire::Entered;
pub(crate) use acquire::{Acquire, Refusal, Step};
pub(crate) use release::{ReleasePlan, Released, forget, found};

use crate::etcd::wire::Keys;
use serde::{Deserialize, Serialize};

/// The folder of all locks, unless a session names another one.
pub(crate) const ROOT: &str = "lockstead";

/// How a place wants to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// It wants to be in alone.
    Write,
    /// It may be in with other readers.
    Read,
    /// It wants a number of permits, of so many.
    Permits { want: u32, of: u32 },
}

impl Mode {
    fn letter(self) -> char {
        match self {
            Mode::Write => 'w',
            Mode::Read => 'r',
            Mode::Permits { .. } => 's',
        }
    }

    /// Returns the permits in the name of a place: those after it count them without reading values.
    fn permits(self) -> String {
        match self {
            Mode::Permits { want, of } => format!("{want}of{of}-"),
            _ => String::new(),
        }
    }
}

/// The keys of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LockKeys {
    base: String,
}

impl LockKeys {
    pub(crate) fn new(root: &str, name: &str) -> Self {
        LockKeys { base: format!("{root}/lock/{}", escape(name)) }
    }

    pub(crate) fn queue(&self) -> String {
        format!("{}/q/", self.base)
    }

    /// Returns the places of writers.
    pub(crate) fn writers(&self) -> String {
        format!("{}/q/w-", self.base)
    }

    pub(crate) fn held(&self) -> String {
        format!("{}/held", self.base)
    }

    pub(crate) fn broken(&self) -> String {
        format!("{}/broken", self.base)
    }

    /// Returns the name of a place: unique in the life of the cluster, for leases are.
    pub(crate) fn place(mode: Mode, lease: i64, attempt: u64) -> String {
        format!("{}-{}{lease:016x}-{attempt}", mode.letter(), mode.permits())
    }

    pub(crate) fn at(&self, place: &str) -> String {
        format!("{}/q/{place}", self.base)
    }

    /// Returns the mark of an attempt that is over.
    pub(crate) fn void(&self, place: &str) -> String {
        format!("{}/void/{place}", self.base)
    }

    /// Returns the places that one of this mode waits for, among those before it.
    pub(crate) fn before(&self, mode: Mode) -> Keys {
        Keys::Prefix(match mode {
            Mode::Write | Mode::Permits { .. } => self.queue(),
            Mode::Read => self.writers(),
        })
    }
}

/// Returns the permits that a place wants, and of how many; `None` if it wants none.
pub(crate) fn permits_of(key: &str) -> Option<(u32, u32)> {
    let place = key.rsplit('/').next()?;
    let (want, of) = place.strip_prefix("s-")?.split('-').next()?.split_once("of")?;
    Some((want.parse().ok()?, of.parse().ok()?))
}

/// Makes a name one part of a key: a slash in it would lead into another lock's folder.
pub(crate) fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for letter in name.chars() {
        match letter {
            '%' => escaped += "%25",
            '/' => escaped += "%2F",
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Returns the name that [`escape`] made this of.
pub(crate) fn unescape(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}

/// The value of a place, which says who stands there: for people and for the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Who {
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) thread: String,
    pub(crate) program: String,
    /// Where in the source the lock was asked for.
    pub(crate) place: String,
    /// Seconds since 1970, by the clock of that host.
    pub(crate) since: u64,
    /// What a leader says of itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) says: String,
    /// The lease of the lock that its program is a command under; 0: of none.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) under: i64,
    /// A waiter for permits has got them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_in: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Who {
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the value of a place; one that is none is nobody's.
    pub(crate) fn read(value: &[u8]) -> Who {
        serde_json::from_slice(value).unwrap_or_default()
    }
}

/// The mark of an owner, beside its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// The owner's place in the queue.
    pub(crate) place: String,
    /// An owner before died, and nobody has called consistent what it left.
    pub(crate) died: bool,
    /// The owner, or the one that died.
    pub(crate) who: Who,
}

impl Held {
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn read(value: &[u8]) -> Option<Held> {
        serde_json::from_slice(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_reaches_into_another_locks_keys() {
        let (outer, inner) = (LockKeys::new(ROOT, "a"), LockKeys::new(ROOT, "a/q/w-1"));
        assert!(!inner.held().starts_with(&outer.queue()));
        for name in ["a/b", "100%", "%2F", "", "ä"] {
            assert_eq!(unescape(&escape(name)), name);
            assert!(!escape(name).contains('/'));
        }
    }

    #[test]
    fn places_tell_their_permits() {
        let keys = LockKeys::new(ROOT, "s");
        let place = |mode| keys.at(&LockKeys::place(mode, 255, 3));
        assert_eq!(permits_of(&place(Mode::Permits { want: 2, of: 5 })), Some((2, 5)));
        assert_eq!(permits_of(&place(Mode::Write)), None);
        assert!(keys.before(Mode::Read).contains(&place(Mode::Write)));
        assert!(!keys.before(Mode::Read).contains(&place(Mode::Read)));
    }
}
