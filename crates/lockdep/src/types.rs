//! What goes into the graph and what comes out of it.

use alloc::vec::Vec;
pub use lockstead_rules::Level;

/// A lock, for as long as it lives; chosen by the caller. Free to be given to
/// another lock once [`forget`](crate::Graph::forget) has been called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockId(pub u32);

/// Locks of one origin; chosen by the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub u32);

/// A thread; chosen by the caller, never used for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(pub u32);

/// A place in the program: a call chain, a line; chosen by the caller. The graph
/// only hands it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteId(pub u32);

/// A class with its subclass: what locks are told apart by where they are not
/// told apart by instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockClass {
    /// The origin that all locks of the class have.
    pub id: ClassId,
    /// The one of several of one origin: the place in a nesting that is meant.
    pub subclass: u8,
}

/// How a lock is held or asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// It is held alone: any lock that is no reader-writer lock, and the writer of one.
    Write,
    /// It is held with other readers; a reader waits behind a waiting writer.
    Read,
    /// It is held with other readers, past waiting writers: a thread may do so twice.
    ReadRecursive,
}

impl Mode {
    /// Returns whether it is held with others.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        matches!(self, Mode::Read | Mode::ReadRecursive)
    }
}

/// A further lock that a thread holds: two threads that both hold it are not
/// where they are at the same time, unless both share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GateLock {
    /// The lock that is held.
    pub lock: LockId,
    /// Whether a reader holds it.
    pub shared: bool,
}

/// What one thread did: it held `from` and asked for `to`.
#[derive(Clone, Copy, Debug)]
pub struct OrderEdge<'a> {
    /// The lock that it held.
    pub from: LockId,
    /// The lock that it asked for, not by trylock.
    pub to: LockId,
    /// The way in which the thread held `from`.
    pub from_mode: Mode,
    /// How the thread asked for `to`.
    pub to_mode: Mode,
    /// The place where it had taken `from`.
    pub from_site: SiteId,
    /// The place where it asked for `to`.
    pub to_site: SiteId,
    /// The thread that did it.
    pub thread: ThreadId,
    /// All other locks that it held, in any order.
    pub gates: &'a [GateLock],
    /// The process had one thread.
    pub alone: bool,
    /// Whether the thread had `from` by trylock.
    pub tried_from: bool,
    /// It would have given `to` up at a deadline.
    pub timed_to: bool,
}

/// The world in which a lock is taken, as a signal sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SignalWorld {
    /// It is taken in a handler of the signal, not by trylock.
    Handler,
    /// It is taken outside of its handlers, by a thread that the signal may interrupt.
    Open,
}

/// One lock, taken in one of the worlds of a signal.
#[derive(Clone, Copy, Debug)]
pub struct SignalUse {
    /// Its number, 1 to 64.
    pub signal: u8,
    /// The side of the signal on which it is taken.
    pub world: SignalWorld,
    /// How the lock is taken.
    pub mode: Mode,
    /// The place at which the lock is taken.
    pub site: SiteId,
    /// The thread that takes it.
    pub thread: ThreadId,
}

/// How much the graph may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most locks that live at the same time.
    pub locks: u32,
    /// The most edges between locks; as many again between classes.
    pub edges: u32,
    /// The most classes, each with its subclass.
    pub classes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { locks: 1 << 20, edges: 4 << 20, classes: 1 << 16 }
    }
}

/// What the steps of a finding are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InversionKind {
    /// A cycle of locks: each step begins with the lock that the one before it
    /// asks for.
    Cycle,
    /// A cycle of classes: a step begins with a lock of the same class as the
    /// one that the step before it asks for. Its locks may be dead by now.
    Classes,
    /// A way from a lock that a handler takes to a lock under which that handler
    /// may run. The last step is the handler: it holds `from` because it
    /// interrupts who holds it, and asks for `to`. If that is the only step, the
    /// two are the same lock, or of the same class.
    Handler {
        /// The number of the signal.
        signal: u8,
        /// The thread that was seen to run it; the last step's witness is the one that holds
        /// `from`.
        thread: ThreadId,
    },
}

/// The reason why a cycle is not called a potential deadlock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Excuse {
    /// There are not as many threads as steps.
    OneThread,
    /// The threads hold this lock, so they are not there at the same time.
    Gate(LockId),
    /// A step was only seen while the process had one thread.
    Alone,
    /// The locks are not the same, only their classes.
    OtherInstances,
}

/// A thread that was seen to take a step, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The [`OrderEdge::thread`] of what was seen.
    pub thread: ThreadId,
    /// The [`OrderEdge::from_site`] of what was seen.
    pub from_site: SiteId,
    /// The [`OrderEdge::to_site`] of what was seen.
    pub to_site: SiteId,
    /// The [`OrderEdge::from_mode`] of what was seen.
    pub from_mode: Mode,
    /// The [`OrderEdge::to_mode`] of what was seen.
    pub to_mode: Mode,
    /// The [`OrderEdge::gates`] of what was seen that still live.
    pub gates: Vec<GateLock>,
    /// The [`OrderEdge::alone`] of what was seen.
    pub alone: bool,
    /// The [`OrderEdge::tried_from`] of what was seen.
    pub tried_from: bool,
    /// The [`OrderEdge::timed_to`] of what was seen.
    pub timed_to: bool,
}

/// One edge of a cycle or a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InversionStep {
    /// The lock that is held.
    pub from: LockId,
    /// The lock that is asked for.
    pub to: LockId,
    /// The class of the lock that is held.
    pub from_class: LockClass,
    /// The class of the lock that is asked for.
    pub to_class: LockClass,
    /// The thread that did it; of several, the one that proves most.
    pub witness: Witness,
}

/// Something that is wrong with the order of locks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inversion {
    /// [`Level::Potential`] where threads that were seen to do this can deadlock; else
    /// [`Level::Order`], and the excuse says why.
    pub level: Level,
    /// The kind of its steps: locks, classes, or a handler.
    pub kind: InversionKind,
    /// The proof: no shorter one has this level.
    pub steps: Vec<InversionStep>,
    /// What speaks against a deadlock; none at [`Level::Potential`].
    pub excuse: Option<Excuse>,
}

/// What did not fit or was not looked at to the end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GraphLosses {
    /// The number of locks beyond [`Limits::locks`].
    pub locks: u64,
    /// The number of edges beyond [`Limits::edges`], of locks or of classes.
    pub edges: u64,
    /// The number of classes beyond [`Limits::classes`]: their order is not looked at, that of
    /// their locks is.
    pub classes: u64,
    /// The number of witnesses that were not kept since their edge had enough.
    pub witnesses: u64,
    /// The number of uses around signals beyond what fits.
    pub uses: u64,
    /// The number of edges and uses of locks that were not declared.
    pub undeclared: u64,
    /// The number of searches for a cycle that were ended because it took too long: a cycle may be
    /// longer than it had to be, or of a lower level, or missing.
    pub searches: u64,
}

impl GraphLosses {
    /// Returns whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == GraphLosses::default()
    }
}
