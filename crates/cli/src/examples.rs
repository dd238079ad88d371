//! The commands that the help texts and the documents show are commands that there are.
//!
//! Both `lockstead` and `lockstead-bench` include this file: each checks the commands that it has.

use crate::args::{Cli, ELSEWHERE};
use clap::{Command, CommandFactory, Parser};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the words of each `lockstead ...` in a line for a shell, without the remark that two
/// spaces or a `#` set apart.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().split("  ").next().unwrap_or_default();
    let line = line.split(" #").next().unwrap_or_default().replace("$(pidof server)", "$PID");
    let mut commands = Vec::new();
    for part in line.split("&&").flat_map(|part| part.split(['|', ';'])) {
        let words: Vec<String> = part
            .split_whitespace()
            .map(|word| word.replace(['\'', '"', '[', ']'], ""))
            .skip_while(|word| ["$", "sudo"].contains(&word.as_str()))
            .take_while(|word| ![">", "2>", "<", "…", "..."].contains(&word.as_str()))
            .collect();
        let elsewhere =
            ELSEWHERE.iter().any(|name| words.iter().skip(1).take(name.len()).eq(*name));
        if words.first().is_some_and(|word| word == "lockstead") && !elsewhere {
            commands.push(words);
        }
    }
    commands
}

/// Returns the lines of a text, those that end in `\` with the next one.
fn lines(text: &str) -> Vec<String> {
    text.replace("\\\n", " ").lines().map(str::to_owned).collect()
}

/// Returns what such a command names that there is not: a subcommand or a flag.
fn unknown(words: &[String]) -> Option<String> {
    let all = Cli::command();
    let mut command: &Command = &all;
    for word in words[1..].iter().take_while(|word| *word != "--") {
        let Some(flag) = word.strip_prefix("--") else {
            match command.find_subcommand(word) {
                Some(found) => command = found,
                None if command.has_subcommands() => return Some(word.clone()),
                None => {}
            }
            continue;
        };
        let name = flag.split('=').next();
        let known = ["help", "version"].contains(&name.unwrap_or_default());
        if !known && !command.get_arguments().any(|argument| argument.get_long() == name) {
            return Some(word.clone());
        }
    }
    None
}

/// Calls `check` with the help after the flags of each command.
fn each_help(command: &Command, check: &mut impl FnMut(&str, &str)) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    check(command.get_name(), &help);
    command.get_subcommands().for_each(|command| each_help(command, check));
}

#[test]
fn every_subcommand_that_works_shows_examples_that_are_understood() {
    let mut seen = 0;
    each_help(&Cli::command(), &mut |name, help| {
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{name}: a terminal breaks {line:?}");
        }
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        let examples = examples.split("\n\n").next().unwrap_or_default();
        for words in lines(examples).iter().flat_map(|line| commands(line)) {
            // Arguments that a shell fills in stand for a number.
            let filled = words.iter().map(|word| if word.starts_with('$') { "1" } else { word });
            if let Err(error) = Cli::try_parse_from(filled) {
                panic!("the help of {name} shows {words:?}: {error}");
            }
            seen += 1;
        }
    });
    assert!(seen > 20, "{seen}");
    fn leaves(command: &Command) {
        command.get_subcommands().for_each(leaves);
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let theirs = command.is_disable_help_flag_set() || command.is_hide_set();
        let shows = theirs || command.has_subcommands() || help.contains("Examples:");
        assert!(shows, "{}", command.get_name());
    }
    leaves(&Cli::command());
}

/// Returns the commands in a document: in blocks for a shell, and within the text.
fn documented(text: &str) -> Vec<Vec<String>> {
    let (mut prose, mut found, mut block) = (String::new(), Vec::new(), None);
    for line in lines(text) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some(language.to_owned()) };
            continue;
        }
        match block.as_deref() {
            Some("sh") => found.extend(commands(&line)),
            Some("console") if line.starts_with('$') => found.extend(commands(&line)),
            Some(_) => {}
            None => prose += &(line + " "),
        }
    }
    found.extend(prose.split('`').skip(1).step_by(2).flat_map(commands));
    found
}

#[test]
fn documents_name_commands_and_flags_that_there_are() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    let root = root.expect("the workspace");
    let mut files: Vec<PathBuf> = fs::read_dir(root.join("docs"))
        .expect("the documents")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|file| root.join(file)));
    let mut seen = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("a document");
        for words in documented(&text) {
            let unknown = unknown(&words);
            assert_eq!(unknown, None, "{} names {words:?}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn what_does_not_exist_is_noticed() {
    let shown = "sudo lockstead bench vfs --json > a && lockstead pipes | lockstead dump 1";
    let commands = commands(shown);
    assert_eq!(commands.len(), 2);
    let unknown: Vec<_> = commands.iter().filter_map(|words| unknown(words)).collect();
    assert_eq!(unknown, ["pipes"]);
    let text = "see `lockstead\n--tasks 3`\n```console\n$ lockstead tap\nlockstead top: 1\n```\n";
    let found: Vec<_> = documented(text).iter().map(|words| self::unknown(words)).collect();
    assert_eq!(found, [Some("tap".to_owned()), Some("--tasks".to_owned())]);
}
