//! The uncontended pair as bars, with the bare two atomics as a line.

use super::bars::{self, BarsPlace, PictureBar};
use super::canvas::{Align, LIMIT, OURS, Pen, THEIRS, sheet};
use super::frame::{MARGIN, footer, heading};
use super::report::PlottedUncontended;
use crate::compare::ours;
use crate::failure::Failure;

const TOP: i32 = 116;

pub(super) fn draw(pair: &PlottedUncontended) -> Result<String, Failure> {
    let rows = i32::try_from(pair.results.len()).unwrap_or(i32::MAX / 4096) * bars::ROW;
    let height = TOP + rows + 70;
    let most = pair.results.iter().map(|r| r.ns).fold(pair.limit_ns, f64::max);
    let bars: Vec<PictureBar> = pair
        .results
        .iter()
        .map(|r| {
            let mut figure = format!("{:.2} ns, {:.2}x", r.ns, r.ratio_to_limit);
            if let Some(instructions) = r.instructions {
                figure += &format!(", {instructions:.0} instructions");
            }
            if let Some(bytes) = r.bytes {
                figure += &format!(", {bytes:.0} byte{}", if bytes == 1.0 { "" } else { "s" });
            }
            PictureBar {
                name: r.lock.clone(),
                value: r.ns,
                figure,
                color: if ours(&r.lock) { OURS } else { THEIRS },
                bold: ours(&r.lock),
            }
        })
        .collect();
    sheet((1080, height), |canvas| {
        heading(
            canvas,
            "lockstead bench uncontended",
            "Lock and unlock by one thread, nanoseconds; less is better.",
        )?;
        let (left, width) = (MARGIN + 160, 500);
        let x = left + bars::length(pair.limit_ns, most, width);
        bars::draw(canvas, &bars, &BarsPlace { left, width, top: TOP, line: Some(x) }, most)?;
        canvas.line((x, TOP - 8), (x, TOP + rows), LIMIT, 2)?;
        let text = format!("the two bare atomics: {:.2} ns", pair.limit_ns);
        let align = if x > left + width / 2 { Align::Right } else { Align::Left };
        canvas.text(&text, (x, TOP - 20), align, Pen::new(12, LIMIT))?;
        footer(canvas, &pair.machine, height)
    })
}
