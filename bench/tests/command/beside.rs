//! What a contended measurement can have around it: a quota, a holder that sleeps, pinned
//! threads; and the mutex without its ingredients.

use crate::common::{documented, run, succeed};
use serde_json::{Value, json};

const CELL: [&str; 6] =
    ["bench", "contended", "--quick", "--threads=2", "--section=0", "--think=0"];

fn report(extra: &[&str]) -> Value {
    let args = [&CELL[..], &["--locks=lockstead,std", "--json"], extra].concat();
    let report = serde_json::from_str(&succeed(&args).stdout).expect("JSON alone");
    documented(&report);
    report
}

#[test]
fn a_quota_is_kept_and_its_group_removed_or_it_says_what_to_do() {
    let args = [&CELL[..], &["--locks=lockstead,std", "--json", "--quota=50"]].concat();
    let outcome = run(&args);
    if outcome.status == 1 {
        assert!(outcome.stderr.contains("--quota") && outcome.stderr.contains("run as root"));
        assert_eq!(outcome.stdout, "");
        eprintln!("skipped: {}", outcome.stderr.trim());
    } else {
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
        documented(&report);
        assert_eq!(report["quota"]["percent"], 50);
        assert!(["v1", "v2"].contains(&report["quota"]["control_groups"].as_str().expect("which")));
    }
    for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"] {
        let Ok(groups) = std::fs::read_dir(mount) else { continue };
        for group in groups.flatten() {
            let name = group.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix("lockstead-quota-");
            let alive = |pid: &str| std::path::Path::new("/proc").join(pid).exists();
            assert!(owner.is_none_or(alive), "{name} is left in {mount}");
        }
    }
}

#[test]
fn a_sleeping_holder_and_pinned_threads_are_in_the_report() {
    let report = report(&["--sleep-in-section=100us:10", "--pin=both"]);
    assert_eq!(
        (&report["sleep_in_section_ns"], &report["sleep_every"]),
        (&json!(100_000), &json!(10))
    );
    assert_eq!(report["quota"], Value::Null);
    let cells = report["cells"].as_array().expect("cells");
    let pinned: Vec<_> = cells.iter().map(|cell| cell["pinned"].as_bool()).collect();
    assert_eq!(pinned, [Some(false), Some(true)]);
}

#[test]
fn scaling_goes_beyond_the_processors_and_shows_a_table() {
    let args = ["bench", "contended", "--quick", "--scaling", "--section=0", "--think=0"];
    let outcome = succeed(&[&args[..], &["--locks=lockstead,std"]].concat());
    for word in
        ["By threads: section 0, think 0", "1 thread", "lockstead, pinned", "pinned threads"]
    {
        assert!(outcome.stdout.contains(word), "no {word:?} in\n{}", outcome.stdout);
    }
}

#[test]
fn each_ingredient_is_left_out_and_weighed() {
    let args = ["bench", "ablation", "--quick", "--threads=2,3", "--section=0", "--think=0"];
    let some = "--ingredients=spinning,one-atomic,slow-unlocks";
    let outcome = succeed(&[&args[..], &[some, "--json"]].concat());
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
    documented(&report);
    let names: Vec<_> = report["ingredients"]
        .as_array()
        .expect("ingredients")
        .iter()
        .map(|worth| worth["ingredient"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["spinning", "one-atomic", "slow-unlocks"]);
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(2));
    for cell in report["cells"].as_array().expect("cells") {
        assert_eq!(cell["effects"].as_array().map(Vec::len), Some(3));
    }
    let text = succeed(&[&args[..], &[some]].concat()).stdout;
    for word in ["2 cells", "throughput", "work per CPU-second", "longest wait", "one-atomic"] {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    for (extra, words) in [
        ("--quota=0", ["--quota", "from 1 to 100000"]),
        ("--quota=half", ["--quota", "from 1 to 100000"]),
        ("--sleep-in-section=1s", ["--sleep-in-section", "every Nth section"]),
        ("--sleep-in-section=1us:0", ["--sleep-in-section", "every Nth section"]),
        ("--pin=2", ["--pin", "both"]),
        ("--scaling", ["--scaling", "--threads"]),
    ] {
        let outcome = run(&[&CELL[..], &[extra]].concat());
        assert_eq!(outcome.status, 2, "{extra}: {outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "no {word:?} in {}", outcome.stderr);
        }
    }
    let outcome = run(&["bench", "ablation", "--ingredients=owner"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("spinning"), "{}", outcome.stderr);
}
