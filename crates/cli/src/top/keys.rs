//! What the keys ask for.

use super::flags::Column;
use super::screen::{ChosenLock, Lookup, ScreenChoices, order};
use lockstead_inspect::report::live::Live;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The lines or locks that a key for a page goes on by.
const PAGE: isize = 10;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Redraw,
    Suspend,
    Quit,
}

/// Does what a key asks for.
pub(super) fn press(
    key: KeyEvent,
    choices: &mut ScreenChoices,
    live: &Live,
    names: &mut dyn Lookup,
) -> Wish {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if with_control => return Wish::Quit,
        KeyCode::Char('z') if with_control => return Wish::Suspend,
        KeyCode::Char('l') if with_control => {}
        _ if with_control => return Wish::Nothing,
        code if choices.typing => return edit(code, choices),
        KeyCode::Char('q') | KeyCode::Esc => return leave(choices, key.code),
        KeyCode::Char('h' | '?') => choices.help = !choices.help,
        KeyCode::Char('p' | ' ') => choices.paused = !choices.paused,
        KeyCode::Up | KeyCode::Char('k') => go(choices, live, names, -1),
        KeyCode::Down | KeyCode::Char('j') => go(choices, live, names, 1),
        KeyCode::PageUp => go(choices, live, names, -PAGE),
        KeyCode::PageDown => go(choices, live, names, PAGE),
        KeyCode::Home => go(choices, live, names, -isize::MAX),
        KeyCode::End => go(choices, live, names, isize::MAX),
        _ if choices.open => match key.code {
            KeyCode::Backspace | KeyCode::Enter => choices.open = false,
            _ => return Wish::Nothing,
        },
        KeyCode::Enter => {
            if choices.chosen.is_none() {
                go(choices, live, names, 1);
            }
            choices.open = choices.chosen.is_some();
            choices.scrolled = 0;
        }
        KeyCode::Char('/') => choices.typing = true,
        KeyCode::Char('f') => {
            choices.frozen = match choices.frozen {
                Some(_) => None,
                None => Some(places(choices, live, names)),
            };
        }
        KeyCode::Char('s') | KeyCode::Right => sort(choices, live, names, choices.sort.step(1)),
        KeyCode::Char('S') | KeyCode::Left => sort(choices, live, names, choices.sort.step(-1)),
        KeyCode::Char(digit @ '1'..='6') => {
            sort(choices, live, names, Column::ALL[digit as usize - '1' as usize]);
        }
        _ => return Wish::Nothing,
    }
    Wish::Redraw
}

/// Leaves what lies on top: the help, the page of a lock, the filter, and then the program. So
/// nobody quits by reading.
fn leave(choices: &mut ScreenChoices, key: KeyCode) -> Wish {
    if choices.help {
        choices.help = false;
    } else if choices.open {
        choices.open = false;
    } else if key == KeyCode::Esc && !choices.filter.is_empty() {
        choices.filter.clear();
    } else {
        return Wish::Quit;
    }
    Wish::Redraw
}

/// Changes the filter that is being typed.
fn edit(key: KeyCode, choices: &mut ScreenChoices) -> Wish {
    match key {
        KeyCode::Char(typed) => choices.filter.push(typed),
        KeyCode::Backspace => {
            choices.filter.pop();
        }
        KeyCode::Enter => choices.typing = false,
        KeyCode::Esc => {
            choices.typing = false;
            choices.filter.clear();
        }
        _ => return Wish::Nothing,
    }
    Wish::Redraw
}

/// Goes down by so many lines of a page, or locks of the table.
fn go(choices: &mut ScreenChoices, live: &Live, names: &mut dyn Lookup, by: isize) {
    if choices.open {
        choices.scrolled = choices.scrolled.saturating_add_signed(by);
        return;
    }
    let ordered = order(live, choices, names);
    let marked = choices.chosen.and_then(|lock| ordered.iter().position(|rate| lock.has(rate)));
    let to = match marked {
        Some(marked) => marked.saturating_add_signed(by).min(ordered.len().saturating_sub(1)),
        None if by == isize::MAX => ordered.len().saturating_sub(1),
        None => 0,
    };
    choices.chosen =
        ordered.get(to).map(|rate| ChosenLock { lock: rate.lock, generation: rate.generation });
}

/// Sorts by another column; frozen places are given anew.
fn sort(choices: &mut ScreenChoices, live: &Live, names: &mut dyn Lookup, column: Column) {
    choices.sort = column;
    if choices.frozen.take().is_some() {
        choices.frozen = Some(places(choices, live, names));
    }
}

fn places(choices: &ScreenChoices, live: &Live, names: &mut dyn Lookup) -> Vec<u32> {
    order(live, choices, names).iter().map(|rate| rate.lock).collect()
}
