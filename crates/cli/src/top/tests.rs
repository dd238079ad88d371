//! The live view on terminals of several sizes.

use super::draw::draw;
use super::flags::Column;
use super::keys::{self, Wish};
use super::lines::{of_batch, of_terminal, room};
use super::page::LockPage;
use super::page_lines::of_page;
use super::screen::{ChosenLock, Lookup, Screen, ScreenChoices};
use lockstead_inspect::report::OneLock;
use lockstead_inspect::report::live::{Lasting, Live, LiveHolder, LiveWaiter, LockRate};
use lockstead_inspect::report::model::{Durations, ReportSite};
use lockstead_ledger::publish::WaitKind;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const MS: u64 = 1_000_000;

/// Names that tell what was asked for, and how often.
#[derive(Default)]
struct Counting(usize);

impl Lookup for Counting {
    fn lock(&mut self, index: u32, _: Option<u32>) -> String {
        self.0 += 1;
        format!("lock\x1b_{index}")
    }

    fn site(&mut self, stack: u32) -> String {
        self.0 += 1;
        format!("function_{stack}() at some_file.c:{stack}")
    }

    fn thread(&mut self, tid: u32, name: Option<&str>) -> String {
        self.0 += 1;
        format!("{} ({tid})", name.unwrap_or("?"))
    }

    fn stack(&mut self, stack: u32) -> Vec<String> {
        self.0 += 1;
        vec![self.site(stack), format!("caller_{stack}() at some_file.c:9")]
    }

    fn one(&mut self, lock: ChosenLock) -> Option<OneLock> {
        (lock.generation == 1).then(|| OneLock {
            type_name: "recursive mutex".into(),
            address: 0xabc0,
            wait: Durations {
                count: 1200,
                total_ns: 5000 * MS,
                p50_ns: MS,
                p99_ns: 8 * MS,
                max_ns: 33 * MS,
                max_at: Some("slow() at a.c:1".into()),
                ..Durations::default()
            },
            hold: Durations { count: 3, total_ns: 7 * MS, ..Durations::default() },
            waited_at: vec![place_of("put\x1b() at a.c:5", 75.0), place_of("get() at a.c:7", 25.0)],
            held_at: vec![place_of("put() at a.c:6", 100.0)],
            woken_at: Vec::new(),
            initialised_at: None,
        })
    }
}

fn place_of(site: &str, share_percent: f64) -> ReportSite {
    ReportSite {
        site: site.into(),
        function: None,
        file: None,
        line: None,
        count: 900,
        total_ns: 3750 * MS,
        share_percent,
        others: false,
        through: None,
        stack: None,
        callers: Vec::new(),
    }
}

fn press(key: KeyEvent, choices: &mut ScreenChoices, live: &Live) -> Wish {
    keys::press(key, choices, live, &mut Counting::default())
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Returns a second in which the lock `n` was waited for `n` ms, for `n` up to `locks`.
fn live(locks: u32, threads: u32) -> Live {
    let waiter = |n: u32| LiveWaiter {
        tid: 1000 + n,
        name: Some(format!("worker-{n}")),
        how: WaitKind::MUTEX,
        lock: Some(n + 1),
        target: 0x10,
        for_ns: u64::from(1000 - n) * MS,
        stack: n,
    };
    let holder = |n: u32| LiveHolder {
        tid: 2000 + n,
        name: None,
        lock: n + 1,
        shared: n == 1,
        time: Lasting { ns: u64::from(5000 - n) * MS, exact: n.is_multiple_of(2) },
        stack: n,
    };
    Live {
        interval_ns: 1000 * MS,
        threads: 40,
        acquisitions: 1_230_000,
        waited_ns: 1430 * MS,
        locks: (1..=locks)
            .map(|n| LockRate {
                lock: n,
                generation: 1,
                waited_ns: u64::from(n) * MS,
                acquisitions: u64::from(1000 - n.min(1000)),
                contended: 10,
                waiting: u32::from(n == 7) * 3,
                held: (n == 5).then_some(Lasting { ns: 77 * MS, exact: false }),
            })
            .collect(),
        waiters: (0..threads).map(waiter).collect(),
        idle: vec![LiveWaiter { how: WaitKind::JOIN, lock: None, ..waiter(900) }],
        holders: (0..threads).map(holder).collect(),
    }
}

fn drawn(live: &Live, choices: &ScreenChoices, (width, height): (u16, u16)) -> Vec<String> {
    let size = (usize::from(width), usize::from(height));
    let room = room(size.1, live.waiters.len() + live.idle.len(), live.holders.len());
    let screen = Screen::make(live, &mut Counting::default(), choices, room);
    let lines = of_terminal("srv (pid 42)", &screen, choices, size);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, &lines, true)).expect("drawn");
    let buffer = terminal.backend().buffer();
    (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>()).collect()
}

fn place(lines: &[String], part: &str) -> usize {
    lines
        .iter()
        .position(|line| line.contains(part))
        .unwrap_or_else(|| panic!("{part}\n---\n{}", lines.join("\n")))
}

#[test]
fn a_hold_that_began_after_the_look_is_no_shorter_than_nothing() {
    let held = |ns, exact| super::lines::held(Lasting { ns, exact });
    assert_eq!([held(0, false), held(0, true)], ["just now"; 2]);
    assert_eq!([held(900, false), held(900, true)], ["<900 ns", "900 ns"]);
}

#[test]
fn everything_is_on_a_small_and_on_a_large_terminal() {
    for size in [(80, 24), (200, 50)] {
        let lines = drawn(&live(100, 30), &ScreenChoices::default(), size);
        assert_eq!(lines.len(), usize::from(size.1));
        assert!(lines[0].starts_with("lockstead top: srv (pid 42)"), "{}", lines[0]);
        assert!(lines[0].trim_end().ends_with("1.00 s"), "{}", lines[0]);
        let facts = &lines[1];
        assert!(
            facts.starts_with("40 threads: 30 wait for a lock, 1 idle; 1.23M acq/s; 1.43 waited"),
            "{facts}"
        );
        assert!(lines[2].contains("▾WAITING") && lines[2].contains("HELD"), "{}", lines[2]);
        // The worst lock is first: 100 ms of a second.
        assert!(
            lines[3].contains("lock\u{fffd}_100") && lines[3].contains("10.0%"),
            "{}",
            lines[3]
        );
        let waiting = place(&lines, "WAITING NOW  30 for a lock, 1 idle; the longest");
        assert!(lines[waiting + 1].contains("worker-0 (1000)"));
        assert!(lines[waiting + 1].contains("1.00 s") && lines[waiting + 1].contains("function_0"));
        let held = place(&lines, "HELD NOW  30; the longest");
        assert!(lines[held + 1].contains("? (2000)") && lines[held + 1].contains("5.00 s"));
        assert!(lines[held + 2].contains("(read)"), "{}", lines[held + 2]);
        let last = lines.last().expect("a line");
        assert!(last.contains("q quit") && last.contains("h help"), "{last}");
        assert!(held > waiting && waiting - 3 >= usize::from(size.1) / 2 - 3, "locks have half");
    }
}

#[test]
fn nothing_is_named_that_is_not_shown() {
    let live = live(10_000, 500);
    let room = room(24, 501, 500);
    let mut names = Counting::default();
    let screen = Screen::make(&live, &mut names, &ScreenChoices::default(), room);
    assert_eq!(screen.locks.len() + screen.waiters.len() + screen.holders.len(), 24 - 6);
    assert!(names.0 <= 3 * 18, "{}", names.0);
    assert_eq!((screen.all_locks, screen.waiting_now, screen.held_now), (10_000, 500, 500));
}

#[test]
fn an_idle_process_says_so() {
    let idle = Live { interval_ns: 1000 * MS, threads: 1, ..Live::default() };
    let lines = drawn(&idle, &ScreenChoices::default(), (80, 24));
    for part in ["no lock was used", "no thread waits", "no lock is held"] {
        place(&lines, part);
    }
}

#[test]
fn tiny_terminals_are_survived() {
    for size in [(1, 1), (10, 3), (40, 10), (300, 5)] {
        for help in [false, true] {
            let choices = ScreenChoices { help, ..ScreenChoices::default() };
            assert_eq!(drawn(&live(50, 5), &choices, size).len(), usize::from(size.1));
        }
    }
}

#[test]
fn keys_do_what_the_help_says() {
    let live = live(20, 3);
    let mut choices = ScreenChoices::default();
    let type_key = |choices: &mut ScreenChoices, c: char| {
        press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE), choices, &live)
    };
    assert_eq!(type_key(&mut choices, 's'), Wish::Redraw);
    assert_eq!(choices.sort, Column::Acquisitions);
    assert!(drawn(&live, &choices, (80, 24))[3].contains("lock\u{fffd}_1 "));
    type_key(&mut choices, '6');
    let longest_held = &drawn(&live, &choices, (80, 24))[3];
    assert!(longest_held.contains("lock\u{fffd}_5 "), "{longest_held}");
    assert!(longest_held.contains("<77.0 ms"), "known to the coarse clock: {longest_held}");
    type_key(&mut choices, '5');
    assert!(drawn(&live, &choices, (80, 24))[3].contains("lock\u{fffd}_7 "));
    type_key(&mut choices, 'S');
    assert_eq!(choices.sort, Column::Contended);
    type_key(&mut choices, '1');
    // By name, as text: 1, 10, 11, ...
    let lines = drawn(&live, &choices, (80, 24));
    assert!(lines[2].contains("▾LOCK") && lines[4].contains("lock\u{fffd}_10 "), "{lines:#?}");
    type_key(&mut choices, 'p');
    assert!(drawn(&live, &choices, (80, 24))[0].contains("PAUSED"));
    type_key(&mut choices, 'h');
    place(&drawn(&live, &choices, (80, 24)), "freeze: the locks keep their places");
    assert_eq!(type_key(&mut choices, 'q'), Wish::Redraw);
    assert!(!choices.help);
    assert_eq!(type_key(&mut choices, 'x'), Wish::Nothing);
    assert_eq!(type_key(&mut choices, 'q'), Wish::Quit);
    let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    assert_eq!(press(control('c'), &mut choices, &live), Wish::Quit);
    assert_eq!(press(control('z'), &mut choices, &live), Wish::Suspend);
    assert_eq!(press(control('q'), &mut choices, &live), Wish::Nothing);
}

#[test]
fn frozen_locks_keep_their_places_and_new_ones_come_after_them() {
    let mut live = live(5, 1);
    let mut choices = ScreenChoices::default();
    let freeze = KeyEvent::new(KeyCode::Char('f'), KeyModifiers::NONE);
    press(freeze, &mut choices, &live);
    // The last is the first now, and there is one that was not there.
    live.locks[0].waited_ns = 900 * MS;
    live.locks.push(LockRate { lock: 50, waited_ns: 999 * MS, ..LockRate::default() });
    let lines = drawn(&live, &choices, (80, 24));
    assert!(lines[0].contains("FROZEN"));
    let of = |lock: u32| place(&lines, &format!("lock\u{fffd}_{lock} "));
    assert_eq!([of(5), of(4), of(1), of(50)], [3, 4, 7, 8]);
    assert!(lines[7].contains("90.0%"), "numbers go on: {}", lines[7]);
    press(freeze, &mut choices, &live);
    assert!(drawn(&live, &choices, (80, 24))[3].contains("lock\u{fffd}_50 "));
}

#[test]
fn batch_output_is_plain_and_says_what_it_leaves_out() {
    let live = live(100, 30);
    let room = super::watch::BATCH;
    let choices = ScreenChoices::default();
    let screen = Screen::make(&live, &mut Counting::default(), &choices, room);
    let lines = of_batch("srv (pid 42)", &screen, &choices, 120);
    let text = super::watch::plain(&lines);
    assert!(!text.contains('\x1b'));
    assert!(text.contains("\n and 80 more\n") && text.contains("\n and 11 more\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120 && !line.ends_with(' ')));
    assert!(text.ends_with("\n\n"));
}

/// Returns the page of the chosen lock on a terminal of this size.
fn page(live: &Live, choices: &mut ScreenChoices, size: (usize, usize)) -> Vec<String> {
    let names = &mut Counting::default();
    let lock = choices.chosen.expect("a lock is chosen");
    let page = LockPage::make(live, names, lock, Some((2000, 500)));
    let (lines, above) = of_page(("srv (pid 42)", live.interval_ns), &page, choices, size);
    choices.scrolled = above;
    assert_eq!(lines.len(), size.1);
    lines.into_iter().map(|(_, text)| text.trim_end().to_owned()).collect()
}

#[test]
fn a_lock_is_chosen_with_the_arrows_and_stays_the_same_when_others_pass_it() {
    let mut live = live(100, 3);
    let mut choices = ScreenChoices::default();
    for _ in 0..3 {
        press(key(KeyCode::Down), &mut choices, &live);
    }
    press(key(KeyCode::Up), &mut choices, &live);
    assert!(drawn(&live, &choices, (80, 24))[4].starts_with("›lock\u{fffd}_99 "));
    live.locks[3].waited_ns = 999 * MS;
    let lines = drawn(&live, &choices, (80, 24));
    assert!(lines[3].starts_with(" lock\u{fffd}_4 ") && lines[5].starts_with("›lock\u{fffd}_99 "));
    // Below the screen: the table moves up.
    press(key(KeyCode::End), &mut choices, &live);
    let lines = drawn(&live, &choices, (80, 24));
    let marked = place(&lines, "›lock\u{fffd}_1 ");
    assert!(lines[marked + 1].starts_with(" WAITING NOW"), "{lines:#?}");
    press(key(KeyCode::Home), &mut choices, &live);
    assert!(drawn(&live, &choices, (80, 24))[3].starts_with("›lock\u{fffd}_4 "));
    press(key(KeyCode::PageDown), &mut choices, &live);
    assert!(drawn(&live, &choices, (80, 24))[13].starts_with('›'));
}

#[test]
fn the_page_of_a_lock_has_its_threads_with_stacks_and_its_places() {
    let live = live(20, 3);
    let mut choices = ScreenChoices {
        chosen: Some(ChosenLock { lock: 2, generation: 1 }),
        ..ScreenChoices::default()
    };
    press(key(KeyCode::Enter), &mut choices, &live);
    assert!(choices.open);
    let lines = page(&live, &mut choices, (100, 60));
    for part in [
        "recursive mutex at 0xabc0",
        "2.00k acquisitions, 25.0% contended",
        "waited 1.20k times, 5.00 s in all: half ≤ 1.00 ms, 99% ≤ 8.00 ms, max 33.0 ms",
        "the longest at slow() at a.c:1",
        "held 3 times",
        "WAITING NOW  1",
        "HELD NOW  1",
        "(read)",
        "caller_1() at some_file.c:9",
        "put\u{fffd}() at a.c:5",
        "get() at a.c:7",
    ] {
        place(&lines, part);
    }
    let waiter = place(&lines, "worker-1 (1001)");
    assert!(lines[waiter + 1].contains("function_1() at some_file.c:1"), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("worker-0")), "of another lock: {lines:#?}");
    // On a small terminal it scrolls, and no further than to its end.
    let lines = page(&live, &mut choices, (80, 12));
    assert!(lines[11].contains("more below"), "{lines:#?}");
    press(key(KeyCode::End), &mut choices, &live);
    let lines = page(&live, &mut choices, (80, 12));
    assert!(lines[10].contains("put() at a.c:6") && !lines[11].contains("below"), "{lines:#?}");
    press(key(KeyCode::Up), &mut choices, &live);
    assert!(page(&live, &mut choices, (80, 12))[11].contains("1 more below"));
    press(key(KeyCode::Esc), &mut choices, &live);
    assert!(!choices.open);
}

#[test]
fn the_page_of_a_lock_that_is_gone_says_so() {
    let live = live(20, 3);
    let mut choices = ScreenChoices {
        chosen: Some(ChosenLock { lock: 2, generation: 7 }),
        open: true,
        ..ScreenChoices::default()
    };
    let lines = page(&live, &mut choices, (80, 24));
    place(&lines, "not used in this interval");
    place(&lines, "This lock is gone");
    assert!(!lines.iter().any(|line| line.contains("worker")), "of its successor: {lines:#?}");
}

#[test]
fn a_filter_shows_the_locks_with_its_text_and_their_threads() {
    let live = live(20, 3);
    let mut choices = ScreenChoices::default();
    press(key(KeyCode::Char('/')), &mut choices, &live);
    for typed in "K\u{fffd}_2xq".chars() {
        assert_eq!(press(key(KeyCode::Char(typed)), &mut choices, &live), Wish::Redraw);
    }
    let lines = drawn(&live, &choices, (80, 24));
    place(&lines, "no lock that was used has this in its name");
    assert!(lines[23].starts_with(" filter: K\u{fffd}_2xq"), "{lines:#?}");
    press(key(KeyCode::Backspace), &mut choices, &live);
    press(key(KeyCode::Backspace), &mut choices, &live);
    press(key(KeyCode::Enter), &mut choices, &live);
    // The control character is part of the name, its replacement only of the screen.
    choices.filter = "K\x1b_2".into();
    let lines = drawn(&live, &choices, (80, 24));
    assert!(lines[3].contains("_20 ") && lines[4].contains("_2 "), "{lines:#?}");
    assert_eq!(lines[5].trim(), "", "{lines:#?}");
    place(&lines, "WAITING NOW  1 for a lock, 0 idle");
    place(&lines, "HELD NOW  1");
    assert!(lines[0].contains("  /K\u{fffd}_2"), "{lines:#?}");
    press(key(KeyCode::Esc), &mut choices, &live);
    assert_eq!(choices.filter, "");
    assert_eq!(press(key(KeyCode::Esc), &mut choices, &live), Wish::Quit);
}
