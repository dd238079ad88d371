//! The terminal, and the keys.
//!
//! # Invariants
//! The terminal is as it was before whenever this process does not run on it:
//! after the end, after a panic, after SIGTERM, while it is suspended.

use super::draw::draw;
use super::flags::{Column, Top};
use super::lines::{of_terminal, room};
use super::screen::{Room, Screen, ScreenChoices, order};
use super::watch::{STEP, TopWatch};
use lockstead_inspect::report::live::Live;
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::Interrupt;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Redraw,
    Suspend,
    Quit,
}

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
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut live = Live::default();
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
                looks += 1;
                dirty = true;
            }
        }
        if dirty {
            dirty = false;
            let size = terminal.0.size()?;
            let size = (usize::from(size.width), usize::from(size.height));
            let screen =
                Screen::make(&live, &mut watch.names, &watch.choices, room_for(&live, size));
            let lines = of_terminal(&watch.target.name(), &screen, &watch.choices, size);
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
                match press(key, &mut watch.choices, &live) {
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

fn room_for(live: &Live, (_, height): (usize, usize)) -> Room {
    room(height, live.waiters.len() + live.idle.len(), live.holders.len())
}

/// Does what a key asks for.
pub(super) fn press(key: KeyEvent, choices: &mut ScreenChoices, live: &Live) -> Wish {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if with_control => return Wish::Quit,
        KeyCode::Char('z') if with_control => return Wish::Suspend,
        KeyCode::Char('l') if with_control => {}
        _ if with_control => return Wish::Nothing,
        // Help is left first, so that nobody quits by reading it.
        KeyCode::Char('q') | KeyCode::Esc if choices.help => choices.help = false,
        KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
        KeyCode::Char('h' | '?') => choices.help = !choices.help,
        KeyCode::Char('p' | ' ') => choices.paused = !choices.paused,
        KeyCode::Char('f') => {
            choices.frozen = match choices.frozen {
                Some(_) => None,
                None => Some(order(live, choices).iter().map(|rate| rate.lock).collect()),
            };
        }
        KeyCode::Char('s') | KeyCode::Right => sort(choices, live, choices.sort.step(1)),
        KeyCode::Char('S') | KeyCode::Left => sort(choices, live, choices.sort.step(-1)),
        KeyCode::Char(digit @ '1'..='5') => {
            sort(choices, live, Column::ALL[digit as usize - '1' as usize]);
        }
        _ => return Wish::Nothing,
    }
    Wish::Redraw
}

/// Sorts by another column; frozen places are given anew.
fn sort(choices: &mut ScreenChoices, live: &Live, column: Column) {
    choices.sort = column;
    if choices.frozen.take().is_some() {
        choices.frozen = Some(order(live, choices).iter().map(|rate| rate.lock).collect());
    }
}
