//! `lockstead run --metrics`: what is shown keeps the format, never goes back, and is the report's at
//! the end.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::common::{finish, lockstead, run, text};
use crate::programs::program;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

type Labels = BTreeMap<String, String>;

/// A page that was read strictly: the values of each family by their labels.
struct Page {
    kinds: BTreeMap<String, String>,
    values: BTreeMap<(String, Labels), f64>,
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads labels behind the opening brace, and returns what stands behind the closing one.
fn labels(mut rest: &str) -> (Labels, &str) {
    let mut labels = Labels::new();
    loop {
        let (name, behind) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name), "{name}");
        let (mut value, mut chars) = (String::new(), behind.chars());
        loop {
            match chars.next().expect("the value ends") {
                '"' => break,
                '\\' => value.push(match chars.next() {
                    Some('n') => '\n',
                    Some(same @ ('\\' | '"')) => same,
                    other => panic!("escaped: {other:?}"),
                }),
                other => value.push(other),
            }
        }
        assert!(labels.insert(name.into(), value).is_none(), "{name} stands twice");
        rest = chars.as_str();
        match rest.split_at(1) {
            (",", behind) => rest = behind,
            ("}", behind) => return (labels, behind),
            other => panic!("{other:?}"),
        }
    }
}

impl Page {
    fn read(page: &str) -> Page {
        let (mut kinds, mut helped) = (BTreeMap::new(), BTreeSet::new());
        let (mut values, mut family) = (BTreeMap::new(), String::new());
        assert!(page.ends_with('\n'), "the last line ends");
        for line in page.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("words");
                assert!(is_name(name) && !words.is_empty() && helped.insert(name.to_owned()));
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert!(helped.contains(name), "{name} has no help");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
                assert!(matches!(kind, "counter" | "gauge"), "{kind}");
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none());
                family = name.into();
                continue;
            }
            let end = line.find(['{', ' ']).expect("a name");
            let (name, rest) = line.split_at(end);
            assert_eq!(name, family, "a family stands together");
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => labels(rest),
                None => (Labels::new(), rest),
            };
            let value: f64 = value.strip_prefix(' ').expect("a space").parse().expect("a number");
            assert!(value >= 0.0, "{line}");
            assert!(values.insert((name.to_owned(), labels), value).is_none(), "twice: {line}");
        }
        assert_eq!(kinds.len(), helped.len());
        Page { kinds, values }
    }

    fn of(&self, family: &str, lock: &str) -> f64 {
        let those = self.values.iter().filter(|((name, labels), _)| {
            *name == format!("lockstead_{family}") && labels["lock"] == lock
        });
        those.map(|(_, value)| value).sum()
    }

    /// Asserts that no counter has gone back since `before`.
    fn goes_on_from(&self, before: &Page) {
        for ((name, labels), value) in &before.values {
            if before.kinds[name] == "counter" {
                let now = self.values.get(&(name.clone(), labels.clone()));
                assert!(now.is_some_and(|now| now >= value), "{name} {labels:?}: {value} {now:?}");
            }
        }
    }
}

fn get(address: &str, request: &str) -> String {
    let mut client = TcpStream::connect(address).expect("somebody listens");
    client.write_all(request.as_bytes()).expect("it is heard");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn the_last_file_has_the_figures_of_the_report() {
    let Some(program) = program("recorded.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [file, json] = ["locks.prom", "report.json"].map(|name| folder.path().join(name));
    let options = ["run", "--metrics", text(&file), "--json", text(&json), "--no-report"];
    for more in [&[][..], &["--metrics-locks", "1"]] {
        let run = run(&[&options[..], more, &["--", text(&program), "storm", "5000"]].concat());
        assert_eq!(run.status, 0, "{run:?}");
        let written = std::fs::read_to_string(&file).expect("a file");
        let page = Page::read(&written);
        let report = std::fs::read_to_string(&json).expect("a report");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let locks = report["processes"][0]["locks"].as_array().expect("locks");
        let hot = locks.iter().find(|lock| lock["name"] == "hot").expect("the lock");
        let number = |value: &Value| value.as_u64().expect("a number") as f64;
        assert_eq!(page.of("lock_acquisitions_total", "hot"), number(&hot["acquisitions"]));
        assert_eq!(page.of("lock_contended_acquisitions_total", "hot"), number(&hot["contended"]));
        let seconds = page.of("lock_wait_seconds_total", "hot");
        assert_eq!((seconds * 1e9).round(), number(&hot["wait"]["total_ns"]), "{written}");
        assert!(page.of("lock_longest_wait_seconds", "hot") > 0.0, "{written}");
        assert_eq!(page.of("lock_waiters", "hot"), 0.0);
        let listed: BTreeSet<_> = page.values.keys().filter_map(|(_, all)| all.get("id")).collect();
        assert!(more.is_empty() || listed.len() <= 2, "one lock, and the others: {listed:?}");
        // All that was acquired is in it, in the others if nowhere else.
        let all = page.values.iter();
        let all = all.filter(|((name, _), _)| name == "lockstead_lock_acquisitions_total");
        let sum: f64 = all.map(|(_, value)| value).sum();
        assert_eq!(sum, number(&report["processes"][0]["totals"]["acquisitions"]), "{written}");
        let checked = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(std::fs::File::open(&file).expect("a file"))
            .output();
        match checked {
            Ok(said) => assert!(said.status.success(), "{said:?}"),
            Err(_) => eprintln!("skipped: there is no promtool"),
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing is left");
}

#[test]
fn who_asks_gets_counters_that_go_on() {
    let Some(program) = program("recorded.c") else { return };
    let options = ["run", "--metrics", "0", "--no-report", "--", text(&program)];
    let mut command = lockstead(&[&options[..], &["storm", "3000000"]].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the command starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says where");
    let address = line.trim_end().strip_prefix("lockstead: metrics at http://");
    let address = address.and_then(|at| at.strip_suffix("/metrics")).expect("an address");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    // As long as a question may be, and not over.
    let endless = format!("{:a<8192}", "GET /metrics HTTP/1.1\r\nX: ");
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404 "),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 "),
        ("nonsense\r\n\r\n", "400 "),
        (&endless, "431 "),
    ] {
        let answer = get(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    // One that asks nothing keeps nobody from the answer for long.
    let silent = TcpStream::connect(address).expect("somebody listens");
    let mut before: Option<Page> = None;
    let ask = || {
        let answer = get(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        Page::read(body)
    };
    // Pages that are made anew: the second one that differs ends it.
    let mut differed = 0;
    while differed < 2 {
        let page = ask();
        if let Some(before) = &before {
            page.goes_on_from(before);
            differed += usize::from(page.values != before.values);
        }
        before = Some(page);
    }
    let last = before.expect("a page");
    assert!(last.of("lock_acquisitions_total", "hot") > 0.0);
    // The port is taken, which is said before the program starts.
    let taken = run(&["run", "--metrics", address, "--", "/bin/echo", "started"]);
    assert_eq!((taken.status, &*taken.stdout), (2, ""), "{taken:?}");
    assert!(taken.stderr.contains("--metrics") && taken.stderr.contains("another port"));
    drop(silent);
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
}

#[test]
fn a_place_that_cannot_be_is_refused() {
    for (place, why) in [("/nowhere/locks.prom", "cannot write"), ("65536", "at most 65535")] {
        let refused = run(&["run", "--metrics", place, "--", "/bin/echo", "started"]);
        assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let refused = finish(
        lockstead(&["run", "--metrics", &port, "--", "/bin/echo", "started"])
            .spawn()
            .expect("the command starts"),
    );
    assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:?}");
    assert!(refused.stderr.contains("another port"), "{refused:?}");
}
