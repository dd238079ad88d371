//! Virtual time.

/// A time in picoseconds.
pub(crate) type Ps = u64;

/// Returns the picoseconds of so many nanoseconds.
pub(crate) fn ps(ns: f64) -> Ps {
    // As `f64::round`, which is a call of a function on old processors.
    let exact = (ns * 1000.0).max(0.0);
    let whole = exact as i64;
    whole as Ps + Ps::from(exact - whole as f64 >= 0.5)
}

/// Returns how long that much computing takes at this speed.
#[inline]
pub(crate) fn at_speed(time: Ps, speed: f64) -> Ps {
    if speed == 1.0 { time } else { (time as f64 / speed) as Ps }
}
