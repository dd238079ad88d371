//! The picture of the order, as SVG.

use super::layout::{HEIGHT, LaidArrow, OrderLayout, lay_out};
use super::{Arrow, OrderPicture};
use lockstead_render::html::{escape, open};
use lockstead_render::words::{fit, plural};
use std::fmt::Write;

/// The size of a box, but for its text, and of a character.
const PADDING: f64 = 18.0;
const LETTER: f64 = 7.4;
/// The same of the words of an arrow, and the height of a line of them.
const SMALL_LETTER: f64 = 6.3;
const LINE: f64 = 14.0;
const MARGIN: f64 = 30.0;
/// The most characters of a line of words.
const WORDS: usize = 34;
/// How far from the corner of a box an arrow begins or ends.
const CORNER: f64 = 8.0;

type Point = (f64, f64);

/// The places of everything.
struct Placed<'a> {
    graph: &'a OrderPicture,
    widths: Vec<f64>,
    layout: OrderLayout,
}

/// Draws boxes and arrows.
pub(super) fn draw_picture(graph: &OrderPicture) -> String {
    let widths: Vec<f64> = (0..graph.names.len()).map(|at| width(graph, at)).collect();
    let said: Vec<Vec<String>> = graph.arrows.values().map(words).collect();
    let laid = |((&(from, to), _), words): ((&(usize, usize), &Arrow), &Vec<String>)| {
        let long = words.iter().map(|line| line.chars().count()).max();
        let size =
            |long: usize| (long as f64 * SMALL_LETTER + 10.0, words.len() as f64 * LINE + 6.0);
        LaidArrow { from, to, words: long.map(size) }
    };
    let arrows: Vec<LaidArrow> = graph.arrows.iter().zip(&said).map(laid).collect();
    let layout = lay_out(&widths, &arrows);
    let corner = |middle: &Point, size: Point| (middle.0 + size.0 / 2.0, middle.1 + size.1 / 2.0);
    let of_boxes = layout.boxes.iter().zip(&widths).map(|(at, &width)| corner(at, (width, HEIGHT)));
    let of_words = layout.words.iter().zip(&arrows);
    let of_words = of_words.filter_map(|(at, arrow)| Some(corner(at.as_ref()?, arrow.words?)));
    let all = of_boxes
        .chain(of_words)
        .fold((0.0_f64, 0.0_f64), |most, (x, y)| (most.0.max(x), most.1.max(y)));
    let size = [all.0 + 2.0 * MARGIN, all.1 + HEIGHT / 2.0 + 2.0 * MARGIN];
    let [wide, high] = size.map(|side| side.ceil() as u32);
    let mut svg = open(wide, high, "the order in which locks are taken");
    let _ = write!(svg, "<desc>{}</desc>", escape(&described(graph)));
    let placed = Placed { graph, widths, layout };
    // Those of cycles lie above the others, and the words and the boxes above all.
    for cycle in [false, true] {
        for (at, (ends, arrow)) in graph.arrows.iter().enumerate() {
            if arrow.in_cycle == cycle {
                placed.arrow(&mut svg, at, *ends, arrow);
            }
        }
    }
    for ((at, arrow), said) in placed.layout.words.iter().zip(&arrows).zip(&said) {
        if let (Some(middle), Some(size)) = (at, arrow.words) {
            placed.words(&mut svg, *middle, size, said);
        }
    }
    placed.boxes(&mut svg);
    svg + "</svg>"
}

fn width(graph: &OrderPicture, at: usize) -> f64 {
    graph.label(at).chars().count() as f64 * LETTER + PADDING
}

/// Returns the words of an arrow, a line each: where, and how, if not as usual.
fn words(arrow: &Arrow) -> Vec<String> {
    let Some(number) = arrow.number else { return Vec::new() };
    let places = arrow.witness.asked.iter().cloned();
    let mut lines: Vec<String> = places.chain(arrow.witness.how()).collect();
    lines[0] = format!("{number}: {}", lines[0]);
    lines.iter().map(|line| fit(line, WORDS)).collect()
}

/// Says what the picture shows to whom cannot see it.
fn described(graph: &OrderPicture) -> String {
    let cycle: Vec<String> = graph
        .arrows
        .iter()
        .filter(|(_, arrow)| arrow.in_cycle)
        .map(|((from, to), _)| format!("{} before {}", graph.label(*from), graph.label(*to)))
        .collect();
    let all = plural(graph.arrows.len() as u64, "order", "orders");
    let boxes = plural(graph.names.len() as u64, "lock or class", "locks or classes");
    match cycle.is_empty() {
        true => format!("{all} of {boxes}, none in a cycle. The table below has them all."),
        false => format!(
            "{all} of {boxes}. In cycles: {}. The table below has them all.",
            cycle.join("; ")
        ),
    }
}

impl Placed<'_> {
    /// Returns where the middle of a box, or a point between, lies in the picture.
    fn place(&self, (x, y): Point) -> Point {
        (x + MARGIN, y + MARGIN + HEIGHT / 2.0)
    }

    fn boxes(&self, svg: &mut String) {
        for at in 0..self.graph.names.len() {
            let ((x, y), width) = (self.place(self.layout.boxes[at]), self.widths[at]);
            let touches = |((from, to), arrow): (&(usize, usize), &Arrow)| {
                arrow.in_cycle && (*from == at || *to == at)
            };
            let class = if self.graph.arrows.iter().any(touches) { "lock cycle" } else { "lock" };
            let _ = write!(
                svg,
                "<g><title>{}</title><rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" \
                 width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"4\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
                escape(&self.graph.names[at]),
                x - width / 2.0,
                y - HEIGHT / 2.0,
                y + 4.5,
                escape(&self.graph.label(at)),
            );
        }
    }

    fn words(&self, svg: &mut String, middle: Point, (width, height): Point, said: &[String]) {
        let (x, y) = self.place(middle);
        let _ = write!(
            svg,
            "<rect class=\"words\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
            x - width / 2.0,
            y - height / 2.0,
        );
        for (at, line) in said.iter().enumerate() {
            let _ = write!(
                svg,
                "<text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                y - height / 2.0 + 3.0 + LINE * (at as f64 + 0.78),
                escape(line),
            );
        }
    }

    /// Draws an arrow: through its words, round a box, or else with a bend to its right, so that
    /// two in opposite directions part.
    fn arrow(&self, svg: &mut String, at: usize, (from, to): (usize, usize), arrow: &Arrow) {
        let class = if arrow.in_cycle { "cycle" } else { "order" };
        let (path, tip, back) = match &self.layout.routes[at][..] {
            _ if from == to => self.round(from, arrow.number, svg),
            [] => self.bend(from, to),
            route => self.through(from, route, to),
        };
        let (dx, dy) = (tip.0 - back.0, tip.1 - back.1);
        let long = length(dx, dy).max(0.1);
        let size = if arrow.in_cycle { 11.0 } else { 8.0 };
        let (ux, uy) = (dx / long * size, dy / long * size);
        let names = (&self.graph.names[from], &self.graph.names[to]);
        let title = format!("{} → {}: {}", names.0, names.1, arrow.witness.who);
        let _ = write!(
            svg,
            "<g><title>{}</title><path class=\"{class}\" d=\"{path}\"/>\
             <polygon class=\"{class}\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/></g>",
            escape(&title),
            tip.0,
            tip.1,
            tip.0 - ux - uy / 2.2,
            tip.1 - uy + ux / 2.2,
            tip.0 - ux + uy / 2.2,
            tip.1 - uy - ux / 2.2,
        );
    }

    /// Returns the way of an arrow through these points, its tip, and where it comes from there.
    fn through(&self, from: usize, route: &[Point], to: usize) -> (String, Point, Point) {
        let (start, end) = (self.side(from, route[0]), self.side(to, route[route.len() - 1]));
        let middles = route.iter().map(|&point| self.place(point));
        let points: Vec<Point> = [start].into_iter().chain(middles).chain([end]).collect();
        let mut path = format!("M{:.1} {:.1}", start.0, start.1);
        for ends in points.windows(2) {
            let half = f64::midpoint(ends[0].1, ends[1].1);
            let [(x0, _), (x1, y1)] = [ends[0], ends[1]];
            let _ = write!(path, " C{x0:.1} {half:.1} {x1:.1} {half:.1} {x1:.1} {y1:.1}");
        }
        let back = points[points.len() - 2];
        (path, end, (end.0, back.1))
    }

    /// Returns where on the upper or the lower side of a box an arrow begins or ends that comes
    /// through this point.
    fn side(&self, at: usize, point: Point) -> Point {
        let ((x, y), point) = (self.place(self.layout.boxes[at]), self.place(point));
        let room = self.widths[at] / 2.0 - CORNER;
        let x = point.0.clamp(x - room, x + room);
        (x, if point.1 > y { y + HEIGHT / 2.0 } else { y - HEIGHT / 2.0 })
    }

    /// Returns the way of an arrow from a box to itself, beside which its number stands.
    fn round(&self, at: usize, number: Option<usize>, svg: &mut String) -> (String, Point, Point) {
        let (x, y) = self.place(self.layout.boxes[at]);
        let side = x + self.widths[at] / 2.0;
        if let Some(number) = number {
            let (x, y) = (side + 12.0, y - HEIGHT / 2.0 - 6.0);
            let _ = write!(svg, "<text class=\"small\" x=\"{x:.1}\" y=\"{y:.1}\">{number}</text>");
        }
        let path = format!(
            "M{:.1} {:.1} C{:.1} {:.1} {:.1} {:.1} {side:.1} {y:.1}",
            side - 6.0,
            y - HEIGHT / 2.0,
            side + 4.0,
            y - HEIGHT - 8.0,
            side + 30.0,
            y - 4.0,
        );
        (path, (side, y), (side + 16.0, y - 5.0))
    }

    fn bend(&self, from: usize, to: usize) -> (String, Point, Point) {
        let [(x1, y1), (x2, y2)] = [from, to].map(|at| self.place(self.layout.boxes[at]));
        let (dx, dy) = (x2 - x1, y2 - y1);
        let long = length(dx, dy).max(1.0);
        let bend = (long * 0.12).clamp(12.0, 60.0);
        let middle =
            (f64::midpoint(x1, x2) - dy / long * bend, f64::midpoint(y1, y2) + dx / long * bend);
        let (start, tip) = (self.border(from, (x1, y1), middle), self.border(to, (x2, y2), middle));
        let path = format!(
            "M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}",
            start.0, start.1, middle.0, middle.1, tip.0, tip.1
        );
        (path, tip, middle)
    }

    /// Returns where the line from the middle of a box to a point leaves the box.
    fn border(&self, at: usize, (x, y): Point, to: Point) -> Point {
        let (dx, dy) = (to.0 - x, to.1 - y);
        let across = self.widths[at] / 2.0 / dx.abs().max(0.01);
        let down = HEIGHT / 2.0 / dy.abs().max(0.01);
        let part = across.min(down).min(1.0);
        (x + dx * part, y + dy * part)
    }
}

/// Returns the length of a line. It does not use `hypot`, which would bind the command to glibc
/// 2.35 where that is what it is built with.
fn length(dx: f64, dy: f64) -> f64 {
    (dx * dx + dy * dy).sqrt()
}
