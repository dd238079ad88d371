//! The ledgers of processes under `lockstead run`: getting hold of one, and
//! keeping it mapped.
//!
//! | module | what it does |
//! |---|---|
//! | [`passing`] | hands descriptors over a socket |
//! | [`listener`] | the command's end of the socket: takes ledgers in, gives them out |
//! | [`mapped`] | a ledger as memory of this process |
//! | [`attach()`] | the ledger of a process that another command runs |
//! | [`code`] | the files of the program's code, when the process has gone |

pub mod attach;
pub mod code;
pub mod listener;
pub mod mapped;
pub mod passing;

pub use attach::attach;
pub use listener::{CallerRequest, Listener, WaitingCaller};
pub use mapped::MappedLedger;
