//! `lockstead shm`: participants and locks of a segment, the dead, the stuck.

use crate::common::{run, succeed, text};
use lockstead::CancelToken;
use lockstead::shared::inspect::SegmentView;
use lockstead::shared::{
    Locked, Segment, SegmentOptions, Shareable, SharedError, SharedMutex, SharedSemaphore,
};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
struct Shop {
    orders: SharedMutex<u64>,
    shelves: [SharedMutex<u64>; 1000],
    carts: SharedSemaphore,
}

#[derive(Shareable)]
#[repr(C)]
struct Million {
    locks: [SharedMutex<()>; 1_000_000],
}

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop");
        Place { _folder: folder, path }
    }

    fn shop(&self) -> Segment<Shop> {
        Segment::create(&self.path, &SegmentOptions::new().participants(8)).expect("a segment")
    }

    fn json(&self, more: &[&str]) -> Value {
        let outcome = succeed(&[&["shm", text(&self.path), "--json"], more].concat());
        let facts: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        crate::common::documented(&facts);
        facts
    }

    fn text(&self, more: &[&str]) -> String {
        succeed(&[&["shm", text(&self.path)], more].concat()).stdout
    }
}

/// Another process with locks of the segment. Killed when dropped.
struct Other(Child);

impl Other {
    /// Comes back when it has them.
    fn start(path: &Path, what: &str) -> Other {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "shm::other_process", "--ignored", "--nocapture"])
            .env("SHM_TEST_PATH", path)
            .env("SHM_TEST_WHAT", what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let ready = lines.any(|line| line.is_ok_and(|line| line.contains("has them")));
        assert!(ready, "the other process ended: {:?}", child.try_wait());
        Other(child)
    }

    fn kill(&mut self) {
        self.0.kill().expect("a child can be killed");
        self.0.wait().expect("a child can be waited for");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
#[ignore = "the other process of the tests here, which start it themselves"]
fn other_process() {
    let Some(path) = std::env::var_os("SHM_TEST_PATH") else { return };
    let segment = Segment::<Shop>::open(&path).expect("the segment");
    let shop = segment.root();
    match std::env::var("SHM_TEST_WHAT").as_deref() {
        Ok("shelves") => {
            for lock in &shop.shelves {
                std::mem::forget(lock.lock().expect("a free lock"));
            }
        }
        Ok("orders") => std::mem::forget(shop.orders.lock().expect("a free lock")),
        other => panic!("nothing to do: {other:?}"),
    }
    println!("\nhas them");
    // Until the end of standard input at the latest, which the parent's end brings.
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} took too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lock<'a>(facts: &'a Value, name: &str) -> &'a Value {
    let locks = facts["locks"].as_array().expect("locks");
    locks.iter().find(|lock| lock["lock"] == name).unwrap_or_else(|| panic!("no {name}: {facts}"))
}

#[test]
fn a_million_free_locks_are_a_number_and_no_lines() {
    let place = Place::new();
    let options = SegmentOptions::new().participants(4);
    let segment = Segment::<Million>::create(&place.path, &options).expect("a segment");
    let shown = place.text(&[]);
    assert!(shown.contains("1,000,000 locks, 1,000,000 of them free"), "{shown}");
    assert!(shown.lines().count() < 20, "{shown}");
    let held = segment.root().locks[777_777].lock().expect("a free lock");
    let facts = place.json(&[]);
    assert_eq!(facts["locks_total"], 1_000_000);
    assert_eq!(facts["locks_free"], 999_999);
    assert_eq!(facts["locks"].as_array().map(Vec::len), Some(1));
    assert_eq!(lock(&facts, "locks[777777]")["state"], "owned");
    drop(held);
}

#[test]
fn who_holds_and_who_waits() {
    let place = Place::new();
    let segment = place.shop();
    let shop = segment.root();
    let held = shop.orders.lock().expect("a free lock");
    std::thread::scope(|scope| {
        scope.spawn(|| drop(shop.orders.lock().expect("in the end")));
        let mut facts = Value::Null;
        until("the waiter", || {
            facts = place.json(&[]);
            lock(&facts, "orders")["waiters"].as_array().is_some_and(|waiters| waiters.len() == 1)
        });
        let orders = lock(&facts, "orders");
        assert_eq!(orders["kind"], "mutex");
        assert_eq!(orders["state"], "owned");
        assert_eq!(orders["owner"]["process"], std::process::id());
        assert_eq!(orders["owner"]["alive"], true);
        let waiter = orders["waiters"][0].as_u64().expect("a slot");
        let people = facts["participants"].as_array().expect("participants");
        let person = people.iter().find(|p| p["slot"] == waiter).expect("the waiter");
        assert_eq!(person["waits_for"], "orders");
        assert_eq!(person["state"], "alive");
        assert_eq!(person["process_here"], std::process::id());
        let shown = place.text(&[]);
        for word in ["orders", "owned", "waits for", "alive", &std::process::id().to_string()] {
            assert!(shown.contains(word), "no {word:?} in\n{shown}");
        }
        drop(held);
    });
}

struct Cancel<'a>(&'a [CancelToken]);

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(CancelToken::cancel);
    }
}

#[test]
fn those_who_wait_for_each_other() {
    let place = Place::new();
    let segment = place.shop();
    let shop = segment.root();
    let barrier = std::sync::Barrier::new(2);
    let cross = |first: &SharedMutex<u64>, second: &SharedMutex<u64>, stop: &CancelToken| {
        let held = first.lock().expect("a free lock");
        barrier.wait();
        // Who is told second may have got what the first one let go.
        let got = second.lock_killable(stop);
        assert!(matches!(got, Err(SharedError::Cancelled) | Ok(Locked::Acquired(_))));
        drop(held);
    };
    let stops = [CancelToken::new(), CancelToken::new()];
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&shop.orders, &shop.shelves[7], &stops[0]));
        scope.spawn(|| cross(&shop.shelves[7], &shop.orders, &stops[1]));
        // However this ends, the two do.
        let over = Cancel(&stops);
        let mut outcome = None;
        until("the deadlock", || {
            let seen = run(&["shm", text(&place.path), "--json"]);
            let found = seen.status == 3;
            outcome = found.then_some(seen);
            found
        });
        let facts: Value = serde_json::from_str(&outcome.expect("found").stdout).expect("JSON");
        crate::common::documented(&facts);
        let cycle = facts["cycles"][0].as_array().expect("a cycle");
        let mut locks: Vec<_> = cycle.iter().filter_map(|link| link["lock"].as_str()).collect();
        locks.sort_unstable();
        assert_eq!(locks, ["orders", "shelves[7]"], "{facts}");
        let shown = run(&["shm", text(&place.path)]);
        assert_eq!(shown.status, 3, "{shown:?}");
        assert!(shown.stdout.contains("DEADLOCK: 2 participants wait"), "{shown:?}");
        drop(over);
    });
    assert_eq!(place.json(&[])["cycles"], Value::Array(Vec::new()));
}

#[test]
fn the_dead_and_what_they_held() {
    let place = Place::new();
    let segment = place.shop();
    let mut other = Other::start(&place.path, "shelves");
    let process = other.0.id();
    other.kill();
    let facts = place.json(&[]);
    let person = &facts["participants"][0];
    assert_eq!((&person["state"], &person["holds"]), (&"dead".into(), &1000.into()), "{facts}");
    assert_eq!(person["process"], process);
    assert_eq!(facts["locks"].as_array().map(Vec::len), Some(1000));
    assert_eq!(lock(&facts, "shelves[999]")["state"], "owner-dead");
    assert_eq!(lock(&facts, "shelves[999]")["owner"]["alive"], false);

    let shown = place.text(&[]);
    assert!(shown.contains("owner died") && shown.contains("and 960 more"), "{shown}");
    assert!(shown.lines().count() < 60, "{shown}");
    let all = place.text(&["--all"]);
    assert!(all.contains("shelves[999]") && all.contains("carts"), "{all}");

    // Nothing here was stuck: the next one is told.
    assert!(matches!(segment.root().shelves[0].try_lock(), Ok(Locked::OwnerDied(_))));
}

/// Does what the machine does when it loses the list of a participant that ends.
fn forget_the_death(path: &Path, slot: u32, thread: u32) {
    let view = SegmentView::open(path).expect("a segment");
    let at = view.header().slots_at + u64::from(slot) * 128;
    let file = std::fs::File::options().write(true).open(path).expect("the file");
    file.write_all_at(&(thread | 1 << 31).to_ne_bytes(), at).expect("written");
}

#[test]
fn the_stuck_are_recovered_and_the_living_left_alone() {
    let place = Place::new();
    let segment = place.shop();
    let shop = segment.root();
    let held = shop.shelves[5].lock().expect("a free lock");
    let mut other = Other::start(&place.path, "orders");
    let facts = place.json(&[]);
    let people = facts["participants"].as_array().expect("participants");
    let theirs = people.iter().find(|p| p["process"] == other.0.id()).expect("the other");
    let number = |key: &str| theirs[key].as_u64().expect("a number") as u32;
    let (slot, thread) = (number("slot"), number("thread"));
    let nobody = place.json(&["--recover"]);
    assert_eq!(nobody["recovered"]["declared_dead"], Value::Array(Vec::new()));
    other.kill();
    forget_the_death(&place.path, slot, thread);

    let state = |facts: &Value, slot: u32| {
        let people = facts["participants"].as_array().expect("participants").iter();
        people.clone().find(|p| p["slot"] == slot).map(|p| p["state"].clone())
    };
    let stuck = place.json(&[]);
    assert_eq!(state(&stuck, slot), Some("missing".into()), "{stuck}");
    assert_eq!(lock(&stuck, "orders")["state"], "owner-missing", "{stuck}");
    assert_eq!(lock(&stuck, "shelves[5]")["state"], "owned", "{stuck}");
    let shown = place.text(&[]);
    assert!(
        shown.contains("there is no such thread") && shown.contains("owner missing"),
        "{shown}"
    );

    let recovered = place.json(&["--recover"]);
    assert_eq!(recovered["recovered"]["declared_dead"], serde_json::json!([slot]));
    assert_eq!(state(&recovered, slot), Some("dead".into()), "{recovered}");
    assert_eq!(lock(&recovered, "orders")["state"], "owner-dead");
    assert_eq!(lock(&recovered, "shelves[5]")["owner"]["alive"], true);
    assert!(matches!(shop.orders.try_lock(), Ok(Locked::OwnerDied(_))));
    drop(held);
    assert!(place.text(&["--recover"]).contains("Nobody had to be declared dead"));
}

#[test]
fn what_is_not_recoverable_is_freed_when_asked_for() {
    let place = Place::new();
    let segment = place.shop();
    let orders = &segment.root().orders;
    Other::start(&place.path, "orders").kill();
    // Released without having been declared consistent.
    drop(orders.lock().expect("told of the death"));
    assert!(matches!(orders.try_lock(), Ok(Locked::NotRecoverable)));
    assert_eq!(lock(&place.json(&["--recover"]), "orders")["state"], "not-recoverable");
    let freed = place.json(&["--recover", "--reset"]);
    assert_eq!(freed["recovered"]["reset"], serde_json::json!(["orders"]));
    assert_eq!(freed["locks"], Value::Array(Vec::new()));
    assert!(matches!(orders.try_lock(), Ok(Locked::Acquired(_))));
}

#[test]
fn what_is_no_segment_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("plain");
    std::fs::write(&plain, vec![7; 8192]).expect("a file");
    let absent = folder.path().join("absent");
    let cut = Place::new();
    drop(cut.shop());
    let file = std::fs::File::options().write(true).open(&cut.path).expect("the file");
    file.set_len(5000).expect("cut");
    for (path, why) in [
        (plain.as_path(), "not a segment"),
        (absent.as_path(), "No such file"),
        (folder.path(), "not a plain file"),
        (cut.path.as_path(), "bytes"),
    ] {
        let outcome = run(&["shm", text(path)]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(outcome.stderr.contains(why), "no {why:?} in {outcome:?}");
        assert!(outcome.stderr.contains(text(path)), "{outcome:?}");
        assert_eq!(outcome.stdout, "", "{outcome:?}");
    }
    assert_eq!(run(&["shm", text(&plain), "--reset"]).status, 2);
    assert_eq!(run(&["shm"]).status, 2);
}
