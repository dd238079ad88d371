//! The terminal, and what is on it.
//!
//! # Invariants
//! The terminal is as it was before whenever this process does not run on it:
//! after the end, after a panic, after SIGTERM, while it is suspended.

use super::draw::draw;
use super::flags::Top;
use super::keys::{Wish, press};
use super::lines::{TonedLine, of_terminal, room};
use super::page::LockPage;
use super::page_lines::of_page;
use super::screen::{Room, Screen};
use super::watch::{STEP, TopWatch};
use lockstead_inspect::report::live::Live;
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::Interrupt;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Gives the terminal back, however this ends. A panic is caught by a hook of
/// `ratatui` besides: its message must be readable.
struct Borrowed(DefaultTerminal);

impl Borrowed {
    fn take() -> io::Result<Borrowed> {
        ratatui::try_init().map(Borrowed)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

/// Shows the process until somebody or something ends it.
pub(super) fn show(
    watch: &mut TopWatch<'_>,
    flags: &Top,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Run(format!("cannot use the terminal: {error}"));
    let mut terminal = Borrowed::take().map_err(failed)?;
    let ended = watch_keys(&mut terminal, watch, flags, interrupt).map_err(failed)?;
    drop(terminal);
    if ended {
        watch.say_ended();
    }
    Ok(())
}

/// Says whether the process has ended.
fn watch_keys(
    terminal: &mut Borrowed,
    watch: &mut TopWatch<'_>,
    flags: &Top,
    interrupt: &Interrupt,
) -> io::Result<bool> {
    let colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let mut live = Live::default();
    let mut page = None;
    let mut looks = 0;
    let mut next = Instant::now() + flags.delay.min(STEP * 3);
    let mut dirty = true;
    while !interrupt.flag().load(Relaxed) {
        if watch.has_ended() {
            return Ok(true);
        }
        if Instant::now() >= next {
            next = Instant::now() + flags.delay;
            if !watch.choices.paused {
                live = watch.look();
                page = None;
                looks += 1;
                dirty = true;
            }
        }
        if dirty {
            dirty = false;
            let size = terminal.0.size()?;
            let size = (usize::from(size.width), usize::from(size.height));
            let lines = lines(watch, &live, &mut page, size);
            terminal.0.draw(|frame| draw(frame, &lines, colours))?;
        }
        if flags.count.is_some_and(|count| looks >= count) {
            return Ok(false);
        }
        if !event::poll(STEP.min(next.saturating_duration_since(Instant::now())))? {
            continue;
        }
        match event::read()? {
            Event::Resize(..) => dirty = true,
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                match press(key, &mut watch.choices, &live, &mut watch.names) {
                    Wish::Nothing => {}
                    Wish::Redraw => dirty = true,
                    Wish::Quit => return Ok(false),
                    Wish::Suspend => {
                        terminal.0.show_cursor()?;
                        ratatui::try_restore()?;
                        emulate_default_handler(SIGTSTP)?;
                        terminal.0 = ratatui::try_init()?;
                        dirty = true;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Returns what is to be seen. The page of a lock is made once after each look, so that it stays as
/// it is in a pause.
fn lines(
    watch: &mut TopWatch<'_>,
    live: &Live,
    page: &mut Option<LockPage>,
    size: (usize, usize),
) -> Vec<TonedLine> {
    let name = watch.target.name();
    let open = watch.choices.chosen.filter(|_| watch.choices.open);
    if open.is_none() {
        *page = None;
    }
    let Some(lock) = open.filter(|_| !watch.choices.help) else {
        let room = room_for(live, size);
        let screen = Screen::make(live, &mut watch.names, &watch.choices, room);
        return of_terminal(&name, &screen, &watch.choices, size);
    };
    let acquisitions = watch.before.acquisitions(lock.lock);
    let make = || LockPage::make(live, &mut watch.names, lock, acquisitions);
    let page = page.get_or_insert_with(make);
    let (lines, above) = of_page((&name, live.interval_ns), page, &watch.choices, size);
    watch.choices.scrolled = above;
    lines
}

fn room_for(live: &Live, (_, height): (usize, usize)) -> Room {
    room(height, live.waiters.len() + live.idle.len(), live.holders.len())
}
