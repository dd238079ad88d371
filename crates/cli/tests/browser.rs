//! A browser that draws without a screen, for the pages that the command writes.

use crate::common::finish;
use crate::programs::skip;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names under which there is such a browser.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Adds to a page a script that does what a user does, and puts what became of it, as JSON, into
/// `data-seen` of its body.
pub(crate) fn with_user(page: &str, script: &str) -> String {
    let noted = "<script>\nonerror = message => document.body.setAttribute(\"data-error\", message);\n\
                 onunhandledrejection = event => onerror(String(event.reason));";
    // The page forbids what comes from elsewhere, not what stands in it.
    page.replace("</body>", &format!("{noted}{script}</script></body>"))
}

/// The browser that was found.
pub(crate) struct Browser(PathBuf);

impl Browser {
    /// Returns the first one on the path; `None`, with a message, where there is none.
    pub(crate) fn find() -> Option<Browser> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let mut all =
            BROWSERS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        let found = all.find(|file| file.is_file());
        if found.is_none() {
            skip("there is no chromium");
        }
        found.map(Browser)
    }

    /// Returns what the user's script has seen of a page in a window of this size.
    pub(crate) fn seen(&self, file: &Path, size: &str) -> Value {
        let body = self.body(file, size).replace("&quot;", "\"");
        assert!(!body.contains("data-error"), "{body}");
        let seen = body.split("data-seen=\"").nth(1).and_then(|rest| rest.split("}\"").next());
        let seen = format!("{}}}", seen.unwrap_or_else(|| panic!("{body}")));
        serde_json::from_str(&seen).unwrap_or_else(|why| panic!("{why}: {seen}"))
    }

    /// Returns the page's element `body` after its scripts have run.
    fn body(&self, file: &Path, size: &str) -> String {
        let dom = self.dom(&format!("file://{}", file.display()), size);
        let body = dom.find("<body").expect("a body");
        let end = dom[body..].find('>').expect("its end");
        dom[body..=body + end].to_owned()
    }

    /// Returns a page as it is after its scripts have run.
    pub(crate) fn dom(&self, address: &str, size: &str) -> String {
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(&self.0);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .args(["--enable-unsafe-swiftshader", "--virtual-time-budget=10000"])
            .arg(format!("--window-size={size}"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let outcome = finish(command.spawn().expect("the browser starts"));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stdout
    }
}
