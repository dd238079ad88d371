//! Where threads of Python waited, in the rows of the locks that they waited for.

use super::{Area, MS, birth, lock, report_with};
use lockstead_inspect::python::{PythonFrame, PythonStack};
use lockstead_inspect::report::ReportOptions;
use lockstead_inspect::report::lives::WaitedLife;
use lockstead_inspect::report::model::LockReport;
use lockstead_inspect::report::python::{MetWait, PythonWaits, WaitedPlace};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::ObjectKind;

/// Returns frames of `queue.py` and below them one of the program, in a line of this number.
fn place(line: u32, kind: Option<&str>) -> WaitedPlace {
    let frame = |function: &str, file: &str, line: u32| PythonFrame {
        function: function.into(),
        file: file.into(),
        line: Some(line),
    };
    let frames =
        vec![frame("Queue.get", "/lib/python3.12/queue.py", 171), frame("job", "/app.py", line)];
    let stack = PythonStack { frames, cut: false };
    WaitedPlace { waits_for: kind.map(str::to_owned), stack }
}

/// Adds a look that met a wait for the life that the lock of a record is in.
fn meet(waits: &mut PythonWaits, ledger: &Ledger<'_>, record: u32, line: u32, ns: u64) {
    let life = WaitedLife::now(ledger, record).expect("a record");
    let place = waits.place(place(line, Some("queue.Queue")));
    let lasted_ns = ns + 1;
    waits.add(MetWait { life, place, object: Some(0x70), ns, lasted_ns, is_new: true });
}

fn rows(area: &Area, waits: &PythonWaits) -> Vec<LockReport> {
    let options = ReportOptions { top: 100, ..ReportOptions::default() };
    let process = report_with(&[area], &options, Some(waits)).processes.remove(0);
    process.locks.into_iter().chain(process.idle).collect()
}

fn lines(row: &LockReport) -> Vec<u32> {
    let places = row.python.iter().flat_map(|python| &python.places);
    places.filter_map(|place| place.line).collect()
}

#[test]
fn a_place_stands_in_the_row_of_the_life_that_was_waited_for() {
    let area = Area::new();
    let ledger = area.ledger();
    let mut waits = PythonWaits::default();
    // 70 lives at one address, of which 64 have graves, and one that goes on.
    for life in 0..70 {
        let index = lock(&ledger, 0x1000, 0x40, 1, &[(life + 1) * MS]);
        meet(&mut waits, &ledger, index, life as u32, MS);
        ledger.destroy_lock(0x1000);
    }
    let last = lock(&ledger, 0x1000, 0x40, 1, &[500 * MS]);
    meet(&mut waits, &ledger, last, 1000, 100 * MS);
    let rows = rows(&area, &waits);
    let row = |life: u64| rows.iter().find(|row| row.wait.total_ns == life * MS);
    assert_eq!(row(500).map(lines), Some(vec![1000]), "the one that lives");
    for life in 0..64 {
        assert_eq!(row(life + 1).map(lines), Some(vec![life as u32]), "life {life}");
    }
    let rest = rows.iter().find(|row| row.life == "several destroyed").expect("a mass grave");
    assert_eq!(lines(rest), (64..70).collect::<Vec<_>>());
}

#[test]
fn parts_are_those_of_the_waiting_and_the_rest_is_said_to_be_unseen() {
    let area = Area::new();
    let ledger = area.ledger();
    let mut waits = PythonWaits::default();
    let index = lock(&ledger, 0x1000, 0x40, 1, &[100 * MS]);
    meet(&mut waits, &ledger, index, 7, 50 * MS);
    meet(&mut waits, &ledger, index, 9, 20 * MS);
    meet(&mut waits, &ledger, index, 9, 5 * MS);
    // Of a thread in no code of Python.
    let life = WaitedLife::now(&ledger, index).expect("a record");
    let none =
        MetWait { life, place: None, object: None, ns: 5 * MS, lasted_ns: 5 * MS, is_new: true };
    waits.add(none);
    let rows = rows(&area, &waits);
    let python = rows[0].python.as_ref().expect("places");
    assert_eq!((python.seen_ns, python.unseen_percent), (75 * MS, 25.0));
    let [first, second] = &python.places[..] else { panic!("{:?}", python.places) };
    assert_eq!((first.site.as_str(), first.share_percent), ("job() at app.py:7", 50.0));
    assert_eq!(first.through.as_deref(), Some("Queue.get"));
    let of = (second.line, second.share_percent, second.waits, second.longest_ns);
    assert_eq!(of, (Some(9), 25.0, 2, 20 * MS + 1));
    assert_eq!(rows[0].name, "lock_1000#1", "a mutex is none of Python's");
}

#[test]
fn a_semaphore_is_named_by_the_object_that_all_looks_agree_on() {
    let area = Area::new();
    let ledger = area.ledger();
    let mut waits = PythonWaits::default();
    let semaphore = |address: u64| {
        let birth = birth(&ledger, address, ObjectKind::Semaphore, 0x40);
        let index = ledger.init_lock(&birth).expect("room");
        ledger.extension(index).expect("room").wait.add(10 * MS, 1, 0);
        index
    };
    let (one, two) = (semaphore(0x1000), semaphore(0x2000));
    meet(&mut waits, &ledger, one, 7, MS);
    meet(&mut waits, &ledger, two, 7, MS);
    let life = WaitedLife::now(&ledger, two).expect("a record");
    let place = waits.place(place(7, Some("queue.Queue")));
    let object = Some(0x90);
    waits.add(MetWait { life, place, object, ns: MS, lasted_ns: MS, is_new: true });
    let rows = rows(&area, &waits);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["queue.Queue at 0x70", "lock_2000#2"]);
}
