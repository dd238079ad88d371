//! Text for HTML and SVG: no name of a program can break the page.

use crate::words::clean;

/// Writes a text for XML.
#[must_use]
pub fn escape(text: &str) -> String {
    clean(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Begins a picture in SVG.
#[must_use]
pub fn open(width: u32, height: u32, label: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    )
}
