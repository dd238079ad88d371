//! The interface of parking_lot 0.12 with the locks of lockstead: see
//! [`lockstead::parking_lot`], of which this is another name.

#[cfg(feature = "nightly")]
compile_error!(
    "lockstead's locks need a stable compiler only: leave parking_lot's feature `nightly` out"
);

#[cfg(feature = "deadlock_detection")]
compile_error!(
    "lockstead's locks have no `deadlock::check_deadlock`: `lockstead run PROGRAM` finds deadlocks \
     while it runs, `lockstead dump PID` in a program that hangs, and both of other locks too. \
     Leave parking_lot's feature `deadlock_detection` out"
);

pub use lockstead::parking_lot::*;
