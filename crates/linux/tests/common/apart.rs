//! A process that sees a `/run` of its own.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// This variable in the environment tells the child that it is one.
const APART: &str = "LOCKSTEAD_TEST_APART";

/// Runs the test `name`, whose `body` this is, once more where `/run` is empty and the
/// process's own; skips where that is not allowed.
pub(crate) fn apart(name: &str, body: impl FnOnce()) {
    if std::env::var_os(APART).is_some() {
        return body();
    }
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", name, "--nocapture"]).env(APART, "1");
    // SAFETY: the closure makes only calls that are safe after a fork.
    unsafe {
        again.pre_exec(|| {
            let (none, nothing) = (c"none".as_ptr(), core::ptr::null());
            let private = libc::MS_REC | libc::MS_PRIVATE;
            let hidden = libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(none, c"/".as_ptr(), nothing, private, nothing.cast()) == 0
                && libc::mount(none, c"/run".as_ptr(), c"tmpfs".as_ptr(), 0, nothing.cast()) == 0;
            if hidden { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    match again.output() {
        Err(why) => println!("skipped: no /run of its own for a child: {why}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let more = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}\n{more}");
            assert!(text.contains("1 passed"), "{text}");
            text.lines().filter(|line| line.contains("skipped:")).for_each(|l| println!("{l}"));
        }
    }
}
