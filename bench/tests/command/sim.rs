//! `lockstead sim`: the same words for the same seed, and errors that help.

use serde_json::Value;
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstead-bench"))
        .arg("sim")
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_same_seed_prints_the_same() {
    let storm = ["--machine", "vm-2", "--lock", "lockstead", "--workload", "storm"];
    for begin in
        [vec!["run", "--json", "--seeds", "1"], vec!["trace", "--length", "5", "--accesses"]]
    {
        let with = |seed: &str| {
            let output = sim(&[&begin[..], &storm, &["--seed", seed]].concat());
            assert!(output.status.success(), "{}", text(&output.stderr));
            output.stdout
        };
        assert_eq!(with("3"), with("3"));
        assert_ne!(with("3"), with("4"));
    }
}

#[test]
fn a_replay_prints_rows_with_what_was_calibrated() {
    let replay = || sim(&["replay", "--quick", "--table", "vfs_2005", "--json"]);
    let output = replay();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout, replay().stdout);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 12);
    for row in rows {
        assert_eq!(row["table"], "vfs_2005");
        assert!(
            row["row"].is_string() && row["unit"].is_string() && row["calibrated"].is_boolean()
        );
        assert!(row["published"].as_f64() > Some(0.0) && row["simulated"].as_f64() > Some(0.0));
    }
    assert_eq!(rows.iter().filter(|row| row["calibrated"] == true).count(), 4);
    for row in rows {
        let figure = |name: &str| row[name].as_f64().expect("a number");
        let apart = figure("highest") - figure("lowest");
        let most = if row["unit"] == "percent" { 25.0 } else { 0.25 * figure("simulated") };
        assert_eq!(row["seeds_disagree"], apart > most, "{row}");
    }
}

#[test]
fn a_quick_replay_says_what_it_left_out() {
    let output = sim(&["replay", "--quick", "--table", "vfs_2005"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("left out were all fits but the best, all seeds but 3"), "{shown}");
    let output = sim(&["replay", "--quick", "--table", "vfs_2005", "--seeds", "1"]);
    assert!(text(&output.stdout).contains("say nothing of other seeds"));
}

#[test]
fn fits_are_printed_as_the_file_that_is_read() {
    let fit = ["fit", "--boxes", "--draws", "2", "--keep", "1", "--seeds", "1"];
    let output = sim(&fit);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout, sim(&fit).stdout);
    assert!(text(&output.stdout).contains("switch: 2 to 12"));
    let output = sim(&["fit", "--draws", "1", "--seeds", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("hold_read: 8 to 14"), "{printed}");
    // What is no comment is a fit, or it says that there is none.
    let first = printed.lines().find(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(first, (!printed.contains("came near")).then_some("[[fit]]"), "{printed}");
    let output = sim(&["fit", "--fserver", "--draws", "1", "--keep", "1", "--seeds", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("write_section: 1 to 20"), "{printed}");
    assert!(printed.contains("4 nodes, patch 1 (jpm): 381558.0"), "{printed}");
    // No row that shows what the queue gains.
    assert!(!printed.contains("patches 1 and 2"), "{printed}");
}

#[test]
fn sensitivities_are_to_each_number_both_ways() {
    let few = ["sensitivity", "--number", "section", "--users", "30", "--json"];
    let output = sim(&few);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let effects = report["effects"].as_array().expect("effects");
    let changed: Vec<(&str, f64)> = effects
        .iter()
        .map(|e| (e["number"].as_str().expect("a name"), e["factor"].as_f64().expect("a number")))
        .collect();
    assert_eq!(changed, [("", 1.0), ("section", 0.8), ("section", 1.25)]);
    for effect in effects {
        let figures = effect["figures"].as_array().expect("figures");
        assert_eq!(figures.len(), report["figures"].as_array().map_or(0, Vec::len));
        assert!(figures.iter().all(|figure| figure.as_f64() >= Some(0.0)));
    }
    let output = sim(&["sensitivity", "--number", "nope"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there are hold_write"));
}

#[test]
fn bad_files_are_refused_with_line_and_expectation() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("m.toml");
    std::fs::write(&file, "name = \"m\"\nabout = \"\"\n[layout]\nnodes = \"two\"\n")
        .expect("written");
    let name = file.to_str().expect("a plain name");
    let output = sim(&["run", "--machine", name, "--lock", "lockstead", "--workload", "storm"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains(&format!("{name}:4: ")) && error.contains("expected"), "{error}");
    for (option, value) in [("--machine", "nope"), ("--lock", "nope"), ("--workload", "nope")] {
        let mut arguments =
            vec!["run", "--machine", "vm-2", "--lock", "lockstead", "--workload", "storm"];
        let at = arguments.iter().position(|a| *a == option).expect("it is there");
        arguments[at + 1] = value;
        let output = sim(&arguments);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(text(&output.stderr).contains("nope"), "{option}");
    }
}

const PROFILE: &str = r#"{"schema": "lockstead-run", "processes": [{
  "threads": {"peak": 4},
  "waiting": {"thread_ns": 4000000000, "waited_ns": 400000000, "idled_ns": 0},
  "locks": [
    {"name": "cache.mutex", "kind": "mutex", "locks": 1, "acquisitions": 200000,
     "hold": {"count": 200000, "total_ns": 400000000}},
    {"name": "log.mutex", "kind": "mutex", "locks": 1, "acquisitions": 20000,
     "hold": {"count": 20000, "total_ns": 4000000}}]}]}"#;

#[test]
fn a_recorded_program_is_predicted_and_its_worst_lock_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    std::fs::write(&file, PROFILE).expect("written");
    let name = file.to_str().expect("a plain name");
    let base = ["whatif", name, "--machine", "epyc-2x64", "--cores", "1,4,32", "--seeds", "2"];
    let output = sim(&[&base[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let points = report["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    let jobs = |at: usize| points[at]["figures"]["jobs_per_second"].as_f64().expect("a number");
    assert!(jobs(1) > 1.5 * jobs(0), "four cores beat one");
    // Two microseconds of each job are in one lock.
    assert!(jobs(2) < 600_000.0, "{}", jobs(2));
    assert_eq!(points[5]["figures"]["worst"], "cache.mutex");
    assert_eq!(report["unrepresented"].as_array().map(Vec::len), Some(0));
    for point in points {
        assert!(point["not_predictable"].is_null(), "{point}");
        let point = &point["figures"];
        let figure = |name: &str| point[name].as_f64().expect("a number");
        assert!(figure("lowest") <= figure("jobs_per_second"), "{point}");
        assert!(figure("highest") >= figure("jobs_per_second"), "{point}");
        let apart = (figure("highest") - figure("lowest")) / figure("jobs_per_second");
        assert_eq!(point["seeds_disagree"], apart > 0.25, "{point}");
        assert!(figure("longest_wait_ns") <= 30e6, "no more is simulated: {point}");
    }
    let knees = report["knees"].as_array().expect("knees");
    assert_eq!((knees.len(), &knees[0]["lock"]), (2, &Value::from("present")));
    assert_eq!(knees[0]["by"], "cache.mutex");
    let page = folder.path().join("page.html");
    let shown = sim(&[&base[..], &["--html", page.to_str().expect("a plain name")]].concat());
    let shown = text(&shown.stdout);
    assert!(shown.contains("stops to scale at") && shown.contains("cache.mutex"), "{shown}");
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("<polyline") && page.contains("cache.mutex"), "{page}");
    // As of a program none of whose threads waited.
    let (before, _) = PROFILE.split_once("\"locks\": [\n").expect("it names locks");
    std::fs::write(&file, format!("{before}\"locks\": []}}]}}")).expect("written");
    let output = sim(&base);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--sort acquisitions"), "{}", text(&output.stderr));
    std::fs::write(&file, "{\"schema\": 1}").expect("written");
    let output = sim(&base);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("expected: a report"), "{}", text(&output.stderr));
}

/// Four threads that ran on two processors seem to have computed for longer than they can have.
#[test]
fn no_more_is_computed_than_there_were_processors_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    let name = file.to_str().expect("a plain name");
    let jobs = |profile: &str| {
        std::fs::write(&file, profile).expect("written");
        let output = sim(&["whatif", name, "--machine", "vm-2", "--cores", "1", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["points"][0]["figures"]["jobs_per_second"].as_f64().expect("a number")
    };
    let unknown = jobs(PROFILE);
    let recorded_on = |processors: u32| {
        let profile = PROFILE.replacen(
            "{\"schema\"",
            &format!("{{\"processors\": {processors}, \"schema\""),
            1,
        );
        profile.replacen("\"threads\"", "\"lived_ns\": 1000000000, \"threads\"", 1)
    };
    assert_eq!(jobs(&recorded_on(4)), unknown, "there was time enough for all");
    let two = jobs(&recorded_on(2));
    // 3.6 seconds for 200,000 jobs seem to be, 2 there can have been.
    assert!(two > 1.6 * unknown && two < 2.0 * unknown, "{two}, {unknown}");
    let used = |cpu: u64, silent: u32| {
        let known = format!("{{\"cpu_ns\": {cpu}, \"silent_processes\": {silent}, ");
        jobs(&recorded_on(2).replacen('{', &known, 1))
    };
    let half = used(1_000_000_000, 0);
    assert!(half > 1.8 * two && half < 2.2 * two, "{half}, {two}");
    assert_eq!(used(1_000_000_000, 1), two, "another one may have used more");
    assert_eq!(used(0, 0), two, "unknown");
}

#[test]
fn a_prediction_is_of_the_locks_the_machine_and_the_seeds_that_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    std::fs::write(&file, PROFILE).expect("written");
    let name = file.to_str().expect("a plain name");
    let ask = |more: &[&str]| {
        let base = ["whatif", name, "--machine", "westmere-8x10", "--cores", "1,64", "--json"];
        sim(&[&base[..], more].concat())
    };
    let points = |more: &[&str]| {
        let output = ask(more);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["points"].as_array().expect("points").clone()
    };
    let few = ["--lock", "spin-queue,present", "--seeds", "2"];
    let three = points(&few);
    // Sixty-four of eighty cores are no equal parts of its nodes.
    let of = |point: &Value| (point["lock"].clone(), point["cores"].clone());
    let wanted = [("spin-queue", 1), ("spin-queue", 64), ("present", 1), ("present", 64)];
    let wanted: Vec<(Value, Value)> =
        wanted.map(|(lock, cores)| (lock.into(), cores.into())).into();
    assert_eq!(three.iter().map(of).collect::<Vec<_>>(), wanted);
    assert_eq!(three, points(&few), "the same seeds");
    assert_ne!(three, points(&[&few[..], &["--seed", "9"]].concat()), "other seeds");
    // Who switches for a millisecond has less of one core.
    let slow = points(&[&few[..], &["--set", "switch=1000", "--tasks", "8"]].concat());
    let quick = points(&[&few[..], &["--tasks", "8"]].concat());
    let jobs = |point: &Value| point["figures"]["jobs_per_second"].as_f64().expect("a number");
    assert!(jobs(&slow[2]) < 0.9 * jobs(&quick[2]), "{} {}", slow[2], quick[2]);
    for (flag, wrong, words) in [
        ("--lock", "nope", "there are"),
        ("--set", "nope=1", "there are"),
        ("--set", "switch", "NAME=VALUE"),
        ("--cores", "81", "1 to 80"),
    ] {
        let output = ask(&[flag, wrong]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
fn what_would_help_is_simulated_on_another_machine_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    std::fs::write(&file, PROFILE).expect("written");
    let name = file.to_str().expect("a plain name");
    let base = ["whatif", name, "--machine", "vm-2", "--cores", "2", "--seeds", "1"];
    let ask = |more: &[&str]| sim(&[&base[..], more].concat());
    let advice = |more: &[&str]| {
        let output = ask(&[more, &["--json"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["advice"].as_array().expect("a list").clone()
    };
    let (alone, both) = (advice(&[]), advice(&["--also", "epyc-2x64"]));
    assert_eq!(alone.len(), both.len());
    for (alone, both) in alone.iter().zip(&both) {
        let gains = both["gains"].as_array().expect("a list");
        assert_eq!(alone["change"], both["change"], "the order is that of the machine asked about");
        assert_eq!(alone["gains"].as_array().expect("a list")[..], gains[..1]);
        let of = |gain: &Value| (gain["machine"].clone(), gain["cores"].clone());
        assert_eq!(of(&gains[0]), ("vm-2".into(), 2.into()));
        assert_eq!(of(&gains[1]), ("epyc-2x64".into(), 128.into()));
    }
    // On 256 processors the lock is all that counts.
    let split = both.iter().find(|one| one["change"] == "split in 8").expect("a change");
    let gain = |at: usize| split["gains"][at]["gain_percent"].as_f64().expect("a number");
    assert!(gain(1) > 50.0 && gain(1) > gain(0), "{split}");
    let shown = text(&ask(&["--also", "epyc-2x64"]).stdout);
    assert!(shown.contains("on 2 cores  ") && shown.contains("on 128 cores epyc-2x64"), "{shown}");
    let refused = ask(&["--also", "nope"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("nope"), "{}", text(&refused.stderr));
}

/// Readers go together in the program, and one by one in the simulation.
#[test]
fn what_a_profile_cannot_say_is_named_and_not_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    let name = file.to_str().expect("a plain name");
    let ask = |profile: &str, more: &[&str]| {
        std::fs::write(&file, profile).expect("written");
        let base = ["whatif", name, "--machine", "epyc-2x64", "--cores", "1,8", "--seeds", "1"];
        let output = sim(&[&base[..], &["--no-threads"], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let json = |profile: &str, more: &[&str]| -> Value {
        serde_json::from_str(&ask(profile, &[&["--json"], more].concat())).expect("JSON")
    };
    // Held for a tenth of the threads' time: one core has no two readers, eight have.
    let readers = PROFILE.replacen("\"kind\": \"mutex\"", "\"kind\": \"rwlock\"", 1);
    let report = json(&readers, &[]);
    assert!(report["points"][0]["not_predictable"].is_null(), "{report}");
    assert!(report["points"][0]["figures"].is_object(), "{report}");
    let eight = &report["points"][1];
    assert!(eight["figures"].is_null(), "{eight}");
    let why = eight["not_predictable"].as_str().expect("a reason");
    assert!(why.contains("cache.mutex") && why.contains("10.0 %"), "{why}");
    assert_eq!(report["unrepresented"][0]["share_percent"], 10.0);
    assert!(json(&readers, &["--anyway"])["points"][1]["figures"].is_object());
    let shown = ask(&readers, &[]);
    assert!(shown.contains("not predictable from 8 cores on: rwlock `cache.mutex`"), "{shown}");
    // A producer and its consumers wait for each other.
    let idle = "\"idle\": [{\"name\": \"queue.filled\", \"kind\": \"condition\", \"locks\": 1, \
        \"acquisitions\": 0, \"hold\": {\"count\": 0, \"total_ns\": 0}, \
        \"wait\": {\"total_ns\": WAITED}}], \"locks\"";
    let waiting = |ns: &str| {
        PROFILE.replacen("\"locks\": [\n", &format!("{}: [\n", idle.replace("WAITED", ns)), 1)
    };
    let report = json(&waiting("2000000000"), &[]);
    for point in report["points"].as_array().expect("points") {
        let why = point["not_predictable"].as_str().expect("a reason");
        assert!(why.contains("condition `queue.filled` (50.0 %"), "{why}");
    }
    // What was recorded beside other programs.
    let beside = |others: u64| {
        let run = format!(
            "{{\"wall_ns\": 1000000000, \"processors\": 4, \"others_ns\": {others}, \"schema\""
        );
        PROFILE.replacen("{\"schema\"", &run, 1)
    };
    let report = json(&beside(1_000_000_000), &[]);
    assert_eq!(report["others_percent"], 25.0);
    assert!(report["points"][0]["figures"].is_null(), "{report}");
    let shown = ask(&beside(1_000_000_000), &[]);
    assert!(shown.contains("not predictable from 1 cores on: others used 25.0 %"), "{shown}");
    assert!(json(&beside(1_000_000_000), &["--anyway"])["points"][0]["figures"].is_object());
    let shown = ask(&beside(400_000_000), &[]);
    assert!(shown.contains("less certain: others used 10.0 %"), "{shown}");
    assert!(!ask(&beside(40_000_000), &[]).contains("others used"));
    // Of which nobody was in the program's way.
    let aside =
        beside(1_000_000_000).replacen("idled_ns\": 0", "idled_ns\": 0, \"queued_ns\": 7", 1);
    let report = json(&aside, &[]);
    assert_eq!(
        (&report["delayed_percent"], &report["others_percent"]),
        (&0.0.into(), &25.0.into())
    );
    assert!(report["points"][0]["figures"].is_object(), "{report}");
    // Too little to matter is named, and less not even that.
    let report = json(&waiting("200000000"), &[]);
    assert!(report["points"][1]["figures"].is_object(), "{report}");
    assert_eq!(report["unrepresented"][0]["kind"], "condition");
    let report = json(&waiting("2000000"), &[]);
    assert_eq!(report["unrepresented"].as_array().map(Vec::len), Some(0));
}

/// One task keeps the lock for longer than is simulated: the others starve.
#[test]
fn waits_that_have_not_ended_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("starving.toml");
    let workload = "name = \"starving\"\nabout = \"\"\ntasks = 4\ncompute = 1.0\nwarm_up = 1.0\n\
        length = 5.0\n[[locks]]\nname = \"hot\"\nburst = 1.0\nsection = 1000000.0\n";
    std::fs::write(&file, workload).expect("written");
    let name = file.to_str().expect("a plain name");
    let base = ["--machine", "epyc-2x64", "--workload", name, "--seeds", "1"];
    let output = sim(&[&["run", "--lock", "futex", "--json"], &base[..]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&report["still_waiting"], &report["longest_wait_ended"]),
        (&3.into(), &false.into())
    );
    assert_eq!(report["longest_wait_ns"], 5_000_000);
    assert_eq!(report["locks"][0]["wait_ns"], 15_000_000);
    let shown = text(&sim(&[&["run", "--lock", "futex"], &base[..]].concat()).stdout);
    assert!(shown.contains("5.00 ms+") && shown.contains("had not ended"), "{shown}");
    assert!(shown.contains("one seed alone"), "{shown}");
    let sweep = ["sweep", "--locks", "futex", "--cores", "8"];
    let shown = text(&sim(&[&sweep[..], &base].concat()).stdout);
    assert!(shown.contains("5.00 ms+"), "{shown}");
}

/// Figures of the table of 2005 range wider than a quarter from seed to seed.
#[test]
fn seeds_that_disagree_are_marked() {
    let ask = |more: &[&str]| sim(&[&["replay", "--quick", "--table", "vfs_2005"], more].concat());
    let report: Value = serde_json::from_slice(&ask(&["--json"]).stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let wide = |row: &&Value| row["seeds_disagree"] == true;
    assert!(rows.iter().filter(wide).count() > 0, "{rows:?}");
    let shown = text(&ask(&[]).stdout);
    let (table, notes) = shown.split_once("Rows marked").expect("a line below the table");
    assert_eq!(table.matches(" ~").count(), rows.iter().filter(wide).count(), "{shown}");
    assert!(notes.contains("\n~: ") && notes.contains("chance decides"), "{shown}");
    let shown = text(&ask(&["--seeds", "1"]).stdout);
    assert!(shown.contains("say nothing of other seeds"), "{shown}");
}

#[test]
fn pictures_are_well_formed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("a plain name").to_owned();
    let (curves, line, page) = (file("sweep.svg"), file("trace.svg"), file("replay.html"));
    let storm = ["--machine", "vm-2", "--workload", "storm"];
    for arguments in [
        vec!["sweep", "--seeds", "1", "--svg", &curves],
        vec!["trace", "--lock", "queued-2013", "--svg", &line],
    ] {
        let output = sim(&[&arguments[..], &storm].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let output = sim(&["replay", "--quick", "--table", "vfs_2005", "--html", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for file in [&curves, &line, &page] {
        let picture = std::fs::read_to_string(file).expect("it was written");
        let picture = picture.replace("<!DOCTYPE html>", "");
        assert!(roxmltree::Document::parse(&picture).is_ok(), "{file}");
    }
}
