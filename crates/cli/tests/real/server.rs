//! A server that is asked things and then told to end: without lockstead,
//! watched, and checked.

use super::case::{read, without_the_verdict};
use super::{Running, until, watched};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Something to do in the folder of a server.
type In<'a, T> = Box<dyn Fn(&Path) -> T + 'a>;

/// A server and those who ask it.
pub(super) struct Server<'a> {
    /// The command line in a fresh folder.
    pub(super) command: In<'a, Vec<OsString>>,
    /// Whether the server answers yet.
    pub(super) ready: In<'a, bool>,
    /// Asks, and gives the answers.
    pub(super) work: In<'a, String>,
    /// The signal that ends it.
    pub(super) stop: libc::c_int,
}

impl Server<'_> {
    /// Runs it in all ways, compares status and answers, and gives the report of
    /// the run that only watches. Nothing is found.
    pub(super) fn unharmed(&self) -> Value {
        let reports = tempfile::tempdir().expect("a folder");
        let json = reports.path().join("report.json");
        let bare = self.once(None);
        assert_eq!(bare, self.once(Some((&json, &[]))));
        let checked = reports.path().join("checked");
        assert_eq!(bare, self.once(Some((&checked, &["--check"]))));
        read(&json)
    }

    /// Runs the server once, and returns its status and answers.
    fn once(&self, how: Option<(&Path, &[&str])>) -> (Option<i32>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let line = (self.command)(folder.path());
        let mut command = match how {
            None => Command::new(&line[0]),
            Some((json, options)) => watched(json, options),
        };
        command.args(&line[usize::from(how.is_none())..]);
        let server = Running::start(command.stdin(Stdio::null()).current_dir(folder.path()));
        until("the server answers", || (self.ready)(folder.path()));
        let answers = (self.work)(folder.path());
        server.signal(self.stop);
        let ended = server.end();
        let said = without_the_verdict(&ended.stderr);
        assert!(!said.contains("lockstead"), "{said}");
        assert!(ended.status.code().is_some(), "{ended:?}");
        (ended.status.code(), answers)
    }
}
