//! The statement of `docs/cluster.md` that fences rows, against a PostgreSQL that the test starts. Where it is
//! not installed, skipped.

use crate::{late_and_present, members};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The bound of everything that could hang.
const BOUND: Duration = Duration::from_secs(60);

/// The user that runs the server where root runs the tests, which it refuses: `nobody`.
const NOBODY: u32 = 65_534;

/// Returns the folder with the server's programs, of which Debian has only `psql` in PATH.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let has = |folder: &PathBuf| {
        ["initdb", "postgres", "psql"].iter().all(|program| folder.join(program).is_file())
    };
    folders.into_iter().find(has)
}

/// A server that listens at a socket in its folder alone, and ends with the test.
struct Server {
    programs: PathBuf,
    folder: tempfile::TempDir,
    child: Child,
}

/// Returns a command of the user that runs the server.
fn command(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

impl Server {
    fn start(programs: PathBuf) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("its owner");
        }
        let data = folder.path().join("data");
        let mut init = command(programs.join("initdb"));
        init.args(["--no-sync", "--auth=trust", "--username=test", "--pgdata"]).arg(&data);
        let made = init.output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = command(programs.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(folder.path());
        server.args(["-c", "listen_addresses=", "-c", "fsync=off"]).stderr(Stdio::null());
        let child = server.spawn().expect("postgres starts");
        let server = Server { programs, folder, child };
        let end = Instant::now() + BOUND;
        while server.asked("SELECT 1").is_err() {
            assert!(Instant::now() < end, "postgres does not answer");
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Returns what psql prints for a statement: rows, or how many were changed.
    fn asked(&self, statement: &str) -> Result<String, String> {
        let host: &Path = self.folder.path();
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-At", "-v", "ON_ERROR_STOP=1", "-U", "test", "-d", "postgres"]);
        let output = psql.arg("-h").arg(host).args(["-c", statement]).output().expect("psql runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Ok(pid) = libc::pid_t::try_from(self.child.id()) else { return };
        // SAFETY: a signal to a child that is not yet waited for, so that the number is its own. SIGQUIT
        // ends the server's other processes as well.
        unsafe { libc::kill(pid, libc::SIGQUIT) };
        let _ = self.child.wait();
    }
}

#[test]
fn a_row_refuses_the_write_of_an_owner_that_was_late() {
    let Some(programs) = programs() else { return println!("skipped: there is no PostgreSQL") };
    let Some(members) = members() else { return };
    let (late, next) = late_and_present(&members);
    let server = Server::start(programs);
    let made = "CREATE TABLE report (name text PRIMARY KEY, body text, token bigint NOT NULL); \
                INSERT INTO report VALUES ('daily', 'none', 0)";
    server.asked(made).expect("a table");
    let write = |body: &str, token: u64| {
        let set = format!("UPDATE report SET body = '{body}', token = {token}");
        server.asked(&format!("{set} WHERE name = 'daily' AND token <= {token}"))
    };
    assert_eq!(write("first", late.token()), Ok("UPDATE 1".into()));
    assert_eq!(write("new", next.token()), Ok("UPDATE 1".into()));
    assert_eq!(write("old", late.token()), Ok("UPDATE 0".into()));
    assert_eq!(write("again", next.token()), Ok("UPDATE 1".into()));
    let row = format!("again|{}", next.token());
    assert_eq!(server.asked("SELECT body, token FROM report"), Ok(row));
}
