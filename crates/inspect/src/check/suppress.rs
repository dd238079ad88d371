//! Findings that somebody has looked at and does not want to see again.
//!
//! # Format
//! TOML: a `[[suppress]]` for each, with at least one of `rule`, `locks`, `at`, `within` and
//! `message`; all that are given have to fit. `reason` is for people. `*` stands
//! for any characters, `?` for one.
//!
//! ```toml
//! [[suppress]]
//! rule = "lock-order-inversion"
//! locks = ["accounts", "journal"]   # names or classes, each of some lock
//! at = ["transfer", "bank.c"]       # functions or files, each of some frame
//! within = ["bank", "libc.so.6"]     # files: each frame is in one of them
//! message = "* of 2 locks"          # a line of the report
//! reason = "both under the big lock of the caller"
//! ```

use super::model::Details;
use crate::stack::Frame;
use lockstead_rules::{By, Rule};
use serde::Deserialize;
use std::fmt::Write;
use std::ops::Range;
use toml::Spanned;
use wildmatch::WildMatch;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppress: Vec<Spanned<SuppressionEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuppressionEntry {
    rule: Option<Spanned<String>>,
    #[serde(default)]
    locks: Vec<String>,
    #[serde(default)]
    at: Vec<String>,
    #[serde(default)]
    within: Vec<String>,
    message: Option<String>,
    reason: Option<String>,
}

/// One block of a file of suppressions.
#[derive(Debug)]
struct Suppression {
    place: String,
    rule: Option<WildMatch>,
    locks: Vec<WildMatch>,
    at: Vec<WildMatch>,
    within: Vec<WildMatch>,
    message: Option<WildMatch>,
    reason: Option<String>,
    /// Whether it comes with the command.
    is_shipped: bool,
    used: u64,
}

/// All suppressions of a run.
#[derive(Debug, Default)]
pub struct Suppressions {
    all: Vec<Suppression>,
}

/// The library that the command puts below a program: its frames are nobody's.
const OWN: &str = "liblockstead_preload.so";

impl Suppressions {
    /// Adds those that come with the command, which need not fit anything; after all others,
    /// which come first.
    ///
    /// # Errors
    /// As [`add`](Suppressions::add).
    pub fn add_shipped(&mut self, file: &str, text: &str) -> Result<(), String> {
        let before = self.all.len();
        self.add(file, text)?;
        self.all[before..].iter_mut().for_each(|one| one.is_shipped = true);
        Ok(())
    }

    /// Returns how many findings the shipped ones fit so far, by their reasons.
    #[must_use]
    pub fn shipped(&self) -> Vec<(String, u64)> {
        let used = self.all.iter().filter(|one| one.is_shipped && one.used != 0);
        used.map(|one| (one.reason.clone().unwrap_or_default(), one.used)).collect()
    }

    /// Adds those of a file with this name and text.
    ///
    /// # Errors
    /// What is wrong, with file and line.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), String> {
        let line = |span: Range<usize>| {
            1 + text.bytes().take(span.start).filter(|&byte| byte == b'\n').count()
        };
        let parsed: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, line);
            format!("{file}:{line}: {}", error.message())
        })?;
        for entry in parsed.suppress {
            let place = format!("{file}:{}", line(entry.span()));
            let entry = entry.into_inner();
            let globs = |texts: &[String]| texts.iter().map(|text| WildMatch::new(text)).collect();
            if let Some(rule) = &entry.rule {
                let at = line(rule.span());
                is_rule(rule.get_ref()).map_err(|why| format!("{file}:{at}: {why}"))?;
            }
            let suppression = Suppression {
                rule: entry.rule.map(|rule| WildMatch::new(rule.get_ref())),
                locks: globs(&entry.locks),
                at: globs(&entry.at),
                within: globs(&entry.within),
                message: entry.message.map(|message| WildMatch::new(&message)),
                reason: entry.reason,
                place,
                is_shipped: false,
                used: 0,
            };
            if suppression.is_empty() {
                return Err(format!(
                    "{}: this would suppress everything: give a `rule`, `locks`, `at`, `within` or \
                     `message`",
                    suppression.place
                ));
            }
            self.all.push(suppression);
        }
        Ok(())
    }

    /// Returns where the first one stands that fits a finding, with this text.
    pub fn fit(&mut self, details: &Details, text: &str) -> Option<String> {
        let found = self.all.iter_mut().find(|suppression| suppression.fits(details, text))?;
        found.used += 1;
        Some(found.place.clone())
    }

    /// Returns where those stand that fitted nothing.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter(|one| one.used == 0 && !one.is_shipped).map(|one| one.place.as_str())
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Suppression {
    fn is_empty(&self) -> bool {
        self.rule.is_none()
            && [&self.locks, &self.at, &self.within].iter().all(|globs| globs.is_empty())
            && self.message.is_none()
    }

    fn fits(&self, details: &Details, text: &str) -> bool {
        let rule = details.rule.as_deref().unwrap_or_default();
        let locks = details.locks();
        let stacks = details.stacks();
        let frames = || stacks.iter().flat_map(|stack| &stack.frames);
        self.rule.as_ref().is_none_or(|glob| glob.matches(rule))
            && self.locks.iter().all(|glob| {
                let names = |text: &str| glob.matches(text);
                locks.iter().any(|lock| names(&lock.name) || names(&lock.class))
            })
            && self.at.iter().all(|glob| frames().any(|frame| is_at(glob, frame)))
            && (self.within.is_empty() || frames().all(|frame| is_within(&self.within, frame)))
            && self
                .message
                .as_ref()
                .is_none_or(|glob| text.lines().any(|line| glob.matches(line.trim())))
    }
}

/// Tells whether a frame is in one of these files, as the loader has them.
fn is_within(files: &[WildMatch], frame: &Frame) -> bool {
    frame.module.as_deref().is_some_and(|module| {
        let base = module.rsplit('/').next().unwrap_or_default();
        base == OWN || files.iter().any(|glob| glob.matches(module) || glob.matches(base))
    })
}

/// Tells whether a frame is in a function or a file: by name, by path, with the line.
fn is_at(glob: &WildMatch, frame: &Frame) -> bool {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let with_line = |file: &str| frame.line.map(|line| format!("{file}:{line}"));
    frame.function.as_deref().is_some_and(|function| glob.matches(function))
        || frame.file.iter().chain(&frame.module).any(|file| {
            let base = base(file);
            glob.matches(file) || glob.matches(&base)
        })
        || frame.file.iter().any(|file| {
            let texts = [with_line(file), with_line(&base(file))];
            texts.iter().flatten().any(|text| glob.matches(text))
        })
        || glob.matches(&frame.site())
}

fn is_rule(text: &str) -> Result<(), String> {
    if text == Rule::Deadlock.id() {
        return Err("a deadlock that has happened cannot be suppressed".into());
    }
    let glob = WildMatch::new(text);
    if Rule::found_by(By::RUN).any(|rule| glob.matches(rule.id())) {
        return Ok(());
    }
    Err(format!("there is no rule `{text}`; `lockstead check --list-rules` lists them"))
}

/// Returns the suppression of one finding, as it stands in a file.
#[must_use]
pub fn suggestion(details: &Details, title: &str) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let list = |texts: &[String]| {
        let quoted: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
        format!("[{}]", quoted.join(", "))
    };
    let mut text = String::new();
    let title: String = title.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let _ = writeln!(text, "# {title}");
    let _ = writeln!(text, "[[suppress]]");
    if let Some(rule) = &details.rule {
        let _ = writeln!(text, "rule = {}", quoted(rule));
    }
    let mut locks = Vec::new();
    for lock in details.locks() {
        // The class is that of every run; a number or an address is not.
        let name = if lock.class.is_empty() { &lock.name } else { &lock.class };
        if !name.is_empty() && !name.contains(" at 0x") && !locks.contains(name) {
            locks.push(name.clone());
        }
    }
    if !locks.is_empty() {
        let _ = writeln!(text, "locks = {}", list(&locks));
    }
    let mut places = Vec::new();
    for stack in details.stacks() {
        let function = crate::symbols::site(stack).and_then(|frame| frame.function.clone());
        places.extend(function.filter(|function| !places.contains(function)));
    }
    if !places.is_empty() {
        let _ = writeln!(text, "at = {}", list(&places));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::model::{LockIdentity, RuleViolation, ThreadIdentity};
    use crate::stack::{Stack, StackEnd};

    fn finding() -> Details {
        let frame = |function: &str, line| Frame {
            function: Some(function.into()),
            file: Some("/src/bank.c".into()),
            line: Some(line),
            module: Some("/opt/bank".into()),
            ..Frame::default()
        };
        let stack = |name: &str| Stack {
            frames: vec![frame(name, 18), frame("main", 40)],
            end: StackEnd::Bottom,
        };
        Details {
            rule: Some("recursion".into()),
            violation: Some(RuleViolation {
                thread: ThreadIdentity { tid: 7, name: None },
                lock: LockIdentity {
                    name: "mutex from cache_new() at cache.c:41, #17".into(),
                    class: "mutexes from cache_new() at cache.c:41".into(),
                    ..LockIdentity::default()
                },
                stack: Some(stack("transfer")),
                earlier: Some(stack("operator[](\"x\")")),
                ..RuleViolation::default()
            }),
            ..Details::default()
        }
    }

    fn fits(lines: &str) -> bool {
        let mut all = Suppressions::default();
        all.add("x.toml", &format!("[[suppress]]\n{lines}")).unwrap();
        let text = "lockstead: RULE: recursion\n  in bank (pid 1)\n";
        let fit = all.fit(&finding(), text);
        assert!(fit.as_deref().is_none_or(|place| place == "x.toml:1"), "{fit:?}");
        assert_eq!(all.unused().count(), usize::from(fit.is_none()));
        fit.is_some()
    }

    #[test]
    fn all_that_is_given_has_to_fit() {
        for good in [
            "rule = 'recursion'",
            "rule = 'rec*'",
            "locks = ['mutex* from cache_new() at *']",
            "locks = ['mutexes from cache_new() at cache.c:41']",
            "at = ['transfer']",
            "at = ['bank.c', 'main']",
            "at = ['/src/*']",
            "at = ['bank.c:40']",
            "at = ['bank']",
            "within = ['bank', 'libc.so.6']",
            "within = ['/opt/*']",
            "message = '*: recursion'",
            "message = 'in bank (pid ?)'",
            "rule = 'recursion'\nat = ['main']\nreason = 'why not'",
        ] {
            assert!(fits(good), "{good}");
        }
        for bad in [
            "rule = 'use-after-destruction'",
            "locks = ['cache_new']",
            "at = ['transfer', 'elsewhere']",
            "at = ['bank.c:41']",
            "message = 'recursion'",
            "within = ['libc.so.6']",
            "rule = 'recursion'\nat = ['x.c']",
        ] {
            assert!(!fits(bad), "{bad}");
        }
    }

    #[test]
    fn a_lock_in_a_variable_is_fitted_with_debug_information_and_without() {
        let fits = |glob: &str, name: &str| {
            let mut all = Suppressions::default();
            all.add("x.toml", &format!("[[suppress]]\nlocks = ['{glob}']")).unwrap();
            let mut finding = finding();
            let lock = LockIdentity { name: name.into(), ..LockIdentity::default() };
            finding.violation.as_mut().expect("it is one").lock = lock;
            all.fit(&finding, "").is_some()
        };
        for name in ["shards[3].mutex", "shards+0x80"] {
            assert!(fits("shards*", name), "{name}");
        }
        assert!(fits("shards[*].mutex", "shards[3].mutex"));
        assert!(!fits("shards[*].mutex", "shards[3].rwlock"));
        assert!(!fits("shards+0x80", "shards[3].mutex"));
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, words) in [
            ("[[suppress]]\nrule = 'recursoin'", &["f:2: ", "`recursoin`", "--list-rules"][..]),
            ("# nothing\n\n[[suppress]]\nreason = 'x'", &["f:3: ", "everything"]),
            ("[[suppress]]\nlock = 'x'", &["f:2: ", "lock", "locks"]),
            ("[[suppress]]\nlocks = 'x'", &["f:2: "]),
            ("[[suppress]\n", &["f:1: "]),
            ("[[supress]]\nat = ['x']", &["f:1: ", "supress"]),
            ("[[suppress]]\nrule = 'deadlock'", &["f:2: ", "has happened"]),
        ] {
            let error = Suppressions::default().add("f", text).expect_err(text);
            for word in words {
                assert!(error.contains(word), "{text}: {word}: {error}");
            }
        }
        let mut none = Suppressions::default();
        none.add("f", "# a comment only\n").unwrap();
        assert!(none.is_empty());
    }

    #[test]
    fn what_comes_with_the_command_is_counted_by_its_reason() {
        let mut all = Suppressions::default();
        all.add("own", "[[suppress]]\nrule = 'sleepy*'\n[[suppress]]\nat = ['x']").unwrap_err();
        all.add("own", "[[suppress]]\nat = ['elsewhere']").unwrap();
        let shipped = "[[suppress]]\nrule = 'recursion'\nreason = 'meant so'";
        all.add_shipped("shipped", shipped).unwrap();
        assert_eq!(all.shipped(), []);
        assert_eq!(all.fit(&finding(), "").as_deref(), Some("shipped:1"));
        assert_eq!(all.shipped(), [("meant so".to_owned(), 1)]);
        let mut none = Suppressions::default();
        none.add_shipped("shipped", shipped).unwrap();
        assert_eq!(none.unused().count(), 0, "it need not fit");
    }

    #[test]
    fn a_suggestion_suppresses_what_it_was_made_of() {
        let text = suggestion(&finding(), "lockstead: RULE: recursion\x1b");
        assert!(text.starts_with("# lockstead: RULE: recursion?\n"), "{text}");
        let mut all = Suppressions::default();
        all.add("f", &format!("# head\n{text}")).unwrap();
        assert_eq!(all.fit(&finding(), "").as_deref(), Some("f:3"), "{text}");
    }
}
