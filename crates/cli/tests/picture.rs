//! The picture at the top of the README: it says what the command prints.
//!
//! `LOCKSTEAD_PICTURE=draw cargo test -p lockstead-cli --test command -- picture::` draws it anew.

use crate::common::{run, text};
use crate::programs::program;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The picture, from the folder of the package.
const PICTURE: &str = "../../docs/deadlock.svg";
const COMMAND: &str = "$ lockstead run --no-report --on-deadlock kill -- ./orders";
/// The width of the picture, the first line of text and the distance of two lines, in pixels.
const WIDTH: usize = 740;
const FIRST: usize = 52;
const STEP: usize = 20;

const RED: &str = "#e06c75";
const GREEN: &str = "#98c379";
const YELLOW: &str = "#e5c07b";
const BLUE: &str = "#61afef";
const GREY: &str = "#8b93a1";

#[test]
fn the_picture_of_the_readme_says_what_the_command_prints() {
    let Some(orders) = program("orders.rs") else { return };
    let outcome = run(&["run", "--no-report", "--on-deadlock", "kill", "--", text(&orders)]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if std::env::var_os("LOCKSTEAD_PICTURE").is_some() {
        fs::write(&picture, drawn(&outcome.stderr)).expect("a picture");
    }
    let kept = fs::read_to_string(&picture).expect("a picture");
    let shown = lasting(&shown(&kept));
    assert_eq!(shown, lasting(&format!("{COMMAND}\n{}", outcome.stderr)), "{PICTURE}");
    assert!(shown.iter().any(|line| line.contains("DEADLOCK")), "{shown:?}");
}

/// Draws what the command printed in the window of a terminal.
fn drawn(printed: &str) -> String {
    let lines: Vec<&str> = [COMMAND].into_iter().chain(printed.lines()).collect();
    let height = FIRST + STEP * lines.len() - STEP + 26;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>lockstead run shows a deadlock of two threads of a Rust program</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f27\"/>\n"
    );
    for (x, colour) in [(20, RED), (38, YELLOW), (56, GREEN)] {
        write!(svg, "<circle cx=\"{x}\" cy=\"18\" r=\"5\" fill=\"{colour}\"/>").expect("memory");
    }
    svg += "\n<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
            font-size=\"13\" fill=\"#d7dae0\">\n";
    for (number, line) in lines.iter().enumerate() {
        let y = FIRST + STEP * number;
        let escaped = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let bold = format!("<tspan fill=\"{RED}\" font-weight=\"bold\">DEADLOCK</tspan>");
        let body = escaped.replace("DEADLOCK", &bold);
        let fill = colour(line).map_or(String::new(), |colour| format!(" fill=\"{colour}\""));
        writeln!(svg, "<text x=\"18\" y=\"{y}\" xml:space=\"preserve\"{fill}>{body}</text>")
            .expect("memory");
    }
    svg + "</g>\n</svg>\n"
}

/// Returns the colour of a line, where it is not that of most.
fn colour(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    match () {
        () if starts(&["$"]) => Some(GREEN),
        () if starts(&["waits for"]) => Some(YELLOW),
        () if starts(&["holds"]) => Some(BLUE),
        () if starts(&["pad:", "core::", "std::"]) => Some(GREY),
        () => None,
    }
}

/// Returns the text of a picture.
fn shown(svg: &str) -> String {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let lines = document.descendants().filter(|node| node.tag_name().name() == "text");
    let parts = lines.map(|line| line.descendants().filter(roxmltree::Node::is_text));
    let lines: Vec<String> =
        parts.map(|parts| parts.filter_map(|part| part.text()).collect()).collect();
    lines.join("\n")
}

/// Returns the lines without what differs from run to run, and without the standard library's frames, which
/// are those of one compiler.
fn lasting(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("core::"));
    let without = |line: &str| {
        ["pid ", "tid ", "since "].iter().fold(line.to_owned(), |line, &word| {
            let Some((before, after)) = line.split_once(word) else { return line };
            format!("{before}{word}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        })
    };
    lines.map(without).collect()
}
