//! Names and numbers in few characters, safe to print.

use crate::table;

/// Makes a name that came from the program safe to print: it may hold anything, the terminal's
/// control sequences included.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Shortens a text to `width` characters in its middle: names begin with what
/// they are and end with where it is.
#[must_use]
pub fn fit(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width || width == 0 {
        return text.to_owned();
    }
    let tail = (width - 1) / 2;
    let head = width - 1 - tail;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

/// Writes a share: `31.2%`, `<0.1%`, `0%`.
#[must_use]
pub fn percent(share: f64) -> String {
    match share {
        s if s <= 0.0 || s.is_nan() => "0%".into(),
        s if s < 0.1 => "<0.1%".into(),
        s if s < 99.95 => format!("{s:.1}%"),
        _ => "100%".into(),
    }
}

/// Formats a share that may be more than all: `378%`.
#[must_use]
pub fn load(share: f64) -> String {
    if share < 99.95 { percent(share) } else { format!("{share:.0}%") }
}

/// Counts something in words: `1 lock`, `2 locks`.
#[must_use]
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", table::count(count as f64), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_and_fit() {
        assert_eq!(clean("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(fit("short", 5), "short");
        let fitted = fit("Cache<int>::find(int) at /src/cache.cc:41", 20);
        assert_eq!(fitted.chars().count(), 20);
        assert!(fitted.starts_with("Cache") && fitted.ends_with("cc:41"), "{fitted}");
        assert_eq!(fit("äöü", 2), "ä…");
    }

    #[test]
    fn shares_never_round_to_nothing() {
        let shares = [0.0, 0.01, 12.34, 99.96, f64::NAN].map(percent);
        assert_eq!([99.9, 100.0, 378.2].map(load), ["99.9%", "100%", "378%"]);
        assert_eq!(shares, ["0%", "<0.1%", "12.3%", "100%", "0%"]);
    }
}
