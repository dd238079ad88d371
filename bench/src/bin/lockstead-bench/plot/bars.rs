//! Horizontal bars with their figures at their ends.

use super::canvas::{Align, Canvas, INK, Pen, RULE};
use crate::failure::Failure;
use plotters::prelude::RGBColor;

pub(super) const ROW: i32 = 28;

/// The width of a character of a figure, at most.
const LETTER: i32 = 9;

/// A bar of a picture.
pub(super) struct PictureBar {
    pub(super) name: String,
    pub(super) value: f64,
    /// The text behind the bar.
    pub(super) figure: String,
    pub(super) color: RGBColor,
    pub(super) bold: bool,
}

/// The place where a block of bars stands.
pub(super) struct BarsPlace {
    /// The place where the bars begin; their names stand left of it.
    pub(super) left: i32,
    /// The width of the longest bar.
    pub(super) width: i32,
    /// The place where a line crosses all rows, which is to run through no figure.
    pub(super) line: Option<i32>,
    pub(super) top: i32,
}

/// Draws bars below each other, `most` as long as the place is wide.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    bars: &[PictureBar],
    place: &BarsPlace,
    most: f64,
) -> Result<(), Failure> {
    let mut y = place.top + ROW / 2;
    for bar in bars {
        let pen = Pen { bold: bar.bold, ..Pen::new(13, INK) };
        canvas.text(&bar.name, (place.left - 10, y), Align::Right, pen)?;
        let end = place.left + length(bar.value, most, place.width);
        canvas.rect((place.left, y - 9), (end, y + 9), bar.color)?;
        let long = bar.figure.chars().count() as i32 * LETTER;
        let crossed = place.line.filter(|&x| end < x && x < end + 8 + long);
        canvas.text(&bar.figure, (crossed.unwrap_or(end) + 8, y), Align::Left, pen)?;
        y += ROW;
    }
    canvas.line((place.left, place.top), (place.left, y - ROW / 2), RULE, 1)
}

/// Returns a value's length in pixels.
pub(super) fn length(value: f64, most: f64, width: i32) -> i32 {
    if most > 0.0 { (value / most * f64::from(width)).round() as i32 } else { 0 }
}
