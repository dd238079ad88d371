//! Checks that all measurements make of their options.

use crate::{Error, LockName};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Checks that `given` lies in `range`; `unit` follows the numbers in the message.
pub(crate) fn within<T: PartialOrd + Display>(
    option: &'static str,
    given: T,
    range: RangeInclusive<T>,
    unit: &str,
) -> Result<(), Error> {
    if range.contains(&given) {
        return Ok(());
    }
    let allowed = format!("{}{unit} to {}{unit}", range.start(), range.end());
    Err(Error::Option { option, given: format!("{given}{unit}"), allowed })
}

/// Checks that a list is not empty.
pub(crate) fn some<T>(option: &'static str, list: &[T], allowed: &str) -> Result<(), Error> {
    if list.is_empty() {
        return Err(Error::Option { option, given: String::new(), allowed: allowed.to_owned() });
    }
    Ok(())
}

/// Checks that at least one lock is named, each built in and once.
pub(crate) fn locks(locks: &[LockName]) -> Result<(), Error> {
    some("--locks", locks, "at least one lock")?;
    for (index, lock) in locks.iter().enumerate() {
        lock.bytes()?;
        if locks[..index].contains(lock) {
            return Err(Error::Option {
                option: "--locks",
                given: lock.to_string(),
                allowed: "each lock once".to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_option_and_what_is_allowed() {
        let error = within("--tasks", 0, 1..=1024, "").expect_err("0 tasks");
        assert_eq!(error.to_string(), "--tasks: `0` is not possible; allowed: 1 to 1024");
        assert!(within("--tasks", 1, 1..=1024, "").is_ok());
        let error = locks(&[]).expect_err("no locks");
        assert!(error.to_string().contains("--locks"), "{error}");
        let error = locks(&[LockName::Std, LockName::Std]).expect_err("twice");
        assert!(error.to_string().contains("each lock once"), "{error}");
    }
}
