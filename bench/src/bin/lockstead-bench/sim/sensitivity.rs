//! `lockstead sim sensitivity`.

use super::flags::Sensitivity;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::table::TextTable;
use lockstead_sim::Stopped;
use lockstead_sim::replay::{DIALS, NumberEffect, Turns, WATCHED, sensitivity};
use serde::Serialize;

/// What `lockstead sim sensitivity --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SensitivityReport<'a> {
    /// What each of the figures below is, in words.
    figures: [&'a str; WATCHED.len()],
    /// One object for each number and factor.
    effects: Vec<SensitivityEffect<'a>>,
}

/// What comes of it if a number is changed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SensitivityEffect<'a> {
    /// The name of the number that is changed; empty for the numbers as they are.
    number: &'a str,
    /// The factor by which it is changed.
    factor: f64,
    /// The figures, in the order of those words.
    figures: &'a [f64],
}

/// Simulates what the flags ask for, and prints the figures.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Sensitivity) -> Result<(), Failure> {
    let dials = if flags.number.is_empty() {
        DIALS.to_vec()
    } else {
        flags.number.iter().map(|name| dial(name)).collect::<Result<_, _>>()?
    };
    let turns = Turns { dials, users: flags.users as usize, seeds: flags.seeds };
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let effects =
        sensitivity(&turns, interrupt.flag(), &mut step).map_err(|Stopped| Failure::Interrupted)?;
    drop(progress);
    if flags.json {
        let effects = effects
            .iter()
            .map(|effect| SensitivityEffect {
                number: effect.dial,
                factor: effect.factor,
                figures: &effect.figures,
            })
            .collect();
        return output::print_json(&SensitivityReport { figures: WATCHED, effects });
    }
    output::print(&text(flags.users, &effects))
}

fn dial(name: &str) -> Result<&'static str, Failure> {
    DIALS.into_iter().find(|&known| known == name).ok_or_else(|| {
        Failure::option("--number <NAME>", name, format!("there are {}", DIALS.join(", ")))
    })
}

fn text(users: u64, effects: &[NumberEffect]) -> String {
    let mut text = format!("high_systime with {users} users, the best fit:\n");
    for (place, what) in WATCHED.iter().enumerate() {
        text += &format!("  {}: {what}\n", letter(place));
    }
    let mut head = vec!["number".to_owned(), "factor".to_owned()];
    head.extend((0..WATCHED.len()).map(letter));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = TextTable::new(&head);
    for effect in effects {
        let name = if effect.dial.is_empty() { "as it is" } else { effect.dial };
        let mut cells = vec![name.to_owned(), format!("{:.2}", effect.factor)];
        let figure = |&value: &f64| {
            if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
        };
        cells.extend(effect.figures.iter().map(figure));
        table.row(cells);
    }
    text + &table.render()
}

fn letter(place: usize) -> String {
    char::from(b'A' + place as u8).to_string()
}
