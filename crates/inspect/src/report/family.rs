//! What names of locks have in common.
//!
//! # Role
//! The one rule by which several locks are a row of a report, and by which those of two reports are
//! compared. A name says where a lock is from, and what tells it from others that are from there:
//! its index in an array (`cache_lock[17]`), its number (`mutex from open() at bank.c:12, #3`) or its
//! address (`queue.SimpleQueue at 0x7f56`).

use std::borrow::Cow;
use std::fmt::Write as _;

/// Stands where an index was.
const ANY: &str = "[*]";

/// Returns a name without what tells the lock from its like: `cache_lock[*]`.
#[must_use]
pub fn family(name: &str) -> String {
    let name = numbered(name).map_or(name, |(front, _)| front);
    let name = addressed(name).map_or(name, |(front, _)| front);
    let mut family = String::new();
    let mut from = 0;
    for (start, end) in indices(name) {
        family += &name[from..start];
        family += ANY;
        from = end;
    }
    family + &name[from..]
}

/// Returns what tells a lock from its like: `[17]`, `#3`, `0x7f56`; `None` if its name does not.
#[must_use]
pub fn distinction(name: &str) -> Option<Cow<'_, str>> {
    if let Some((_, number)) = numbered(name) {
        return Some(number.into());
    }
    if let Some((_, address)) = addressed(name) {
        return Some(address.into());
    }
    let mut all = indices(name).into_iter().filter(|&(start, end)| &name[start..end] != ANY);
    let (start, end) = all.next()?;
    let mut told = Cow::from(&name[start..end]);
    for (start, end) in all {
        let _ = write!(told.to_mut(), "{}", &name[start..end]);
    }
    Some(told)
}

/// Returns the part of a name that is the same in each run, and after a change of the source: its
/// family, without the line of a place.
#[must_use]
pub fn lasting_family(name: &str) -> String {
    let family = family(name);
    let is_place = |place: &str| place.rsplit_once(':').is_some_and(|(_, line)| is_decimal(line));
    match family.rsplit_once(" at ") {
        Some((front, place)) if is_place(place) => front.to_owned(),
        _ => family,
    }
}

/// Returns a name in front of its number, and the number with its sign.
fn numbered(name: &str) -> Option<(&str, &str)> {
    let at = name.rfind(", #")?;
    let (front, number) = (&name[..at], &name[at + 2..]);
    is_decimal(&number[1..]).then_some((front, number))
}

fn addressed(name: &str) -> Option<(&str, &str)> {
    let (front, address) = name.rsplit_once(" at ")?;
    let digits = address.strip_prefix("0x").filter(|digits| !digits.is_empty())?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some((front, address))
}

/// Returns where the indices of elements stand in a name. Those in parameters of functions and of
/// types are lengths of arrays.
fn indices(name: &str) -> Vec<(usize, usize)> {
    let bytes = name.as_bytes();
    let mut found = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'<' => depth += 1,
            b')' | b'>' => depth = depth.saturating_sub(1),
            b'[' if depth == 0 => {
                let length = bytes[at..].iter().position(|&byte| byte == b']');
                let end = length.map_or(bytes.len(), |length| at + length);
                let inside = &name[at + 1..end];
                if end < bytes.len() && (is_decimal(inside) || inside == "*") {
                    found.push((at, end + 1));
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_one_name_are_one() {
        for (name, lasting) in [
            ("mutex first used in serve(), #2", "mutex first used in serve()"),
            ("queue.SimpleQueue at 0x7f562f0ea6b0", "queue.SimpleQueue"),
            ("futex at 0x10, #1", "futex"),
            ("mutex from open() at bank.c:12, #3", "mutex from open()"),
            ("mutex from open() at bank.c", "mutex from open() at bank.c"),
            ("cache.lock", "cache.lock"),
            ("cache_lock[17]", "cache_lock[*]"),
            ("grid[3][4].lock in libfoo.so", "grid[*][*].lock in libfoo.so"),
            ("(anonymous namespace)::locks[3]", "(anonymous namespace)::locks[*]"),
            ("fill<int [4]>(int (&) [16])::lock", "fill<int [4]>(int (&) [16])::lock"),
            ("rooms[all], #all", "rooms[all], #all"),
            ("meet at 0xroads", "meet at 0xroads"),
            ("server+0x18", "server+0x18"),
            ("[", "["),
            ("", ""),
        ] {
            assert_eq!(lasting_family(name), lasting);
            assert_eq!(lasting_family(lasting), lasting, "a family is its own");
        }
        assert_eq!(family("mutex from open() at bank.c:12, #3"), "mutex from open() at bank.c:12");
    }

    #[test]
    fn what_tells_locks_apart_is_what_the_family_lacks() {
        for (name, told) in [
            ("cache_lock[17]", Some("[17]")),
            ("grid[3][4].lock", Some("[3][4]")),
            ("mutex from open() at bank.c:12, #3", Some("#3")),
            ("queue.SimpleQueue at 0x7f56", Some("0x7f56")),
            ("cache_lock[*]", None),
            ("cache", None),
        ] {
            assert_eq!(distinction(name).as_deref(), told, "{name}");
        }
    }
}
