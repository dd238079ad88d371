//! What a run reported, and whether that is what was expected.

use super::expected::Expected;

/// Lines that the report of an inversion of two locks may have.
const MOST_LINES: usize = 40;

/// Returns the findings in what was printed: the first line less `lockstead: `, and what stands
/// indented below it.
pub(crate) fn findings(stderr: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in stderr.lines() {
        let head = line.strip_prefix("lockstead: ").filter(|head| {
            ["DEADLOCK", "RULE", "POTENTIAL", "ORDER"]
                .iter()
                .any(|level| head.strip_prefix(level).is_some_and(|rest| rest.starts_with(':')))
        });
        if let Some(head) = head {
            found.push((head, Vec::new()));
            inside = true;
        } else if inside && line.starts_with("  ") {
            found.last_mut().expect("a head came first").1.push(line);
        } else {
            inside = false;
        }
    }
    found
}

/// Tells whether a first line is the one expected. That of a deadlock goes on with the
/// program.
fn is_headed(head: &str, expected: &str) -> bool {
    match head.strip_prefix(expected) {
        Some("") => true,
        Some(rest) => expected.starts_with("DEADLOCK") && rest.starts_with(", in "),
        None => false,
    }
}

/// Returns what is wrong with the findings, a line each.
pub(crate) fn complaints(stderr: &str, expected: &[&Expected]) -> Vec<String> {
    let mut found = findings(stderr);
    let mut wrong = Vec::new();
    for wanted in expected {
        let lacking = |(_, body): &(&str, Vec<&str>)| -> Vec<String> {
            let body = body.join("\n");
            let has = wanted.has.iter().filter(|text| !body.contains(&**text));
            let lacks = wanted.lacks.iter().filter(|text| body.contains(&**text));
            has.map(|text| format!("lacks {text:?}"))
                .chain(lacks.map(|text| format!("has {text:?}")))
                .collect()
        };
        let headed: Vec<usize> =
            (0..found.len()).filter(|&at| is_headed(found[at].0, &wanted.head)).collect();
        let best = headed.into_iter().min_by_key(|&at| lacking(&found[at]).len());
        let Some(best) = best else {
            wrong.push(format!("not reported: {}", wanted.head));
            continue;
        };
        let best = found.remove(best);
        wrong.extend(lacking(&best).into_iter().map(|what| format!("{}: {what}", wanted.head)));
        let lines = best.1.len() + 1;
        if wanted.head.ends_with("inversion of 2 locks") && lines > MOST_LINES {
            wrong.push(format!("{}: {lines} lines", wanted.head));
        }
    }
    wrong.extend(found.iter().map(|(head, _)| format!("not expected: {head}")));
    wrong
}

#[test]
fn complaints_are_made() {
    let stderr = "lockstead: RULE: recursion\n  has a (mutex)\nlockstead: 1 finding\n\
                  lockstead: DEADLOCK: 1 thread waits for itself, in it (pid 1)\n  waits\n";
    let expected = |head: &str, has: &str, lacks: &str| Expected {
        head: head.into(),
        has: vec![has.into()],
        lacks: vec![lacks.into()],
    };
    let [rule, dead] = [
        expected("RULE: recursion", "a (mutex)", "b"),
        expected("DEADLOCK: 1 thread waits for itself", "w", "y"),
    ];
    assert_eq!(complaints(stderr, &[&rule, &dead]), [""; 0]);
    assert_eq!(complaints(stderr, &[&dead]), ["not expected: RULE: recursion"]);
    let other = expected("RULE: recursion", "b (mutex)", "a (");
    let wrong = complaints(stderr, &[&other, &dead]);
    assert_eq!(wrong, ["RULE: recursion: lacks \"b (mutex)\"", "RULE: recursion: has \"a (\""]);
    assert_eq!(complaints("", &[&rule]), ["not reported: RULE: recursion"]);
}
