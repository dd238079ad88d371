//! Names the machine that programs run on. `platform` says what it can.

/// The platform of locks that threads of one process share.
#[derive(Clone, Copy, Debug)]
pub struct Linux;
