//! What was reported, without what differs from run to run.

/// A thread in a report.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// What is said after "waits ", less the time.
    pub(crate) waits: String,
    pub(crate) waits_at: Vec<String>,
    /// What is said after "holds ".
    pub(crate) holds: String,
    pub(crate) holds_at: Vec<String>,
}

/// Returns the reports whose first lines begin with `lockstead: KIND:`.
pub(crate) fn cycles(stderr: &str, kind: &str) -> Vec<Vec<Member>> {
    let head = format!("lockstead: {kind}: ");
    let mut lines = stderr.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if !line.starts_with(&head) {
            continue;
        }
        let mut members: Vec<Member> = Vec::new();
        let mut holds = false;
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            let text = line.trim_start();
            match line.len() - text.len() {
                2 => {
                    let name = text.split('"').nth(1).unwrap_or(text).to_owned();
                    members.push(Member { name, ..Member::default() });
                    continue;
                }
                4 | 6 => {}
                _ => panic!("an unexpected line: {line}"),
            }
            let member = members.last_mut().expect("a thread comes first");
            if let Some(what) = text.strip_prefix("waits ").filter(|_| line.starts_with("    w")) {
                holds = false;
                let (what, since) = what.split_once(", since ").expect("how long");
                let timed = if since.contains("time-out") { ", timed" } else { "" };
                member.waits = format!("{what}{timed}");
            } else if let Some(what) =
                line.strip_prefix("    holds ").or_else(|| line.strip_prefix("    likely holds "))
            {
                holds = true;
                // Of a lock that nobody saw acquired the next line says what shows it.
                member.holds = what.strip_suffix(", acquired at:").unwrap_or(what).into();
            } else {
                let sites = if holds { &mut member.holds_at } else { &mut member.waits_at };
                sites.push(text.to_owned());
            }
        }
        found.push(members);
    }
    found
}

/// Returns the only report of this kind; none of the other.
pub(crate) fn only(stderr: &str, kind: &str) -> Vec<Member> {
    let other = if kind.starts_with("DEADLOCK") { "CYCLE" } else { "DEADLOCK" };
    assert_eq!(cycles(stderr, other).len(), 0, "{stderr}");
    let mut found = cycles(stderr, kind);
    assert_eq!(found.len(), 1, "{stderr}");
    found.remove(0)
}

/// Returns the reports of waits that last, a text each, with `#` for ids and times.
pub(crate) fn blocked(stderr: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in stderr.lines() {
        if line.starts_with("lockstead: BLOCKED: ") {
            found.push(String::new());
        }
        if let Some(last) = found.last_mut() {
            assert!(last.is_empty() || line.starts_with(' '), "an unexpected line: {line}");
            *last += &format!("{}\n", numberless(line));
        }
    }
    found
}

/// Returns a line with `#` for each number of a process or thread, and for each time.
fn numberless(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = line.split(' ');
    while let Some(word) = rest.next() {
        let before = words.last().map_or("", String::as_str);
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let end = match before {
            "(pid" | "(tid" if is_number => word,
            // A number and its unit.
            "for" | "since" if is_number => rest.next().unwrap_or_default(),
            _ => {
                words.push(word.to_owned());
                continue;
            }
        };
        words.push(format!("#{}", end.trim_start_matches(|c: char| c.is_ascii_alphanumeric())));
    }
    words.join(" ")
}
