//! `lockstead export --format html`: the page has what was recorded, and a browser draws it.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::browser::{Browser, with_user};
use crate::common::{finish, lockstead, run, succeed, text};
use crate::programs::program;
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;
use tempfile::TempDir;

/// A run of `recorded storm`, and its page.
struct Page {
    folder: TempDir,
    text: String,
}

impl Page {
    /// Records, and exports with these flags; `None`, with a message, without a compiler.
    fn new(flags: &[&str]) -> Option<Page> {
        let program = program("recorded.c")?;
        let folder = tempfile::tempdir().expect("a folder");
        let [events, page] = ["events", "page.html"].map(|name| folder.path().join(name));
        // Words that the program does not look at.
        let long = "</script><b>".repeat(300);
        let storm = ["--no-report", "--", text(&program), "storm", "3000", &long];
        let command = [&["run", "--record", text(&events)][..], &storm].concat();
        let outcome = finish(lockstead(&command).spawn().expect("the command starts"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let export = ["export", text(&events), "--format", "html", "-o", text(&page)];
        succeed(&[&export[..], flags].concat());
        let text = std::fs::read_to_string(&page).expect("the page was written");
        Some(Page { folder, text })
    }

    fn parse(&self) -> Document<'_> {
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        Document::parse_with_options(&self.text, options).expect("well-formed")
    }

    fn facts(&self) -> Value {
        let document = self.parse();
        let facts = document.descendants().find(|node| node.attribute("id") == Some("facts"));
        serde_json::from_str(facts.and_then(|node| node.text()).expect("facts")).expect("JSON")
    }

    /// Returns the nanoseconds of the folded stacks of the same recording.
    fn folded(&self, by: &str) -> u64 {
        let events = self.folder.path().join("events");
        let export = ["export", text(&events), "--format", "folded", "--by", by];
        let folded = succeed(&export).stdout;
        let weights = folded.lines().filter_map(|line| line.rsplit(' ').next());
        weights.map(|weight| weight.parse::<u64>().expect("a number")).sum()
    }
}

fn flame(facts: &Value, name: &str) -> u64 {
    let stacks = facts["flames"][name].as_array().expect("stacks");
    stacks.iter().map(|stack| stack[1].as_u64().expect("a number")).sum()
}

#[test]
fn the_page_has_what_was_recorded() {
    let Some(page) = Page::new(&["--by", "holder"]) else { return };
    let facts = page.facts();
    let rows = facts["rows"].as_array().expect("rows");
    let lanes = rows.iter().flat_map(|row| row["lanes"].as_array().expect("lanes"));
    let events: u64 = lanes.map(|count| count.as_u64().expect("a number")).sum();
    let events_file = page.folder.path().join("events");
    let trace: Value =
        serde_json::from_str(&succeed(&["export", text(&events_file)]).stdout).expect("JSON");
    let slices = trace["traceEvents"].as_array().expect("a list").iter();
    let events_of = ["wait", "hold", "wake"];
    let slices = slices.filter(|event| {
        event["ph"] == "X" && events_of.iter().any(|category| event["cat"] == *category)
    });
    assert_eq!(events, slices.count() as u64);
    assert!(events > 0);
    assert_eq!(facts["by"], "holder");
    for by in ["waiter", "holder"] {
        assert_eq!(flame(&facts, by), page.folded(by), "{by}");
    }
    let things = facts["things"].as_array().expect("things");
    assert!(things.iter().any(|thing| thing["name"] == "hot"), "{things:?}");
    assert!(page.text.contains("data-width=\"f64\"") || page.text.contains("data-width=\"u32\""));
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, page] = ["text", "page.html"].map(|name| folder.path().join(name));
    std::fs::write(&file, "no recording").expect("written");
    let refused = run(&["export", text(&file), "--format", "html", "-o", text(&page)]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("is no recording of"), "{refused:?}");
    assert!(!page.exists());
}

/// Has the page draw by a timer: a browser that writes a page out draws no further frames once it has
/// drawn one.
const TIMER: &str =
    "<script>window.requestAnimationFrame = then => setTimeout(then, 0);</script></head>";

/// Does to the page what a user does, and writes down what became of it. Each step waits for the
/// page to draw.
const USER: &str = r##"
(async () => {
  const by = id => document.getElementById(id);
  const frame = () => new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)));
  const seen = {};
  await frame();
  const pixels = () => by("rows").getContext("2d").getImageData(0, 0, by("rows").width, by("rows").height).data;
  const colours = () => new Set(new Uint32Array(pixels().buffer));
  seen.flame = by("flame").dataset.ns;
  seen.frames = document.querySelectorAll("#flame .frame").length;
  by("rows").focus();
  const press = key => by("rows").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  press("ArrowDown"); press("ArrowDown"); press("n"); press("Enter");
  await frame();
  seen.event = by("event").textContent;
  seen.waits = colours().has(0xff2f45c4);
  seen.holds = colours().has(0xffa8661f);
  document.querySelector("table.waits button").click();
  await frame();
  seen.only = by("only").selectedOptions[0].textContent;
  by("by-waiter").click();
  seen.waiter = by("flame").dataset.ns;
  by("find").value = "worker";
  by("find").dispatchEvent(new Event("input"));
  seen.found = by("flame-said").textContent;
  const inner = document.querySelectorAll("#flame .frame")[2];
  inner.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  seen.zoomed = !by("flame-reset").hidden;
  seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  document.body.setAttribute("data-seen", JSON.stringify(seen));
})();
"##;

#[test]
fn a_browser_draws_the_page_and_does_what_a_user_asks() {
    let Some(browser) = Browser::find() else { return };
    let Some(page) = Page::new(&["--by", "holder"]) else { return };
    let file = page.folder.path().join("used.html");
    // The page forbids what comes from elsewhere, not what stands in it.
    let used = page.text.replace("</head>", TIMER);
    std::fs::write(&file, with_user(&used, USER)).expect("written");
    for size in ["1280,900", "390,844"] {
        let seen = browser.seen(&file, size);
        // The event that was chosen takes a third of the width, in the colour of its kind.
        assert!(seen["waits"] == true || seen["holds"] == true, "{seen}");
        assert_eq!(seen["flame"], page.folded("holder").to_string());
        assert_eq!(seen["waiter"], page.folded("waiter").to_string());
        assert!(seen["frames"].as_u64().is_some_and(|frames| frames > 3), "{seen}");
        let event = seen["event"].as_str().expect("a text");
        assert!(event.contains("hot") && event.contains("worker"), "{seen}");
        assert_eq!(seen["only"], "hot");
        assert!(seen["found"].as_str().is_some_and(|said| said.contains("% of what")), "{seen}");
        assert_eq!((&seen["zoomed"], &seen["wide"]), (&true.into(), &0.into()), "{seen}");
    }
}
