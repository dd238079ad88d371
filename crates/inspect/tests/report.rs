//! The report of ledgers that the writer's side filled: numbers, orders, and
//! what is said of what had not ended.

mod grip;
mod handing;
mod holders;
mod one;
mod python;

use lockstead_inspect::report::live::{Lasting, LiveSample};
use lockstead_inspect::report::python::PythonWaits;
use lockstead_inspect::report::{
    Finding, LedgerProcess, LockFacts, Names, ProcessFacts, ReportOptions, RunFacts, RunReport,
    Sort, assemble, describe_process,
};
use lockstead_inspect::stack::{Frame, Stack, StackEnd};
use lockstead_ledger::header::tick_of;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::thread::{ThreadPart, state};
use lockstead_ledger::{Birth, Ledger, LedgerLayout, LedgerPart};
use std::alloc::{Layout as Memory, alloc_zeroed, dealloc};
use std::sync::atomic::Ordering::Relaxed;

/// All times count from here.
const BEGAN: u64 = 1 << 40;
const MS: u64 = 1_000_000;

/// A ledger in ordinary memory.
struct Area {
    base: *mut u8,
    memory: Memory,
}

impl Area {
    fn new() -> Area {
        let memory = Memory::from_size_align(LedgerLayout::SMALLEST as usize, 4096).unwrap();
        // SAFETY: the layout, made above, has a size that is not zero.
        let base = unsafe { alloc_zeroed(memory) };
        assert!(!base.is_null());
        let layout = LedgerLayout::divide(LedgerLayout::SMALLEST);
        // SAFETY: the allocator has just returned zeros of that size, page-aligned.
        let ledger = unsafe { Ledger::create(base, layout, 42, BEGAN) };
        ledger.header().ended.store(BEGAN + 1000 * MS, Relaxed);
        Area { base, memory }
    }

    fn ledger(&self) -> Ledger<'_> {
        // SAFETY: `new` has made it, and it lives as long as `self`.
        unsafe { Ledger::open(self.base, LedgerLayout::SMALLEST) }.unwrap()
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated it with this layout, and nobody uses it any more.
        unsafe { dealloc(self.base, self.memory) };
    }
}

/// Calls the code at 0x1234 `f1234`.
struct Plain;

impl Names for Plain {
    fn stack(&mut self, returns: &[u64], _: u32) -> Stack {
        let frame = |&address: &u64| Frame {
            address,
            function: Some(format!("f{address:x}")),
            file: Some("/src/x.c".into()),
            line: Some(address as u32),
            ..Frame::default()
        };
        Stack { frames: returns.iter().map(frame).collect(), end: StackEnd::Bottom }
    }

    fn function(&mut self, address: u64) -> Option<String> {
        Some(format!("start_{address:x}"))
    }

    fn lock(&mut self, facts: &LockFacts) -> String {
        format!("lock_{:x}#{}", facts.address, facts.serial)
    }
}

fn thread<'a>(ledger: &Ledger<'a>, tid: u32, began_ms: u64, ended_ms: u64) -> ThreadPart<'a> {
    let thread = ledger.thread(ledger.claim(LedgerPart::Threads, 1).unwrap()).unwrap();
    let record = thread.record;
    record.tid.store(tid, Relaxed);
    record.generation.store(1, Relaxed);
    record.began.store(BEGAN + began_ms * MS, Relaxed);
    record.state.store(state::LIVE, Relaxed);
    record.name[0].store(u64::from_le_bytes(*b"worker-\0") | u64::from(b'0') << 56, Relaxed);
    record.start_routine.store(0x77, Relaxed);
    if ended_ms != 0 {
        record.ended.store(BEGAN + ended_ms * MS, Relaxed);
        record.state.store(state::ENDED, Relaxed);
    }
    thread
}

fn birth(ledger: &Ledger<'_>, address: u64, kind: ObjectKind, init: u64) -> Birth {
    let stack = |returns: &[u64]| ledger.intern_stack(returns, 0);
    Birth {
        address,
        kind,
        attributes: attribute::KNOWN,
        init_stack: if init == 0 { 0 } else { stack(&[init, 0x99]) },
        first_stack: if init == 0 { stack(&[0x55, 0x99]) } else { 0 },
        module: 0,
    }
}

/// Returns a lock that was acquired and waited for.
fn lock(ledger: &Ledger<'_>, address: u64, init: u64, acquired: u64, waits: &[u64]) -> u32 {
    let index = ledger.init_lock(&birth(ledger, address, ObjectKind::Mutex, init)).unwrap();
    ledger.lock(index).unwrap().acquisitions.store(acquired, Relaxed);
    for (number, &ns) in waits.iter().enumerate() {
        let statistics = ledger.extension(index).unwrap();
        let site = 0x100 + number as u64 % 2;
        let stack = ledger.intern_stack(&[site, 0x99], 0);
        statistics.contended.fetch_add(1, Relaxed);
        statistics.wait.add(ns, 1, stack);
        ledger.add_share(&statistics.waited_at, stack, 1, ns);
    }
    index
}

fn report(areas: &[&Area], options: &ReportOptions) -> RunReport {
    report_with(areas, options, None)
}

fn report_with(
    areas: &[&Area],
    options: &ReportOptions,
    python: Option<&PythonWaits>,
) -> RunReport {
    let describe = |(number, area): (usize, &&Area)| {
        let facts = ProcessFacts { pid: 10 + number as u32, ..ProcessFacts::default() };
        let (ledger, names) = (area.ledger(), &mut Plain);
        let process = LedgerProcess { ledger, facts, names, python, holders: None };
        describe_process(process, options)
    };
    let processes: Vec<_> = areas.iter().enumerate().filter_map(describe).collect();
    let finding = Finding {
        kind: "deadlock".into(),
        pid: 10,
        at_ns: 5,
        title: "two threads".into(),
        text: "lockstead: DEADLOCK".into(),
        ..Finding::default()
    };
    let whole = RunFacts {
        command: vec!["prog".into()],
        wall_ns: 1000 * MS,
        processors: 2,
        cpu_ns: 1500 * MS,
        others_ns: None,
        silent_processes: (areas.len() - processes.len()) as u64,
        checked: false,
        findings: vec![finding],
        semaphores: None,
        glimpses: Vec::new(),
    };
    assemble(processes, whole, options)
}

#[test]
fn the_worst_come_first_and_the_rest_is_summed() {
    let area = Area::new();
    let ledger = area.ledger();
    for number in 1..=30 {
        lock(&ledger, 0x1000 * number, 0, 10 * number, &[number * MS]);
    }
    lock(&ledger, 0x90_0000, 0, 1 << 20, &[]);
    // Initialised and never used: not even counted.
    lock(&ledger, 0x91_0000, 0, 0, &[]);
    let report = report(&[&area], &ReportOptions::default());
    let process = &report.processes[0];
    let order: Vec<_> = process.locks.iter().map(|lock| lock.name.as_str()).collect();
    assert_eq!(order.len(), 10);
    assert_eq!((order[0], order[9]), ("lock_1e000#30", "lock_15000#21"));
    assert_eq!(process.totals.locks, 31);
    assert_eq!(process.totals.acquisitions, (1 << 20) + 10 * 30 * 31 / 2);
    assert_eq!(process.totals.waited_ns, 30 * 31 / 2 * MS);
    let shown: u64 = process.locks.iter().map(|lock| lock.wait.total_ns).sum();
    assert_eq!(shown + process.more.waited_ns, process.totals.waited_ns);
    let acquired: u64 = process.locks.iter().map(|lock| lock.acquisitions).sum();
    assert_eq!(acquired + process.more.acquisitions, process.totals.acquisitions);
    assert_eq!(process.more.locks, 21);
    assert_eq!(report.findings[0].title, "two threads");
}

#[test]
fn every_order_puts_its_own_worst_first() {
    let area = Area::new();
    let ledger = area.ledger();
    lock(&ledger, 0x1000, 0, 50, &[60, 60, 60]);
    lock(&ledger, 0x2000, 0, 50, &[100, 100]);
    lock(&ledger, 0x3000, 0, 50, &[170]);
    lock(&ledger, 0x4000, 0, 9999, &[1]);
    let held = lock(&ledger, 0x5000, 0, 50, &[2]);
    ledger.extension(held).unwrap().hold.add(1 << 30, 1, 0);
    for (sort, first) in [
        (Sort::Wait, "lock_2000"),
        (Sort::MaxWait, "lock_3000"),
        (Sort::Hold, "lock_5000"),
        (Sort::Acquisitions, "lock_4000"),
        (Sort::Contended, "lock_1000"),
        (Sort::Name, "lock_1000"),
    ] {
        let report = report(&[&area], &ReportOptions { sort, ..ReportOptions::default() });
        let found = &report.processes[0].locks[0].name;
        assert!(found.starts_with(first), "{sort:?}: {found}");
    }
    // By name: the worst are chosen first, then ordered.
    let two =
        report(&[&area], &ReportOptions { sort: Sort::Name, top: 2, ..ReportOptions::default() });
    let names: Vec<_> = two.processes[0].locks.iter().map(|lock| &lock.name[..9]).collect();
    assert_eq!(names, ["lock_1000", "lock_2000"]);
}

#[test]
fn times_places_and_shares_are_those_recorded() {
    let area = Area::new();
    let ledger = area.ledger();
    let index = lock(&ledger, 0x1000, 0x41, 200, &[10, 1000, 10, 1000, 10, 3_000_000]);
    let statistics = ledger.extension(index).unwrap();
    statistics.timed_out.store(3, Relaxed);
    statistics.refused.store(4, Relaxed);
    let holder = ledger.intern_stack(&[0x300], 0);
    statistics.hold.add(500, 128, holder);
    ledger.add_share(&statistics.held_at, holder, 128, 500 * 128);
    lock(&ledger, 0x2000, 0, 1, &[1_000_000]);
    let report = report(&[&area], &ReportOptions::default());
    let lock = &report.processes[0].locks[0];
    assert_eq!((lock.kind, lock.type_name.as_str(), lock.locks), ("mutex", "mutex", 1));
    assert_eq!(lock.address, Some(0x1000));
    assert_eq!((lock.contended, lock.contended_percent), (6, 3.0));
    assert_eq!((lock.timed_out, lock.refused), (3, 4));
    assert_eq!((lock.wait.count, lock.wait.total_ns, lock.wait.max_ns), (6, 3_002_030, 3_000_000));
    assert!((8..16).contains(&lock.wait.p50_ns), "{}", lock.wait.p50_ns);
    assert!(lock.wait.p99_ns > 2_000_000 && lock.wait.p99_ns <= 3_000_000);
    assert_eq!(lock.wait.max_at.as_deref(), Some("f101() at x.c:257"));
    let buckets = &lock.wait.histogram;
    assert_eq!((buckets[0].from_ns, buckets[0].count), (8, 3));
    assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 6);
    assert_eq!(buckets.last().map(|bucket| bucket.from_ns), Some(1 << 21));
    assert_eq!((lock.hold.count, lock.hold.total_ns), (128, 64_000));
    assert_eq!(lock.waited_at.len(), 2);
    assert_eq!(lock.waited_at[0].site, "f101() at x.c:257");
    assert_eq!((lock.waited_at[0].count, lock.waited_at[0].total_ns), (3, 3_002_000));
    assert!(lock.waited_at[0].share_percent > 99.9);
    assert_eq!(lock.waited_at[0].stack.as_ref().unwrap().frames.len(), 2);
    assert_eq!((lock.held_at[0].site.as_str(), lock.held_at[0].count), ("f300() at x.c:768", 128));
    assert!((lock.share_percent - 75.0).abs() < 0.1, "{}", lock.share_percent);
    assert_eq!(lock.initialised_at.as_ref().unwrap().frames.len(), 2);
}

#[test]
fn acquisitions_in_the_threads_caches_count() {
    let area = Area::new();
    let ledger = area.ledger();
    let index = lock(&ledger, 0x1000, 0x41, 5, &[]);
    let fill = |line: usize, tid: usize, index: u32, generation: u32, count: u32| {
        let line = &ledger.thread(tid).unwrap().cache[line].known;
        line.address.store(if index < 4000 { 0x1000 } else { 0x7000 }, Relaxed);
        line.lock.store(index, Relaxed);
        line.generation.store(generation, Relaxed);
        line.count.store(count, Relaxed);
    };
    thread(&ledger, 1, 0, 0);
    thread(&ledger, 2, 0, 500);
    let generation = ledger.lock(index).unwrap().generation.load(Relaxed);
    fill(0, 0, index, generation, 100);
    fill(7, 1, index, generation, 1000);
    let by_count = ReportOptions { sort: Sort::Acquisitions, ..ReportOptions::default() };
    assert_eq!(report(&[&area], &by_count).processes[0].locks[0].acquisitions, 1105);
    // The lock is destroyed before the threads have added what they counted.
    ledger.destroy_lock(0x1000);
    let dead = report(&[&area], &by_count);
    let lock = &dead.processes[0].locks[0];
    assert_eq!((lock.acquisitions, lock.life), (1105, "destroyed"));
    assert!(dead.processes[0].losses.is_none());
    // A cache line of nobody's lock is a loss, and said.
    fill(8, 1, 4000, 1, 9);
    assert_eq!(report(&[&area], &by_count).processes[0].losses.late_acquisitions, 9);
}

#[test]
fn what_had_not_ended_counts_up_to_the_end() {
    let area = Area::new();
    let ledger = area.ledger();
    let index = lock(&ledger, 0x1000, 0, 2, &[]);
    let owner = thread(&ledger, 1, 0, 0);
    let waiter = thread(&ledger, 2, 100, 0);
    let stack = ledger.intern_stack(&[0x300], 0);
    let held = Holding {
        address: 0x1000,
        lock: index,
        stack,
        started: BEGAN + 200 * MS,
        ..Holding::default()
    };
    owner.stack().push(&held).unwrap();
    let lent = Holding { address: 0x2000, flags: Flags::LENT, ..held };
    lock(&ledger, 0x2000, 0, 1, &[]);
    owner.stack().push(&lent).unwrap();
    let clock = BEGAN + 990 * MS;
    ledger.header().clock_before.store(clock, Relaxed);
    let (tick, index) = (tick_of(clock), lock(&ledger, 0x3000, 0, 1, &[]));
    let short = Holding { address: 0x3000, lock: index, tick, started: 0, ..held };
    owner.stack().push(&short).unwrap();
    waiter.record.wait.begin(&Waiting {
        how: WaitKind::MUTEX,
        stack,
        target: 0x1000,
        since: BEGAN + 400 * MS,
        deadline: 0,
        companion: 0,
    });
    owner.record.wait.begin(&Waiting {
        how: WaitKind::JOIN,
        stack,
        target: 0x1000,
        since: BEGAN + 900 * MS,
        deadline: 0,
        companion: 0,
    });
    let report = report(&[&area], &ReportOptions::default());
    let process = &report.processes[0];
    let lock = &process.locks[0];
    assert_eq!((lock.still_waiting, lock.still_held), (1, 1));
    assert_eq!((lock.wait.total_ns, lock.hold.total_ns), (600 * MS, 800 * MS));
    assert_eq!(lock.waited_at[0].site, "f300() at x.c:768");
    let short = process.locks.iter().chain(&process.idle).find(|lock| lock.name.contains("3000"));
    assert!(short.is_none(), "held at the end, nobody knows how long");
    let by_count = ReportOptions { sort: Sort::Acquisitions, ..ReportOptions::default() };
    let all = self::report(&[&area], &by_count);
    let short = all.processes[0].locks.iter().find(|lock| lock.name.contains("3000")).unwrap();
    assert_eq!((short.still_held, short.hold.count), (1, 0));
    let worst = &process.threads.worst[0];
    assert_eq!((worst.tid, worst.waited_ns, worst.stuck), (2, 600 * MS, true));
    assert_eq!(worst.start.as_deref(), Some("start_77"));
    assert_eq!(worst.name.as_deref(), Some("worker-0"));
    let waiting = &process.waiting;
    assert_eq!((waiting.thread_ns, waiting.waited_ns), (1900 * MS, 600 * MS));
    assert_eq!(waiting.idled_ns, 100 * MS);
    assert!((waiting.waiting_threads - 0.6).abs() < 1e-9);
    assert!((waiting.waited_percent - 600.0 / 19.0).abs() < 1e-9);
}

#[test]
fn threads_are_counted_with_those_whose_records_were_used_again() {
    let area = Area::new();
    let ledger = area.ledger();
    lock(&ledger, 0x1000, 0, 2, &[5]);
    thread(&ledger, 1, 0, 0);
    for (tid, from, to) in [(2, 0, 100), (3, 50, 200), (4, 100, 300)] {
        thread(&ledger, tid, from, to).record.waited.store(u64::from(tid) * MS, Relaxed);
    }
    let before = report(&[&area], &ReportOptions::default());
    let threads = &before.processes[0].threads;
    assert_eq!((threads.created, threads.peak), (4, 3));
    assert_eq!(threads.worst.iter().map(|t| t.tid).collect::<Vec<_>>(), [4, 3, 2]);
    let retired = &ledger.header().retired;
    retired.threads.store(100, Relaxed);
    retired.waited.store(7 * MS, Relaxed);
    retired.lived.store(70 * MS, Relaxed);
    let after = report(&[&area], &ReportOptions::default());
    assert_eq!(after.processes[0].threads.created, 104);
    assert_eq!(after.processes[0].waiting.waited_ns, 16 * MS);
    assert_eq!(after.processes[0].waiting.thread_ns, (1000 + 100 + 150 + 200 + 70) * MS);
}

#[test]
fn waits_for_work_stand_apart() {
    let area = Area::new();
    let ledger = area.ledger();
    lock(&ledger, 0x1000, 0, 2, &[5]);
    for (address, kind) in [
        (0x2000, ObjectKind::Condition),
        (0x3000, ObjectKind::Semaphore),
        (0x4000, ObjectKind::Barrier),
    ] {
        let index = ledger.use_lock(&birth(&ledger, address, kind, 0)).unwrap();
        ledger.extension(index).unwrap().wait.add(address * MS, 1, 0);
    }
    let report = report(&[&area], &ReportOptions::default());
    let process = &report.processes[0];
    assert_eq!(process.locks.len(), 1);
    let idle: Vec<_> = process.idle.iter().map(|object| object.kind).collect();
    assert_eq!(idle, ["barrier", "semaphore", "condition"]);
    assert_eq!(process.totals.waited_ns, 5);
}

#[test]
fn a_class_is_one_row_when_asked_for() {
    let area = Area::new();
    let ledger = area.ledger();
    for number in 1..=100 {
        lock(&ledger, 0x1000 * number, 0x41, 2, &[10]);
    }
    lock(&ledger, 0x90_0000, 0x51, 2, &[400]);
    let single = report(&[&area], &ReportOptions::default());
    assert_eq!(single.processes[0].locks[0].name, "lock_900000#1");
    let class = report(&[&area], &ReportOptions { by_class: true, ..ReportOptions::default() });
    let lock = &class.processes[0].locks[0];
    assert_eq!(lock.name, "mutexes from f41() at x.c:65");
    assert_eq!((lock.locks, lock.acquisitions, lock.address), (100, 200, None));
    assert_eq!((lock.wait.count, lock.wait.total_ns, lock.waited_at.len()), (100, 1000, 1));
    assert_eq!(class.processes[0].locks.len(), 2);
    assert_eq!(class.processes[0].totals, single.processes[0].totals);
}

#[test]
fn processes_are_ordered_by_waiting_and_idle_ones_counted() {
    let areas = [Area::new(), Area::new(), Area::new()];
    lock(&areas[0].ledger(), 0x1000, 0, 2, &[]);
    lock(&areas[2].ledger(), 0x1000, 0, 2, &[5]);
    thread(&areas[2].ledger(), 1, 0, 0).record.waited.store(5, Relaxed);
    let report = report(&[&areas[0], &areas[1], &areas[2]], &ReportOptions::default());
    assert_eq!(report.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [12, 10]);
    assert_eq!(report.silent_processes, 1);
    assert!(report.processes[1].locks.is_empty(), "nothing was waited for");
    // What was lost is said even where nothing else was recorded.
    areas[1].ledger().header().losses.locks.store(3, Relaxed);
    let report = self::report(&[&areas[1]], &ReportOptions::default());
    assert_eq!(report.processes[0].losses.locks, 3);
}

#[test]
fn the_live_view_is_the_difference_of_two_moments() {
    let area = Area::new();
    let ledger = area.ledger();
    let busy = lock(&ledger, 0x1000, 0, 10, &[100 * MS]);
    let quiet = lock(&ledger, 0x2000, 0, 10, &[900 * MS]);
    let worker = thread(&ledger, 1, 0, 0);
    let waiter = thread(&ledger, 2, 0, 0);
    let line = &worker.cache[3].known;
    line.address.store(0x1000, Relaxed);
    line.lock.store(busy, Relaxed);
    line.generation.store(ledger.lock(busy).unwrap().generation.load(Relaxed), Relaxed);
    line.count.store(50, Relaxed);
    let waiting = Waiting {
        how: WaitKind::MUTEX,
        stack: 0,
        target: 0x1000,
        since: BEGAN + 400 * MS,
        deadline: 0,
        companion: 0,
    };
    waiter.record.wait.begin(&waiting);
    let before = LiveSample::take(&ledger, BEGAN + 500 * MS);
    line.count.store(80, Relaxed);
    ledger.extension(busy).unwrap().contended.fetch_add(1, Relaxed);
    let held =
        Holding { address: 0x1000, lock: busy, started: BEGAN + 600 * MS, ..Holding::default() };
    worker.stack().push(&held).unwrap();
    let after = LiveSample::take(&ledger, BEGAN + 1500 * MS);
    let live = after.since(&before, &ledger);
    assert_eq!((live.interval_ns, live.threads, live.acquisitions), (1000 * MS, 2, 30));
    assert_eq!(live.locks.len(), 1, "nothing happened with {quiet}");
    let rate = live.locks[0];
    assert_eq!((rate.lock, rate.acquisitions, rate.contended), (busy, 30, 1));
    // The wait that lasts began before the interval: all of it was waiting.
    let held = Lasting { ns: 900 * MS, exact: true };
    assert_eq!((rate.waited_ns, rate.waiting, rate.held), (1000 * MS, 1, Some(held)));
    assert_eq!((live.waiters[0].tid, live.waiters[0].for_ns), (2, 1100 * MS));
    assert_eq!((live.holders[0].tid, live.holders[0].time), (1, held));
    // The wait ends and is recorded: it is not counted twice.
    waiter.record.wait.end();
    ledger.extension(busy).unwrap().wait.add(1200 * MS, 1, 0);
    let later = LiveSample::take(&ledger, BEGAN + 2000 * MS);
    assert_eq!(later.since(&after, &ledger).locks[0].waited_ns, 100 * MS);
    // A new life of the address starts from nothing.
    worker.stack().pop(0x1000);
    line.count.store(0, Relaxed);
    ledger.destroy_lock(0x1000);
    lock(&ledger, 0x1000, 0, 3, &[7]);
    let newest = LiveSample::take(&ledger, BEGAN + 3000 * MS);
    let rate = newest.since(&later, &ledger).locks[0];
    assert_eq!((rate.acquisitions, rate.waited_ns), (3, 7));
}
