//! A server that is asked things and then told to end, without and with
//! lockstead.

use super::case::read;
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
    /// Whether it answers.
    pub(super) ready: In<'a, bool>,
    /// Asks, and gives the answers.
    pub(super) work: In<'a, String>,
    /// The signal that ends it.
    pub(super) stop: libc::c_int,
}

impl Server<'_> {
    /// Runs it both ways, compares status and answers, and gives the report.
    pub(super) fn unharmed(&self) -> Value {
        let reports = tempfile::tempdir().expect("a folder");
        let json = reports.path().join("report.json");
        let bare = self.once(None);
        let watched = self.once(Some(&json));
        assert_eq!(bare, watched);
        read(&json)
    }

    /// Status and answers.
    fn once(&self, json: Option<&Path>) -> (Option<i32>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let line = (self.command)(folder.path());
        let mut command = match json {
            None => Command::new(&line[0]),
            Some(json) => watched(json, &[]),
        };
        command.args(&line[usize::from(json.is_none())..]);
        let server = Running::start(command.stdin(Stdio::null()).current_dir(folder.path()));
        until("the server answers", || (self.ready)(folder.path()));
        let answers = (self.work)(folder.path());
        server.signal(self.stop);
        let ended = server.end();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!said.contains("lockstead"), "{said}");
        assert!(ended.status.code().is_some(), "{ended:?}");
        (ended.status.code(), answers)
    }
}
