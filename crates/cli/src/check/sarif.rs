//! Findings in SARIF 2.1.0, the format of code hosts and editors.

use super::artifacts::Artifacts;
use super::recorded::RecordedFinding;
use crate::finding_text::{called, limit};
use lockstead_inspect::check::model::{HoldMode, Level};
use lockstead_inspect::stack::{Frame, Stack};
use lockstead_inspect::symbols::program_frames;
use lockstead_render::failure::Failure;
use lockstead_render::files;
use lockstead_rules::{By, Rule};
use serde::Serialize;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const VERSION: &str = "2.1.0";
/// Names the fingerprint by what it is made of.
const CAUSE: &str = "lockstead/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifOutcome {
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

/// Writes findings to a file.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(file: &Path, found: &[RecordedFinding]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&log(found)).map_err(io::Error::from);
    text.and_then(|text| files::write(file, &(text + "\n"))).map_err(|error| {
        Failure::Run(format!("cannot write the report to {}: {error}", file.display()))
    })
}

/// Returns all findings of the checks as a SARIF log.
fn log<'a>(findings: impl IntoIterator<Item = &'a RecordedFinding>) -> Value {
    let artifacts = Artifacts::here();
    let rules: Vec<Value> = Rule::found_by(By::RUN).map(described).collect();
    let results: Vec<SarifOutcome> =
        findings.into_iter().filter_map(|found| outcome(found, &artifacts)).collect();
    json!({
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [{
            "tool": { "driver": {
                "name": "lockstead",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "originalUriBaseIds": artifacts.bases(),
            "results": results,
        }],
    })
}

/// Returns what SARIF calls a level.
fn severity(level: Level) -> &'static str {
    match level {
        Level::Order => "note",
        Level::Potential => "warning",
        Level::Rule | Level::Deadlock => "error",
    }
}

fn described(rule: Rule) -> Value {
    let (meaning, remedy) = (rule.meaning(), rule.remedy());
    json!({
        "id": rule.id(),
        "shortDescription": { "text": rule.phrase() },
        "fullDescription": { "text": meaning },
        "help": {
            "text": format!("{meaning} {remedy}"),
            "markdown": format!("{meaning}\n\n**What to do:** {remedy}"),
        },
        "defaultConfiguration": { "level": severity(rule.level()) },
    })
}

fn outcome(found: &RecordedFinding, artifacts: &Artifacts) -> Option<SarifOutcome> {
    let details = &found.details;
    let level = details.level?;
    let id = details.rule.clone()?;
    let places = places(found);
    let location = |(text, stack): &(String, &Stack)| {
        let frame = *program_frames(stack).first()?;
        Some(place(frame, Some(text), artifacts))
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
        let place = |frame| json!({ "location": place(frame, None, artifacts) });
        let frames = frames.into_iter().map(place);
        json!({ "message": { "text": text }, "frames": frames.collect::<Vec<_>>() })
    });
    let suppressed = details.suppressed.iter();
    Some(SarifOutcome {
        rule_index: Rule::found_by(By::RUN).position(|rule| rule.id() == id)?,
        rule_id: id,
        level: severity(level),
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
        properties: json!({ "level": level.word(), "pid": found.pid }),
    })
}

/// Returns the stacks of a finding, each with what happened there; that first which a reader has to
/// see first.
fn places(found: &RecordedFinding) -> Vec<(String, &Stack)> {
    let mut places = Vec::new();
    if let Some(order) = &found.details.order {
        for step in &order.steps {
            let who = called(&step.thread);
            let wants = if step.asks_how == HoldMode::Write { "asks for" } else { "asks to read" };
            let asks = format!("{who} {wants} {}{}", step.asks.name, limit(step.timed));
            places.extend(step.asked.as_ref().map(|stack| (asks, stack)));
            let holds = format!("{who} acquired {}", step.holds.name);
            places.extend(step.acquired.as_ref().map(|stack| (holds, stack)));
        }
    }
    if let Some(violation) = &found.details.violation {
        let who = called(&violation.thread);
        for (text, stack) in [
            (format!("{who}: {}", violation.lock.name), &violation.stack),
            (format!("{who} acquired {}", violation.lock.name), &violation.acquired),
            (format!("before: {}", violation.lock.name), &violation.earlier),
        ] {
            places.extend(stack.as_ref().map(|stack| (text, stack)));
        }
    }
    for member in &found.threads {
        let who = called(&member.thread);
        for (what, part) in [("waits", &member.waits), ("acquired what it holds", &member.holds)] {
            let Some(part) = part else { continue };
            let text = format!("{who} {what}{}", limit(part.timed));
            places.extend(part.stack.as_ref().map(|stack| (text, stack)));
        }
    }
    places
}

/// Returns a place in a file; in a program without lines, the file of the code.
fn place(frame: &Frame, text: Option<&str>, artifacts: &Artifacts) -> Value {
    let function = frame.function.clone().unwrap_or_else(|| frame.site());
    let mut location = json!({
        "logicalLocations": [{ "fullyQualifiedName": function, "kind": "function" }],
    });
    if let Some(file) = frame.file.as_ref().or(frame.module.as_ref()) {
        let mut physical = json!({ "artifactLocation": artifacts.location(file) });
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

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_inspect::check::model::{
        CycleKind, Details, LockIdentity, LockOrder, OrderStep, ThreadIdentity,
    };
    use lockstead_inspect::stack::StackEnd;

    fn step(holds: &str, asks: &str, asks_how: HoldMode, timed: bool) -> OrderStep {
        let lock = |name: &str| LockIdentity { name: name.into(), ..LockIdentity::default() };
        let stack = || Some(Stack { frames: Vec::new(), end: StackEnd::Bottom });
        OrderStep {
            thread: ThreadIdentity { tid: 7, name: Some("worker".into()) },
            holds: lock(holds),
            holds_how: HoldMode::Write,
            tried: false,
            acquired: stack(),
            asks: lock(asks),
            asks_how,
            timed,
            asked: stack(),
            gates: Vec::new(),
            alone: false,
        }
    }

    #[test]
    fn a_request_says_its_deadline_and_that_it_reads() {
        let order = LockOrder {
            cycle: CycleKind::Locks,
            signal: None,
            handler: None,
            excuse: None,
            gate: None,
            steps: vec![
                step("a", "b", HoldMode::Write, true),
                step("b", "a", HoldMode::Read, false),
            ],
        };
        let details = Details {
            level: Some(Level::Potential),
            rule: Some(Rule::LockOrderInversion.id().into()),
            order: Some(order),
            ..Details::default()
        };
        let log = log(&[RecordedFinding { details, ..RecordedFinding::default() }]);
        let stacks = log["runs"][0]["results"][0]["stacks"].as_array().expect("stacks");
        let texts: Vec<&str> =
            stacks.iter().filter_map(|stack| stack["message"]["text"].as_str()).collect();
        let who = "thread \"worker\" (tid 7)";
        let wanted = ["asks for b, until a deadline", "acquired a", "asks to read a", "acquired b"];
        assert_eq!(texts, wanted.map(|what| format!("{who} {what}")));
    }
}
