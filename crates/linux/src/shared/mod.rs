//! Linux under the locks of `lockstead_core::robust`: deaths that the kernel reports, threads as
//! participants of segments, and the second source on who has ended.
//!
//! # Role
//! ```text
//!   lockstead::shared ── attach ──▶ registry: the segments of this process
//!          │                            │
//!          └── member, join ──▶ page: the segments that this thread takes part in
//!                                       │
//!   kernel ◀── list: life words, named ─┘      number, origin, oracle: who else has ended
//! ```
//! The crate `lockstead` has a segment's file, its layout and its types. It [`attach`]es what it
//! has mapped, and asks by [`member`], at each lock operation, which participant the calling
//! thread is in the segment of an address.
//!
//! | file | what |
//! |---|---|
//! | `sleep` | the futex calls: sleeping on several words, waking |
//! | `list` | the robust list: the libc's, or one of the thread's own |
//! | `page` | what a thread knows of itself: its members, its list; vanishes in a forked child |
//! | `member` | taking a slot in a segment, and giving it up |
//! | `refusal` | why a thread is not let in, or not out |
//! | `registry` | the segments that this process has attached |
//! | `attach` | attaching a segment, and detaching it |
//! | `process` | what a process knows of itself; vanishes in a forked child |
//! | `wake_op` | adding and waking in one step |
//! | `description` | record locks on the segment's file, and descriptions of one's own |
//! | `number` | by what a process is known: its number, which a record lock keeps |
//! | `origin` | which start of the system, which file, which process |
//! | `oracle` | the second source on who has ended |
//!
//! # Who a thread is
//! A thread becomes a participant at its first lock operation in a segment. The fast
//! path finds it by one thread-local pointer to its [`SegmentMember`], and compares the
//! address with the member's range. Members lie in a page of the thread's own that the
//! kernel wipes in a forked child (`MADV_WIPEONFORK`), whichever call made the child:
//! there the pointer leads to zeroes, no address is in range, and the child joins as
//! somebody new. A guard therefore keeps the member and not the identity.
//!
//! # Invariants
//! - **SYSCALL-LIVE** The memory that a system call reads or writes lives until the call returns,
//!   and nobody else uses it. The function that makes the call keeps it.
//! - **DESCRIPTOR-OURS** A descriptor that this code closes or changes was opened by it, and it has
//!   told nobody the number.
//! - **MAPPING-OURS** A mapping that this code advises on or unmaps was made by it, and nobody
//!   refers to it any more where it is unmapped.
//!
//! # Limits
//! - A child made by `vfork` shares the memory of its parent and cannot be told from
//!   it: it may only call `exec` and `_exit`, as POSIX has it. Neither disturbs the
//!   parent's membership.
//! - A thread made by the bare `clone` call needs thread-local storage of its own
//!   (`CLONE_SETTLS`).
//! - A thread that holds 2,048 or more robust mutexes of the libc when it ends: the
//!   kernel stops before it comes to our words. The oracle finds out.
//! - [`leave`] and [`detach`] are not for signal handlers.

// From the bottom up: a module imports from those above it here, and from no others.
mod refusal;

mod release;

mod wake_op;

mod origin;

mod process;

mod registry;

mod page;

mod list;

mod description;

mod oracle;

mod number;

mod member;

mod attach;

mod sleep;

pub use attach::{attach, detach};
pub use description::{LAST_NUMBER, LOCKS_FROM, SHARED, Standing, standing};
pub use member::{at_forgetting, join, leave, me, member, participant_at, party};
pub use oracle::process_has_ended;
pub use origin::of_file as origin_of_file;
pub use page::{MOST_CLAIMS, SegmentMember, born};
pub(crate) use process::wipes_on_fork;
pub use refusal::{Busy, JoinError};
pub(crate) use registry::name_of;
pub use registry::{
    AttachError, AttachedSegment, Chore, LockName, Scrub, SegmentHandle, SegmentParts,
};
pub use sleep::handlers_end_calls;
