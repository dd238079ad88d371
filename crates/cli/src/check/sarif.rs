//! Findings in SARIF 2.1.0, the format of code hosts and editors.

use super::recorded::Found;
use super::text::called;
use lockstead_inspect::check::model::Level;
use lockstead_inspect::check::rules;
use lockstead_inspect::stack::{Frame, Stack};
use lockstead_inspect::symbols::program_frames;
use serde::Serialize;
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const VERSION: &str = "2.1.0";
/// Names the fingerprint by what it is made of.
const CAUSE: &str = "lockstead/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Value,
    locations: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<Value>,
    #[serde(skip_serializing_if = "Value::is_null")]
    partial_fingerprints: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Value>,
    properties: Value,
}

/// All findings of the checks as a SARIF log.
pub(crate) fn log<'a>(findings: impl IntoIterator<Item = &'a Found>) -> Value {
    let slugs = rules::slugs();
    let described: Vec<Value> = slugs.iter().map(|slug| rule(slug)).collect();
    let results: Vec<Outcome> =
        findings.into_iter().filter_map(|found| outcome(found, &slugs)).collect();
    json!({
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [{
            "tool": { "driver": {
                "name": "lockstead",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": described,
            }},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn rule(slug: &str) -> Value {
    let (name, meaning, level) = match rules::from_slug(slug) {
        Some(rule) => (rules::phrase(rule).to_owned(), rules::meaning(rule), "error"),
        None if slug == rules::INVERSION => {
            ("lock order inversion".into(), rules::INVERSION_MEANING, "warning")
        }
        None => (slug.to_owned(), rules::DEADLOCK_MEANING, "error"),
    };
    json!({
        "id": slug,
        "shortDescription": { "text": name },
        "fullDescription": { "text": meaning },
        "defaultConfiguration": { "level": level },
    })
}

fn outcome(found: &Found, slugs: &[String]) -> Option<Outcome> {
    let details = &found.details;
    let level = details.level?;
    let slug = details.rule.clone()?;
    let places = places(found);
    let location = |(text, stack): &(String, &Stack)| {
        let frame = *program_frames(stack).first()?;
        Some(place(frame, Some(text)))
    };
    let mut locations = places.iter().filter_map(location);
    let first = locations.next();
    let related: Vec<Value> = locations
        .enumerate()
        .map(|(id, mut place)| {
            place["id"] = id.into();
            place
        })
        .collect();
    let stacks = places.iter().map(|(text, stack)| {
        let frames = program_frames(stack);
        let frames = frames.into_iter().map(|frame| json!({ "location": place(frame, None) }));
        json!({ "message": { "text": text }, "frames": frames.collect::<Vec<_>>() })
    });
    let suppressed = details.suppressed.iter();
    Some(Outcome {
        rule_index: slugs.iter().position(|known| *known == slug)?,
        rule_id: slug,
        level: match level {
            Level::Order => "note",
            Level::Potential => "warning",
            Level::Rule | Level::Deadlock => "error",
        },
        message: json!({ "text": found.text.trim_end() }),
        locations: first.into_iter().collect(),
        related_locations: related,
        stacks: stacks.collect(),
        partial_fingerprints: match &details.cause {
            Some(cause) => json!({ CAUSE: cause }),
            None => Value::Null,
        },
        suppressions: suppressed
            .map(|place| json!({ "kind": "external", "justification": place }))
            .collect(),
        properties: json!({ "level": level, "pid": found.pid }),
    })
}

/// The stacks of a finding, each with what happened there; that first which a
/// reader has to see first.
fn places(found: &Found) -> Vec<(String, &Stack)> {
    let mut places = Vec::new();
    if let Some(order) = &found.details.order {
        for step in &order.steps {
            let who = called(&step.thread);
            let asks = format!("{who} asks for {}", step.asks.name);
            places.extend(step.asked.as_ref().map(|stack| (asks, stack)));
            let holds = format!("{who} acquired {}", step.holds.name);
            places.extend(step.acquired.as_ref().map(|stack| (holds, stack)));
        }
    }
    if let Some(breach) = &found.details.breach {
        let who = called(&breach.thread);
        for (text, stack) in [
            (format!("{who}: {}", breach.lock.name), &breach.stack),
            (format!("{who} acquired {}", breach.lock.name), &breach.acquired),
            (format!("before: {}", breach.lock.name), &breach.earlier),
        ] {
            places.extend(stack.as_ref().map(|stack| (text, stack)));
        }
    }
    for member in &found.threads {
        let who = called(&member.thread);
        for (what, part) in [("waits", &member.waits), ("acquired what it holds", &member.holds)] {
            let stack = part.as_ref().and_then(|part| part.stack.as_ref());
            places.extend(stack.map(|stack| (format!("{who} {what}"), stack)));
        }
    }
    places
}

/// A place in a file; in a program without lines, the file of the code.
fn place(frame: &Frame, text: Option<&str>) -> Value {
    let function = frame.function.clone().unwrap_or_else(|| frame.site());
    let mut location = json!({
        "logicalLocations": [{ "fullyQualifiedName": function, "kind": "function" }],
    });
    if let Some(file) = frame.file.as_ref().or(frame.module.as_ref()) {
        let mut physical = json!({ "artifactLocation": { "uri": uri(file) } });
        if let Some(line) = frame.line.filter(|&line| line > 0 && frame.file.is_some()) {
            physical["region"] = json!({ "startLine": line });
        }
        location["physicalLocation"] = physical;
    }
    if let Some(text) = text {
        location["message"] = json!({ "text": text });
    }
    location
}

/// A path as a reference: below the folder that the command was called in, as
/// code hosts want it, where it lies there.
fn uri(path: &str) -> String {
    let below = std::env::current_dir().ok().and_then(|folder| {
        let rest = path.strip_prefix(folder.to_str()?)?;
        Some(rest.strip_prefix('/')?.to_owned())
    });
    let (scheme, path) = match &below {
        Some(below) => ("", below.as_str()),
        None if path.starts_with('/') => ("file://", path),
        None => ("", path),
    };
    let mut text = scheme.to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => {
                text.push(byte.into());
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}
