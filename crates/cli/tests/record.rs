//! `lockstead run --record` and `lockstead export`: what happened is in the file, and what is not is
//! counted.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::common::{Outcome, finish, lockstead, run, succeed, text};
use crate::programs::{line, program};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A run that was recorded, and its report.
pub(crate) struct Recorded {
    pub(crate) folder: TempDir,
    outcome: Outcome,
    pub(crate) report: Value,
}

impl Recorded {
    /// Records `recorded ARGUMENTS` with these flags; `None`, with a message, without a compiler.
    pub(crate) fn new(flags: &[&str], arguments: &[&str]) -> Option<Recorded> {
        let program = program("recorded.c")?;
        let folder = tempfile::tempdir().expect("a folder");
        let [events, json] = ["events", "report.json"].map(|name| folder.path().join(name));
        let options = ["run", "--record", text(&events), "--json", text(&json), "--top", "100"];
        let command = [&options[..], flags, &["--no-report", "--", text(&program)], arguments];
        let outcome = finish(lockstead(&command.concat()).spawn().expect("the command starts"));
        let report = std::fs::read_to_string(&json).expect("the report was written");
        let report = serde_json::from_str(&report).expect("JSON");
        Some(Recorded { folder, outcome, report })
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("events")
    }

    /// Returns the numbers of events that were recorded, lost, and cut off, as the command says them.
    pub(crate) fn said(&self) -> [u64; 3] {
        let stderr = &self.outcome.stderr;
        let line = stderr.lines().find(|line| line.starts_with("lockstead: recorded "));
        let line = line.unwrap_or_else(|| panic!("{stderr}"));
        let after = |words: &str| {
            let rest = line.split(words).nth(1)?;
            let number = rest.split(|c: char| !c.is_ascii_digit() && c != ',').next()?;
            number.replace(',', "").parse().ok()
        };
        let cut = if line.contains("had no room") { after("; ") } else { Some(0) };
        [after("recorded "), after("lost "), cut].map(|number| number.expect("a number"))
    }

    pub(crate) fn export(&self, flags: &[&str]) -> Outcome {
        let file = self.file();
        succeed(&[&["export", text(&file)], flags].concat())
    }

    pub(crate) fn trace(&self) -> Trace {
        let exported = self.export(&[]);
        let trace: Value = serde_json::from_str(&exported.stdout).expect("JSON");
        let trace = Trace(trace["traceEvents"].as_array().expect("a list").clone());
        trace.hold();
        trace
    }

    /// Returns what the report says of a lock or, of a thing that is waited for otherwise, of that.
    pub(crate) fn lock(&self, name: &str) -> &Value {
        let processes = self.report["processes"].as_array().expect("processes");
        let locks = processes.iter().flat_map(|process| {
            ["locks", "idle"].iter().flat_map(|list| process[*list].as_array().expect("a list"))
        });
        let mut found = locks.filter(|lock| lock["name"] == name);
        found.next().unwrap_or_else(|| panic!("no {name} in {:#}", self.report))
    }
}

/// Returns the nanoseconds of the folded stacks that end in `last`.
fn sum(folded: &str, last: &str) -> u64 {
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let those = lines.filter(|(stack, _)| stack.ends_with(last));
    those.map(|(_, weight)| weight.parse::<u64>().expect("a number")).sum()
}

/// The events of a trace.
pub(crate) struct Trace(Vec<Value>);

/// Returns a time of a trace in nanoseconds.
pub(crate) fn ns(time: &Value) -> u64 {
    (time.as_f64().expect("a time") * 1e3).round() as u64
}

fn track(event: &Value) -> (u64, u64) {
    (event["pid"].as_u64().expect("a process"), event["tid"].as_u64().expect("a thread"))
}

fn span(event: &Value) -> (u64, u64) {
    (ns(&event["ts"]), ns(&event["ts"]) + ns(&event["dur"]))
}

/// Returns the place of the slice that lies around each of a track's, in their order.
fn outer(slices: &[&Value]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut outer = Vec::with_capacity(slices.len());
    for (place, slice) in slices.iter().enumerate() {
        while open.pop_if(|last| span(slices[*last]).1 <= span(slice).0).is_some() {}
        outer.push(open.last().copied());
        open.push(place);
    }
    outer
}

impl Trace {
    pub(crate) fn of<'t>(&'t self, phase: &'t str) -> impl Iterator<Item = &'t Value> {
        self.0.iter().filter(move |event| event["ph"] == phase)
    }

    pub(crate) fn slices<'t>(&'t self, name: &'t str) -> Vec<&'t Value> {
        self.of("X").filter(|slice| slice["name"] == name).collect()
    }

    fn name_of(&self, track: (u64, u64)) -> &str {
        let mut names = self.of("M").filter(|event| event["name"] == "thread_name");
        let found = names.find(|event| self::track(event) == track);
        found.and_then(|event| event["args"]["name"].as_str()).expect("a name")
    }

    /// Returns the slices of each track in their order, what lies around others first.
    fn tracks(&self) -> BTreeMap<(u64, u64), Vec<&Value>> {
        let mut tracks: BTreeMap<_, Vec<&Value>> = BTreeMap::new();
        for slice in self.of("X") {
            tracks.entry(track(slice)).or_default().push(slice);
        }
        let order = |slice: &&Value| (span(slice).0, std::cmp::Reverse(span(slice).1));
        tracks.values_mut().for_each(|slices| slices.sort_by_key(order));
        tracks
    }

    /// Returns the arrows: the slices from which and to which they lead.
    pub(crate) fn arrows(&self) -> Vec<(&Value, &Value)> {
        let tracks = self.tracks();
        // The slice that lies around each one, so that a look does not pass all that are over.
        let outer: BTreeMap<_, Vec<Option<usize>>> =
            tracks.iter().map(|(track, slices)| (*track, outer(slices))).collect();
        let around = |end: &Value| {
            let (at, slices, outer) = (ns(&end["ts"]), &tracks[&track(end)], &outer[&track(end)]);
            let last = slices.partition_point(|slice| span(slice).0 <= at).checked_sub(1);
            let mut those = std::iter::successors(last, |&inner| outer[inner]);
            let found = those.find(|&inner| at <= span(slices[inner]).1);
            let mut found = found.unwrap_or_else(|| panic!("nothing at {end}"));
            if slices[found]["cat"] == "arrow" {
                found = outer[found].unwrap_or_else(|| panic!("nothing around {end}"));
            }
            slices[found]
        };
        let ends: HashMap<u64, &Value> =
            self.of("f").map(|end| (end["id"].as_u64().expect("an id"), end)).collect();
        let starts = self.of("s").map(|start| {
            let end = ends[&start["id"].as_u64().expect("an id")];
            (around(start), around(end))
        });
        starts.collect()
    }

    /// Checks what holds of every trace.
    fn hold(&self) {
        for (track, slices) in self.tracks() {
            self.name_of(track);
            let mut open: Vec<u64> = Vec::new();
            for slice in slices {
                let (began, ended) = span(slice);
                open.retain(|&end| end > began);
                assert!(open.iter().all(|&end| end >= ended), "{track:?}: {slice}");
                open.push(ended);
            }
        }
        let ids = |phase| {
            let mut ids: Vec<u64> =
                self.of(phase).map(|end| end["id"].as_u64().expect("an id")).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids("s"), ids("f"), "each arrow has two ends");
        assert!(ids("s").windows(2).all(|two| two[0] != two[1]), "and a number of its own");
        for (from, to) in self.arrows() {
            assert_eq!(to["cat"], "wait", "{to}");
            assert!(span(from).0 <= span(to).1, "{from} wakes {to}");
        }
    }
}

#[test]
fn a_recording_has_what_happened() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    assert_eq!(recorded.outcome.status, 0, "{:?}", recorded.outcome);
    let [events, lost, cut] = recorded.said();
    assert!(events >= 10 && lost == 0 && cut == 0, "{:?}", recorded.outcome);
    let trace = recorded.trace();
    let waits = trace.slices("wait: wanted");
    assert_eq!(waits.len(), 3);
    for wait in &waits {
        assert_eq!(trace.name_of(track(wait)), "waiter");
        assert_eq!(
            (&wait["args"]["ended"], &wait["args"]["way"]),
            (&"granted".into(), &"mutex".into())
        );
        let stack = wait["args"]["stack"].as_array().expect("a stack");
        assert!(stack[0].as_str().is_some_and(|frame| frame.starts_with("enter at ")), "{wait}");
        let site = line("recorded.c", "waits");
        assert!(stack[0].as_str().is_some_and(|frame| frame.ends_with(&site)), "{wait}");
    }
    // Each waits for the one before, the first one for the first thread.
    let holds = trace.slices("hold: wanted");
    let first = holds.iter().find(|hold| trace.name_of(track(hold)) == "recorded").expect("a hold");
    assert_eq!(first["args"]["others waited at its end"], true);
    let place = first["args"]["stack"][0].as_str().expect("a frame");
    assert!(place.ends_with(&line("recorded.c", "holds")), "{place}");
    let arrows = trace.arrows();
    let into =
        |name: &str| -> Vec<_> { arrows.iter().filter(|(_, to)| to["name"] == name).collect() };
    let wanted = into("wait: wanted");
    assert_eq!(wanted.len(), 3, "{arrows:#?}");
    assert!(wanted.iter().all(|(from, _)| from["name"] == "hold: wanted"), "{wanted:#?}");
    assert!(wanted.iter().any(|(from, _)| *from == *first), "{wanted:#?}");
    // And by calls.
    for (wait, from) in [("wait: ready", "wakes: ready"), ("wait: units", "wakes: units")] {
        let into = into(wait);
        assert_eq!(into.len(), 1, "{wait}: {arrows:#?}");
        assert_eq!(into[0].0["name"], from);
        assert_eq!(trace.name_of(track(into[0].0)), "recorded");
    }
    assert_eq!(into("wait: meeting").len(), 1, "{arrows:#?}");
    let joins =
        into("waits for the end of waiter").len() + into("waits for the end of sleeper").len();
    assert!(joins <= 4, "{arrows:#?}");
    // The lives of threads lie around all that they did.
    let lives: Vec<_> = trace.of("X").filter(|slice| slice["cat"] == "thread").collect();
    assert_eq!(lives.len(), 5, "{lives:#?}");
}

#[test]
fn stacks_add_up_to_what_the_report_says() {
    let Some(recorded) = Recorded::new(&[], &[]) else { return };
    assert_eq!(recorded.said()[1..], [0, 0]);
    let [waiter, holder, idle] = [
        &["--format", "folded"][..],
        &["--format", "folded", "--by", "holder"],
        &["--format", "folded", "--idle"],
    ]
    .map(|flags| recorded.export(flags).stdout);
    let total = |name: &str| recorded.lock(name)["wait"]["total_ns"].as_u64().expect("a time");
    assert_eq!(sum(&waiter, "[waits for wanted]"), total("wanted"), "{waiter}");
    assert_eq!(sum(&holder, "[holds wanted]"), total("wanted"), "{holder}");
    assert_eq!(sum(&waiter, "[waits for ready]"), 0, "no lock is waited for there");
    for name in ["ready", "units", "meeting", "wanted"] {
        assert_eq!(sum(&idle, &format!("[waits for {name}]")), total(name), "{idle}");
    }
    // All three waited while the first thread held the lock, and so it says.
    let of_holder = holder.lines().find(|line| line.contains(";hold;"));
    let of_holder = of_holder.unwrap_or_else(|| panic!("{holder}"));
    let share: u64 = of_holder.rsplit(' ').next().expect("a number").parse().expect("a number");
    let trace = recorded.trace();
    let first = trace.slices("hold: wanted").into_iter().map(span).min().expect("a hold");
    let both = |(began, ended): (u64, u64)| ended.min(first.1).saturating_sub(began.max(first.0));
    let meanwhile: u64 =
        trace.slices("wait: wanted").into_iter().map(|wait| both(span(wait))).sum();
    // The trace has its times in µs with three digits, so that each may be a nanosecond off.
    assert!(share.abs_diff(meanwhile) <= 12 && meanwhile != 0, "{meanwhile}: {holder}");
    // The same for speedscope.
    for (by, all) in [("waiter", &waiter), ("holder", &holder)] {
        let exported = recorded.export(&["--format", "speedscope", "--by", by]).stdout;
        let file: Value = serde_json::from_str(&exported).expect("JSON");
        speedscope(&file);
        let profiles = file["profiles"].as_array().expect("profiles");
        let ends = profiles.iter().map(|one| one["endValue"].as_u64().expect("a number"));
        assert_eq!(ends.sum::<u64>(), sum(all, ""), "{by}");
    }
}

/// Checks what the schema of speedscope asks for.
fn speedscope(file: &Value) {
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    assert!(frames.iter().all(|frame| frame.get("line").is_none_or(Value::is_u64)));
    for profile in file["profiles"].as_array().expect("profiles") {
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&"sampled".into(), &"nanoseconds".into())
        );
        assert!(profile["name"].is_string() && profile["startValue"] == 0);
        let samples = profile["samples"].as_array().expect("samples");
        let weights = profile["weights"].as_array().expect("weights");
        assert_eq!(samples.len(), weights.len());
        let places = samples.iter().flat_map(|sample| sample.as_array().expect("a stack"));
        for place in places {
            assert!((place.as_u64().expect("a place") as usize) < frames.len());
        }
    }
}

#[test]
fn a_storm_is_recorded_but_for_what_is_said_to_be_lost() {
    let Some(recorded) = Recorded::new(&[], &["storm", "5000"]) else { return };
    let [events, lost, cut] = recorded.said();
    assert_eq!(cut, 0);
    let contended = recorded.lock("hot")["contended"].as_u64().expect("a number");
    let trace = recorded.trace();
    let count =
        |category: &str| trace.of("X").filter(|slice| slice["cat"] == category).count() as u64;
    let [waits, holds, wakes] = ["wait", "hold", "wake"].map(count);
    assert_eq!(waits + holds + wakes, events);
    assert!(waits + lost >= contended, "{waits} and {lost} lost of {contended}");
    if lost == 0 {
        assert_eq!(trace.slices("wait: hot").len() as u64, contended);
        let folded = recorded.export(&["--format", "folded", "--by", "holder"]).stdout;
        assert_eq!(sum(&folded, "[holds hot]"), recorded.lock("hot")["wait"]["total_ns"]);
    }
}

#[test]
fn a_file_that_is_full_counts_what_has_no_room() {
    let Some(recorded) = Recorded::new(&["--record-limit", "64K"], &["storm", "5000"]) else {
        return;
    };
    let [events, lost, cut] = recorded.said();
    let length = std::fs::metadata(recorded.file()).expect("a file").len();
    assert!(length < 128 << 10, "{length} bytes");
    let exported = recorded.export(&["--format", "folded"]);
    let note = format!("lacks {} events: {lost} were lost, {cut} had no room", lost + cut);
    if lost + cut != 0 {
        assert!(exported.stderr.contains(&note), "{} {events}", exported.stderr);
    }
}

#[test]
fn children_and_processes_that_are_killed_are_recorded() {
    let Some(recorded) = Recorded::new(&[], &["forks"]) else { return };
    let trace = recorded.trace();
    let pids = |name| {
        let mut pids: Vec<u64> = trace.slices(name).iter().map(|slice| track(slice).0).collect();
        pids.dedup();
        pids.len()
    };
    assert_eq!((trace.slices("wait: wanted").len(), pids("wait: wanted")), (4, 2));
    let Some(killed) = Recorded::new(&[], &["killed"]) else { return };
    let trace = killed.trace();
    let waits = trace.slices("wait: wanted");
    assert_eq!(waits.len(), 1, "{:?}", killed.outcome);
    assert_eq!(waits[0]["args"]["ended"], "lasts");
    // So does the hold, which has the time.
    let holds = trace.slices("hold: wanted");
    let lasting = holds.iter().filter(|hold| hold["args"]["lasts"] == true).count();
    assert_eq!((holds.len(), lasting), (1, 1), "{holds:#?}");
    assert!(trace.arrows().iter().all(|(from, _)| from["cat"] != "hold"), "it has woken nobody");
    let place = holds[0]["args"]["stack"][0].as_str().expect("a frame");
    assert!(place.ends_with(&line("recorded.c", "holds_to_the_end")), "{place}");
    let folded = killed.export(&["--format", "folded", "--by", "holder"]).stdout;
    assert!(folded.contains(";killed;[holds wanted] "), "{folded}");
    assert!(!folded.contains("[nobody is known to have held it]"), "{folded}");
}

#[test]
fn who_ends_with_a_robust_mutex_has_held_it() {
    let Some(recorded) = Recorded::new(&[], &["robust"]) else { return };
    let trace = recorded.trace();
    let mut endings: Vec<_> =
        trace.slices("wait: mortal").iter().map(|wait| wait["args"]["ended"].clone()).collect();
    endings.sort_by_key(Value::to_string);
    assert_eq!(endings, ["granted", "refused"], "{:?}", recorded.outcome);
    let lock = recorded.lock("mortal");
    assert_eq!((&lock["wait"]["count"], &lock["acquisitions"]), (&2.into(), &2.into()), "{lock}");
    let holds = trace.slices("hold: mortal");
    let of_owner = holds.iter().find(|hold| trace.name_of(track(hold)) == "owner");
    let of_owner = of_owner.unwrap_or_else(|| panic!("{holds:#?}"));
    assert_eq!(of_owner["args"]["lasts"], false);
    let place = of_owner["args"]["stack"][0].as_str().expect("a frame");
    assert!(place.ends_with(&line("recorded.c", "dies")), "{place}");
    let arrows = trace.arrows();
    let from_owner = arrows.iter().filter(|(from, _)| from == of_owner).count();
    assert_eq!(from_owner, 1, "to who has it next: {arrows:#?}");
    let folded = recorded.export(&["--format", "folded", "--by", "holder"]).stdout;
    assert!(folded.contains(";owner;[holds mortal] "), "{folded}");
}

#[test]
fn a_process_that_is_killed_in_a_join_has_no_threads_but_its_own() {
    let Some(killed) = Recorded::new(&[], &["joins"]) else { return };
    let trace = killed.trace();
    let child = trace.slices("thread killer");
    let child = track(child.first().expect("the thread that kills")).0;
    let lives = trace.of("X").filter(|slice| slice["cat"] == "thread" && track(slice).0 == child);
    assert_eq!(lives.count(), 3, "the first one, and two more");
    let joins = trace.slices("waits for the end of waiter");
    assert_eq!(joins.len(), 1, "{:?}", killed.outcome);
    assert_eq!(joins[0]["args"]["ended"], "lasts");
}

#[test]
fn waits_that_a_handler_leaves_are_abandoned_and_nobody_waits_then() {
    let Some(recorded) = Recorded::new(&[], &["leaves"]) else { return };
    let trace = recorded.trace();
    let waits = trace.slices("wait: hot");
    assert_eq!(waits.len(), 2, "{:?}", recorded.outcome);
    assert!(waits.iter().all(|wait| wait["args"]["ended"] == "abandoned"), "{waits:#?}");
    assert!(trace.slices("hold: hot").is_empty(), "nobody waited when it ended");
}

#[test]
fn threads_leave_their_rings_to_others() {
    let Some(recorded) = Recorded::new(&[], &["limited"]) else { return };
    assert_eq!(recorded.said()[1..], [0, 0], "{:?}", recorded.outcome);
    assert_eq!(recorded.trace().slices("wait: wanted").len(), 40);
}

#[test]
fn what_finds_no_room_in_a_ring_is_counted() {
    let Some(recorded) = Recorded::new(&[], &["full", "40000"]) else { return };
    assert_eq!(recorded.said(), [32_768, 40_000 - 32_768, 0], "{:?}", recorded.outcome);
    assert_eq!(recorded.trace().slices("wait: wanted").len(), 32_768);
}

#[test]
fn locks_at_one_address_are_told_apart() {
    let Some(recorded) = Recorded::new(&[], &["lives"]) else { return };
    let trace = recorded.trace();
    let waits =
        trace.of("X").filter(|slice| slice["cat"] == "wait" && slice["args"]["way"] != "join");
    let kinds: Vec<(&str, &str)> = waits
        .map(|wait| ["way", "kind"].map(|key| wait["args"][key].as_str().unwrap_or("none")))
        .map(|[way, kind]| (way, kind))
        .collect();
    assert_eq!(kinds, [("mutex", "mutex"), ("read", "rwlock")], "{:?}", recorded.outcome);
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("text");
    std::fs::write(&file, "no recording").expect("written");
    for format in ["chrome", "folded", "speedscope", "pprof"] {
        let refused = run(&["export", text(&file), "--format", format]);
        assert_eq!((refused.status, &*refused.stdout), (1, ""), "{refused:?}");
        let why = format!("{} is no recording of `lockstead run --record FILE`", file.display());
        assert!(refused.stderr.contains(&why), "{refused:?}");
    }
    let itself = run(&["export", text(&file), "-o", text(&file)]);
    assert_eq!((itself.status, itself.stdout.as_str()), (2, ""), "{itself:?}");
    assert!(itself.stderr.contains("name another file with -o"), "{itself:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), "no recording", "it is left");
    let absent = run(&["export", text(&folder.path().join("absent"))]);
    assert_eq!(absent.status, 1);
    assert!(absent.stderr.contains("cannot read "), "{absent:?}");
    let nowhere = Path::new("/nowhere/events");
    let refused = run(&["run", "--record", text(nowhere), "--", "/bin/true"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("--record"), "{refused:?}");
    let attached = run(&["attach", "1", "--record", "events"]);
    assert_eq!(attached.status, 2, "{attached:?}");
    assert!(attached.stderr.contains("start it by `lockstead run --record"), "{attached:?}");
    let alone = run(&["run", "--record-limit", "1G", "--", "/bin/true"]);
    assert_eq!(alone.status, 2, "{alone:?}");
}
