//! What commands in other namespaces than the one that has attached see of it.

use super::{Running, attached, interrupt};
use std::process::Command;

#[test]
fn a_command_in_another_network_namespace_leaves_what_is_watched_alone() {
    let apart = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--net", env!("CARGO_BIN_EXE_lockstead"), "attach"]).args(arguments);
        command.output()
    };
    match apart(&["--help"]) {
        Ok(output) if output.status.success() => {}
        other => return eprintln!("skipped: no other network namespace: {other:?}"),
    }
    let Some(mut running) = Running::busy("1") else { return };
    let pid = running.pid();
    let Some((command, _said)) = attached(&pid) else { return };
    let says = |arguments: &[&str], reason: &str| {
        let output = apart(arguments).expect("it has run before");
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(reason), "{output:?}");
    };
    says(&["--detach", &pid], "a command of lockstead watches it");
    says(&[&pid, "--for", "10ms"], "it is under lockstead already");
    let outcome = interrupt(command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    running.goes_on();
    running.ends_well();
}
