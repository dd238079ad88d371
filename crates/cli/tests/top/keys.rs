//! What a person sees of `lockstead top`, and what the keys do.

use super::Running;
use super::screen::Screen;
use crate::report::support::line;
use std::time::Duration;

/// The seconds between two looks in these tests.
const DELAY: &str = "0.1";

/// Starts the command on the program. Returns at its first full picture.
fn shown(running: &Running) -> Screen {
    let mut screen = Screen::start(&["top", &running.pid(), "-d", DELAY]);
    screen.expect("worker() at worst.c");
    screen.is_taken();
    screen
}

/// Returns how long `hot` has been held, as the screen says it.
fn held(lines: &[String]) -> String {
    let row = lines.iter().find(|line| line.starts_with(" hot ")).expect("the lock's row");
    let words: Vec<_> = row.split_whitespace().collect();
    words[words.len() - 2..].join(" ")
}

/// Longer than several looks.
const WHILE: Duration = Duration::from_millis(500);

/// Pauses, waits until nothing changes any more, goes on.
fn pause(screen: &mut Screen, key: &str) {
    screen.press(key);
    screen.expect("PAUSED");
    let paused = screen.at_rest(WHILE);
    screen.press(key);
    screen.see("longer hold", |lines| !lines[0].contains("PAUSED") && held(lines) != held(&paused));
}

#[test]
fn everything_is_there_in_80_columns_and_24_lines() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    let lines = screen.expect(" HELD NOW  1");
    assert!(lines[0].starts_with("lockstead top: worst (pid "), "{lines:#?}");
    assert!(lines[0].ends_with('s') && lines[0].chars().count() == 80, "{lines:#?}");
    assert!(lines[1].starts_with("4 threads: 3 wait for a lock, 0 idle; 0 acq/s; "), "{lines:#?}");
    let heads: Vec<_> = lines[2].split_whitespace().collect();
    assert_eq!(heads, ["LOCK", "▾WAITING", "ACQ/S", "CONTENDED", "WAITERS", "HELD"]);
    assert_eq!(lines[2].chars().count(), 80);
    let row: Vec<_> = lines[3].split_whitespace().collect();
    assert_eq!([row[0], row[2], row[3], row[4]], ["hot", "0", "0%", "3"], "{lines:#?}");
    // Three threads waited all the time.
    let waiting: f64 = row[1].trim_end_matches('%').parse().expect("a number");
    assert!((299.0..301.0).contains(&waiting), "{lines:#?}");
    let waiting = lines.iter().position(|l| l.starts_with(" WAITING NOW  3 for a lock, 0 idle"));
    let waiting = waiting.unwrap_or_else(|| panic!("{lines:#?}"));
    for worker in 0..3 {
        let row = lines[waiting + 1..waiting + 4]
            .iter()
            .find(|line| line.starts_with(&format!(" worker-{worker} (")))
            .unwrap_or_else(|| panic!("{lines:#?}"));
        assert!(row.contains(" hot "), "{row}");
        assert!(row.ends_with(&format!("worker() at worst.c:{}", line("waits"))), "{row}");
    }
    assert_eq!(lines[waiting + 4], " HELD NOW  1", "{lines:#?}");
    assert!(lines[waiting + 5].ends_with(&format!("run() at worst.c:{}", line("holds"))));
    assert_eq!(lines[23], " q quit  ↑↓ Enter lock  / filter  s sort  p pause  f freeze  h help");
    screen.press("q");
    screen.end();
    running.end();
}

#[test]
fn the_columns_are_sorted_by_in_both_directions_and_by_number() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    let columns = ["▾LOCK", "▾WAITING", "▾ACQ/S", "▾CONTENDED", "▾WAITERS", "▾HELD"];
    let mut check = |key: &str, column: &str| {
        screen.press(key);
        let lines = screen.expect(column);
        assert_eq!(lines.join("").matches('▾').count(), 1, "{lines:#?}");
    };
    for column in columns.iter().cycle().skip(2).take(6) {
        check("s", column);
    }
    for column in columns.iter().rev().cycle().skip(5).take(6) {
        check("S", column);
    }
    for number in [6, 2, 4, 1, 3] {
        check(&number.to_string(), columns[number - 1]);
    }
    check("\x1b[C", columns[3]);
    check("\x1b[D", columns[2]);
    screen.press("q");
    screen.end();
    running.end();
}

#[test]
fn a_pause_keeps_the_screen_and_a_freeze_keeps_the_places_only() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    for key in ["p", " "] {
        pause(&mut screen, key);
    }
    screen.press("f");
    let frozen = held(&screen.expect("FROZEN"));
    screen.see("longer hold", |lines| held(lines) != frozen);
    screen.press("f");
    screen.see("end of it", |lines| !lines[0].contains("FROZEN"));
    screen.press("q");
    screen.end();
    running.end();
}

#[test]
fn a_lock_can_be_looked_at_more_closely() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    screen.press("\x1b[B");
    screen.expect("›hot ");
    screen.press("\r");
    // The last line is drawn last.
    let lines = screen.see("page", |lines| lines[23].starts_with(" Esc back"));
    assert!(lines.iter().any(|line| line.starts_with(" mutex at 0x")), "{lines:#?}");
    let waits = format!("worker() at worst.c:{}", line("waits"));
    let holds = format!("run() at worst.c:{}", line("holds"));
    let waiting = lines.iter().position(|line| line == " WAITING NOW  3");
    let waiting = waiting.unwrap_or_else(|| panic!("{lines:#?}"));
    // The longest wait first, each with its stack.
    assert!(lines[waiting + 1].starts_with(" worker-"), "{lines:#?}");
    assert_eq!(lines[waiting + 2].trim(), waits, "{lines:#?}");
    screen.press("\x1b[F");
    let lines = screen.see("end of the page", |lines| !lines[23].contains("below"));
    assert!(lines.iter().any(|line| line == " HELD NOW  1"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.trim() == holds), "{lines:#?}");
    // It is looked at again and again, but not in a pause.
    pause_page(&mut screen);
    screen.press("\x1b");
    screen.expect("›hot ");
    screen.press("/nothing like it");
    screen.expect("no lock that was used has this in its name");
    screen.press("\x1b");
    screen.expect("›hot ");
    screen.press("/HO\r");
    let lines = screen.see("filtered table", |lines| {
        lines[0].contains("  /HO") && lines[23].starts_with(" q quit")
    });
    assert!(lines[3].starts_with("›hot "), "{lines:#?}");
    screen.press("\x1b");
    screen.see("all locks", |lines| !lines[0].contains("/HO"));
    screen.press("\x1b");
    screen.end();
    running.end();
}

/// Sees a page stay as it is while it is paused, and go on afterwards.
fn pause_page(screen: &mut Screen) {
    screen.press("p");
    screen.expect("PAUSED");
    let paused = screen.at_rest(WHILE);
    screen.press("p");
    screen.see("longer hold", |lines| !lines[0].contains("PAUSED") && lines[1..] != paused[1..]);
}

#[test]
fn the_help_covers_the_tables_and_is_left_before_the_program() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    for (enter, leave) in [("h", "h"), ("?", "q"), ("h", "\x1b")] {
        screen.press(enter);
        let help = screen.see("help alone", |lines| {
            let has = |part| lines.iter().any(|line| line.contains(part));
            has("freeze: the locks keep their places") && !has("HELD NOW")
        });
        for part in ["q, Esc   quit", "s, S ", "1 to 6 ", "Enter ", "/  ", "p, Space", "h, ?"] {
            assert!(help.iter().any(|line| line.contains(part)), "{part}: {help:#?}");
        }
        screen.press(leave);
        screen.expect("HELD NOW");
    }
    screen.press("\x1b");
    screen.end();
    running.end();
}

#[test]
fn another_size_is_filled_at_once() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    for (columns, lines) in [(200, 50), (40, 10), (132, 24)] {
        screen.resize(columns, lines);
        // The lock as well: what is seen may be half of one picture and half of the one before.
        let filled = screen.see("picture of this size", |picture| {
            picture[0].chars().count() == usize::from(columns)
                && picture[usize::from(lines) - 1].starts_with(" q quit")
                && picture.iter().any(|line| line.starts_with(" hot "))
        });
        assert_eq!(filled.iter().filter(|line| line.contains("q quit")).count(), 1, "{filled:#?}");
    }
    screen.press("q");
    screen.end();
    running.end();
}

#[test]
fn the_terminal_is_given_back_on_a_key_a_signal_and_at_the_programs_end() {
    let Some(running) = Running::start() else { return };
    for key in ["q", "\x1b", "\x03"] {
        let mut screen = shown(&running);
        screen.press(key);
        screen.end();
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let screen = shown(&running);
        screen.signal(signal);
        screen.end();
    }
    let mut screen = shown(&running);
    running.end();
    screen.is_given_back();
    screen.expect("has ended");
    screen.end();
}

#[test]
fn the_terminal_is_given_back_while_the_command_is_suspended() {
    let Some(running) = Running::start() else { return };
    let mut screen = shown(&running);
    screen.press("\x1a");
    screen.is_stopped();
    screen.is_given_back();
    screen.signal(libc::SIGCONT);
    screen.expect("HELD NOW");
    screen.is_taken();
    screen.press("q");
    screen.end();
    running.end();
}
