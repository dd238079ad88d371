//! The screen as lines of text, each with its tone: a terminal gives tones
//! colours, plain text has none.

use super::flags::Column;
use super::screen::{LockRow, Room, Screen, ScreenChoices, ThreadRow};
use lockstead_inspect::report::live::Lasting;
use lockstead_render::table::{amount, count, time};
use lockstead_render::words::{clean, fit, load, percent, plural};

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Title,
    Facts,
    /// The head of a table.
    Head,
    Plain,
    /// A lock that a thread waits for now.
    Hot,
    /// The lock that was chosen.
    Marked,
    Faint,
    /// What the keys do.
    Keys,
}

/// One line with its tone.
pub(super) type TonedLine = (Tone, String);

/// The narrowest and lowest that is drawn; on a smaller terminal it is cut.
pub(super) const LEAST: (usize, usize) = (40, 10);
/// The number of lines that are no rows: title, facts, three heads, keys.
const FIXED: usize = 6;
/// The columns that a lock's numbers take.
const NUMBERS: usize = 9 + 9 + 10 + 9 + 10;

const FILTERED: &str = "no lock that was used has this in its name";

/// The coarse clock is set at least this often.
const UNSHARP_NS: u64 = 100_000_000;

const HELP: [&str; 17] = [
    "q, Esc   quit; back from help, a lock's page; Esc: without filter",
    "↑ ↓ j k  choose a lock; also Home, End, Page up, Page down",
    "Enter    the chosen lock: its places, stacks and threads",
    "/        show only locks with this in their names",
    "s, S     sort by the next column, by the one before",
    "1 to 6   sort by this column",
    "p, Space pause: the screen stays as it is",
    "f        freeze: the locks keep their places, the numbers go on",
    "h, ?     this help",
    "",
    "WAITING   time that threads waited in the interval; 100% is one thread",
    "          that waits all the time",
    "ACQ/S     acquisitions per second",
    "CONTENDED acquisitions that found the lock taken",
    "WAITERS   threads that wait for it now",
    "HELD      how long it has been held now",
    "Waits for conditions, semaphores, barriers and joins are idle.",
];

/// Returns the rows that fit below each other on a terminal of this height, for so many waiting
/// threads and held locks.
pub(super) fn room(height: usize, waiters: usize, holders: usize) -> Room {
    let rows = height.max(LEAST.1) - FIXED;
    // What a table does not need, the others get; the locks at least half.
    let waiters = waiters.clamp(1, (rows / 4).max(1));
    let holders = holders.clamp(1, (rows / 4).max(1));
    Room { locks: rows - waiters - holders, waiters, holders }
}

/// Returns all lines for a terminal of this size.
pub(super) fn of_terminal(
    name: &str,
    screen: &Screen,
    choices: &ScreenChoices,
    (width, height): (usize, usize),
) -> Vec<TonedLine> {
    let width = width.max(LEAST.0);
    let mut lines = vec![title(name, screen.interval_ns, choices, width), facts(screen, width)];
    if choices.help {
        lines.extend(HELP.iter().map(|text| (Tone::Plain, format!(" {text}"))));
    } else {
        let room = room(height, screen.waiting_now + screen.idle_now, screen.held_now);
        lines.push((Tone::Head, head(choices.sort, width)));
        let rows = screen.locks.iter().take(room.locks).enumerate().map(|(at, row)| {
            let marked = if screen.marked == Some(at) { Tone::Marked } else { Tone::Plain };
            lock_row(row, width, marked)
        });
        let none = if choices.filter.is_empty() { "no lock was used" } else { FILTERED };
        fill(&mut lines, rows, room.locks, none);
        lines.push((Tone::Head, waiters_head(screen, room.waiters)));
        let rows = screen.waiters.iter().take(room.waiters).map(|row| thread_row(row, width));
        fill(&mut lines, rows, room.waiters, "no thread waits");
        lines.push((Tone::Head, holders_head(screen, room.holders)));
        let rows = screen.holders.iter().take(room.holders).map(|row| thread_row(row, width));
        fill(&mut lines, rows, room.holders, "no lock is held");
    }
    let height = height.max(LEAST.1);
    lines.truncate(height - 1);
    lines.resize(height - 1, (Tone::Plain, String::new()));
    lines.push((Tone::Keys, fit(&keys(choices), width)));
    lines
}

/// Returns what the keys do, or the filter while it is typed.
fn keys(choices: &ScreenChoices) -> String {
    if choices.typing {
        return format!(" filter: {}▏  Enter keep  Esc all locks", clean(&choices.filter));
    }
    " q quit  ↑↓ Enter lock  / filter  s sort  p pause  f freeze  h help".into()
}

/// Returns all lines for a file: nothing is filled up.
pub(super) fn of_batch(
    name: &str,
    screen: &Screen,
    choices: &ScreenChoices,
    width: usize,
) -> Vec<TonedLine> {
    let mut lines = vec![title(name, screen.interval_ns, choices, width), facts(screen, width)];
    lines.push((Tone::Head, head(choices.sort, width)));
    lines.extend(screen.locks.iter().map(|row| lock_row(row, width, Tone::Plain)));
    if screen.locks.is_empty() && !choices.filter.is_empty() {
        lines.push((Tone::Faint, format!(" {FILTERED}")));
    }
    more(&mut lines, screen.all_locks, screen.locks.len());
    if !screen.waiters.is_empty() {
        lines.push((Tone::Head, waiters_head(screen, usize::MAX)));
        lines.extend(screen.waiters.iter().map(|row| thread_row(row, width)));
        more(&mut lines, screen.waiting_now + screen.idle_now, screen.waiters.len());
    }
    if !screen.holders.is_empty() {
        lines.push((Tone::Head, holders_head(screen, usize::MAX)));
        lines.extend(screen.holders.iter().map(|row| thread_row(row, width)));
        more(&mut lines, screen.held_now, screen.holders.len());
    }
    lines
}

fn more(lines: &mut Vec<TonedLine>, all: usize, shown: usize) {
    if all > shown {
        lines.push((Tone::Faint, format!(" and {} more", count((all - shown) as f64))));
    }
}

/// Adds rows, and empty lines up to `room` of them.
fn fill(
    lines: &mut Vec<TonedLine>,
    rows: impl Iterator<Item = TonedLine>,
    room: usize,
    none: &str,
) {
    let end = lines.len() + room;
    lines.extend(rows);
    if lines.len() == end - room {
        lines.push((Tone::Faint, format!(" {none}")));
    }
    lines.resize(end, (Tone::Plain, String::new()));
}

pub(super) fn title(
    name: &str,
    interval_ns: u64,
    choices: &ScreenChoices,
    width: usize,
) -> TonedLine {
    let mut state = String::new();
    if choices.paused {
        state += "  PAUSED";
    }
    if choices.frozen.is_some() {
        state += "  FROZEN";
    }
    if !choices.filter.is_empty() && !choices.typing {
        state += &format!("  /{}", fit(&clean(&choices.filter), width / 4));
    }
    let interval = time(interval_ns as f64);
    let room = width.saturating_sub(state.chars().count() + interval.chars().count() + 2);
    let left = fit(&format!("lockstead top: {}{state}", fit(&clean(name), room / 2)), width);
    let pad = width.saturating_sub(left.chars().count() + interval.chars().count());
    (Tone::Title, fit(&format!("{left}{}{interval}", " ".repeat(pad)), width))
}

fn facts(screen: &Screen, width: usize) -> TonedLine {
    let text = format!(
        "{}: {} wait for a lock, {} idle; {} acq/s; {:.2} waited on average",
        plural(screen.threads, "thread", "threads"),
        count(screen.waiting_now as f64),
        count(screen.idle_now as f64),
        amount(screen.acquisitions_per_s.round() as u64),
        screen.waiting,
    );
    (Tone::Facts, fit(&text, width))
}

/// Returns the titles of the columns; that which the rows are sorted by is marked.
pub(super) fn head(sort: Column, width: usize) -> String {
    let title = |column, text: &str, width: usize| {
        let mark = if column == sort { "▾" } else { "" };
        format!("{:>width$}", format!("{mark}{text}"))
    };
    format!(
        " {:<name$}{}{}{}{}{}",
        if sort == Column::Lock { "▾LOCK" } else { "LOCK" },
        title(Column::Waiting, "WAITING", 9),
        title(Column::Acquisitions, "ACQ/S", 9),
        title(Column::Contended, "CONTENDED", 10),
        title(Column::Waiters, "WAITERS", 9),
        title(Column::Held, "HELD", 10),
        name = width.saturating_sub(NUMBERS + 1),
    )
}

pub(super) fn lock_row(row: &LockRow, width: usize, tone: Tone) -> TonedLine {
    let room = width.saturating_sub(NUMBERS + 1);
    let name = fit(&clean(&row.name), room);
    let dash = |text: String, is: bool| if is { text } else { "-".into() };
    let mark = if tone == Tone::Marked { '›' } else { ' ' };
    let text = format!(
        "{mark}{name:<room$}{:>9}{:>9}{:>10}{:>9}{:>10}",
        dash(load(row.waiting * 100.0), row.waiting > 0.0),
        amount(row.acquisitions_per_s.round() as u64),
        percent(row.contended_percent),
        dash(row.waiters.to_string(), row.waiters != 0),
        row.held.map_or("-".into(), held),
    );
    (if row.waiters != 0 && tone == Tone::Plain { Tone::Hot } else { tone }, text)
}

/// Returns how long something has lasted. A short hold began at some time since the coarse clock
/// was last set; one that began after the look did has no length yet.
pub(super) fn held(held: Lasting) -> String {
    if held.ns == 0 {
        return "just now".into();
    }
    let time = time(held.ns as f64);
    if held.exact || held.ns > UNSHARP_NS { time } else { format!("<{time}") }
}

fn waiters_head(screen: &Screen, room: usize) -> String {
    format!(
        " WAITING NOW  {} for a lock, {} idle{}",
        count(screen.waiting_now as f64),
        count(screen.idle_now as f64),
        longest(screen.waiting_now + screen.idle_now, room)
    )
}

fn holders_head(screen: &Screen, room: usize) -> String {
    format!(" HELD NOW  {}{}", count(screen.held_now as f64), longest(screen.held_now, room))
}

fn longest(all: usize, room: usize) -> &'static str {
    if all > room { "; the longest" } else { "" }
}

fn thread_row(row: &ThreadRow, width: usize) -> TonedLine {
    // Thread, time, lock, place: a quarter, a fixed part, and two shares of the
    // rest.
    let thread_room = (width / 4).clamp(10, 28);
    let rest = width.saturating_sub(thread_room + 13);
    let lock_room = rest * 2 / 5;
    let site_room = rest - lock_room;
    let thread = fit(&clean(&row.thread), thread_room);
    let lock = fit(&clean(&row.lock), lock_room);
    let text = format!(
        " {thread:<thread_room$}{:>8}  {lock:<lock_room$}  {}",
        held(row.time),
        fit(&clean(&row.site), site_room)
    );
    (if row.idle { Tone::Faint } else { Tone::Plain }, text)
}
