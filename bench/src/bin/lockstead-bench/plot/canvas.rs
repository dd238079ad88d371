//! A sheet to draw on, in pixels. Text is anchored and never measured, so that
//! no font is needed to draw: the viewer brings its own.

use crate::failure::Failure;
use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, FontTransform, IntoDrawingArea, IntoFont, PathElement, RGBColor,
    Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, TextStyle};

pub(super) const INK: RGBColor = RGBColor(32, 36, 42);
pub(super) const FAINT: RGBColor = RGBColor(105, 112, 122);
pub(super) const RULE: RGBColor = RGBColor(205, 210, 216);
pub(super) const OURS: RGBColor = RGBColor(31, 102, 168);
pub(super) const THEIRS: RGBColor = RGBColor(158, 170, 184);
pub(super) const PAST: RGBColor = RGBColor(196, 164, 112);
pub(super) const LIMIT: RGBColor = RGBColor(190, 60, 40);

/// plotters divides the size of a font by this before it writes it.
const PLOTTERS_FONT: f64 = 1.24;

/// How a text stands to its point.
#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
    /// It runs upwards from the point, turned by 90°.
    Up,
}

/// The looks of a text.
#[derive(Clone, Copy)]
pub(super) struct Pen {
    pub(super) size: i32,
    pub(super) color: RGBColor,
    pub(super) bold: bool,
}

impl Pen {
    pub(super) const fn new(size: i32, color: RGBColor) -> Self {
        Pen { size, color, bold: false }
    }

    pub(super) const fn bold(self) -> Self {
        Pen { bold: true, ..self }
    }
}

/// A white sheet to draw on.
pub(super) struct Canvas<'a>(DrawingArea<SVGBackend<'a>, Shift>);

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(format!("cannot draw the picture: {error}"))
}

/// Draws on a white sheet of this size with `draw`; the answer is the SVG.
pub(super) fn sheet(
    (width, height): (i32, i32),
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut svg = String::new();
    {
        let size = (width.unsigned_abs(), height.unsigned_abs());
        let canvas = Canvas(SVGBackend::with_string(&mut svg, size).into_drawing_area());
        canvas.rect((0, 0), (width, height), RGBColor(255, 255, 255))?;
        draw(&canvas)?;
        canvas.0.present().map_err(failed)?;
    }
    Ok(svg)
}

impl Canvas<'_> {
    pub(super) fn rect(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        color: RGBColor,
    ) -> Result<(), Failure> {
        self.0.draw(&Rectangle::new([from, to], color.filled())).map_err(failed)
    }

    pub(super) fn line(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        color: RGBColor,
        width: u32,
    ) -> Result<(), Failure> {
        self.0.draw(&PathElement::new([from, to], color.stroke_width(width))).map_err(failed)
    }

    /// Draws a circle around `at`, filled or not.
    pub(super) fn dot(
        &self,
        at: (i32, i32),
        radius: i32,
        color: RGBColor,
        is_filled: bool,
    ) -> Result<(), Failure> {
        let style = if is_filled { color.filled() } else { color.stroke_width(1) };
        self.0.draw(&Circle::new(at, radius, style)).map_err(failed)
    }

    /// Writes `text` with the middle of its height at `at`.
    pub(super) fn text(
        &self,
        text: &str,
        at: (i32, i32),
        align: Align,
        pen: Pen,
    ) -> Result<(), Failure> {
        let font = ("sans-serif", f64::from(pen.size) * PLOTTERS_FONT).into_font();
        let font = if pen.bold { font.style(FontStyle::Bold) } else { font };
        let (font, horizontal) = match align {
            Align::Left => (font, HPos::Left),
            Align::Middle => (font, HPos::Center),
            Align::Right => (font, HPos::Right),
            Align::Up => (font.transform(FontTransform::Rotate270), HPos::Left),
        };
        let style = TextStyle::from(font).color(&pen.color).pos(Pos::new(horizontal, VPos::Center));
        self.0.draw(&Text::new(text.to_owned(), at, style)).map_err(failed)
    }
}
