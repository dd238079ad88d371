//! The values of flags, from their text forms.
//!
//! A parser here answers with a message that says what is allowed; clap adds
//! the name of the option and the exit status 2.

use std::time::Duration;

/// The longest measurement of one lock, in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;
/// The shortest, long enough for every task to have its turn.
const MIN_SECONDS: f64 = 0.1;

/// A list given as `a,b,c`: not empty, nothing twice.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueList<T>(pub Vec<T>);

/// Parses `a,b,c` with `item`.
///
/// # Errors
/// What is wrong with the first item that is refused, or that is there twice.
pub fn list<T: PartialEq>(
    text: &str,
    item: impl Fn(&str) -> Result<T, String>,
) -> Result<ValueList<T>, String> {
    let mut items = Vec::new();
    for part in text.split(',').map(str::trim) {
        let value = item(part)?;
        if items.contains(&value) {
            return Err(format!("`{part}` is there twice; allowed: each value once"));
        }
        items.push(value);
    }
    Ok(ValueList(items))
}

/// Parses a whole number in `1..=max`.
///
/// # Errors
/// What is allowed.
pub fn whole(text: &str, max: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=max).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` is not possible; allowed: a whole number from 1 to {max}")),
    }
}

/// Parses a length of measurement in seconds.
///
/// # Errors
/// What is allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "`{text}` is not possible; allowed: a number of seconds from {MIN_SECONDS} to \
             {MAX_SECONDS}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "inf", "NaN", "1e9", "ten", "", "99999999999999999999999"] {
            assert!(seconds(text).expect_err(text).contains("from 0.1 to 86400"), "{text}");
        }
    }
}
