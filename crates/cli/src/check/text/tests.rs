use super::*;
use lockstead_inspect::check::model::{LockIdentity, ThreadIdentity};
use lockstead_inspect::stack::{Frame, Stack, StackEnd};

fn lock(name: &str) -> LockIdentity {
    LockIdentity { name: name.into(), type_name: "mutex".into(), ..LockIdentity::default() }
}

fn thread(tid: u32) -> ThreadIdentity {
    ThreadIdentity { tid, name: Some(format!("t{tid}")) }
}

/// Returns a stack with the innermost function, `depth` frames in all.
fn stack(function: &str, depth: u32) -> Option<Stack> {
    let frame = |line| Frame {
        function: Some(if line == 1 { function.into() } else { format!("caller_{line}") }),
        file: Some("/src/bank.c".into()),
        line: Some(line),
        ..Frame::default()
    };
    Some(Stack { frames: (1..=depth).map(frame).collect(), end: StackEnd::Bottom })
}

fn step(tid: u32, holds: &str, asks: &str, depth: u32) -> OrderStep {
    OrderStep {
        thread: thread(tid),
        holds: lock(holds),
        holds_how: HoldMode::Write,
        tried: false,
        timed: false,
        acquired: stack("has", depth),
        asks: lock(asks),
        asks_how: HoldMode::Write,
        asked: stack("wants", depth),
        gates: Vec::new(),
        alone: false,
    }
}

fn cycle(steps: Vec<OrderStep>) -> LockOrder {
    LockOrder {
        cycle: CycleKind::Locks,
        signal: None,
        handler: None,
        excuse: None,
        gate: None,
        steps,
    }
}

fn order(level: Level, order: LockOrder) -> Details {
    Details { level: Some(level), order: Some(order), ..Details::default() }
}

#[test]
fn an_inversion_reads_so() {
    let two = vec![step(7, "journal", "accounts", 1), step(8, "accounts", "journal", 1)];
    let text = text("bank (pid 5)", &order(Level::Potential, cycle(two)));
    let wanted = "\
lockstead: POTENTIAL: lock order inversion of 2 locks
  in bank (pid 5): journal -> accounts -> journal
  thread \"t7\" (tid 7)
    asks for accounts (mutex), at:
      wants() at bank.c:1
    holds journal (mutex), acquired at:
      has() at bank.c:1
  thread \"t8\" (tid 8)
    asks for journal (mutex), at:
      wants() at bank.c:1
    holds accounts (mutex), acquired at:
      has() at bank.c:1
";
    assert_eq!(text, wanted);
}

#[test]
fn everything_that_can_be_said_of_two_locks_fits_a_screen() {
    let mut two = vec![step(7, "a", "b", 100), step(8, "b", "a", 100)];
    for step in &mut two {
        step.gates = (0..30).map(|at| lock(&format!("gate_{at}"))).collect();
        (step.holds_how, step.asks_how, step.tried) =
            (HoldMode::Read, HoldMode::RecursiveRead, true);
    }
    let all =
        LockOrder { excuse: Some(OrderExcuse::Gate), gate: Some(lock("gate_3")), ..cycle(two) };
    let text = text("bank (pid 5)", &order(Level::Order, all));
    assert!(text.lines().count() <= 40, "{text}");
    for line in [
        "  no deadlock as it was seen: all of them hold gate_3 (mutex) meanwhile\n",
        "    asks to read b (mutex), at:\n",
        "    holds a (mutex) for reading, acquired by trylock at:\n",
        "    and holds gate_0, gate_1, gate_2, gate_3, 26 more\n",
        "      ... 94 more\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn long_cycles_are_cut_where_they_are_named_and_not_where_they_are_proven() {
    let name = |at: u32| format!("l{at}");
    let many = (0..30).map(|at| step(at, &name(at), &name((at + 1) % 30), 9)).collect();
    let text = text("p", &order(Level::Potential, cycle(many)));
    assert!(text.starts_with("lockstead: POTENTIAL: lock order inversion of 30 locks\n"));
    assert!(
        text.contains("\n  in p: l0 -> l1 -> l2 -> l3 -> l4 -> l5 -> l6 -> l7 -> 22 more -> l0\n")
    );
    assert_eq!(text.matches("    asks for ").count(), 30);
    assert_eq!(text.lines().count(), 2 + 30 * (3 + 2 * FEW_FRAMES));
    let long = "mutex from a_function_with_a_name() at some_file_or_other.c:12, #";
    let two = vec![step(7, &format!("{long}1"), &format!("{long}2"), 1); 2];
    let text = super::text("p", &order(Level::Potential, cycle(two)));
    assert!(text.contains("\n  in p\n"), "{text}");
}

#[test]
fn each_excuse_has_its_words() {
    let words = |excuse, threads: [u32; 2]| {
        let two = vec![step(threads[0], "a", "b", 1), step(threads[1], "b", "a", 1)];
        let text =
            text("p", &order(Level::Order, LockOrder { excuse: Some(excuse), ..cycle(two) }));
        assert!(text.starts_with("lockstead: ORDER: "), "{text}");
        let line = text.lines().nth(2).expect("a line").to_owned();
        line.strip_prefix("  no deadlock as it was seen: ").expect(&line).to_owned()
    };
    assert_eq!(words(OrderExcuse::OneThread, [7, 7]), "one thread did it all");
    assert_eq!(words(OrderExcuse::OneThread, [7, 8]), "fewer threads than locks did it");
    assert_eq!(words(OrderExcuse::Alone, [7, 7]), "the process had one thread then");
    let other = "the locks are not the same, but of the same origin";
    assert_eq!(words(OrderExcuse::OtherInstances, [7, 8]), other);
}

#[test]
fn an_order_between_a_handler_and_what_it_interrupts_is_a_broken_rule() {
    let two = vec![step(7, "log", "table", 1), step(8, "table", "log", 1)];
    let way = LockOrder {
        cycle: CycleKind::Handler,
        signal: Some(10),
        handler: Some(thread(9)),
        ..cycle(two)
    };
    let text = text("p", &order(Level::Rule, way));
    assert!(text.starts_with("lockstead: RULE: use in a signal handler\n"), "{text}");
    let end = "\
  thread \"t8\" (tid 8)
    holds table (mutex), acquired at:
      has() at bank.c:1
  a handler of SIGUSR1 that interrupts it (seen in thread \"t9\" (tid 9))
    asks for log (mutex), at:
      wants() at bank.c:1
";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn each_rule_says_what_was_done_and_what_came_before() {
    for rule in Rule::ALL.iter().copied().filter(|rule| rule.story().is_some()) {
        let violation = RuleViolation {
            thread: thread(7),
            lock: lock("journal"),
            stack: stack("does", 20),
            acquired: matches!(rule, Rule::JoinHolding | Rule::ConditionHolding)
                .then(|| stack("has", 20))
                .flatten(),
            other: Some(thread(8)),
            earlier: stack("did", 20),
            other_lock: Some(lock("second")),
            number: 10,
        };
        let details = |level| Details {
            level: Some(level),
            rule: Some(rule.id().into()),
            violation: Some(violation.clone()),
            ..Details::default()
        };
        let text = text("bank (pid 5)", &details(Level::Rule));
        let head = format!("lockstead: RULE: {}\n  in bank (pid 5)\n", rule.phrase());
        assert!(text.starts_with(&head), "{text}");
        for part in
            ["\n  thread \"t7\" (tid 7)\n", "journal (mutex)", "does() at bank.c:1", "did() at"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().count() <= 40 && !text.contains(['{', '}']), "{text}");
        let doubtful = super::text("bank (pid 5)", &details(Level::Order));
        assert!(doubtful.starts_with("lockstead: ORDER: "), "{doubtful}");
        assert!(doubtful.contains("\n  no harm as it was seen: "), "{doubtful}");
    }
}

#[test]
fn what_is_not_known_is_said_so() {
    let details = Details {
        level: Some(Level::Rule),
        rule: Some(Rule::ThreadExit.id().into()),
        violation: Some(RuleViolation {
            thread: ThreadIdentity { tid: 9, name: None },
            ..RuleViolation::default()
        }),
        ..Details::default()
    };
    let wanted = "\
lockstead: RULE: thread exit while holding
  in p
  thread 9
    has ended and holds a lock
";
    assert_eq!(text("p", &details), wanted);
}

#[test]
fn names_from_the_program_are_harmless() {
    let mut two = vec![step(7, "a\x1b[2J", "b", 1), step(8, "b", "a\nlockstead: RULE: x", 1)];
    two[0].thread.name = Some("\x1b]0;x\x07".into());
    let text = text("p", &order(Level::Potential, cycle(two)));
    assert!(!text.contains('\x1b') && text.matches("\nlockstead:").count() == 0, "{text}");
}
