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

#[cfg(feature = "send_guard")]
compile_error!(
    "a lock of lockstead belongs to the thread that acquired it, and so does its guard: find out \
     which crate asks for parking_lot's feature `send_guard` (cargo tree -e features -i \
     parking_lot), and leave it out"
);

pub use lockstead::parking_lot::*;
