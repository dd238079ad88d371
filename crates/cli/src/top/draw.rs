//! Lines on a terminal.

use super::lines::{Tone, TonedLine};
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Styled, Text};
use ratatui::widgets::Paragraph;

/// Draws all lines. Without colours, emphasis is left.
pub(super) fn draw(frame: &mut Frame<'_>, lines: &[TonedLine], colours: bool) {
    let styled: Vec<Styled<'_>> = lines
        .iter()
        .map(|(tone, text)| Styled::styled(text.as_str(), style(*tone, colours)))
        .collect();
    frame.render_widget(Paragraph::new(Text::from(styled)), frame.area());
}

fn style(tone: Tone, colours: bool) -> Style {
    let style = Style::new();
    let coloured = |color| if colours { style.fg(color) } else { style };
    match tone {
        Tone::Title => style.add_modifier(Modifier::BOLD),
        Tone::Facts | Tone::Plain => style,
        Tone::Head | Tone::Keys => style.add_modifier(Modifier::REVERSED),
        Tone::Hot => coloured(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Marked => style.add_modifier(Modifier::REVERSED | Modifier::BOLD),
        Tone::Faint => style.add_modifier(Modifier::DIM),
    }
}
