//! Conditions that serve as locks.

use super::*;
use lockstead_inspect::report::model::LockReport;

#[test]
fn waiting_for_a_condition_that_serves_as_a_lock_is_no_idle_time() {
    let area = Area::new();
    let ledger = area.ledger();
    let thread = thread(&ledger, 42, 0, 1000);
    // Of its 300 ms it knew at 100 that it waited for a lock.
    thread.record.idled.store(200 * MS, Relaxed);
    thread.record.waited.store(100 * MS, Relaxed);
    let mutex = lock(&ledger, 0x2000, 0x60, 9, &[]);
    assert_ne!(mutex, 0);
    let index = ledger.init_lock(&birth(&ledger, 0x1000, ObjectKind::Condition, 0x50)).unwrap();
    let statistics = ledger.extension(index).unwrap();
    statistics.wait.add(300 * MS, 1, 0);
    let handing = &statistics.handing;
    handing.mutex.store(0x2000, Relaxed);
    let moved = |report: &RunReport| {
        let process = &report.processes[0];
        let names = |locks: &[LockReport]| {
            locks.iter().map(|lock| lock.type_name.clone()).collect::<Vec<_>>()
        };
        let waiting = &process.waiting;
        (waiting.waited_ns / MS, waiting.idled_ns / MS, names(&process.locks), names(&process.idle))
    };
    let not_yet = report(&[&area], &ReportOptions::default());
    assert_eq!(moved(&not_yet), (100, 200, vec![], vec!["condition".into()]));
    for (count, number) in [
        (&handing.signals, 40),
        (&handing.after_wait, 8),
        (&handing.taken, 8),
        (&handing.again, 4),
        (&handing.judged, 60),
        (&handing.counted, 100 * MS),
    ] {
        count.store(number, Relaxed);
    }
    let known = report(&[&area], &ReportOptions::default());
    let lock = "lock of a condition and a mutex".to_owned();
    assert_eq!(moved(&known), (300, 0, vec![lock], vec![]));
    let lock = &known.processes[0].locks[0];
    assert_eq!((lock.acquisitions, lock.contended), (40, 8));
    assert_eq!(lock.mutex.as_deref(), Some("lock_2000#1"));
    // It turns out that it was none.
    handing.broken.store(60, Relaxed);
    let not = report(&[&area], &ReportOptions::default());
    assert_eq!(moved(&not), (0, 300, vec![], vec!["condition".into()]));
}
