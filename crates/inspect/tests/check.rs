//! The checker on ledgers that are filled here: what it finds, what it leaves
//! out, and that nothing that stands in a ledger can harm it.

use lockstead_inspect::check::closing::CurrentHolders;
use lockstead_inspect::check::describe::Describer;
use lockstead_inspect::check::facts::{CheckFacts, ExcuseFacts, OrderFacts};
use lockstead_inspect::check::model::{CycleKind, Details, Level};
use lockstead_inspect::check::{Checker, order, why};
use lockstead_inspect::report::{LockFacts, Names};
use lockstead_inspect::stack::{Frame, Stack, StackEnd};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::order::{EdgeMode, SeenEdge};
use lockstead_ledger::publish::Holding;
use lockstead_ledger::thread::state;
use lockstead_ledger::violation::{Rule, SeenViolation};
use lockstead_ledger::{Birth, Ledger, LedgerLayout, LedgerPart};
use std::alloc::{Layout as Memory, alloc_zeroed, dealloc};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

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
        // SAFETY: the allocator has just returned zeros of that size, page-aligned.
        let _ =
            unsafe { Ledger::create(base, LedgerLayout::divide(LedgerLayout::SMALLEST), 42, 1) };
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

/// Calls the code at 0x1234 `f1234`, and a lock by its address.
struct Plain;

impl Names for Plain {
    fn stack(&mut self, returns: &[u64], _: u32) -> Stack {
        let frame = |&address: &u64| Frame {
            address,
            function: Some(format!("f{address:x}")),
            ..Frame::default()
        };
        Stack { frames: returns.iter().map(frame).collect(), end: StackEnd::Bottom }
    }

    fn function(&mut self, _: u64) -> Option<String> {
        None
    }

    fn lock(&mut self, facts: &LockFacts) -> String {
        format!("lock_{:x}", facts.address)
    }
}

fn birth(ledger: &Ledger<'_>, address: u64, init: u64) -> Birth {
    let stack = if init == 0 { 0 } else { ledger.intern_stack(&[init, 0x99], 0) };
    Birth {
        address,
        kind: ObjectKind::Mutex,
        attributes: attribute::KNOWN,
        init_stack: stack,
        first_stack: 0,
        module: u32::from(init == 0),
    }
}

fn lock(ledger: &Ledger<'_>, address: u64) -> u32 {
    ledger.init_lock(&birth(ledger, address, 0)).unwrap()
}

fn generation(ledger: &Ledger<'_>, index: u32) -> u32 {
    ledger.lock(index).unwrap().generation.load(Relaxed)
}

fn edge(ledger: &Ledger<'_>, thread: u32, from: u32, to: u32) -> SeenEdge {
    SeenEdge {
        from,
        from_generation: generation(ledger, from),
        from_mode: EdgeMode::Write,
        from_tried: false,
        to_timed: false,
        from_stack: ledger.intern_stack(&[0x100 + u64::from(from), 0x99], 0),
        to,
        to_generation: generation(ledger, to),
        to_mode: EdgeMode::Write,
        to_stack: ledger.intern_stack(&[0x200 + u64::from(to), 0x99], 0),
        thread,
        tid: 1000 + thread,
        gates: 0,
        alone: false,
        in_handler: false,
    }
}

fn look(checker: &mut Checker, ledger: &Ledger<'_>, last: bool) -> Vec<CheckFacts> {
    let mut news = Vec::new();
    while checker.look(ledger, 100, last, &mut news) {}
    news
}

fn orders(news: Vec<CheckFacts>) -> Vec<OrderFacts> {
    let order = |facts| match facts {
        CheckFacts::Order(order) => Some(order),
        CheckFacts::Violation(_) => None,
    };
    news.into_iter().filter_map(order).collect()
}

fn named(ledger: &Ledger<'_>, facts: &CheckFacts) -> Details {
    let mut with = Describer {
        ledger: *ledger,
        names: &mut Plain,
        threads: &|thread| Some(format!("t{}", thread.tid)),
        program: "prog",
    };
    match facts {
        CheckFacts::Order(order) => with.order(order),
        CheckFacts::Violation(violation) => with.violation(violation),
    }
}

#[test]
fn two_threads_in_both_orders_are_found_once_with_all_that_is_known() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b] = [0x1000, 0x2000].map(|address| lock(&ledger, address));
    let mut checker = Checker::default();
    ledger.add_edge(&edge(&ledger, 1, a, b));
    assert_eq!(look(&mut checker, &ledger, false), []);
    ledger.add_edge(&edge(&ledger, 2, b, a));
    ledger.add_edge(&edge(&ledger, 3, b, a));
    let news = look(&mut checker, &ledger, false);
    assert_eq!(news.len(), 1, "{news:?}");
    let details = named(&ledger, &news[0]);
    assert_eq!(details.level, Some(Level::Potential));
    let found = details.order.expect("an order");
    assert_eq!((found.cycle, found.excuse), (CycleKind::Locks, None));
    let first = found.steps.iter().find(|step| step.holds.name == "lock_1000").expect("a step");
    assert_eq!((first.asks.name.as_str(), first.thread.tid), ("lock_2000", 1001));
    assert_eq!(first.thread.name.as_deref(), Some("t1001"));
    let function = |stack: &Option<Stack>| stack.as_ref().unwrap().frames[0].function.clone();
    assert_eq!(function(&first.acquired), Some(format!("f{:x}", 0x100 + a)));
    assert_eq!(function(&first.asked), Some(format!("f{:x}", 0x200 + b)));
    assert_eq!(look(&mut checker, &ledger, true), []);
    assert_eq!((checker.counts().edges, checker.counts().locks), (3, 2));
}

#[test]
fn a_common_gate_is_an_excuse_that_is_named() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b, gate] = [0x1000, 0x2000, 0x3000].map(|address| lock(&ledger, address));
    let gates = ledger.intern_lock_list(&[u64::from(gate)]);
    let mut checker = Checker::default();
    // It is known by its own edges.
    ledger.add_edge(&edge(&ledger, 1, gate, a));
    ledger.add_edge(&SeenEdge { gates, ..edge(&ledger, 1, a, b) });
    ledger.add_edge(&SeenEdge { gates, ..edge(&ledger, 2, b, a) });
    let found = orders(look(&mut checker, &ledger, false));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].level, Level::Order);
    let Some(ExcuseFacts::Gate(life)) = found[0].excuse else { panic!("{:?}", found[0]) };
    assert_eq!(life.address, 0x3000);
}

#[test]
fn an_order_ends_with_the_life_of_its_lock() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b] = [0x1000, 0x2000].map(|address| lock(&ledger, address));
    let before = edge(&ledger, 1, a, b);
    ledger.add_edge(&before);
    // The life is over, and another begins at the address.
    ledger.add_edge(&SeenEdge { to: a, to_generation: 0, ..before });
    ledger.init_lock(&birth(&ledger, 0x1000, 0)).unwrap();
    ledger.add_edge(&edge(&ledger, 2, b, a));
    // Late: of the life that is over.
    ledger.add_edge(&SeenEdge { thread: 3, ..before });
    let mut checker = Checker::default();
    let found = orders(look(&mut checker, &ledger, true));
    assert!(found.iter().all(|found| found.level == Level::Order), "{found:?}");
}

#[test]
fn the_first_edge_of_a_new_life_ends_the_old_one_too() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b] = [0x1000, 0x2000].map(|address| lock(&ledger, address));
    let before = edge(&ledger, 1, a, b);
    ledger.add_edge(&before);
    ledger.init_lock(&birth(&ledger, 0x1000, 0)).unwrap();
    ledger.add_edge(&edge(&ledger, 2, b, a));
    ledger.add_edge(&SeenEdge { thread: 3, ..before });
    let found = orders(look(&mut Checker::default(), &ledger, true));
    assert!(found.iter().all(|found| found.level == Level::Order), "{found:?}");
}

#[test]
fn what_serves_as_a_signal_has_no_order() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b] = [0x1000, 0x2000].map(|address| lock(&ledger, address));
    ledger.lock(a).unwrap().handed_on.store(1, Relaxed);
    ledger.add_edge(&edge(&ledger, 1, a, b));
    ledger.add_edge(&edge(&ledger, 2, b, a));
    assert_eq!(look(&mut Checker::default(), &ledger, true), []);
}

#[test]
fn a_record_that_is_never_complete_holds_up_nothing_for_long() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b] = [0x1000, 0x2000].map(|address| lock(&ledger, address));
    ledger.claim(LedgerPart::Edges, 1).unwrap();
    ledger.add_edge(&edge(&ledger, 1, a, b));
    ledger.add_edge(&edge(&ledger, 2, b, a));
    let mut checker = Checker::default();
    let looks = (0..100).take_while(|_| look(&mut checker, &ledger, false).is_empty()).count();
    assert!((1..100).contains(&looks), "{looks}");
    // A process that has ended completes nothing any more.
    assert_eq!(look(&mut Checker::default(), &ledger, true).len(), 1);
}

#[test]
fn violations_come_with_their_locks() {
    let area = Area::new();
    let ledger = area.ledger();
    let a = lock(&ledger, 0x1000);
    let violation = SeenViolation {
        rule: Rule::Recursion,
        lock: a,
        generation: generation(&ledger, a),
        address: 0x1000,
        stack: ledger.intern_stack(&[0x11, 0x99], 0),
        thread: 1,
        tid: 1001,
        other_tid: 0,
        other_stack: ledger.intern_stack(&[0x12, 0x99], 0),
        other_lock: 0,
        number: 0,
        weak: false,
    };
    ledger.add_violation(&violation);
    ledger.add_violation(&SeenViolation { rule: Rule::ProcessExit, weak: true, ..violation });
    ledger.add_violation(&SeenViolation { lock: 0, address: 0xabc, ..violation });
    let news = look(&mut Checker::default(), &ledger, true);
    let details: Vec<Details> = news.iter().map(|facts| named(&ledger, facts)).collect();
    let told = |at: usize| {
        let violation = details[at].violation.as_ref().unwrap();
        (
            details[at].rule.as_deref().unwrap(),
            details[at].level.unwrap(),
            violation.lock.name.as_str(),
        )
    };
    assert_eq!(told(0), ("recursion", Level::Rule, "lock_1000"));
    assert_eq!(told(1), ("process-exit-while-holding", Level::Order, "lock_1000"));
    assert_eq!(told(2), ("recursion", Level::Rule, "lock at 0xabc"));
    let earlier = details[0].violation.as_ref().unwrap().earlier.as_ref().unwrap();
    assert_eq!(earlier.frames[0].function.as_deref(), Some("f12"));
    assert_ne!(details[0].cause, details[1].cause);
    assert_eq!(details[0].stacks().len(), 2);
}

#[test]
fn a_lock_keeps_its_name_after_its_end() {
    let area = Area::new();
    let ledger = area.ledger();
    let a = ledger.init_lock(&birth(&ledger, 0x1000, 0x40)).unwrap();
    let violation = SeenViolation {
        rule: Rule::Freed,
        lock: a,
        generation: generation(&ledger, a),
        address: 0x1000,
        stack: ledger.intern_stack(&[0x11, 0x99], 0),
        thread: 1,
        tid: 1001,
        other_tid: 0,
        other_stack: 0,
        other_lock: 0,
        number: 0,
        weak: false,
    };
    ledger.add_violation(&violation);
    let class = || {
        let news = look(&mut Checker::default(), &ledger, true);
        named(&ledger, &news[0]).violation.expect("a violation").lock.class
    };
    assert_eq!(class(), "mutexes from f40+0x0");
    ledger.destroy_lock(0x1000);
    assert_eq!(class(), "mutexes from f40+0x0");
    // What is at the address now is another lock.
    ledger.init_lock(&birth(&ledger, 0x1000, 0x41)).unwrap();
    assert_eq!(class(), "mutexes used in f11+0x0", "perhaps not first");
}

#[test]
fn one_cause_is_the_same_in_all_processes() {
    let cause = |first: u64| {
        let area = Area::new();
        let ledger = area.ledger();
        let [a, b] = [first, 0x2000].map(|address| {
            ledger.init_lock(&birth(&ledger, address, 0x40 + (address >> 12 & 1))).unwrap()
        });
        ledger.add_edge(&edge(&ledger, 1, a, b));
        ledger.add_edge(&edge(&ledger, 2, b, a));
        let news = look(&mut Checker::default(), &ledger, true);
        named(&ledger, &news[0]).cause.expect("a cause")
    };
    assert_eq!(cause(0x1000), cause(0x9000), "the addresses differ, their origin does not");
    assert_ne!(cause(0x1000), cause(0x4000), "another origin");
}

#[test]
fn an_inversion_waits_while_it_may_be_closing() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b] = [0x1000, 0x2000].map(|address| lock(&ledger, address));
    ledger.add_edge(&edge(&ledger, 1, a, b));
    ledger.add_edge(&edge(&ledger, 2, b, a));
    let found = orders(look(&mut Checker::default(), &ledger, true)).remove(0);
    let may_close = || CurrentHolders::of(&ledger).may_close(&found);
    let threads = [1, 2].map(|_| {
        let thread = ledger.thread(ledger.claim(LedgerPart::Threads, 1).unwrap()).unwrap();
        thread.record.state.store(state::LIVE, Relaxed);
        thread
    });
    let hold = |thread: usize, address| {
        threads[thread].stack().push(&Holding { address, ..Holding::default() }).unwrap();
    };
    assert!(!may_close());
    hold(0, 0x1000);
    assert!(!may_close(), "one of two");
    hold(1, 0x2000);
    assert!(may_close(), "each has what the other wants");
    hold(0, 0x2000);
    assert!(!may_close(), "the first has got both");
    threads[0].stack().pop(0x2000);
    assert!(may_close());
    threads[1].record.state.store(state::ENDED, Relaxed);
    assert!(!may_close());
}

#[test]
fn the_order_of_a_process_is_recorded_each_pair_once() {
    let area = Area::new();
    let ledger = area.ledger();
    let [a, b, c] = [0x1000, 0x2000, 0x3000].map(|address| lock(&ledger, address));
    for (thread, from, to) in [(1, a, b), (2, a, b), (2, b, c)] {
        ledger.add_edge(&edge(&ledger, thread, from, to));
    }
    let mut checker = Checker::default();
    look(&mut checker, &ledger, true);
    let lives = checker.into_lives();
    let mut with = Describer { ledger, names: &mut Plain, threads: &|_| None, program: "prog" };
    let recorded = order::record(&lives, &mut with);
    assert_eq!((recorded.edges.len(), recorded.locks.len(), recorded.left_out), (2, 3, 0));
    let json = serde_json::to_string(&recorded).unwrap();
    let read: order::RecordedOrder = serde_json::from_str(&json).unwrap();
    assert_eq!(read, recorded);
    let only = |word| match why::meant(&recorded, word) {
        why::Meant::Locks(locks) => locks,
        other => panic!("{other:?}"),
    };
    let way = why::way(&recorded, &only("lock_1000"), &only("lock_3000")).expect("a way");
    let threads: Vec<u32> =
        way.edges.iter().map(|edge| recorded.threads[edge.thread].tid).collect();
    assert_eq!((threads, way.by_class), (vec![1001, 1002], false));
    assert!(why::way(&recorded, &only("lock_3000"), &BTreeSet::from([0])).is_none());
}

/// Shows that, whatever a program writes over what it recorded, there is no panic, no end that does
/// not come, and names for what is found all the same.
#[test]
fn garbage_does_no_harm() {
    for seed in 1..40_u64 {
        let area = Area::new();
        let ledger = area.ledger();
        let locks: Vec<u32> = (1..20).map(|at| lock(&ledger, at << 12)).collect();
        let mut state = seed;
        let mut any = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let [from, to] = [0, 1].map(|_| locks[any(19) as usize]);
            ledger.add_edge(&edge(&ledger, any(4) as u32 + 1, from, to));
        }
        ledger.claim(LedgerPart::Violations, 30).unwrap();
        let layout = *ledger.layout();
        let regions = [layout.edges, layout.violations, layout.locks, layout.stacks];
        for _ in 0..600 {
            let region = regions[any(4) as usize];
            let at = region.offset as usize + any(20_000) as usize / 8 * 8;
            let word = match any(4) {
                0 => u64::MAX,
                1 => any(30) | any(30) << 32,
                2 => any(1 << 31) << 32 | any(1 << 31),
                _ => 0,
            };
            // SAFETY: inside the area, aligned, and nobody else uses it.
            unsafe { area.base.add(at).cast::<u64>().write(word) };
        }
        ledger.header().edges_used.store(any(1 << 20), Relaxed);
        ledger.header().violations_used.store(any(1 << 20), Relaxed);
        let mut checker = Checker::default();
        let news = look(&mut checker, &ledger, true);
        for facts in news.iter().take(200) {
            let details = named(&ledger, facts);
            assert!(details.level.is_some() && details.cause.is_some());
            let _ = CurrentHolders::of(&ledger);
        }
        let lives = checker.into_lives();
        let mut with = Describer { ledger, names: &mut Plain, threads: &|_| None, program: "prog" };
        order::record(&lives, &mut with);
    }
}
