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

/// A place or a name that is longer has parameters of its types left out; [`brief`] says the number.
const LONG: usize = 100;

/// Makes a place in a program or the name of a lock safe to print, and short enough to be read: of
/// those that are long, the parameters of types become `…`, the innermost first, so many that the
/// rest has at most 100 characters, or all. What a function is called, its file and its line stay.
///
/// The type or the trait for which a function is implemented, `<Vec<T> as Iterator>::next`, is no
/// parameter. A name with an operator stays whole, since its brackets may be none.
#[must_use]
pub fn brief(text: &str) -> String {
    let text = clean(text);
    let mut short = text.clone();
    for depth in (1..=3).rev() {
        if short.chars().count() <= LONG {
            break;
        }
        short = without_parameters(&text, depth).unwrap_or(short);
    }
    short
}

/// Returns a name in which `…` stands for what is within so many angle brackets; `None` where they
/// do not match.
fn without_parameters(name: &str, depth: usize) -> Option<String> {
    if name.contains("operator") {
        return None;
    }
    // Of each open bracket, whether it begins parameters.
    let mut open: Vec<bool> = Vec::new();
    let mut short = String::new();
    let mut before = ' ';
    for c in name.chars() {
        let within = open.iter().filter(|&&parameters| parameters).count();
        match c {
            '<' => {
                let parameters = before.is_alphanumeric() || matches!(before, '_' | ':' | '}');
                if within < depth {
                    short.push(c);
                    if parameters && within + 1 == depth {
                        short.push('…');
                    }
                }
                open.push(parameters);
            }
            '>' if before != '-' => {
                open.pop()?;
                if open.iter().filter(|&&parameters| parameters).count() < depth {
                    short.push(c);
                }
            }
            _ if within < depth => short.push(c),
            _ => {}
        }
        before = c;
    }
    open.is_empty().then_some(short)
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
    fn long_places_lose_the_parameters_of_their_types() {
        let short = "<alloc::vec::Vec<u8> as app::Take<Vec<Vec<u8>>>>::take() at vec.rs:7";
        assert_eq!(brief(short), short);
        let install = "rayon_core::thread_pool::ThreadPool>::install<polars_core::Frame<u64>>";
        assert_eq!(
            brief(&format!("<rayon_core::registry::Registry>::in_worker_cold::<<{install}>+0xdd")),
            "<rayon_core::registry::Registry>::in_worker_cold::<…>+0xdd"
        );
        assert_eq!(
            brief(&format!(
                "<rayon::StackJob<<{install}> as rayon_core::job::Job>::execute() at a.rs:1"
            )),
            "<rayon::StackJob<…> as rayon_core::job::Job>::execute() at a.rs:1"
        );
        let list = "std::vector<std::unique_ptr<duckdb::Operator, std::default_delete<Operator> >, std::allocator<int> >";
        assert_eq!(
            brief(&format!("duckdb::Statistics::Propagate({list}&)+0x501")),
            "duckdb::Statistics::Propagate(std::vector<std::unique_ptr<…>, std::allocator<…> >&)+0x501"
        );
        for whole in
            ["bool operator< <int, char>(A<int> const&, B<char> const&)", "f<(1<2), fn() -> u8"]
        {
            let long = format!("{whole}{}", "x".repeat(LONG));
            assert_eq!(brief(&long), long, "its brackets do not match");
        }
        let arrow = format!("run::<fn(A<u8>) -> B, {}>()", "C".repeat(LONG));
        assert_eq!(brief(&arrow), "run::<…>()");
    }

    #[test]
    fn shares_never_round_to_nothing() {
        let shares = [0.0, 0.01, 12.34, 99.96, f64::NAN].map(percent);
        assert_eq!([99.9, 100.0, 378.2].map(load), ["99.9%", "100%", "378%"]);
        assert_eq!(shares, ["0%", "<0.1%", "12.3%", "100%", "0%"]);
    }
}
