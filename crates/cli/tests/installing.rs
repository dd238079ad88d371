//! What whoever installs the command gives to shells and to `man`, and when the command writes in
//! colour.

use crate::common::{entries, finish, lockstead, run, succeed};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn each_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("new/pages");
    succeed(&["man", pages.to_str().expect("text")]);
    let written = entries(&pages);
    let help = succeed(&["--help"]).stdout;
    let commands = help.split("Commands:\n").nth(1).expect("a list");
    let commands = commands.split("\n\nOptions:").next().expect("an end");
    let names = commands.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 12, "{names:?}");
    // Those of other programs are there if these are.
    let elsewhere = ["bench", "cluster", "demo", "explain", "plot", "sim", "whatif", "help"];
    for name in names.iter().filter(|name| !elsewhere.contains(name)) {
        let page = format!("lockstead-{name}.1");
        assert!(written.contains(&page), "no {page} in {written:?}");
    }
    let run = fs::read_to_string(pages.join("lockstead-run.1")).expect("a page");
    assert!(run.contains("on\\-deadlock"), "{run}");
    assert!(run.contains("lockstead run \\-\\-check \\-\\-"), "no examples: {run}");
    // Once more over the first ones.
    succeed(&["man", pages.to_str().expect("text")]);
    let outcome = crate::common::run(&["man", "/proc/nowhere"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("cannot make /proc/nowhere: "), "{outcome:?}");
}

/// Returns what bash would offer for the last of these words, with a folder in front of PATH in which
/// the command lies, and perhaps a `lockstead-bench`.
fn offered(words: &[&str], bench: Option<&str>) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("lockstead");
    fs::copy(env!("CARGO_BIN_EXE_lockstead"), &own).expect("a copy");
    if let Some(script) = bench {
        let file = folder.path().join("lockstead-bench");
        fs::write(&file, script).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
    let script = "\
        eval \"$(lockstead completions bash)\"
        COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        function=$(complete -p lockstead | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        \"$function\" lockstead \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).args(words).env_remove("CARGO");
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(child) = command.spawn() else {
        eprintln!("skipped: there is no bash");
        return None;
    };
    let outcome = finish(child);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{words:?}: {outcome:?}");
    Some(outcome.stdout.lines().map(str::to_owned).collect())
}

#[test]
fn a_shell_completes_subcommands_flags_and_values() {
    for (words, expected) in [
        (&["lockstead", "att"][..], &["attach"][..]),
        (&["lockstead", "run", "--on-d"], &["--on-deadlock"]),
        (&["lockstead", "completions", ""], &["bash", "elvish", "fish", "powershell", "zsh"]),
        (&["lockstead", "dump", "--color", "n"], &["never"]),
    ] {
        let Some(found) = offered(words, None) else { return };
        for word in expected {
            assert!(found.iter().any(|offer| offer == word), "{words:?}: no {word} in {found:?}");
        }
        assert!(found.len() < expected.len() + 4, "{words:?}: {found:?}");
    }
}

#[test]
fn the_program_that_measures_completes_its_own_words() {
    let says = "#!/bin/sh\nprintf '%s %s' \"$LOCKSTEAD_COMPLETE\" \"$*\"\n";
    let words = ["lockstead", "bench", "vfs", "--ta"];
    let Some(found) = offered(&words, Some(says)) else { return };
    assert_eq!(found, ["bash -- lockstead bench vfs --ta"]);
    // The name of the subcommand itself is this one's to complete.
    assert_eq!(offered(&["lockstead", "ben"], Some(says)).expect("bash"), ["bench"]);
}

#[test]
fn other_shells_have_scripts_too() {
    for shell in ["elvish", "fish", "powershell", "zsh"] {
        let script = succeed(&["completions", shell]).stdout;
        assert!(script.contains("LOCKSTEAD_COMPLETE"), "{shell}: {script}");
    }
    assert_eq!(run(&["completions", "dos"]).status, 2);
}

#[test]
fn colour_is_a_matter_of_the_flag_then_of_no_color_then_of_the_terminal() {
    // An error, whose first word is red.
    let is_red = |args: &[&str], no_color: bool| {
        let mut command = lockstead(args);
        command.env_remove("NO_COLOR").env("TERM", "xterm");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        finish(command.spawn().expect("the command starts")).stderr.contains('\x1b')
    };
    let nobody = ["dump", "2147483647"];
    assert!(!is_red(&nobody, false), "a pipe is no terminal");
    for color in [&["--color", "always"][..], &["--color=always"]] {
        assert!(is_red(&[color, &nobody].concat(), true), "{color:?}");
        assert!(is_red(&[&nobody, color].concat(), false), "{color:?}");
    }
    assert!(!is_red(&[&nobody[..], &["--color=never"]].concat(), false));
}
